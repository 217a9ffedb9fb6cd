# SPDX-License-Identifier: Apache-2.0
"""Results that are printed as facts and a table, shown as HTML and saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifex_devices._base import html
from artifex_devices._base.text import table_lines, wrapped
from artifex_devices.accelerators import source_notes


class Summary(NamedTuple):
    """A title, facts in two columns, and a table."""

    title: str
    facts: Sequence[tuple[str, str]]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def text(self, width: int = 0) -> str:
        """Formats lines of at most `width` characters, if it is not 0; without rows there is no table."""
        inner = max(width - 2, 0)
        title = "\n".join(wrapped(self.title, width, rest="    ")) if width else self.title
        table = table_lines([self.head, *self.rows], width=inner) if self.rows else []
        return "\n  ".join([title, *table_lines(self.all_facts(), width=inner), *table])

    def all_facts(self) -> list[tuple[str, str]]:
        """Returns the facts, and the title and address of each source that they name by its code."""
        notes = source_notes(" ".join(text for _, text in self.facts))
        return [*self.facts, *((f"[{code}]", text) for code, text in notes.items())]

    def html(self, *parts: str) -> str:
        """Formats a page, with the parts below the table."""
        return html.page(self.title, html.facts(self.all_facts()), html.table(self.head, self.rows), *parts)


class Report(html.NotebookText):
    """Base of plans and suggestions."""

    def _summary(self) -> Summary:
        raise NotImplementedError

    def _content(self) -> dict[str, object]:
        raise NotImplementedError

    def to_json(self) -> str:
        """Returns all numbers as JSON, with their source."""
        content = self._content()
        document = {"format": "artifex_devices/plan/1", **content, "sources": source_notes(json.dumps(content))}
        return json.dumps(document, indent=1)

    def _text(self, width: int = 0) -> str:
        return self._summary().text(width)

    def __str__(self) -> str:
        """Returns a readable table."""
        return self._text()

    def __format__(self, width: str) -> str:
        """Returns the table in lines of at most `width` characters: f"{plan:80}"."""
        return self._text(int(width or 0))

    def _repr_html_(self) -> str:
        return self._summary().html()


def picked(value: object, *names: str) -> dict[str, object]:
    """Returns these attributes as a dict."""
    return {name: getattr(value, name) for name in names}


def with_model(state: Mapping[str, object]) -> dict[str, object]:
    """Returns the state of a pickled plan; the first pickles of version 0.1.0 have the model as `shape`."""
    return {"model" if name == "shape" else name: value for name, value in state.items()}
