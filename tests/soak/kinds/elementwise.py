# SPDX-License-Identifier: Apache-2.0
"""Steps that compute element by element."""

import warnings

import numpy as np

from soak.checking import TOLERANCE, ambiguous
from soak.kinds import Kind
from soak.kinds.placing import DELETED
from soak.model import Outcome, Value, entry_axes

EXACT_UNARY = ("negative", "abs", "positive", "square", "isfinite", "isnan", "logical_not", "sign", "signbit", "conj")
NEAR_UNARY = ("sqrt", "exp", "tanh", "sin", "log1p")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "logical_and", "not_equal", "greater")


def by_numpy(call):
    """NumPy's answer, or the names of its error's built-in classes."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return np.asarray(call()), ()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        return None, (next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"),)


def computed(value):
    """Whether JAX computes with it as NumPy does; NumPy's own answers for tiny types are not compared."""
    return value.in_jax and value.tame and 0 not in value.host.shape and not (value.place and value.place.get("kind"))


def usable(value):
    return not value.slack and value.place is not None and not value.place.get("kind")


class Unary(Kind):
    name = "unary"
    weight = 6

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(10), where=usable)
        if source is None:
            return None
        function = dice.choice(EXACT_UNARY if dice.one_in(2) else NEAR_UNARY)
        return {"out": dice.name("v"), "in": source, "function": function}

    def lines(self, step, library):
        return [f"{step['out']} = np.{step['function']}({step['in']})"]

    def expect(self, step, state):
        value = state.array(step["in"])
        result, error = by_numpy(lambda: getattr(np, step["function"])(value.host))
        if value.dead:  # what else is wrong may be reported first
            return Outcome(error=(*DELETED, *error), jax=False)
        if error:
            return Outcome(error=error, jax=False)
        # JAX has float32 for integers where NumPy has float64, and no such function of tiny types.
        jax = computed(value) and value.host.dtype.name in ("float32", "float64") and step["function"] != "sign"
        near = step["function"] in NEAR_UNARY
        slack = TOLERANCE.get(result.dtype.name, 0.0) if near else ambiguous(result)
        made = Value(result, value.place, value.committed, slack, in_jax=jax)
        return Outcome(values={step["out"]: made}, jax=jax, jax_places=False, computed=True)


class Binary(Kind):
    name = "binary"
    weight = 6

    def draw(self, dice, state):
        one = dice.array(state, dead=dice.one_in(10), where=usable)
        if one is None:
            return None
        shape, place = state.array(one).host.shape, state.array(one).place

        def fits(value):
            if not usable(value) or value.host.dtype != state.array(one).host.dtype:
                return False
            try:
                np.broadcast_shapes(value.host.shape, shape)
            except ValueError:
                return dice.one_in(10)
            return same_devices(value.place, place)

        two = dice.array(state, where=fits)
        if two is None or dice.one_in(4):
            two = dice.choice((2, 0.5, True, -1))
        return {"out": dice.name("v"), "in": one, "other": two, "function": dice.choice(BINARY)}

    def lines(self, step, library):
        return [f"{step['out']} = np.{step['function']}({step['in']}, {step['other']})"]

    def expect(self, step, state):
        one = state.array(step["in"])
        two = state.array(step["other"]) if isinstance(step["other"], str) else None
        other = step["other"] if two is None else two.host
        result, error = by_numpy(lambda: getattr(np, step["function"])(one.host, other))
        if one.dead or (two is not None and two.dead):  # what else is wrong may be reported first
            return Outcome(error=(*DELETED, *error), jax=False)
        if error:
            return Outcome(error=error, jax=False)
        place = one.place if two is None else joined(state, one, two, result.ndim)
        if place == "error":
            return Outcome(error=("ShardingTypeError",), jax=False)
        jax = computed(one) and (two is None or computed(two)) and place is not None
        jax = jax and one.host.dtype.name in ("float32", "float64", "complex64", "complex128")
        slack = ambiguous(result, step["function"] in ("maximum", "minimum"))
        known = [each.committed for each in (one, two) if each is not None]
        committed = True if True in known else None if None in known else False
        made = Value(result, place, committed if place else None, slack, in_jax=jax)
        return Outcome(values={step["out"]: made}, jax=jax, jax_places=False, computed=True)


def same_devices(one, two):
    """The same mesh or the same device, so that the rules say where the result lies."""
    if one is None or two is None:
        return False
    if "device" in one or "device" in two:
        return one.get("device") == two.get("device") and "mesh" not in one and "mesh" not in two
    return one["mesh"] == two["mesh"] and not one.get("uneven") and not two.get("uneven")


def joined(state, one, two, rank):
    """Where the result of two operands on one mesh lies; "error" for Explicit axes; None where it is left open."""
    if not same_devices(one.place, two.place):
        return None
    if "device" in one.place:
        return {"device": one.place["device"]}
    specs, sizes = [], state.grid(one.place["mesh"]).sizes
    for value in (one, two):
        spec = [entry_axes(entry) for entry in value.place["spec"]]
        spec += [()] * (value.host.ndim - len(spec))
        # Axes of size 1 cut nothing here (JAX compares them too; tests/oracle/test_deviations.py).
        spec = [tuple(axis for axis in entry if sizes[axis] > 1) for entry in spec]
        # A dimension of size 1 that is stretched is whole, however it was cut.
        spec = [() if size == 1 else entry for entry, size in zip(spec, value.host.shape, strict=True)]
        specs.append([()] * (rank - value.host.ndim) + spec)
    result = []
    for left, right in zip(*specs, strict=True):
        if left and right and left != right:
            return "error" if state.grid(one.place["mesh"]).explicit else None
        result.append(left or right)
    used = [axis for entry in result for axis in entry]
    if len(set(used)) < len(used):
        return "error" if state.grid(one.place["mesh"]).explicit else None
    return {"mesh": one.place["mesh"], "spec": [list(entry) for entry in result]}
