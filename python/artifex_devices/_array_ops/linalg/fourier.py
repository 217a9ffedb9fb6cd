# SPDX-License-Identifier: Apache-2.0
"""numpy.fft on Arrays: transforms along unsharded dimensions; nothing is communicated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from artifex_devices._array_ops.core.arguments import array_operand, axis_tuple, host_target
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.core.registry import implements_each
from artifex_devices._array_ops.shape.rearranging import roll
from artifex_devices._base.argument_types import Axes, FourierNorm, Operand, Out


def _transform(
    function: Callable[..., Any], a: ArrayLike, lengths: Any, axes: Axes, norm: FourierNorm, out: Out, *, one: bool
) -> Operand:
    """Makes a transform along `axes`; `one` is whether NumPy's function takes n and axis instead of s and axes."""
    name = f"fft.{function.__name__}"
    x = array_operand(name, a)
    if axes is None:
        axes = range(x.ndim) if lengths is None else range(x.ndim - len(lengths), x.ndim)
    dims = axis_tuple(name, axes, x.ndim, allow_duplicate=True)

    def compute(block: Any, shift: int = 0) -> Any:
        shifted = tuple(d + shift for d in dims)
        return function(block, lengths, shifted[0] if one else shifted, norm)

    sample = compute(np.empty((0, *x.shape), x.dtype), 1)  # NumPy's errors, and the sizes and the dtype of the result
    sizes = {d: sample.shape[d + 1] for d in dims}
    return apply_along(name, x, sizes, compute, sample.dtype, into=host_target(name, out))


_SEVERAL = [getattr(np.fft, f"{prefix}fft{name}") for prefix in ("", "i", "r", "ir") for name in ("2", "n")]


@implements_each(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)
def _along_one(
    function: Callable[..., Any],
    a: ArrayLike,
    n: int | None = None,
    axis: int = -1,
    norm: FourierNorm = None,
    out: Out = None,
) -> Operand:
    return _transform(function, a, n, axis, norm, out, one=True)


@implements_each(*_SEVERAL)
def _along_several(
    function: Callable[..., Any],
    a: ArrayLike,
    s: Axes = None,
    axes: Any = np._NoValue,
    norm: FourierNorm = None,
    out: Out = None,
) -> Operand:
    if axes is np._NoValue:
        axes = (-2, -1) if function.__name__.endswith("2") else None
    return _transform(function, a, s, axes, norm, out, one=False)


@implements_each(np.fft.fftshift, np.fft.ifftshift)
def _shift(function: Callable[..., Any], x: ArrayLike, axes: Axes = None) -> Operand:
    values = array_operand(f"fft.{function.__name__}", x)
    dims = tuple(range(values.ndim)) if axes is None else axis_tuple("fftshift", axes, values.ndim)
    sign = 1 if function is np.fft.fftshift else -1
    return roll(values, tuple(sign * (values.shape[d] // 2) for d in dims), dims)
