# SPDX-License-Identifier: Apache-2.0
"""NumPy's loops of ufuncs: whether they write correctly to strided memory, and how much work is worth several cores.

Some loops do not. Loops of NumPy 2.4.6 (seen on x86-64 with AVX512) treat the input of `negative` as dense if its
stride is the square of its item size, and write the results of `isnan`, `isinf`, `isfinite` and `signbit` of floats
densely from 16 elements on. So each loop is tested before its first use; a wrong one writes to dense memory first.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._base.clearable_cache import clearable_cache

_STRIDES = (2, 16, 64, 128)  # in bytes; shards of small Arrays are 64 bytes apart, or a multiple
_COUNT = 40  # more than a vector of any width
# With where=, NumPy 2.4.6 crashes if these compare with a Python int that the dtype cannot hold, so they are called
# without a mask then. This cannot be tested, because the test would end the process.
_COMPARISONS = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
# The context of np.errstate(all="ignore"). It is created once: entering np.errstate of NumPy 2.4.6 was seen to end a
# process that was short of memory.
_ERRORS_IGNORED = contextvars.Context()
_ERRORS_IGNORED.run(np.seterr, all="ignore")


class Loop(NamedTuple):
    """NumPy's loop for operands of some dtypes."""

    dtypes: tuple[Any, ...]  # of the results
    writes_strided: bool  # whether its results are correct in strided memory


@clearable_cache(maxsize=4096)
def loop_of(ufunc: np.ufunc, kinds: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Loop:
    """Returns the Loop for operands of these dtypes, or of these types of Python numbers."""
    return _ERRORS_IGNORED.copy().run(_loop_of, ufunc, kinds, dict(options))


def _loop_of(ufunc: np.ufunc, kinds: tuple[Any, ...], options: dict[str, Any]) -> Loop:
    samples = [kind(1) if isinstance(kind, type) else np.ones(1, kind)[:0] for kind in kinds]
    results = ufunc(*samples, **options)
    dtypes = tuple(part.dtype for part in results) if ufunc.nout > 1 else (results.dtype,)
    return Loop(dtypes, _writes_strided(ufunc, kinds, options))


def write(
    loop: Loop, ufunc: np.ufunc, options: dict[str, Any], outputs: Sequence[NDArray[Any]], parts: Sequence[Any]
) -> None:
    """Calls the ufunc with these outputs, to which the parts broadcast. `options` may have a mask, as where=."""
    mask = options.get("where", True)
    is_safe = mask is True or ufunc not in _COMPARISONS or int not in map(type, parts)
    if is_safe and (loop.writes_strided or all(_is_like(part, outputs[0]) for part in (*parts, *outputs))):
        ufunc(*parts, out=tuple(outputs), **options)
        return
    results = ufunc(*parts, **{name: value for name, value in options.items() if name != "where"})
    for output, result in zip(outputs, results if ufunc.nout > 1 else (results,), strict=True):
        np.copyto(output, result, where=mask)


def _is_like(part: Any, output: NDArray[Any]) -> bool:
    """Returns whether an operand is a dense array of this shape, or a number: then the loop writes densely."""
    return not isinstance(part, np.ndarray) or (part.shape == output.shape and part.flags.c_contiguous)


def _writes_strided(ufunc: np.ufunc, kinds: Sequence[Any], options: dict[str, Any]) -> bool:
    """Compares the loop on strided inputs and outputs with the loop on dense ones."""
    try:
        dense = [kind(1) if isinstance(kind, type) else _numbers(kind, first=not i) for i, kind in enumerate(kinds)]
        expected = ufunc(*dense, **options)
        expected = expected if ufunc.nout > 1 else (expected,)
        for stride in _STRIDES:
            for inputs in (dense, [_strided(x, stride) if isinstance(x, np.ndarray) else x for x in dense]):
                outputs = tuple(
                    _strided((x == 0).astype(x.dtype), stride) for x in expected
                )  # each element must change
                ufunc(*inputs, out=outputs, **options)
                if not all(map(_are_near, outputs, expected)):
                    return False
    except Exception:
        return False
    return True


def _numbers(dtype: DTypeLike | None, *, first: bool) -> NDArray[Any]:
    """Returns positive, negative and special values for the first operand, and small values for further operands."""
    if not first:
        return (np.arange(_COUNT) % 3 + 1).astype(dtype)
    values = (np.arange(_COUNT) % 7 - 3).astype(dtype)
    for place, value in enumerate((np.nan, np.inf, -np.inf, -0.0)):
        with contextlib.suppress(ValueError, OverflowError):  # integers have no such values
            values[place::9] = value
    return values


def _strided(values: NDArray[Any], stride: int) -> NDArray[Any]:
    """Returns the same values with this stride in bytes, or the nearest multiple of their size."""
    step = max(2, stride // values.itemsize)
    spread = np.zeros(len(values) * step, values.dtype)[::step]
    spread[...] = values
    return spread


def _are_near(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Returns whether arrays are equal up to the rounding of different loops."""
    if found.dtype.kind in "biu":
        return bool(np.array_equal(found, expected))
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    return bool(np.allclose(found.astype(wide), expected.astype(wide), rtol=0.1, equal_nan=True))


# Three classes, by the cost of NumPy's loop for each element: a cycle; functions with vector loops; other functions.
# Decision 0020 has the measured times that these numbers of bytes follow from.
SPREAD_BYTES = 2 << 20
_OF_VECTOR_LOOPS = 8 << 20
_OF_SIMPLE = 24 << 20
# fmt: off
_SIMPLE = frozenset({  # about a cycle for each element
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.absolute, np.fabs, np.square,
    np.conjugate, np.copysign, np.sign, np.signbit, np.rint, np.trunc, np.floor, np.ceil, np.maximum, np.minimum,
    np.fmax, np.fmin, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isfinite,
    np.isinf, np.isnan, np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.bitwise_and, np.bitwise_or,
    np.bitwise_xor, np.invert,
})
_VECTORS = frozenset({  # 0.3 to 0.9 ns for each element in float32, 0.9 to 3 in float64, except sin and cos
    np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan, np.sinh,
    np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arctanh, np.arctan2, np.power,
})
# fmt: on
_FAST = frozenset("?bhilqBHILQfd")  # dtypes that NumPy has vector loops for; divide and rounding of integers convert
_OF_FLOATS = frozenset({np.divide, np.rint, np.trunc, np.floor, np.ceil, np.copysign, np.fabs})


@clearable_cache(maxsize=4096)
def spread_from(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> int:
    """Returns how many bytes read and written let a ufunc use several cores; `kinds` are dtypes or types of numbers."""
    dtypes = {kind for kind in kinds if not isinstance(kind, type)}
    if len(dtypes) != 1 or complex in kinds:
        return SPREAD_BYTES
    (dtype,) = dtypes
    if ufunc in _VECTORS:
        is_vector = dtype.char == "f" or (dtype.char == "d" and ufunc not in (np.sin, np.cos))
        return _OF_VECTOR_LOOPS if is_vector else SPREAD_BYTES
    converts = dtype.kind != "f" and (float in kinds or ufunc in _OF_FLOATS)
    is_simple = ufunc in _SIMPLE and dtype.char in _FAST and not converts
    return _OF_SIMPLE if is_simple else SPREAD_BYTES
