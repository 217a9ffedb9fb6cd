# SPDX-License-Identifier: Apache-2.0
"""Kinds of memory: their pages really differ, data moves between them bit by bit, each is counted by itself."""

import gc
import os
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client
from artifex_devices.testing import arrays
from hypothesis import given, settings
from hypothesis import strategies as st

KINDS = ("device", "pinned_host", "unpinned_host")
MIB = 2**20
ENOUGH = 64 * MIB  # that these tests lock at most


def has_capability(number):
    """Whether this process has one of Linux's capabilities: root in a container may lack some."""
    held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
    return bool(int(held.split()[1], 16) >> number & 1)


# A process that has CAP_IPC_LOCK may lock any amount, others RLIMIT_MEMLOCK.
CAP_IPC_LOCK = 14
_LIMIT = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
MAY_LOCK = has_capability(CAP_IPC_LOCK) or _LIMIT == resource.RLIM_INFINITY or _LIMIT >= ENOUGH
HAS_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
# What may not be locked is reported once in a process; children test that.
pytestmark = pytest.mark.filterwarnings("ignore:pinned_host. .* could not be locked in RAM")
needs_locks = pytest.mark.skipif(not MAY_LOCK, reason=f"this process may lock only {_LIMIT} bytes (ulimit -l)")


def single(kind, device=None):
    return ad.SingleDeviceSharding(device or ad.devices()[0], memory_kind=kind)


def address_of(array):
    return np.asarray(array.addressable_shards[0].data).ctypes.data


def mapping_of(address):
    """Flags and numbers (KiB) of the mapping that holds an address, as the kernel tells them."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    found, flags = {}, None
    for line in lines:
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            if flags is not None:
                break
            low, high = (int(part, 16) for part in head.split("-"))
            inside = low <= address < high
        elif inside and line.startswith("VmFlags:"):
            flags = set(line.split()[1:])
        elif inside and line.endswith("kB"):
            found[head[:-1]] = int(line.split()[1])
    assert flags is not None, hex(address)
    return flags, found


def stats(kind, device=None):
    return (device or ad.devices()[0]).memory(kind).stats()


@pytest.fixture
def world(settled):
    ad.clear_caches()
    with ad.simulate(4):
        yield ad.devices()
    ad.clear_caches()


class TestPages:
    """What the kernel says of the pages."""

    @pytest.mark.parametrize("elements", [16, 8 * MIB], ids=["small", "big"])
    @pytest.mark.parametrize("kind", ["device", "unpinned_host"])
    def test_other_kinds_are_not_locked(self, world, kind, elements):
        x = ad.device_put(np.ones(elements, np.uint8), single(kind))
        flags, numbers = mapping_of(address_of(x))
        assert "lo" not in flags
        assert numbers["Locked"] == 0

    @needs_locks
    @pytest.mark.parametrize("elements", [16, 8 * MIB], ids=["small", "big"])
    def test_pinned_pages_are_locked(self, world, elements):
        x = ad.device_put(np.ones(elements, np.uint8), single("pinned_host"))
        flags, numbers = mapping_of(address_of(x))
        assert "lo" in flags
        assert numbers["Locked"] * 1024 >= elements

    @pytest.mark.skipif(not HAS_HUGE_PAGES, reason="this kernel has no transparent huge pages")
    @pytest.mark.parametrize(("kind", "advised"), [("device", True), ("unpinned_host", False)])
    def test_huge_pages_are_advised_for_device_memory(self, world, kind, advised):
        x = ad.device_put(np.ones(8 * MIB, np.uint8), single(kind))
        assert ("hg" in mapping_of(address_of(x))[0]) is advised

    @needs_locks
    def test_pages_lose_their_lock_when_they_go_back_to_the_system(self, world):
        before = stats("pinned_host")["pool_bytes_locked"]
        x = ad.device_put(np.ones(4 * MIB, np.uint8), single("pinned_host"))
        assert stats("pinned_host")["pool_bytes_locked"] == before + 4 * MIB
        assert stats("pinned_host")["pool_bytes_not_locked"] == 0
        assert "locked in RAM" in x.describe()
        x.delete()
        assert stats("pinned_host")["pool_bytes_locked"] == before

    @needs_locks
    def test_cached_blocks_keep_their_lock_and_their_kind(self, world):
        x = ad.device_put(np.ones(4 * MIB, np.uint8), single("pinned_host"))
        address = address_of(x)
        del x
        gc.collect()
        assert stats("pinned_host")["pool_bytes_cached"] >= 4 * MIB
        for kind in ("device", "unpinned_host"):
            assert address_of(ad.device_put(np.ones(4 * MIB, np.uint8), single(kind))) != address
        assert address_of(ad.device_put(np.ones(4 * MIB, np.uint8), single("pinned_host"))) == address

    @needs_locks
    def test_small_arrays_lock_their_pages_only(self, world):
        before = stats("pinned_host")["pool_bytes_locked"]
        x = ad.device_put(np.ones(16, np.uint8), single("pinned_host"))
        assert stats("pinned_host")["pool_bytes_locked"] - before in (0, 4096)
        del x

    def test_clear_caches_trims_every_kind(self, world):
        before = [stats(kind)["pool_bytes_cached"] for kind in KINDS]
        kept = [ad.device_put(np.ones(2 * MIB, np.uint8), single(kind)) for kind in KINDS]
        del kept
        gc.collect()
        assert [stats(kind)["pool_bytes_cached"] - old for kind, old in zip(KINDS, before, strict=True)] == [
            2 * MIB
        ] * 3
        ad.clear_caches()
        assert [stats(kind)["pool_bytes_cached"] for kind in KINDS] == before


LIMITED = """
import os, resource, warnings
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import numpy as np
import artifex_devices as ad
ad.devices()
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)  # the limit does not hold for root
put = lambda n, kind="pinned_host": ad.device_put(
    np.arange(n, dtype=np.uint8), ad.SingleDeviceSharding(ad.devices()[0], memory_kind=kind))
