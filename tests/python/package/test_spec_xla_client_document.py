# SPDX-License-Identifier: Apache-2.0
"""The document of the xla_client module: every name and parameter, and every example.

The document's file has a line number before each line and no indentation; both are put right here. The only other
change is that of the import.
"""

from __future__ import annotations

import enum
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import xla_client

SPEC = Path(__file__).resolve().parents[4] / "shared" / "spec"
DOCUMENT = next(iter(sorted(SPEC.glob("004_*"))), None)

pytestmark = pytest.mark.skipif(DOCUMENT is None, reason="the documents are not beside the checkout (../shared/spec)")


def lines_of_document() -> list[str]:
    """The lines without their numbers; those that are empty in the document come as ""."""
    assert DOCUMENT is not None
    lines: list[str] = []
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line == str(len(lines)):
            lines.append("")
        else:
            lines[-1] = line
    return lines


def blocks() -> list[tuple[str, str, list[str]]]:
    """(heading, what stands after the fence's "python", lines) of each block."""
    found: list[tuple[str, str, list[str]]] = []
    heading, inside = "", False
    for line in lines_of_document():
        if line.startswith("```"):
            inside = not inside
            if inside:
                found.append((heading, line.removeprefix("```python").strip(), []))
        elif inside:
            found[-1][2].append(line)
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    return found


def example(heading: str) -> str:
    """An example's code. What opens a block in these examples keeps it open to their end."""
    (lines,) = (lines for title, kind, lines in blocks() if title == heading and not kind)
    depth, code = 0, []
    for line in lines:
        code.append("    " * depth + line)
        depth += line.endswith(":")
    return "\n".join(code).replace("from jaxlib import", "from artifex_devices import")


@dataclass
class Documented:
    """One class of the document, or the module (name "")."""

    name: str
    attributes: list[str] = field(default_factory=list)
    methods: dict[str, list[str]] = field(default_factory=dict)  # parameters without self
    members: list[str] = field(default_factory=list)  # of an enum


def documented() -> list[Documented]:
    module = Documented("")
    found = [module]
    for _, kind, lines in blocks():
        if not kind:
            continue
        owners: list[Documented] = []
        is_property = is_static = False
        # Docstrings away, and each signature on one line.
        text = re.sub(r'""".*?"""', "", "\n".join(lines), flags=re.S)
        text = re.sub(r"\(([^()]*)\)", lambda match: "(" + " ".join(match[1].split()) + ")", text)
        for line in text.splitlines():
            if match := re.match(r"class (\w+)", line):
                inner = match[1] == "Kind"
                owners = [*owners, Documented(match[1])] if inner else [Documented(match[1])]
                found.append(owners[-1])
            elif match := re.match(r"def (\w+)\((.*?),? ?\)", line):
                names = re.findall(r"(\w+)(?:: [^,=\[]*(?:\[[^]]*\])?[^,=]*)?(?: = \.\.\.)?(?:, |$)", match[2])
                if "self" in names:
                    owner = owners[0]
                else:
                    owner = owners[0] if is_static else module
                if is_property:
                    owner.attributes.append(match[1])
                else:
                    owner.methods[match[1]] = [name for name in names if name != "self"]
                is_property = is_static = False
            elif match := re.match(r"(\w+): ", line):
                owners[-1].attributes.append(match[1])
            elif match := re.match(r"(\w+) = \.\.\.", line):
                owners[-1].members.append(match[1])
            is_property = is_property or line == "@property"
            is_static = is_static or line == "@staticmethod"
    return found


def parameters_of(function: Any) -> list[str]:
    """Of Python's functions and of compiled ones, which tell them in the first line of their docstring."""
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:
        first = (function.__doc__ or "").splitlines()[0]
        inside = first[first.index("(") + 1 : first.rindex(")")]
        names = re.findall(r"(?:^|, )(\w+)(?=:)", inside)
    return [name for name in names if name not in ("self", "cls")]


