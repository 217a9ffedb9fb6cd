# SPDX-License-Identifier: Apache-2.0
"""NamedSharding and SingleDeviceSharding: which device holds what."""

import itertools
import math
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import DuplicateSpecError, IndivisibleError
from artifex_devices.sharding import NamedSharding, P, Sharding, SingleDeviceSharding
from artifex_devices.testing import assert_shards_tile, mesh_layouts, shardings, spec_entries
from artifex_devices.testing.sharding_strategies import fitting_shapes, partition_counts
from hypothesis import given
from hypothesis import strategies as st

WHOLE = slice(None, None, None)


def expected_index(layout, entries, shape, position):
    """Slices of one device, written down from the rule: the first axis of a tuple is the major one."""
    where = dict(zip(layout.axis_names, np.unravel_index(position, layout.axis_sizes), strict=True))
    index = []
    for dimension, size in enumerate(shape):
        entry = entries[dimension] if dimension < len(entries) else None
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        parts, part = 1, 0
        for axis in axes:
            parts *= layout.sizes_by_name[axis]
            part = part * layout.sizes_by_name[axis] + int(where[axis])
        side = size // parts
        index.append(WHOLE if parts == 1 else slice(part * side, (part + 1) * side, None))
    return tuple(index)


@given(st.data(), mesh_layouts())
def test_index_maps_follow_the_rule(data, layout):
    entries = data.draw(spec_entries(layout.axis_names))
    shape = data.draw(fitting_shapes(partition_counts(entries, layout.sizes_by_name)))
    sharding = NamedSharding(layout.mesh(), P(*entries))
    indices = sharding.devices_indices_map(shape)
    assert [device.id for device in indices] == list(layout.device_ids)
    assert list(indices.values()) == [expected_index(layout, entries, shape, p) for p in range(layout.size)]
    assert sharding.addressable_devices_indices_map(shape) == indices
    assert sharding.shard_shape(shape) == tuple(
        size // parts
        for size, parts in itertools.zip_longest(shape, partition_counts(entries, layout.sizes_by_name), fillvalue=1)
    )
    assert_shards_tile(sharding, shape)


@given(st.data(), mesh_layouts())
def test_facts_of_a_named_sharding(data, layout):
    entries = data.draw(spec_entries(layout.axis_names))
    mesh = layout.mesh()
    sharding = NamedSharding(mesh, P(*entries))
    assert sharding.mesh is mesh
    assert sharding.spec == P(*entries)
    assert sharding.num_devices == layout.size
    assert {device.id for device in sharding.device_set} == set(layout.device_ids)
    assert sharding.addressable_devices == sharding.device_set
    assert sharding.is_fully_replicated is (math.prod(partition_counts(entries, layout.sizes_by_name)) == 1)
    assert sharding.is_fully_addressable
    assert sharding.memory_kind == "device"
    assert isinstance(sharding, Sharding)
    assert repr(sharding) == f"NamedSharding(mesh={mesh!s}, spec={P(*entries)!r}, memory_kind=device)"


@given(shardings(), shardings())
def test_equal_shardings_hash_alike_and_survive_pickling(left, right):
    assert left == left
    assert (left == right) is (right == left)
    assert left != right or hash(left) == hash(right)
    again = pickle.loads(pickle.dumps(left))
    assert again == left
    assert hash(again) == hash(left)
    assert repr(again) == repr(left)


@given(st.data(), shardings(max_rank=3), shardings(max_rank=3))
def test_equivalent_shardings_have_the_same_index_maps(data, left, right):
    sides = data.draw(st.lists(st.integers(1, 2), min_size=3, max_size=3))
    shape = tuple(side * 840 for side in sides)  # divisible by all products of axes of 8 devices
    same = list(left.devices_indices_map(shape).items()) == list(right.devices_indices_map(shape).items())
    assert left.is_equivalent_to(right, 3) is same
    assert right.is_equivalent_to(left, 3) is same


def test_equality_sees_mesh_spec_kind_and_unevenness(named, grid, line, devices):
    base = named("x")
    assert base == named("x")
    assert base != named("x", None)
    assert base != named("y")
    assert base != NamedSharding(line, P("x"))
    assert base != named("x", memory_kind="pinned_host")
    assert base != named("x", uneven="last-short")
    assert base != SingleDeviceSharding(devices[0])
    assert base != "sharding"
    assert len({base, named("x"), named("x", None)}) == 2


def test_equivalence_ignores_names_types_and_trailing_none(named, devices):
    other = ad.make_mesh((2, 4), ("a", "b"))
    assert named("x").is_equivalent_to(named("x", None), 2)
    assert named("x").is_equivalent_to(NamedSharding(other, P("a")), 1)
    assert not named("x").is_equivalent_to(named("y"), 1)
    assert not named("x").is_equivalent_to(named("x", memory_kind="pinned_host"), 1)
    turned = ad.Mesh(np.array(devices[::-1]).reshape(2, 4), ("x", "y"))
    assert not named().is_equivalent_to(NamedSharding(turned, P()), 1)
    one = ad.Mesh(np.array(devices[:1]), ("x",))
    assert NamedSharding(one, P("x")).is_equivalent_to(SingleDeviceSharding(devices[0]), 1)