stats = lambda: ad.devices()[0].memory("pinned").stats()
"""


# Kernels for aarch64 may have pages of 64 KiB, which are locked as a whole.
LARGE_PAGES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name) {
  if (name == _SC_PAGESIZE) return 65536;
  return ((long (*)(int))dlsym(RTLD_NEXT, "sysconf"))(name);
}
"""
COMPILER = shutil.which("cc")


def in_limited_child(code, **environment):
    """Runs code in a process that may lock 64 KiB."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED + code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


class TestLimit:
    """A process that may lock less than it places."""

    def test_what_does_not_fit_is_placed_and_said(self):
        in_limited_child("""
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    small = put(1000)
    assert not caught and "locked in RAM" in small.describe(), small.describe()
    big, again = put(4 << 20), put(3 << 20)
assert [w.category for w in caught] == [UserWarning], caught
text = str(caught[0].message)
for part in ("pinned_host", "4194304 bytes could not be locked", "65536 bytes (RLIMIT_MEMLOCK)", "ulimit -l"):
    assert part in text, text
assert np.array_equal(np.asarray(big), np.arange(4 << 20, dtype=np.uint8))
assert "not locked: the system refused 1 of 1 blocks (see ulimit -l)" in big.describe(), big.describe()
now = stats()
assert now["lock_limit_bytes"] == 65536 and now["pool_bytes_not_locked"] == 7 << 20, now
assert now["pool_bytes_locked"] == 4096 and now["bytes_in_use"] == (7 << 20) + 1000, now
""")

    def test_small_arrays_are_locked_page_by_page_up_to_the_limit(self):
        in_limited_child("""
