# SPDX-License-Identifier: Apache-2.0
"""Environment variables, as lines NAME=value: a child that is forked before the first use of a device uses one."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

import artifex_devices as ad
from artifex_devices.device_manager.process_settings import merged_flags
from artifex_devices.distributed.launcher import find_launcher
from artifex_devices.doctor.machine import environment_variables
from artifex_devices.roofline.cache import cache_directory
from oracle import Fault, check_refusal, require

MODULES = (
    "artifex_devices.device_manager.process_settings",
    "artifex_devices.roofline.cache",
    "artifex_devices.distributed.launcher",
    "artifex_devices.doctor.machine",
)
_NAMES = (
    "JAX_NUM_CPU_DEVICES",
    "XLA_FLAGS",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "JAX_DEFAULT_DEVICE",
    "JAX_ENABLE_X64",
    "JAX_TRANSFER_GUARD",
    "JAX_TRANSFER_GUARD_HOST_TO_DEVICE",
    "JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE",
    "JAX_TRANSFER_GUARD_DEVICE_TO_HOST",
    "ARTIFEX_DEVICES_CACHE",
    "XDG_CACHE_HOME",
    "HOME",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
)
_READ_BY_CORE = tuple(name for name in _NAMES if name.startswith(("JAX_", "XLA_")))
_MANY = 4096  # devices: more are as good and take longer


def one_input(data: bytes) -> bool:
    """Whether the process has devices with these variables."""
    given = {}
    for line in data.split(b"\n"):
        name, equals, value = line.partition(b"=")
        if equals and name.decode("latin-1") in _NAMES and b"\0" not in value:
            given[name.decode("latin-1")] = os.fsdecode(value)
    before = {name: os.environ.pop(name) for name in _NAMES if name in os.environ}
    os.environ.update(given)
    try:
        _python_reads(given)
        counts = re.findall(r"\d+", given.get("JAX_NUM_CPU_DEVICES", "") + " " + given.get("XLA_FLAGS", ""))
        return all(not _MANY < int(each[:20]) <= 1 << 24 for each in counts) and _first_use(given)
    finally:
        for name in given:
            os.environ.pop(name, None)
        os.environ.update(before)


def _python_reads(given: dict[str, str]) -> None:
    folder, why = cache_directory(None)
    require((folder is None) == bool(why), f"{folder!r}: {why!r}")
    require(folder is None or (isinstance(folder, Path) and folder.is_absolute()), repr(folder))
    launcher = find_launcher()
    require(launcher is None or launcher.process_count is None or launcher.process_count >= 0, repr(launcher))
    for entry in environment_variables(given).facts.values():
        str(entry.value).encode()
    flags = given.get("XLA_FLAGS", "")
    for asked in ("--xla_force_host_platform_device_count=8", flags):
        merged, _ = merged_flags(flags, asked)
        require(merged_flags(merged, asked)[0] == merged, f"merging {asked!r} again changes {merged!r}")


def _first_use(given: dict[str, str]) -> bool:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 3
        try:
            os.close(read)
            signal.alarm(60)
            code = 0 if _child(given) else 1
        except Fault as fault:
            os.write(write, str(fault).encode("utf-8", "backslashreplace")[:4000])
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace")[:4000])
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    require(os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 1), f"{given}: status {status}: {said}")
    return os.WEXITSTATUS(status) == 0


def _child(given: dict[str, str]) -> bool:
    refusals = []
    for use in (lambda: ad.config.values, ad.devices, ad.devices):
        try:
            use()
        except (ValueError, RuntimeError) as error:
            check_refusal(error, ValueError, RuntimeError)
            require(any(name in str(error) for name in given), f"no variable is named: {error}")
            refusals.append(str(error))
    require(len(refusals) in (0, 2, 3) or "devices" in refusals[0], f"refused now and then: {refusals}")
    if refusals:
        return False
    require(1 <= ad.device_count() <= _MANY and len(ad.devices()) == ad.device_count(), f"{ad.device_count()} devices")
    for name, value in ad.config.values.items():
        repr((name, value)).encode()
    sys.stdout.flush()
    return True
