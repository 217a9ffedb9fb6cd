# SPDX-License-Identifier: Apache-2.0
"""Strategies draw everything that they promise, and nothing else; layouts keep values; assertions name what differs."""

from __future__ import annotations

import math
import sys
import types

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import NamedSharding, P
from artifex_devices.testing import array_strategies, assertions, mesh_strategies, sharding_strategies, shared_globals
from artifex_devices.testing.array_strategies import lay_out, random_bits
from hypothesis import HealthCheck, given, settings


def drawn(strategy, count=200):
    """Examples of a strategy, the same in each run."""
    found = []

    @settings(derandomize=True, max_examples=count, database=None, deadline=None, suppress_health_check=HealthCheck)
    @given(strategy)
    def collect(value):
        found.append(value)

    collect()
    return found


VALUES = np.arange(24.0).reshape(4, 3, 2)


@pytest.mark.parametrize("layout", array_strategies.LAYOUTS)
def test_a_layout_keeps_values(layout):
    seen = set()
    for seed in range(50):
        found = lay_out(VALUES, layout, seed)
        assert (found.shape, found.dtype) == (VALUES.shape, VALUES.dtype)
        expected = np.broadcast_to(VALUES[:1], VALUES.shape) if layout == "broadcast" else VALUES
        assert np.array_equal(found, expected)
        assert not np.shares_memory(found, VALUES) or layout in ("fortran", "transposed")
        seen.add((found.strides, found.flags.writeable, found.ctypes.data % 8 == 0))
    strides = {each[0] for each in seen}
    writeable = {each[1] for each in seen}
    dense = VALUES.strides
    if layout in ("dense", "read_only"):
        assert strides == {dense}
    if layout == "fortran":
        assert strides == {(8, 32, 96)}
    if layout == "transposed":
        assert len(strides) == 6
    if layout == "reversed":
        assert {tuple(map(abs, each)) for each in strides} == {dense}
        assert len(strides) == 8
    if layout == "stepped":
        steps = {(a // 8, b // a, c // b) for c, b, a in strides}
        assert {step for step, *_ in steps} == {1, 2, 3}
        assert all(each[2] >= 8 and each[1] >= 2 * each[2] + 8 for each in strides)
    if layout == "unaligned":
        assert False in {each[2] for each in seen}
    if layout == "broadcast":
        assert strides == {(0, 16, 8)}
    assert writeable == {layout not in ("read_only", "broadcast")}


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (1, 1)])
def test_layouts_of_few_elements_keep_them(shape):
    values = random_bits(shape, np.dtype(np.int32), 7)
    for layout in array_strategies.LAYOUTS:
        assert np.array_equal(lay_out(values, layout, 3), values)
        assert lay_out(values, layout, 3).shape == shape


def test_bits_are_random_and_those_of_small_dtypes_are_valid():
    for dtype in array_strategies.NUMPY_DTYPES + array_strategies.ML_DTYPES:
        kind = (
            np.dtype(dtype)
            if dtype in array_strategies.NUMPY_DTYPES
            else np.dtype(getattr(sys.modules["ml_dtypes"], dtype))
        )
        raw = random_bits((3, 400), kind, 5)
        assert (raw.shape, raw.dtype) == ((3, 400), kind)
        count = len(set(raw.view(np.uint8).ravel().tolist()))
        bits = 1 if dtype == "bool" else array_strategies._BITS.get(dtype, 8)
        assert count == 2**bits if bits < 8 else count > 240
        assert np.array_equal(random_bits((3, 400), kind, 5).view(np.uint8), raw.view(np.uint8))
        assert raw.view(np.uint8).max() <= 2**bits - 1