warnings.simplefilter("ignore")
kept = [put(4096) for _ in range(40)]
now = stats()
assert 0 < now["pool_bytes_locked"] <= 65536, now
assert now["pool_bytes_not_locked"] >= 20 * 4096, now
locked = sum("locked in RAM" in x.describe() for x in kept)
assert 10 <= locked <= 16, locked
del kept
""")

    def test_cached_locks_make_room_for_new_ones(self):
        in_limited_child("""
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
warnings.simplefilter("error")
x = put(60000)
del x
x = put(50000)  # of another size class, cut from the same pages' neighbours
assert "locked in RAM" in x.describe()
assert stats()["pool_bytes_locked"] <= 65536
del x
assert "locked in RAM" in put(60000).describe()
""")

    @pytest.mark.skipif(COMPILER is None, reason="no C compiler")
    def test_pages_are_as_large_as_the_system_says(self, tmp_path):
        (tmp_path / "pages.c").write_text(LARGE_PAGES, encoding="utf-8")
        library = tmp_path / "pages.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", tmp_path / "pages.c", "-o", library], check=True)
        in_limited_child(
            """
warnings.simplefilter("ignore")
locked = lambda: next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmLck:"))
first, second = put(5000), put(20000)
assert (stats()["pool_bytes_locked"], locked()) == (65536, "64"), (stats(), locked())
del second
big = put(1 << 19)  # does not fit: pages that no block uses lose their locks
assert "not locked" in big.describe(), big.describe()
assert (stats()["pool_bytes_locked"], locked()) == (65536, "64"), (stats(), locked())
assert "locked in RAM" in first.describe()
""",
            LD_PRELOAD=str(library),
        )

    def test_other_kinds_do_not_warn(self):
        in_limited_child("""
warnings.simplefilter("error")
put(4 << 20, "device"), put(4 << 20, "unpinned_host")
""")

    def test_a_warning_as_error_leaves_nothing(self):
        in_limited_child("""
warnings.simplefilter("error")
try:
    put(4 << 20)
except UserWarning:
    assert ad.live_arrays() == [] and stats()["bytes_in_use"] == 0
else:
    raise AssertionError("no warning")
""")

    def test_a_forked_child_has_no_locks(self):
        in_limited_child("""
