# SPDX-License-Identifier: Apache-2.0
"""Clients of one's own: their devices, Arrays, memory and end."""

from __future__ import annotations

import copy
import gc
import inspect
import re
import subprocess
import sys
import weakref
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client

ZERO_COPY = xla_client.HostBufferSemantics.ZERO_COPY
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def client():
    """A client of 4 devices."""
    with xla_client.make_cpu_client(num_devices=4) as made:
        yield made


def by_two(client: ad.Client) -> ad.NamedSharding:
    return ad.NamedSharding(ad.Mesh(np.array(client.devices()[1:3]), ("x",)), ad.P("x"))


def test_classes_are_those_of_the_package(client) -> None:
    assert xla_client.Client is ad.Client
    assert xla_client.Device is ad.Device
    assert type(client) is ad.Client
    assert type(client.devices()[0]) is type(ad.devices()[0])
    assert ad.xla_client is xla_client


def test_import_of_the_package_does_not_load_the_module() -> None:
    code = "import sys, artifex_devices; print([m for m in sys.modules if m.endswith(('xla_client', 'host_buffer'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_devices_are_as_many_as_in_the_world_with_ids_from_0() -> None:
    assert xla_client.make_cpu_client().device_count() == ad.device_count() == 8
    with ad.simulate(3):
        client = xla_client.make_cpu_client()
    assert [device.id for device in client.devices()] == [0, 1, 2]
    assert client.devices() == client.local_devices()
    assert (client.device_count(), client.local_device_count()) == (3, 3)


def test_clients_are_independent(client) -> None:
    other = xla_client.make_cpu_client(num_devices=4)
    assert client.devices()[0] != other.devices()[0] != ad.devices()[0]
    assert client.devices()[0] == client.devices()[0]
    assert client.devices()[0].client is client
    assert ad.devices(client) == client.devices()
    client.buffer_from_pyval(X)
    kept = client.buffer_from_pyval(X)
    assert [x is kept for x in client.live_arrays()] == [True]
    assert client.live_buffers() == client.live_arrays()
    assert other.live_arrays() == []
    assert client.devices()[0].memory_stats()["bytes_in_use"] == 24
    assert other.devices()[0].memory_stats()["bytes_in_use"] == 0
    with pytest.raises(ValueError, match="world"):
        ad.Mesh(np.array([client.devices()[0], other.devices()[1]]), ("x",))


def test_what_a_client_says_of_itself(client) -> None:
    assert client.platform == "cpu"
    assert re.fullmatch(
        r"artifex_devices 0\.\d+\.\d+, (GCC|Clang) \d+\.\d+\.\d+, hwloc 2\.\d+\.\d+, fmt \d+\.\d+\.\d+",
        client.platform_version,
    )
    assert ad.__version__ in client.platform_version
    assert (client.process_index(), client.host_id()) == (0, 0)
    assert client.machine_source == "live"
    assert repr(client) == "<Client of 4 cpu devices>"
    assert repr(xla_client.make_cpu_client(num_devices=1)) == "<Client of 1 cpu device>"


def test_live_buffers_of_devices(client, nothing_left) -> None:
    whole = ad.device_put(X, client.devices()[1])
    cut = ad.device_put(np.arange(4), by_two(client))
    everywhere = ad.device_put(np.ones(2), ad.NamedSharding(ad.Mesh(np.array(client.devices()), ("x",)), ad.P()))
    buffers = [device.live_buffers() for device in client.devices()]
    assert [len(row) for row in buffers] == [1, 3, 2, 1]
    assert buffers[1][0] is whole
    assert [np.asarray(row[-2]).tolist() for row in buffers[1:3]] == [[0, 1], [2, 3]]
    assert all(x.devices() == {device} for device, row in zip(client.devices(), buffers, strict=True) for x in row)
    everywhere.delete()
    del buffers
    assert [len(device.live_buffers()) for device in client.devices()] == [0, 2, 1, 0]
    part = client.devices()[2].live_buffers()[0]
    part.delete()
    assert cut.is_deleted()
    assert [len(device.live_buffers()) for device in client.devices()] == [0, 1, 0, 0]


