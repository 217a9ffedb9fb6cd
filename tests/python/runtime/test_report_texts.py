# SPDX-License-Identifier: Apache-2.0
"""Reports of transfers and of memory, and the texts of their rows, for given counts."""

from __future__ import annotations

import os
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import memory, transfers
from artifex_devices.transfers import LineTransfers, RouteTransfers, TransferReport


class Recording:
    """Stands for the core's recording."""

    def __init__(self, routes=(), lines=()):
        self._routes, self._lines = routes, lines

    def routes(self):
        return list(self._routes)

    def lines(self):
        return list(self._lines)


def report_of(routes=(), lines=()):
    report = TransferReport()
    report._recording = Recording(routes, lines)
    return report


def lines_of(count):
    return [("host-to-device", "program.py", i, 1, 100 - i) for i in range(count)]


def test_lines_beyond_those_shown_are_summed():
    shown = transfers._ROWS_SHOWN
    assert len(report_of(lines=lines_of(shown))._tables()[0][1]) == shown
    rows = report_of(lines=lines_of(shown + 2))._tables()[0][1]
    assert len(rows) == shown + 1
    assert rows[0] == ("program.py:0", "host-to-device", "1", "100 bytes")
    assert rows[-1] == ("2 others", "", "2", f"{200 - 2 * shown - 1} bytes")


def test_lines_with_most_bytes_come_first_and_directions_are_counted():
    rows = [
        ("host-to-device", "a.py", 1, 2, 10),
        ("device-to-host", "b.py", 2, 3, 30),
        ("host-to-device", "", 0, 1, 20),
    ]
    report = report_of(lines=rows)
    assert [row.bytes for row in report.lines] == [30, 20, 10]
    assert (report.calls(), report.bytes()) == (6, 60)
    assert (report.calls("host-to-device"), report.bytes("host-to-device")) == (3, 30)
    assert report.bytes("device-to-device") == 0
    assert repr(report) == "<TransferReport: 6 calls, 60 bytes>"
    assert repr(report_of(lines=rows[:1] * 0)) == "<TransferReport: 0 calls, 0 bytes>"
    assert repr(report_of(lines=[("host-to-device", "a.py", 1, 1, 1)])) == "<TransferReport: 1 call, 1 byte>"
    assert str(report_of()) == "Transfers: 0 calls, 0 bytes"
    assert repr(TransferReport()) == "<TransferReport: not entered>"
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        report.bytes("up")
    assert str(caught.value).startswith("TransferReport.bytes: direction is 'up'; expected ")
    with pytest.raises(TypeError) as caught:
        report.calls(3)
    assert str(caught.value) == (
        "TransferReport.calls: direction is 3 (int); expected a str or None; leave it out for all"
    )
    assert [row[0] for row in report._tables()[0][1]] == ["b.py:2", "unknown", "a.py:1"]


def test_long_names_of_lines_keep_their_ends():
    width = transfers._LINE_WIDTH
    name = "f" * (width - 2)
    assert transfers._line_text(LineTransfers("", name, 7, 0, 0)) == f"{name}:7"
    text = transfers._line_text(LineTransfers("", "g" + name, 7, 0, 0))
    assert text == f"...{name[3:]}:7"
    assert len(text) == width
    inside = os.path.join(os.getcwd(), "program.py")
    assert transfers._line_text(LineTransfers("", inside, 3, 0, 0)) == "program.py:3"
    assert transfers._line_text(LineTransfers("", "/x.py", 3, 0, 0)) == "/x.py:3"


def route(source, destination, calls=1, count=8):
    return RouteTransfers("device-to-device", source, "cpu", destination, "cpu", calls, count)


def test_routes_with_equal_counts_share_a_row():
    rows = transfers._route_rows(
        [route("cpu:0", "cpu:1"), route("cpu:0", "cpu:2"), route("cpu:1", "cpu:2", 3), route("cpu:3", "cpu:0", 1, 2048)]
    )
    assert rows == [
        ("cpu:0 -> cpu:1 (+1)", "2", "1 each", "8 bytes"),
        ("cpu:1 -> cpu:2", "1", "3", "8 bytes"),
        ("cpu:3 -> cpu:0", "1", "1", "2.0 KiB"),
    ]
    shown = transfers._ROWS_SHOWN
    many = [route("a", "b", calls, 10) for calls in range(1, shown + 3)]
    assert len(transfers._route_rows(many[:shown])) == shown
    rows = transfers._route_rows(many)
    assert len(rows) == shown + 1
    assert rows[-1] == ("all others", "2", str(2 * shown + 3), "20 bytes")
    width = transfers._ROUTE_WIDTH
    long = "a" * (width - 5)
    assert transfers._route_rows([route(long, "b")])[0][0] == f"{long} -> b"
    assert transfers._route_rows([route(long + "a", "b")])[0][0] == f"{long}a -..."[: width - 3] + "..."


def test_devices_of_a_memory_report_are_named_together():
    def names(*ids):
        class Device(SimpleNamespace):
            def __str__(self):
                return f"cpu:{self.id}"

        return memory._names([Device(id=i) for i in ids])

    assert names(3) == "cpu:3"
    assert names(3, 4, 5) == "cpu:3 to cpu:5"
    assert names(3, 5) == "cpu:3 and 1 more"
    assert names(3, 5, 6) == "cpu:3 and 2 more"


def test_a_memory_report_is_entered_once_and_has_numbers_afterwards():
    with ad.simulate(20):
        report = ad.memory_report(2)
        assert (repr(report), str(report), report.peak_bytes) == ("<MemoryReport: not entered>",) * 2 + ({},)
        with pytest.raises(RuntimeError, match="memory_report: left without having been entered; expected a `with`"):
            report.__exit__()
        devices = ad.devices()
        before = ad.device_put(np.zeros(10, np.int8), devices[0])
        with report:
            arrays = [ad.device_put(np.zeros(1000 * (i + 1), np.int8), device) for i, device in enumerate(devices)]
            assert repr(report) == "<MemoryReport: measuring, peak of a device 19.5 KiB>"
            assert "device" in str(report)
            assert "now" in str(report)
            del arrays[1:]
        assert repr(report) == "<MemoryReport: done, peak of a device 19.5 KiB>"
        with pytest.raises(RuntimeError, match="this report has measured a block already; expected a new one"):
            report.__enter__()
        columns = (report.bytes_at_start, report.peak_bytes, report.bytes_in_use, report.allocated, report.freed)
        assert [column[devices[0]] for column in columns] == [10, 1010, 1010, 1000, 0]
        assert [column[devices[2]] for column in columns] == [0, 3000, 0, 3000, 3000]
        assert [(each.shape, each.bytes) for each in report.top] == [((1000,), 1000), ((10,), 10)]
        lines = str(report).splitlines()
        assert lines[0] == "Memory of 20 devices (measured, logical bytes, each)"
        assert lines[1].split() == ["device", "peak", "start", "end", "allocated", "freed"]
        assert lines[2].split() == [
            "cpu:0",
            "1010",
            "bytes",
            "10",
            "bytes",
            "1010",
            "bytes",
            "1000",
            "bytes",
            "0",
            "bytes",
        ]
        shown = memory._DEVICES_SHOWN
        assert lines[2 + shown] == f"  and {20 - shown} more lines"
        assert "Live Arrays (end): 2, 1010 bytes on all devices" in lines
        assert lines[-2:] == ["  int8(1000,)  1000 bytes  cpu:0", "  int8(10,)      10 bytes  cpu:0"]
        del before
