# SPDX-License-Identifier: Apache-2.0
"""ProgramSummary: the collectives of a program without the names, order and layouts that a compiler chooses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from artifex_devices._base import html
from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import bytes_text, printable, shortened_list, table_lines
from artifex_devices.audit.program import Program
from artifex_devices.audit.sharding_files import parse_json
from artifex_devices.audit.values import Collective, place_of

FORMAT = "artifex_devices/collectives/1"
_MOST_PLACES = 8
_HEAD = ("count", "collective", "axes", "dtypes", "bytes", "runs", "where")


@public("artifex_devices.audit")
@dataclass(frozen=True)
class SummaryRow:
    """Collectives of a program that are alike.

    Attributes:
        kind: Kind, such as "all_gather".
        axes: Axes of the mesh, or None if they are unknown.
        dtypes: Dtypes of the operands, each once, sorted.
        bytes: Bytes that one device sends in one run of one of them, or None if they are unknown.
        runs: Number of runs of one of them in one execution of the program, or None if it is unknown.
        count: Number of these collectives.
        where: Lines of the source, or names of the operation; the comparison of two programs does not read them.
    """

    kind: str
    axes: tuple[str, ...] | None
    dtypes: tuple[str, ...]
    bytes: int | None
    runs: int | None
    count: int
    where: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The values in which collectives must agree to be alike."""
        return self.kind, self.axes, self.dtypes, self.bytes, self.runs

    @property
    def sent(self) -> int:
        """The bytes that one device sends in all runs of all of them, as far as they are known."""
        return self.count * (self.bytes or 0) * (1 if self.runs is None else self.runs)


@public("artifex_devices.audit")
@dataclass(frozen=True, repr=False)
class ProgramSummary(html.NotebookText):
    """The collectives of a program as a golden file has them: sorted, without names of the compiler.

    Attributes:
        mesh: Names and sizes of the mesh axes.
        rows: Collectives, those that are alike in one row.
    """

    mesh: tuple[tuple[str, int], ...]
    rows: tuple[SummaryRow, ...]

    def to_json(self) -> str:
        """Returns one line for each row; `audit.save` writes it."""
        rows = ",\n".join(json.dumps(_content(row)) for row in self.rows)
        lines = ["{", f'"format": "{FORMAT}",', f'"mesh": {json.dumps(dict(self.mesh))},', '"collectives": [', rows]
        return "\n".join(line for line in (*lines, "]", "}") if line) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ProgramSummary:
        """Returns the summary of a text of `to_json`.

        Raises:
            ValueError: The text is something else.
            TypeError: `text` is not a str.

        Example:
            >>> from artifex_devices import audit
            >>> text = audit.ProgramSummary((("data", 4),), ()).to_json()
            >>> audit.ProgramSummary.from_json(text).mesh
            (('data', 4),)
        """
        operation = "ProgramSummary.from_json"
        if not isinstance(text, str):
            raise wrong_type(operation, "text", text, "the text of ProgramSummary.to_json")
        return summary_of_document(operation, parse_json(operation, text, "text", "a summary of audit.save"), "text")

    def __str__(self) -> str:
        """Returns a table."""
        return "\n".join(table_lines([_HEAD, *(_cells(row) for row in self.rows)], right=(0,)))

    def _repr_html_(self) -> str:
        return html.page(self._title(), html.table(_HEAD, (_cells(row) for row in self.rows)))

    def __repr__(self) -> str:
        return f"<ProgramSummary: {self._title()}>"

    def _title(self) -> str:
        count = sum(row.count for row in self.rows)
        return f"{count} collective{'' if count == 1 else 's'}"


def _cells(row: SummaryRow) -> tuple[str, ...]:
    return (
        str(row.count),
        printable(row.kind),
        axes_text(row.axes),
        printable(", ".join(row.dtypes)) or "unknown",
        "unknown" if row.bytes is None else bytes_text(row.bytes),
        "unknown" if row.runs is None else str(row.runs),
        printable(shortened_list(list(row.where), 3)),
    )


def summary_of(program: Program) -> ProgramSummary:
    """Returns the summary of a program."""
    groups: dict[tuple[Any, ...], list[Collective]] = {}
    for each in program.collectives:
        groups.setdefault((each.kind, each.axes, _dtypes(each), each.bytes, each.runs), []).append(each)
    rows = [
        SummaryRow(first.kind, first.axes, _dtypes(first), first.bytes, first.runs, len(found), _places(found))
        for found in groups.values()
        for first in found[:1]
    ]
    return ProgramSummary(program.mesh, _sorted(rows))


def _dtypes(collective: Collective) -> tuple[str, ...]:
    return tuple(sorted(set(collective.dtypes)))


def _places(collectives: Iterable[Collective]) -> tuple[str, ...]:
    places = {place_of(each.file, each.line) or each.op_name for each in collectives} - {""}
    return tuple(sorted(places))[:_MOST_PLACES]


def _sorted(rows: Iterable[SummaryRow]) -> tuple[SummaryRow, ...]:
    def order(row: SummaryRow) -> tuple[Any, ...]:
        numbers = (-1 if each is None else each for each in (row.bytes, row.runs, row.count))
        return row.kind, row.axes is None, row.axes or (), row.dtypes, *numbers

    return tuple(sorted(rows, key=order))


def axes_text(axes: tuple[str, ...] | None) -> str:
    """Formats axes: "data,model"; "none" of groups of one device, "unknown" of others without axes."""
    return "unknown" if axes is None else printable(",".join(axes)) or "none"


def _content(row: SummaryRow) -> dict[str, object]:
    names = ("kind", "axes", "dtypes", "bytes", "runs", "count", "where")
    return {name: getattr(row, name) for name in names}


def summary_of_document(operation: str, document: Any, name: str) -> ProgramSummary:
    """Returns the summary of the content of a JSON file; ValueError if it is something else."""
    try:
        if document["format"] != FORMAT:
            raise ValueError(f"the format is {safe_repr(document['format'])}")
        mesh = tuple((_text(key), _count(value)) for key, value in document["mesh"].items())
        return ProgramSummary(mesh, _sorted(_row(each) for each in document["collectives"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise failure(
            ValueError,
            operation,
            f"{name} is not a summary of a program: {what}",
            expected="a file that audit.save or assert_matches wrote",
            fix="write it again: audit.save(audit.program(x), path)",
        ) from None


def _row(row: dict[str, Any]) -> SummaryRow:
    axes, size, runs = row["axes"], row["bytes"], row["runs"]
    return SummaryRow(
        _text(row["kind"]),
        None if axes is None else tuple(map(_text, axes)),
        tuple(map(_text, row["dtypes"])),
        None if size is None else _count(size),
        None if runs is None else _count(runs),
        _count(row["count"]),
        tuple(map(_text, row["where"])),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a name is {safe_repr(value)}")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"a number is {safe_repr(value)}")
    return value
