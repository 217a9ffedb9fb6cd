# SPDX-License-Identifier: Apache-2.0
"""Steps that reduce dimensions."""

import numpy as np

from soak.checking import TOLERANCE, ambiguous
from soak.kinds import Kind
from soak.kinds.elementwise import by_numpy, computed, usable
from soak.kinds.placing import DELETED
from soak.model import Outcome, UnusableError, Value, entry_axes

ORDERED = ("max", "min", "any", "all", "argmax", "argmin", "count_nonzero")
ADDED = ("sum", "mean", "prod", "cumsum", "std", "var", "linalg.norm")


class Reduce(Kind):
    name = "reduce"
    weight = 6

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(10), where=usable)
        if source is None:
            return None
        rank = state.array(source).host.ndim
        axes = dice.sample(range(rank), dice.randint(0, rank))
        axis = dice.choice((None, tuple(axes), axes[0] if axes else None, -1, rank if dice.one_in(10) else 0))
        function = dice.choice(ORDERED + ADDED)
        if function.startswith(("arg", "cum")) and isinstance(axis, tuple):
            axis = axis[0] if axis else None
        step = {"out": dice.name("v"), "in": source, "function": function, "axis": axis}
        return step | ({"keepdims": True} if dice.one_in(4) and not function.startswith("cum") else {})

    def lines(self, step, library):
        axis = tuple(step["axis"]) if isinstance(step["axis"], list) else step["axis"]
        more = ", keepdims=True" if step.get("keepdims") else ""
        return [f"{step['out']} = np.{step['function']}({step['in']}, axis={axis}{more})"]

    def expect(self, step, state):
        value, name = state.array(step["in"]), step["function"]
        if value.dead:  # axes that do not fit and a type without spread are errors too: any may be reported
            return Outcome(error=(*DELETED, "AxisError", "ValueError", "TypeError"), jax=False)
        options = {"axis": tuple(step["axis"]) if isinstance(step["axis"], list) else step["axis"]}
        if step.get("keepdims"):
            options["keepdims"] = True
        function = np.linalg.norm if name == "linalg.norm" else getattr(np, name)
        result, error = by_numpy(lambda: function(value.host, **options))
        if error:
            # What NumPy tells of types that are not its own is not a promise.
            return Outcome(error=error if value.host.dtype.isbuiltin == 1 else (*error, "TypeError"), jax=False)
        slack = ambiguous(result, name in ("max", "min"))
        if name in ADDED and result.dtype.kind not in "biu" and not (name == "sum" and value.tame and wide(result)):
            slack = tolerated(value.host, result, name)
        place = value.place
        if name == "cumsum" and "mesh" in place:
            place = cumsum_place(state, value, options["axis"])
            if place == "error":
                return Outcome(error=("ShardingTypeError",), jax=False)
        elif "mesh" in place:
            place = reduced(place, value.host.ndim, options["axis"], step.get("keepdims"))
        jax = computed(value) and name not in ("linalg.norm", "mean", "std", "var", "count_nonzero") and not slack
        jax = jax and value.tame and value.host.dtype.name in ("float32", "float64")
        made = Value(result, place, value.committed, slack, in_jax=jax)
        return Outcome(values={step["out"]: made}, jax=jax, jax_places=False, computed=True)


def wide(result):
    return result.dtype.itemsize >= 4


def tolerated(host, result, name):
    """An absolute bound of roundings; a program whose numbers overflow tells nothing."""
    unit = TOLERANCE.get(result.dtype.name)
    with np.errstate(all="ignore"):
        size = np.abs(host.astype(np.complex128))
        size = size * size if name in ("var", "std", "linalg.norm") else size
        scale = float(np.prod(np.maximum(size, 1))) if name == "prod" else float(np.sum(size))
        if unit is None or not np.isfinite(scale) or scale > float(np.finfo(np.float16).max):
            raise UnusableError("numbers too big to be compared")
        # The root of a sum of squares near 0 has half the digits.
        return (unit * (scale + 1)) ** (0.5 if name == "std" else 1)


def reduced(place, rank, axis, keepdims):
    gone = (
        range(rank)
        if axis is None or not rank
        else [each % rank for each in (axis if isinstance(axis, tuple) else (axis,))]
    )
    spec = [list(entry_axes(entry)) for entry in place["spec"]]
    spec += [[]] * (rank - len(spec))
    kept = [[] if d in gone else entry for d, entry in enumerate(spec) if keepdims or d not in gone]
    return place | {"spec": kept}


def cumsum_place(state, value, axis):
    if axis is not None or value.host.ndim == 1:
        return value.place
    cut = [d for d, entry in enumerate(value.place["spec"]) if parts(state, value.place, entry) > 1]
    if not cut:
        return None
    if cut != [0]:
        return "error"
    # Short blocks stay where they are if the whole ones are as long as those of the flat array.
    rows, size, count = value.host.shape[0], value.host.size, parts(state, value.place, value.place["spec"][0])
    return None if -(-rows // count) * (size // max(rows, 1)) == -(-size // count) else "error"


def parts(state, place, entry):
    sizes = state.grid(place["mesh"]).sizes
    return int(np.prod([sizes[axis] for axis in entry_axes(entry)]))
