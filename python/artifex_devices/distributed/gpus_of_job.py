# SPDX-License-Identifier: Apache-2.0
"""Jobs whose devices are GPUs, where `jax_platforms` names them first: which process uses which GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure
from artifex_devices._base.text import cpu_list
from artifex_devices._core import internal


class SeenGpus(NamedTuple):
    """The GPUs that a process sees."""

    addresses: tuple[str, ...]  # on the PCI bus, in CUDA's order
    problem: str  # why CUDA is not usable, or ""
    chosen: tuple[int, ...] | None  # local_device_ids


def seen_gpus(chosen: tuple[int, ...] | None) -> SeenGpus | None:
    """Returns the GPUs that this process sees; None if the job is to have CPU devices only, without a look at CUDA."""
    if not internal.prefers_gpus():
        return None
    report = internal.cuda_report()
    return SeenGpus(tuple(gpu["pci_address"] for gpu in report["gpus"]), report["problem"], chosen)


def share_of_gpus(me: int, machines: Sequence[str], seen: Sequence[SeenGpus | None]) -> list[int] | None:
    """Returns the numbers of the GPUs that this process uses, or None in a job of CPU devices.

    Raises the same in all processes: RuntimeError where one cannot use CUDA, ValueError where one would have no GPU.
    """
    if not any(seen):
        return None
    problems = [f"process {n}: {each.problem}" for n, each in enumerate(seen) if each is not None and each.problem]
    problems += [f"process {n}: its JAX_PLATFORMS does not ask for GPUs" for n, each in enumerate(seen) if each is None]
    if problems:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            f"not all processes have GPUs: {'; '.join(problems)}",
            expected="the same JAX_PLATFORMS and usable GPUs in all",
            fix="run `artifex_devices doctor` there, or leave JAX_PLATFORMS out",
        )
    places = [(machine, each.addresses, each.chosen) for machine, each in zip(machines, seen, strict=True) if each]
    shares, shared = internal.plan_gpu_shares(places)
    for address, processes in shared:
        if me == processes[0]:
            warn_user(
                f"distributed.initialize: processes {cpu_list(processes)} use GPU {address}; expected one "
                "process for each GPU; they will run, but share the GPU and its memory; start fewer processes",
                RuntimeWarning,
            )
    return shares[me]
