# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices info`: the devices that programs get here."""

from __future__ import annotations

import argparse

from artifex_devices.command_line import console, topology

SUMMARY = "show the devices that programs get on this machine"
DESCRIPTION = """\
Shows the devices that programs get on this machine, like print_device_info().
The runtime reports backend, counts and default device. The detector reports Device Type, CUDA Version and Compute
Capability. A note says where the two differ. To see the CPUs and memory of each device, use `topology`."""
EXAMPLES = """\
examples:
  artifex_devices info
  artifex_devices info --json
  JAX_NUM_CPU_DEVICES=8 artifex_devices info     use 8 CPU devices

exit codes: 0 success; other codes: artifex_devices --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the text or the JSON; 0."""
    import warnings

    import artifex_devices as ad
    from artifex_devices.device_manager import get_device_manager
    from artifex_devices.device_manager.manager import fact_lines

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine without a GPU: the text says it
        manager, devices = get_device_manager(), ad.devices()
        info = manager.get_device_info()
        if arguments.json:
            known = {"backend": info["backend"], "default_device": str(info["default_device"])}
            rows = topology.device_rows(devices)
            console.write_json("info", {**known, "devices": rows})
            return console.OK
        console.write_lines(fact_lines(manager))
        console.write_lines(topology.device_lines(devices))
    return console.OK
