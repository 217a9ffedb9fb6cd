# SPDX-License-Identifier: Apache-2.0
"""Reports of the bytes that a `with transfers.record() as report:` block moves between the host and devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from artifex_devices._base.checks import check_choice, check_type, entered_twice, never_entered
from artifex_devices._base.html import NotebookText, facts, note, page, table
from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.text import bytes_text, table_lines, wrapped
from artifex_devices._core.internal import TransferRecording

__all__ = ["LineTransfers", "RouteTransfers", "TransferReport", "record"]
add_public_lookup(__name__)

_DIRECTIONS = ("host-to-device", "device-to-device", "device-to-host")
_ROWS_SHOWN = 12
_LINE_WIDTH = 40
_ROUTE_WIDTH = 50
_TEXT_WIDTH = 80


@dataclass(frozen=True)
class RouteTransfers:
    """Transfers from one memory to another.

    Attributes:
        direction: "host-to-device", "device-to-device" or "device-to-host".
        source: "host", or a device such as "gpu:3", with the kind of its memory unless that is `device`:
            "gpu:3 pinned_host".
        source_kind: `device_kind` of the source device; "" for the host.
        destination: Destination, written as the source.
        destination_kind: `device_kind` of the destination device; "" for the host.
        calls: Number of transfers that used the route.
        bytes: Bytes that they copied over it.
    """

    direction: str
    source: str
    source_kind: str
    destination: str
    destination_kind: str
    calls: int
    bytes: int


@dataclass(frozen=True)
class LineTransfers:
    """Transfers of one direction that one line of the program started.

    Attributes:
        direction: "host-to-device", "device-to-device" or "device-to-host".
        file: File of the innermost line outside of this package.
        line: Its number.
        calls: Number of transfers.
        bytes: Bytes that they copied, over all routes.
        shareable_bytes: Bytes of them that `device_put(x, device, may_alias=True)` would share instead of copying, in
            copies of 64 MiB or more.
    """

    direction: str
    file: str
    line: int
    calls: int
    bytes: int
    shareable_bytes: int = 0


class TransferReport(NotebookText):
    """Transfers of this process while a `with` block ran: calls and bytes by route, and by line of the program.

    A transfer counts when it is started, with the bytes that it copies. All threads and all worlds count. Reports nest
    and overlap. They can be read while the block runs, and do not change after it.
    """

    def __init__(self) -> None:
        self._recording: TransferRecording | None = None

    def __enter__(self) -> TransferReport:
        """Starts to record; RuntimeError if it has recorded a block already."""
        if self._recording is not None:
            raise entered_twice(
                "transfers.record", "this report has recorded a block already", "transfers.record() as report:"
            )
        self._recording = TransferRecording()
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is None:
            raise never_entered("transfers.record", "transfers.record() as report")
        self._recording.stop()

    @property
    def routes(self) -> tuple[RouteTransfers, ...]:
        """Transfers by route, in descending order of bytes."""
        rows = [] if self._recording is None else [RouteTransfers(*row) for row in self._recording.routes()]
        return tuple(sorted(rows, key=lambda row: -row.bytes))

    @property
    def lines(self) -> tuple[LineTransfers, ...]:
        """Transfers by line of the program and direction, in descending order of bytes."""
        rows = [] if self._recording is None else [LineTransfers(*row) for row in self._recording.lines()]
        return tuple(sorted(rows, key=lambda row: -row.bytes))

    def calls(self, direction: str | None = None) -> int:
        """Returns the number of transfers, of one direction or of all."""
        return sum(row.calls for row in self._lines_of("TransferReport.calls", direction))

    def bytes(self, direction: str | None = None) -> int:
        """Returns the bytes that transfers copied, of one direction or of all."""
        return sum(row.bytes for row in self._lines_of("TransferReport.bytes", direction))

    def as_dict(self) -> Record:
        """Returns the counts as dicts and lists that `json` can write."""
        return {
            "directions": {each: {"calls": self.calls(each), "bytes": self.bytes(each)} for each in _DIRECTIONS},
            "routes": [asdict(row) for row in self.routes],
            "lines": [asdict(row) for row in self.lines],
        }

    def __repr__(self) -> str:
        return f"<TransferReport: {self._title()}>"

    def __str__(self) -> str:
        """Formats tables of the routes and of the lines."""
        parts = [f"Transfers: {self._title()}"]
        for head, rows in self._tables():
            parts += ["", *table_lines([head, *rows])]
        for text in self._hints():
            parts += ["", *wrapped(text, _TEXT_WIDTH)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        kinds = sorted({kind for row in self.routes for kind in (row.source_kind, row.destination_kind)} - {""})
        shown = facts([("devices", ", ".join(kinds))]) if kinds else ""
        tables = [table(head, rows) for head, rows in self._tables()]
        return page(f"Transfers: {self._title()}", shown, *tables, *map(note, self._hints()))

    def _lines_of(self, operation: str, direction: str | None) -> list[LineTransfers]:
        if direction is not None:
            check_type(operation, "direction", direction, str, "a str or None", "leave it out for all")
            check_choice(operation, "direction", direction, _DIRECTIONS, "leave it out for all")
        return [row for row in self.lines if direction in (None, row.direction)]

    def _hints(self) -> list[str]:
        return [
            f"{_line_text(row)} copies {bytes_text(row.shareable_bytes)} that device_put(x, device, may_alias=True) "
            "would share; the ndarray becomes read-only"
            for row in self.lines[:_ROWS_SHOWN]
            if row.shareable_bytes
        ]

    def _title(self) -> str:
        if self._recording is None:
            return "not entered"
        count = self.calls()
        return f"{count} call{'' if count == 1 else 's'}, {bytes_text(self.bytes())}"

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Returns heads and rows of the tables that have rows."""
        tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
        if self.routes:
            tables.append((("route", "routes", "calls", "bytes"), _route_rows(self.routes)))
        lines: list[tuple[str, ...]] = [
            (_line_text(row), row.direction, str(row.calls), bytes_text(row.bytes)) for row in self.lines[:_ROWS_SHOWN]
        ]
        if len(self.lines) > _ROWS_SHOWN:
            rest = self.lines[_ROWS_SHOWN:]
            total = bytes_text(sum(row.bytes for row in rest))
            lines.append((f"{len(rest)} others", "", str(sum(row.calls for row in rest)), total))
        if lines:
            tables.append((("line", "direction", "calls", "bytes"), lines))
        return tables


