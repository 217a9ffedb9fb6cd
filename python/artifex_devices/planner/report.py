# SPDX-License-Identifier: Apache-2.0
"""Results that are printed as facts and a table, shown as HTML and saved as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from artifex_devices._base import html
from artifex_devices._base.text import table_lines


class Layout(NamedTuple):
    """A title, facts in two columns, and a table."""

    title: str
    facts: Sequence[tuple[str, str]]
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def text(self) -> str:
        """Lines of text; without rows there is no table."""
        table = table_lines([self.head, *self.rows]) if self.rows else []
        return "\n  ".join([self.title, *table_lines(self.facts), *table])

    def html(self, *parts: str) -> str:
        """A page, with the parts below the table."""
        return html.page(self.title, html.facts(self.facts), html.table(self.head, self.rows), *parts)


class Report(html.NotebookText):
    """Base of plans and suggestions."""

    def _layout(self) -> Layout:
        raise NotImplementedError

    def _content(self) -> dict[str, Any]:
        raise NotImplementedError

    def to_json(self) -> str:
        """Returns all numbers as JSON, with their source."""
        return json.dumps(self._content(), indent=1)

    def __str__(self) -> str:
        """Returns a readable table."""
        return self._layout().text()

    def _repr_html_(self) -> str:
        return self._layout().html()


def picked(value: Any, *names: str) -> dict[str, Any]:
    """Returns these attributes as a dict."""
    return {name: getattr(value, name) for name in names}
