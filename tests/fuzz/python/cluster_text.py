# SPDX-License-Identifier: Apache-2.0
"""Texts of --cluster: presets with options, and an hwloc file (node.xml, beside the process) with options."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan.cluster_argument import read_cluster
from oracle import check_pickle, check_refusal, require, text_of

MODULES = ("artifex_devices.command_line.plan.cluster_argument", "artifex_devices.cluster.presets", "shlex")
_NODE = Path(__file__).resolve().parents[1] / "corpus" / "machine_xml" / "two_packages_two_memories.xml"
_FOLDER = tempfile.mkdtemp(prefix="fuzz-")
shutil.copy(_NODE, os.path.join(_FOLDER, "node.xml"))


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    before = os.getcwd()
    os.chdir(_FOLDER)
    try:
        read = read_cluster(text_of(data))
    except UsageError as error:
        return check_refusal(error, UsageError)
    finally:
        os.chdir(before)
    require(1 <= read.device_count <= 1 << 24, f"{read.device_count} devices")
    require(repr(read).isprintable(), repr(read))
    check_pickle(read)
    return True
