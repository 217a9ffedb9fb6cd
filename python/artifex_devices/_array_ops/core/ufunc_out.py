# SPDX-License-Identifier: Apache-2.0
"""Calls of ufuncs that write where Arrays lie, also into elements that lie apart from each other.

Not all loops of NumPy are right there. Those of 2.4.6 (seen on x86-64 with AVX512) take the input of `negative` for
dense where its stride is the square of its item size, and write what `isnan`, `isinf`, `isfinite` and `signbit` say of
floats densely from 16 elements on. So each loop is tried before its first use; one that errs writes to NumPy's memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.clearable_cache import remembered

__all__ = ["Loop", "loop_of", "write"]

_APART_BYTES = (2, 16, 64, 128)  # shards of small Arrays are 64 bytes apart, or a multiple
_COUNT = 40  # a whole vector of any width, and some more
# With where=, NumPy 2.4.6 crashes where these compare with an int of Python that the dtype cannot hold: they are called
# without a mask then. This cannot be tried, as a trial would end the process.
_COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))


class Loop(NamedTuple):
    """What NumPy does for operands of some dtypes."""

    dtypes: tuple[Any, ...]  # of the results
    writes_apart: bool  # whether its results are right in elements that lie apart


@remembered(maxsize=4096)
def loop_of(ufunc: np.ufunc, kinds: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Loop:
    """The Loop for operands of these dtypes, or of these types of Python numbers.

    Raises:
        TypeError: NumPy has none.
    """
    samples = [kind(1) if isinstance(kind, type) else np.ones(1, kind)[:0] for kind in kinds]
    with np.errstate(all="ignore"):
        results = ufunc(*samples, **dict(options))
        dtypes = tuple(part.dtype for part in results) if ufunc.nout > 1 else (results.dtype,)
        return Loop(dtypes, _writes_apart(ufunc, kinds, dict(options)))


def write(
    loop: Loop, ufunc: np.ufunc, options: dict[str, Any], outputs: Sequence[NDArray[Any]], parts: Sequence[Any]
) -> None:
    """Calls the ufunc with these outputs; parts broadcast against them. `options` may have a mask, as where=."""
    mask = options.get("where", True)
    is_safe = mask is True or ufunc not in _COMPARISONS or int not in map(type, parts)
    if is_safe and (loop.writes_apart or all(_is_like(part, outputs[0]) for part in (*parts, *outputs))):
        ufunc(*parts, out=tuple(outputs), **options)
        return
    results = ufunc(*parts, **{name: value for name, value in options.items() if name != "where"})
    for output, result in zip(outputs, results if ufunc.nout > 1 else (results,), strict=True):
        np.copyto(output, result, where=mask)


def _is_like(part: Any, output: NDArray[Any]) -> bool:
    """A dense array of this shape, or a number: then a loop over all of them writes densely."""
    return not isinstance(part, np.ndarray) or (part.shape == output.shape and part.flags.c_contiguous)


def _writes_apart(ufunc: np.ufunc, kinds: Sequence[Any], options: dict[str, Any]) -> bool:
    """Tries the loop on inputs and outputs whose elements lie apart, against dense ones."""
    try:
        dense = [kind(1) if isinstance(kind, type) else _numbers(kind, first=not i) for i, kind in enumerate(kinds)]
        expected = ufunc(*dense, **options)
        expected = expected if ufunc.nout > 1 else (expected,)
        for apart in _APART_BYTES:
            for inputs in (dense, [_apart(x, apart) if isinstance(x, np.ndarray) else x for x in dense]):
                outputs = tuple(_apart((x == 0).astype(x.dtype), apart) for x in expected)  # all of it is to change
                ufunc(*inputs, out=outputs, **options)
                if not all(map(_are_near, outputs, expected)):
                    return False
    except Exception:
        return False
    return True


def _numbers(dtype: Any, *, first: bool) -> NDArray[Any]:
    """Of both signs and no numbers, where it is the first operand; else small ones that all functions take."""
    if not first:
        return (np.arange(_COUNT) % 3 + 1).astype(dtype)
    values = (np.arange(_COUNT) % 7 - 3).astype(dtype)
    for place, value in enumerate((np.nan, np.inf, -np.inf, -0.0)):
        with contextlib.suppress(ValueError, OverflowError):  # integers have none of them
            values[place::9] = value
    return values


def _apart(values: NDArray[Any], apart: int) -> NDArray[Any]:
    """The same values, so many bytes from each other, or the nearest multiple of their size."""
    step = max(2, apart // values.itemsize)
    spread = np.zeros(len(values) * step, values.dtype)[::step]
    spread[...] = values
    return spread


def _are_near(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Equal, or as near as the roundings of different loops are."""
    if found.dtype.kind in "biu":
        return bool(np.array_equal(found, expected))
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    return bool(np.allclose(found.astype(wide), expected.astype(wide), rtol=0.1, equal_nan=True))
