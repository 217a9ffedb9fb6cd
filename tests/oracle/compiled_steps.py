# SPDX-License-Identifier: Apache-2.0
"""Training steps of small transformers in JAX, written so that they keep for the backward pass what plan_training says.

JAX keeps what a derivative names. Norms keep their inputs, the softmax its result, the gated activation its two inputs,
and the loss its logits, as fused kernels do; the derivatives that JAX finds itself keep more. Layers are a scan, so
that 32 layers take as long to compile as 2. The gradients' norm limits the update, so that all gradients are there at
once.
"""

import functools
import math

import jax
import numpy as np

jnp = jax.numpy
SPEC = jax.sharding.PartitionSpec


def keeps_inputs(function):
    """A function whose derivative keeps its arguments alone."""
    result = jax.custom_vjp(function)
    result.defvjp(
        lambda *values: (function(*values), values),
        lambda values, gradient: jax.vjp(function, *values)[1](gradient),
    )
    return result


@keeps_inputs
def norm(x, scale):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


@keeps_inputs
def gated(gate, up):
    return jax.nn.silu(gate) * up


@jax.custom_vjp
def masked_softmax(scores):
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1)


def _softmax_forward(scores):
    result = masked_softmax(scores)
    return result, result


def _softmax_backward(result, gradient):
    return ((gradient - jnp.sum(gradient * result, -1, keepdims=True)) * result,)


masked_softmax.defvjp(_softmax_forward, _softmax_backward)


@jax.custom_vjp
def loss_of(logits, labels):
    picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(jax.scipy.special.logsumexp(logits, -1) - picked)


def _loss_backward(values, gradient):
    logits, labels = values
    right = jnp.arange(logits.shape[-1]) == labels[..., None]
    return (jax.nn.softmax(logits, -1) - right) * (gradient / labels.size), None


loss_of.defvjp(lambda logits, labels: (loss_of(logits, labels), (logits, labels)), _loss_backward)


class Layout:
    """How a step is sharded over a mesh with the axes "data" and "tensor"; None for one device."""

    def __init__(self, mesh=None, zero=0, sequence_parallel=False):
        self.mesh, self.zero, self.sequence_parallel = mesh, zero, sequence_parallel

    def sharding(self, *axes):
        return None if self.mesh is None else jax.sharding.NamedSharding(self.mesh, SPEC(*axes))

    def constrain(self, x, *axes):
        return x if self.mesh is None else jax.lax.with_sharding_constraint(x, self.sharding(*axes))

    def stream(self, x):
        """Activations between the sharded matrices: batch, sequence, embed."""
        return self.constrain(x, "data", "tensor" if self.sequence_parallel else None, None)


# Axes of each tensor: those that the tensor axis shards, and one that ZeRO shards.
AXES = {
    "embed": ("tensor", "data"), "head": ("data", "tensor"), "last": ("data",),
    "first_norm": (None, "data"), "second_norm": (None, "data"),
    "q": (None, "data", "tensor"), "k": (None, "data", "tensor"), "v": (None, "data", "tensor"),
    "out": (None, "tensor", "data"), "gate": (None, "data", "tensor"), "up": (None, "data", "tensor"),
    "down": (None, "tensor", "data"),
}  # fmt: skip


def tensors(shape):
    """Sizes of the parameters by name; those of layers are stacked."""
    h, m = shape.embed, shape.mlp
    queries, pairs = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = {
        "first_norm": (h,), "q": (h, queries), "k": (h, pairs), "v": (h, pairs), "out": (queries, h),
        "second_norm": (h,), "gate": (h, m), "up": (h, m), "down": (m, h),
    }  # fmt: skip
    stacked = {name: (shape.layers, *sizes) for name, sizes in layer.items()}
    return {"embed": (shape.vocab, h), "last": (h,), "head": (h, shape.vocab), **stacked}


def layer_of(shape, layout, x, w):
    batch, sequence, _ = x.shape
    heads, groups, size = shape.heads, shape.kv_heads, shape.head_dim

    def split(y, count):
        return layout.constrain(y.reshape(batch, sequence, count, size), "data", None, "tensor", None)

    y = layout.stream(norm(x, w["first_norm"]))
    q, k, v = split(y @ w["q"], heads), split(y @ w["k"], groups), split(y @ w["v"], groups)
    q = q.reshape(batch, sequence, groups, heads // groups, size)
    scores = masked_softmax(jnp.einsum("bsgnd,btgd->bgnst", q, k) * size**-0.5)
    mixed = jnp.einsum("bgnst,btgd->bsgnd", scores, v).reshape(batch, sequence, heads * size)
    x = layout.stream(x + layout.stream(mixed @ w["out"]))
    y = layout.stream(norm(x, w["second_norm"]))
    middle = gated(y @ w["gate"], y @ w["up"])
    return layout.stream(x + layout.stream(middle @ w["down"]))


def step(shape, layout, recompute, state, tokens, labels):
    """AdamW with the gradients' norm limited to 1; `state` is the parameters and float32 copies of the moments."""

    def loss(w):
        x = layout.stream(w["embed"][tokens])
        layers = {name: w[name] for name in w if name not in ("embed", "last", "head")}
        body = functools.partial(layer_of, shape, layout)
        body = jax.checkpoint(body) if recompute else body
        x, _ = jax.lax.scan(lambda x, one: (body(x, one), None), x, layers)
        logits = norm(x, w["last"]) @ w["head"]
        return loss_of(layout.constrain(logits.astype(jnp.float32), "data", None, "tensor"), labels)

    parameters, *moments = state
    gradients = jax.grad(loss)(parameters)
    shards = {name: state_axes(layout, name, 2) for name in gradients}
    gradients = {name: layout.constrain(value, *shards[name]) for name, value in gradients.items()}
    squares = sum(jnp.sum(jnp.square(value.astype(jnp.float32))) for value in gradients.values())
    limit = jnp.minimum(1.0, jax.lax.rsqrt(squares))

    def updated(value, first, second, gradient):
        gradient = gradient.astype(jnp.float32) * limit
        first, second = 0.9 * first + 0.1 * gradient, 0.95 * second + 0.05 * gradient**2
        return (value - 1e-3 * first / (jnp.sqrt(second) + 1e-8)).astype(value.dtype), first, second

    done = {name: updated(parameters[name], *(each[name] for each in moments), gradients[name]) for name in parameters}
    return tuple({name: values[i] for name, values in done.items()} for i in range(3))


def state_axes(layout, name, least_zero):
    """Axes of a parameter, or of a part of its state that ZeRO shards from this stage on."""
    return tuple(axis if axis != "data" or layout.zero >= least_zero else None for axis in AXES[name])


def compiled(shape, *, batch, sequence, dtype="float32", layout=None, recompute=False):
    """The compiled step."""
    layout = layout or Layout()

    def described(dtype, least_zero):
        return {
            name: jax.ShapeDtypeStruct(sizes, dtype, sharding=layout.sharding(*state_axes(layout, name, least_zero)))
            for name, sizes in tensors(shape).items()
        }

    state = (described(dtype, 3), described(jnp.float32, 1), described(jnp.float32, 1))
    tokens = jax.ShapeDtypeStruct((batch, sequence), np.int32, sharding=layout.sharding("data", None))
    out = None if layout.mesh is None else jax.tree.map(lambda each: each.sharding, state)
    jitted = jax.jit(functools.partial(step, shape, layout, recompute), donate_argnums=0, out_shardings=out)
    # Code is not run: no time for making it fast. The scheduler keeps few buffers, as those of TPUs and GPUs do.
    options = {
        "xla_backend_optimization_level": 0, "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    }  # fmt: skip
    return jitted.lower(state, tokens, tokens).compile(compiler_options=options)


def parameters_of(shape):
    return sum(math.prod(sizes) for sizes in tensors(shape).values())
