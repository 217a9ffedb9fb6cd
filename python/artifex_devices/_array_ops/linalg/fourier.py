# SPDX-License-Identifier: Apache-2.0
"""numpy.fft on Arrays: transforms along unsharded dimensions; nothing is communicated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from artifex_devices._array_ops.core.arguments import array_operand, host_target
from artifex_devices._array_ops.core.dispatch import implements
from artifex_devices._array_ops.core.per_block import apply_along
from artifex_devices._array_ops.shape.rearranging import roll


def _transform(function: Any, a: Any, lengths: Any, axes: Any, norm: Any, out: Any, *, one: bool) -> Any:
    """A transform along `axes`; `one` is whether NumPy's function takes n and axis instead of s and axes."""
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


def _register_one(name: str) -> None:
    function = getattr(np.fft, name)

    def transform(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        return _transform(function, a, n, axis, norm, out, one=True)

    implements(function)(transform)


def _register_several(name: str, default: Any) -> None:
    function = getattr(np.fft, name)

    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        return _transform(function, a, s, axes, norm, out, one=False)

    implements(function)(transform)


for _prefix in ("", "i", "r", "ir"):
    _register_one(f"{_prefix}fft")
    _register_several(f"{_prefix}fftn", None)
    _register_several(f"{_prefix}fft2", (-2, -1))
for _name in ("hfft", "ihfft"):
    _register_one(_name)


def _register_shift(function: Any, sign: int) -> None:
    def shift(x: Any, axes: Any = None) -> Any:
        values = array_operand(f"fft.{function.__name__}", x)
        dims = tuple(range(values.ndim)) if axes is None else normalize_axis_tuple(axes, values.ndim)
        return roll(values, tuple(sign * (values.shape[d] // 2) for d in dims), dims)

    implements(function)(shift)


_register_shift(np.fft.fftshift, 1)
_register_shift(np.fft.ifftshift, -1)