def test_single_device_sharding(devices):
    sharding = SingleDeviceSharding(devices[3])
    assert repr(sharding) == "SingleDeviceSharding(device=CpuDevice(id=3), memory_kind=device)"
    assert sharding.shard_shape((3, 0)) == (3, 0)
    assert sharding.devices_indices_map((5,)) == {devices[3]: (WHOLE,)}
    assert sharding.device_set == {devices[3]}
    assert sharding.num_devices == 1
    assert sharding.is_fully_replicated
    assert sharding == SingleDeviceSharding(devices[3])
    assert sharding != SingleDeviceSharding(devices[4])


def test_memory_kinds(named, devices):
    for kind in ("device", "pinned_host", "unpinned_host"):
        assert named("x").with_memory_kind(kind).memory_kind == kind
        assert named("x", memory_kind=kind).with_memory_kind("device") == named("x")
        assert SingleDeviceSharding(devices[0], memory_kind=kind).memory_kind == kind
    assert named("x", memory_kind="pinned_host").shard_shape((4,)) == (2,)
    assert "memory_kind=pinned_host" in repr(named("x", memory_kind="pinned_host"))


def test_a_dimension_of_size_zero_is_cut_into_empty_parts(named):
    assert named("x").shard_shape((0, 3)) == (0, 3)
    assert all(index == (slice(0, 0, None),) for index in named("x").devices_indices_map((0,)).values())


def test_axes_of_size_one_cut_nothing(devices):
    mesh = ad.Mesh(np.array(devices).reshape(1, 8), ("x", "y"))
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.is_fully_replicated
    assert sharding.devices_indices_map((5,))[devices[0]] == (WHOLE,)


def test_indivisible_dimensions_are_all_named(named):
    with pytest.raises(IndivisibleError) as raised:
        named("x", "y").shard_shape((3, 6))
    text = str(raised.value)
    assert isinstance(raised.value, ValueError)
    for word in ("shard_shape", "(3, 6)", "P('x', 'y')", "'x': 2", "'y': 4", "0", "1"):
        assert word in text


def test_a_duplicate_axis_is_named(named):
    with pytest.raises(DuplicateSpecError, match="'x'") as raised:
        named("x", ("y", "x"))
    assert isinstance(raised.value, ValueError)


def test_an_unknown_axis_is_named_with_those_there_are(named):
    with pytest.raises(ValueError, match=r"'model'.*'x'.*'y'"):
        named("model")


def test_a_rank_too_low_names_both(named):
    with pytest.raises(ValueError, match=r"P\('x', None\)"):
        named("x", None).shard_shape((4,))


@given(st.data(), mesh_layouts())
def test_last_short_cuts_into_chunks_of_the_rounded_up_size(data, layout):
    entries = data.draw(spec_entries(layout.axis_names, min_rank=1))
    shape = tuple(data.draw(st.lists(st.integers(0, 11), min_size=len(entries), max_size=4)))
    sharding = NamedSharding(layout.mesh(), P(*entries), uneven="last-short")
    for position, index in enumerate(sharding.devices_indices_map(shape).values()):
        where = dict(zip(layout.axis_names, np.unravel_index(position, layout.axis_sizes), strict=True))
        for dimension, parts in enumerate(partition_counts(entries, layout.sizes_by_name)):
            if parts == 1:
                assert index[dimension] == WHOLE
                continue
            entry = entries[dimension]
            part = 0
            for axis in entry if isinstance(entry, tuple) else (entry,):
                part = part * layout.sizes_by_name[axis] + int(where[axis])
            chunk = -(-shape[dimension] // parts)
            begin, end = (min(shape[dimension], chunk * at) for at in (part, part + 1))
            assert len(range(*index[dimension].indices(shape[dimension]))) == end - begin
            if end > begin:
                assert index[dimension] == slice(begin, end, None)
    assert_shards_tile(sharding, shape)


def test_last_short_keeps_its_option(named):
    sharding = named("y", uneven="last-short")
    assert sharding.uneven == "last-short"
    assert named("y").uneven is None
    assert sharding.shard_shape((10,)) == (3,)
    sizes = [s[0].stop - s[0].start for s in sharding.devices_indices_map((10,)).values()]
    assert sizes == [3, 3, 3, 1, 3, 3, 3, 1]
    assert pickle.loads(pickle.dumps(sharding)).uneven == "last-short"


def test_shapes_may_be_numpy_integers_lists_and_arrays(named):
    for shape in ((np.int64(8),), [8], np.array([8])):
        answer = named("x").shard_shape(shape)
        assert answer == (4,)
        assert type(answer[0]) is int


def test_a_huge_shape_costs_nothing(named):
    assert named("x", "y").shard_shape((2**40, 2**20)) == (2**39, 2**18)
