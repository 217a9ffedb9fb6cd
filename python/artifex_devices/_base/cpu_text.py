# SPDX-License-Identifier: Apache-2.0
"""Sets of CPUs in the system's short form."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["cpu_list", "cpus_of"]


def cpu_list(cpus: Iterable[int]) -> str:
    """Writes numbers as the system does: "0-3,8"."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cpus_of(text: str) -> set[int]:
    """Reads what cpu_list writes; nothing of what is no such list."""
    cpus: set[int] = set()
    for run in text.split(","):
        first, _, last = run.strip().partition("-")
        if first.isdigit() and (last or first).isdigit() and int(last or first) < 1 << 20:
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus
