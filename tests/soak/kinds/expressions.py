# SPDX-License-Identifier: Apache-2.0
"""Steps that work out an expression, as NumPy does, and let go of the result: shapes, parts, order, products."""

import numpy as np

from soak.checking import TOLERANCE, ambiguous
from soak.kinds import Kind
from soak.kinds.elementwise import by_numpy, computed, usable
from soak.kinds.placing import DELETED
from soak.model import Outcome, UnusableError

# Values come back as they are.
MOVES = (
    "np.reshape({x}, -1)",
    "np.reshape({x}, {x}.shape[::-1])",
    "np.reshape({x}, (1, *{x}.shape))",
    "{x}.T",
    "np.swapaxes({x}, 0, -1)",
    "np.moveaxis({x}, 0, -1)",
    "np.expand_dims({x}, 0)",
    "np.squeeze({x})",
    "np.flip({x})",
    "np.flip({x}, axis=0)",
    "np.rot90({x})",
    "np.roll({x}, 1, axis=0)",
    "np.roll({x}, -3, axis=-1)",
    "np.tile({x}, 2)",
    "np.pad({x}, 1)",
    "np.triu({x})",
    "np.tril({x}, 1)",
    "np.diagonal({x})",
    "np.broadcast_to({x}, (2, *{x}.shape))",
    "np.concatenate([{x}, {x}])",
    "np.concatenate([{x}, {x}], axis=-1)",
    "np.stack([{x}, {x}], axis=-1)",
    "np.split({x}, 2)[1]",
    "np.array_split({x}, 3)[0]",
    "np.unstack({x})[0]",
    "np.repeat({x}, 2, axis=0)",
    "np.take({x}, onp.array([0, -1]), axis=-1)",
    "np.where({x} == {x}, {x}, {x})",
    "np.sort({x})",
    "np.sort({x}, axis=0)",
    "np.argsort({x}, axis=0, kind='stable')",
    "np.zeros_like({x})",
    "np.clip({x}, 0, 2)",
    "np.array_equal({x}, {x})",
    "np.equal({x}, {x}).astype('int8')",
    "np.count_nonzero({x}, axis=0)",
    "{x}[0]",
    "{x}[-1]",
    "{x}[1]",
    "{x}[..., 0]",
    "{x}[::2]",
    "{x}[::-1]",
    "{x}[1:, ..., None]",
    "{x}[:, 1:]",
    "{x}[None]",
    "{x}[()]",
    "{x}[onp.array([0, 0, -1])]",
    "{x}[onp.arange(len({x})) % 2 == 0]",
    "{x}[..., onp.array([[0], [0]])]",
    "{x}.astype('float32')",
    "{x}.copy()",
)
# Tame numbers give exact sums, whatever their order.
SUMS = (
    "{x} @ {x}.T",
    "np.matmul({x}.T, {x})",
    "np.einsum('...i,...i->...', {x}, {x})",
    "np.einsum('ij,kj->ik', {x}, {x})",
    "np.tensordot({x}, {x}, axes={x}.ndim)",
    "np.vdot({x}, {x})",
    "np.trace({x})",
    "np.outer({x}, {x}[:1])",
    "np.cumsum({x})",
    "np.diff({x}, axis=0)",
    "np.ptp({x}, axis=0)",
    "np.median({x})",
    "np.add.reduce({x}, axis=0)",
    "np.multiply.outer({x}, {x}[:1])",
)
# What JAX has other answers or names for: indices out of range, scalars, dtypes.
NOT_JAX = (
    "[0]",
    "[-1]",
    "[1]",
    "array",
    "count",
    "sort",
    "unstack",
    "diag",
    "median",
    "outer",
    "reduce",
    "astype",
    "take",
)


class Express(Kind):
    name = "expression"
    weight = 16

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(12), where=usable)
        return source and {"in": source, "text": dice.choice(MOVES + MOVES + SUMS)}

    def lines(self, step, library):
        return [f"result = {step['text'].format(x=step['in'])}"]

    def expect(self, step, state):
        value = state.array(step["in"])
        if not usable(value):
            raise UnusableError("a value that is not for computing")
        host = value.host
        sums = step["text"] in SUMS
        if sums and not (host.dtype.kind in "biu" or (value.tame and host.dtype.itemsize >= 4 and exact(host))):
            raise UnusableError("sums that are not exact")
        if host.dtype.name not in TOLERANCE and host.dtype.kind not in "biu":
            raise UnusableError("NumPy does not know it")
        if "clip" in step["text"] and host.dtype.isbuiltin != 1:
            raise UnusableError("NumPy's clip has no loop for it and answers in float32")
        result, error = by_numpy(lambda: eval(step["text"].format(x="x"), {"np": np, "onp": np, "x": host}))
        if host.ndim < 2 and step["text"].startswith(("np.triu", "np.tril")):
            error = ("ValueError",)  # as in JAX; NumPy repeats rows, or misses an argument
        if value.dead and any(each in step["text"] for each in ("_like", "squeeze")):
            raise UnusableError("it may ask for no value")
        if value.dead:  # what else is wrong may be reported first
            return Outcome(error=(*DELETED, *error, "ShardingTypeError"), jax=False)
        if result is not None and result.size > 1 << 14:
            raise UnusableError("too much")
        outcome = Outcome(jax=computed(value) and not error and "mesh" in value.place, jax_places=False)
        outcome.jax = outcome.jax and host.dtype.name in ("float32", "float64") and 0 not in host.shape
        outcome.jax = outcome.jax and not any(each in step["text"] for each in NOT_JAX)
        outcome.jax = outcome.jax and not state.grid(value.place["mesh"]).explicit
        if error:
            outcome.error = (*error, "ShardingTypeError")
            return outcome
        # Which of these need a whole dimension is in the guide; here it is enough that nothing else is raised.
        cut = "mesh" in value.place and state.grid(value.place["mesh"]).ids.size > 1
        slack = ambiguous(result, zeros=True)
        maybe = ["ShardingTypeError"] * cut + ["IndexError"] * (not result.size)  # NumPy looks at no index there
        outcome.dropped = ("result", result, slack, maybe)
        return outcome


def exact(host):
    return not host.size or bool(np.abs(np.nan_to_num(host)).max() <= 4.5)
