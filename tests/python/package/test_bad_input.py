# SPDX-License-Identifier: Apache-2.0
"""Bad input: the class, the words that help, nothing lost, and the next good call works.

Each row is a call that must fail. The message must hold every word; afterwards placing and gathering must work and no
Array may be left over.
"""

import operator
import warnings
from dataclasses import dataclass
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.errors import DuplicateSpecError, IndivisibleError
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh

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
    "set as entry": Row(lambda w: P({"x"}), TypeError, ("PartitionSpec", "hashable")),
    "dict as entry": Row(lambda w: P({"x": 1}), TypeError, ("PartitionSpec", "hashable")),
    "tuple in a tuple": Row(lambda w: P(("x", ("y",))), ValueError, ("PartitionSpec", "('y',)")),
    "list in a list": Row(lambda w: P([["x"]]), ValueError, ("PartitionSpec", "['x']")),
    "None in a tuple": Row(lambda w: P(("x", None)), ValueError, ("PartitionSpec", "None")),
    "keyword": Row(lambda w: P(spam=1), TypeError, ()),
}

MESHES = {
    "too few names": Row(
        lambda w: Mesh(np.array(w.devices).reshape(2, 4), ("x",)), ValueError, ("Mesh", "axis_names", "(2, 4)")
    ),
    "too many names": Row(lambda w: Mesh(w.devices, ("x", "y")), ValueError, ("Mesh", "axis_names", "(8,)")),
    "name twice": Row(lambda w: Mesh(np.array(w.devices).reshape(2, 4), ("x", "x")), ValueError, ("Mesh", "'x'")),
    "None as name": Row(lambda w: Mesh(w.devices, (None,)), ValueError, ("Mesh", "None")),
    "unhashable name": Row(lambda w: Mesh(w.devices, ([],)), TypeError, ("Mesh", "hashable")),
    "names are a number": Row(lambda w: Mesh(w.devices, 3), TypeError, ("Mesh", "axis_names", "3")),
    "device twice": Row(lambda w: Mesh([w.devices[0], w.devices[1], w.devices[0]], "x"), ValueError, ("Mesh", "cpu:0")),
    "numbers as devices": Row(lambda w: Mesh([0, 1], "x"), TypeError, ("Mesh", "devices[0]", "int", "devices()")),
    "text as devices": Row(lambda w: Mesh(["cpu:0"], "x"), TypeError, ("Mesh", "devices[0]", "str")),
    "None as device": Row(lambda w: Mesh([w.devices[0], None], "x"), TypeError, ("Mesh", "devices[1]", "NoneType")),
    "ragged devices": Row(
        lambda w: Mesh([[w.devices[0]], [w.devices[1], w.devices[2]]], "x"), (ValueError, TypeError), ()
    ),
    "too few axis types": Row(
        lambda w: Mesh(w.devices, "x", axis_types=(AxisType.Auto,) * 2), ValueError, ("axis_types", "1", "2")
    ),
    "text as axis type": Row(lambda w: Mesh(w.devices, "x", axis_types=("Auto",)), TypeError, ("axis_types", "'Auto'")),
    "more than there are": Row(lambda w: make_mesh((3, 3), ("x", "y")), ValueError, ("make_mesh", "9", "8")),
    "more than given": Row(
        lambda w: make_mesh((4,), ("x",), devices=w.devices[:3]), ValueError, ("make_mesh", "4", "3")
    ),
    "negative size": Row(lambda w: make_mesh((2, -2), ("x", "y")), ValueError, ("'y'", "-2")),
    "size zero": Row(lambda w: make_mesh((0, 2), ("x", "y")), ValueError, ("'x'", "0")),
    "overflowing sizes": Row(lambda w: make_mesh((2**62, 4), ("x", "y")), ValueError, (str(2**62), "63 bits")),
    "size beyond 64 bits": Row(lambda w: make_mesh((2**70,), ("x",)), ValueError, ("make_mesh", "64 bits")),
    "float sizes": Row(lambda w: make_mesh((2.0, 4.0), ("x", "y")), ValueError, ("make_mesh", "axis_shapes[0]", "2.0")),
    "bool size": Row(lambda w: make_mesh((True, 8), ("x", "y")), TypeError, ("make_mesh", "True")),
    "text as sizes": Row(lambda w: make_mesh("8", ("x",)), TypeError, ("make_mesh", "'8'")),
    "no names": Row(lambda w: make_mesh((8,)), TypeError, ("make_mesh", "axis_names")),
    "shape twice": Row(
        lambda w: make_mesh((8,), ("x",), mesh_shape=(8,)), TypeError, ("make_mesh", "axis_shapes", "mesh_shape")
    ),
    "abstract size zero": Row(lambda w: AbstractMesh((0,), ("x",)), ValueError, ("AbstractMesh", "0")),
    "abstract negative": Row(lambda w: AbstractMesh((-4,), ("x",)), ValueError, ("AbstractMesh", "-4")),
    "abstract lengths": Row(lambda w: AbstractMesh((2, 4), ("x",)), ValueError, ("AbstractMesh", "2", "1")),
    "abstract name twice": Row(lambda w: AbstractMesh((2, 4), ("x", "x")), ValueError, ("AbstractMesh", "'x'")),
    "abstract overflow": Row(lambda w: AbstractMesh((2**40, 2**40), ("x", "y")), ValueError, ("AbstractMesh",)),
}

