# SPDX-License-Identifier: Apache-2.0
"""Arrays that move between processes: random shardings against NumPy, and the bytes that are sent."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.distributed import exchange

COUNTS = [2, 3, 4]


def random_sharding(random, uneven):
    """Over a random mesh of some devices in a random order, at most 3 axes, for arrays of 3 dimensions."""
    devices = ad.devices()
    if random.integers(8) == 0:
        return ad.SingleDeviceSharding(devices[random.integers(len(devices))])
    sizes, room = [], len(devices)
    for _ in range(random.integers(1, 4)):
        sizes.append(int(random.integers(1, room + 1)))
        room //= sizes[-1]
    chosen = random.permutation(len(devices))[: int(np.prod(sizes))]
    mesh = ad.Mesh(np.array(devices)[chosen].reshape(sizes), tuple("abc"[: len(sizes)]))
    entries = [[], [], []]
    for axis in mesh.axis_names:
        place = random.integers(-1, 3)
        if place >= 0:
            entries[place].append(axis)
    return ad.NamedSharding(mesh, ad.P(*(tuple(e) or None for e in entries)), uneven="last-short" if uneven else None)


def check(x, value):
    for shard in x.addressable_shards:
        assert np.asarray(shard.data).tobytes() == np.ascontiguousarray(value[shard.index]).tobytes(), shard.index


def bytes_between_processes(x, sharding):
    plan = ad.planner.plan_reshard(x.shape, x.dtype, x.sharding, sharding, way="copies")
    return plan.bytes_by_link["other process"] + plan.bytes_by_link["other host"]


def soak(seed, rounds):
    """Chains of reshards of random values; every process draws the same."""
    random = np.random.default_rng(seed)
    planned = 0
    for _ in range(rounds):
        shape = tuple(int(size) for size in random.integers(0 if random.integers(6) == 0 else 1, 40, 3))
        dtype = random.choice([np.int8, np.uint16, np.float32, np.complex128])
        value = random.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
        x = ad.make_array_from_callback(shape, random_sharding(random, True), value.__getitem__, dtype)
        for _ in range(3):
            to = random_sharding(random, True)
            planned += bytes_between_processes(x, to)
            x = ad.device_put(x, to, donate=bool(random.integers(2)))
            check(x, value)
    traffic = exchange.traffic()
    held = [device.memory_stats()["bytes_in_use"] for device in ad.local_devices()]
    del x
    return planned, dict(traffic.sent), dict(traffic.received), held


@pytest.mark.parametrize(("count", "platform"), [*((count, "cpu") for count in COUNTS), (2, "gpu"), (3, "gpu")])
def test_random_reshards_are_right_and_send_what_is_planned(processes, count, platform):
    reports = processes(count, soak, 20 + count, 60, timeout=150, platform=platform).values
    assert len({planned for planned, *_ in reports}) == 1
    assert sum(sum(sent.values()) for _, sent, *_ in reports) == reports[0][0] > 0
    for a, (_, sent, *_) in enumerate(reports):
        for b, (_, _, received, _) in enumerate(reports):
            assert sent.get(b, 0) == received.get(a, 0)


def big_ones(budget):
    ad.config.update("distributed_buffer_bytes", budget)
    mesh = ad.make_mesh((ad.device_count(),), ("x",))
    value = np.arange(6 << 20, dtype=np.float32).reshape(2048, -1)  # 24 MiB
    x = ad.make_array_from_callback(value.shape, ad.NamedSharding(mesh, ad.P("x")), value.__getitem__)
    for spec in (ad.P(None, "x"), ad.P(), ad.P("x"), ad.P(None, "x")):
        x = ad.device_put(x, ad.NamedSharding(mesh, spec))
        check(x, value)
    return True


@pytest.mark.parametrize("budget", [0, 16 << 20, 1 << 30])
def test_big_arrays_go_within_any_budget(processes, budget):
    assert processes(4, big_ones, budget, devices=1, timeout=120).values == [True] * 4


def one_does_otherwise():
    mesh = ad.make_mesh((ad.device_count(),), ("x",))
    value = np.arange(32.0).reshape(8, 4)
    x = ad.make_array_from_callback(value.shape, ad.NamedSharding(mesh, ad.P("x")), value.__getitem__)
    spec = ad.P() if ad.process_index() == 1 else ad.P(None, "x")
    with pytest.raises(RuntimeError) as caught:
        ad.device_put(x, ad.NamedSharding(mesh, spec))
    return str(caught.value)


def test_reshards_that_differ_are_an_error_in_all_processes(processes):
    for text in processes(2, one_does_otherwise).values:
        assert "P()" in text
        assert "P(None, 'x')" in text


def values_that_differ():
    mesh = ad.make_mesh((ad.device_count(),), ("x",))
    whole = ad.NamedSharding(mesh, ad.P())
    assert np.asarray(ad.device_put(np.arange(5), whole)).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="another value in process 2 than in most"):
        ad.device_put(np.arange(5) + (ad.process_index() == 2), whole)
    return np.asarray(ad.device_put(7, whole)).item()


def test_values_must_be_equal_and_the_next_call_works(processes):
    assert processes(3, values_that_differ).values == [7, 7, 7]


def many_shards():
    """Rows to columns and back: a million pairs of shards, half of them between processes."""
    count = ad.device_count()
    mesh = ad.make_mesh((count,), ("x",))
    rows, columns = (ad.NamedSharding(mesh, spec) for spec in (ad.P("x"), ad.P(None, "x")))
    value = np.arange(4 * count * count, dtype=np.int32).reshape(count, -1)
    x = ad.make_array_from_callback(value.shape, rows, value.__getitem__)
    planned = bytes_between_processes(x, columns)
    before = sum(exchange.traffic().sent.values())
    y = ad.device_put(x, columns)
    sent = sum(exchange.traffic().sent.values()) - before
    check(y, value)
    check(ad.device_put(y, rows), value)
    return count, sent, planned


def test_many_shards_go_between_processes(processes):
    reports = processes(2, many_shards, devices=512, timeout=150).values
    # Each process has 512 x 512 boxes of 16 bytes for the other.
    assert reports == [(1024, 4 << 20, 8 << 20)] * 2
