# SPDX-License-Identifier: Apache-2.0
"""Program: the collectives of a program, with totals and findings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from artifex_devices._base import html
from artifex_devices._base.checks import check_bytes, check_choice, check_str, failure
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.svg import Picture
from artifex_devices._base.text import bytes_text, printable, table_lines
from artifex_devices._core.internal import bar_chart_svg
from artifex_devices.audit.values import Collective, Finding, Total

FORMAT = "artifex_devices/audit_program/1"
_SHOWN = 30  # rows of a table
_HEAD = ("kind", "axes", "dtype", "count", "runs", "bytes of a run", "bytes", "where")
_NUMBERS = (3, 4, 5, 6)
_KEYS = ("axis", "kind", "line")
_MOST_BARS = 32


@public("artifex_devices.audit")
@dataclass(frozen=True, repr=False)
class Program(html.NotebookText):
    """The collectives of a program and what is suspicious about it; `print` shows them.

    Attributes:
        source: "HLO text", "StableHLO text", "FX graph", "CommDebugMode" or "profile".
        name: Name of the module or the file.
        devices: Number of devices, or None if the source does not have it.
        backend: "cpu", "gpu" or "tpu", or None if the source does not show it.
        is_partitioned: Whether the program is the one that each device runs, after the partitioner; before it, the
            collectives that the compiler inserts are missing.
        mesh: Names and sizes of the mesh axes, in order; axes that were found in the groups are named "axis_0",
            "axis_1" and so on.
        collectives: Collectives in the order of the text.
        notes: Facts that are missing from the source, or that the compiler does by itself.
    """

    source: str
    name: str
    devices: int | None
    backend: str | None
    is_partitioned: bool
    mesh: tuple[tuple[str, int], ...]
    collectives: tuple[Collective, ...]
    notes: tuple[str, ...] = ()
    all_findings: tuple[Finding, ...] = field(default=(), kw_only=True)

    def findings(self, at_least: int | str = "1 MiB") -> tuple[Finding, ...]:
        """Returns what is suspicious, most bytes first.

        Args:
            at_least: Least bytes of a finding in one run, as an int or a text such as "1 MiB" or "40 MB".

        Raises:
            ValueError: `at_least` is negative, or its unit is unknown.
            TypeError: It is neither an int nor a str.

        Example:
            >>> from artifex_devices import audit
            >>> text = '''HloModule step, is_scheduled=true, num_partitions=4
            ...
            ... ENTRY %main (x: f32[8]) -> f32[8] {
            ...   %x = f32[8]{0} parameter(0)
            ...   ROOT %sum = f32[8]{0} all-reduce(%x), channel_id=1, replica_groups=[4,1]<=[4],
            ...     use_global_device_ids=true
            ... }
            ... '''
            >>> [finding.kind for finding in audit.program(text).findings(at_least=0)]
            ['axis of size 1']
        """
        least = check_bytes("Program.findings", "at_least", at_least)
        found = [finding for finding in self.all_findings if finding.bytes >= least]
        return tuple(sorted(found, key=lambda finding: -finding.bytes * (finding.runs or 1)))

    def totals(self, by: Literal["axis", "kind", "line"] = "axis") -> dict[str, Total]:
        """Returns the sums over the collectives that share an axis, a kind or a line, most bytes first.

        Args:
            by: "axis" (keys such as "data" or "data,model", "" for groups of one device, "unknown" for groups along no
                axes), "kind" or "line" ("train.py:12", else the name of the operation).

        Raises:
            ValueError: `by` is another text.

        Example:
            >>> from artifex_devices import audit
            >>> text = '''HloModule step, is_scheduled=true, num_partitions=8
            ...
            ... ENTRY %main (x: f32[8]) -> f32[8] {
            ...   %x = f32[8]{0} parameter(0)
            ...   ROOT %sum = f32[8]{0} all-reduce(%x), channel_id=1, replica_groups=[4,2]<=[8],
            ...     use_global_device_ids=true
            ... }
            ... '''
            >>> audit.program(text, mesh={"data": 4, "model": 2}).totals()
            {'model': Total(count=1, runs=1, bytes=32, at_least=False)}
        """
        check_choice("Program.totals", "by", by, _KEYS)
        key: dict[str, Callable[[Collective], str]] = {
            "axis": axes_text,
            "kind": lambda each: each.kind,
            "line": lambda each: each.where,
        }
        groups: dict[str, list[Collective]] = {}
        for each in self.collectives:
            groups.setdefault(key[by](each), []).append(each)
        totals = {name: total_of(members) for name, members in groups.items()}
        return dict(sorted(totals.items(), key=lambda item: (-item[1].bytes, item[0])))

    def to_json(self) -> str:
        """Returns all values as JSON, which `from_json` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Program:
        r"""Returns the program of a text that `to_json` returned.

        Raises:
            ValueError: The text is not such JSON.
            TypeError: `text` is not a str.

        Example:
            >>> from artifex_devices import audit
            >>> program = audit.program("module @step {\n}\n")
            >>> audit.Program.from_json(program.to_json()) == program
            True
        """
        check_str("Program.from_json", "text", text, "write program.to_json()")
        try:
            document = json.loads(text)
            if document.pop("format") != FORMAT:
                raise ValueError("another format")
            collectives = tuple(_collective(each) for each in document.pop("collectives"))
            findings = tuple(_finding(each) for each in document.pop("all_findings"))
            mesh = tuple((str(name), int(size)) for name, size in document.pop("mesh"))
            notes = tuple(map(str, document.pop("notes")))
            return cls(mesh=mesh, collectives=collectives, notes=notes, all_findings=findings, **document)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise failure(
                ValueError,
                "Program.from_json",
                f"the text is not a program ({type(error).__name__}: {error})",
                expected=f'JSON of Program.to_json, with "format": "{FORMAT}"',
            ) from None

    def to_svg(self) -> Picture:
        """Draws the bytes that one device sends, by mesh axis and kind, as a stand-alone SVG picture.

        Raises:
            ValueError: The program has no collectives.
        """
        if not self.collectives:
            raise failure(
                ValueError, "Program.to_svg", f"{self._title()} has no collectives", expected="one or more to draw"
            )
        kinds = sorted({each.kind for each in self.collectives})
        totals = list(self.totals("axis").items())
        bars = []
        for name, total in totals[:_MOST_BARS]:
            members = [each for each in self.collectives if axes_text(each) == name]
            parts = [total_of(each for each in members if each.kind == kind) for kind in kinds]
            texts = [f"{kind} {bytes_total_text(part)}" for kind, part in zip(kinds, parts, strict=True)]
            bars.append(
                (name or "one device", [float(part.bytes) for part in parts], texts, bytes_total_text(total), False)
            )
        left = len(totals) - len(bars)
        notes = ["bytes that one device sends in one execution", *self.notes, *([f"{left} more axes"] if left else [])]
        return Picture(bar_chart_svg(self._title(), kinds, bars, 0.0, "", False, notes))

    def __str__(self) -> str:
        """Returns a readable table."""
        facts = table_lines([*self._facts()])
        table = table_lines([_HEAD, *self._rows()], right=_NUMBERS) if self.collectives else []
        found = [f"{each.kind}: {each.where}: {each.text}. {each.repair}." for each in self.findings()]
        return "\n  ".join([self._title(), *facts, *table, *map(printable, found)])

    def __repr__(self) -> str:
        return f"<Program {safe_repr(self.name)}: {self.source}, {_count(len(self.collectives), 'collective')}>"

    def _repr_html_(self) -> str:
        found = [
            (each.kind, each.where, bytes_text(each.bytes), f"{each.text}. {each.repair}.") for each in self.findings()
        ]
        return html.page(
            self._title(),
            html.facts(self._facts()),
            html.table(_HEAD, self._rows()),
            html.table(("finding", "where", "bytes", ""), found),
            self.to_svg()._repr_html_() if self.collectives else "",
        )

    def _title(self) -> str:
        return printable(f"program {self.name}")

    def _facts(self) -> list[tuple[str, str]]:
        total = total_of(self.collectives)
        mesh = ", ".join(f"{name}={size}" for name, size in self.mesh)
        known = [self.source, *([f"compiled for {self.backend}"] if self.backend else [])]
        facts = [("source", ", ".join(known))]
        if self.devices is not None:
            facts.append(("devices", f"{self.devices}{f' ({printable(mesh)})' if mesh else ''}"))
        facts.append(("collectives", f"{len(self.collectives)}, {bytes_total_text(total)} sent by one device"))
        return facts + [("note", note) for note in self.notes]

    def _rows(self) -> list[tuple[str, ...]]:
        groups: dict[tuple[str, ...], list[Collective]] = {}
        for each in self.collectives:
            key = (each.kind, axes_text(each) or "one device", ",".join(dict.fromkeys(each.dtypes)), each.where)
            groups.setdefault(key, []).append(each)
        totals = sorted(((total_of(members), key, members) for key, members in groups.items()), key=_most_first)
        rows: list[tuple[str, ...]] = [
            (
                kind,
                axes,
                dtype,
                str(total.count),
                "?" if total.runs is None else str(total.runs),
                _common_bytes(members),
                bytes_total_text(total),
                printable(where),
            )
            for total, (kind, axes, dtype, where), members in totals[:_SHOWN]
        ]
        if len(totals) > _SHOWN:
            rows.append(("", "", "", "", "", "", "", f"{len(totals) - _SHOWN} more rows"))
        return rows


