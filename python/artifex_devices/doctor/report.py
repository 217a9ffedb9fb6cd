# SPDX-License-Identifier: Apache-2.0
"""The report of an examination: sections of facts, and findings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from artifex_devices._base.leaf_types import Record
from artifex_devices._base.public_path import public

FORMAT = "artifex_devices/doctor/1"
"""Version of the JSON document; its schema is report.schema.json in this folder."""


JsonValue: TypeAlias = Any  # None, a bool, a number, a text, or a list or dict of these


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

    value: JsonValue
    source: str
    unit: str | None = None
    problem: str | None = None

    def to_json(self) -> Record:
        """Returns the attributes for JSON."""
        return asdict(self)


@public("artifex_devices.doctor")
@dataclass
class Section:
    """Facts about one topic, by name, in the order of their display."""

    title: str
    facts: dict[str, Fact] = field(default_factory=dict)

    def add(self, name: str, value: object, source: str, *, absent: str | None = None, **about: str | None) -> None:
        """Adds a fact with its unit and problem; `absent` is the problem of a value None that has no other one."""
        if value is None:
            about["problem"] = about.get("problem") or absent
        self.facts[name] = Fact(value, source, **about)

    def value(self, name: str) -> JsonValue:
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

    def to_json(self) -> Record:
        """Returns the attributes for JSON."""
        return {**asdict(self), "facts": list(self.facts)}


@public("artifex_devices.doctor")
@dataclass
class Report:
    """Result of an examination.

    Attributes:
        date: Date and time in UTC, as ISO 8601.
        sections: Facts by section: topology, affinity, cgroup, numa_policy, memory, blas, mpi, distributed, gpus,
            speed (if it was measured), versions, environment_variables.
        findings: Recommended repairs, first the repairs that need attention.
    """

    date: str
    sections: dict[str, Section] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def needs_attention(self) -> bool:
        """Whether a finding is more than a hint."""
        return any(finding.severity == "attention" for finding in self.findings)

    def to_json(self) -> Record:
        """Returns the document that report.schema.json describes."""
        return {
            "format": FORMAT,
            "date": self.date,
            "needs_attention": self.needs_attention,
            "sections": {name: asdict(section) for name, section in self.sections.items()},
            "findings": [finding.to_json() for finding in self.findings],
        }
