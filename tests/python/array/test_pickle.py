# SPDX-License-Identifier: Apache-2.0
"""Pickles, copies and weak references of Arrays, devices, meshes, shardings and specs."""

import copy
import enum
import gc
import importlib
import pickle
import pkgutil
import sys
import weakref

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits, shardable_arrays
from hypothesis import given

X = np.arange(64, dtype=np.float32).reshape(8, 8)
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def again(value, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(value, protocol))


@given(shardable_arrays())
def test_every_array_comes_back_with_its_bits_and_its_sharding(placement):
    array = ad.device_put(placement.value, placement.sharding)
    for made in (again(array), copy.copy(array), copy.deepcopy(array)):
        assert_same_bits(made, placement.value)
        assert made.sharding == array.sharding
        assert made.committed
        array_bytes = array.on_device_size_in_bytes()
        assert made.on_device_size_in_bytes() == array_bytes


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_keeps_whether_it_was_committed(protocol, devices, named):
    for array, committed in [
        (ad.device_put(X), False),
        (ad.device_put(X, devices[0]), True),
        (ad.device_put(X, named("x")), True),
    ]:
        made = again(array, protocol)
        assert (made.committed, made.sharding) == (committed, array.sharding)
        assert_same_bits(made, X)


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_a_copy_has_memory_of_its_own_and_stays_uncommitted(copier, devices, named):
    for array in (ad.device_put(X), ad.device_put(X, devices[3]), ad.device_put(X, named("x", "y"))):
        made = copier(array)
        assert made is not array
        assert (made.committed, made.sharding) == (array.committed, array.sharding)
        pairs = zip(array.addressable_shards, made.addressable_shards, strict=True)
        assert not any(np.shares_memory(np.asarray(a.data), np.asarray(b.data)) for a, b in pairs)
        array.delete()
        assert_same_bits(made, X)


def test_a_copy_is_not_gathered(named, settled):
    array = ad.device_put(X, named("x", "y"))
    with ad.transfers.record() as report:
        copy.deepcopy({"a": [array, copy.copy(array)]})
    assert report.bytes("device-to-host") == 0


def test_an_array_twice_in_a_tree_is_one_array_in_its_deep_copy():
    array = ad.device_put(X)
    made = copy.deepcopy([array, array])
    assert made[0] is made[1]
    assert made[0] is not array


def test_a_copy_stays_in_the_world_of_its_source():
    with ad.simulate(4):
        array = ad.device_put(X, ad.devices()[3])
    made = copy.deepcopy(array)
    assert made.sharding == array.sharding
    assert_same_bits(made, X)


def test_protocol_5_hands_the_memory_over_without_a_copy(devices):
    array = ad.device_put(X, devices[1])
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    assert len(data) < X.nbytes + 400
    assert np.shares_memory(np.frombuffer(buffers[0].raw(), np.float32), np.asarray(array))
    made = pickle.loads(data, buffers=buffers)
    assert_same_bits(made, X)
    assert made.devices() == {devices[1]}
    assert not np.shares_memory(np.asarray(made), np.asarray(array))


def test_ml_dtypes_are_pickled(named):
    value = X.astype(ml_dtypes.bfloat16)
    assert_same_bits(again(ad.device_put(value, named("x"))), value)


def test_a_pickle_names_all_devices_that_are_missing(named, devices):
    data = pickle.dumps(ad.device_put(X, named("x", "y")))
    one = pickle.dumps(devices[5])
    with ad.simulate(6):
        with pytest.raises(ValueError, match=r"cpu:6, cpu:7 are not here; expected cpu:0 to cpu:5.*simulate\(8\)"):
            pickle.loads(data)
        assert pickle.loads(one) is ad.devices()[5]
    with ad.simulate(2), pytest.raises(ValueError, match=r"device cpu:5 is not here; expected cpu:0 to cpu:1"):
        pickle.loads(one)


def test_a_huge_mesh_that_is_missing_gives_a_short_error():
    with ad.simulate(4096):
        data = pickle.dumps(ad.Mesh(ad.devices(), "x"))
        assert pickle.loads(data) is ad.Mesh(ad.devices(), "x")
    assert len(data) < 8 * 4096 + 1000
    with pytest.raises(ValueError, match=r"cpu:8, cpu:9, .*cpu:15, \.\.\. \(4088 in all\) are not here"):
        pickle.loads(data)


def test_devices_are_looked_up_in_the_world_that_is_current_when_loading(devices):
    data = pickle.dumps(devices[1])
    assert pickle.loads(data) is devices[1]
    with ad.simulate(2):
        assert pickle.loads(data) is ad.devices()[1]
        inner = pickle.dumps(ad.devices()[1])
    assert pickle.loads(inner) is devices[1]


def test_meshes_are_one_object_again(grid, line):
    for mesh in (grid, line, ad.Mesh(np.array(ad.devices()).reshape(8, 1), ("x", "y"), (ad.AxisType.Explicit,) * 2)):
        assert again(mesh) is mesh
    data = pickle.dumps(grid)
    with ad.simulate(8):
        assert pickle.loads(data) is not grid
        assert pickle.loads(data) == ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
    empty = ad.Mesh(np.empty(0, object), "x")
    assert again(empty) == empty