CLASSES = {
    "Device": 13,
    "Memory": 4,
    "DeviceList": 10,
    "DeviceTopology": 4,
    "DeviceAssignment": 4,
    "Layout": 5,
    "PjRtLayout": 1,
    "GpuAllocatorConfig": 1,
    "Kind": 4,
}


def test_the_document_is_read_whole() -> None:
    found = {each.name: each for each in documented()}
    counts = {name: len(d.attributes) + len(d.methods) + len(d.members) for name, d in found.items() if name}
    assert counts == CLASSES
    assert found[""].methods == {"check_and_canonicalize_memory_kind": ["memory_kind", "device_list"]}
    assert found["GpuAllocatorConfig"].methods == {
        "__init__": ["kind", "memory_fraction", "preallocate", "collective_memory_size"]
    }
    assert found["Kind"].members == ["DEFAULT", "PLATFORM", "BFC", "CUDA_ASYNC"]
    assert found["DeviceAssignment"].methods["create"] == ["array"]


@pytest.mark.parametrize("name", ["", *CLASSES])
def test_every_documented_name_and_parameter_is_ours(name: str) -> None:
    (theirs,) = (each for each in documented() if each.name == name)
    ours: Any = getattr(xla_client.GpuAllocatorConfig if name == "Kind" else xla_client, name) if name else xla_client
    assert [member for member in theirs.members if member not in dir(ours)] == []
    assert [attribute for attribute in theirs.attributes if not hasattr(ours, attribute)] == []
    for method, parameters in theirs.methods.items():
        if method.startswith("__") and method != "__init__":
            assert callable(getattr(ours, method)), method
        else:
            assert parameters_of(getattr(ours, method))[: len(parameters)] == parameters, method
    if name == "Kind":
        assert issubclass(ours, enum.IntEnum)


def run(heading: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], list[str]]:
    namespace: dict[str, Any] = {}
    with ad.simulate(2):
        exec(compile(example(heading), heading, "exec"), namespace)
    return namespace, capsys.readouterr().out.splitlines()


def test_every_example_has_a_test() -> None:
    assert [heading for heading, kind, _ in blocks() if not kind] == [
        "Device Discovery and Selection",
        "Memory Management",
        "Device Assignment for Multi-Device",
        "Device Topology",
    ]


def test_device_discovery_and_selection(capsys: pytest.CaptureFixture[str]) -> None:
    after, lines = run("Device Discovery and Selection", capsys)
    assert lines[0] == "Available devices: 2"
    for number in (0, 1):
        printed = lines[1 + 6 * number : 7 + 6 * number]
        assert printed[:5] == [
            f"Device {number}: cpu (cpu)",
            " Host ID: 0",
            " Process: 0",
            " Default memory: device",
            " Addressable memories: ['device', 'pinned_host', 'unpinned_host']",
        ]
        assert printed[5].startswith(" Memory stats: {'bytes_in_use': 0, ")
    assert len(lines) == 13
    assert after["devices"] == after["client"].devices()


def test_memory_management(capsys: pytest.CaptureFixture[str]) -> None:
    after, lines = run("Memory Management", capsys)
    assert lines[:2] == ["Buffer on device: [1. 2. 3.]", "Live buffers on device: 1"]
    assert lines[2].startswith("Memory usage: {'bytes_in_use': 12, 'peak_bytes_in_use': 12, ")
    assert after["buffer"].device() is after["device"]
    np.testing.assert_array_equal(np.asarray(after["buffer"]), after["data"])


def test_device_assignment(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Device Assignment for Multi-Device", capsys)[1] == ["Replica count: 2", "Computation count: 1"]


def test_device_topology(capsys: pytest.CaptureFixture[str]) -> None:
    after, lines = run("Device Topology", capsys)
    assert lines[0] == "Topology platform: cpu"
    assert lines[1] == f"Platform version: {after['client'].platform_version}"
    assert lines[2] == f"Serialized topology size: {len(after['topology_bytes'])} bytes"
    assert 0 < len(after["topology_bytes"]) < 4096
