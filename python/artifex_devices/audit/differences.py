# SPDX-License-Identifier: Apache-2.0
"""audit.diff: what changed between two tables of shardings, or between the collectives of two programs."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from artifex_devices._base import html
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, printable, shortened, shortened_list
from artifex_devices.audit.leaves import LeafSharding, axes_of
from artifex_devices.audit.sharding_table import Shardings, mesh_text, spec_text
from artifex_devices.audit.summary import ProgramSummary, SummaryRow, axes_text

SHOWN = 20
_MOST_SAME = 256  # leaves of one path
_SIGNS = {"appeared": "+", "vanished": "-", "changed": "~"}


@public("artifex_devices.audit")
@dataclass(frozen=True)
class Change:
    """One leaf or row that two audits do not share.

    Attributes:
        kind: "appeared", "vanished" or "changed".
        name: Path of the leaf, or kind and axes of the collectives.
        before: The leaf or row of the first audit, or None.
        after: The leaf or row of the second audit, or None.
        bytes: Bytes of the larger of both: of the leaf on each device, or sent in all runs; None if unknown.
        text: What changed, in a few words.
    """

    kind: str
    name: str
    before: LeafSharding | SummaryRow | None
    after: LeafSharding | SummaryRow | None
    bytes: int | None
    text: str

    def __str__(self) -> str:
        """Returns a line that begins with + (appeared), - (vanished) or ~ (changed)."""
        return f"{_SIGNS[self.kind]} {printable(self.name)}: {printable(self.text)}"


@public("artifex_devices.audit")
@dataclass(frozen=True, repr=False)
class Difference(html.NotebookText):
    """What changed between two audits; false where nothing did.

    Attributes:
        changes: Leaves or rows that appeared, vanished or changed, those of most bytes first.
    """

    changes: tuple[Change, ...]

    @property
    def appeared(self) -> tuple[Change, ...]:
        """The leaves or rows that only the second audit has."""
        return tuple(each for each in self.changes if each.kind == "appeared")

    @property
    def vanished(self) -> tuple[Change, ...]:
        """The leaves or rows that only the first audit has."""
        return tuple(each for each in self.changes if each.kind == "vanished")

    @property
    def changed(self) -> tuple[Change, ...]:
        """The leaves or rows that both have, with different values."""
        return tuple(each for each in self.changes if each.kind == "changed")

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        """Returns a line for each of the first 20 changes."""
        return "\n".join(shortened(list(map(str, self.changes)), SHOWN)) or "no difference"

    def _repr_html_(self) -> str:
        rows = [(each.kind, printable(each.name), printable(each.text)) for each in self.changes[:SHOWN]]
        rest = len(self.changes) - SHOWN
        return html.page(
            f"{len(self.changes)} difference{'' if len(self.changes) == 1 else 's'}",
            html.table(("", "leaf or collective", "what"), rows),
            html.note(f"and {rest} more") if rest > 0 else "",
        )

    def __repr__(self) -> str:
        counts = (f"{len(getattr(self, name))} {name}" for name in _SIGNS)
        return f"<Difference: {', '.join(counts)}>"


def difference_of_shardings(before: Shardings, after: Shardings) -> Difference:
    """Compares leaves by path; several leaves of a path are compared in their order, equal ones first.

    A dtype, a shape or a mesh that one of both does not have is not compared.
    """
    changes: list[tuple[int, Change]] = []
    old, new = _by_path(before.leaves), _by_path(after.leaves)
    for path in dict.fromkeys((*old, *new)):
        for first, second in _paired(old.get(path, []), new.get(path, [])):
            text = _leaf_text(first, second)
            if text:
                kind = "appeared" if first is None else "vanished" if second is None else "changed"
                both = [leaf for leaf in (first, second) if leaf is not None]
                size = max((leaf.device_bytes for leaf in both if leaf.device_bytes is not None), default=None)
                change = Change(kind, both[0].path, first, second, size, text)
                changes.append((max(leaf.weight for leaf in both), change))
    changes.sort(key=lambda pair: (-(pair[1].bytes or 0), -pair[0], pair[1].name))
    return Difference(tuple(change for _, change in changes))


def _by_path(leaves: Iterable[LeafSharding]) -> dict[str, list[LeafSharding]]:
    found: dict[str, list[LeafSharding]] = {}
    for leaf in leaves:
        # MaxText writes a slash between the keys of a path.
        found.setdefault(re.sub(r"/(?=[\[.])", "", leaf.path), []).append(leaf)
    return found


def _paired(
    old: list[LeafSharding], new: list[LeafSharding]
) -> Iterator[tuple[LeafSharding | None, LeafSharding | None]]:
    if max(len(old), len(new)) > _MOST_SAME:  # every pair would be compared
        yield from zip_longest(old, new)
        return
    rest = list(new)
    unmatched: deque[LeafSharding] = deque()
    for leaf in old:
        equal = next((i for i, other in enumerate(rest) if not _leaf_text(leaf, other)), None)
        if equal is None:
            unmatched.append(leaf)
        else:
            rest.pop(equal)
    for other in rest:
        yield (unmatched.popleft() if unmatched else None), other
    yield from ((leaf, None) for leaf in unmatched)


def _leaf_text(before: LeafSharding | None, after: LeafSharding | None) -> str:
    """Returns what differs, or "" if nothing does."""
    if before is None or after is None:
        leaf = after or before
        return "" if leaf is None else _description(leaf)
    parts = []
    if None not in (before.shape, after.shape) and before.shape != after.shape:
        parts.append(f"shape {before.shape} -> {after.shape}")
    if None not in (before.dtype, after.dtype) and before.dtype != after.dtype:
        parts.append(f"{before.dtype} -> {after.dtype}")
    if before.mesh and after.mesh and before.mesh != after.mesh:
        parts.append(f"mesh {mesh_text(before.mesh)} -> {mesh_text(after.mesh)}")
    if _entries(before) != _entries(after):
        parts.append(f"{_exact_text(before)} -> {_exact_text(after)}")
    elif _places(before) != _places(after):
        parts.append(f"{before.replicas} -> {after.replicas} replicas")
    if None not in (before.logical, after.logical) and before.logical != after.logical:
        parts.append(f"logical axes {before.logical} -> {after.logical}")
    sizes = [leaf.device_bytes for leaf in (before, after)]
    if None not in sizes and sizes[0] != sizes[1]:
        parts.append(" -> ".join(bytes_text(size or 0) for size in sizes) + " on each device")
    return ", ".join(parts)


def _entries(leaf: LeafSharding) -> object:
    """Returns the entries of a spec, without None at the end."""
    if leaf.spec is None:
        return None
    found = [axes_of(entry) or entry for entry in leaf.spec]
    while found and found[-1] is None:
        found.pop()
    return found


def _exact_text(leaf: LeafSharding) -> str:
    return "unknown" if leaf.spec is None else str(leaf.spec).replace(",)", ")")


def _places(leaf: LeafSharding) -> int | None:
    """Returns the number of replicas of a leaf without a mesh, which its spec does not show."""
    return None if leaf.mesh else leaf.replicas


def _description(leaf: LeafSharding) -> str:
    size = None if leaf.device_bytes is None else f"{bytes_text(leaf.device_bytes)} on each device"
    shape = None if leaf.shape is None else str(leaf.shape)
    return ", ".join(filter(None, (leaf.dtype, shape, spec_text(leaf), size)))


def difference_of_programs(before: ProgramSummary, after: ProgramSummary) -> Difference:
    """Compares the numbers of collectives that are alike; lines of the source are shown, not compared."""
    old, new = ({row.key: row for row in each.rows} for each in (before, after))
    changes = [_row_change(row, new[key]) for key, row in old.items() if key in new and new[key].count != row.count]
    added = [row for key, row in new.items() if key not in old]
    for row in (row for key, row in old.items() if key not in new):
        same = next((each for each in added if each.kind == row.kind and set(each.where) & set(row.where)), None)
        if same is not None:
            added.remove(same)
        changes.append(_row_change(row, same))
    changes += [_row_change(None, row) for row in added]
    changes.sort(key=lambda change: (-(change.bytes or 0), change.name, change.text))
    return Difference(tuple(changes))


def _row_change(before: SummaryRow | None, after: SummaryRow | None) -> Change:
    rows = [row for row in (before, after) if row is not None]
    kind = "appeared" if before is None else "vanished" if after is None else "changed"
    place = shortened_list(list(rows[-1].where), 3)
    text = f"{' -> '.join(_row_text(row) for row in rows)}{f' at {place}' if place else ''}"
    sizes = [row.sent for row in rows if row.bytes is not None]
    axes = " -> ".join(dict.fromkeys(axes_text(row.axes) for row in rows))
    return Change(kind, f"{rows[0].kind} over {axes}", before, after, max(sizes, default=None), text)


def _row_text(row: SummaryRow) -> str:
    size = "unknown bytes" if row.bytes is None else bytes_text(row.bytes)
    runs = "unknown times" if row.runs is None else f"{row.runs} time{'' if row.runs == 1 else 's'}"
    return f"{row.count} of {', '.join(row.dtypes) or 'unknown dtype'}, {size}, {runs}"
