# SPDX-License-Identifier: Apache-2.0
"""What an examination is made of: facts with their sources, in sections, and what follows from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from artifex_devices._base.public_path import public


@public("artifex_devices.doctor")
@dataclass(frozen=True)
class Fact:
    """One value and its source.

    Attributes:
        value: Value of a JSON type; None if it is not known.
        source: File, call or library, or conditions of the measurement.
        unit: "bytes", "CPUs", "GB/s"; None for values without a unit.
        problem: Reason why the value is not known or wrong.
    """

    value: Any
    source: str
    unit: str | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the attributes for JSON."""
        return {"value": self.value, "unit": self.unit, "source": self.source, "problem": self.problem}


@public("artifex_devices.doctor")
@dataclass
class Section:
    """Facts about one topic, by name, in the order of their display."""

    title: str
    facts: dict[str, Fact] = field(default_factory=dict)

    def add(self, name: str, value: Any, source: str, *, unit: str | None = None, problem: str | None = None) -> None:
        """Adds a fact."""
        self.facts[name] = Fact(value, source, unit, problem)

    def value(self, name: str) -> Any:
        """Returns the value of a fact; None if it is unknown or missing."""
        return self.facts[name].value if name in self.facts else None

    def source(self, name: str) -> str:
        """Returns the source of a fact."""
        return self.facts[name].source


@public("artifex_devices.doctor")
@dataclass(frozen=True)
class Finding:
    """Something to repair or to know.

    Attributes:
        id: Name that is stable over versions, such as "huge-pages-off".
        severity: "attention" for high costs or failures, "hint" for others.
        what: Description of the finding.
        cost: Effect on programs, with the source of numbers.
        repair: Command or setting that repairs it.
        facts: Facts that led to the finding, as "section.name".
    """

    id: str
    severity: str
    what: str
    cost: str
    repair: str
    facts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the attributes for JSON."""
        return {**asdict(self), "facts": list(self.facts)}


class Files:
    """The small files of /proc and /sys below a root: "/", or a copy of a machine's files."""

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self._root = Path(root)

    def read(self, path: str) -> tuple[str | None, str | None]:
        """Returns the stripped text, or None and the reason."""
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
        """Reads numbers from lines of the form "Name:   12 kB", kB as bytes; returns them and the problem."""
        text, problem = self.read(path)
        return dict(_rows(text or "")), problem


def _rows(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            yield name.strip(), int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
