# SPDX-License-Identifier: Apache-2.0
"""A block of an Array in the memory of a GPU, to which NumPy's functions apply as to an ndarray; CuPy computes.

CuPy takes NumPy's calls through the same protocols, but not ufunc.reduce and ufunc.accumulate, operands on the host and
operands on other GPUs. This class adds these. A GPU computes in the background; the host waits for the values that it
asks for (`get`, `item` and the truth of a block) and for copies from other GPUs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOVE = 'move the Array: device_put(x, devices("cpu")[0])'
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "fmax": "nanmax",
    "fmin": "nanmin",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}


class GpuBlock(np.lib.mixins.NDArrayOperatorsMixin):
    """A CuPy array with the interface of ndarray that the families of NumPy's functions use."""

    __slots__ = ("array", "stream")

    def __init__(self, array: Any, stream: Any) -> None:
        """`stream` is the one to compute on, on any thread: CuPy's current stream where the work began."""
        self.array = array
        self.stream = stream

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return int(self.array.shape[0])

    def __bool__(self) -> bool:
        return bool(self.item())

    def __getitem__(self, index: Any) -> Any:
        return _on(self, self.array.__getitem__, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _on(self, self.array.__setitem__, index, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that CuPy refuses too
            raise AttributeError(name)
        value = getattr(self.array, name)
        return functools.partial(_on, self, value) if callable(value) else _raised(value, self.stream)

    def item(self) -> Any:
        """The only element as a Python number; waits for it."""
        return self.get().item()

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
        """As ndarray.take, for indices in range: CuPy has no modes."""
        return _on(self, self.array.take, indices, axis)

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        """As ndarray.reshape; ValueError instead of a copy if `copy` is False."""
        made = _on(self, self.array.reshape, *shape)
        if copy is False and made.array.data.ptr != self.array.data.ptr and self.array.size:
            raise ValueError(f"reshape: the block needs a copy for {shape}; expected none; pass copy=None")
        return made

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise TypeError(
            f"NumPy: this function has no form for GPUs; expected one that CuPy has, or host memory; {_MOVE}"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        outputs: tuple[Any, ...] = options.pop("out", None) or ()
        mask = options.pop("where", True)
        here = _first_block((*outputs, *inputs))
        if method == "reduce":
            options["where"] = mask
            results: Any = _on(here, _reduce, ufunc, *inputs, **options)
        elif method == "accumulate":
            results = _on(here, _function_of(ufunc, "accumulate", _SCANS.get(ufunc.__name__)), *inputs, **options)
        elif method == "at":
            return _on(here, _function_of(ufunc).at, *inputs)  # type: ignore[attr-defined]
        elif method != "__call__":
            raise _unsupported(f"{ufunc.__name__}.{method}")
        else:
            function = _function_of(ufunc)
            if len(outputs) == 1 and mask is True and isinstance(outputs[0], GpuBlock) and ufunc.signature is None:
                return _on(here, function, *inputs, out=outputs[0], **options)
            results = _on(here, function, *inputs, **options)
        if not outputs:
            return results
        for output, result in zip(outputs, results if ufunc.nout > 1 else (results,), strict=True):
            np.copyto(output, result, casting="unsafe", where=mask)
        return outputs if ufunc.nout > 1 else outputs[0]

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        if function is np.copyto:
            return _copy(*args, **kwargs)
        here = _first_block((kwargs.get("out"), args, kwargs))
        return _on(here, _function_named(function.__name__, getattr(function, "__module__", "")), *args, **kwargs)


def gpu_blocks(arrays: Iterable[Any]) -> list[Any]:
    """Returns blocks of CuPy arrays, which compute on the current stream of their GPUs."""
    blocks: list[Any] = []
    for array in arrays:
        with array.device:
            blocks.append(GpuBlock(array, _cupy().cuda.get_current_stream()))
    return blocks


def is_gpu_block(block: Any) -> bool:
    """Returns whether a block is in the memory of a GPU."""
    return type(block) is GpuBlock


def array_beside(value: Any, block: Any) -> Any:
    """Returns a copy of a block or an ndarray as a CuPy array on the GPU and the stream of `block`."""
    return _on(block, _cupy().array, value).array


def host_value(value: Any) -> Any:
    """Returns a block as an ndarray, a tuple with such values, and others unchanged; waits for the GPU."""
    if isinstance(value, tuple):
        values = [host_value(each) for each in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value.get() if isinstance(value, GpuBlock) else value


def _on(block: GpuBlock, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of CuPy on the GPU and the stream of a block."""
    with block.array.device as gpu, block.stream:
        lowered = [_lowered(value, gpu.id, block.stream) for value in args]
        made = function(*lowered, **{name: _lowered(value, gpu.id, block.stream) for name, value in kwargs.items()})
    return _raised(made, block.stream)


def _lowered(value: Any, gpu: int, stream: Any) -> Any:
    """A value with CuPy arrays of the current GPU in place of blocks and ndarrays, for the current stream."""
    if isinstance(value, GpuBlock):
        return value.array if value.array.device.id == gpu and value.stream == stream else _copied_here(value)
    if isinstance(value, np.ndarray):
        return _cupy().asarray(value)
    if type(value) in (tuple, list):
        return type(value)(_lowered(each, gpu, stream) for each in value)
    return value


def _copied_here(block: GpuBlock) -> Any:
    """A copy on the current GPU, complete, so that the block may end and its memory be used again."""
    cupy = _cupy()
    with block.array.device, block.stream:
        dense = block.array.copy()
        written = cupy.cuda.Event()
        written.record(block.stream)
    here = cupy.cuda.get_current_stream()
    here.wait_event(written)
    copied = cupy.asarray(dense)
    here.synchronize()
    return copied


def _raised(value: Any, stream: Any) -> Any:
    """A value with blocks in place of CuPy arrays."""
    if isinstance(value, _cupy().ndarray):
        return GpuBlock(value, stream)
    if isinstance(value, (tuple, list)):
        raised = [_raised(each, stream) for each in value]
        return type(value)(*raised) if hasattr(value, "_fields") else type(value)(raised)
    return value


def _first_block(values: Iterable[Any]) -> GpuBlock:
    return next(block for value in values for block in _blocks_of(value))


def _blocks_of(value: Any) -> Iterable[GpuBlock]:
    if isinstance(value, GpuBlock):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _blocks_of(each)
    elif isinstance(value, dict):
        yield from _blocks_of(tuple(value.values()))


def _copy(to: Any, source: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """np.copyto from or to a block."""
    if not isinstance(to, GpuBlock):
        np.copyto(to, host_value(source), casting=casting, where=host_value(where))
        return
    if where is not True:
        source = np.where(where, source, to)
    to[...] = source


def _reduce(
    ufunc: np.ufunc,
    x: Any,
    *,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """ufunc.reduce of a CuPy array."""
    cupy = _cupy()
    combine = _function_of(ufunc)
    start = ufunc.identity if initial is np._NoValue or initial is None else initial
    if where is not True:
        x = cupy.where(where, x, cupy.asarray(start, x.dtype if dtype is None else dtype))
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    name = _REDUCTIONS.get(ufunc.__name__)
    if not axes:
        made = x.astype(ufunc.reduce(np.ones(1, x.dtype), dtype=dtype).dtype)
    elif not x.size and initial is not np._NoValue and initial is not None:  # CuPy has no `initial`
        shape = [1 if d in axes else size for d, size in enumerate(x.shape)]
        made = cupy.full(shape, initial, x.dtype if dtype is None else dtype)
        made = made if keepdims else made.reshape([size for d, size in enumerate(x.shape) if d not in axes])
    elif name is not None:
        takes_dtype = name in ("sum", "prod")
        if dtype is not None and not takes_dtype and name not in ("all", "any"):
            x = x.astype(dtype, copy=False)
        made = getattr(cupy, name)(x, axis=axes, keepdims=keepdims, **({"dtype": dtype} if takes_dtype else {}))
    else:
        made = _fold(combine, x if dtype is None else x.astype(dtype, copy=False), axes, keepdims)
    return made if initial is np._NoValue or initial is None else combine(made, initial)


def _fold(combine: Callable[..., Any], x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Combines the halves of each dimension until one element is left, for associative functions."""
    for d in axes:
        before = (slice(None),) * (d % x.ndim)
        while x.shape[d] > 1:
            half = x.shape[d] // 2
            halves = combine(x[(*before, slice(half))], x[(*before, slice(half, 2 * half))])
            x = halves if x.shape[d] % 2 == 0 else _cupy().concatenate((halves, x[(*before, slice(2 * half, None))]), d)
    return x if keepdims else x.reshape([size for d, size in enumerate(x.shape) if d not in {e % x.ndim for e in axes}])


def _function_of(ufunc: np.ufunc, method: str = "", name: str | None = "") -> Callable[..., Any]:
    """CuPy's function for a ufunc, or the one with another name for a method of it."""
    if name is None:
        raise _unsupported(f"{ufunc.__name__}.{method}")
    return _function_named(name or ufunc.__name__)


def _function_named(name: str, module: str = "") -> Callable[..., Any]:
    try:
        folder = functools.reduce(getattr, module.split(".")[1:], _cupy())
        function: Callable[..., Any] = getattr(folder, name)
    except AttributeError:
        raise _unsupported(name) from None
    return function


def _unsupported(name: str) -> TypeError:
    return TypeError(f"{name}: CuPy has no such function; expected one that it has, or host memory; {_MOVE}")


@functools.cache
def _cupy() -> Any:
    return importlib.import_module("cupy")
