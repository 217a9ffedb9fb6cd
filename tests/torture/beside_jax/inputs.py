# SPDX-License-Identifier: Apache-2.0
"""Invalid input: refused by a clear error, and later calls work."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scenario import REFUSED, accepted, scenario

GROUP = "bad input"
WORDS = "a clear error"


@scenario(GROUP, "sharding.shard_shape((8.0,)), then good calls with (8,)", WORDS, REFUSED)
def shard_shape_of_floats(b: Any) -> None:
    accepted(b.over("x").shard_shape((8.0,)))


@scenario(GROUP, "DeviceAssignment.create of an empty array", WORDS, REFUSED)
def empty_assignment(b: Any) -> None:
    accepted(xla_client(b).DeviceAssignment.create(np.empty((0, 0), np.int32)))


def xla_client(b: Any) -> Any:
    """The module of each library."""
    return importlib.import_module("jaxlib._jax" if b.name == "jax" else "artifex_devices.xla_client")


def layout(b: Any) -> Any:
    """As above."""
    return importlib.import_module("jax.experimental.layout" if b.name == "jax" else "artifex_devices.layout")


@scenario(GROUP, "device_put with Layout((0, 0))", WORDS, REFUSED)
def layout_twice(b: Any) -> None:
    form = layout(b).Format(layout(b).Layout((0, 0)), b.over())
    accepted(np.asarray(b.jax.device_put(np.zeros((2, 2)), form)).tolist())


@scenario(GROUP, "device_put with Layout((-1,))", WORDS, REFUSED)
def layout_negative(b: Any) -> None:
    form = layout(b).Format(layout(b).Layout((-1,)), b.over())
    accepted(np.asarray(b.jax.device_put(np.zeros(2), form)).tolist())


@scenario(GROUP, "DeviceList((1, 2))", WORDS, REFUSED)
def device_list_of_numbers(b: Any) -> None:
    accepted(xla_client(b).DeviceList((1, 2)))


@scenario(GROUP, "make_mesh('8', ('x',))", WORDS, REFUSED)
def mesh_of_text(b: Any) -> None:
    accepted(b.jax.make_mesh("8", ("x",)))


@scenario(GROUP, "Mesh with an axis name twice", WORDS, REFUSED)
def axis_names_twice(b: Any) -> None:
    accepted(b.Mesh(np.array(b.jax.devices()).reshape(2, 4), ("x", "x")))


@scenario(GROUP, "AbstractMesh with an axis name twice", WORDS, REFUSED)
def abstract_axis_names_twice(b: Any) -> None:
    accepted(b.jax.sharding.AbstractMesh((2, 4), ("x", "x")))


@scenario(GROUP, "AbstractMesh((-4,), ('x',))", WORDS, REFUSED)
def negative_axis(b: Any) -> None:
    accepted(b.jax.sharding.AbstractMesh((-4,), ("x",)))


@scenario(GROUP, "device_put of a list that contains itself", WORDS, REFUSED)
def list_of_itself(b: Any) -> None:
    leaf: list[Any] = [1.0]
    leaf.append(leaf)
    accepted(len(b.jax.device_put(leaf)))


@scenario(GROUP, "device_put of 20,000 nested lists", "works, or a clear error", r"ok|" + REFUSED)
def deep_lists(b: Any) -> None:
    tree: Any = 1.0
    for _ in range(20_000):
        tree = [tree]
    b.jax.device_put(tree)


@scenario(GROUP, "tree.map over 20,000 nested dicts", "works, or a clear error", r"ok|" + REFUSED)
def deep_dicts(b: Any) -> None:
    tree: Any = 1.0
    for _ in range(20_000):
        tree = {"a": tree}
    b.jax.tree.map(lambda leaf: leaf, tree)


@scenario(GROUP, "NamedSharding(..., memory_kind=3)", WORDS, REFUSED)
def memory_kind_of_number(b: Any) -> None:
    accepted(b.over("x", memory_kind=3))


@scenario(GROUP, "a memory kind that no device has", WORDS, REFUSED)
def unknown_memory_kind(b: Any) -> None:
    accepted(b.jax.device_put(np.arange(8.0), b.over("x", memory_kind="nowhere")))


@scenario(GROUP, "a PartitionSpec with an axis that is not in the mesh", WORDS, REFUSED)
def unknown_axis_of_spec(b: Any) -> None:
    accepted(b.over("y"))


@scenario(GROUP, "a PartitionSpec with an axis twice", WORDS, REFUSED)
def axis_twice_in_spec(b: Any) -> None:
    accepted(b.over("x", "x"))


@scenario(GROUP, "9 rows over 8 devices", WORDS, REFUSED)
def uneven(b: Any) -> None:
    accepted(b.jax.device_put(np.arange(9.0), b.over("x")))


@scenario(GROUP, "device_put of an object() leaf", WORDS, REFUSED)
def object_leaf(b: Any) -> None:
    accepted(b.jax.device_put({"a": [object()]}))


@scenario(GROUP, "device_put of an array of strings", WORDS, REFUSED)
def text_leaf(b: Any) -> None:
    accepted(b.jax.device_put(np.array(["a", "b"])))


@scenario(GROUP, "device_put to an int as device", WORDS, REFUSED)
def no_device(b: Any) -> None:
    accepted(b.jax.device_put(np.arange(8.0), 3))


@scenario(GROUP, "reading an Array after delete()", "an error that reports the deletion", r"RuntimeError: .*deleted.*")
def read_deleted(b: Any) -> None:
    array = b.jax.device_put(np.arange(8.0))
    array.delete()
    np.asarray(array)


@scenario(GROUP, "make_array_from_callback whose callback raises", "the same exception", r"ZeroDivisionError: .*")
def callback_raises(b: Any) -> None:
    b.jax.make_array_from_callback((8,), b.over("x"), lambda index: 1 / 0)


@scenario(GROUP, "make_array_from_callback whose callback returns another shape", WORDS, REFUSED)
def callback_of_wrong_shape(b: Any) -> None:
    array = b.jax.make_array_from_callback((8,), b.over("x"), lambda index: np.zeros(3))
    accepted(np.asarray(array).tolist())
