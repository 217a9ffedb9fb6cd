# SPDX-License-Identifier: Apache-2.0
"""Results that are printed as an answer, with their sources on request, shown as HTML and saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifex_devices._base import html
from artifex_devices._base.text import table_lines, wrapped
from artifex_devices.accelerators import source_notes

Facts = Sequence[tuple[str, str]]

_MORE = ("details", "rates, factors and sources: details() in Python, or --details")


class Summary(NamedTuple):
    """A title, facts in two columns, a table, and further facts below it; details are printed only on request."""

    title: str
    facts: Facts
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    below: Facts = ()
    details: Facts = ()

    def text(self, width: int = 0, *, is_detailed: bool = False) -> str:
        """Formats lines of at most `width` characters, if it is not 0; without rows there is no table."""
        inner = max(width - 2, 0)
        title = "\n".join(wrapped(self.title, width, rest="    ")) if width else self.title
        table = table_lines([self.head, *self.rows], width=inner) if self.rows else []
        rest = self.details if is_detailed else [_MORE] * bool(self.details)
        below = table_lines(_with_sources([*self.below, *rest]), width=inner)
        return "\n  ".join([title, *table_lines(_with_sources(self.facts), width=inner), *table, *below])

    def html(self, *parts: str) -> str:
        """Formats a page, with the parts below the facts, and the details folded."""
        details = html.facts(_with_sources(self.details))
        return html.page(
            self.title,
            html.facts(_with_sources(self.facts)),
            html.table(self.head, self.rows),
            html.facts(_with_sources(self.below)),
            *parts,
            html.folded("details", details) if details else "",
        )


def _with_sources(facts: Facts) -> list[tuple[str, str]]:
    """Returns the facts, and the title and address of each source that they name by its code."""
    notes = source_notes(" ".join(text for _, text in facts))
    return [*facts, *((f"[{code}]", text) for code, text in notes.items())]


class Report(html.NotebookText):
    """Base of plans and suggestions."""

    def _summary(self) -> Summary:
        raise NotImplementedError

    def _command_summary(self) -> Summary:
        """Returns the summary for the command line, where advice is options instead of arguments."""
        return self._summary()

    def _content(self) -> dict[str, object]:
        raise NotImplementedError

    def details(self) -> str:
        """Returns the printed text with all details: rates, factors, sources, and the size of a search."""
        return self._summary().text(is_detailed=True)

    def to_json(self) -> str:
        """Returns all numbers as JSON, with their source."""
        return self._json({})

    def _json(self, more: dict[str, object]) -> str:
        content = {**self._content(), **more}
        document = {"format": "artifex_devices/plan/1", **content, "sources": source_notes(json.dumps(content))}
        return json.dumps(document, indent=1)

    def __str__(self) -> str:
        """Returns a readable table."""
        return self._summary().text()

    def __format__(self, width: str) -> str:
        """Returns the table in lines of at most `width` characters: f"{plan:80}"."""
        return self._summary().text(int(width or 0))

    def _repr_html_(self) -> str:
        return self._summary().html()


def picked(value: object, *names: str) -> dict[str, object]:
    """Returns these attributes as a dict."""
    return {name: getattr(value, name) for name in names}


def with_model(state: Mapping[str, object]) -> dict[str, object]:
    """Returns the state of a pickled plan; the first pickles of version 0.1.0 have the model as `shape`."""
    return {"model" if name == "shape" else name: value for name, value in state.items()}
