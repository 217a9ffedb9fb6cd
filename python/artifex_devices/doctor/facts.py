# SPDX-License-Identifier: Apache-2.0
"""What an examination is made of: facts with their sources, in sections, and what follows from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifex_devices._base.public_path import public


@public("artifex_devices.doctor")
@dataclass(frozen=True)
class Fact:
    """One value and where it is from.

    Attributes:
        value: Of JSON's types; None where it is not known.
        source: A file, a call, a library, or how and when it was measured.
        unit: "bytes", "CPUs", "GB/s"; None where there is none.
        problem: Why the value is not known, or what is wrong with it.
    """

    value: Any
    source: str
    unit: str | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Its four attributes."""
        return {"value": self.value, "unit": self.unit, "source": self.source, "problem": self.problem}


@public("artifex_devices.doctor")
@dataclass
class Section:
    """Facts about one matter, by name, in the order in which they are shown."""

    title: str
    facts: dict[str, Fact] = field(default_factory=dict)

    def add(self, name: str, value: Any, source: str, *, unit: str | None = None, problem: str | None = None) -> None:
        """Adds a fact."""
        self.facts[name] = Fact(value, source, unit, problem)

    def value(self, name: str) -> Any:
        """A fact's value; None where it is not known or not there."""
        fact = self.facts.get(name)
        return None if fact is None else fact.value

    def source(self, name: str) -> str:
        """Where a fact is from."""
        return self.facts[name].source


@public("artifex_devices.doctor")
@dataclass(frozen=True)
class Finding:
    """Something to repair or to know.

    Attributes:
        id: Stays the same from version to version: "huge-pages-off".
        severity: "attention": it costs much or breaks programs; "hint": it may matter.
        what: What was found.
        cost: What it costs; numbers say where they are from.
        repair: A command or a setting.
        facts: "section.name" of the facts that it follows from.
    """

    id: str
    severity: str
    what: str
    cost: str
    repair: str
    facts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Its attributes."""
        return {
            "id": self.id,
            "severity": self.severity,
            "what": self.what,
            "cost": self.cost,
            "repair": self.repair,
            "facts": list(self.facts),
        }


class Files:
    """The small files of /proc and /sys below a root.

    Args:
        root: "/", or a copy of a machine's files.
    """

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        """See the class."""
        self._root = Path(root)

    def read(self, path: str) -> tuple[str | None, str | None]:
        """The text without blanks around it, or None; and why not, or None.

        Args:
            path: "/proc/meminfo".
        """
        try:
            with open(self._root / path.lstrip("/"), encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 20).strip()
        except OSError as error:
            return None, f"{path} cannot be read ({error.strerror or error})"
        return (text, None) if text else (None, f"{path} is empty")

    def add_text(self, section: Section, name: str, path: str) -> str | None:
        """Adds a file's text as a fact."""
        text, problem = self.read(path)
        section.add(name, text, path, problem=problem)
        return text

    def add_choice(self, section: Section, name: str, path: str) -> str | None:
        """Adds the word in brackets of a file such as "always [madvise] never"."""
        text, problem = self.read(path)
        chosen = text
        if text is not None and "[" in text:
            chosen = text.partition("[")[2].partition("]")[0]
        section.add(name, chosen, path, problem=problem)
        return chosen

    def table(self, path: str) -> tuple[dict[str, int], str | None]:
        """Numbers of a file of "Name:   12 kB" lines, kB as bytes; and why there are none."""
        text, problem = self.read(path)
        return dict(_rows(text or "")), problem


def _rows(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            yield name.strip(), int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
