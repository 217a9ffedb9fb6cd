# SPDX-License-Identifier: Apache-2.0
"""Programs with one mistake each. The comment `# here` is on the line that an audit must name."""

import inspect

import jax
import jax.numpy as jnp
from annotated_steps import BATCH, LAYERS, UP, WIDTH, perceptron, squares, stacked
from audit_steps import P, constrain, described, mesh_of

VOCAB = 4096


def line_of(function):
    """The line with the comment `# here`."""
    lines, first = inspect.getsourcelines(function)
    (line,) = [first + i for i, text in enumerate(lines) if text.rstrip().endswith("# here")]
    return line


def shard_mapped(body, mesh, arguments, results):
    specs = jax.tree.map(lambda each: each.sharding.spec, arguments)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=results, check_vma=False), arguments


# Found by program.findings().


def activations_turned():
    """The second annotation names the other axis and the other dimension."""
    mesh = mesh_of(data=2, tensor=4)
    x, w = described(mesh, (64, WIDTH), "data"), described(mesh, UP, None, "tensor")

    def step(x, w):
        h = constrain(mesh, x @ w, None, "tensor")
        return constrain(mesh, jnp.sin(h), "data")  # here

    return step, (x, w)


def resharded_in_every_layer():
    """A layer ends with other shardings than the next begins with."""
    mesh = mesh_of(data=8)
    x, w = described(mesh, (8, 16, 64), "data"), described(mesh, (LAYERS, 64, 64))

    def layer(h, w):
        h = constrain(mesh, h, None, "data")
        return constrain(mesh, jnp.sin(h @ w), "data"), None  # here

    return lambda x, w: jax.lax.scan(layer, x, w)[0], (x, w)


def weights_gathered_in_the_loop_over_microbatches():
    mesh = mesh_of(data=8)
    x, w = described(mesh, (4, BATCH, WIDTH), None, "data"), described(mesh, UP, "data")

    def step(x, w):
        def turn(total, rows):
            whole = jax.lax.all_gather(w, "data", tiled=True)  # here
            return total + jnp.sum(jax.nn.relu(rows @ whole)), None

        return jax.lax.scan(turn, jnp.float32(0), x)[0][None]

    return shard_mapped(step, mesh, (x, w), P("data"))


def constant_summed_in_a_loop():
    mesh = mesh_of(data=8)
    x, scale = described(mesh, (4, BATCH, WIDTH), None, "data"), described(mesh, (8, WIDTH), "data")

    def step(x, scale):
        def turn(total, rows):
            mean = jax.lax.pmean(scale, "data")  # here
            return total + jnp.sum(jnp.sin(rows * mean)), None

        return jax.lax.scan(turn, jnp.float32(0), x)[0][None]

    return shard_mapped(step, mesh, (x, scale), P("data"))


def gathered_twice():
    """Both uses need the same whole table."""
    mesh = mesh_of(data=8)
    table, tokens = described(mesh, (VOCAB, WIDTH), "data"), described(mesh, (8 * BATCH,), "data", dtype=jnp.int32)

    def step(table, tokens):
        x = jax.lax.all_gather(table, "data", axis=0, tiled=True)[tokens]
        return x @ jax.lax.all_gather(table, "data", axis=1).reshape(VOCAB, -1).T  # here

    return shard_mapped(step, mesh, (table, tokens), P("data"))


def logits_replicated():
    """The loss needs whole rows of logits, and takes all rows."""
    mesh = mesh_of(data=2, tensor=4)
    x, head = described(mesh, (512, WIDTH), "data"), described(mesh, (WIDTH, VOCAB), None, "tensor")

    def step(x, head):
        logits = constrain(mesh, x @ head, "data", "tensor")
        return jnp.mean(jax.scipy.special.logsumexp(constrain(mesh, logits * 2, None, None), -1))  # here

    return step, (x, head)


def stack_gathered_before_the_scan():
    """The weights of all layers are gathered at once."""
    mesh = mesh_of(data=8)
    x, w = described(mesh, (BATCH, 512), "data"), described(mesh, (LAYERS, 512, 512), None, "data")

    def step(x, w):
        w = constrain(mesh, w * 1.5, None, None, None)  # here
        return jax.lax.scan(lambda h, one: (constrain(mesh, jax.nn.relu(h @ one), "data"), None), x, w)[0]

    return step, (x, w)


def axis_of_size_1():
    mesh = mesh_of(data=8, tensor=1)
    x = described(mesh, (64, WIDTH), "data", "tensor")

    def step(x):
        return jax.lax.psum(jnp.sin(x), "tensor")  # here

    return shard_mapped(step, mesh, (x,), P("data", "tensor"))


# Found by assertions.


def activations_without_annotation():
    """FSDP, whose batch shards over the axis of the weights: the partitioner may choose either."""
    mesh = mesh_of(data=8)
    x, w = described(mesh, (BATCH, WIDTH), "data"), described(mesh, UP, None, "data")

    def step(x, w):
        return jnp.mean(jnp.sin(x @ w))  # here

    return step, (x, w)


