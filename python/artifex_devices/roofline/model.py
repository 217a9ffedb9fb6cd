# SPDX-License-Identifier: Apache-2.0
"""What hardware can do at most: FLOP/s, bytes/s, and from which batch on the first is the limit.

Numbers of accelerators are a table's, each with its sources; those of this machine's CPU devices are measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.svg import Picture
from artifex_devices._core import Device
from artifex_devices._hardware.batch_size import HardwareType
from artifex_devices._runtime.device_arguments import whole_number
from artifex_devices.accelerators import Accelerator, Links, Source, accelerator, accelerators
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate
from artifex_devices.roofline.measurement import measure_roofline
from artifex_devices.roofline.picture import RooflinePoint, batch_points, roofline_svg

__all__ = [
    "Accelerator",
    "Conditions",
    "Links",
    "MeasuredRoofline",
    "Provenance",
    "Rate",
    "Roofline",
    "RooflinePoint",
    "Source",
    "accelerator",
    "accelerators",
    "measure_roofline",
    "roofline",
]

_ELEMENT_BYTES = {
    "bfloat16": 2.0,
    "float16": 2.0,
    "float32": 4.0,
    "tensorfloat32": 4.0,
    "float64": 8.0,
    "int8": 1.0,
    "float8": 1.0,
    "int4": 0.5,
    "float4": 0.5,
}
_SHORT = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "tf32": "tensorfloat32", "fp64": "float64"}
_SHORT |= {"fp8": "float8", "fp4": "float4"}
# ml_dtypes has many of each; hardware is as fast with all that it has. Without a mantissa it is a scale's format.
_NARROW_FLOAT = re.compile(r"(float8|float4)_e[1-9]m[1-9][a-z0-9]*")
_LARGEST_SIZE = 2**63 - 1


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Provenance:
    """Where a number is from.

    Attributes:
        kind: "table" (published by others), "measured" (here) or "model" (follows from other numbers).
        text: In words.
        sources: Of a table's number.
    """

    kind: str
    text: str
    sources: tuple[Source, ...] = ()


@public("artifex_devices.roofline")
@dataclass(frozen=True)
class Roofline:
    """The two limits of one hardware for one number format, and what follows from them.

    Attributes:
        hardware: Name of the chip, or what was measured.
        dtype: Number format of the products.
        peak_flops: FLOP/s at most, dense.
        memory_bandwidth: Bytes/s between memory and chip.
        weight_bytes: Bytes of one weight, for the critical batch.
        peak_from: Where `peak_flops` is from.
        bandwidth_from: Where `memory_bandwidth` is from.
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
        """FLOP per byte: from here on arithmetic is the limit of a computation, below it memory is."""
        return self.peak_flops / self.memory_bandwidth

    @property
    def critical_batch(self) -> float:
        """Batch from which on a product with a weight matrix is limited by arithmetic.

        That is weight_bytes * peak_flops / (2 * memory_bandwidth): right where the batch is far below the sides of the
        matrix. `layer_critical_batch` counts the activations too.
        """
        return _core.critical_batch(self.peak_flops, self.memory_bandwidth, self.weight_bytes)

    @property
    def critical_batch_size(self) -> int:
        """`critical_batch` rounded, halves upward, as batch advice gives it."""
        return math.floor(self.critical_batch + 0.5)

    @property
    def critical_batch_from(self) -> Provenance:
        """How the critical batch comes about."""
        return Provenance(
            "model", "weight_bytes * peak_flops / (2 * memory_bandwidth), for batches far below the layer"
        )

    def attainable_flops(self, flops_per_byte: float) -> float:
        """FLOP/s at most of a computation that does so many FLOP for each byte that it moves.

        Raises:
            ValueError: If `flops_per_byte` is negative or no number.
            TypeError: If it is of another type.
        """
        try:
            intensity = math.ldexp(flops_per_byte, 0)  # as a float, but of no text
        except TypeError:
            raise TypeError(
                f"attainable_flops: flops_per_byte is {shown(flops_per_byte)} ({type(flops_per_byte).__name__}); "
                "expected a number; divide the FLOP of the computation by the bytes that it moves"
            ) from None
        except OverflowError:  # an int that no float holds
            intensity = math.copysign(math.inf, flops_per_byte > 0 or -1)
        if not intensity >= 0:
            raise ValueError(
                f"attainable_flops: flops_per_byte is {shown(flops_per_byte)}; expected 0 or more; divide the FLOP of "
                "the computation by the bytes that it moves"
            )
        return min(self.peak_flops, intensity * self.memory_bandwidth)

    def layer_critical_batch(self, inputs: int, outputs: int, *, activation_dtype: Any = None) -> float:
        """The critical batch of one layer X[B, inputs] @ W[inputs, outputs], reading X and writing the result counted.

        Args:
            inputs: Rows of W.
            outputs: Columns of W.
            activation_dtype: Number format of X and the result; None is `dtype`.

        Returns:
            The batch; `math.inf` where memory is the limit of every batch (never compute-bound).

        Raises:
            ValueError: If a size is below 1 or above 2**63 - 1, or the dtype is not known.

        Example:
            >>> from artifex_devices.roofline import roofline
            >>> v5e = roofline("tpu_v5e")
            >>> round(v5e.critical_batch, 1), round(v5e.layer_critical_batch(4096, 4096), 1)
            (240.5, 272.5)
            >>> v5e.layer_critical_batch(256, 256)
            inf
        """
        operation = "layer_critical_batch"
        activations = _format(operation, self.dtype if activation_dtype is None else activation_dtype)
        activation_bytes = _ELEMENT_BYTES[activations]
        sizes = {
            "inputs": whole_number(operation, "inputs", inputs),
            "outputs": whole_number(operation, "outputs", outputs),
        }
        for name, size in sizes.items():
            if not 1 <= size <= _LARGEST_SIZE:
                raise ValueError(
                    f"{operation}: {name} is {size}; expected 1 to 2**63 - 1; give the sizes of the weight matrix"
                )
        batch = _core.exact_critical_batch(
            self.peak_flops,
            self.memory_bandwidth,
            sizes["inputs"],
            sizes["outputs"],
            activation_bytes,
            self.weight_bytes,
            activation_bytes,
        )
        return math.inf if batch is None else batch

    def to_svg(
        self,
        batches: Iterable[int] = (1, 8, 64, 512),
        *,
        layer: Sequence[int] | None = None,
        network_bandwidth: float | None = None,
        points: Iterable[RooflinePoint] = (),
    ) -> Picture:
        """A stand-alone SVG picture: FLOP/s over FLOP for each byte, both limits, their ridge point, and batches.

        Args:
            batches: Of a product X[batch, inputs] @ W[inputs, outputs], a point each, at what the limits allow.
            layer: Its inputs and outputs, to count reading X and writing the result; None: a layer far larger than the
                batch, of which only reading W counts.
            network_bandwidth: Bytes/s of a network, one way, as one more limit: of FLOP for each byte that crosses it.
            points: More points, such as measured ones.

        Raises:
            ValueError: If a batch or a size is below 1, or a rate, FLOP/s or FLOP per byte not finite and above 0.
            TypeError: If an argument is of another type.

        Example:
            >>> from artifex_devices.roofline import roofline
            >>> picture = roofline("tpu_v5e").to_svg([1, 240], network_bandwidth=45e9)
            >>> "memory: 819 GB/s, ridge point at 240.5 FLOP per byte" in picture, ">batch 240<" in picture
            (True, True)
        """
        words = "points: one product with a weight matrix, by batch size"
        if not isinstance(points, Iterable):
            raise TypeError(
                f"to_svg: points is of type {type(points).__name__}; expected a sequence of RooflinePoints, got "
                f"{shown(points)}; leave it out"
            )
        made = batch_points(batches, self.weight_bytes, _ELEMENT_BYTES[self.dtype], layer)
        if layer is not None:
            words += f", of {layer[0]} inputs and {layer[1]} outputs"
        return roofline_svg(self, [*made, *points], network_bandwidth, [words] if made else [])

    def _repr_html_(self) -> str:
        from artifex_devices._array.html import roofline_html

        return roofline_html(self)


