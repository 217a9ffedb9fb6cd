# SPDX-License-Identifier: Apache-2.0
"""GpuAllocatorConfig: its fields are checked, and on a CPU client they do what they say."""

import copy
import dataclasses
import enum
import gc
import math
import pickle
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.xla_client import GpuAllocatorConfig, make_cpu_client

Kind = GpuAllocatorConfig.Kind
MIB = 2**20


def test_the_kinds():
    assert issubclass(Kind, enum.IntEnum)
    assert [(kind.name, int(kind)) for kind in Kind] == [("DEFAULT", 0), ("PLATFORM", 1), ("BFC", 2), ("CUDA_ASYNC", 3)]
    assert Kind.__qualname__ == "GpuAllocatorConfig.Kind"


def test_defaults_and_fields():
    config = GpuAllocatorConfig()
    assert dataclasses.astuple(config) == (Kind.DEFAULT, 0.75, False, 0)
    config = GpuAllocatorConfig(Kind.BFC, 1, True, 7)
    assert (config.kind, config.memory_fraction, config.preallocate, config.collective_memory_size) == (2, 1.0, True, 7)
    assert type(config.memory_fraction) is float
    assert GpuAllocatorConfig(kind=2).kind is Kind.BFC
    assert GpuAllocatorConfig(memory_fraction=np.float32(0.5)) == GpuAllocatorConfig(memory_fraction=0.5)
    assert "memory_fraction=0.75" in repr(GpuAllocatorConfig())


def test_it_is_frozen_hashable_and_can_be_pickled():
    config = GpuAllocatorConfig(Kind.PLATFORM, 0.5)
    with pytest.raises(AttributeError):
        config.memory_fraction = 0.6
    assert len({config, GpuAllocatorConfig(Kind.PLATFORM, 0.5), GpuAllocatorConfig()}) == 2
    assert pickle.loads(pickle.dumps(config)) == copy.copy(config) == config
    with pytest.raises(ValueError, match="memory_fraction is 2"):
        dataclasses.replace(config, memory_fraction=2.0)


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.0000001, math.nan, math.inf, -math.inf, 10**400, -(10**400)])
def test_fractions_out_of_range(fraction):
    with pytest.raises(ValueError, match=r"memory_fraction is .*; expected a number greater than 0 and at most 1"):
        GpuAllocatorConfig(memory_fraction=fraction)


@pytest.mark.parametrize("size", [-1, -(2**80), 2**63])
def test_sizes_out_of_range(size):
    with pytest.raises(ValueError, match="collective_memory_size is"):
        GpuAllocatorConfig(collective_memory_size=size)


@pytest.mark.parametrize("kind", [-1, 4, 2**70])
def test_kinds_out_of_range(kind):
    with pytest.raises(ValueError, match=r"kind is .*; expected one of 0 \(DEFAULT\)"):
        GpuAllocatorConfig(kind=kind)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", True),
        ("kind", "BFC"),
        ("kind", None),
        ("kind", 2.0),
        ("memory_fraction", True),
        ("memory_fraction", "0.5"),
        ("memory_fraction", 1j),
        ("preallocate", 1),
        ("preallocate", None),
        ("collective_memory_size", True),
        ("collective_memory_size", 1.0),
        ("collective_memory_size", None),
    ],
)
def test_types(field, value):
    with pytest.raises(TypeError, match=rf"GpuAllocatorConfig: {field} is .* \({type(value).__name__}\), expected"):
        GpuAllocatorConfig(**{field: value})


def test_all_that_is_wrong_is_named():
    with pytest.raises(TypeError, match=r"kind is .*memory_fraction is .*preallocate is .*collective_memory_size is"):
        GpuAllocatorConfig("a", "b", "c", "d")
    with pytest.raises(ValueError, match=r"memory_fraction is .*; collective_memory_size is -1"):
        GpuAllocatorConfig(memory_fraction=0.0, collective_memory_size=-1)


def in_child(code):
    """Runs code in a process of its own: what is taken up front stays there."""
    start = """
import os
import numpy as np
import artifex_devices as ad
from artifex_devices.xla_client import GpuAllocatorConfig, make_cpu_client
Kind, MIB = GpuAllocatorConfig.Kind, 2**20
"""
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