def test_shapes_and_dtypes_are_drawn_within_their_limits():
    found = drawn(array_strategies.shapes())
    assert {len(shape) for shape in found} == {0, 1, 2, 3, 4}
    assert {side for shape in found for side in shape} == set(range(7))
    found = drawn(array_strategies.shapes(min_rank=2, max_rank=3, max_side=2))
    assert {len(shape) for shape in found} == {2, 3}
    assert {side for shape in found for side in shape} == {0, 1, 2}
    names = {each.name for each in drawn(array_strategies.dtypes())}
    assert names == {*array_strategies.NUMPY_DTYPES, *array_strategies.ML_DTYPES}
    assert {each.name for each in drawn(array_strategies.dtypes(ml=False))} == set(array_strategies.NUMPY_DTYPES)
    assert set(drawn(array_strategies.layouts())) == set(array_strategies.LAYOUTS)


def test_arrays_have_the_given_shape_dtype_and_layout():
    for value in drawn(array_strategies.arrays((2, 3), "int16", layout="fortran"), 20):
        assert (value.shape, value.dtype, value.flags.f_contiguous) == ((2, 3), np.int16, True)
    for value in drawn(
        array_strategies.arrays(array_strategies.shapes(max_rank=1), array_strategies.dtypes(ml=False)), 40
    ):
        assert value.ndim <= 1
        assert value.dtype.name in array_strategies.NUMPY_DTYPES
    kinds = {value.dtype.name for value in drawn(array_strategies.arrays(), 120)}
    assert len(kinds) > 20


def test_meshes_use_any_devices_in_any_order():
    found = drawn(mesh_strategies.mesh_layouts())
    assert {len(each.axis_sizes) for each in found} == {1, 2, 3}
    assert {each.size for each in found} == set(range(1, 9))
    assert {device for each in found for device in each.device_ids} == set(range(8))
    assert {name for each in found for name in each.axis_names} == set(mesh_strategies.AXIS_NAMES)
    for each in found:
        assert len(each.device_ids) == each.size == math.prod(each.axis_sizes)
        assert len(set(each.device_ids)) == each.size
        assert len(set(each.axis_names)) == len(each.axis_sizes)
        assert list(each.sizes_by_name.items()) == list(zip(each.axis_names, each.axis_sizes, strict=True))
    assert any(list(each.device_ids) != sorted(each.device_ids) for each in found)
    small = drawn(mesh_strategies.mesh_layouts(max_devices=4, min_axes=0, max_axes=2, axis_names=("a", "b")))
    assert {len(each.axis_sizes) for each in small} == {0, 1, 2}
    assert max(each.size for each in small) == 4
    assert {each.size for each in small if not each.axis_sizes} == {1}


def test_meshes_are_those_of_the_given_devices():
    with ad.simulate(6):
        pool = ad.devices()[2:5]
        found = drawn(mesh_strategies.meshes(devices=pool, max_axes=2), 60)
        assert {device for mesh in found for device in mesh.devices.flat} == set(pool)
        assert {len(mesh.axis_names) for mesh in found} == {1, 2}
        layout = mesh_strategies.MeshLayout(("x", "y"), (2, 2), (3, 1, 0, 2))
        assert [[device.id for device in row] for row in layout.mesh().devices] == [[3, 1], [0, 2]]
        assert layout.arrange("abcd").tolist() == [["d", "b"], ["a", "c"]]


def test_specs_name_each_axis_at_most_once():
    found = drawn(sharding_strategies.spec_entries(("x", "y", "z")))
    assert {len(each) for each in found} == {0, 1, 2, 3, 4}
    kinds = {type(entry) for each in found for entry in each}
    assert kinds == {str, tuple, type(None)}
    assert {len(entry) for each in found for entry in each if type(entry) is tuple} == {0, 1, 2, 3}
    for each in found:
        names = [name for entry in each for name in (entry if type(entry) is tuple else [entry]) if name is not None]
        assert len(names) == len(set(names))
        assert set(names) <= {"x", "y", "z"}
    assert {len(each) for each in drawn(sharding_strategies.spec_entries(("x",), min_rank=1, max_rank=2))} == {1, 2}
    assert {type(each) for each in drawn(sharding_strategies.specs(("x",)), 30)} == {P}