def _most_first(row: tuple[Total, tuple[str, ...], list[Collective]]) -> tuple[int, tuple[str, ...]]:
    return -row[0].bytes, row[1]


def axes_text(collective: Collective) -> str:
    """Formats the axes of a collective: "data,model"; "" for groups of one device, "unknown" for None."""
    return "unknown" if collective.axes is None else ",".join(collective.axes)


def total_of(collectives: Iterable[Collective]) -> Total:
    """Returns the sum over collectives."""
    count, runs, sent, at_least = 0, 0, 0, False
    unknown_runs = False
    for each in collectives:
        count += 1
        runs += each.runs or 0
        unknown_runs |= each.runs is None
        at_least |= each.runs is None or (each.bytes is None and each.runs != 0)
        sent += (each.bytes or 0) * (1 if each.runs is None else each.runs)
    return Total(count, None if unknown_runs else runs, sent, at_least)


def bytes_total_text(total: Total) -> str:
    """Formats the bytes of a total: "at least 1.5 MiB"."""
    return f"{'at least ' if total.at_least else ''}{bytes_text(total.bytes)}"


def _common_bytes(members: list[Collective]) -> str:
    """Formats the bytes of one run, or from least to most."""
    known = [each.bytes for each in members if each.bytes is not None]
    if len(known) < len(members):
        return "?"
    least, most = bytes_text(min(known)), bytes_text(max(known))
    return least if least == most else f"{least} to {most}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _collective(given: dict[str, Any]) -> Collective:
    groups = tuple(tuple(map(int, group)) for group in given.pop("groups"))
    shapes = tuple(tuple(map(int, shape)) for shape in given.pop("shapes"))
    axes = given.pop("axes")
    dtypes = tuple(map(str, given.pop("dtypes")))
    return Collective(groups=groups, shapes=shapes, axes=axes if axes is None else tuple(axes), dtypes=dtypes, **given)


def _finding(given: dict[str, Any]) -> Finding:
    collective = given.pop("collective")
    return Finding(collective=collective if collective is None else _collective(collective), **given)
