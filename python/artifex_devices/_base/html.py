# SPDX-License-Identifier: Apache-2.0
"""HTML of values for notebooks: a page is a title and parts, such as facts, tables, pictures and texts.

The HTML has no script, no class and no external reference. It uses only elements and styles that JupyterLab's sanitizer
keeps: an untrusted notebook looks the same. Letters have the colour of the surrounding page. All text is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

_MAX_OPEN_LINES = 4
_MAX_UNBROKEN = 24  # letters of a text in a table that stays on one line
_SEPARATORS = re.compile(r"([/.,=_])(?=\w)")

# Notebooks align the cells of tables to the right, centre tables and shade every second row.
_TABLE = "margin:0 0 0.5em 0;border-collapse:collapse;font-size:13px"
_ROW = "background-color:transparent"
_CELL = "padding:1px 1em 1px 0;text-align:left;vertical-align:top"


class NotebookText:
    """A class whose values IPython prints as their `str`, where it shows no HTML."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def page(title: str, *parts: str) -> str:
    """Joins the title and the parts that are not empty to one page."""
    return "\n".join(
        [
            '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">',
            f'<div style="font-weight:600">{html.escape(title)}</div>',
            *(part for part in parts if part),
            "</div>",
        ]
    )


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Formats names and texts in two columns."""
    lines = [
        f'<tr style="{_ROW}"><td style="{_CELL};white-space:nowrap;opacity:0.7">{html.escape(name)}</td>'
        f'<td style="{_CELL}">{_breakable(text)}</td></tr>'
        for name, text in rows
    ]
    return _scrolled("".join(lines)) if lines else ""


def _breakable(text: str) -> str:
    """Escapes a text; long words, such as addresses, may break behind their slashes and dots."""
    words = (
        _SEPARATORS.sub(r"\1<wbr/>", html.escape(word)) if len(word) > _MAX_UNBROKEN else html.escape(word)
        for word in text.split(" ")
    )
    return " ".join(words)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Formats rows of texts below their names; "" without rows."""
    lines = [_row("td", row) for row in rows]
    if not lines:
        return ""
    return _scrolled(_row("th", head) + "".join(lines))


def _scrolled(rows: str) -> str:
    """Wraps a table so that it is scrolled where it is wider than the page."""
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{rows}</table></div>'


def _row(element: str, texts: Sequence[str]) -> str:
    cells = (f'<{element} style="{_CELL};{_breaks(text)}">{html.escape(text)}</{element}>' for text in texts)
    return f'<tr style="{_ROW}">{"".join(cells)}</tr>'


def _breaks(text: str) -> str:
    return "white-space:nowrap" if len(text) <= _MAX_UNBROKEN else "min-width:18em"


def preformatted(text: str) -> str:
    """Formats a text with its line breaks."""
    return f'<pre style="margin:0.3em 0 0.5em 0;overflow-x:auto;white-space:pre">{html.escape(text)}</pre>'


def note(text: str) -> str:
    """Formats a faint line."""
    return f'<div style="opacity:0.7">{html.escape(text)}</div>'


def folded(summary: str, part: str) -> str:
    """Formats a part that a click on its summary opens."""
    return f"<details><summary>{html.escape(summary)}</summary>{part}</details>"


def around_value(value: str, *parts: str) -> tuple[str, ...]:
    """Puts the text of a value in front of the parts if it is short, else folded behind them."""
    text = preformatted(value)
    if value.count("\n") < _MAX_OPEN_LINES:
        return text, *parts
    return *parts, folded("value", text)
