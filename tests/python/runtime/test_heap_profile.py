# SPDX-License-Identifier: Apache-2.0
"""Client.heap_profile and its encoder, read by pprof's own schema."""

import time
from pathlib import Path
from typing import NamedTuple

import artifex_devices as ad
import numpy as np
import proto_schema
import pytest
from artifex_devices import xla_client
from artifex_devices._core import internal
from hypothesis import given
from hypothesis import strategies as st

THIS_FILE = Path(__file__).name

# github.com/google/pprof, proto/profile.proto: names, types and numbers of its fields.
PROFILE_PROTO = """
package perftools.profiles;
message Profile {
  repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 drop_frames = 7; int64 keep_frames = 8; int64 time_nanos = 9; int64 duration_nanos = 10;
  ValueType period_type = 11; int64 period = 12; repeated int64 comment = 13; int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping {
  uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5;
  int64 build_id = 6; bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9;
  bool has_inline_frames = 10;
}
message Location {
  uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; bool is_folded = 5;
}
message Line { uint64 function_id = 1; int64 line = 2; int64 column = 3; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
"""
Profile = proto_schema.messages(PROFILE_PROTO)["Profile"]


class HeapSample(NamedTuple):
    """Memory on one device, by the line that made it, as the encoder takes it."""

    device: str
    bytes: int
    allocations: int = 1
    file: str = ""
    line: int = 0
    function: str = ""


def heap_profile(samples, time_ns=0):
    return internal.heap_profile(list(samples), time_ns)


def read(data):
    return Profile.FromString(data)


def rows(profile):
    """Samples as (device, kind, place, allocations, bytes); a place is None or (file, line, function)."""
    text = profile.string_table
    functions = {each.id: each for each in profile.function}
    locations = {each.id: each for each in profile.location}
    assert set(functions) == set(range(1, len(profile.function) + 1))
    found = []
    for sample in profile.sample:
        labels = {text[label.key]: text[label.str] for label in sample.label}
        place = None
        if sample.location_id:
            (identity,) = sample.location_id
            (line,) = locations[identity].line
            function = functions[line.function_id]
            place = (text[function.filename], line.line, text[function.name])
        found.append((labels["device"], labels["kind"], place, *sample.value))
    return found


def test_sample_types_and_labels_are_those_of_jax():
    profile = read(heap_profile([HeapSample("cpu:0", 100)]))
    text = profile.string_table
    assert text[0] == ""
    assert [(text[each.type], text[each.unit]) for each in profile.sample_type] == [
        ("allocations", "count"),
        ("space", "bytes"),
    ]
    assert rows(profile) == [("cpu:0", "buffer", None, 1, 100)]


names = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
samples = st.builds(
    HeapSample,
    device=st.sampled_from(["cpu:0", "cpu:1"]),
    bytes=st.integers(0, 2**40),
    allocations=st.integers(0, 2**20),
    file=names,
    line=st.integers(0, 2**31),
    function=names,
)


@given(st.lists(samples, max_size=20), st.integers(0, 2**62))
def test_totals_are_kept_and_the_bytes_are_protobufs_own(given_samples, time_ns):
    data = heap_profile(given_samples, time_ns)
    assert data == heap_profile(given_samples, time_ns)
    profile = read(data)
    assert profile.time_nanos == time_ns
    assert profile.SerializeToString(deterministic=True) == data
    expected = {}
    for sample in given_samples:
        place = (sample.file, sample.line, sample.function) if sample.file else None
        count, size = expected.get((sample.device, place), (0, 0))
        expected[sample.device, place] = (count + sample.allocations, size + sample.bytes)
    assert {(device, place): (count, size) for device, _, place, count, size in rows(profile)} == expected


# --- What a client holds ---


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


def held_by(client: ad.Client) -> list[tuple[str, str | None, int, int]]:
    """(device, "file:line" or None, allocations, bytes), in the profile's order."""
    found = []
    for device, kind, place, count, held in rows(read(client.heap_profile())):
        assert kind == "buffer"
        found.append((device, place and f"{Path(place[0]).name}:{place[1]}", count, held))
    return found


def test_a_client_without_arrays(client) -> None:
    earliest = time.time_ns()
    profile = read(client.heap_profile())
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
    assert held_by(client) == [
        ("cpu:2", first, 2, 160),
        ("cpu:0", first, 1, 80),
        *((f"cpu:{number}", second, 1, 24) for number in range(4)),
    ]


def test_arrays_whose_line_is_not_known(client) -> None:
    kept = [client.buffer_from_pyval(np.zeros(4, np.int8), client.devices()[1]) for _ in range(3)]
    assert held_by(client) == [("cpu:1", None, 3, 12)]
    kept[0].delete()
    assert held_by(client) == [("cpu:1", None, 2, 8)]


@pytest.mark.parametrize(("entries", "uneven", "length"), [(("x",), None, 8), ((), None, 5), (("x",), "last-short", 5)])
def test_bytes_are_those_of_the_devices_accounting(client, entries, uneven, length) -> None:
    mesh = ad.Mesh(np.array(client.devices()), ("x",))
    sharding = ad.NamedSharding(mesh, ad.P(*entries), uneven=uneven)
    kept = ad.device_put(np.zeros((length, 3)), sharding)
    counted = [(str(device), device.memory_stats()["bytes_in_use"]) for device in client.devices()]
    assert [(device, held) for device, _, _, held in held_by(client)] == counted
    assert sum(held for _, held in counted) == kept.on_device_size_in_bytes()


def test_arrays_of_all_memory_kinds_count(client) -> None:
    sharding = ad.SingleDeviceSharding(client.devices()[1])
    kinds = ("device", "pinned_host", "unpinned_host")
    kept = [ad.device_put(np.zeros(2), sharding.with_memory_kind(kind)) for kind in kinds]
    assert held_by(client) == [("cpu:1", None, len(kept), 48)]


def test_other_clients_do_not_count(client) -> None:
    kept = ad.device_put(np.zeros(3))
    assert held_by(client) == []
    assert kept.nbytes == 24
