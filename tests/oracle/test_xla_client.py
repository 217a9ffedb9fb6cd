# SPDX-License-Identifier: Apache-2.0
"""Clients, devices and device lists beside jaxlib's own objects, where JAX 0.10.2 still has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from artifex_devices import xla_client as our_client
from both import error_agrees, outcome
from jaxlib import xla_client as jax_client


class Side:
    """One library's module, with two clients of 8 devices."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.client = module.make_cpu_client(num_devices=8)
        self.other = module.make_cpu_client(num_devices=8)
        self.devices = self.client.devices()
        self.DeviceList = module.DeviceList

    def ids(self, value: Any) -> Any:
        if isinstance(value, type(self.devices[0])):
            return ("device", value.id, str(value), repr(value))
        if isinstance(value, self.DeviceList):
            return ("devices", [device.id for device in value])
        if isinstance(value, tuple | list):
            return (type(value).__name__, [self.ids(item) for item in value])
        return value


@pytest.fixture(scope="module")
def sides() -> tuple[Side, Side]:
    return Side(our_client), Side(jax_client)


def assert_agree(sides: tuple[Side, Side], question: Callable[[Side], Any]) -> None:
    (ours, our_error), (theirs, jax_error) = (outcome(lambda side=side: side.ids(question(side))) for side in sides)
    if jax_error is None:
        assert our_error is None, f"JAX gives {theirs!r}, ours raises {our_error!r}"
        assert ours == theirs
    else:
        assert our_error is not None, f"JAX raises {jax_error!r}, ours gives {ours!r}"
        assert error_agrees(our_error, jax_error), f"JAX raises {jax_error!r}, ours {our_error!r}"


CLIENT = {
    "devices": lambda s: s.client.devices(),
    "local_devices": lambda s: s.client.local_devices(),
    "a new list each time": lambda s: s.client.devices() is s.client.devices(),
    "the same objects": lambda s: s.client.devices()[3] is s.client.devices()[3],
    "device_count": lambda s: s.client.device_count(),
    "local_device_count": lambda s: s.client.local_device_count(),
    "platform": lambda s: s.client.platform,
    "platform_version is text": lambda s: type(s.client.platform_version),
    "process_index": lambda s: s.client.process_index(),
    "host_id": lambda s: s.client.host_id(),
    "no arrays": lambda s: s.other.live_arrays(),
    "no buffers": lambda s: s.other.live_buffers(),
    "device 0": lambda s: s.client.device_from_local_hardware_id(0),
    "device 7": lambda s: s.client.device_from_local_hardware_id(7),
    "device 8": lambda s: s.client.device_from_local_hardware_id(8),
    "device -1": lambda s: s.client.device_from_local_hardware_id(-1),
    "heap_profile": lambda s: type(s.client.heap_profile()),
    **{
        f"layout of rank {rank}": lambda s, rank=rank: str(
            s.client.get_default_layout(np.dtype("float32"), range(1, rank + 1), s.devices[1])
        )
        for rank in range(4)
    },
    "layout of a size alone": lambda s: s.client.get_default_layout(np.dtype("int8"), 2, s.devices[1]),
    "device a": lambda s: s.client.device_from_local_hardware_id("a"),
}
DEVICE = {
    **{
        name: lambda s, name=name: getattr(s.devices[5], name)
        for name in ("id", "host_id", "process_index", "platform", "device_kind", "local_hardware_id")
    },
    "client": lambda s: s.devices[5].client is s.client,
    "equal": lambda s: s.devices[5] == s.client.devices()[5],
    "of another client": lambda s: s.devices[5] == s.other.devices()[5],
    "hash": lambda s: hash(s.devices[5]) == hash(s.client.devices()[5]),
    "text": lambda s: s.devices[5],
    "an unknown name": lambda s: s.devices[5].nothing,
    "assigned": lambda s: setattr(s.devices[5], "id", 3),
    "stream": lambda s: s.devices[5].get_stream_for_external_ready_events(),
}


@pytest.mark.parametrize("question", CLIENT.values(), ids=CLIENT)
def test_client(sides, question) -> None:
    assert_agree(sides, question)


@pytest.mark.parametrize("question", DEVICE.values(), ids=DEVICE)
def test_device(sides, question) -> None:
    assert_agree(sides, question)


