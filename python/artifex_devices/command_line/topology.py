# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices topology`: a machine and its devices."""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices._base.text import bytes_text, cpu_list, parse_cpu_list
from artifex_devices.command_line import console
from artifex_devices.command_line.console import UsageError

if TYPE_CHECKING:
    from artifex_devices._core import Device, Machine


SUMMARY = "show a machine and its devices as a tree or a picture"
DESCRIPTION = """\
Shows packages, memory nodes, caches and cores as hwloc sees them, and the CPUs and memory of each CPU device. On this
machine, it shows only the parts that affinity and cgroups allow the process to use."""
EXAMPLES = """\
examples:
  artifex_devices topology                                   show this machine
  artifex_devices topology --every                           print one line for each core
  artifex_devices topology --svg machine.svg                 draw a picture
  artifex_devices topology --machine "pack:2 numa:2 core:8 pu:2"
                                                             describe a machine (hwloc's synthetic form)
  artifex_devices topology --machine cluster_node.xml --json  read a file that `lstopo cluster_node.xml` wrote
  taskset -c 0 artifex_devices topology                      show the devices of a process with one CPU

exit codes: 0 success; 2 the machine cannot be read; other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --machine, --every, and one of --json and --svg."""
    machine_help = "hwloc XML file, or machine in hwloc's synthetic form (default: this machine)"
    parser.add_argument("--machine", metavar="FILE.xml|TEXT", help=machine_help)
    parser.add_argument("--every", action="store_true", help="print equal parts on separate lines")
    console.add_output(parser, "the machine")


def run(arguments: argparse.Namespace) -> int:
    """Prints the tree, the JSON or the picture; 0."""
    machine, devices = _read(arguments.machine)
    if arguments.json:
        console.write_json("topology", _as_json(machine, devices))
        return console.OK
    if arguments.svg is not None:
        from artifex_devices.render import machine_svg

        console.write_picture(arguments.svg, machine_svg(machine))
        return console.OK
    lines = machine_lines(machine, every=arguments.every, ascii_only=not console.has_signs("├└│─"))
    lines += ["", f"{len(devices)} device{'' if len(devices) == 1 else 's'}:", *device_lines(devices)]
    if machine.is_live:
        lines.append(f"Together they may keep {machine.usable_cpus} CPU{'' if machine.usable_cpus == 1 else 's'} busy.")
    for missing in machine.missing_facts:
        lines += ["", f"Not known: {missing['fact']}: {missing['reason']}.", f"  Assumed: {missing['assumed']}."]
    console.write_lines(lines)
    return console.OK


def _read(source: str | None) -> tuple[Machine, list[Device]]:
    import artifex_devices as ad

    if source is None:
        return ad.Machine.live(), ad.devices()
    try:
        source.encode()
    except UnicodeEncodeError:
        raise UsageError(f"--machine: {source!r} is not text in UTF-8; expected it to be; rename the file") from None
    with console.usage_errors(OSError, ValueError, option="--machine: "):
        is_file = source.endswith(".xml") or Path(source).is_file()
        machine = ad.Machine.from_xml(source) if is_file else ad.Machine.from_synthetic(source)
        with ad.simulate(machine, compile_only=True):
            return machine, ad.devices()


def _as_json(machine: Machine, devices: list[Device]) -> dict[str, Any]:
    facts = ("source", "is_live", "counts", "usable_cpus", "usable_memory_bytes", "objects", "missing_facts")
    return {**{name: getattr(machine, name) for name in facts}, "devices": device_rows(devices)}


def device_rows(devices: Sequence[Device]) -> list[dict[str, Any]]:
    """Returns the JSON content of each device."""
    return [
        {"device": str(d), "cpus": d.cpuset, "numa_nodes": list(d.numa_nodes), "memory_bytes": d.memory_bytes}
        for d in devices
    ]


_HIDDEN = frozenset({"Bridge", "Misc"})  # their children are shown instead
_GPU_MEMORY = "GPUMemory"  # subtype of a memory node that is not memory of the host
_ASCII = str.maketrans("├└│─", "|`|-")