def test_shapes_fit_the_numbers_of_parts():
    found = drawn(sharding_strategies.fitting_shapes((2, 3)))
    assert {len(shape) for shape in found} == {2, 3, 4}
    assert {shape[0] for shape in found} == {0, 2, 4, 6}
    assert {shape[1] for shape in found} == {0, 3, 6, 9}
    assert {side for shape in found for side in shape[2:]} == {0, 1, 2, 3}
    filled = drawn(sharding_strategies.fitting_shapes((2,), max_rank=1, max_side=1, allow_empty=False), 20)
    assert set(filled) == {(2,)}
    assert {len(shape) for shape in drawn(sharding_strategies.fitting_shapes((1,) * 5), 50)} == {5}


def test_shardings_and_placements_fit():
    with ad.simulate(6):
        found = drawn(sharding_strategies.shardings(), 60)
        assert {type(each) for each in found} == {NamedSharding, ad.SingleDeviceSharding}
        assert {type(each) for each in drawn(sharding_strategies.shardings(single_device=False), 30)} == {NamedSharding}
        assert {len(each.spec) for each in found if type(each) is NamedSharding} == {0, 1, 2, 3, 4}
        shaped = drawn(sharding_strategies.shardings(shape=(6, 4)), 60)
        named = [each for each in shaped if type(each) is NamedSharding]
        assert all(len(each.spec) <= 2 and each.shard_shape((6, 4)) for each in named)
        assert any(each.shard_shape((6, 4)) != (6, 4) for each in named)
        sides = [
            max(each.sharding.shard_shape(each.value.shape), default=0)
            for each in drawn(sharding_strategies.shardable_arrays(dtype="int8"), 100)
            if type(each.sharding) is NamedSharding
        ]
        assert max(sides) == 3
        pool = ad.devices()[:2]
        for each in drawn(sharding_strategies.shardable_arrays(devices=pool, max_rank=2, max_side=2, dtype="int8"), 60):
            assert each.sharding.device_set <= set(pool)
            assert each.value.dtype == np.int8
            assert each.value.ndim <= 2
            assert max(each.value.shape, default=0) <= 4
            assert np.array_equal(np.asarray(ad.device_put(each.value, each.sharding)), each.value)


def failure(check, *arguments):
    with pytest.raises(AssertionError) as caught:
        check(*arguments)
    return str(caught.value)


def test_bits_that_differ_are_counted_and_the_first_is_shown():
    check = assertions.assert_same_bits
    check(np.zeros((0, 3)), np.zeros((0, 3)))
    check([1, 2], np.array([1, 2]))
    assert failure(check, np.float32([1, 2, 3]), np.float32([1, 5, 6])) == (
        "2 of 3 elements differ; first at (1,): got 2.0, expected 5.0 (bytes 00000040, 0000a040)"
    )
    assert failure(check, np.int8([[1, 2], [3, 4]]), np.int8([[1, 2], [3, 5]])) == (
        "1 of 4 elements differ; first at (1, 1): got 4, expected 5 (bytes 04, 05)"
    )
    assert failure(check, np.int8([1]), np.int16([1])) == "got int8(1,), expected int16(1,)"
    assert failure(check, np.int8([1]), np.int8([[1]])) == "got int8(1,), expected int8(1, 1)"


class Wrong:
    """A sharding whose shards do not tile an array."""

    num_devices = 2

    def __init__(self, *indices):
        self.indices = indices

    def devices_indices_map(self, shape):
        return dict(enumerate(self.indices))