@pytest.mark.parametrize("memory_kind", [None, "device", "pinned_host", "unpinned_host"])
def test_shardings_keep_everything(memory_kind, grid, devices):
    for sharding in (
        ad.NamedSharding(grid, ad.P("x", None, ("y",)), memory_kind=memory_kind),
        ad.NamedSharding(grid, ad.P("y"), memory_kind=memory_kind, uneven="last-short"),
        ad.SingleDeviceSharding(devices[2], memory_kind=memory_kind),
    ):
        made = again(sharding)
        assert made == sharding
        assert hash(made) == hash(sharding)
        assert made.memory_kind == sharding.memory_kind
        assert getattr(made, "uneven", None) == getattr(sharding, "uneven", None)
        assert repr(made) == repr(sharding)


def test_specs_and_abstract_meshes_come_back():
    spec = ad.P("x", None, ("y", "z"), ad.P.UNCONSTRAINED)
    assert again(spec) == spec
    assert again(spec)[3] is ad.P.UNCONSTRAINED
    mesh = ad.AbstractMesh((2, 4), ("x", "y"), (ad.AxisType.Explicit, ad.AxisType.Auto))
    assert again(mesh) == mesh
    assert again(mesh).axis_types == mesh.axis_types


def test_axis_names_of_other_types_come_back(devices):
    mesh = ad.Mesh(np.array(devices).reshape(2, 4), (("a", 1), 2.5))
    assert again(mesh) is mesh
    assert again(ad.NamedSharding(mesh, ad.P(2.5))) == ad.NamedSharding(mesh, ad.P(2.5))


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy])
def test_what_never_changes_is_its_own_copy(copier, grid):
    with ad.simulate(2):
        inner = ad.devices()[1]
    sharding = ad.NamedSharding(grid, ad.P("x"))
    for value in (inner, grid, sharding, ad.SingleDeviceSharding(inner)):
        assert copier(value) is value
    spec = ad.P("x", "y")
    assert copier(spec) == spec


def test_a_deleted_array_is_neither_pickled_nor_copied():
    array = ad.device_put(X)
    array.delete()
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(RuntimeError, match="deleted"):
            use(array)


@pytest.mark.parametrize(
    "arguments",
    [
        ("cpu", -1),
        ("gpu", 0),
        ("cpu", 2**62),
    ],
)
def test_a_forged_pickle_of_a_device_is_an_error(arguments):
    with pytest.raises(ValueError, match="not here"):
        ad.unpickle.device(*arguments)


def test_weak_references_end_with_their_object(devices):
    mesh = ad.Mesh(np.array(devices).reshape(4, 2), ("weak", "reference"))
    sharding = ad.NamedSharding(mesh, ad.P("weak"))
    array = ad.device_put(X, sharding)
    references = [weakref.ref(value) for value in (array, mesh, sharding)]
    assert [reference() for reference in references] == [array, mesh, sharding] or references[0]() is array
    assert weakref.ref(devices[0])() is devices[0]
    del array, sharding, mesh
    ad.clear_caches()  # the mesh and the sharding are kept for the next call
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_weak_dictionaries_by_device_mesh_and_sharding(grid, devices):
    table: weakref.WeakKeyDictionary[object, str] = weakref.WeakKeyDictionary()
    sharding = ad.NamedSharding(grid, ad.P("x"))
    table[grid], table[sharding], table[devices[0]] = "mesh", "sharding", "device"
    assert [table[grid], table[sharding], table[devices[0]]] == ["mesh", "sharding", "device"]


def enums_of_this_library():
    for module in pkgutil.walk_packages(ad.__path__, "artifex_devices."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, open_classes = [], [enum.Enum]
    while open_classes:
        for cls in open_classes.pop().__subclasses__():
            open_classes.append(cls)
            if cls.__module__.startswith("artifex_devices") and len(cls) > 0:
                found.append(cls)
    return found


# Enum.__reduce_ex__ of the supported Pythons.
REDUCES = {
    "3.11.0 to 3.11.3": lambda self, protocol: (getattr, (self.__class__, self._name_)),
    "others": lambda self, protocol: (self.__class__, (self._value_,)),
}


def test_members_of_enums_are_pickled_alike_by_every_python(monkeypatch):
    members = [member for cls in enums_of_this_library() for member in cls]
    assert {ad.AxisType.Auto, ad.memory.Space.Host, ad.device_manager.DeviceType.CPU} <= set(members)
    for member in members:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            written = set()
            for reduce in REDUCES.values():
                monkeypatch.setattr(enum.Enum, "__reduce_ex__", reduce)
                written.add(pickle.dumps(member, protocol))
            assert len(written) == 1, (member, protocol)
            assert pickle.loads(*written) is member
            assert b"getattr" not in written.pop()
    assert copy.deepcopy(members) == copy.copy(members) == members


def test_ctrl_c_comes_out_of_a_pickle_as_it_is(named):
    """Pickle turns each error of a look-up of a name into a PicklingError, so no look-up may run Python code."""
    array = ad.device_put(X, named("x", None))
    pickle.dumps(array)  # what is imported on first use is imported
    calls = 0

    def interrupt(frame, event, argument):
        nonlocal left, calls
        if event == "call":
            calls += 1
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    for moment in range(1, 100):
        calls, left = 0, moment
        sys.setprofile(interrupt)
        try:
            pickle.dumps(array)
        except KeyboardInterrupt:
            continue
        finally:
            sys.setprofile(None)
        break
    assert calls < moment  # the last one ran to its end
