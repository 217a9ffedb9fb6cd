# SPDX-License-Identifier: Apache-2.0
"""Reshards, gathers and lists over up to 4,096 devices: right, and neither memory nor lists for each pair of shards."""

import os
import subprocess
import sys
import textwrap

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.layout import Format, Layout

COUNTS = [512, 4096]


def shardings(count, uneven=None):
    """Rows, columns, blocks, blocks the other way round, replicas; the last three over a mesh of two axes."""
    line = ad.make_mesh((count,), ("x",))
    side = 2 ** (count.bit_length() // 2)
    plane = ad.make_mesh((side, count // side), ("a", "b"))
    return [
        ad.NamedSharding(line, ad.P("x"), uneven=uneven),
        ad.NamedSharding(line, ad.P(None, "x"), uneven=uneven),
        ad.NamedSharding(plane, ad.P("a", "b"), uneven=uneven),
        ad.NamedSharding(plane, ad.P(("b", "a")), uneven=uneven),
        ad.NamedSharding(line, ad.P(), uneven=uneven),
    ]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("uneven", [None, "last-short"])
def test_each_sharding_to_each_other_is_exact(count, uneven):
    shape = (count, 2 * count) if uneven is None else (count - 5, count + 3)
    value = np.arange(np.prod(shape), dtype=np.uint32).astype(np.uint8).reshape(shape)
    with ad.simulate(count):
        ends = shardings(count, uneven)
        for begin in ends:
            x = ad.device_put(value, begin)
            for end in ends:
                if count == 512:  # reports and the planner list copies one by one
                    with ad.transfers.record() as report:
                        y = ad.device_put(x, end)
                    plan = ad.planner.plan_reshard(x.shape, x.dtype, begin, end, way="copies")
                    assert report.bytes("device-to-device") == plan.bytes_copied
                else:
                    y = ad.device_put(x, end)
                y.block_until_ready()
                assert y.sharding == end
                assert np.array_equal(np.asarray(y), value)
                for shard in y.addressable_shards[:: count // 8]:
                    assert np.array_equal(np.asarray(shard.data), value[shard.index])


def test_columns_stored_column_major_become_rows():
    value = np.arange(512 * 1024, dtype=np.int32).reshape(512, 1024)
    with ad.simulate(512):
        rows, columns, *_ = shardings(512)
        by_columns = Format(Layout(major_to_minor=(1, 0)), columns)
        x = ad.device_put(value, by_columns)
        assert np.array_equal(np.asarray(ad.device_put(x, rows)), value)
        y = ad.device_put(ad.device_put(value, rows), by_columns)
        assert np.array_equal(np.asarray(y), value)


@pytest.mark.parametrize("count", COUNTS)
def test_replica_ids_of_empty_shards_count_equal_boxes(count):
    with ad.simulate(count):
        mesh = ad.make_mesh((count // 4, 4), ("x", "y"))
        sharding = ad.NamedSharding(mesh, ad.P(("y", "x")), uneven="last-short")
        x = ad.device_put(np.arange(10.0), sharding)
        seen = {}
        for shard in x.addressable_shards:
            key = str(shard.index)
            assert shard.replica_id == seen.get(key, 0)
            seen[key] = seen.get(key, 0) + 1
        assert len(seen) == 11  # ten of one element, and all empty ones


def test_a_shard_of_each_of_4096_devices_is_assembled_and_gathered():
    value = np.arange(4096 * 64, dtype=np.float32).reshape(4096, 64)
    with ad.simulate(4096):
        rows, _, blocks, *_ = shardings(4096)
        parts = [ad.device_put(value[i : i + 1], device) for i, device in enumerate(ad.devices())]
        x = ad.make_array_from_single_device_arrays(value.shape, rows, parts)
        assert np.array_equal(np.asarray(x), value)
        y = ad.make_array_from_callback(value.shape, blocks, value.__getitem__)
        assert np.array_equal(np.asarray(ad.device_put(x, blocks)), np.asarray(y))


def in_process(body, *words):
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    command = [sys.executable, "-c", textwrap.dedent(body), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=100, env=environment).stdout


@pytest.mark.parametrize("uneven", [0, 1])
def test_rows_to_columns_over_4096_devices_takes_64_mib_beside_the_result_at_most(uneven):
    growth, result = map(
        int,
        in_process(
            """
            import sys
            import artifex_devices as ad
            import numpy as np

            def status(name):
                with open("/proc/self/status") as file:
                    return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

            uneven = "last-short" if int(sys.argv[1]) else None
            value = np.ones((4096 - (uneven is not None), 4096), np.float32)
            with ad.simulate(4096):
                mesh = ad.make_mesh((4096,), ("x",))
                x = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x"), uneven=uneven))
                to = ad.NamedSharding(mesh, ad.P(None, "x"), uneven=uneven)
                before = status("VmRSS:")
                with open("/proc/self/clear_refs", "w") as file:
                    file.write("5")  # the high-water mark begins again
                y = ad.device_put(x, to).block_until_ready()
                print(status("VmHWM:") - before, 4096 * 4096 * 4)
            """,
            uneven,
        ).split(),
    )
    assert growth <= result + (64 << 20)
