# SPDX-License-Identifier: Apache-2.0
"""Array's indexing and its Array API methods; the work is done in `array_ops` and `array_api`, loaded when used."""

from __future__ import annotations

import collections.abc
import typing
from typing import Any

from artifex_devices._core import Array

__all__: list[str] = []


def _getitem(self: Array, index: Any, /) -> Array:
    """A part, by NumPy's rules; only the shards that hold it are read (guide: NumPy on Arrays)."""
    from artifex_devices._array_ops.index.indexing import get

    return get(self, index)


def _setitem(self: Array, index: Any, value: Any, /) -> typing.NoReturn:
    """Raises TypeError: Arrays do not change."""
    from artifex_devices._array_ops.index.indexing import refuse_change

    refuse_change(self)


def _delitem(self: Array, index: Any, /) -> typing.NoReturn:
    """Raises TypeError: Arrays do not change."""
    from artifex_devices._array_ops.index.indexing import refuse_change

    refuse_change(self)


def _iter(self: Array, /) -> collections.abc.Iterator[Array]:
    """x[0], x[1], ... ; TypeError without a dimension."""
    from artifex_devices._array_ops.index.indexing import rows

    return rows(self)


def _reversed(self: Array, /) -> collections.abc.Iterator[Array]:
    """x[len(x) - 1], ..., x[0]."""
    from artifex_devices._array_ops.index.indexing import rows

    return rows(self, backwards=True)


def _contains(self: Array, value: Any, /) -> bool:
    """Whether an element equals the value."""
    from artifex_devices._array_ops.index.indexing import contains

    return contains(self, value)


def _format(self: Array, spec: str, /) -> str:
    """f"{loss:.3f}" of an Array without dimensions, as of its number; others take no format but the empty one."""
    if not spec:
        return str(self)
    if self.ndim:
        raise TypeError(
            f"format: only an Array without dimensions has formats of numbers; expected shape (), got {self.shape}; "
            "format its elements, or leave the format out"
        )
    return format(self.__array__()[()], spec)


def _round(self: Array, ndigits: int | None = None, /) -> Array:
    """np.round; without ndigits the result has integers, as in JAX."""
    import numpy as np

    rounded: Array = np.round(self, 0 if ndigits is None else ndigits)  # type: ignore[assignment]
    return rounded.astype(int) if ndigits is None and rounded.dtype.kind not in "biu" else rounded


_only_item = Array.item


def item(self: Array, *index: Any) -> Any:
    """The only element as a number of Python; with a flat position or an index, that element.

    Raises:
        ValueError: No index, and not one element; another number of indices than dimensions.
        IndexError: There is no such element.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.arange(6).reshape(2, 3))
        >>> x.item(4), x.item(1, 0), x[0, 2].item()
        (4, 3, 2)
    """
    if not index:
        return _only_item(self)
    from artifex_devices._array_ops.core.reading import element

    return element("item", self, index)


def take(self: Array, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """np.take(x, indices, axis): parts along one dimension."""
    from artifex_devices._array_ops.index.taking import take

    return take(self, indices, axis, out, mode)


def compress(self: Array, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """np.compress(condition, x, axis): the parts along one dimension where the condition is True."""
    from artifex_devices._array_ops.index.taking import compress

    return compress(condition, self, axis, out)


def repeat(self: Array, repeats: Any, axis: Any = None, *, out_sharding: Any = None) -> Array:
    """np.repeat(x, repeats, axis): each part along one dimension several times, placed by out_sharding if given."""
    from artifex_devices._array_ops.core.layout import with_out_sharding
    from artifex_devices._array_ops.index.taking import repeat

    return with_out_sharding(self, lambda x: repeat(x, repeats, axis), out_sharding)


def _at(self: Array) -> Any:
    """Copies with some elements updated: `x.at[index].set(values)`.

    Besides set there are add, subtract, multiply, divide, power, min, max and get. The index follows NumPy's rules; one
    beyond the shape is an IndexError. The result is sharded as x, and each device updates its own shard.
    `out_sharding=` places the result otherwise.

    Raises:
        IndexError: The index does not fit x.
        ValueError: The values do not broadcast to x[index].
        TypeError: The result is of a dtype that x cannot hold.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = ad.device_put(np.zeros(4))
        >>> x.at[1:3].set(5.0).at[0].add(2.0).tolist()
        [2.0, 5.0, 5.0, 0.0]
    """
    from artifex_devices._array_ops.index.updating import At

    self.ndim  # noqa: B018 - raises where self has no value
    return At(self)


def view(self: Array, dtype: Any = None, type: Any = None) -> Array:
    """The bits as another dtype, in memory of their own; the last dimension changes with the size of an item.

    Args:
        self: The Array.
        dtype: The dtype; None for x itself.
        type: None; NumPy's argument, which has no meaning here.

    Raises:
        NotImplementedError: type is given.
        TypeError: No device holds this dtype.
        ValueError: The bytes of the last dimension, or of one shard of it, are not a multiple of the new item size.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.array([1.0], np.float32)).view(np.int32).tolist()
        [1065353216]
    """
    from artifex_devices._array_ops.shape.reshaping import view

    return view(self, dtype, type)


def clone(self: Array) -> Array:
    """Another Array of the same memory, which stays when x is deleted."""
    from artifex_devices import _core

    return _core._reinterpreted(self, self.shape, self.sharding, "clone")


def to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """The Array on a Device or as a Sharding says, as `device_put(x, device)` places it.

    `device` is a Device or a Sharding, as `Array.device` gives them; `stream` must be None.

    Raises:
        TypeError: device is something else.
        ValueError: stream is given.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> ad.device_put(np.ones(3)).to_device(ad.devices()[0]).committed
        True
    """
    from artifex_devices.array_api.creation import to_device

    return to_device(self, device, stream)


def _array_namespace(self: Array, /, *, api_version: str | None = None) -> Any:
    """The module `artifex_devices.array_api`: the Array API standard's functions for Arrays.

    Raises:
        ValueError: The version is not known.
    """
    from artifex_devices.array_api import namespace

    return namespace(api_version)


def attach() -> None:
    """Gives Array these methods."""
    for name, method in {
        "__getitem__": _getitem,
        "__setitem__": _setitem,
        "__delitem__": _delitem,
        "__iter__": _iter,
        "__reversed__": _reversed,
        "__contains__": _contains,
        "__format__": _format,
        "__round__": _round,
        "item": item,
        "take": take,
        "compress": compress,
        "repeat": repeat,
        "view": view,
        "clone": clone,
        "to_device": to_device,
        "__array_namespace__": _array_namespace,
    }.items():
        method.__name__ = name
        method.__qualname__ = f"Array.{name}"
        setattr(Array, name, method)
    _at.__name__ = "at"
    setattr(Array, "at", property(_at))  # noqa: B010 - as for the others, in the stubs
