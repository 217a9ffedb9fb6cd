# SPDX-License-Identifier: Apache-2.0
"""Clients of simulated processes: each has its own devices of one world, and all share this machine."""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices import _core
from artifex_devices._core import Client, internal


def clients_of(devices: Sequence[int], count: int | None = None, platform: str = "cpu") -> list[Client]:
    """Creates the clients of the first `count` processes, or of all; each process has its number of `devices`.

    Each process is on a separate host. With the platform "gpu" the devices are emulated GPUs.
    """
    machine = _core.Machine.live()
    backend = internal.emulated_gpu_backend() if platform == "gpu" else None
    described = [
        (f"host{number}", *internal.describe_process(machine, own, backend)[1:]) for number, own in enumerate(devices)
    ]
    indexes = range(len(devices) if count is None else count)
    return [internal.make_shared_client(machine, described, number, backend) for number in indexes]
