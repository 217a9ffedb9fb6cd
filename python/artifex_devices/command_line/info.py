# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices info`: the devices that programs get here."""

from __future__ import annotations

import argparse

from artifex_devices.command_line.console import OK

SUMMARY = "the devices that programs get here, as print_device_info() prints them"
DESCRIPTION = f"""\
Prints {SUMMARY}.
Backend, counts and default device are the runtime's; Device Type, CUDA Version and Compute Capability are the
detector's word; a note says where the two differ."""
EXAMPLES = """\
examples:
  artifex_devices info
  JAX_NUM_CPU_DEVICES=8 artifex_devices info     with 8 CPU devices

exit codes: 0 done; others as for every command (artifex_devices --help)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has no options."""


def run(arguments: argparse.Namespace) -> int:
    """Prints the text; 0."""
    import warnings

    from artifex_devices.device_manager import print_device_info

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine without a GPU: the text says it
        print_device_info()
    return OK
