# SPDX-License-Identifier: Apache-2.0
"""The methods and properties of Array that are written in Python, apart from its operators.

Most of them call NumPy's function of the same name, which NumPy hands to `_array_ops`. All other methods import their
implementation when they are called, because most programs use only a few.
"""

# NumPy's stubs know ndarrays only.
# mypy: disable-error-code="no-any-return,return-value,call-overload,override,assignment,arg-type"

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.refused_arguments import unknown_argument
from artifex_devices._base.text import index_text
from artifex_devices._core import Array, Device, PartitionSpec, Sharding, internal

_scalar_item = Array.item

if TYPE_CHECKING:
    import artifex_devices._array_ops.index.updating

    _Self = Array
else:
    _Self = object


def _forwarded(function: Callable[..., Any], doc: str) -> Any:
    """Returns a method that calls a NumPy function, with its signature, and returns an Array."""

    def method(self: Array, *args: Any, **options: Any) -> Any:
        try:
            return function(self, *args, **options)
        except TypeError:
            if unknown := {name: options[name] for name in options if name in ("dim", "keepdim")}:
                raise unknown_argument(function.__name__, unknown) from None
            raise

    _, *others = inspect.signature(function).parameters.values()
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for parameter in others:
        kind = type(parameter.default)
        parameters.append(parameter.replace(annotation=kind if kind in (int, str) else Any))
    method.__signature__ = inspect.Signature(parameters, return_annotation=Array)  # type: ignore[attr-defined]
    method.__doc__ = doc
    return method


