# SPDX-License-Identifier: Apache-2.0
"""NumPy's namespace with creation functions that place their results: `from artifex_devices import numpy as jnp`.

`array`, `zeros`, `arange` and the other functions of `__all__` return Arrays, as in `jax.numpy`, and take
`device=` or `out_sharding=`. Every other public name is NumPy's own: functions compute on the devices of Arrays, and
return ndarrays for ndarrays. Dtypes are NumPy's: `jnp.zeros(3)` has float64, unless `jax_enable_x64` is off.

Example:
    >>> import artifex_devices as ad
    >>> from artifex_devices import numpy as jnp
    >>> with ad.simulate(8), ad.set_mesh(ad.make_mesh((8,), ("data",))):
    ...     x = jnp.arange(16.0, out_sharding=ad.P("data"))
    ...     float(jnp.sum(x)), x.addressable_shards[1].data.tolist()
    (120.0, [2.0, 3.0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from artifex_devices import array_api
from artifex_devices._array_ops.core.arguments import check_order, size_tuple
from artifex_devices._base.checks import failure
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._core import Array, Sharding
from artifex_devices._placement.target import Target, resolve_target

__all__ = ["arange", "array", "asarray", "empty", "eye", "full", "identity", "linspace", "ndarray", "ones", "zeros"]

ndarray = Array  # as in jax.numpy: isinstance(x, jnp.ndarray) asks for an Array


def _target(operation: str, shape: int | Sequence[int], device: Target, out_sharding: Target) -> Any:
    """Returns the place of a new Array: a Sharding must divide the shape."""
    if device is not None and out_sharding is not None:
        raise failure(
            ValueError,
            operation,
            "device and out_sharding are both given",
            expected="one of them",
            got=f"device={device}, out_sharding={out_sharding}",
            fix="leave device out: a sharding names its devices",
        )
    name = "device" if out_sharding is None else "out_sharding"
    target = resolve_target(operation, device if out_sharding is None else out_sharding, name)
    if isinstance(target, Sharding):
        target.shard_shape(size_tuple(operation, shape))
    return target


@hides_unknown
def array(
    object: ArrayLike,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Creates an Array of an array, a number or nested lists; arguments as of `jax.numpy.array`.

    Raises:
        ValueError: device and out_sharding are both given; the sharding does not divide the shape.
        TypeError: object is not an array of numbers, or order is not row-major.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.array([1, 2, 3])
        Array([1, 2, 3], dtype=int64)
    """
    if _unknown:
        raise unknown_argument("array", _unknown)
    value: Any = object if isinstance(object, Array) else np.array(object, dtype, order=cast(Any, order))
    while value.ndim < ndmin:
        value = value[None]
    return asarray(value, dtype, copy=copy or None, device=device, out_sharding=out_sharding)


@hides_unknown
def asarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Converts an array, a number or nested lists to an Array; an Array that is as requested is returned itself.

    Raises:
        ValueError: device and out_sharding are both given; the sharding does not divide the shape; copy is False and
            the data must be copied.
        TypeError: a is not an array of numbers.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.asarray(2.5)
        Array(2.5, dtype=float64)
    """
    if _unknown:
        raise unknown_argument("asarray", _unknown)
    check_order("asarray", "K" if order is None else order)
    target = _target("asarray", np.shape(a), device, out_sharding)
    return array_api.asarray(a, dtype=dtype, device=target, copy=copy)


@hides_unknown
def zeros(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Creates an Array of zeros; each device writes its own shard.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.zeros(2)
        Array([0., 0.], dtype=float64)
    """
    if _unknown:
        raise unknown_argument("zeros", _unknown)
    return array_api.zeros(shape, dtype=dtype, device=_target("zeros", shape, device, out_sharding))


@hides_unknown
def ones(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Creates an Array of ones; each device writes its own shard.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.ones((1, 2), int)
        Array([[1, 1]], dtype=int64)
    """
    if _unknown:
        raise unknown_argument("ones", _unknown)
    return array_api.ones(shape, dtype=dtype, device=_target("ones", shape, device, out_sharding))


def empty(
    shape: int | Sequence[int],
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
) -> Array:
    """Creates an Array of uninitialized elements.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.empty((2, 3)).shape
        (2, 3)
    """
    return array_api.empty(shape, dtype=dtype, device=_target("empty", shape, device, out_sharding))


@hides_unknown
def full(
    shape: int | Sequence[int],
    fill_value: complex,
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Creates an Array full of one value, with the dtype of the value if dtype is None.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.full(2, 7)
        Array([7, 7], dtype=int64)
    """
    if _unknown:
        raise unknown_argument("full", _unknown)
    target = _target("full", shape, device, out_sharding)
    return array_api.full(shape, fill_value, dtype=dtype, device=target)


@hides_unknown
def arange(
    start: float,
    stop: float | None = None,
    step: float | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
    **_unknown: NoReturn,
) -> Array:
    """Creates an Array of evenly spaced numbers: `arange(stop)`, or from start up to stop.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.arange(3)
        Array([0, 1, 2], dtype=int64)
    """
    if _unknown:
        raise unknown_argument("arange", _unknown)
    made = array_api.arange(start, stop, 1 if step is None else step, dtype=dtype)
    return _placed("arange", made, device, out_sharding)


def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    endpoint: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: Target = None,
    out_sharding: Target = None,
) -> Array:
    """Creates an Array of num evenly spaced numbers from start to stop.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.linspace(0, 1, 3)
        Array([0. , 0.5, 1. ], dtype=float64)
    """
    made = array_api.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    return _placed("linspace", made, device, out_sharding)


def eye(
    N: int,  # noqa: N803 - NumPy's name
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Target = None,
    out_sharding: Target = None,
) -> Array:
    """Creates a matrix with ones on diagonal k and zeros elsewhere.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.eye(2)
        Array([[1., 0.],
               [0., 1.]], dtype=float64)
    """
    return _placed("eye", array_api.eye(N, M, k=k, dtype=dtype), device, out_sharding)


def identity(n: int, dtype: DTypeLike | None = None, *, device: Target = None, out_sharding: Target = None) -> Array:
    """Creates a square matrix with ones on its diagonal.

    Example:
        >>> from artifex_devices import numpy as jnp
        >>> jnp.identity(1)
        Array([[1.]], dtype=float64)
    """
    return eye(n, dtype=dtype, device=device, out_sharding=out_sharding)


def _placed(operation: str, made: Array, device: Target, out_sharding: Target) -> Array:
    target = _target(operation, made.shape, device, out_sharding)
    return made if target is None else array_api.asarray(made, device=target)


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in dir(np):
        return getattr(np, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in dir(np) if not name.startswith("_"))})