LISTS = {
    "all": lambda s: s.DeviceList(tuple(s.devices)),
    "one": lambda s: s.DeviceList((s.devices[3],)),
    "some, in another order": lambda s: s.DeviceList((s.devices[6], s.devices[1], s.devices[4])),
}
SLICES = (slice(None), slice(1, 3), slice(None, None, -1), slice(5, 1), slice(None, None, 2), slice(-2, None))
OF_A_LIST = {
    "itself": lambda s, x: x,
    "len": lambda s, x: len(x),
    "iter": lambda s, x: list(iter(x)),
    "reversed": lambda s, x: list(reversed(x)),
    "repr": lambda s, x: repr(x),
    "str": lambda s, x: str(x),
    **{
        f"[{index!r}]": lambda s, x, index=index: x[index]
        for index in (0, -1, 2, 3, 8, -9, True, np.int64(0), "a", 1.0, None, *SLICES)
    },
    "slice step 0": lambda s, x: x[::0],
    "contains": lambda s, x: [device in x for device in s.devices],
    "contains another": lambda s, x: s.other.devices()[3] in x,
    "is_fully_addressable": lambda s, x: x.is_fully_addressable,
    "addressable_device_list": lambda s, x: x.addressable_device_list,
    "addressable is itself": lambda s, x: x.addressable_device_list is x,
    "process_indices": lambda s, x: x.process_indices,
    "default_memory_kind": lambda s, x: x.default_memory_kind,
    "memory_kinds": lambda s, x: x.memory_kinds,
    "device_kind": lambda s, x: x.device_kind,
    "equal to the same": lambda s, x: (x == s.DeviceList(tuple(x)), hash(x) == hash(s.DeviceList(tuple(x)))),
    "equal to a tuple": lambda s, x: (x == tuple(x), x != tuple(x)),
    "equal to other order": lambda s, x: x == s.DeviceList(tuple(reversed(x))),
    "equal to another client's": lambda s, x: x == s.DeviceList(tuple(s.other.devices()[d.id] for d in x)),
    "a key": lambda s, x: {x: 1}[s.DeviceList(tuple(x))],
    "less": lambda s, x: x < x,
    "plus": lambda s, x: x + x,
    "assigned": lambda s, x: setattr(x, "device_kind", "gpu"),
    "item assigned": lambda s, x: x.__setitem__(0, s.devices[0]),
    "an unknown name": lambda s, x: x.nothing,
}


@pytest.mark.parametrize("made", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("question", OF_A_LIST.values(), ids=OF_A_LIST)
def test_device_list(sides, made, question) -> None:
    assert_agree(sides, lambda side: question(side, made(side)))


@pytest.mark.parametrize("arguments", [(), (1,), ("cpu:0",), (iter(()),)])
def test_no_device_list_of(sides, arguments) -> None:
    assert_agree(sides, lambda side: side.DeviceList(*arguments))


def test_shardings_tell_the_list_as_jax_does(sides) -> None:
    import artifex_devices as ad
    from both import jax

    for side, top, sharding in zip(sides, (ad, jax), (ad, jax.sharding), strict=True):
        mesh = sharding.Mesh(np.array(side.devices).reshape(2, 4), ("x", "y"))
        cut = sharding.NamedSharding(mesh, sharding.PartitionSpec("y"))
        assert mesh._flat_devices_tuple == tuple(side.devices)
        for listed in (cut._internal_device_list, mesh._internal_device_list):
            assert isinstance(listed, side.DeviceList)
            assert listed == side.DeviceList(tuple(side.devices))
        placed = top.device_put(np.ones(3, np.float32), side.devices[2])
        assert side.ids(placed.sharding._internal_device_list) == ("devices", [2])


def test_live_arrays_are_of_the_client(sides) -> None:
    import artifex_devices as ad
    from both import jax

    for side, top in zip(sides, (ad, jax), strict=True):
        placed = top.device_put(np.ones(3, np.float32), side.devices[2])
        del placed
        kept = top.device_put(np.ones((3, 1), np.float32), side.devices[2])
        assert [array.shape for array in side.client.live_arrays()] == [(3, 1)]
        assert [array.shape for array in side.client.live_buffers()] == [(3, 1)]
        assert side.other.live_arrays() == []
        del kept


def test_host_buffer_semantics_have_jaxlibs_names_and_values() -> None:
    ours, theirs = our_client.HostBufferSemantics, jax_client.HostBufferSemantics
    assert [(m.name, m.value, str(m)) for m in ours] == [(m.name, m.value, str(m)) for m in theirs]


MAKE = {
    "nothing": {"num_devices": 2},
    "all of one process": {"num_devices": 2, "node_id": 0, "num_nodes": 1, "asynchronous": False},
    "timeouts": {"num_devices": 2, "get_local_topology_timeout_minutes": 3, "get_global_topology_timeout_minutes": 5},
    "no devices": {"num_devices": 0},
    "text": {"num_devices": "three"},
    "float": {"num_devices": 2.0},
    "asynchronous is not a bool": {"num_devices": 2, "asynchronous": 1},
    "asynchronous is None": {"num_devices": 2, "asynchronous": None},
    "an unknown argument": {"num_device": 2},
}


@pytest.mark.parametrize("arguments", MAKE.values(), ids=MAKE)
def test_make_cpu_client(arguments) -> None:
    (ours, our_error), (theirs, jax_error) = (
        outcome(lambda module=module: module.make_cpu_client(**arguments).device_count())
        for module in (our_client, jax_client)
    )
    if arguments.get("num_devices") == 0:  # JAX: a RuntimeError about its process index
        assert isinstance(our_error, ValueError)
        assert jax_error is not None
        return
    assert ours == theirs
    assert type(our_error) is type(jax_error)
