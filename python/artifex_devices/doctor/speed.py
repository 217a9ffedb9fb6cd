# SPDX-License-Identifier: Apache-2.0
"""How fast the CPU devices are, measured now."""

from __future__ import annotations

from artifex_devices.doctor.facts import Section


def speed(seconds: float = 2.0) -> Section:
    """Products and streaming over memory, on all CPU devices together.

    Args:
        seconds: How long to measure at most, about.
    """
    from artifex_devices.roofline import measure_roofline

    section = Section("Measured")
    found = measure_roofline(seconds=seconds, cache=False)
    when = found.conditions.date
    for dtype, rate in found.peak_flops.items():
        section.add(
            f"products_{dtype}",
            round(rate.best / 1e9, 2),
            f"measured {when}, +-{100 * rate.relative_error:.0f} %, best of {rate.repeats}: {rate.how}",
            unit="GFLOP/s",
        )
    rate = found.bandwidth
    section.add(
        "memory_bandwidth",
        round(rate.best / 1e9, 2),
        f"measured {when}, +-{100 * rate.relative_error:.0f} %, best of {rate.repeats}: {rate.how}",
        unit="GB/s",
    )
    ridge = found.peak_flops["float32"].best / rate.best
    section.add("ridge_float32", round(ridge, 2), "model: float32 products / memory bandwidth", unit="FLOP/byte")
    conditions = found.conditions
    section.add("workers", conditions.workers, "the devices' own workers", unit="threads")
    section.add("instruction_set", conditions.isa, "the processor and the build of the core")
    load = None if conditions.load_average is None else round(conditions.load_average, 2)
    section.add("load_average", load, "the system, before", problem=None if load is not None else "not known")
    notes = [note for note in found.notes if not note.startswith("not kept")]
    section.add("notes", notes, "measure_roofline")
    return section
