# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices topology`: a machine and the devices that it gives."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line.exit_codes import OK, UsageError

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
    from artifex_devices.command_line.output import has_signs, write_json, write_picture, write_text

    machine, devices = _read(arguments.machine)
    if arguments.json:
        write_json(_as_json(machine, devices))
        return OK
    if arguments.svg is not None:
        from artifex_devices.render import machine_svg

        write_picture(arguments.svg, machine_svg(machine))
        return OK
    from artifex_devices.command_line.machine_text import device_lines, machine_lines

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
