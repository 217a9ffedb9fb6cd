# SPDX-License-Identifier: Apache-2.0
"""Text of --help that fits the terminal."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

from artifex_devices._base.text import wrapped

_ROW = re.compile(r"( *\S.*?\S {2,})(\S.*)")  # a name or an example, and what it means in a second column
_LIST = re.compile(r"[a-z ]{1,24}: ")  # "exit codes: " and its first entry
_LEAST = 20  # characters of a second column
_BELOW = " " * 6  # in front of a second column that stands below the first


_DETAILS = ("models:", "clusters:", "exit codes:\n")  # parts of an epilog that only the complete help has


def without_details(epilog: str, examples: int) -> Iterator[str]:
    """Yields the parts of an epilog that are not details, with at most this number of examples."""
    for part in epilog.strip("\n").split("\n\n"):
        if part.startswith(_DETAILS):
            continue
        if part.startswith("examples:"):
            starts = [found.start() for found in re.finditer(r"^  \S", part, re.MULTILINE)]
            part = part[: starts[examples]].rstrip() if len(starts) > examples else part
        yield part


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs and second columns of descriptions and epilogs; examples stay whole, to be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(part for line in _joined(text.splitlines()) for part in _fitted(line, width))


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Joins lines to their continuations in the text of the program."""
    whole = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        row = _ROW.match(whole)
        if row:
            continues = indent >= len(row[1])
        else:
            continues = bool(whole and line) and not whole.startswith(" ") and not whole.endswith(":")
            continues = continues and not _ROW.match(line)
        if continues:
            whole += " " + line.lstrip()
            continue
        yield whole
        whole = line
    yield whole


def _fitted(line: str, width: int) -> list[str]:
    """Wraps a line to at most `width` characters, where it is not an example."""
    if len(line) <= width:
        return [line]
    if row := _ROW.match(line):
        left, right = row.groups()
        if len(left) + _LEAST <= width:
            return wrapped(right, width, left, " " * len(left))
        return [left.rstrip(), *wrapped(right, width, _BELOW, _BELOW)]
    if line.startswith(" " * _LEAST):  # the second column of an example that fills the first
        return wrapped(line.lstrip(), width, _BELOW, _BELOW)
    if line.startswith(" "):
        return [line]
    entries = _LIST.match(line)
    return wrapped(line, width, rest=" " * len(entries[0]) if entries else "")