def test_limits_below_zero_are_refused(client) -> None:
    device = client.devices()[0]
    device.set_bytes_limit(7)
    with pytest.raises(ValueError, match=r"^set_bytes_limit: limit is -1; expected a number of bytes, 0 or more"):
        device.set_bytes_limit(-1)
    assert device.bytes_limit == 7


def test_bytes_limit_is_none_without_a_limit() -> None:
    with ad.simulate(2) as world:
        device = world.devices()[0]
        assert device.bytes_limit is None
        device.set_bytes_limit(device.memory_bytes)  # what memory_stats reports without one, too
        assert device.bytes_limit == device.memory_bytes == device.memory_stats()["bytes_limit"]
        with ad.DeviceManager(ad.DeviceConfiguration(platform_priority=["cpu"], memory_fraction=0.5)):
            assert device.bytes_limit == device.memory_bytes // 2
            assert world.devices()[1].bytes_limit == device.memory_bytes // 2
        assert device.bytes_limit == device.memory_bytes
        assert world.devices()[1].bytes_limit is None


class TestBufferFromPyval:
    def test_places_on_the_first_device_or_the_one_asked_for(self, client) -> None:
        placed = client.buffer_from_pyval(X)
        assert placed.device() is client.devices()[0]
        there = client.buffer_from_pyval(X, client.devices()[2])
        assert there.device is client.devices()[2]
        for array in (placed, there):
            assert array.committed
            assert array.dtype == np.float32
            np.testing.assert_array_equal(np.asarray(array), X)

    @pytest.mark.parametrize("value", [3, 2.5, 1j, True, np.float32(2), np.arange(8)[::2], np.array(7)])
    def test_takes_numbers_and_any_strides(self, client, value) -> None:
        placed = client.buffer_from_pyval(value)
        assert placed.dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(np.asarray(placed), value)

    @pytest.mark.parametrize("semantics", [None, *list(xla_client.HostBufferSemantics)[:2]])
    def test_has_read_the_source_when_it_returns(self, client, semantics) -> None:
        source = np.zeros(1024)
        placed = client.buffer_from_pyval(source, host_buffer_semantics=semantics)
        source[:] = 1
        assert not np.asarray(placed).any()
        assert not np.shares_memory(np.asarray(placed), source)

    def test_zero_copy_shows_the_source_and_makes_it_read_only(self, client) -> None:
        source = np.arange(1024.0)
        placed = client.buffer_from_pyval(source, host_buffer_semantics=ZERO_COPY)
        assert placed.unsafe_buffer_pointer() == source.ctypes.data
        assert not source.flags.writeable

    def test_force_copy_wins_over_zero_copy(self, client) -> None:
        source = np.arange(1024.0)
        placed = client.buffer_from_pyval(source, force_copy=True, host_buffer_semantics=ZERO_COPY)
        assert placed.unsafe_buffer_pointer() != source.ctypes.data
        assert source.flags.writeable

    def test_an_array_moves_from_world_to_client_and_is_copied_if_asked(self, client) -> None:
        placed = client.buffer_from_pyval(ad.device_put(X), client.devices()[1])
        assert placed.device is client.devices()[1]
        np.testing.assert_array_equal(np.asarray(placed), X)
        assert client.buffer_from_pyval(placed, client.devices()[1]) is placed
        again = client.buffer_from_pyval(placed, client.devices()[1], force_copy=True)
        assert again.unsafe_buffer_pointer() != placed.unsafe_buffer_pointer()

    def test_without_a_device_an_array_goes_to_the_first(self, client) -> None:
        placed = client.buffer_from_pyval(X, client.devices()[1])
        assert client.buffer_from_pyval(placed).device is client.devices()[0]

    @pytest.mark.parametrize(
        "tree", [[1, 2], (1,), {"a": 1}, None, "text", object(), np.array(["a"])], ids=lambda tree: type(tree).__name__
    )
    def test_refuses_what_is_not_an_array(self, client, tree) -> None:
        with pytest.raises(TypeError):
            client.buffer_from_pyval(tree)

    def test_names_every_argument_of_a_wrong_type(self, client) -> None:
        with pytest.raises(TypeError) as caught:
            client.buffer_from_pyval(X, device=0, force_copy="no", host_buffer_semantics=2)
        for text in (
            "buffer_from_pyval",
            "(int), expected a Device or None",
            "(str), expected True or False",
            "(int), expected a HostBufferSemantics or None",
        ):
            assert text in str(caught.value)

    def test_errors_of_placing_have_its_name(self, client) -> None:
        with pytest.raises(TypeError, match=r"^buffer_from_pyval: a leaf of type str is not an array"):
            client.buffer_from_pyval("text")
        with pytest.raises(ValueError, match=r"^buffer_from_pyval: a masked array"):
            client.buffer_from_pyval(np.ma.masked_array([1], mask=[True]))
        client.close()
        with pytest.raises(RuntimeError, match=r"^buffer_from_pyval: the client of cpu:0 was closed"):
            client.buffer_from_pyval(X)

    def test_refuses_a_device_of_another_client(self, client) -> None:
        with pytest.raises(ValueError, match="another client"):
            client.buffer_from_pyval(X, ad.devices()[0])

    def test_limits_of_its_devices_hold(self, client) -> None:
        client.devices()[1].set_bytes_limit(20)
        with pytest.raises(MemoryError, match=r"^RESOURCE_EXHAUSTED: buffer_from_pyval: out of memory"):
            client.buffer_from_pyval(X, client.devices()[1])
        assert client.buffer_from_pyval(X, client.devices()[2]).nbytes == 24