SHARDINGS = {
    "unknown axis": Row(lambda w: w.named("model"), ValueError, ("NamedSharding", "'model'", "'x'", "'y'")),
    "two unknown axes": Row(lambda w: w.named("m", "n"), ValueError, ("'m'", "'n'")),
    "near name": Row(lambda w: w.named("X"), ValueError, ("'X'", "'x'")),
    "axis twice": Row(lambda w: w.named("x", "x"), DuplicateSpecError, ("'x'", "P('x', 'x')")),
    "axis twice in a tuple": Row(lambda w: w.named(("x", "x")), DuplicateSpecError, ("'x'",)),
    "text as spec": Row(lambda w: NamedSharding(w.grid, "x"), TypeError, ("NamedSharding", "PartitionSpec", "'x'")),
    "tuple as spec": Row(lambda w: NamedSharding(w.grid, ("x",)), TypeError, ("NamedSharding", "PartitionSpec")),
    "None as spec": Row(lambda w: NamedSharding(w.grid, None), TypeError, ("PartitionSpec",)),
    "None as mesh": Row(lambda w: NamedSharding(None, P("x")), TypeError, ()),
    "devices as mesh": Row(lambda w: NamedSharding(w.devices, P("x")), TypeError, ()),
    "unknown memory kind": Row(
        lambda w: w.named("x", memory_kind="gpu"), ValueError, ("gpu", "device", "pinned_host", "unpinned_host")
    ),
    "memory kind a number": Row(lambda w: w.named("x", memory_kind=3), TypeError, ()),
    "with_memory_kind": Row(lambda w: w.named("x").with_memory_kind("gpu"), ValueError, ("gpu", "pinned_host")),
    "unknown unevenness": Row(lambda w: w.named("x", uneven="first-short"), ValueError, ("uneven", "last-short")),
    "single: number": Row(lambda w: SingleDeviceSharding(0), TypeError, ("SingleDeviceSharding", "int", "devices()")),
    "single: text": Row(lambda w: SingleDeviceSharding("cpu:0"), TypeError, ("SingleDeviceSharding", "'cpu:0'")),
    "rank too high": Row(
        lambda w: w.named("x", None, "y").shard_shape((8, 8)), ValueError, ("shard_shape", "(8, 8)", "3", "2")
    ),
    "rank too high in a map": Row(
        lambda w: w.named("x").devices_indices_map(()), ValueError, ("devices_indices_map", "()")
    ),
    "indivisible": Row(lambda w: w.named("x").shard_shape((7,)), IndivisibleError, ("shard_shape", "7", "2", "'x'")),
    "indivisible twice": Row(
        lambda w: w.named("x", "y").devices_indices_map((7, 9)), IndivisibleError, ("7", "9", "(7, 9)", "dimension 1")
    ),
    "negative size of shape": Row(lambda w: w.named("x").shard_shape((-8,)), ValueError, ("-8",)),
    "overflowing shape": Row(lambda w: w.named("x").shard_shape((2**62, 2**62)), ValueError, ("shard_shape",)),
    "shape beyond 64 bits": Row(lambda w: w.named("x").shard_shape((2**64,)), ValueError, ("64 bits",)),
    "float in shape": Row(lambda w: w.named("x").shard_shape((8.0,)), TypeError, ("shard_shape", "8.0")),
    "text as shape": Row(lambda w: w.named("x").shard_shape("8"), TypeError, ("shard_shape", "'8'")),
    "None as shape": Row(lambda w: w.named("x").shard_shape(None), TypeError, ("shard_shape", "None")),
    "text as other sharding": Row(lambda w: w.named("x").is_equivalent_to("y", 1), TypeError, ()),
    "float as ndim": Row(lambda w: w.named("x").is_equivalent_to(w.named("x"), 1.5), TypeError, ()),
}