def test_shards_that_overlap_or_leave_gaps_are_found():
    check = assertions.assert_shards_tile
    check(Wrong((slice(0, 2),), (slice(2, 4),)), (4,))
    check(Wrong((slice(None),), (slice(None),)), (4,))
    check(Wrong((slice(0, 0),), (slice(0, 4),)), (4,))
    check(Wrong((slice(0, 0),), (slice(0, 0),)), (0,))
    assert (
        failure(check, Wrong((slice(0, 2),), (slice(1, 4),)), (4,))
        == "element (1,) is on 2 devices, expected 1 replicas"
    )
    assert (
        failure(check, Wrong((slice(0, 2),), (slice(3, 4),)), (4,))
        == "element (2,) is on 0 devices, expected 1 replicas"
    )
    assert failure(check, Wrong((slice(None),)), (4,)) == "1 devices have an index, expected 2"


def test_shardings_that_differ_show_each_device():
    with ad.simulate(12):
        mesh = ad.make_mesh((12,), ("x",))
        x = ad.device_put(np.zeros((12, 12)), NamedSharding(mesh, P("x")))
        lines = failure(assertions.assert_same_sharding, x, P(None, "x")).splitlines()
        assert lines[:3] == [
            "assert_same_sharding: an array of shape (12, 12) is sharded otherwise",
            "  got P('x',), expected P(None, 'x')",
            "  cpu:0: got [0:1, 0:12], expected [0:12, 0:1]",
        ]
        assert lines[-1] == f"  and {12 - assertions._MAX_ROWS} more devices"
        assert len(lines) == 3 + assertions._MAX_ROWS
        one = ad.device_put(np.zeros(2), ad.devices()[1])
        assert failure(assertions.assert_same_sharding, one, P("x")).endswith("expected P('x',) on a mesh")
        other = failure(assertions.assert_same_sharding, one, ad.SingleDeviceSharding(ad.devices()[2])).splitlines()
        assert other[2:] == ["  cpu:1: got [0:2], expected nothing", "  cpu:2: got nothing, expected [0:2]"]
        assertions.assert_same_sharding(ad.ShapeDtypeStruct((2,), "int8"), ad.ShapeDtypeStruct((2,), "int8"))
        text = failure(assertions.assert_same_sharding, x, ad.ShapeDtypeStruct((12, 12), float))
        assert text.splitlines()[1].endswith("expected None")


def test_changed_globals_are_those_with_another_object_or_other_elements():
    module = types.ModuleType("program_with_globals")
    module.__file__ = "/a/program_with_globals.py"
    module.a, module.b, module.c = 1, [1], {"k": 1}
    module.d, module.e, module.f = {1}, list(range(100)), list(range(101))
    snapshot = shared_globals._Snapshot("program", vars(module))
    assert snapshot.changes() == []
    module.a = 2
    module.b.append(2)
    assert sorted(snapshot.changes()) == ["program.a", "program.b"]
    assert snapshot.changes() == []
    module.c["k"] = 2
    assert snapshot.changes() == ["program.c"]
    module.c["l"] = module.c.pop("k")
    assert snapshot.changes() == ["program.c"]
    module.d.add(2)
    module.e[99] = "other"
    module.f[99] = "other"
    assert sorted(snapshot.changes()) == ["program.d", "program.e"]
    del module.a
    module.g = 3
    assert sorted(snapshot.changes()) == ["program.a", "program.g"]
    assert shared_globals._is_of_program(module)
    assert not shared_globals._is_of_program(np)
    assert not shared_globals._is_of_program(ad)
    assert not shared_globals._is_of_program(sys)
    assert not shared_globals._is_of_program(types.ModuleType("without_a_file"))


def test_variables_that_two_processes_change_are_listed():
    found = shared_globals.SharedGlobals(test_variables_that_two_processes_change_are_listed)
    found._snapshots = [shared_globals._Snapshot("m", variables := {"a": 1, "b": 1, "c": [0]})]
    found._watch()
    variables["a"] = 2
    variables["c"].append(1)
    found.note(0)
    variables["b"] = 2
    found.note(1)
    assert found.names() == ()
    variables["a"] = 3
    variables["c"].clear()
    found.note(1)
    assert found.names() == ("m.a", "m.c")