class TestMakeCpuClient:
    def test_has_the_parameters_of_jaxlib(self) -> None:
        parameters = inspect.signature(xla_client.make_cpu_client).parameters
        assert {name: p.default for name, p in parameters.items() if name != "allocator_config"} == {
            "asynchronous": True,
            "distributed_client": None,
            "node_id": 0,
            "num_nodes": 1,
            "collectives": None,
            "num_devices": None,
            "get_local_topology_timeout_minutes": None,
            "get_global_topology_timeout_minutes": None,
            "transfer_server_factory": None,
        }

    def test_takes_what_makes_sense(self) -> None:
        client = xla_client.make_cpu_client(
            asynchronous=False,
            node_id=0,
            num_nodes=1,
            num_devices=np.int64(5),
            get_local_topology_timeout_minutes=2,
            get_global_topology_timeout_minutes=5,
        )
        assert client.device_count() == 5

    @pytest.mark.parametrize(
        ("arguments", "error", "texts"),
        [
            ({"num_devices": 0}, ValueError, ("num_devices is 0",)),
            ({"num_devices": -1, "node_id": -2}, ValueError, ("num_devices is -1", "node_id is -2")),
            ({"num_devices": 2**24 + 1}, ValueError, ("make_cpu_client", "num_devices")),
            ({"num_devices": 2**70}, ValueError, ("make_cpu_client", "num_devices")),
            ({"num_devices": "8", "asynchronous": 1}, TypeError, ("num_devices", "'8'", "asynchronous")),
            ({"num_devices": True}, TypeError, ("num_devices", "bool")),
            ({"num_devices": 2.0}, TypeError, ("num_devices", "float")),
            ({"get_local_topology_timeout_minutes": 0}, ValueError, ("get_local_topology_timeout_minutes is 0",)),
            ({"get_global_topology_timeout_minutes": "5"}, TypeError, ("get_global_topology_timeout_minutes",)),
            ({"node_id": None}, TypeError, ("node_id",)),
            ({"num_nodes": 0}, ValueError, ("num_nodes is 0",)),
            ({"node_id": 1}, ValueError, ("node_id is 1",)),
            ({"num_nodes": 2, "collectives": "gloo"}, NotImplementedError, ("num_nodes is 2", "collectives", "gloo")),
            ({"distributed_client": object()}, NotImplementedError, ("distributed_client",)),
            ({"transfer_server_factory": object()}, NotImplementedError, ("transfer_server_factory",)),
        ],
    )
    def test_refuses_the_rest(self, arguments: dict[str, Any], error: type[Exception], texts: tuple[str, ...]) -> None:
        with pytest.raises(error) as caught:
            xla_client.make_cpu_client(**arguments)
        for text in ("make_cpu_client", *texts):
            assert text in str(caught.value)

    def test_everything_that_needs_other_processes_is_listed_in_one_error(self) -> None:
        with pytest.raises(
            NotImplementedError,
            match=r"^make_cpu_client: num_nodes is 2; distributed_client is 'd' \(.*\); collectives is 'gloo' \(",
        ):
            xla_client.make_cpu_client(num_nodes=2, distributed_client="d", collectives="gloo")

    def test_without_asynchronous_every_copy_is_done_when_the_call_returns(self) -> None:
        client = xla_client.make_cpu_client(asynchronous=False, num_devices=2)
        source = client.buffer_from_pyval(np.arange(1 << 20), client.devices()[0])
        before = ad.config.async_copy_bytes
        ad.config.update("async_copy_bytes", 0)  # else copies of this size are not left to the background
        try:
            for _ in range(20):
                assert ad.device_put(source, client.devices()[1], may_alias=False).is_ready()
        finally:
            ad.config.update("async_copy_bytes", before)


