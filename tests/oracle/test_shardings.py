# SPDX-License-Identifier: Apache-2.0
"""NamedSharding and SingleDeviceSharding behave as JAX's: shapes, index maps, equality, equivalence, errors."""

import pytest
from artifex_devices.testing import MeshLayout, mesh_layouts, spec_entries
from both import (
    JAX,
    OURS,
    assert_agree,
    equality_of,
    index_map,
    mesh_of,
    near_entries,
    near_layouts,
    plain,
    sharded_shapes,
    sharding_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = st.sampled_from([None, "device", "pinned_host", "unpinned_host"])
MANY = settings(max_examples=2 * settings.get_profile("oracle").max_examples)


@MANY
@given(sharded_shapes())
def test_shard_shapes_are_equal(case):
    layout, entries, shape = case
    assert_agree(lambda lib: sharding_of(lib, layout, entries).shard_shape(shape))


@MANY
@given(sharded_shapes())
def test_index_maps_are_equal_in_order_and_value(case):
    layout, entries, shape = case
    assert_agree(lambda lib: index_map(sharding_of(lib, layout, entries), shape))


@given(sharded_shapes())
def test_addressable_index_maps_are_equal(case):
    layout, entries, shape = case

    def ask(lib):
        return list(sharding_of(lib, layout, entries).addressable_devices_indices_map(shape).items())

    assert_agree(ask)


@given(mesh_layouts(), st.data(), KINDS)
def test_facts_and_text_are_equal(layout, data, kind):
    entries = data.draw(spec_entries(layout.axis_names))

    def ask(lib):
        sharding = sharding_of(lib, layout, entries, memory_kind=kind)
        return (
            repr(sharding),
            str(sharding),
            sharding.spec,
            sharding.mesh.devices,
            sharding.device_set,
            sharding.addressable_devices,
            sharding.num_devices,
            sharding.is_fully_replicated,
            sharding.is_fully_addressable,
            sharding.memory_kind,
            isinstance(sharding, lib.Sharding),
        )

    assert_agree(ask)


@given(mesh_layouts(), st.data(), KINDS, KINDS)
def test_memory_kinds_are_changed_alike(layout, data, kind, other):
    entries = data.draw(spec_entries(layout.axis_names))

    def ask(lib):
        sharding = sharding_of(lib, layout, entries, memory_kind=kind)
        moved = sharding.with_memory_kind(other or "device")
        return repr(moved), moved.memory_kind, sharding.memory_kind, *equality_of([(moved, sharding)])

    assert_agree(ask)


@MANY
@given(st.data(), mesh_layouts(axis_names=("x", "y", "z")), KINDS, KINDS)
def test_equality_and_hash_are_equal(data, layout, kind, other_kind):
    entries = data.draw(spec_entries(layout.axis_names))
    near = data.draw(near_layouts(layout))
    near_spec = data.draw(near_entries(entries, near.axis_names))
    kinds = (kind, other_kind) if data.draw(st.booleans(), label="kinds differ") else (None, None)

    def ask(lib):
        left = sharding_of(lib, layout, entries, memory_kind=kinds[0])
        right = sharding_of(lib, near, near_spec, memory_kind=kinds[1])
        single = lib.SingleDeviceSharding(lib.devices[layout.device_ids[0]])
        return equality_of([(left, right), (left, single)])

    assert_agree(ask)


@MANY
@given(st.data(), mesh_layouts(axis_names=("x", "y", "z")), KINDS)
def test_equivalence_is_equal(data, layout, kind):
    entries = data.draw(spec_entries(layout.axis_names))
    near = data.draw(near_layouts(layout))
    near_spec = data.draw(near_entries(entries, near.axis_names))
    rank = data.draw(st.integers(max(len(entries), len(near_spec)), 5))
    kinds = (kind, None) if data.draw(st.integers(0, 3), label="kinds differ") == 3 else (None, None)

    def ask(lib):
        left = sharding_of(lib, layout, entries, memory_kind=kinds[0])
        right = sharding_of(lib, near, near_spec, memory_kind=kinds[1])
        singles = [lib.SingleDeviceSharding(lib.devices[i]) for i in (layout.device_ids[0], near.device_ids[-1])]
        return [
            left.is_equivalent_to(right, rank),
            right.is_equivalent_to(left, rank),
            left.is_equivalent_to(left, rank),
            *(left.is_equivalent_to(single, rank) for single in singles),
            *(single.is_equivalent_to(left, rank) for single in singles),
        ]

    assert_agree(ask)


@given(mesh_layouts(), st.data())
def test_axis_types_do_not_count_in_equivalence(layout, data):
    entries = data.draw(spec_entries(layout.axis_names))

    def ask(lib):
        kinds = (lib.AxisType.Explicit,) * len(layout.axis_names)
        typed = lib.Mesh(layout.arrange(lib.devices), layout.axis_names, axis_types=kinds)
        left, right = sharding_of(lib, layout, entries), lib.NamedSharding(typed, lib.P(*entries))
        return left.is_equivalent_to(right, len(entries)), *equality_of([(left, right)])

    assert assert_agree(ask) == ("tuple", [True, False])


@given(st.integers(0, 7), st.integers(0, 7), KINDS, KINDS, st.lists(st.integers(0, 9), max_size=4))
def test_single_device_shardings_are_equal(first, second, kind, other_kind, shape):
    def ask(lib):
        left = lib.SingleDeviceSharding(lib.devices[first], memory_kind=kind)
        right = lib.SingleDeviceSharding(lib.devices[second], memory_kind=other_kind)
        return (
            repr(left),
            str(left),
            left.shard_shape(tuple(shape)),
            index_map(left, shape),
            left.device_set,
            left.num_devices,
            left.is_fully_replicated,
            left.is_fully_addressable,
            left.memory_kind,
            repr(left.with_memory_kind("pinned_host")),
            left.is_equivalent_to(right, len(shape)),
            equality_of([(left, right), (left, left.with_memory_kind("device"))]),
        )

    assert_agree(ask)


@given(st.data(), mesh_layouts(axis_names=("x", "y", "z"), min_axes=2))
def test_wrong_axes_raise_alike(data, layout):
    entries = list(data.draw(spec_entries(layout.axis_names, min_rank=1)))
    place = data.draw(st.integers(0, len(entries) - 1))
    repeated = data.draw(st.sampled_from(layout.axis_names))
    wrong = data.draw(st.sampled_from(["unknown", "unknown in a tuple", "repeated", "repeated in a tuple"]))
    if wrong == "unknown":
        entries[place] = data.draw(st.sampled_from(["w", "X", " x", 7]))
    elif wrong == "unknown in a tuple":
        entries[place] = (*(axis for axis in layout.axis_names if axis not in str(entries)), "w")
    elif wrong == "repeated":
        entries = [repeated, None, repeated]
    else:
        entries = [(repeated, repeated)]
    assert assert_agree(lambda lib: sharding_of(lib, layout, entries)) is None


@pytest.mark.parametrize("kind", ["gpu", "", "Device", "pinned"])
def test_an_unknown_memory_kind_raises_alike(kind):
    layout = MeshLayout(("x",), (8,), tuple(range(8)))
    assert assert_agree(lambda lib: sharding_of(lib, layout, ("x",), memory_kind=kind)) is None
    assert assert_agree(lambda lib: sharding_of(lib, layout, ("x",)).with_memory_kind(kind)) is None


@given(sharded_shapes(even=True))
def test_an_equal_question_has_an_equal_answer_twice(case):
    layout, entries, shape = case
    for lib in (OURS, JAX):
        left, right = sharding_of(lib, layout, entries), sharding_of(lib, layout, entries)
        assert left == right
        assert mesh_of(lib, layout) is left.mesh
        assert plain(index_map(left, shape)) == plain(index_map(right, shape))
