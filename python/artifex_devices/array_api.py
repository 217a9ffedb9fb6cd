# SPDX-License-Identifier: Apache-2.0
"""The Array API standard (2024.12) for Arrays: what `x.__array_namespace__()` gives.

Functions are NumPy's own, which work on Arrays where their shards lie; creation functions make Arrays, where `device=`
says: a Device or a Sharding. What Arrays do not support is absent: `hasattr(xp, "nonzero")` is False, and asking for it
says why.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> x = ad.device_put(np.array([1.0, 3.0]))
    >>> xp = x.__array_namespace__()
    >>> xp.add(x, xp.ones(2)), xp.__array_api_version__
    (Array([2., 4.], dtype=float64), '2024.12')
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._core import Array, Device, Sharding
from artifex_devices.array_ops import dispatch
from artifex_devices.array_ops.creation import ZERO, filled
from artifex_devices.placement import device_put
from artifex_devices.shown import shown

# The functions in _FUNCTIONS come on top, as far as Arrays support them.
# fmt: off
__all__ = [
    "arange", "asarray", "bool", "broadcast_shapes", "can_cast", "complex64", "complex128", "e", "empty", "eye",
    "finfo", "float32", "float64", "from_dlpack", "full", "iinfo", "inf", "int8", "int16", "int32", "int64",
    "isdtype", "linspace", "nan", "newaxis", "ones", "pi", "result_type", "uint8", "uint16", "uint32", "uint64",
    "zeros",
]
# fmt: on

__array_api_version__ = "2024.12"

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")

e = np.e
inf = np.inf
nan = np.nan
newaxis = None
pi = np.pi

bool = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float32, float64 = np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128
_DTYPES = (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64, complex64, complex128)

# What jax_enable_x64=False makes of 64-bit dtypes.
_NARROW: dict[Any, np.dtype[Any]] = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in ((int64, int32), (uint64, uint32), (float64, float32), (complex128, complex64))
}

can_cast = np.can_cast
finfo = np.finfo
iinfo = np.iinfo
isdtype = np.isdtype
result_type = np.result_type
broadcast_shapes = np.broadcast_shapes

# The standard's names of functions that take arrays; those that Arrays support are found here as NumPy has them.
_FUNCTIONS = frozenset(
    """
    abs acos acosh add all any argmax argmin argsort asin asinh astype atan atan2 atanh bitwise_and bitwise_invert
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to ceil clip concat
    conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide empty_like equal exp expand_dims
    expm1 flip floor floor_divide full_like greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max
    maximum mean meshgrid min minimum moveaxis multiply negative nextafter nonzero not_equal ones_like permute_dims
    positive pow prod real reciprocal remainder repeat reshape roll round searchsorted sign signbit sin sinh sort
    sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc
    unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros_like
    """.split()  # noqa: SIM905 - it reads better
)


def namespace(api_version: str | None) -> Any:
    """This module, for a version of the standard that it knows.

    Raises:
        ValueError: It does not know the version.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version {shown(api_version)} is not known; expected one of "
            f"{', '.join(_VERSIONS)}; leave it out"
        )
    import sys

    return sys.modules[__name__]


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        function = getattr(np, name)
        if dispatch.supports(function):
            globals()[name] = function
            return function
        raise AttributeError(
            f"array_api.{name}: not supported on Arrays; expected one of dir(xp), got {shown(name)}; gather first: "
            f"np.{name}(np.asarray(x))",
            name=name,
        )
    if name in ("linalg", "fft"):
        return _extension(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def _extension(name: str) -> Any:
    """np.linalg, where Arrays support its matmul; there is no fft."""
    if name == "linalg" and dispatch.supports(np.linalg.vector_norm):
        return np.linalg
    raise AttributeError(f"array_api.{name}: this extension is not supported on Arrays", name=name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in _FUNCTIONS if dispatch.supports(getattr(np, name)))])


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Array:
    """An Array of anything that NumPy makes an array of.

    Args:
        obj: An Array, ndarray, number, or nested lists.
        dtype: None keeps the dtype.
        device: None (where an Array is; the default device for host data), a Device or a Sharding.
        copy: True always copies; False raises where a copy would be needed; None copies where needed.

    Returns:
        The Array; an Array itself where nothing is to be done.

    Raises:
        ValueError: copy=False, and the data must be copied.
        TypeError: obj is no array of numbers, or device is no place.
    """
    if device is not None:
        _check_device("asarray", device)
    if not isinstance(obj, Array):
        if copy is False:
            raise ValueError(
                f"asarray: data on the host is copied to a device; expected an Array for copy=False, got "
                f"{type(obj).__name__}; leave copy out"
            )
        placed: Array = device_put(_host(obj, dtype), device)
        return placed
    kind = obj.dtype if dtype is None else np.dtype(dtype)
    moves = device is not None and device not in (obj.sharding, obj.device)
    if copy is False and (moves or kind != obj.dtype):
        raise ValueError(
            f"asarray: copy=False cannot change dtype or device; expected {obj.dtype} on {obj.device}, got {kind} on "
            f"{device}; leave copy out"
        )
    result: Any = obj if kind == obj.dtype else np.astype(obj, kind)  # type: ignore[call-overload]
    if moves:
        result = device_put(result, device)
    result = np.copy(result) if copy and result is obj else result
    return cast(Array, result)