class TestClose:
    def test_deletes_its_arrays_and_refuses_others(self) -> None:
        client = xla_client.make_cpu_client(num_devices=2)
        array = client.buffer_from_pyval(X)
        client.close()
        client.close()
        assert client.is_closed
        assert array.is_deleted()
        assert client.live_arrays() == []
        assert [device.memory_stats()["bytes_in_use"] for device in client.devices()] == [0, 0]
        assert repr(client) == "<Client of 2 cpu devices, closed>"
        for place in (lambda: client.buffer_from_pyval(X), lambda: ad.device_put(X, client.devices()[1])):
            with pytest.raises(RuntimeError, match=r"the client of cpu:\d was closed"):
                place()
        with pytest.raises(RuntimeError, match="closed"), client:
            pass

    def test_views_of_its_arrays_stay_readable(self) -> None:
        with xla_client.make_cpu_client(num_devices=1) as client:
            view = np.asarray(client.buffer_from_pyval(X))
        np.testing.assert_array_equal(view, X)

    def test_worlds_are_left_by_their_with_block(self) -> None:
        with pytest.raises(RuntimeError, match="open world"):
            ad.devices()[0].client.close()
        with ad.simulate(2) as world:
            x = ad.device_put(X)
            with pytest.raises(RuntimeError, match="open world"):
                world.close()
            assert not x.is_deleted()
        world.close()  # its block has ended
        assert x.is_deleted()

    def test_does_not_touch_other_clients(self, client) -> None:
        kept = client.buffer_from_pyval(X)
        xla_client.make_cpu_client(num_devices=4).close()
        assert not kept.is_deleted()

    def test_a_client_that_is_dropped_leaves_nothing(self) -> None:
        client = xla_client.make_cpu_client(num_devices=4)
        client.devices()
        ad.device_put(X, client.devices()[1])
        hash(by_two(client))
        gone = weakref.ref(client)
        del client
        ad.clear_caches()
        gc.collect()
        assert gone() is None

    def test_a_client_lives_as_long_as_what_is_on_it(self) -> None:
        array = xla_client.make_cpu_client(num_devices=2).buffer_from_pyval(X)
        gc.collect()
        assert array.device.client.live_arrays() == [array] or len(array.device.client.live_arrays()) == 1
        np.testing.assert_array_equal(np.asarray(array), X)


def test_defragment_frees_cached_memory(client, settled) -> None:
    kept = client.buffer_from_pyval(X)
    client.buffer_from_pyval(np.zeros(1 << 20))
    device = client.devices()[0]
    cached = device.memory_stats()["pool_bytes_cached"]
    assert cached >= 8 << 20
    assert client.defragment() is None
    # What stays is in chunks that other small Arrays of the process use.
    assert device.memory_stats()["pool_bytes_cached"] <= cached - (8 << 20)
    np.testing.assert_array_equal(np.asarray(kept), X)


def test_a_client_cannot_be_copied_or_pickled(client) -> None:
    with pytest.raises(TypeError):
        copy.copy(client)
