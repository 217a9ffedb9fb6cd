# SPDX-License-Identifier: Apache-2.0
"""The table of bench/gpu.py: what is copied, the goals, and how the numbers are shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TINY = 4
BYTES = 256 << 20
BATCH = 64 << 20
RESHARDED = 1 << 30


@dataclass(frozen=True)
class Row:
    """One copy; `nbytes` is the number of bytes that the slower side moves."""

    name: str
    nbytes: int
    aim: str = ""
    # of the times of this library, of the driver's plain call and of JAX
    holds: Callable[[float, float, float], bool] | None = None


ROWS = (
    Row("host to GPU, locked memory", BYTES, "95 % of the driver's rate", lambda ours, plain, _: plain >= 0.95 * ours),
    Row("GPU to host, locked memory", BYTES, "95 % of the driver's rate", lambda ours, plain, _: plain >= 0.95 * ours),
    Row("host to GPU, an ndarray", BYTES, "3 times JAX's rate", lambda ours, _, jax: jax >= 3 * ours),
    Row("GPU to host, an ndarray", BYTES),
    Row(
        "rows to columns on one GPU, 1 GiB",
        2 * RESHARDED,
        "90 % of the driver's rate",
        lambda ours, plain, _: plain >= 0.9 * ours,
    ),
    Row("prefetch_to_device, 64 MiB ndarrays", BATCH),
    Row("device_put of 4 bytes", TINY, "below JAX's time", lambda ours, _, jax: ours < jax),
)


def _shown(nbytes: int, seconds: float | None) -> str:
    """A rate, or microseconds for a tiny copy."""
    if not seconds:
        return "-"
    return f"{seconds * 1e6:.1f} us" if nbytes == TINY else f"{nbytes / seconds / 1e9:.1f} GB/s"


def _outcome(row: Row, ours: float, driver: float | None, jax: float | None) -> str:
    if row.holds is None:
        return "-"
    if driver is None or (jax is None and "JAX" in row.aim):
        return "not measured"
    return "met" if row.holds(ours, driver, jax or 0.0) else "not met"


def table(measured: dict[str, Any] | None) -> str:
    """Markdown of what `bench/gpu.py --out FILE` wrote; None: nothing was measured."""
    times = {row["name"]: row for row in measured["rows"]} if measured else {}
    header = ["copy", "this library", "driver's plain call", "JAX", "goal", "outcome"]
    lines = [header, ["---"] * len(header)]
    for row in ROWS:
        cells = ["not measured"] * 3 + [row.aim or "-", "not measured"]
        if found := times.get(row.name):
            three = [found.get(peer) for peer in ("ours", "driver", "jax")]
            cells = [_shown(row.nbytes, each) for each in three] + [row.aim or "-", _outcome(row, *three)]
        lines.append([row.name, *cells])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def conditions(measured: dict[str, Any]) -> str:
    """What the numbers were measured on, and when."""
    jax = f", JAX {measured['jax']}" if measured["jax"] else ""
    return (
        f"{measured['gpu']}, CUDA {measured['cuda']} (driver), {measured['cores']} cores of the host, Python "
        f"{measured['python']}, artifex_devices {measured['artifex_devices']}{jax}; {measured['date']}; medians of "
        f"{measured['rounds']} rounds"
    )
