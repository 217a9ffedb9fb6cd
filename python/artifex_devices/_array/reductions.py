# SPDX-License-Identifier: Apache-2.0
"""Array's methods that NumPy's ndarray has too: sums, order, rounding; each is NumPy's function of that name."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._core import Array

__all__: list[str] = []


_UNSET: Any = np._NoValue


def _options(**given: Any) -> dict[str, Any]:
    """Only what was given: NumPy tells an option that is left away from any value."""
    return {key: value for key, value in given.items() if value is not _UNSET}


def _sum(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    """np.sum: cut dimensions that are summed become whole."""
    return np.sum(self, axis, dtype, out, keepdims, where=where, **_options(initial=initial))


def _prod(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = _UNSET,
    where: Any = True,
) -> Any:
    """np.prod: cut dimensions that are reduced become whole."""
    return np.prod(self, axis, dtype, out, keepdims, where=where, **_options(initial=initial))


def _max(
    self: Array, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    """np.max: NaN wins."""
    return np.max(self, axis, out, keepdims, where=where, **_options(initial=initial))


def _min(
    self: Array, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = _UNSET, where: Any = True
) -> Any:
    """np.min: NaN wins."""
    return np.min(self, axis, out, keepdims, where=where, **_options(initial=initial))


def _any(self: Array, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    """np.any."""
    return np.any(self, axis, out, keepdims, where=where)


def _all(self: Array, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    """np.all."""
    return np.all(self, axis, out, keepdims, where=where)


def _mean(
    self: Array, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Any:
    """np.mean: floats of 16 bits are added up in float32, integers in float64."""
    return np.mean(self, axis, dtype, out, keepdims, where=where)


def _var(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    """np.var."""
    options = _options(mean=mean, correction=correction)
    return np.var(self, axis, dtype, out, ddof, keepdims, where=where, **options)


def _std(
    self: Array,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = _UNSET,
    correction: Any = _UNSET,
) -> Any:
    """np.std."""
    options = _options(mean=mean, correction=correction)
    return np.std(self, axis, dtype, out, ddof, keepdims, where=where, **options)


def _argmax(self: Array, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """np.argmax: the first of equal ones, the first NaN where there is one."""
    return np.argmax(self, axis, out, keepdims=keepdims)


def _argmin(self: Array, axis: Any = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """np.argmin: the first of equal ones, the first NaN where there is one."""
    return np.argmin(self, axis, out, keepdims=keepdims)


def _ptp(self: Array, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """np.ptp: the greatest less the least."""
    return np.ptp(self, axis, out, keepdims)


def _cumsum(self: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """np.cumsum: along a cut dimension only the totals of the shards meet."""
    return np.cumsum(self, axis, dtype, out)


def _cumprod(self: Array, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """np.cumprod: along a cut dimension only the products of the shards meet."""
    return np.cumprod(self, axis, dtype, out)


def _sort(self: Array, axis: int = -1, kind: Any = None, order: None = None, *, stable: Any = None) -> Any:
    """np.sort: a sorted copy, as in JAX, since Arrays do not change; along a dimension that is not cut."""
    return np.sort(self, axis, kind, order, stable=stable)


def _argsort(self: Array, axis: int = -1, kind: Any = None, order: None = None, *, stable: Any = None) -> Any:
    """np.argsort, along a dimension that is not cut."""
    return np.argsort(self, axis, kind, order, stable=stable)


def _round(self: Array, decimals: int = 0, out: Any = None) -> Any:
    """np.round."""
    return np.round(self, decimals, out)


def _clip(self: Array, min: Any = None, max: Any = None, out: Any = None) -> Any:
    """np.clip."""
    return np.clip(self, min, max, out)


def _argpartition(self: Array, kth: Any, axis: Any = -1) -> Any:
    """np.argpartition: positions; the dimension must be whole."""
    return np.argpartition(self, kth, axis)


def _searchsorted(self: Array, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """np.searchsorted(x, v): the result lies as v does; x must be whole."""
    return np.searchsorted(self, v, side, sorter)


def _tobytes(self: Array) -> bytes:
    """The bytes of the value in the order of rows, read as by np.asarray(x)."""
    return np.asarray(self).tobytes()


def _astype(self: Array, dtype: Any, copy: bool = True, device: Any = None) -> Any:
    """np.astype: each shard is converted where it lies."""
    from artifex_devices._array_ops.elementwise.functions import astype

    return astype(self, dtype, copy=copy, device=device)


def _conjugate(self: Array) -> Any:
    """np.conjugate; bools stay bools."""
    return np.copy(self) if self.dtype == bool else np.conjugate(self)


def _copy(self: Array) -> Any:
    """np.copy: new memory, the same layout."""
    return np.copy(self)


def _real(self: Array) -> Any:
    """np.real: the real parts, a copy."""
    return np.real(self)


def _imag(self: Array) -> Any:
    """np.imag: the imaginary parts, a copy."""
    return np.imag(self)


def _attach() -> None:
    for method in (
        *(_sum, _prod, _max, _min, _any, _all, _mean, _var, _std, _argmax, _argmin, _ptp, _cumsum, _cumprod),
        *(_sort, _argsort, _argpartition, _searchsorted, _tobytes, _round, _clip, _astype, _conjugate, _copy),
    ):
        method.__name__ = method.__name__[1:]
        method.__qualname__ = f"Array.{method.__name__}"
        setattr(Array, method.__name__, method)
    for name, attribute in {"conj": _conjugate, "real": property(_real), "imag": property(_imag)}.items():
        setattr(Array, name, attribute)


_attach()
