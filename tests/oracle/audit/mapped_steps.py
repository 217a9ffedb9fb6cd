# SPDX-License-Identifier: Apache-2.0
"""Right training steps by shard_map: the program names its messages itself."""

import jax
import jax.numpy as jnp
from annotated_steps import BATCH, DOWN, LAYERS, UP, WIDTH, squares
from audit_steps import Step, descended, described, mesh_of, step
from expected_messages import Messages

SEQUENCE, HEADS, SIZE = 32, 8, 8
TURNS = 4  # microbatches of a pipeline, or of an accumulated gradient


def specs(tree):
    return jax.tree.map(lambda each: each.sharding.spec, tree)


def mapped(mesh, body, arguments, results, messages):
    function = jax.shard_map(body, mesh=mesh, in_specs=specs(arguments), out_specs=results, check_vma=False)
    return Step(function, arguments, None, messages)


def weights(mesh, up=(), down=()):
    return {"up": described(mesh, UP, *up), "down": described(mesh, DOWN, *down)}


def perceptron(h, w):
    return jax.nn.relu(h @ w["up"]) @ w["down"]


@step
def accumulated_gradients():
    """Microbatches are a loop without messages; the sum follows it."""
    mesh = mesh_of(data=8)
    w, x = weights(mesh), described(mesh, (TURNS, BATCH, WIDTH), None, "data")

    def body(w, x, y):
        def turn(total, rows):
            gradients = jax.grad(lambda w: squares(perceptron(rows[0], w), rows[1]))(w)
            return jax.tree.map(jnp.add, total, gradients), None

        total, _ = jax.lax.scan(turn, jax.tree.map(jnp.zeros_like, w), (x, y))
        return descended(w, jax.tree.map(lambda each: jax.lax.psum(each, "data"), total))

    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.reduce("data", shape)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def mapped_tensor_parallel():
    """Megatron's f and g: a sum after the layer forward, a sum before it backward."""
    mesh = mesh_of(data=2, tensor=4)
    w = [weights(mesh, (None, "tensor"), ("tensor",)) for _ in range(LAYERS)]
    x = described(mesh, (BATCH, WIDTH), "data")

    @jax.custom_vjp
    def copied(h):
        return h

    copied.defvjp(lambda h: (h, None), lambda _, gradient: (jax.lax.psum(gradient, "tensor"),))

    @jax.custom_vjp
    def summed(h):
        return jax.lax.psum(h, "tensor")

    summed.defvjp(lambda h: (jax.lax.psum(h, "tensor"), None), lambda _, gradient: (gradient,))

    def loss(w, x, y):
        for one in w:
            x = x + summed(perceptron(copied(x), one))
        return squares(x, y)

    def body(w, x, y):
        gradients = jax.grad(loss)(w, x, y)
        return descended(w, jax.tree.map(lambda each: jax.lax.pmean(each, "data"), gradients))

    messages = Messages(mesh.shape)
    messages.reduce("tensor", x.shape, ("data",), times=LAYERS + LAYERS - 1)  # the input has no gradient
    for shape, spec in ((UP, (None, "tensor")), (DOWN, ("tensor",))):
        messages.reduce("data", shape, spec, times=LAYERS)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def mapped_sequence_parallel():
    """The rows are gathered before the sharded matrices and scattered after them; backward the other way round."""
    mesh = mesh_of(tensor=8)
    w = [weights(mesh, (None, "tensor"), ("tensor",)) for _ in range(LAYERS)]
    x = described(mesh, (BATCH, WIDTH), "tensor")

    def loss(w, x, y):
        for one in w:
            rows = jax.lax.all_gather(x, "tensor", axis=0, tiled=True)
            x = x + jax.lax.psum_scatter(perceptron(rows, one), "tensor", scatter_dimension=0, tiled=True)
        return squares(x, y)

    def body(w, x, y):
        return descended(w, jax.grad(loss)(w, x, y))

    messages = Messages(mesh.shape)
    messages.gather("tensor", x.shape, ("tensor",), times=LAYERS + LAYERS)
    messages.scatter("tensor", x.shape, ("tensor",), times=LAYERS + LAYERS - 1)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def mapped_fully_sharded():
    """Each turn of the scan gathers its weights; recomputation gathers them again; gradients are scattered."""
    mesh = mesh_of(data=8)
    w = {"up": described(mesh, (LAYERS, *UP), None, "data"), "down": described(mesh, (LAYERS, *DOWN), None, "data")}
    x = described(mesh, (BATCH, WIDTH), "data")

    @jax.checkpoint
    def layer(h, one):
        whole = jax.tree.map(lambda each: jax.lax.all_gather(each, "data", axis=0, tiled=True), one)
        return perceptron(h, whole), None

    def body(w, x, y):
        return descended(w, jax.grad(lambda w: squares(jax.lax.scan(layer, x, w)[0], y))(w))

    messages = Messages(mesh.shape)
    for shape in (UP, DOWN):
        messages.gather("data", shape, ("data",), runs=LAYERS, times=2)
        messages.scatter("data", shape, ("data",), runs=LAYERS)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def exchanged_heads():
    """Ulysses: from a sharded sequence to sharded heads and back, for q, k, v and the result, forward and backward."""
    mesh = mesh_of(sequence=8)
    x = described(mesh, (2, SEQUENCE, HEADS, SIZE), None, "sequence")
    w = described(mesh, (3, SIZE, SIZE))

    def loss(w, x, y):
        q, k, v = (jax.lax.all_to_all(x @ w[i], "sequence", split_axis=2, concat_axis=1, tiled=True) for i in range(3))
        mixed = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", q, k)), v)
        return squares(jax.lax.all_to_all(mixed, "sequence", split_axis=1, concat_axis=2, tiled=True), y)

    def body(w, x, y):
        return descended(w, jax.lax.pmean(jax.grad(loss)(w, x, y), "sequence"))

    messages = Messages(mesh.shape)
    messages.exchange("sequence", x.shape, (None, "sequence"), times=2 * 4)
    messages.reduce("sequence", w.shape)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def ring_attention():
    """Keys and values go round the ring, one turn less than there are devices; their gradients go back."""
    mesh = mesh_of(ring=8)
    x = described(mesh, (SEQUENCE, WIDTH), "ring")
    w = described(mesh, (3, WIDTH, WIDTH))
    right = [(i, (i + 1) % 8) for i in range(8)]

    def loss(w, x, y):
        q, k, v = (x @ w[i] for i in range(3))

        def turn(carry, _):
            k, v, above, below = carry
            k, v = (jax.lax.ppermute(each, "ring", right) for each in (k, v))
            weights = jnp.exp(jnp.tanh(q @ k.T))
            return (k, v, above + weights @ v, below + weights.sum(-1, keepdims=True)), None

        weights = jnp.exp(jnp.tanh(q @ k.T))
        start = (k, v, weights @ v, weights.sum(-1, keepdims=True))
        (_, _, above, below), _ = jax.lax.scan(turn, start, length=7)
        return squares(above / below, y)

    def body(w, x, y):
        return descended(w, jax.lax.pmean(jax.grad(loss)(w, x, y), "ring"))

    messages = Messages(mesh.shape)
    messages.shift("ring", x.shape, ("ring",), runs=7, times=2 + 2)
    messages.reduce("ring", w.shape)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def gathered_context():
    """Context parallel: keys and values of all positions are gathered, their gradients scattered."""
    mesh = mesh_of(data=2, context=4)
    x = described(mesh, (2, SEQUENCE, WIDTH), "data", "context")
    w = described(mesh, (3, WIDTH, WIDTH))

    def loss(w, x, y):
        q, k, v = (x @ w[i] for i in range(3))
        k, v = (jax.lax.all_gather(each, "context", axis=1, tiled=True) for each in (k, v))
        return squares(jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v, y)

    def body(w, x, y):
        return descended(w, jax.lax.pmean(jax.grad(loss)(w, x, y), ("data", "context")))

    messages = Messages(mesh.shape)
    messages.gather("context", x.shape, ("data", "context"), times=2)
    messages.scatter("context", x.shape, ("data", "context"), times=2)
    messages.reduce(("data", "context"), w.shape)
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def mapped_experts():
    """Tokens go to the devices of their experts and back; the gradients take the way back."""
    mesh = mesh_of(expert=8)
    tokens = (8, 8, 4, WIDTH)  # device, expert, capacity
    x = described(mesh, tokens, "expert")
    w = {"up": described(mesh, (8, *UP), "expert"), "down": described(mesh, (8, *DOWN), "expert")}

    def loss(w, x, y):
        sent = jax.lax.all_to_all(x, "expert", split_axis=1, concat_axis=0, tiled=True)
        done = perceptron(sent, {name: each[0] for name, each in w.items()})
        return squares(jax.lax.all_to_all(done, "expert", split_axis=0, concat_axis=1, tiled=True), y)

    def body(w, x, y):
        return descended(w, jax.grad(loss)(w, x, y))

    messages = Messages(mesh.shape)
    messages.exchange("expert", tokens, ("expert",), times=3)  # the tokens have no gradient
    return mapped(mesh, body, (w, x, x), specs(w), messages)


