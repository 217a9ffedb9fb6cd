# SPDX-License-Identifier: Apache-2.0
"""Bad input beside the tables of bad_input: the class, the words that help, nothing lost, and the next call works.

Each row is a call that must fail. The message must hold every word; afterwards placing and gathering must work and no
Array may be left over.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.errors import DuplicateSpecError, IndivisibleError
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P, make_mesh

X = np.arange(64, dtype=np.float32).reshape(8, 8)


class World:
    """What the rows need, made when they run."""

    def __init__(self):
        self.devices = ad.devices()
        self.grid = Mesh(np.array(self.devices).reshape(2, 4), ("x", "y"))

    def named(self, *entries, **options):
        return NamedSharding(self.grid, P(*entries), **options)

    def put(self, value, *entries):
        return ad.device_put(value, self.named(*entries))


@dataclass(frozen=True)
class Row:
    call: Any
    error: type[BaseException]
    words: tuple[str, ...]


class Liar:
    def __array__(self, dtype=None, copy=None):
        raise OSError("the disk is gone")


class NoRepr:
    def __repr__(self):
        raise RuntimeError("no text")


def endless():
    tree = [X]
    tree.append(tree)
    return tree


def deep(levels):
    tree = X
    for _ in range(levels):
        tree = [tree]
    return tree


BIG_ENDIAN = np.arange(4, dtype=">i4")
MASKED = np.ma.masked_array([1.0, 2.0], [False, True])

SPECS = {
    "dict as entry": Row(lambda w: P({"x": 1}), TypeError, ("PartitionSpec", "hashable")),
}

MESHES = {
    "None as name": Row(lambda w: Mesh(w.devices, (None,)), ValueError, ("Mesh", "None")),
    "text as devices": Row(lambda w: Mesh(["cpu:0"], "x"), TypeError, ("Mesh", "devices[0]", "str")),
    "None as device": Row(lambda w: Mesh([w.devices[0], None], "x"), TypeError, ("Mesh", "devices[1]", "NoneType")),
    "ragged devices": Row(
        lambda w: Mesh([[w.devices[0]], [w.devices[1], w.devices[2]]], "x"), (ValueError, TypeError), ()
    ),
    "too few axis types": Row(
        lambda w: Mesh(w.devices, "x", axis_types=(AxisType.Auto,) * 2), ValueError, ("axis_types", "1", "2")
    ),
    "text as axis type": Row(lambda w: Mesh(w.devices, "x", axis_types=("Atuo",)), TypeError, ("axis type", "'Atuo'")),
    "overflowing sizes": Row(lambda w: make_mesh((2**62, 4), ("x", "y")), ValueError, (str(2**62), "63 bits")),
    "bool size": Row(lambda w: make_mesh((True, 8), ("x", "y")), TypeError, ("make_mesh", "True")),
    "text as sizes": Row(lambda w: make_mesh("8", ("x",)), TypeError, ("make_mesh", "'8'")),
    "abstract overflow": Row(lambda w: AbstractMesh((2**40, 2**40), ("x", "y")), ValueError, ("AbstractMesh",)),
}

SHARDINGS = {
    "two unknown axes": Row(lambda w: w.named("m", "n"), ValueError, ("'m'", "'n'")),
    "near name": Row(lambda w: w.named("X"), ValueError, ("'X'", "'x'")),
    "axis twice in a tuple": Row(lambda w: w.named(("x", "x")), DuplicateSpecError, ("'x'",)),
    "rank too high in a map": Row(
        lambda w: w.named("x").devices_indices_map(()), ValueError, ("devices_indices_map", "()")
    ),
    "overflowing shape": Row(lambda w: w.named("x").shard_shape((2**62, 2**62)), ValueError, ("shard_shape",)),
}

PUTS = {
    "bytes": Row(lambda w: ad.device_put(b"text"), TypeError, ("device_put", "bytes")),
    "object": Row(lambda w: ad.device_put(object()), TypeError, ("device_put", "object")),
    "array of bytes": Row(lambda w: ad.device_put(np.array([b"a"])), TypeError, ("device_put", "|S1")),
    "structured": Row(lambda w: ad.device_put(np.zeros(2, [("a", "i4")])), TypeError, ("device_put", "a")),
    "void": Row(lambda w: ad.device_put(np.zeros(2, "V3")), TypeError, ("device_put", "V3")),
    "datetime": Row(lambda w: ad.device_put(np.zeros(2, "M8[s]")), TypeError, ("device_put", "datetime64")),
    "timedelta": Row(lambda w: ad.device_put(np.zeros(2, "m8[s]")), TypeError, ("device_put", "timedelta64")),
    "long double": Row(lambda w: ad.device_put(np.zeros(2, np.longdouble)), TypeError, ("device_put", "float64")),
    "complex long double": Row(lambda w: ad.device_put(np.zeros(2, np.clongdouble)), TypeError, ("complex128",)),
    "big endian": Row(lambda w: ad.device_put(BIG_ENDIAN), TypeError, ("device_put", ">i4", "big-endian", "astype")),
    "masked": Row(lambda w: ad.device_put(MASKED), ValueError, ("device_put", "masked", "filled")),
    "path in a dict": Row(lambda w: ad.device_put({"a": X, "b": [X, "c"]}), TypeError, ("['b'][1]", "str")),
    "path in a list": Row(lambda w: ad.device_put([X, (X, BIG_ENDIAN)]), TypeError, ("[1][1]", ">i4")),
    "path of a masked leaf": Row(lambda w: ad.device_put({"k": MASKED}), ValueError, ("['k']", "masked")),
    "path of an indivisible leaf": Row(
        lambda w: ad.device_put({"k": [X, X[:7]]}, w.named("x")), IndivisibleError, ("['k'][1]", "7")
    ),
    "error of __array__": Row(lambda w: ad.device_put(Liar()), OSError, ("the disk is gone",)),
    "tree within itself": Row(lambda w: ad.device_put(endless()), (ValueError, RecursionError), ()),
    "unconstrained": Row(lambda w: w.put(X, P.UNCONSTRAINED), ValueError, ("UNCONSTRAINED",)),
    "prefix with another key": Row(
        lambda w: ad.device_put({"a": X}, {"b": w.devices[0]}), ValueError, ("device_put", "prefix")
    ),
    "prefix of another type": Row(lambda w: ad.device_put([X], (w.devices[0],)), ValueError, ("prefix",)),
    "prefix deeper than x": Row(lambda w: ad.device_put([X], [[w.devices[0]]]), ValueError, ("prefix",)),
    "prefix with a number": Row(lambda w: ad.device_put([X, X], [w.devices[0], 3]), ValueError, ("device", "3")),
    "donate is text": Row(lambda w: ad.device_put([X], donate="yes"), (TypeError, ValueError), ("donate",)),
    "positional donate": Row(lambda w: ad.device_put(X, None, None, True), TypeError, ()),
}

WORLDS = {
    "option too late": Row(
        lambda w: ad.config.update("jax_num_cpu_devices", 3), RuntimeError, ("jax_num_cpu_devices",)
    ),
}

ARRAYS = {
    "shapes to be joined": Row(
        lambda w: np.concatenate([w.put(X, "x"), X[:, 1:], X[0]]), ValueError, ("operand 1", "operand 2", "(8, 7)")
    ),
    "sections that do not divide": Row(lambda w: np.split(w.put(X, "x"), 3), ValueError, ("3", "array_split")),
    "NumPy function": Row(lambda w: np.put(w.put(X, "x"), 0, 1.0), TypeError, ("put", "np.array")),
}

TABLE = {
    f"{group}: {name}": row
    for group, rows in {
        "spec": SPECS,
        "mesh": MESHES,
        "sharding": SHARDINGS,
        "device_put": PUTS,
        "world": WORLDS,
        "array": ARRAYS,
    }.items()
    for name, row in rows.items()
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.usefixtures("settled_module", "nothing_left")
def test_bad_input(name):
    row = TABLE[name]
    world = World()
    in_use = [device.memory_stats()["bytes_in_use"] for device in world.devices]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(row.error) as raised:
            row.call(world)
    text = str(raised.value)
    for word in row.words:
        assert word in text, f"{word!r} is not in {text!r}"
    raised.value.__traceback__ = None
    del raised
    assert ad.devices() == world.devices
    for _ in range(2):
        array = world.put(X, "x", "y")
        assert np.array_equal(np.asarray(array), X)
        array.delete()
    assert [device.memory_stats()["bytes_in_use"] for device in world.devices] == in_use


def test_a_bad_leaf_loses_none_of_the_caller_s_arrays():
    source = ad.device_put(X)
    tree = {"a": source, "b": BIG_ENDIAN}
    with pytest.raises(TypeError):
        ad.device_put(tree, ad.devices()[1], donate=True)
    assert not source.is_deleted()
    assert np.array_equal(np.asarray(source), X)
    assert BIG_ENDIAN.dtype == np.dtype(">i4")


def test_the_repair_for_byte_order_works():
    value = ad.device_put(BIG_ENDIAN.astype(BIG_ENDIAN.dtype.newbyteorder("=")))
    assert value.tolist() == BIG_ENDIAN.tolist()


def test_dtypes_of_other_packages_are_refused_by_name():
    class Impostor:
        dtype = "bfloat16"

    with pytest.raises(TypeError, match="Impostor"):
        ad.device_put(Impostor())
    assert ad.device_put(np.ones(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_good_arrays_with_odd_flags_are_placed():
    for value in (X[::-1], X.T, X[::2, 1::3], np.broadcast_to(X[0], (8, 8)), X[:, :0]):
        frozen = value.copy()
        frozen.flags.writeable = False
        assert np.array_equal(np.asarray(ad.device_put(value)), value)
        assert np.array_equal(np.asarray(ad.device_put(frozen)), value)