PUTS = {
    "text": Row(lambda w: ad.device_put("text"), TypeError, ("device_put", "str")),
    "bytes": Row(lambda w: ad.device_put(b"text"), TypeError, ("device_put", "bytes")),
    "object": Row(lambda w: ad.device_put(object()), TypeError, ("device_put", "object")),
    "object without text": Row(lambda w: ad.device_put(NoRepr()), TypeError, ("device_put", "NoRepr")),
    "array of objects": Row(lambda w: ad.device_put(np.array([object()])), TypeError, ("device_put", "object")),
    "array of text": Row(lambda w: ad.device_put(np.array(["a"])), TypeError, ("device_put", "<U1")),
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
    "keys that do not sort": Row(lambda w: ad.device_put({1: X, None: X}), (ValueError, TypeError), ()),
    "tree within itself": Row(lambda w: ad.device_put(endless()), (ValueError, RecursionError), ()),
    "tree too deep": Row(lambda w: ad.device_put(deep(20000)), (ValueError, RecursionError), ()),
    "indivisible": Row(
        lambda w: w.put(np.zeros(7), "x"), IndivisibleError, ("device_put", "7", "2", "P('x',)", "(7,)")
    ),
    "rank too low": Row(lambda w: w.put(np.zeros(8), "x", "y"), ValueError, ("device_put", "(8,)", "P('x', 'y')")),
    "surplus None": Row(lambda w: w.put(np.zeros(8), "x", None), ValueError, ("device_put", "(8,)")),
    "scalar": Row(lambda w: w.put(3.0, "x"), ValueError, ("device_put", "()")),
    "unconstrained": Row(lambda w: w.put(X, P.UNCONSTRAINED), ValueError, ("UNCONSTRAINED",)),
    "text as device": Row(lambda w: ad.device_put(X, "cpu"), ValueError, ("device_put", "'cpu'", "devices()")),
    "number as device": Row(lambda w: ad.device_put(X, 0), ValueError, ("device_put", "0", "devices()")),
    "mesh as device": Row(lambda w: ad.device_put(X, w.grid), ValueError, ("device_put", "NamedSharding")),
    "spec as device": Row(lambda w: ad.device_put(X, P("x")), ValueError, ("device_put", "NamedSharding")),
    "prefix with another key": Row(
        lambda w: ad.device_put({"a": X}, {"b": w.devices[0]}), ValueError, ("device_put", "prefix")
    ),
    "prefix too long": Row(lambda w: ad.device_put([X], [w.devices[0]] * 2), ValueError, ("device_put", "prefix")),
    "prefix of another type": Row(lambda w: ad.device_put([X], (w.devices[0],)), ValueError, ("prefix",)),
    "prefix deeper than x": Row(lambda w: ad.device_put([X], [[w.devices[0]]]), ValueError, ("prefix",)),
    "prefix with a number": Row(lambda w: ad.device_put([X, X], [w.devices[0], 3]), ValueError, ("device", "3")),
    "donate is text": Row(lambda w: ad.device_put([X], donate="yes"), (TypeError, ValueError), ("donate",)),
    "two devices": Row(lambda w: ad.device_put(X, w.devices[:2]), ValueError, ("device_put",)),
    "positional donate": Row(lambda w: ad.device_put(X, None, None, True), TypeError, ()),
}