class ArrayMethods(_Self):
    """The members that `_array.operators` sets on Array, by name."""

    # Reductions and scans. Dimensions that are reduced may be sharded.

    sum = _forwarded(np.sum, "Calls np.sum: the result is replicated over the axes of the summed dimensions.")
    prod = _forwarded(np.prod, "Calls np.prod: the result is replicated over the axes of the reduced dimensions.")
    max = _forwarded(np.max, "Calls np.max: NaN where an element is NaN.")
    min = _forwarded(np.min, "Calls np.min: NaN where an element is NaN.")
    any = _forwarded(np.any, "Calls np.any.")
    all = _forwarded(np.all, "Calls np.all.")
    mean = _forwarded(np.mean, "Calls np.mean: 16-bit floats are added up in float32, integers in float64.")
    var = _forwarded(np.var, "Calls np.var.")
    std = _forwarded(np.std, "Calls np.std.")
    ptp = _forwarded(np.ptp, "Calls np.ptp: the maximum minus the minimum.")
    argmax = _forwarded(np.argmax, "Calls np.argmax: position of the first largest element, or of the first NaN.")
    argmin = _forwarded(np.argmin, "Calls np.argmin: position of the first smallest element, or of the first NaN.")
    cumsum = _forwarded(np.cumsum, "Calls np.cumsum: along a sharded dimension devices exchange only their totals.")
    cumprod = _forwarded(
        np.cumprod, "Calls np.cumprod: along a sharded dimension devices exchange only their products."
    )

    # Order

    sort = _forwarded(
        np.sort,
        "Calls np.sort: a sorted copy, as in JAX, because Arrays are immutable. The dimension must not be sharded.",
    )
    argsort = _forwarded(np.argsort, "Calls np.argsort. The dimension must not be sharded.")
    argpartition = _forwarded(np.argpartition, "Calls np.argpartition. The dimension must not be sharded.")
    searchsorted = _forwarded(
        np.searchsorted, "Calls np.searchsorted(x, v): the result is sharded as v; x must not be sharded."
    )

    # Elements

    round = _forwarded(np.round, "Calls np.round.")
    take = _forwarded(np.take, "Calls np.take(x, indices, axis): parts along one dimension.")
    trace = _forwarded(np.trace, "Calls np.trace: the sum of a diagonal.")

    def __round__(self, ndigits: int | None = None, /) -> Array:
        """Calls np.round; the result has integers where ndigits is None, as in JAX."""
        rounded: Array = np.round(self, 0 if ndigits is None else ndigits)
        return rounded.astype(int) if ndigits is None and rounded.dtype.kind not in "biu" else rounded

    def clip(
        self,
        min: numpy.typing.ArrayLike | None = None,
        max: numpy.typing.ArrayLike | None = None,
        out: numpy.typing.NDArray[Any] | None = None,
    ) -> Array:
        """Calls np.clip."""
        return np.clip(self, min, max, out)

    def astype(self, dtype: numpy.typing.DTypeLike, copy: bool = True, device: object = None) -> Array:
        """Calls np.astype; each device converts its own shard."""
        return np.astype(self, dtype, copy=copy, device=device)

    def conjugate(self) -> Array:
        """Calls np.conjugate; bools stay bools."""
        return np.copy(self) if self.dtype == bool else np.conjugate(self)

    @property
    def real(self) -> Array:
        """np.real: a copy of the real parts."""
        return np.real(self)

    @property
    def imag(self) -> Array:
        """np.imag: a copy of the imaginary parts."""
        return np.imag(self)

    def copy(self) -> Array:
        """Calls np.copy; the copy has its own memory and the same sharding."""
        return np.copy(self)

    def clone(self) -> Array:
        """Returns another Array on the same memory, which remains valid when x is deleted."""
        return internal.reinterpreted(self, self.shape, self.sharding, "clone")

    def view(self, dtype: numpy.typing.DTypeLike | None = None, type: object = None) -> Array:
        """Returns the bits as another dtype, in new memory; the last dimension changes with the item size.

        Args:
            self: The Array.
            dtype: The dtype of the result; None returns x itself.
            type: NumPy's argument, which must be None.

        Raises:
            NotImplementedError: type is not None.
            TypeError: Devices do not support the dtype.
            ValueError: The bytes of the last dimension, or of one shard of it, are not a multiple of the new item size.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> ad.device_put(np.array([1.0], np.float32)).view(np.int32).tolist()
            [1065353216]
        """
        if isinstance(dtype, (int, tuple)) and not isinstance(dtype, bool):
            raise wrong_type("view", "dtype", dtype, "a dtype", f"write x.reshape({dtype})")
        from artifex_devices._array_ops.shape.reshaping import view

        return view(self, dtype, type)

    def item(self, *index: Any) -> Any:
        """Returns one element as a Python number: the only element, or that at a flat position or an index.

        Raises:
            ValueError: There is no index and x has not exactly one element, or the number of indices is wrong.
            IndexError: The index is out of range.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> x = ad.device_put(np.arange(6).reshape(2, 3))
            >>> x.item(4), x.item(1, 0), x[0, 2].item()
            (4, 3, 2)
        """
        if not index:
            return _scalar_item(self)
        from artifex_devices._array_ops.core.reading import element

        return element("item", self, index)

    def tobytes(self) -> bytes:
        """Returns the bytes of np.asarray(x) in row-major order."""
        return np.asarray(self).tobytes()

    def __format__(self, spec: str, /) -> str:
        """Formats the number of an Array without dimensions, as in f"{loss:.3f}"; others take an empty format only."""
        if not spec:
            return str(self)
        if self.ndim:
            raise failure(
                TypeError,
                "format",
                "only an Array without dimensions has formats of numbers",
                expected="shape ()",
                got=self.shape,
                fix="format its elements, or leave the format out",
            )
        return format(self.__array__()[()], spec)

    # Shape

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        """The dimensions in reverse order; their shardings move with them."""
        return np.transpose(self)

    mT = property(_forwarded(np.matrix_transpose, "The last two dimensions swapped."))  # noqa: N815 - NumPy's name

    def transpose(self, *axes: Any) -> Array:
        """Returns the dimensions in another order; their shardings move with them.

        Args:
            self: The Array.
            *axes: The dimensions in their new order, as ints or as one tuple; without them the order is reversed.

        Returns:
            An Array; x itself if the order does not change.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> ad.device_put(np.ones((2, 3, 4))).transpose(0, 2, 1).shape
            (2, 4, 3)
        """
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)

    swapaxes = _forwarded(np.swapaxes, "Calls np.swapaxes: two dimensions swapped.")
    squeeze = _forwarded(
        np.squeeze,
        "Calls np.squeeze: removes the dimensions of size 1 (only dimensions in axis, if passed), on the same memory.",
    )
    diagonal = _forwarded(
        np.diagonal, "Calls np.diagonal: the diagonal of two dimensions, as the last dimension of a new Array."
    )

    def reshape(
        self,
        *shape: Any,
        order: str = "C",
        copy: bool | None = None,
        out_sharding: Sharding | PartitionSpec | None = None,
    ) -> Array:
        """Returns the same elements in another shape, on the same memory.

        Args:
            self: The Array.
            *shape: Sizes, as ints or as one tuple; one of them may be -1.
            order: "C".
            copy: True for new memory.
            out_sharding: NamedSharding or PartitionSpec of the result. If the shards do not allow the new shape, the
                global array is first gathered on each of the devices.

        Returns:
            An Array. Each new dimension is sharded as the dimension that it replaces, or as out_sharding says.

        Raises:
            ValueError: The sizes are for another number of elements.
            ShardingTypeError: A device would need elements of another device; the text names the dimensions (a
                ValueError).

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> ad.device_put(np.arange(6)).reshape(2, -1).shape
            (2, 3)
        """
        sizes = shape[0] if len(shape) == 1 else shape
        if out_sharding is None:
            return np.reshape(self, sizes, order, copy=copy)
        from artifex_devices._array_ops.core.auto_axes import with_out_sharding
        from artifex_devices._array_ops.shape.reshaping import reshape

        return with_out_sharding(self, lambda x: reshape(x, sizes, order, copy=copy), out_sharding)

    def ravel(self, order: str = "C", *, out_sharding: Sharding | PartitionSpec | None = None) -> Array:
        """Returns the elements in one dimension, on the same memory: reshape(-1), with its out_sharding."""
        if out_sharding is None:
            return np.ravel(self, order)
        from artifex_devices._array_ops.core.auto_axes import with_out_sharding
        from artifex_devices._array_ops.shape.reshaping import ravel

        return with_out_sharding(self, lambda x: ravel(x, order), out_sharding)

    def flatten(self, order: str = "C") -> Array:
        """Returns a copy of the elements in one dimension."""
        from artifex_devices._array_ops.shape.reshaping import check_order

        check_order("flatten", order)
        return np.reshape(self, (self.size,), copy=True)

    def repeat(
        self,
        repeats: numpy.typing.ArrayLike,
        axis: int | None = None,
        *,
        out_sharding: Sharding | PartitionSpec | None = None,
    ) -> Array:
        """Calls np.repeat(x, repeats, axis); the result is placed by out_sharding if that is not None."""
        if out_sharding is None:
            return np.repeat(self, repeats, axis)
        from artifex_devices._array_ops.core.auto_axes import with_out_sharding
        from artifex_devices._array_ops.index.taking import repeat

        return with_out_sharding(self, lambda x: repeat(x, repeats, axis), out_sharding)

    # Products

    def dot(self, b: numpy.typing.ArrayLike, out: numpy.typing.NDArray[Any] | None = None) -> Array:
        """Calls np.dot(x, b); each device multiplies its own blocks, and only partial sums are sent."""
        return np.dot(self, b, out)

    # Indexing

    def __getitem__(self, index: object, /) -> Array:
        """Returns x[index] by NumPy's rules; reads only the shards that hold the elements (guide: NumPy on Arrays)."""
        from artifex_devices._array_ops.index.indexing import get

        return get(self, index)

    def __setitem__(self, index: object, value: object, /) -> None:
        """Raises TypeError: Arrays are immutable."""
        at = index_text(index)
        new = repr(value) if isinstance(value, (bool, int, float, complex)) else "v"
        raise TypeError(
            f"Array: elements cannot be assigned, because Arrays are immutable; write x = x.at[{at}].set({new}), or "
            f"change a copy and place it: y = np.array(x); y[{at}] = {new}; x = ad.device_put(y, x.sharding)"
        )

    def __delitem__(self, index: object, /) -> None:
        """Raises TypeError: Arrays are immutable."""
        raise failure(
            TypeError,
            "Array",
            "elements cannot be deleted, because Arrays are immutable",
            expected="an ndarray",
            got="an Array",
            fix="leave them out: x = ad.device_put(np.delete(np.asarray(x), i, axis=0))",
        )

    def __iter__(self, /) -> collections.abc.Iterator[Array]:
        """Iterates over x[0], x[1], ...; raises TypeError for an Array without dimensions."""
        from artifex_devices._array_ops.index.indexing import rows

        return rows(self)

    def __reversed__(self, /) -> collections.abc.Iterator[Array]:
        """Iterates over x[len(x) - 1], ..., x[0]."""
        from artifex_devices._array_ops.index.indexing import rows

        return rows(self, backwards=True)

    def __contains__(self, value: object, /) -> bool:
        """Returns whether an element equals the value."""
        return bool(np.any(np.equal(self, value)))

    def compress(
        self, condition: numpy.typing.ArrayLike, axis: int | None = None, out: numpy.typing.NDArray[Any] | None = None
    ) -> Array:
        """Calls np.compress(condition, x, axis): takes the parts along one dimension where the condition is True."""
        return np.compress(condition, self, axis, out)

    @property
    def at(self) -> artifex_devices._array_ops.index.updating.At:
        """Updated copies: `x.at[index].set(values)`.

        Besides set there are add, subtract, multiply, divide, power, min, max and get. Indices follow NumPy's rules;
        an index out of range raises IndexError. The result is sharded as x, or as `out_sharding=` says, and each
        device updates its own shard.

        Raises:
            IndexError: The index does not fit x.
            ValueError: The values do not broadcast to x[index].
            TypeError: The dtype of the result cannot be cast to the dtype of x.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> x = ad.device_put(np.zeros(4))
            >>> x.at[1:3].set(5.0).at[0].add(2.0).tolist()
            [2.0, 5.0, 5.0, 0.0]
        """
        from artifex_devices._array_ops.index.updating import At

        self.ndim  # noqa: B018 - raises where self is not initialized
        return At(self)

    # Placement and protocols

    def to_device(self, device: Device | Sharding, /, *, stream: None = None) -> Array:
        """Returns the Array placed on a Device or by a Sharding, as `device_put(x, device)` places it.

        `device` is a Device or a Sharding, as `Array.device` returns them, or another target of `device_put`; `stream`
        must be None.

        Raises:
            TypeError: device is not a target of `device_put`.
            ValueError: stream is not None.

        Example:
            >>> import numpy as np, artifex_devices as ad
            >>> ad.device_put(np.ones(3)).to_device(ad.devices()[0]).committed
            True
        """
        from artifex_devices.array_api.creation import to_device

        return to_device(self, device, stream)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """Returns the module `artifex_devices.array_api`: the Array API standard's functions for Arrays.

        Raises:
            ValueError: The version is not supported.
        """
        from artifex_devices.array_api import namespace

        return namespace(api_version)

    def __array_ufunc__(self, ufunc: object, method: str, /, *inputs: Any, **options: Any) -> Any:
        """Calls a ufunc; each device computes its own shard (guide: NumPy on Arrays)."""
        from artifex_devices._array_ops.core.dispatch import call_ufunc

        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: object, types: object, args: object, kwargs: object, /) -> Any:
        """Calls a NumPy function that the guide lists; raises TypeError with the code to gather first for others."""
        from artifex_devices._array_ops.core.dispatch import call_function

        return call_function(function, types, args, kwargs)
