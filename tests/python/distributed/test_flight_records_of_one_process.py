# SPDX-License-Identifier: Apache-2.0
"""Flight records that one process writes, and what its transport writes there."""

import os
import re
import socket

import pytest
from artifex_devices.distributed.consistency import CAME
from artifex_devices.distributed.flight_records import FlightRecords, last_operations, read_job
from artifex_devices.distributed.local_peers import LocalMeetingPoint, LocalPeers
from artifex_devices.distributed.timeline import Timeline
from artifex_devices.errors import CollectiveError
from clock_transport import ClockTransport, never
from shared_worlds import channels_of


@pytest.fixture
def records(tmp_path):
    """The records of process 0 of 3, in a folder of their own."""
    folder = tmp_path / "job"
    folder.mkdir()
    return FlightRecords(str(folder), 0, 3, socket.gethostname())


def events_of(records):
    (record,) = read_job(records.folder)
    return [(event.kind, event.operation, event.outcome) for event in record.events]


def test_a_group_is_registered_once(records):
    pair = records.group((0, 1))
    assert records.group((0, 1)) is pair
    assert records.group((0, 2)) is not pair


def test_the_file_and_the_folder_go_with_the_last_process(records, tmp_path):
    other = FlightRecords(records.folder, 1, 3, socket.gethostname())
    assert sorted(os.listdir(records.folder)) == ["process_0.flight", "process_1.flight"]
    records.close()
    assert os.listdir(records.folder) == ["process_1.flight"]
    other.close()
    assert os.listdir(tmp_path) == []
    other.close()  # nothing is left to remove


def test_an_event_has_the_text_digest_and_line_of_its_own_meeting(records):
    group = records.group((0, 1))
    texts = ["psum", "pmax"]
    digests = [b"\1", b"\2"]
    for _ in range(3):
        for text in texts:
            for digest in digests:
                group.meet(text, digest)
                records.recorder.end(group.last)
        group.meet("other line", b"\3")
        group.meet("other line", b"\3")
    (record,) = read_job(records.folder)
    first = record.events[0].line
    one_turn = [
        ("psum", 1, 0),
        ("psum", 2, 0),
        ("pmax", 1, 0),
        ("pmax", 2, 0),
        ("other line", 3, 2),
        ("other line", 3, 3),
    ]
    assert [(event.operation, event.digest, event.line - first) for event in record.events] == one_turn * 3
    assert [event.turn for event in record.events] == [*range(1, 19)]


def test_a_meeting_through_shared_memory_ends_its_event_where_all_have_come(records):
    mine, other = (
        LocalMeetingPoint(LocalPeers(channels, (0, 1)), i, (0, 1)) for i, channels in enumerate(channels_of(2))
    )
    group = records.group((0, 1))
    for _ in range(2):
        other.start(CAME, b"digest", b"theirs", "psum")
        assert mine.meet(b"digest", b"mine", "psum", group) == [b"mine", b"theirs"]
        assert other.done()
    assert mine.meet(b"other", b"mine", "pmax", group) is None  # nobody has come
    assert group.last == 3
    other.start(CAME, b"digest", b"theirs", "psum")
    assert events_of(records) == [
        ("meeting", "psum", "done"),
        ("meeting", "psum", "done"),
        ("meeting", "pmax", "lasts"),
    ]


def test_a_transport_records_meetings_exchanges_and_refusals(records):
    transport = ClockTransport()
    transport.flight = records
    transport.agree("psum", b"digest", [0, 1])
    transport.wait_until(lambda: True, "reshard", 8)
    transport.refuse("pmax", "why", [0, 2])
    assert events_of(records) == [
        ("meeting", "psum", "done"),
        ("exchange", "reshard", "done"),
        ("meeting", "refuses pmax: why", "failed"),
    ]
    with pytest.raises(CollectiveError) as caught:
        transport._raise_stuck("they differ", "psum")
    text = str(caught.value).partition("\nFlight records ")[2]
    assert text.startswith(f"(artifex_devices flight-record {records.folder}):\n  all processes called the same oper")
    assert re.search(r"\n    psum at \S+:\d+, meets, begun \S+ \w+ ago, done after \S+ \w+\n", text)
    assert "\n    reshard at " in text
    assert ", moves bytes by shared memory, begun " in text


def test_a_mismatch_is_recorded_as_a_failure(records, monkeypatch):
    transport = ClockTransport()
    transport.flight = records
    new_meeting = transport._new_meeting_point

    def different(members):
        meeting = new_meeting(members)
        meeting.all_equal = lambda: False
        return meeting

    monkeypatch.setattr(transport, "_new_meeting_point", different)
    with pytest.raises(CollectiveError, match=r"^the processes called different operations"):
        transport.agree("psum", b"digest", [0, 1])
    assert events_of(records) == [("meeting", "psum", "failed")]


def test_an_exchange_that_fails_is_not_done(records):
    transport = ClockTransport()
    transport.flight = records
    transport.peers.by_number[1].state = "lost"
    with pytest.raises(CollectiveError) as caught:
        transport.wait_until(never, "reshard", 8)
    ((kind, operation, outcome),) = events_of(records)
    assert (kind, operation) == ("exchange", "reshard")
    assert outcome == "lasts"
    assert re.search(r"moves bytes by shared memory, begun \S+ \w+ ago, and not done$", str(caught.value))


def test_a_process_that_is_known_to_have_ended_is_not_said_to_run(records):
    (record,) = read_job(records.folder)
    begin = f"process 0 (pid {os.getpid()} on {record.host}) "
    none = "  no operation with other processes"
    assert last_operations([record], 3) == [f"{begin}runs:", none]
    assert last_operations([record], 3, [0]) == [f"{begin}ended without notice:", none]
    assert last_operations([record], 3, [1]) == [f"{begin}runs:", none]


def test_the_report_names_the_reason_why_records_cannot_be_read(records):
    os.unlink(os.path.join(records.folder, "process_0.flight"))
    assert records.report().startswith(f"The flight records cannot be read: flight record: {records.folder} has no rec")


def test_a_timeline_begins_with_the_first_event_and_lasting_events_end_with_the_last_one(records):
    transport = ClockTransport()
    transport.flight = records
    for operation in ("first", "second"):
        transport.wait_until(lambda: True, operation, 8)
    records.recorder.exchange("lasting", True)
    transport.agree("meeting", b"digest", [0, 1])
    (record,) = read_job(records.folder)
    timeline = Timeline([record])
    begins = [event.begin_ns for event in record.events]
    ends = [event.end_ns for event in record.events]
    assert (ends[2], max(ends)) == (0, ends[3])
    found = [event for event in timeline.trace()["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in found] == ["first", "second", "lasting", "meeting"]
    assert [event["ts"] for event in found] == [(begin - begins[0]) / 1e3 for begin in begins]
    assert [event["dur"] for event in found] == [
        ((end or ends[3]) - begin) / 1e3 for begin, end in zip(begins, ends, strict=True)
    ]
    assert [event["tid"] for event in found] == [2, 2, 2, 1]
    assert [event["args"]["bytes"] for event in found] == [8, 8, 0, 0]
    names = [event["args"]["name"] for event in timeline.trace()["traceEvents"] if event["ph"] == "M"]
    assert names == [f"process 0 (pid {os.getpid()} on {record.host})", "meetings", "exchanges of bytes"]
    assert timeline.waits == []
    assert timeline.summary() == f"clock of {record.host}: the reference\nno meeting of several processes"
