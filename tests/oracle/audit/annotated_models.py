# SPDX-License-Identifier: Apache-2.0
"""Right training steps with annotations: attention, experts, a sharded vocabulary, sharded sequences."""

import jax
import jax.numpy as jnp
from annotated_steps import (
    BATCH,
    DOWN,
    LAYERS,
    UP,
    WIDTH,
    descent,
    perceptron,
    scanned,
    squares,
    stacked,
)
from audit_steps import Step, constrain, described, mesh_of, shardings, step
from expected_messages import Messages

SEQUENCE, HEADS, SIZE, VOCAB, EXPERTS = 16, 4, 16, 256, 8


@step
def sequence_parallel():
    """The sequence is sharded between layers: gathered before each layer, summed and scattered after it."""
    mesh = mesh_of(data=2, tensor=4)
    stream = (BATCH // 4, SEQUENCE, WIDTH)
    one = {"up": described(mesh, UP, None, "tensor"), "down": described(mesh, DOWN, "tensor")}
    w = [{**one, "scale": described(mesh, (WIDTH,))} for _ in range(LAYERS)]

    def layer(h, w):
        h = constrain(mesh, h * w["scale"], "data", "tensor", None)
        middle = constrain(mesh, jax.nn.relu(constrain(mesh, h, "data", None, None) @ w["up"]), "data", None, "tensor")
        return constrain(mesh, middle @ w["down"], "data", "tensor", None)

    def loss(w, x, y):
        for one in w:
            x = layer(x, one)
        return squares(x, y)

    x = described(mesh, stream, "data", "tensor")
    messages = Messages(mesh.shape)
    messages.gather("tensor", stream, ("data", "tensor"), times=LAYERS)  # forward; the backward pass uses them again
    messages.scatter_on_cpu("tensor", stream, ("data", "tensor"), times=LAYERS)  # forward
    messages.gather("tensor", stream, ("data", "tensor"), times=LAYERS)  # of the gradients
    messages.scatter_on_cpu("tensor", stream, ("data", "tensor"), times=LAYERS)
    for shape, spec in ((UP, (None, "tensor")), (DOWN, ("tensor",))):
        messages.reduce("data", shape, spec, times=LAYERS)
    for axis in ("data", "tensor"):  # sums over two dimensions, sharded over one axis each: one sum for each axis
        messages.reduce(axis, (WIDTH,), times=LAYERS)
        messages.reduce(axis, ())
    return Step(descent(loss), (w, x, x), (shardings(w), None), messages)


@step
def attention():
    """Heads are sharded: each product over sharded heads is summed, one forward and three backward."""
    mesh = mesh_of(data=2, tensor=4)
    x = described(mesh, (8, SEQUENCE, WIDTH), "data")
    width = (WIDTH, HEADS, SIZE)
    w = {
        **{name: described(mesh, (LAYERS, *width), None, None, "tensor") for name in "qkv"},
        "out": described(mesh, (LAYERS, HEADS, SIZE, WIDTH), None, "tensor"),
    }

    def layer(h, w):
        q, k, v = (constrain(mesh, jnp.einsum("bsw,whd->bshd", h, w[name]), "data", None, "tensor") for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", q, k))
        mixed = jnp.einsum("bhst,bthd->bshd", weights, v)
        return constrain(mesh, h + jnp.einsum("bshd,hdw->bsw", mixed, w["out"]), "data")

    messages = Messages(mesh.shape)
    messages.reduce("tensor", x.shape, ("data",), runs=LAYERS, times=1 + 3)
    messages.reduce("data", width, (None, "tensor"), runs=LAYERS, times=3)
    messages.reduce("data", (HEADS, SIZE, WIDTH), ("tensor",), runs=LAYERS)
    messages.reduce("data", ())
    return Step(descent(scanned(layer)), (w, x, x), (shardings(w), None), messages)


@step
def sharded_vocabulary():
    """The logits stay sharded: the largest, the sum and the picked logit of each token are reduced."""
    mesh = mesh_of(data=2, tensor=4)
    x, labels = described(mesh, (BATCH, WIDTH), "data"), described(mesh, (BATCH,), "data", dtype=jnp.int32)
    head = described(mesh, (WIDTH, VOCAB), None, "tensor")

    def loss(head, x, labels):
        logits = constrain(mesh, x @ head, "data", "tensor")
        logits = logits - jax.lax.stop_gradient(jnp.max(logits, -1, keepdims=True))
        picked = jnp.sum(logits * (jnp.arange(VOCAB) == labels[:, None]), -1)
        return jnp.mean(jnp.log(jnp.sum(jnp.exp(logits), -1)) - picked)

    messages = Messages(mesh.shape)
    messages.reduce("tensor", (BATCH,), ("data",), times=3)
    messages.reduce("data", (WIDTH, VOCAB), (None, "tensor"))
    messages.reduce("data", ())
    return Step(descent(loss), (head, x, labels), (head.sharding, None), messages)


@step
def experts():
    """Tokens of a group go to the devices of their experts and back: two exchanges forward, two backward."""
    mesh = mesh_of(expert=8)
    groups, capacity = 8, 4
    x = described(mesh, (groups, 2 * capacity, WIDTH), "expert")
    route = described(mesh, (groups, 2 * capacity, EXPERTS, capacity), "expert")
    w = {"up": described(mesh, (EXPERTS, *UP), "expert"), "down": described(mesh, (EXPERTS, *DOWN), "expert")}

    def loss(w, x, y, route):
        sent = constrain(mesh, jnp.einsum("gsw,gsec->gecw", x, route), "expert")
        sent = constrain(mesh, sent, None, "expert")
        middle = jax.nn.relu(jnp.einsum("gecw,ewm->gecm", sent, w["up"]))
        back = constrain(mesh, jnp.einsum("gecm,emw->gecw", middle, w["down"]), None, "expert")
        back = constrain(mesh, back, "expert")
        return squares(jnp.einsum("gecw,gsec->gsw", back, route), y)

    def train(w, x, y, route):
        value, gradients = jax.value_and_grad(loss)(w, x, y, route)
        return jax.tree.map(lambda a, b: a - 0.1 * b, w, gradients), value

    messages = Messages(mesh.shape)
    messages.exchange("expert", (groups, EXPERTS, capacity, WIDTH), ("expert",), times=3)  # the tokens have no gradient
    messages.reduce("expert", ())
    return Step(train, (w, x, x, route), (shardings(w), None), messages)


@step
def bfloat16_weights():
    """The partitioner for CPUs sends sums of bfloat16 in float32."""
    mesh = mesh_of(data=8)
    w = {name: described(mesh, each.shape, dtype=jnp.bfloat16) for name, each in stacked(mesh).items()}
    x = described(mesh, (BATCH, WIDTH), "data", dtype=jnp.bfloat16)
    loss = scanned(perceptron(mesh, "data"))

    def train(w, x, y):
        gradients = jax.grad(loss)(w, x, y)
        return jax.tree.map(lambda a, b: a - jnp.bfloat16(0.1) * b, w, gradients)

    messages = Messages(mesh.shape)
    messages.reduce("data", UP, runs=LAYERS)
    messages.reduce("data", DOWN, runs=LAYERS)
    return Step(train, (w, x, x), shardings(w), messages)
