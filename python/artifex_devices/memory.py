# SPDX-License-Identifier: Apache-2.0
"""Device memory of a part of a program: `with memory_report() as report:`; and jax.memory's `Space`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import check_int, entered_twice, never_entered
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.text import bytes_text, shortened, shortened_list, table_lines
from artifex_devices._core import Array, Device, Sharding
from artifex_devices._core.internal import MemoryWindow, creation_line
from artifex_devices._runtime.memory_kinds import MemorySpace

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ArrayRecord", "MemoryReport", "Space", "memory_report"]
add_public_lookup(__name__)

Space = MemorySpace

_DEVICES_SHOWN = 16


@dataclass(frozen=True)
class ArrayRecord:
    """A live Array in a report; it does not keep the memory alive.

    Attributes:
        shape: Shape.
        dtype: np.dtype.
        bytes: Logical bytes on all its devices, replicas included.
        sharding: Sharding.
        created_at: The line of the program that created it, such as "train.py:12"; None if it was not traced.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int
    sharding: Sharding
    created_at: str | None


class MemoryReport:
    """Bytes that Arrays held on each device of a world while a `with` block ran.

    The numbers are measured by the devices, as in `Device.memory_stats()`: logical bytes, replicas included. Reports
    nest and overlap, also over threads; each has its own peaks. They can be read while the block runs, and do not
    change after it.

    The report is about the world in which `memory_report` was entered; Arrays of worlds opened inside do not count.
    When it ends, Arrays that are alive stay alive until the biggest are recorded, also where other threads drop them.
    """

    def __init__(self, top: int) -> None:
        self._count = top
        self._window: MemoryWindow | None = None
        self._top: tuple[ArrayRecord, ...] = ()
        self._live: tuple[int, int] = (0, 0)
        self._physical = 0
        self._is_open = False

    def __enter__(self) -> MemoryReport:
        """Starts to measure; RuntimeError if it has measured a block already."""
        if self._window is not None:
            raise entered_twice(
                "memory_report", "this report has measured a block already", "memory_report() as report:"
            )
        self._window = MemoryWindow()
        self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._window is None:
            raise never_entered("memory_report", "memory_report() as report")
        self._window.close()
        self._update()
        self._is_open = False

    @property
    def peak_bytes(self) -> dict[Device, int]:
        """Peak of the bytes in use of each device, including bytes that were in use at the start."""
        return self._column(2)

    @property
    def bytes_at_start(self) -> dict[Device, int]:
        """Bytes in use of each device at the start of the block."""
        return self._column(0)

    @property
    def bytes_in_use(self) -> dict[Device, int]:
        """Bytes in use of each device at the end of the block, or now while it runs."""
        return self._column(1)

    @property
    def allocated(self) -> dict[Device, int]:
        """Bytes that were allocated on each device in the block."""
        return self._column(3)

    @property
    def freed(self) -> dict[Device, int]:
        """Bytes that were freed on each device in the block."""
        return self._column(4)

    @property
    def top(self) -> tuple[ArrayRecord, ...]:
        """The biggest live Arrays at the end of the block, or now while it runs; biggest first."""
        if self._is_open:
            self._update()
        return self._top

    def __repr__(self) -> str:
        if self._window is None:
            return "<MemoryReport: not entered>"
        state = "measuring" if self._is_open else "done"
        return f"<MemoryReport: {state}, peak of a device {bytes_text(max(self.peak_bytes.values()))}>"

    def __str__(self) -> str:
        """Formats a table of devices and one of the biggest Arrays."""
        if self._window is None:
            return repr(self)
        when = "now" if self._is_open else "end"
        rows = self._window.use()
        table: list[tuple[str, ...]] = [("device", "peak", "start", when, "allocated", "freed")]
        # Devices with equal numbers share a line.
        groups: dict[tuple[int, ...], list[Device]] = {}
        for device, row in zip(self._window.devices, rows, strict=True):
            groups.setdefault(row, []).append(device)
        for (start, in_use, peak, allocated, freed), devices in groups.items():
            numbers = map(bytes_text, (peak, start, in_use, allocated, freed))
            table.append((_names(devices), *numbers))
        lines = [f"Memory of {len(rows)} device{'' if len(rows) == 1 else 's'} (measured, logical bytes, each)"]
        head, *listed = table_lines(table, right=range(1, 6))
        lines += [f"  {line}" for line in (head, *shortened(listed, _DEVICES_SHOWN, "and {} more lines"))]
        lines.append(f"Physical memory in use, of all worlds ({when}): {bytes_text(self._physical)}")
        count, total = self._live
        lines.append(f"Live Arrays ({when}): {count}, {bytes_text(total)} on all devices")
        biggest = [(f"{each.dtype.name}{each.shape}", bytes_text(each.bytes), _where(each)) for each in self.top]
        lines += [f"  {line}" for line in table_lines(biggest, right=(1,))]
        return "\n".join(lines)

    def _column(self, index: int) -> dict[Device, int]:
        if self._window is None:
            return {}
        return {device: row[index] for device, row in zip(self._window.devices, self._window.use(), strict=True)}

    def _update(self) -> None:
        """Records the live Arrays of this world."""
        assert self._window is not None
        count, total, biggest = self._window.live(self._count)
        self._live = (count, total)
        self._top = tuple(
            ArrayRecord(array.shape, array.dtype, size, array.sharding, _line_text(array)) for size, array in biggest
        )
        self._physical = self._window.physical_bytes()


def memory_report(top: int = 10) -> MemoryReport:
    """Measures the device memory that a block of code uses.

    Args:
        top: Number of the biggest Arrays to record, at least 0.

    Returns:
        A MemoryReport for one `with` block; print it, or read its numbers.

    Raises:
        TypeError: `top` is not an int.
        ValueError: `top` is negative.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(2), ad.memory_report() as report:
        ...     x = ad.device_put(np.ones(1000), ad.devices()[1])
        ...     del x
        >>> list(report.peak_bytes.values()), list(report.bytes_in_use.values())
        ([0, 8000], [0, 0])
    """
    return MemoryReport(check_int("memory_report", "top", top, "give a number of Arrays", minimum=0))


def _line_text(array: Array) -> str | None:
    line = creation_line(array)
    return None if line is None else f"{line[0]}:{line[1]}"


def _where(record: ArrayRecord) -> str:
    spec = getattr(record.sharding, "spec", None)
    place = str(next(iter(record.sharding.device_set))) if spec is None else str(spec)
    return place if record.created_at is None else f"{place}  {record.created_at}"


def _names(devices: list[Device]) -> str:
    """Formats `cpu:0`, `cpu:0 to cpu:7` or `cpu:0 and 3 more`."""
    ids = [device.id for device in devices]
    if len(ids) == 1:
        return str(devices[0])
    if ids == list(range(ids[0], ids[0] + len(ids))):
        return f"{devices[0]} to {devices[-1]}"
    return shortened_list(list(map(str, devices)), 1)
