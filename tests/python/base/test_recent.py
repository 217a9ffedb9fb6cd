# SPDX-License-Identifier: Apache-2.0
"""What is kept for the next call: found again, bounded, let go of; never changed by callers."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AxisType, Mesh, NamedSharding, P, SingleDeviceSharding


@pytest.fixture(autouse=True)
def world():
    ad.clear_caches()
    with ad.simulate(8):
        yield
    ad.clear_caches()


def grid() -> np.ndarray:
    return np.array(ad.devices()).reshape(2, 4)


def test_what_is_made_again_of_the_same_objects_is_the_same_object():
    names = ("x", "y")
    mesh = Mesh(grid(), names)
    spec = P("x", ("y",))
    assert Mesh(grid(), names) is mesh
    assert NamedSharding(mesh, spec) is NamedSharding(mesh, spec)
    assert NamedSharding(mesh, spec).spec is spec
    assert NamedSharding(mesh, spec).mesh is mesh
    entry = ("x", "y")
    assert P(entry, None) is P(entry, None)
    assert P(entry, None) == P(("x", "y"), None) != P(("y", "x"), None)


def test_other_devices_names_or_types_give_another_mesh():
    names = ("x", "y")
    mesh = Mesh(grid(), names)
    assert Mesh(grid()[::-1], names) != mesh
    assert Mesh(grid().T, names).shape == {"x": 4, "y": 2}
    assert Mesh(grid().reshape(4, 2), names).shape == {"x": 4, "y": 2}
    assert Mesh(grid(), ("y", "x")) != mesh
    assert Mesh(grid(), names, axis_types=AxisType.Explicit) != mesh
    changed = grid()
    changed[0, [1, 2]] = changed[0, [2, 1]]  # first and last stay
    assert Mesh(changed, names).device_ids.tolist() == [[0, 2, 1, 3], [4, 5, 6, 7]]
    assert Mesh(grid(), names) is mesh
    assert Mesh(grid().tolist(), names) is mesh


def test_an_array_of_devices_that_changes_after_a_mesh_was_made_of_it_gives_another_mesh():
    devices = grid()
    names = ("x", "y")
    first = Mesh(devices, names)
    devices[1, 1], devices[1, 2] = devices[1, 2], devices[1, 1]
    second = Mesh(devices, names)
    assert second.device_ids.tolist() == [[0, 1, 2, 3], [4, 6, 5, 7]]
    assert first.device_ids.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_bad_input_is_refused_each_time():
    names = ("x", "y")
    Mesh(grid(), names)
    wrong = grid()
    wrong[0, 1] = "device"
    for _ in range(2):
        with pytest.raises(TypeError, match=r"devices\[1\] is of type str"):
            Mesh(wrong, names)
        with pytest.raises(ValueError, match="devices and axis_names do not fit"):
            Mesh(grid(), ("x",))
        with pytest.raises(ValueError, match="nested tuple"):
            P((("x",),))
        with pytest.raises(TypeError, match="NamedSharding: spec is of type tuple"):
            NamedSharding(Mesh(grid(), names), ("x",))
    twice = grid()
    twice[0, 1] = twice[0, 2]
    with pytest.raises(ValueError, match="cpu:2"):
        Mesh(twice, names)


def test_lists_in_a_spec_are_read_each_time():
    entry = ["x"]
    first = P(entry)
    entry.append("y")
    assert P(entry) == P(("x", "y"))
    assert first == P("x")


def test_subclasses_of_mesh_and_sharding_are_made_as_such():
    class OwnSharding(NamedSharding):
        pass

    class OwnMesh(Mesh):
        def __init__(self, devices, names):
            super().__init__(devices, names)

    mesh = Mesh(grid(), ("x", "y"))
    spec = P("x")
    assert type(OwnSharding(mesh, spec)) is OwnSharding
    assert OwnSharding(mesh, spec) is not OwnSharding(mesh, spec)
    assert OwnSharding(mesh, spec) == NamedSharding(mesh, spec)
    assert OwnSharding(mesh, spec).shard_shape((8, 8)) == (4, 8)
    assert OwnSharding(mesh, spec).spec == spec


@pytest.mark.parametrize("ask", ["devices_indices_map", "addressable_devices_indices_map"])
def test_an_index_map_is_the_callers_own(ask):
    sharding = NamedSharding(Mesh(grid(), ("x", "y")), P("x", "y"))
    first = getattr(sharding, ask)((8, 16))
    expected = dict(first)
    assert type(first) is dict
    assert list(first) == ad.devices()
    assert first[ad.devices()[6]] == (slice(4, 8), slice(8, 12))
    first.clear()
    second = getattr(sharding, ask)((8, 16))
    assert second == expected
    second[ad.devices()[0]] = None
    assert getattr(sharding, ask)(global_shape=[8, 16]) == expected
    assert getattr(sharding, ask)((8, 16)) == expected
    assert getattr(sharding, ask)((8, 32)) != expected


def test_an_index_map_gives_the_collector_nothing_to_look_at():
    indices = NamedSharding(Mesh(grid(), ("x", "y")), P("x")).devices_indices_map((8, 16))
    assert not any(gc.is_tracked(index) for index in indices.values())
    assert len({id(index) for index in indices.values()}) == 2  # replicas share one


def test_a_device_set_is_the_callers_own():
    sharding = NamedSharding(Mesh(grid(), ("x", "y")), P("x"))
    x = ad.device_put(np.ones((8, 4)), sharding)
    sharding.device_set.clear()
    x.devices().clear()
    assert sharding.device_set == x.devices() == set(ad.devices())


def test_shard_shape_takes_what_it_took_and_refuses_what_it_refused():
    sharding = NamedSharding(Mesh(grid(), ("x", "y")), P("x", "y"))
    assert sharding.shard_shape((8, 16)) == sharding.shard_shape([8, 16]) == (4, 4)
    assert sharding.shard_shape(global_shape=(np.int64(8), 16)) == (4, 4)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"global_shape\[0\]"):
            sharding.shard_shape((True, 16))
        with pytest.raises(ad.errors.IndivisibleError, match="dimension 0 of size 7"):
            sharding.shard_shape((7, 16))
        with pytest.raises(ValueError, match="64 bits"):
            sharding.shard_shape((1 << 70, 16))
        with pytest.raises(TypeError):
            sharding.shard_shape((8, 16), 3)
        with pytest.raises(TypeError):
            NamedSharding.shard_shape(ad.devices()[0], (8, 16))


def test_equality_and_hash_of_values():
    mesh = Mesh(grid(), ("x", "y"))
    device, other = ad.devices()[:2]
    pairs = [
        (device, ad.devices()[0], other),
        (mesh, copy.copy(mesh), Mesh(grid(), ("a", "b"))),
        (P("x"), pickle.loads(pickle.dumps(P("x"))), P("x", None)),
        (NamedSharding(mesh, P("x")), NamedSharding(mesh, P(["x"])), NamedSharding(mesh, P("y"))),
        (SingleDeviceSharding(device), SingleDeviceSharding(device), SingleDeviceSharding(other)),
    ]
    for value, same, different in pairs:
        assert value == same
        assert hash(value) == hash(same)
        assert (value != same) is False
        assert value != different
        assert (value == different) is False
        assert value != "x"
        assert value.__eq__("x") is NotImplemented
        with pytest.raises(TypeError, match="not supported"):
            value < same  # noqa: B015


def test_a_derived_class_keeps_its_own_equality_and_hash():
    class Own(NamedSharding):
        def __eq__(self, other):
            return other == "me"

        def __hash__(self):
            return 7

    own = Own(Mesh(grid(), ("x", "y")), P("x"))
    assert own == "me"
    assert (own != "me") is False
    assert own != 3
    assert hash(own) == 7


def test_many_different_ones_take_no_more_places_than_there_are():
    meshes, shardings = [], []
    for size in range(1000):
        mesh = Mesh(np.roll(np.array(ad.devices()), size % 8), (f"axis {size}",))
        sharding = NamedSharding(mesh, P(f"axis {size}"))
        assert len(sharding.devices_indices_map((8 * size,))) == len(sharding.device_set) == 8
        meshes.append(weakref.ref(mesh))
        shardings.append(weakref.ref(sharding))
    del mesh, sharding
    assert 0 < sum(ref() is not None for ref in meshes) <= 32 + 2 * 128 + 2 * 32
    assert 0 < sum(ref() is not None for ref in shardings) <= 128 + 2 * 32
    ad.clear_caches()
    assert not any(ref() for ref in [*meshes, *shardings])


def test_a_world_that_ends_is_let_go_of():
    with ad.simulate(4) as client:
        mesh = Mesh(np.array(ad.devices()), ("x",))
        sharding = NamedSharding(mesh, P("x"))
        x = ad.device_put(np.arange(8), sharding)
        assert sharding.devices_indices_map((8,)) == x.sharding.devices_indices_map((8,))
        assert x.devices() == sharding.device_set
        assert (x + x).sharding.spec == P("x")
        refs = [weakref.ref(mesh), weakref.ref(sharding), weakref.ref(ad.devices()[0])]
    del client
    del mesh, sharding, x
    ad.clear_caches()
    gc.collect()
    assert [ref() for ref in refs] == [None, None, None]


def test_a_mesh_of_a_client_that_nobody_ends_is_not_kept():
    from artifex_devices import xla_client

    client = xla_client.make_cpu_client(num_devices=4)
    mesh = Mesh(np.array(client.devices()), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    assert sharding.spec == P("x")
    assert sharding.devices_indices_map((8,))[client.devices()[1]] == (slice(2, 4),)
    ref = weakref.ref(mesh)
    del mesh, sharding
    gc.collect()
    assert ref() is None


def test_the_index_of_one_device_is_that_of_the_map():
    plane = NamedSharding(Mesh(grid()[::-1], ("x", "y")), P("y", None, "x"))
    for device, index in plane.devices_indices_map((8, 3, 4)).items():
        assert plane.device_index(device, (8, 3, 4)) == index
    single = SingleDeviceSharding(ad.devices()[2])
    assert single.device_index(ad.devices()[2], (5,)) == (slice(None),)
    with pytest.raises(ValueError, match=r"device_index: .* does not include cpu:1; expected one of its 1 devices"):
        single.device_index(ad.devices()[1], (5,))
    with pytest.raises(TypeError, match="device is of type int"):
        plane.device_index(3, (8, 3, 4))
    with pytest.raises(ad.errors.IndivisibleError):
        plane.device_index(ad.devices()[0], (7, 3, 4))


def test_a_million_devices_are_planned_for_without_looking_at_each():
    with ad.simulate(1 << 20, compile_only=True):
        mesh = ad.make_mesh((1024, 1024), ("x", "y"))
        devices = ad.make_mesh((4,), ("z",)).devices
        rows = NamedSharding(mesh, P(("x", "y")))
        plane = NamedSharding(mesh, P("x", "y"))
        shape = (1 << 20, 1 << 20)
        assert rows.device_index(devices[3], shape) == (slice(3, 4), slice(None))
        assert plane.device_index(devices[3], shape) == (slice(0, 1024), slice(3072, 4096))
        assert rows.shard_shape(shape) == (1, 1 << 20)
        assert not rows.is_equivalent_to(plane, 2)
        assert rows.is_equivalent_to(NamedSharding(mesh, P(("x", "y"), None)), 2)
        assert repr(mesh) == "Mesh(axis_sizes=(1024, 1024), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))"