def record() -> TransferReport:
    """Records what a block of code moves between the host and devices.

    Counted are `device_put` and its family, reading Arrays (`device_get`, `np.asarray`, `float`), `reshard`, operands
    that NumPy functions and `shard_map` move, and prefetching. Memory that the host can read is read without a
    transfer. Collectives, and what NumPy functions exchange inside, are not counted. The printed report names lines
    that copy 64 MiB or more of an ndarray to one CPU device, because `may_alias=True` shares its memory instead.

    Returns:
        A TransferReport for one `with` block; print it, or read its counts.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2, platform="gpu"), ad.transfers.record() as report:
        ...     x = ad.device_put(np.ones(4), ad.devices()[1])
        ...     y = ad.device_put(x, ad.devices()[0])
        ...     total = float(y.sum())
        >>> [(row.source, row.destination, row.calls, row.bytes) for row in report.routes]
        [('host', 'gpu:1', 1, 32), ('gpu:1', 'gpu:0', 1, 32), ('gpu:0', 'host', 1, 8)]
        >>> report.bytes("device-to-host")
        8
    """
    return TransferReport()


def _route_rows(routes: Sequence[RouteTransfers]) -> list[tuple[str, ...]]:
    """Formats rows of the routes; routes of one direction with equal counts share a row, with the counts of each."""
    groups: dict[tuple[str, int, int], list[RouteTransfers]] = {}
    for route in routes:
        groups.setdefault((route.direction, route.calls, route.bytes), []).append(route)
    rows: list[tuple[str, ...]] = []
    for (_, calls, count), group in list(groups.items())[:_ROWS_SHOWN]:
        ends = (_names([getattr(route, end) for route in group]) for end in ("source", "destination"))
        text = " -> ".join(ends)
        text = text if len(text) <= _ROUTE_WIDTH else f"{text[: _ROUTE_WIDTH - 3]}..."
        each = " each" if len(group) > 1 else ""
        rows.append((text, str(len(group)), f"{calls}{each}", bytes_text(count)))
    rest = [route for group in list(groups.values())[_ROWS_SHOWN:] for route in group]
    if rest:
        calls, count = (sum(getattr(route, name) for route in rest) for name in ("calls", "bytes"))
        rows.append(("all others", str(len(rest)), str(calls), bytes_text(count)))
    return rows


def _names(ends: Sequence[str]) -> str:
    """Formats `gpu:0` or, with 3 more ends, `gpu:0 (+3)`."""
    distinct = list(dict.fromkeys(ends))
    return distinct[0] if len(distinct) == 1 else f"{distinct[0]} (+{len(distinct) - 1})"


def _line_text(row: LineTransfers) -> str:
    if not row.file:
        return "unknown"
    relative = os.path.relpath(row.file) if os.path.isabs(row.file) else row.file
    text = f"{min(relative, row.file, key=len)}:{row.line}"
    return text if len(text) <= _LINE_WIDTH else f"...{text[3 - _LINE_WIDTH :]}"