@dataclass
class _Part:
    """One object with its children."""

    row: dict[str, Any]
    below: list[_Part] = field(default_factory=list)

    def shape(self) -> tuple[Any, ...]:
        """Returns everything except the numbers: similar parts have this in common."""
        kind = (self.row["type"], self.row["subtype"], self.row["model"], self.row["bytes"], self.row["name"])
        return (*kind, *(part.shape() for part in self.below))

    def is_of_cpus(self) -> bool:
        """Returns whether the part holds CPUs only: no memory node and no device."""
        return self.row["type"] not in ("NUMANode", "PCIDev", "OSDev") and all(part.is_of_cpus() for part in self.below)


def machine_lines(machine: Machine, *, every: bool = False, ascii_only: bool = False) -> list[str]:
    """Formats the tree, one line for each part; similar neighbours share a line unless `every`."""
    objects = machine.objects
    root = _Part(objects[0])
    path = [root]  # one part for each depth; a hidden object is replaced by its parent
    for row in objects[1:]:
        del path[row["depth"] :]
        part = path[-1] if row["type"] in _HIDDEN else _Part(row)
        if part is not path[-1]:
            path[-1].below.append(part)
        path.append(part)
    lines = _branches(root, "", every)
    return [_heading(machine), *(line.translate(_ASCII) if ascii_only else line for line in lines)]


def device_lines(devices: Sequence[Device]) -> list[str]:
    """Formats one line for each group of neighbouring devices with the same CPUs and memory."""
    lines = []
    alike = itertools.groupby(devices, lambda device: (device.cpuset, tuple(device.numa_nodes), device.memory_bytes))
    for (cpus, nodes, memory), group in alike:
        first, *others = group
        name, count = (f"{first} to {others[-1]}", " each") if others else (str(first), "")
        named = f"memory node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"
        lines.append(f"{name}: CPUs {cpus}, {named}, {bytes_text(memory)}{count}")
    return lines


def _heading(machine: Machine) -> str:
    of_gpus = sum(node["memory_bytes"] for node in machine.numa_nodes if node["subtype"] == _GPU_MEMORY)
    memory = sum(node["memory_bytes"] for node in machine.numa_nodes) - of_gpus
    counts = {"CPU domain": len(machine.cpu_domains), "PU": machine.counts["pus"]}
    parts = ", ".join(f"{count} {part}{'' if count == 1 else 's'}" for part, count in counts.items())
    source = "this machine, as hwloc sees it" if machine.is_live else machine.source
    gpus = f" and {bytes_text(of_gpus)} of GPUs" if of_gpus else ""
    return f"Machine: {parts}, {bytes_text(memory)}{gpus} ({source})"


def _branches(parent: _Part, indent: str, every: bool) -> Iterator[str]:
    # Similar neighbours that hold CPUs only are one group.
    alike = itertools.groupby(parent.below, lambda part: id(part) if every or not part.is_of_cpus() else part.shape())
    groups = [list(group) for _, group in alike]
    for group in groups:
        part, words = group[0], [_words(group[0], with_numbers=len(group) == 1)]
        while not every and len(part.below) == 1 and part.below[0].is_of_cpus():  # a part with a single child
            part = part.below[0]
            words.append(_words(part, with_numbers=len(group) == 1))
        text = " + ".join(words)
        if len(group) > 1:
            inner = _inner(part)
            cpus = cpu_list(cpu for each in group for cpu in parse_cpu_list(each.row["cpus"]))
            text = f"{len(group)} x {f'({text}{inner})' if inner or len(words) > 1 else text}: CPUs {cpus}"
        sign, edge = ("└─ ", "   ") if group is groups[-1] else ("├─ ", "│  ")
        yield f"{indent}{sign}{text}"
        if len(group) == 1:
            yield from _branches(part, indent + edge, every)


def _inner(part: _Part) -> str:
    """Describes the children of one of several similar parts: " with 2 PUs"."""
    counts = Counter(_kinds_below(part))
    listed = ", ".join(f"{number} {kind}{'s' if number > 1 else ''}" for kind, number in counts.items())
    return f" with {listed}" if listed else ""


def _kinds_below(part: _Part) -> Iterator[str]:
    for below in part.below:
        yield below.row["type"]
        yield from _kinds_below(below)


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
