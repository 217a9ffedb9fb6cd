# SPDX-License-Identifier: Apache-2.0
"""Client.heap_profile, read by pprof's own schema."""

from __future__ import annotations

import time
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client
from test_pprof import Profile, rows

THIS_FILE = Path(__file__).name


@pytest.fixture
def client():
    """A client of 4 devices."""
    with xla_client.make_cpu_client(num_devices=4) as made:
        yield made


@pytest.fixture
def traced():
    """Arrays know the lines that made them."""
    before = ad.config.trace_allocations
    ad.config.update("trace_allocations", True)
    yield
    ad.config.update("trace_allocations", before)


def samples(client: ad.Client) -> list[tuple[str, str | None, int, int]]:
    """(device, "file:line" or None, allocations, bytes), in the profile's order."""
    found = []
    for device, kind, place, count, held in rows(Profile.FromString(client.heap_profile())):
        assert kind == "buffer"
        found.append((device, place and f"{Path(place[0]).name}:{place[1]}", count, held))
    return found


def test_a_client_without_arrays(client) -> None:
    earliest = time.time_ns()
    profile = Profile.FromString(client.heap_profile())
    assert (len(profile.sample), len(profile.location)) == (0, 0)
    assert earliest <= profile.time_nanos <= time.time_ns()
    text = profile.string_table
    assert [(text[each.type], text[each.unit]) for each in profile.sample_type] == [
        ("allocations", "count"),
        ("space", "bytes"),
    ]


def test_arrays_by_device_and_line(client, traced) -> None:
    devices = client.devices()
    kept = [client.buffer_from_pyval(np.zeros(10), device) for device in (devices[2], devices[2], devices[0])]
    mesh = ad.Mesh(np.array(devices), ("x",))
    kept.append(ad.device_put(np.zeros((8, 3), np.float32), ad.NamedSharding(mesh, ad.P("x"))))
    line = test_arrays_by_device_and_line.__code__.co_firstlineno
    first, second = f"{THIS_FILE}:{line + 2}", f"{THIS_FILE}:{line + 4}"
    assert samples(client) == [
        ("cpu:2", first, 2, 160),
        ("cpu:0", first, 1, 80),
        *((f"cpu:{number}", second, 1, 24) for number in range(4)),
    ]


def test_arrays_whose_line_is_not_known(client) -> None:
    kept = [client.buffer_from_pyval(np.zeros(4, np.int8), client.devices()[1]) for _ in range(3)]
    assert samples(client) == [("cpu:1", None, 3, 12)]
    kept[0].delete()
    assert samples(client) == [("cpu:1", None, 2, 8)]


@pytest.mark.parametrize(("entries", "uneven", "length"), [(("x",), None, 8), ((), None, 5), (("x",), "last-short", 5)])
def test_bytes_are_those_of_the_devices_accounting(client, entries, uneven, length) -> None:
    mesh = ad.Mesh(np.array(client.devices()), ("x",))
    sharding = ad.NamedSharding(mesh, ad.P(*entries), uneven=uneven)
    kept = ad.device_put(np.zeros((length, 3)), sharding)
    counted = [(str(device), device.memory_stats()["bytes_in_use"]) for device in client.devices()]
    assert [(device, held) for device, _, _, held in samples(client)] == counted
    assert sum(held for _, held in counted) == kept.on_device_size_in_bytes()


def test_other_clients_do_not_count(client) -> None:
    kept = ad.device_put(np.zeros(3))
    assert samples(client) == []
    assert kept.nbytes == 24
