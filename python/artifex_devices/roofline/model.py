# SPDX-License-Identifier: Apache-2.0
"""Rooflines of hardware from tables and from measurements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices import _planner
from artifex_devices._base.checks import bounded_list, check_type, failure, wrong_type, wrong_value
from artifex_devices._base.html import facts, page
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import rate_text
from artifex_devices._core import Device
from artifex_devices._hardware.batch_size import HardwareType
from artifex_devices._runtime.device_arguments import whole_number
from artifex_devices.accelerators import Source, accelerator
from artifex_devices.roofline.chart import Roof, RooflinePoint, batch_points, plot_roofline
from artifex_devices.roofline.measured import MeasuredRoofline
from artifex_devices.roofline.measurement import measure_roofline

if TYPE_CHECKING:
    from artifex_devices._base.charts import Axes

_ELEMENT_BYTES = {
    "bfloat16": 2.0, "float16": 2.0, "float32": 4.0, "tensorfloat32": 4.0, "float64": 8.0, "int8": 1.0, "float8": 1.0,
    "int4": 0.5, "float4": 0.5,
}  # fmt: skip
_SHORT = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "tensorfloat32", "fp64": "float64"}
_SHORT |= {"fp8": "float8", "fp4": "float4"}
# ml_dtypes has several of each, for which hardware has one speed. Formats without a mantissa are for scales.
_NARROW_FLOAT = re.compile(r"(float8|float4)_e[1-9]m[1-9][a-z0-9]*")


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Provenance:
    """Origin of a number.

    Attributes:
        kind: "table" (published by others), "measured" (here) or "model" (derived from other numbers).
        text: Description of the origin.
        sources: Sources of a number from a table.
    """

    kind: str
    text: str
    sources: tuple[Source, ...] = ()


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Roofline:
    """The two limits of one hardware for one number format, and results derived from them.

    Attributes:
        hardware: Name of the chip, or of the measured devices.
        dtype: Number format of the products.
        peak_flops: Largest FLOP/s, dense.
        memory_bandwidth: Bytes/s between memory and chip.
        weight_bytes: Bytes of one weight, for the critical batch.
        peak_from: Origin of `peak_flops`.
        bandwidth_from: Origin of `memory_bandwidth`.
    """

    hardware: str
    dtype: str
    peak_flops: float
    memory_bandwidth: float
    weight_bytes: float
    peak_from: Provenance
    bandwidth_from: Provenance

    @property
    def ridge_point(self) -> float:
        """FLOP per byte from which arithmetic limits a computation; below it memory does."""
        return self.peak_flops / self.memory_bandwidth

    @property
    def critical_batch(self) -> float:
        """Batch from which arithmetic limits a product with a weight matrix.

        It is weight_bytes * peak_flops / (2 * memory_bandwidth), for batches far below the sides of the matrix.
        `layer_critical_batch` counts the activations too.
        """
        return _planner.critical_batch(self.peak_flops, self.memory_bandwidth, self.weight_bytes)

    @property
    def critical_batch_size(self) -> int:
        """`critical_batch` rounded, halves upward, as in batch size recommendations."""
        return math.floor(self.critical_batch + 0.5)

    @property
    def critical_batch_from(self) -> Provenance:
        """Origin of the critical batch."""
        return Provenance(
            "model", "weight_bytes * peak_flops / (2 * memory_bandwidth), for batches far below the layer"
        )

    def attainable_flops(self, flops_per_byte: float) -> float:
        """Returns the largest FLOP/s of a computation that does `flops_per_byte` FLOP for each byte that it moves.

        Raises:
            ValueError: `flops_per_byte` is negative or not a number.
            TypeError: `flops_per_byte` is of another type.
        """
        fix = "divide the FLOP of the computation by the bytes that it moves"
        try:
            intensity = math.ldexp(flops_per_byte, 0)  # converts as float() does, but refuses text
        except TypeError:
            raise wrong_type("attainable_flops", "flops_per_byte", flops_per_byte, "a number", fix) from None
        except OverflowError:  # an int above the range of floats
            intensity = math.copysign(math.inf, flops_per_byte > 0 or -1)
        if not intensity >= 0:
            raise wrong_value("attainable_flops", "flops_per_byte", flops_per_byte, "0 or more", fix)
        return min(self.peak_flops, intensity * self.memory_bandwidth)

    def layer_critical_batch(self, inputs: int, outputs: int, *, activation_dtype: DTypeLike | None = None) -> float:
        """Returns the critical batch of a layer X[B, inputs] @ W[inputs, outputs], counting X and the result.

        Args:
            inputs: Rows of W.
            outputs: Columns of W.
            activation_dtype: Number format of X and the result, by default `dtype`.

        Returns:
            The batch; `math.inf` if memory limits every batch (never compute-bound).

        Raises:
            ValueError: A size is below 1 or above 2**63 - 1, or the dtype is not known.

        Example:
            >>> from artifex_devices.roofline import roofline
            >>> v5e = roofline("tpu_v5e")
            >>> round(v5e.critical_batch, 1), round(v5e.layer_critical_batch(4096, 4096), 1)
            (240.5, 272.5)
            >>> v5e.layer_critical_batch(256, 256)
            inf
        """
        operation = "layer_critical_batch"
        moved = _ELEMENT_BYTES[_format(operation, self.dtype if activation_dtype is None else activation_dtype)]
        sizes = []
        for name, value in (("inputs", inputs), ("outputs", outputs)):
            size = whole_number(operation, name, value)
            if not 1 <= size < 2**63:
                raise wrong_value(operation, name, size, "1 to 2**63 - 1", "pass the sizes of the weight matrix")
            sizes.append(size)
        rows, columns = sizes
        batch = _planner.exact_critical_batch(
            self.peak_flops, self.memory_bandwidth, rows, columns, moved, self.weight_bytes, moved
        )
        return math.inf if batch is None else batch

    def plot(
        self,
        batches: Iterable[int] = (1, 8, 64, 512),
        *,
        layer: Sequence[int] | None = None,
        network_bandwidth: float | None = None,
        points: Iterable[RooflinePoint] = (),
        ax: Axes | None = None,
    ) -> Axes:
        """Draws FLOP/s over FLOP per byte: both limits, their ridge point, and batches.

        Args:
            batches: Batch sizes of a product X[batch, inputs] @ W[inputs, outputs], one point for each, on the limit.
            layer: Its inputs and outputs, to count reading X and writing the result; None means a layer far larger than
                the batch, where only reading W counts.
            network_bandwidth: Bytes/s of a network, one way, as another limit, in FLOP per byte that crosses it.
            points: More points, such as measured ones.
            ax: Axes of matplotlib to draw into, by default of a new figure.

        Returns:
            The axes.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: A batch or a size is below 1, or a rate, FLOP/s or FLOP per byte is not finite and above 0.
            TypeError: An argument is of another type.

        Example:
            >>> from artifex_devices.roofline import roofline
            >>> ax = roofline("tpu_v5e").plot([1, 240], network_bandwidth=45e9)  # doctest: +SKIP
        """
        check_type("Roofline.plot", "points", points, Iterable, "a sequence of RooflinePoints", "leave it out")
        more = bounded_list("Roofline.plot", "points", points)
        by_batch = batch_points(batches, self.weight_bytes, _ELEMENT_BYTES[self.dtype], layer)
        note = "points: one product with a weight matrix, by batch size"
        if layer is not None:
            note += f", of {layer[0]} inputs and {layer[1]} outputs"
        remark = self.bandwidth_from.text[len(self.bandwidth_from.text.partition(" (")[0]) :]  # on both numbers: once
        peak = self.peak_from.text.removesuffix(remark)
        sources = dict.fromkeys(
            (f"{self.peak_from.kind}: {peak}", f"{self.bandwidth_from.kind}: {self.bandwidth_from.text}")
        )
        limits = [Roof(self.dtype, self.peak_flops), Roof("memory", self.memory_bandwidth, True)]
        notes = [*([note] if by_batch else []), *sources]
        title = f"roofline of {self.hardware}, {self.dtype}"
        return plot_roofline(title, limits, [*by_batch, *more], network_bandwidth, notes, ax)

    def _repr_html_(self) -> str:
        bandwidth = rate_text(self.memory_bandwidth, "B/s")
        rows = [
            ("peak", f"{rate_text(self.peak_flops, 'FLOP/s')} ({self.peak_from.kind}: {self.peak_from.text})"),
            ("memory", f"{bandwidth} ({self.bandwidth_from.kind}: {self.bandwidth_from.text})"),
            ("ridge point", f"{self.ridge_point:.1f} FLOP per byte"),
            ("critical batch", f"{self.critical_batch:.1f} ({self.critical_batch_from.text})"),
        ]
        return page(f"{self.hardware}, {self.dtype}", facts(rows))


def roofline(
    hardware: Device | HardwareType | MeasuredRoofline | str,
    dtype: DTypeLike | None = None,
    *,
    weight_dtype: DTypeLike | None = None,
) -> Roofline:
    """Returns the roofline of a hardware for one number format.

    Args:
        hardware: An argument of `accelerator`, for a chip's numbers from the table; a CPU device, whose numbers are
            measured (once: `measure_roofline` stores them); HardwareType.CPU or "cpu" for all CPU devices of the
            process together; or the result of a measurement.
        dtype: Number format of the products, as a dtype or its name: "bfloat16", "float8", "tf32", ... None means
            bfloat16, and float32 on CPU devices.
        weight_dtype: Number format of the weights in memory, for the critical batch, by default `dtype`.

    Returns:
        A Roofline, per chip, with the sources of its two numbers.

    Raises:
        ValueError: The hardware is not in the catalogue, or its FLOP/s for that format are not published.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices.roofline import roofline
        >>> h100 = roofline("h100")
        >>> round(h100.ridge_point, 1), h100.critical_batch_size, h100.peak_from.kind
        (295.2, 295, 'table')
        >>> round(roofline("h100", weight_dtype="int8").critical_batch, 1)
        147.6
    """
    if hardware is HardwareType.CPU or (isinstance(hardware, str) and hardware.lower() == "cpu"):
        hardware = measure_roofline()
    elif isinstance(hardware, Device):
        hardware = measure_roofline(hardware)
    sources: tuple[Source, ...] = ()
    if isinstance(hardware, MeasuredRoofline):
        subject, kind, problem, default = hardware.scope, "measured", "not measured", "float32"
        name, date = f"{subject} ({hardware.conditions.cpu_model})", hardware.conditions.date
        rates = {**hardware.peak_flops, "memory": hardware.bandwidth}
        numbers = {key: rate.best for key, rate in rates.items()}
        texts = {
            key: f"{rate.how}, best of {rate.repeats}, ±{100 * rate.relative_error:.0f} %, {date}"
            for key, rate in rates.items()
        }
    else:
        expected = "a CPU device, a HardwareType, a MeasuredRoofline or a str"
        check_type("roofline", "hardware", hardware, (HardwareType, str), expected, 'write roofline("h100")')
        chip = accelerator(hardware)
        name, subject, kind, problem, default = chip.name, chip.name, "table", "not published", "bfloat16"
        numbers, sources = {**chip.peak_flops, "memory": chip.memory_bandwidth}, chip.sources
        note = f"{chip.name} ({chip.note})" if chip.note else chip.name
        texts = {key: f"published dense {key} FLOP/s of {note}" for key in chip.peak_flops}
        texts["memory"] = f"published memory bandwidth of {note}"
    product = _format("roofline", default if dtype is None else dtype)
    formats = [key for key in numbers if key != "memory"]
    if product not in formats:
        raise failure(
            ValueError,
            "roofline",
            f"the {product} FLOP/s of {subject} are {problem}",
            expected=f"one of {', '.join(formats)}",
            fix=f"write dtype={formats[0]!r}",
        )
    return Roofline(
        hardware=name,
        dtype=product,
        peak_flops=numbers[product],
        memory_bandwidth=numbers["memory"],
        weight_bytes=_ELEMENT_BYTES[product if weight_dtype is None else _format("roofline", weight_dtype)],
        peak_from=Provenance(kind, texts[product], sources),
        bandwidth_from=Provenance(kind, texts["memory"], sources),
    )


def _format(operation: str, dtype: DTypeLike) -> str:
    if isinstance(dtype, str):
        name = dtype
    else:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            raise failure(
                TypeError,
                operation,
                f"{safe_repr(dtype)} ({type(dtype).__name__}) is not a dtype",
                expected="one or its name",
                fix="write 'bfloat16'",
            ) from None
    name = _SHORT.get(name.lower(), name.lower())
    if narrow := _NARROW_FLOAT.fullmatch(name):
        name = narrow[1]
    if name not in _ELEMENT_BYTES:
        raise failure(
            ValueError,
            operation,
            f"dtype {safe_repr(dtype)} is not known here",
            expected=f"one of {', '.join(_ELEMENT_BYTES)}",
            fix="choose the format of the products",
        )
    return name