def _host(obj: Any, dtype: Any) -> Any:
    if isinstance(obj, (list, tuple)):
        obj = _with_numbers(obj)
    value = np.asarray(obj, dtype=dtype)
    return _of_numbers("asarray", value) if dtype is None and not hasattr(obj, "dtype") else value


def _with_numbers(obj: Any) -> Any:
    """The lists, with Arrays in them read."""
    if isinstance(obj, Array):
        return np.asarray(obj)
    return [_with_numbers(part) for part in obj] if isinstance(obj, (list, tuple)) else obj


def _default(wide: type[np.generic]) -> np.dtype[Any]:
    """The dtype of numbers that name none: 32 bits where `jax_enable_x64` is off."""
    kind = np.dtype(wide)
    return kind if _core._scoped_option("jax_enable_x64") else _NARROW[kind]


def _asked(dtype: Any) -> Any:
    """float64's default for None; else what a placement makes of the dtype (it warns at its first narrowing)."""
    if dtype is None:
        return _default(float64)
    kind = np.dtype(dtype)
    if kind not in _NARROW or _core._scoped_option("jax_enable_x64"):
        return kind
    placed: Array = device_put(np.zeros((), kind))
    return placed.dtype


def _of_numbers(operation: str, value: NDArray[Any]) -> NDArray[Any]:
    """What was made of Python's numbers, narrowed without a warning where `jax_enable_x64` is off.

    Raises:
        OverflowError: An int needs more than 32 bits.
    """
    if value.dtype not in _NARROW or _core._scoped_option("jax_enable_x64"):
        return value
    kind = _NARROW[value.dtype]
    if kind.kind in "iu" and value.size:
        limits = np.iinfo(kind)
        least, most = int(value.min()), int(value.max())
        if least < limits.min or most > limits.max:
            raise OverflowError(
                f"{operation}: an int is too large for {kind}; expected {limits.min} to {limits.max}, got {least} to "
                f"{most}; name a dtype of floats, or config.update('jax_enable_x64', True) for 64 bits"
            )
    return value.astype(kind)


def _check_device(operation: str, device: Any) -> None:
    if not isinstance(device, (Device, Sharding)):
        raise TypeError(
            f"{operation}: device is {shown(device)} ({type(device).__name__}); expected a Device or a Sharding; take "
            "one from artifex_devices.devices() or from x.device"
        )


def to_device(x: Array, device: Any, stream: Any = None) -> Array:
    """What Array.to_device does."""
    if stream is not None:
        raise ValueError(
            f"to_device: there are no streams; expected None, got {shown(stream)}; leave it out and use "
            "block_until_ready()"
        )
    _check_device("to_device", device)
    placed: Array = device_put(x, device)
    return placed


def _made(value: Any, device: Any) -> Array:
    if device is not None:
        _check_device("device", device)
    placed: Array = device_put(value, device)
    return placed


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An Array of zeros, of the default float dtype unless told."""
    return filled("zeros", shape, ZERO, _asked(dtype), device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An Array of ones, of the default float dtype unless told."""
    return filled("ones", shape, 1, _asked(dtype), device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An Array whose elements are as the memory comes, of the default float dtype unless told."""
    return filled("empty", shape, None, _asked(dtype), device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An Array of one value, with its dtype unless told."""
    value = np.asarray(fill_value)
    if not hasattr(fill_value, "dtype"):
        value = _of_numbers("full", value) if dtype is None else value
    return filled("full", shape, value, _asked(value.dtype if dtype is None else dtype), device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """np.arange, placed."""
    first, end = (0, start) if stop is None else (start, stop)
    value = np.arange(first, end, step, dtype=dtype)
    return _made(_of_numbers("arange", value) if dtype is None else value, device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True
) -> Array:
    """np.linspace, placed."""
    value = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    return _made(_of_numbers("linspace", value) if dtype is None else value, device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    """np.eye, placed."""
    return _made(np.eye(n_rows, n_cols, k, dtype=_asked(dtype)), device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Array:
    """An Array of anything with `__dlpack__`; the data is copied.

    Raises:
        ValueError: copy=False: a placement never shares memory unasked.
    """
    return asarray(x if isinstance(x, Array) else np.from_dlpack(x), device=device, copy=copy)


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """What this implementation of the standard offers."""
    return Info()


class Info:
    """Answers to the standard's questions about an implementation."""

    def capabilities(self) -> dict[str, Any]:
        """What is supported of what is optional."""
        return {"boolean indexing": True, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of arrays for which none is named."""
        device: Device = _core._default_device()
        return device

    def devices(self) -> list[Device]:
        """All devices."""
        from artifex_devices.discovery import devices

        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtype of each kind of Python number."""
        return {
            "real floating": _default(float64),
            "complex floating": _default(complex128),
            "integral": _default(np.int64),
            "indexing": np.dtype(np.intp),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, as isdtype names it, by name; None is all."""
        found = {np.dtype(t).name: np.dtype(t) for t in _DTYPES}
        return found if kind is None else {name: d for name, d in found.items() if np.isdtype(d, kind)}