def roofline(
    hardware: Device | HardwareType | MeasuredRoofline | str, dtype: Any = None, *, weight_dtype: Any = None
) -> Roofline:
    """The roofline of a hardware for one number format.

    Args:
        hardware: What `accelerator` takes, for a chip's numbers by the table; a CPU device, whose numbers are measured
            (once: `measure_roofline` keeps them); HardwareType.CPU or "cpu" for all CPU devices of the process
            together; or the result of a measurement.
        dtype: Number format of the products, as a dtype or its name: "bfloat16", "float8", "tf32", ... None is
            bfloat16, and float32 on CPU devices.
        weight_dtype: Number format of the weights in memory, where it is another; for the critical batch.

    Returns:
        A Roofline, per chip; both of its numbers say where they are from.

    Raises:
        ValueError: If the hardware is not in the catalogue, or nobody publishes its FLOP/s for that format.
        TypeError: If an argument is of the wrong type.

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
    if isinstance(hardware, MeasuredRoofline):
        return _measured(hardware, _format("roofline", "float32" if dtype is None else dtype), weight_dtype)
    if not isinstance(hardware, (HardwareType, str)):
        raise TypeError(
            f"roofline: hardware is {shown(hardware)} ({type(hardware).__name__}); expected a CPU device, a "
            "HardwareType, a "
            'MeasuredRoofline or a str; say "h100" or devices()[0]'
        )
    chip = accelerator(hardware)
    return _of_table(chip, _format("roofline", "bfloat16" if dtype is None else dtype), weight_dtype)


def _of_table(chip: Accelerator, dtype: str, weight_dtype: Any) -> Roofline:
    peak = chip.peak_flops.get(dtype)
    if peak is None:
        raise ValueError(
            f"roofline: the {dtype} FLOP/s of {chip.name} are not published; expected one of "
            f"{', '.join(chip.peak_flops)}; say dtype={shown(next(iter(chip.peak_flops)))}"
        )
    note = f" ({chip.note})" if chip.note else ""
    return Roofline(
        hardware=chip.name,
        dtype=dtype,
        peak_flops=peak,
        memory_bandwidth=chip.memory_bandwidth,
        weight_bytes=_ELEMENT_BYTES[dtype if weight_dtype is None else _format("roofline", weight_dtype)],
        peak_from=Provenance("table", f"published dense {dtype} FLOP/s of {chip.name}{note}", chip.sources),
        bandwidth_from=Provenance("table", f"published memory bandwidth of {chip.name}{note}", chip.sources),
    )


def _measured(found: MeasuredRoofline, dtype: str, weight_dtype: Any) -> Roofline:
    peak = found.peak_flops.get(dtype)
    if peak is None:
        raise ValueError(
            f"roofline: the {dtype} FLOP/s of {found.scope} are not measured; expected one of "
            f"{', '.join(found.peak_flops)}; say dtype='float32'"
        )
    when = found.conditions.date
    return Roofline(
        hardware=f"{found.scope} ({found.conditions.cpu_model})",
        dtype=dtype,
        peak_flops=peak.best,
        memory_bandwidth=found.bandwidth.best,
        weight_bytes=_ELEMENT_BYTES[dtype if weight_dtype is None else _format("roofline", weight_dtype)],
        peak_from=Provenance("measured", _how(peak, when)),
        bandwidth_from=Provenance("measured", _how(found.bandwidth, when)),
    )


def _how(rate: Rate, when: str) -> str:
    return f"{rate.how}, best of {rate.repeats}, ±{100 * rate.relative_error:.0f} %, {when}"


def _format(operation: str, dtype: Any) -> str:
    if isinstance(dtype, str):
        name = dtype
    else:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            raise TypeError(
                f"{operation}: {shown(dtype)} ({type(dtype).__name__}) is no dtype; expected one or its name; say "
                "'bfloat16'"
            ) from None
    name = name.lower()
    name = _SHORT.get(name, name)
    if narrow := _NARROW_FLOAT.fullmatch(name):
        name = narrow[1]
    if name not in _ELEMENT_BYTES:
        raise ValueError(
            f"{operation}: dtype {shown(dtype)} is not known here; expected one of {', '.join(_ELEMENT_BYTES)}; "
            "choose the one in which the products are computed"
        )
    return name
