# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices topology`: a machine and its devices."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import bytes_text, cpu_list, parse_cpu_list
from artifex_devices._core import Device, Machine
from artifex_devices.command_line.console import OK, UsageError, has_signs, write_json, write_picture, write_text

if TYPE_CHECKING:
    from artifex_devices._core import Device, Machine


SUMMARY = "a machine as a tree or a picture, and the devices that it gives"
DESCRIPTION = """\
Shows packages, memory nodes, caches and cores as hwloc sees them, and the CPU devices with the CPUs and the memory that
each of them owns. Of this machine it shows what affinity and cgroups leave to the process."""
EXAMPLES = """\
examples:
  artifex_devices topology                                   this machine
  artifex_devices topology --every                           each core on a line of its own
  artifex_devices topology --svg machine.svg                 a picture of it
  artifex_devices topology --machine "pack:2 numa:2 core:8 pu:2"
                                                             a machine that you describe (hwloc's synthetic form)
  artifex_devices topology --machine cluster_node.xml --json  one that `lstopo cluster_node.xml` has written elsewhere
  taskset -c 0 artifex_devices topology                      what is left with one CPU

exit codes: 0 done; 2 a machine that cannot be read; others as for every command (artifex_devices --help)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--machine, --every, and one of --json and --svg."""
    parser.add_argument(
        "--machine",
        metavar="FILE.xml|TEXT",
        help="an hwloc XML file, or a machine in hwloc's synthetic form; this machine when not given",
    )
    parser.add_argument("--every", action="store_true", help="each part on a line, also those that look alike")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all that is known, as JSON")
    form.add_argument(
        "--svg",
        metavar="FILE",
        nargs="?",
        const="-",
        help="write a picture to FILE; to standard output when no FILE is given",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the tree, the JSON or the picture; 0."""
    machine, devices = _read(arguments.machine)
    if arguments.json:
        write_json(_as_json(machine, devices))
        return OK
    if arguments.svg is not None:
        from artifex_devices.render import machine_svg

        write_picture(arguments.svg, machine_svg(machine))
        return OK
    lines = machine_lines(machine, every=arguments.every, ascii_only=not has_signs("├└│─"))
    lines += ["", f"{len(devices)} device{'' if len(devices) == 1 else 's'}:", *device_lines(devices)]
    if machine.is_live:
        lines.append(f"Together they may keep {machine.usable_cpus} CPU{'' if machine.usable_cpus == 1 else 's'} busy.")
    for missing in machine.missing_facts:
        lines += ["", f"Not known: {missing['fact']}: {missing['reason']}.", f"  Assumed: {missing['assumed']}."]
    write_text("\n".join(lines) + "\n")
    return OK


def _read(source: str | None) -> tuple[Machine, list[Device]]:
    import artifex_devices as ad

    if source is None:
        return ad.Machine.live(), ad.devices()
    try:
        source.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--machine: {source!r} is not text in UTF-8; expected it to be; rename the file") from None
    try:
        is_file = source.endswith(".xml") or Path(source).is_file()
        machine = ad.Machine.from_xml(source) if is_file else ad.Machine.from_synthetic(source)
        with ad.simulate(machine, compile_only=True):
            return machine, ad.devices()
    except (OSError, ValueError) as error:
        raise UsageError(f"--machine: {error}") from None


def _as_json(machine: Machine, devices: list[Device]) -> dict[str, Any]:
    return {
        "format": "artifex_devices/topology/1",
        "source": machine.source,
        "is_live": machine.is_live,
        "counts": machine.counts,
        "usable_cpus": machine.usable_cpus,
        "usable_memory_bytes": machine.usable_memory_bytes,
        "objects": machine.objects,
        "devices": [
            {
                "device": str(device),
                "cpus": device.cpuset,
                "numa_nodes": list(device.numa_nodes),
                "memory_bytes": device.memory_bytes,
            }
            for device in devices
        ],
        "missing_facts": machine.missing_facts,
    }


_HIDDEN = frozenset({"Bridge", "Misc"})  # their children are shown instead
_TEE, _END, _BAR, _GAP = "├─ ", "└─ ", "│  ", "   "
_ASCII = {_TEE: "|- ", _END: "`- ", _BAR: "|  ", _GAP: "   "}


@dataclass
class _Part:
    """One object with its children."""

    row: dict[str, Any]
    below: list[_Part] = field(default_factory=list)

    def shape(self) -> tuple[Any, ...]:
        """Everything but the numbers, which similar parts have in common."""
        kind = (self.row["type"], self.row["subtype"], self.row["model"], self.row["bytes"], self.row["name"])
        return (*kind, *(part.shape() for part in self.below))

    def is_of_cpus(self) -> bool:
        """Whether it holds CPUs only: no memory node and no device."""
        return self.row["type"] not in ("NUMANode", "PCIDev", "OSDev") and all(part.is_of_cpus() for part in self.below)


def machine_lines(machine: Machine, *, every: bool = False, ascii_only: bool = False) -> list[str]:
    """The tree, one line for each part; similar neighbours share a line.

    Args:
        machine: Any machine.
        every: Whether each part has its own line.
        ascii_only: Whether to avoid line-drawing characters.
    """
    objects = machine.objects
    root = _Part(objects[0])
    path = [root]  # one part for each depth; a hidden object is replaced by its parent
    for row in objects[1:]:
        del path[row["depth"] :]
        part = path[-1] if row["type"] in _HIDDEN else _Part(row)
        if part is not path[-1]:
            path[-1].below.append(part)
        path.append(part)
    signs = _ASCII if ascii_only else {}
    return [_heading(machine), *_branches(root, "", every, signs)]


def device_lines(devices: Sequence[Device]) -> list[str]:
    """One line for each group of neighbouring devices with the same CPUs and memory."""
    lines = []
    for first, last in _runs(devices):
        device = devices[first]
        name = f"{device}" if first == last else f"{device} to {devices[last]}"
        count = "" if first == last else " each"
        nodes = ", ".join(str(node) for node in device.numa_nodes)
        plural = "s" if len(device.numa_nodes) > 1 else ""
        lines.append(
            f"{name}: CPUs {device.cpuset}, memory node{plural} {nodes}, {bytes_text(device.memory_bytes)}{count}"
        )
    return lines


def _runs(devices: Sequence[Device]) -> Iterator[tuple[int, int]]:
    first = 0
    for number in range(1, len(devices) + 1):
        if number == len(devices) or _place(devices[number]) != _place(devices[first]):
            yield first, number - 1
            first = number


def _place(device: Device) -> tuple[object, ...]:
    return device.cpuset, tuple(device.numa_nodes), device.memory_bytes


def _heading(machine: Machine) -> str:
    memory = sum(node["memory_bytes"] for node in machine.numa_nodes)
    domains, pus = len(machine.cpu_domains), machine.counts["pus"]
    source = "this machine, as hwloc sees it" if machine.is_live else machine.source
    return (
        f"Machine: {domains} CPU domain{'' if domains == 1 else 's'}, {pus} PU{'' if pus == 1 else 's'}, "
        f"{bytes_text(memory)} ({source})"
    )


def _branches(parent: _Part, indent: str, every: bool, signs: dict[str, str]) -> Iterator[str]:
    groups = list(_alike(parent.below, every))
    for number, group in enumerate(groups):
        is_last = number == len(groups) - 1
        part, words = group[0], [_words(group[0], with_numbers=len(group) == 1)]
        while not every and len(part.below) == 1 and part.below[0].is_of_cpus():  # a part with a single child
            part = part.below[0]
            words.append(_words(part, with_numbers=len(group) == 1))
        text = " + ".join(words)
        if len(group) > 1:
            inner = _inner(part)
            text = f"{len(group)} x {f'({text}{inner})' if inner or len(words) > 1 else text}: CPUs {_span(group)}"
        sign = _END if is_last else _TEE
        yield f"{indent}{signs.get(sign, sign)}{text}"
        if len(group) == 1:
            edge = _GAP if is_last else _BAR
            yield from _branches(part, indent + signs.get(edge, edge), every, signs)


def _alike(parts: Sequence[_Part], every: bool) -> Iterator[list[_Part]]:
    """Runs of similar neighbours that hold CPUs only; others alone."""
    group: list[_Part] = []
    for part in parts:
        if group and (every or not part.is_of_cpus() or part.shape() != group[0].shape()):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _inner(part: _Part) -> str:
    """Children of one of several similar parts, as text: " with 2 PUs"."""
    counts: dict[str, int] = {}

    def count(inner: _Part) -> None:
        for below in inner.below:
            counts[below.row["type"]] = counts.get(below.row["type"], 0) + 1
            count(below)

    count(part)
    if not counts:
        return ""
    return " with " + ", ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in counts.items())


def _span(parts: Sequence[_Part]) -> str:
    """The CPUs of all parts: "0-3,8"."""
    return cpu_list(cpu for part in parts for cpu in parse_cpu_list(part.row["cpus"]))


def _words(part: _Part, *, with_numbers: bool) -> str:
    row = part.row
    kind = str(row["type"])
    size = f" {bytes_text(row['bytes'])}" if row["bytes"] else ""
    model = f" ({row['model']})" if row["model"] else ""
    number = f" {row['logical']}" if with_numbers and row["logical"] >= 0 else ""
    if kind == "NUMANode":
        subtype = f" {row['subtype']}" if row["subtype"] else ""
        cpus = f"CPUs {row['cpus']}" if row["cpus"] else "no CPUs"
        return f"memory node{number}{subtype}:{size or ' 0 bytes'}, {cpus}"
    if kind.endswith("Cache"):
        return f"{kind[: -len('Cache')]}{size}"
    if kind == "PU":
        differs = with_numbers and row["os_index"] is not None and row["os_index"] != row["logical"]
        return f"PU{number}" + (f" (CPU {row['os_index']})" if differs else "")
    if kind == "PCIDev":
        return f"PCI {row['pci']}{model}"
    if kind == "OSDev":
        return f"{row['name'] or 'device'}{model}"
    return f"{row['subtype'] if kind == 'Group' and row['subtype'] else kind}{number}{model}"
