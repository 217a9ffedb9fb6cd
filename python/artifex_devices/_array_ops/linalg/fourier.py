# SPDX-License-Identifier: Apache-2.0
"""numpy.fft on Arrays: transforms along dimensions that are not sharded; nothing is communicated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from artifex_devices._array_ops.core.arguments import array_operand, host_target
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.shape.rearranging import roll


def _transform(function: Any, a: Any, lengths: Any, axes: Any, norm: Any, out: Any, *, one: bool) -> Any:
    """A transform along `axes`; `one`: NumPy's function takes n and axis instead of s and axes."""
    name = f"fft.{function.__name__}"
    x = array_operand(name, a)
    if axes is None:
        axes = range(x.ndim) if lengths is None else range(x.ndim - len(lengths), x.ndim)
    dims = normalize_axis_tuple(axes, x.ndim, allow_duplicate=True)

    def compute(block: Any, shift: int = 0) -> Any:
        along_dims = tuple(d + shift for d in dims)
        if one:
            return function(block, lengths, along_dims[0], norm)
        return function(block, lengths, along_dims, norm)

    sample = compute(np.empty((0, *x.shape), x.dtype), 1)  # NumPy's errors, and the sizes and the dtype of the result
    sizes = {d: sample.shape[d + 1] for d in dims}
    return apply_along(name, x, sizes, compute, sample.dtype, into=host_target(name, out))


def _register_one(function: Any) -> None:
    def implementation(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return _transform(function, a, n, axis, norm, out, one=True)

    implements(function)(implementation)


def _register_several(function: Any, default: Any) -> None:
    def implementation(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        return _transform(function, a, s, axes, norm, out, one=False)

    implements(function)(implementation)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _register_one(getattr(np.fft, _name))
for _name in ("fftn", "ifftn", "rfftn", "irfftn"):
    _register_several(getattr(np.fft, _name), None)
for _name in ("fft2", "ifft2", "rfft2", "irfft2"):
    _register_several(getattr(np.fft, _name), (-2, -1))


@implements(np.fft.fftshift)
def _fftshift(x: Any, axes: Any = None) -> Any:
    values = array_operand("fft.fftshift", x)
    dims = tuple(range(values.ndim)) if axes is None else normalize_axis_tuple(axes, values.ndim)
    return roll(values, tuple(values.shape[d] // 2 for d in dims), dims)


@implements(np.fft.ifftshift)
def _ifftshift(x: Any, axes: Any = None) -> Any:
    values = array_operand("fft.ifftshift", x)
    dims = tuple(range(values.ndim)) if axes is None else normalize_axis_tuple(axes, values.ndim)
    return roll(values, tuple(-(values.shape[d] // 2) for d in dims), dims)