class TestClient:
    """What a CPU client makes of it."""

    @pytest.mark.parametrize("fraction", [1.0, 0.25])
    def test_the_fraction_becomes_the_limit(self, fraction):
        devices = make_cpu_client(
            num_devices=4, allocator_config=GpuAllocatorConfig(memory_fraction=fraction)
        ).devices()
        for device in devices:
            assert device.memory_stats()["bytes_limit"] == int(device.memory_bytes * fraction)

    def test_the_limit_holds(self):
        client = make_cpu_client(num_devices=1, allocator_config=GpuAllocatorConfig(memory_fraction=1e-9))
        device = client.devices()[0]
        limit = device.memory_stats()["bytes_limit"]
        assert 0 < limit < 1000
        with pytest.raises(MemoryError, match=f"limit {limit} bytes"):
            ad.device_put(np.ones(limit + 1, np.uint8), device)

    def test_the_client_tells_its_configuration(self):
        config = GpuAllocatorConfig(Kind.BFC, 0.125, False, 12345)
        client = make_cpu_client(num_devices=1, allocator_config=config)
        assert client.allocator_config == config
        assert client.allocator_config.kind is Kind.BFC
        assert make_cpu_client(num_devices=1).allocator_config is None

    def test_cuda_async_is_refused(self):
        with pytest.raises(
            ValueError,
            match=r"make_cpu_client: .*the allocator kind CUDA_ASYNC requires CUDA; expected DEFAULT, BFC or PLATFORM",
        ):
            make_cpu_client(allocator_config=GpuAllocatorConfig(Kind.CUDA_ASYNC))

    def test_platform_keeps_nothing_to_preallocate(self):
        with pytest.raises(ValueError, match="PLATFORM caches no memory"):
            make_cpu_client(allocator_config=GpuAllocatorConfig(Kind.PLATFORM, preallocate=True))

    @pytest.mark.parametrize("config", [1, "BFC", Kind.BFC, {}])
    def test_another_type_is_refused(self, config):
        with pytest.raises(TypeError, match="allocator_config is"):
            make_cpu_client(allocator_config=config)

    @pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
    @pytest.mark.parametrize("elements", [10, 3 * MIB])
    def test_platform_takes_memory_from_the_system_and_frees_it_at_once(self, elements, kind, settled):
        client = make_cpu_client(num_devices=1, allocator_config=GpuAllocatorConfig(Kind.PLATFORM))
        device = client.devices()[0]
        memory = device.memory(kind)
        before = memory.stats()
        x = ad.device_put(np.ones(elements, np.uint8), ad.SingleDeviceSharding(device, memory_kind=kind))
        pages = -(-elements // 4096) * 4096
        assert memory.stats()["pool_bytes"] == before["pool_bytes"] + pages
        assert np.asarray(x).sum() == elements
        del x
        gc.collect()
        after = memory.stats()
        assert after["pool_bytes"] == before["pool_bytes"]
        assert after["pool_bytes_cached"] == 0

    @pytest.mark.parametrize("kind", [Kind.DEFAULT, Kind.BFC])
    def test_bfc_keeps_freed_memory(self, kind, settled):
        ad.clear_caches()
        device = make_cpu_client(num_devices=1, allocator_config=GpuAllocatorConfig(kind)).devices()[0]
        x = ad.device_put(np.ones(3 * MIB, np.uint8), device)
        del x
        gc.collect()
        assert device.memory_stats()["pool_bytes_cached"] >= 3 * MIB

    def test_preallocated_memory_is_used_before_the_systems(self):
        in_child("""
device = make_cpu_client(num_devices=1).devices()[0]
memory = device.default_memory()
before = memory.stats()
config = GpuAllocatorConfig(Kind.BFC, memory_fraction=64 * MIB / device.memory_bytes, preallocate=True)
client = make_cpu_client(num_devices=1, allocator_config=config)
taken = memory.stats()["pool_bytes_preallocated"]
assert abs(taken - 64 * MIB) <= 2 * MIB, taken
there = before["pool_bytes"] + taken
put = lambda size, value: ad.device_put(np.full(size * MIB, value, np.uint8), client.devices()[0])
x, y = put(16, 1), put(16, 2)
assert memory.stats()["pool_bytes"] == there, memory.stats()  # nothing more from the system
assert (np.asarray(x) == 1).all() and (np.asarray(y) == 2).all()
del x
z = put(12, 3)
assert memory.stats()["pool_bytes"] == there, memory.stats()
assert (np.asarray(z) == 3).all() and (np.asarray(y) == 2).all()
""")

    def test_preallocated_pages_are_resident_until_the_client_goes(self):
        in_child("""
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
device = make_cpu_client(num_devices=1).devices()[0]
before = resident()
config = GpuAllocatorConfig(memory_fraction=96 * MIB / device.memory_bytes, preallocate=True)
client = make_cpu_client(num_devices=1, allocator_config=config)
assert resident() - before > 90 * MIB, resident() - before
del client
assert resident() - before < 20 * MIB, resident() - before
assert device.default_memory().stats()["pool_bytes_preallocated"] == 0
""")

    def test_more_than_is_free_is_an_error_and_takes_nothing(self, settled):
        device = make_cpu_client(num_devices=1).devices()[0]
        before = device.default_memory().stats()["pool_bytes_preallocated"]
        with pytest.raises(MemoryError, match="cannot be preallocated on NUMA node 0: that is more than is free"):
            make_cpu_client(num_devices=1, allocator_config=GpuAllocatorConfig(memory_fraction=1.0, preallocate=True))
        assert device.default_memory().stats()["pool_bytes_preallocated"] == before

    def test_a_forked_child_uses_preallocated_memory(self):
        in_child("""
device = make_cpu_client(num_devices=1).devices()[0]
config = GpuAllocatorConfig(memory_fraction=64 * MIB / device.memory_bytes, preallocate=True)
client = make_cpu_client(num_devices=1, allocator_config=config)
x = ad.device_put(np.ones(4 * MIB, np.uint8), client.devices()[0])
child = os.fork()
if child == 0:
    y = ad.device_put(np.full(4 * MIB, 5, np.uint8), client.devices()[0])
    ok = np.asarray(x).sum() == 4 * MIB and np.asarray(y).sum() == 5 * 4 * MIB
    del x, y, client
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert np.asarray(x).sum() == 4 * MIB
""")