@step
def pipelined():
    """One stage for each device of the axis "stage"; microbatches enter at the first and leave the last."""
    mesh, stages = mesh_of(data=2, stage=4), 4
    w = {"up": described(mesh, (stages, *UP), "stage"), "down": described(mesh, (stages, *DOWN), "stage")}
    x = described(mesh, (TURNS, 8, WIDTH), None, "data")
    following = [(i, i + 1) for i in range(stages - 1)]

    def loss(w, x, y):
        stage = jax.lax.axis_index("stage")
        one = {name: each[0] for name, each in w.items()}

        def turn(carry, i):
            entering = jnp.where(stage == 0, x[jnp.minimum(i, TURNS - 1)], carry)
            done = perceptron(entering, one)
            return jax.lax.ppermute(done, "stage", following), done

        _, done = jax.lax.scan(turn, jnp.zeros(x.shape[1:], x.dtype), jnp.arange(TURNS + stages - 1))
        return jnp.where(stage == stages - 1, squares(done[stages - 1 :], y), 0.0)

    def body(w, x, y):
        return descended(w, jax.lax.pmean(jax.grad(loss)(w, x, y), "data"))

    messages = Messages(mesh.shape)
    messages.shift("stage", x.shape[1:], ("data",), runs=TURNS + stages - 1, times=2)  # activations, gradients
    for shape in (UP, DOWN):
        messages.reduce("data", (stages, *shape), ("stage",))
    return mapped(mesh, body, (w, x, x), specs(w), messages)