def wrong_axis():
    """The batch of the hidden layer is sharded over the axis of the weights."""
    mesh = mesh_of(data=2, tensor=4)
    x, w = described(mesh, (BATCH, WIDTH), "data"), described(mesh, UP)

    def step(x, w):
        return jnp.sin(constrain(mesh, x @ w, "tensor"))  # here

    return step, (x, w)


def gradients_summed_for_each_microbatch():
    mesh = mesh_of(data=8)
    x, w = described(mesh, (4, BATCH, WIDTH), None, "data"), described(mesh, UP)

    def step(x, w):
        def turn(total, rows):
            gradient = jax.grad(lambda w: jnp.mean(jnp.sin(rows @ w)))(w)
            return total + jax.lax.pmean(gradient, "data"), None  # here

        return jax.lax.scan(turn, jnp.zeros(UP, w.dtype), x)[0]

    return shard_mapped(step, mesh, (x, w), P())


def summed_over_both_axes():
    mesh = mesh_of(data=2, tensor=4)
    x, w = described(mesh, (BATCH, WIDTH), "data"), described(mesh, UP)

    def step(x, w):
        gradient = jax.grad(lambda w: jnp.mean(jnp.sin(x @ w)))(w)
        return jax.lax.pmean(gradient, ("data", "tensor"))  # here

    return shard_mapped(step, mesh, (x, w), P())


def activations_sent_along_the_wrong_axis():
    """A pipeline whose stages are along "stage" sends to the neighbour along "data"."""
    mesh = mesh_of(data=4, stage=2)
    x, w = described(mesh, (BATCH, WIDTH), "data"), described(mesh, (2, WIDTH, WIDTH), "stage")

    def step(x, w):
        return jax.lax.ppermute(jax.nn.relu(x @ w[0]), "data", [(0, 1)])  # here

    return shard_mapped(step, mesh, (x, w), P(("stage", "data")))


def tokens_gathered_for_experts():
    mesh = mesh_of(expert=8)
    x, w = described(mesh, (8, 8, 4, WIDTH), "expert"), described(mesh, (8, *UP), "expert")

    def step(x, w):
        tokens = jax.lax.all_gather(x, "expert", tiled=True)  # here
        mine = jax.lax.dynamic_index_in_dim(tokens, jax.lax.axis_index("expert"), 1)
        return jax.nn.relu(mine @ w[0])

    return shard_mapped(step, mesh, (x, w), P("expert"))


def results_without_shardings():
    """New weights come back replicated: an annotation gathers them."""
    mesh = mesh_of(data=8)
    w, x = stacked(mesh, ("data", None), ("data", None)), described(mesh, (BATCH, WIDTH), "data")
    layer = perceptron(mesh, "data")

    def step(w, x):
        gradients = jax.grad(lambda w: squares(jax.lax.scan(lambda h, one: (layer(h, one), None), x, w)[0], x))(w)
        return jax.tree.map(lambda a, b: constrain(mesh, a - 0.1 * b), w, gradients)  # here

    return step, (w, x)


# Found by audit.shardings: trees and the path of the leaf, or the axis.

RULES = {"embed": "data", "mlp": "tensor", "vocab": "tensor"}


def by_rules(mesh, **names):
    """Arrays of 512 in each dimension, whose dimensions have logical names."""
    return {
        name: described(mesh, (512,) * len(axes), *(RULES.get(axis) for axis in axes)) for name, axes in names.items()
    }


def misspelt_names():
    """A name without a rule is not sharded."""
    mesh = mesh_of(data=2, tensor=4)
    tree = by_rules(mesh, up=("embed", "mlp"), down=("mpl", "embd"), head=("embed", "vocab"))
    return tree, "replicated", "down"


def batch_without_sharding():
    """The weights are sharded over the axis that the batch was meant to be sharded over, too."""
    mesh = mesh_of(data=2, tensor=4)
    tree = {"params": by_rules(mesh, up=("embed", "mlp")), "tokens": described(mesh, (1024, 512))}
    return tree, "replicated", "tokens"


def optimizer_state_without_shardings():
    mesh = mesh_of(data=2, tensor=4)
    parameters = by_rules(mesh, up=("embed", "mlp"), down=("mlp", "embed"))
    state = {"mu": parameters, "nu": {**parameters, "up": described(mesh, (512, 512))}}
    return {"params": parameters, "opt_state": state}, "optimizer state", "nu"


def vocabulary_that_does_not_divide():
    mesh = mesh_of(data=2, tensor=4)
    tree = by_rules(mesh, up=("embed", "mlp"))
    tree["head"] = jax.ShapeDtypeStruct((512, 50257), jnp.float32, sharding=tree["up"].sharding)
    return tree, "does not divide", "head"


def axis_that_no_rule_names():
    mesh = mesh_of(data=2, fsdp=2, tensor=2)
    return by_rules(mesh, up=("embed", "mlp"), down=("mlp", "embed")), "unused axis", "fsdp"
