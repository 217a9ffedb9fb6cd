# SPDX-License-Identifier: Apache-2.0
"""The same call in artifex_devices and in JAX, and what it means that the answers agree.

Values are compared after `plain()` has replaced devices by their ids and arrays by their bits. Errors agree when ours
is an instance of the nearest built-in class of JAX's; the two that JAX users catch by name must have that name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import MeshLayout, mesh_layouts, spec_entries
from artifex_devices.testing.sharding_strategies import fitting_shapes, partition_counts
from hypothesis import strategies as st

jax = pytest.importorskip("jax", reason="jax is not installed: nothing to compare with")
jax.config.update("jax_enable_x64", True)


def _library(name: str, top: Any, sharding: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        devices=top.devices(),
        device_put=top.device_put,
        device_get=top.device_get,
        block_until_ready=top.block_until_ready,
        from_dlpack=top.dlpack.from_dlpack,
        make_mesh=top.make_mesh,
        Array=top.Array,
        tree=top.tree,
        tree_util=top.tree_util,
        P=sharding.PartitionSpec,
        Mesh=sharding.Mesh,
        AbstractMesh=sharding.AbstractMesh,
        AxisType=sharding.AxisType,
        NamedSharding=sharding.NamedSharding,
        SingleDeviceSharding=sharding.SingleDeviceSharding,
        Sharding=sharding.Sharding,
    )


OURS = _library("artifex_devices", ad, ad)
JAX = _library("jax", jax, jax.sharding)
LIBRARIES = (OURS, JAX)
BY_NAME = ("IndivisibleError", "DuplicateSpecError")


def plain(value: Any) -> Any:
    """The value in terms that both libraries share: device ids, bytes of arrays, names of enum members."""
    for library in LIBRARIES:
        if isinstance(value, type(library.devices[0])):
            return ("device", value.id)
        if isinstance(value, library.Array):
            return plain(np.asarray(value))
        if isinstance(value, library.AxisType):
            return ("axis type", value.name)
        if isinstance(value, library.P):
            return ("P", *map(plain, value))
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return ("objects", value.shape, [plain(item) for item in value.flat])
        return ("array", value.dtype.name, value.shape, value.tobytes())
    if isinstance(value, dict):
        return (type(value).__name__, [(plain(key), plain(item)) for key, item in value.items()])
    if isinstance(value, set | frozenset):
        return ("set", sorted(map(plain, value), key=repr))
    if isinstance(value, tuple | list):
        return (type(value).__name__, [plain(item) for item in value])
    return value


def outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The plain value, or the exception."""
    try:
        return plain(call()), None
    except Exception as error:
        return None, error


def nearest_builtin(error: BaseException) -> type[BaseException]:
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def error_agrees(ours: BaseException, theirs: BaseException) -> bool:
    name = type(theirs).__name__
    if name in BY_NAME and type(ours).__name__ != name:
        return False
    return isinstance(ours, nearest_builtin(theirs))


def assert_agree(question: Callable[[SimpleNamespace], Any]) -> Any:
    """Asks both libraries. Returns JAX's plain value, or None where both raise errors that agree."""
    our_value, our_error = outcome(lambda: question(OURS))
    jax_value, jax_error = outcome(lambda: question(JAX))
    if our_error is not None or jax_error is not None:
        if jax_error is None:
            raise AssertionError(f"JAX gives {jax_value!r}, ours raises") from our_error
        assert our_error is not None, f"JAX raises {jax_error!r}, ours gives {our_value!r}"
        assert error_agrees(our_error, jax_error), f"JAX raises {jax_error!r}, ours {our_error!r}"
        assert str(our_error).strip(), "our error says nothing"
        return None
    assert our_value == jax_value, f"JAX gives {jax_value!r}, ours {our_value!r}"
    return jax_value


def mesh_of(library: SimpleNamespace, layout: MeshLayout) -> Any:
    return library.Mesh(layout.arrange(library.devices), layout.axis_names)


def sharding_of(library: SimpleNamespace, layout: MeshLayout, entries: Sequence[Any], **options: Any) -> Any:
    return library.NamedSharding(mesh_of(library, layout), library.P(*entries), **options)


def index_map(sharding: Any, shape: Sequence[int]) -> list[Any]:
    """Device ids with their index, in the order in which the map has them."""
    return [(device.id, index) for device, index in sharding.devices_indices_map(tuple(shape)).items()]


def shards_of(array: Any) -> list[Any]:
    """Everything about the shards, in their order."""
    return [
        (shard.device.id, shard.index, shard.replica_id, plain(np.asarray(shard.data)))
        for shard in array.addressable_shards
    ]


def equality_of(pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
    """`==` of each pair; fails where `!=`, the order of operands or the hash contradict it."""
    answers = []
    for left, right in pairs:
        equal = left == right
        assert (right == left) is equal
        assert (left != right) is (not equal)
        assert not equal or hash(left) == hash(right)
        answers.append(equal)
    return answers


@st.composite
def sharded_shapes(draw: st.DrawFn, *, even: bool | None = None) -> tuple[MeshLayout, tuple[Any, ...], tuple[int, ...]]:
    """A mesh, a valid spec and a shape whose rank is enough. `even` False or None: divisible or not as it comes."""
    layout = draw(mesh_layouts())
    entries = draw(spec_entries(layout.axis_names))
    if even or (even is None and draw(st.booleans(), label="divisible")):
        return layout, entries, draw(fitting_shapes(partition_counts(entries, layout.sizes_by_name)))
    sides = st.one_of(st.integers(0, 9), st.sampled_from([2, 4, 8, 16, 24]))
    shape = draw(st.lists(sides, min_size=len(entries), max_size=max(4, len(entries))), label="shape")
    return layout, entries, tuple(shape)


@st.composite
def near_layouts(draw: st.DrawFn, layout: MeshLayout) -> MeshLayout:
    """The same mesh, or one that differs in one thing: device order, names, arrangement."""
    names, sizes, ids = layout.axis_names, layout.axis_sizes, layout.device_ids
    change = draw(st.sampled_from(["none", "none", "order", "rotate", "names", "axes", "other"]), label="change")
    if change == "order":
        ids = tuple(draw(st.permutations(ids)))
    elif change == "rotate":
        ids = tuple((device + 1) % 8 for device in ids)
    elif change == "names":
        names = tuple(draw(st.permutations(names)))
    elif change == "axes":
        order = draw(st.permutations(range(len(sizes))))
        names, sizes = tuple(names[axis] for axis in order), tuple(sizes[axis] for axis in order)
    elif change == "other":
        return draw(mesh_layouts())
    return MeshLayout(names, sizes, ids)


@st.composite
def near_entries(
    draw: st.DrawFn, entries: tuple[Any, ...], names: Sequence[Hashable], *, max_rank: int = 4
) -> tuple[Any, ...]:
    """The same spec, or one with another rank, order inside a tuple, or other axes, valid for axes `names`."""
    known = {axis for entry in entries for axis in (entry if isinstance(entry, tuple | list) else (entry,))} - {None}
    change = draw(st.sampled_from(["none", "none", "pad", "cut", "swap", "turn", "other"]), label="change of spec")
    if change == "other" or not known <= set(names):
        return draw(spec_entries(names, max_rank=max_rank))
    if change == "pad" and len(entries) < max_rank:
        return (*entries, None)
    if change == "cut":
        return entries[:-1]
    if change == "swap":
        return tuple(draw(st.permutations(entries)))
    if change == "turn":
        return tuple(entry[::-1] if isinstance(entry, tuple) else entry for entry in entries)
    return entries