x = put(20000)
assert stats()["pool_bytes_locked"] > 0
child = os.fork()
if child == 0:
    ok = stats()["pool_bytes_locked"] == 0 and "not locked" in x.describe()
    ok = ok and np.array_equal(np.asarray(x), np.arange(20000, dtype=np.uint8))
    del x
    y = put(20000)
    ok = ok and "locked in RAM" in y.describe() and stats()["pool_bytes_locked"] > 0
    os._exit(0 if ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert "locked in RAM" in x.describe()
""")


class TestTransfers:
    """From kind to kind."""

    @settings(max_examples=40)
    @given(value=arrays(), path=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    def test_every_bit_comes_through(self, value, path):
        x = value
        for kind in path:
            x = ad.device_put(x, single(kind))
            assert x.sharding.memory_kind == kind
        got = np.asarray(x)
        assert got.dtype == value.dtype
        assert got.shape == value.shape
        assert got.tobytes() == value.tobytes()

    @pytest.mark.parametrize("shape", [(16, 4), (2048, 1024)], ids=["small", "big"])
    @pytest.mark.parametrize("target", KINDS)
    @pytest.mark.parametrize("source", KINDS)
    def test_another_kind_is_a_copy_and_the_same_kind_is_not(self, named, source, target, shape, nothing_left):
        value = np.random.default_rng(1).random(shape, np.float32)
        x = ad.device_put(value, named("x", memory_kind=source))
        with ad.transfers.record() as report:
            y = ad.device_put(x, x.sharding.with_memory_kind(target))
        y.block_until_ready()
        same = source == target
        assert (address_of(x) == address_of(y)) is same
        assert report.bytes("device-to-device") == (0 if same else value.nbytes)
        plan = ad.planner.plan_reshard(x.shape, x.dtype, x.sharding, y.sharding, way="copies")
        assert (plan.bytes_copied, plan.bytes_received) == ((0, 0) if same else (value.nbytes, 0))
        assert np.array_equal(np.asarray(y), value)
        if not same:
            x.delete()
            assert np.array_equal(np.asarray(y), value)

    def test_resharded_and_moved_at_once(self, named, nothing_left):
        value = np.arange(64 * 32, dtype=np.float64).reshape(64, 32)
        x = ad.device_put(value, named("x", "y"))
        for kind in KINDS:
            y = ad.device_put(x, named(None, ("y", "x"), memory_kind=kind))
            assert y.sharding.memory_kind == kind
            assert np.array_equal(np.asarray(y), value)
            assert all(shard.data.sharding.memory_kind == kind for shard in y.addressable_shards)

    def test_donation_between_kinds(self, named, nothing_left):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        y = ad.device_put(x, named("x", memory_kind="unpinned_host"), donate=True)
        assert x.is_deleted()
        assert np.asarray(y).sum() == 64

    def test_replicas_share_a_buffer_in_each_kind(self, world, nothing_left):
        mesh = ad.Mesh(np.array(world), ("x",))
        for kind in KINDS:
            x = ad.device_put(np.ones(1000, np.uint8), ad.NamedSharding(mesh, ad.P(), memory_kind=kind))
            assert len({address_of(x), *(np.asarray(s.data).ctypes.data for s in x.addressable_shards)}) == 1
            assert [stats(kind, device)["bytes_in_use"] for device in world] == [1000] * 4

    @pytest.mark.parametrize("size", [64, 512 * 1024], ids=["slabs", "blocks"])
    def test_devices_on_several_nodes(self, size, nothing_left):
        with ad.simulate("numa:2 core:2 pu:1"):
            mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 1), ("x", "y"))
            value = np.arange(2 * size, dtype=np.float64).reshape(2, size)
            x = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
            for kind in KINDS[1:]:
                for spec in (ad.P("x"), ad.P(), ad.P(None, "x")):
                    y = ad.device_put(x, ad.NamedSharding(mesh, spec, memory_kind=kind))
                    plan = ad.planner.plan_reshard(x.shape, x.dtype, x.sharding, y.sharding, way="copies")
                    if spec == ad.P("x"):
                        assert (plan.bytes_copied, plan.bytes_received) == (value.nbytes, 0)
                    assert np.array_equal(np.asarray(y), value)
                    assert np.array_equal(np.asarray(ad.device_put(y, x.sharding)), value)

    def test_host_data_under_may_alias_is_copied_where_pages_must_be_locked(self, world, nothing_left):
        source = np.ones(64)
        x = ad.device_put(source, single("pinned_host"), may_alias=True)
        assert source.flags.writeable
        source[:] = 2
        assert np.asarray(x).sum() == 64
        y = ad.device_put(source, single("unpinned_host"), may_alias=True)
        assert not source.flags.writeable
        assert address_of(y) == source.ctypes.data

    def test_parts_of_another_kind_are_refused(self, line, nothing_left):
        parts = [ad.device_put(np.ones(1), single("unpinned_host", device)) for device in ad.devices()]
        with pytest.raises(ValueError, match=r"arrays\[0\] is in unpinned_host memory; expected device"):
            ad.make_array_from_single_device_arrays((8,), ad.NamedSharding(line, ad.P("x")), parts)
        whole = ad.make_array_from_single_device_arrays(
            (8,), ad.NamedSharding(line, ad.P("x"), memory_kind="unpinned_host"), parts
        )
        assert whole.sharding.memory_kind == "unpinned_host"

    def test_arrays_from_callbacks_and_pickles_are_placed_as_asked(self, named, nothing_left):
        for kind in KINDS:
            x = ad.make_array_from_callback((4, 4), named("x", memory_kind=kind), lambda i: np.eye(4)[i])
            y = pickle.loads(pickle.dumps(x))
            assert x.sharding.memory_kind == y.sharding.memory_kind == kind
            assert np.array_equal(np.asarray(y), np.eye(4))


class TestSpace:
    """memory.Space, as jax.memory has it."""

    def test_a_tree_of_spaces(self, named, nothing_left):
        x = ad.device_put(np.arange(8.0), named("x"))
        placed = ad.device_put({"a": x, "b": np.ones(2)}, {"a": ad.memory.Space.Host, "b": ad.memory.Space.Device})
        assert placed["a"].sharding.memory_kind == "pinned_host"
        assert placed["b"].sharding.memory_kind == "device"

    def test_any_names_no_memory(self, nothing_left):
        with pytest.raises(ValueError, match=r"device_put: device is MemorySpace.Any, which names no memory"):
            ad.device_put(np.ones(2), ad.memory.Space.Any)


class TestOperations:
    """What functions do with kinds."""

    @pytest.mark.parametrize("kind", KINDS)
    def test_results_lie_in_the_kind_of_the_operands(self, named, kind, nothing_left):
        value = np.arange(64.0).reshape(8, 8)
        x = ad.device_put(value, named("x", "y", memory_kind=kind))
        for result, expected in [
            (x + x, value + value),
            (x * 2, value * 2),
            (-x, -value),
            (x.sum(axis=0), value.sum(axis=0)),
            (x.sum(), value.sum()),
            (x.T, value.T),
            (x @ x, value @ value),
            (x.astype(np.float32), value.astype(np.float32)),
            (np.concatenate([x, x]), np.concatenate([value, value])),
            (np.where(x > 3, x, 0), np.where(value > 3, value, 0)),
            (x + np.ones(8), value + 1),
        ]:
            assert result.sharding.memory_kind == kind
            assert np.allclose(np.asarray(result), expected)

    def test_mixed_kinds_are_refused(self, named, nothing_left):
        x = ad.device_put(np.ones((8, 8)), named("x"))
        y = ad.device_put(x, named("x", memory_kind="pinned_host"))
        with pytest.raises(ValueError, match=r"one kind of memory, got operand 0 .* in pinned_host memory; operand 1"):
            y + x
        with pytest.raises(ValueError, match="one kind of memory"):
            x @ y
        with pytest.raises(ValueError, match="one kind of memory"):
            np.concatenate([x, y])
        assert np.asarray(x + ad.device_put(y, ad.memory.Space.Device)).sum() == 128

    def test_uncommitted_operands_come_along(self, named, nothing_left):
        y = ad.device_put(np.ones((8, 8)), named("x", memory_kind="unpinned_host"))
        result = y + ad.device_put(np.ones((8, 8)))
        assert result.sharding.memory_kind == "unpinned_host"
        assert np.asarray(result).sum() == 128

    def test_mapped_functions_give_device_memory(self, line, nothing_left):
        x = ad.device_put(np.arange(8.0), ad.NamedSharding(line, ad.P("x"), memory_kind="unpinned_host"))
        same = ad.shard_map(lambda block: block, mesh=line, in_specs=ad.P("x"), out_specs=ad.P("x"))(x)
        assert same.sharding.memory_kind == "device"
        assert address_of(same) != address_of(x)
        assert np.array_equal(np.asarray(same), np.arange(8.0))


class TestCounting:
    """Bytes of each kind are counted by themselves."""

    def test_each_kind_has_its_own_counters(self, world, nothing_left):
        device = world[1]
        for kind in KINDS:
            before = {each: stats(each, device)["bytes_in_use"] for each in KINDS}
            x = ad.device_put(np.ones(1000, np.uint8), single(kind, device))
            after = {each: stats(each, device)["bytes_in_use"] for each in KINDS}
            assert after == {**before, kind: before[kind] + 1000}
            assert device.memory_stats()["bytes_in_use"] == after["device"]
            x.delete()
            assert {each: stats(each, device)["bytes_in_use"] for each in KINDS} == before
            assert stats(kind, device)["peak_bytes_in_use"] == 1000
            assert stats(kind, device)["largest_alloc_size"] == 1000
            assert stats(kind, device)["num_allocs"] == 1

    def test_a_limit_is_of_device_memory_alone(self, world, nothing_left):
        world[0].set_bytes_limit(1000)
        with pytest.raises(MemoryError, match="limit 1000 bytes"):
            ad.device_put(np.ones(1001, np.uint8), world[0])
        x = ad.device_put(np.ones(1001, np.uint8), single("unpinned_host", world[0]))
        assert stats("device", world[0])["bytes_limit"] == 1000
        assert stats("unpinned_host", world[0])["bytes_limit"] == world[0].memory_bytes
        with pytest.raises(MemoryError, match="limit 1000 bytes"):
            ad.device_put(x, ad.memory.Space.Device)

    def test_one_shard_that_outlives_the_others(self, world, nothing_left):
        mesh = ad.Mesh(np.array(world), ("x",))
        x = ad.device_put(np.ones(4, np.uint8), ad.NamedSharding(mesh, ad.P("x"), memory_kind="unpinned_host"))
        shard = x.addressable_shards[2].data
        del x
        gc.collect()
        assert [stats("unpinned_host", device)["bytes_in_use"] for device in world] == [0, 0, 1, 0]
        assert [stats("unpinned_host", device)["bytes_reserved"] for device in world] == [1, 1, 0, 1]
        assert [device.memory_stats()["bytes_reserved"] for device in world] == [0] * 4
        assert np.asarray(shard).tolist() == [1]


class TestMemory:
    """The Memory class."""

    def test_pickle_finds_the_memory_of_the_world(self, world):
        memory = world[2].memory("pinned")
        assert pickle.loads(pickle.dumps(memory)) is memory

    def test_it_keeps_its_world(self):
        with ad.simulate(2):
            memory = ad.devices()[1].default_memory()
        gc.collect()
        assert str(memory.addressable_by_devices()[0]) == "cpu:1"

    @pytest.mark.parametrize("kind", ["x", "", "Device", "pinned_hos"])
    def test_unknown_kinds_raise_as_in_jax(self, world, kind):
        with pytest.raises(RuntimeError, match=r"memory: kind .* is unknown on cpu:0; expected one of"):
            world[0].memory(kind)

    def test_attributes_cannot_be_set_and_none_is_made_by_hand(self, world):
        with pytest.raises(AttributeError):
            world[0].default_memory().kind = "pinned_host"
        with pytest.raises(TypeError):
            xla_client.Memory()


class TestCanonicalKind:
    """check_and_canonicalize_memory_kind."""

    def test_kinds_without_a_text_in_utf8_are_unknown(self, devices):
        with pytest.raises(ValueError, match=r'memory_kind ".*ud800" is unknown'):
            xla_client.check_and_canonicalize_memory_kind("\ud800", xla_client.DeviceList(tuple(devices)))
        with pytest.raises(RuntimeError, match=r'memory: kind ".*ud800" is unknown on cpu:0'):
            devices[0].memory("\ud800")

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            ("SingleDeviceSharding", lambda d: ad.SingleDeviceSharding(d[0], memory_kind="hbm")),
            ("NamedSharding", lambda d: ad.NamedSharding(ad.Mesh(d, ("x",)), ad.P(), memory_kind="hbm")),
            ("with_memory_kind", lambda d: ad.SingleDeviceSharding(d[0]).with_memory_kind("hbm")),
        ],
    )
    def test_errors_have_the_name_of_what_was_called(self, devices, name, make):
        with pytest.raises(ValueError, match=rf'^{name}: memory_kind "hbm" is unknown; expected one of .*; write one'):
            make(devices)

    def test_unknown_kinds_are_named(self, devices):
        with pytest.raises(ValueError, match=r'memory_kind "x" is unknown on cpu:0 and the 7 others'):
            xla_client.check_and_canonicalize_memory_kind("x", xla_client.DeviceList(tuple(devices)))

    @pytest.mark.parametrize("kind", [3, b"device"])
    def test_all_wrong_types_are_named(self, devices, kind):
        with pytest.raises(TypeError, match=r"memory_kind is .*; device_list is .* \(tuple\)"):
            xla_client.check_and_canonicalize_memory_kind(kind, tuple(devices))