WORLDS = {
    "no devices": Row(lambda w: ad.simulate(0).__enter__(), ValueError, ("devices", "0", "1 to")),
    "negative": Row(lambda w: ad.simulate(-1).__enter__(), ValueError, ("devices", "-1")),
    "too many": Row(lambda w: ad.simulate(2**25).__enter__(), ValueError, ("devices", str(2**25))),
    "beyond 64 bits": Row(lambda w: ad.simulate(2**70).__enter__(), (ValueError, OverflowError), ()),
    "float": Row(lambda w: ad.simulate(8.0), TypeError, ("simulate", "8.0")),
    "None": Row(lambda w: ad.simulate(None), TypeError, ("simulate", "None")),
    "bool": Row(lambda w: ad.simulate(True), TypeError, ("simulate", "True")),
    "spam": Row(lambda w: ad.simulate("spam").__enter__(), (ValueError, FileNotFoundError), ("spam",)),
    "nodes x 0": Row(lambda w: ad.simulate("2 nodes x 0").__enter__(), ValueError, ("simulate",)),
    "empty text": Row(lambda w: ad.simulate("").__enter__(), ValueError, ("simulate",)),
    "negative limit": Row(lambda w: ad.simulate(2, bytes_limit=-1), ValueError, ("bytes_limit", "-1")),
    "unknown option": Row(
        lambda w: ad.config.update("jax_num_cpu_device", 3), AttributeError, ("jax_num_cpu_devices",)
    ),
    "option too late": Row(
        lambda w: ad.config.update("jax_num_cpu_devices", 3), RuntimeError, ("jax_num_cpu_devices",)
    ),
    "option of wrong type": Row(
        lambda w: ad.config.update("cache_bytes", "much"), TypeError, ("cache_bytes", "'much'")
    ),
    "option out of range": Row(lambda w: ad.config.update("cache_bytes", -2), ValueError, ("cache_bytes", "-2")),
    "gpu": Row(lambda w: ad.devices("gpu"), RuntimeError, ("gpu", "cpu")),
    "other process": Row(lambda w: ad.local_devices(3), ValueError, ("3",)),
}

ARRAYS = {
    "made by hand": Row(lambda w: ad.Array(), TypeError, ()),
    "device made by hand": Row(lambda w: ad.Device(), TypeError, ()),
    "shard too far": Row(lambda w: w.put(X, "x").addressable_data(8), IndexError, ("8", "7")),
    "negative shard": Row(lambda w: w.put(X, "x").addressable_data(-1), IndexError, ("-1",)),
    "assignment": Row(lambda w: w.put(X, "x").__setitem__(0, 1), (TypeError, AttributeError), ()),
    "index out of range": Row(lambda w: w.put(X, "x")[0, 99], IndexError, ("99", "dimension 1", "-8 to 7")),
    "too many indices": Row(lambda w: w.put(X, "x")[0, 0, 0], IndexError, ("at most 2", "got 3")),
    "float as index": Row(lambda w: w.put(X, "x")[0.5], IndexError, ("0.5", "float", "int(i)")),
    "assignment to an element": Row(
        lambda w: operator.setitem(w.put(X, "x"), 0, 1.0), TypeError, ("are immutable", "x = x.at[i].set(v)")
    ),
    "shapes to be joined": Row(
        lambda w: np.concatenate([w.put(X, "x"), X[:, 1:], X[0]]), ValueError, ("operand 1", "operand 2", "(8, 7)")
    ),
    "sections that do not divide": Row(lambda w: np.split(w.put(X, "x"), 3), ValueError, ("3", "array_split")),
    "NumPy function": Row(lambda w: np.insert(w.put(X, "x"), 0, 1.0), TypeError, ("insert", "np.asarray")),
    "limit as text": Row(lambda w: w.devices[0].set_bytes_limit("much"), TypeError, ()),
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


def test_the_table_has_several_dozen_rows():
    assert len(TABLE) > 100


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
