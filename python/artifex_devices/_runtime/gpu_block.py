# SPDX-License-Identifier: Apache-2.0
"""A block of an Array in the memory of a GPU, to which NumPy's functions apply as to an ndarray; CuPy computes.

CuPy takes NumPy's calls through the same protocols, but not ufunc.reduce and ufunc.accumulate, operands on the host and
operands on other GPUs. This class adds these. A GPU computes in the background; the host waits for the values that it
asks for (`get`, `item` and the truth of a block) and for copies from other GPUs.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from artifex_devices._base.checks import failure
from artifex_devices._core import internal
from artifex_devices._runtime.cupy_functions import (
    MOVE,
    SCANS,
    function_named,
    function_of,
    is_left_out,
    library,
    reduce_array,
    unsupported,
)


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
        """Returns the only element as a Python number; waits for it."""
        return self.get().item()

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Any:
        """Does what ndarray.take does, for indices in range: CuPy has no modes."""
        return _on(self, self.array.take, indices, axis)

    def reshape(self, *shape: Any, copy: bool | None = None) -> Any:
        """Does what ndarray.reshape does; raises ValueError instead of copying if `copy` is False."""
        if shape in (self.shape, (self.shape,)):  # a call of CuPy costs some microseconds
            return self
        made = _on(self, self.array.reshape, *shape)
        if copy is False and made.array.data.ptr != self.array.data.ptr and self.array.size:
            raise ValueError(f"reshape: the block needs a copy for {shape}; expected none; pass copy=None")
        return made

    def transpose(self, *axes: Any) -> Any:
        """Does what ndarray.transpose does."""
        order = tuple(range(len(self.shape)))
        return self if axes in (order, (order,)) else _on(self, self.array.transpose, *axes)

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise failure(
            TypeError,
            "NumPy",
            "this function has no form for GPUs",
            expected="a function that CuPy has, or host memory",
            fix=MOVE,
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        outputs: tuple[Any, ...] = options.pop("out", None) or ()
        mask = options.pop("where", True)
        here = _first_block((*outputs, *inputs))
        if method == "reduce":
            options["where"] = mask
            results: Any = _on(here, reduce_array, ufunc, *inputs, **options)
        elif method == "accumulate":
            results = _on(here, function_of(ufunc, "accumulate", SCANS.get(ufunc.__name__)), *inputs, **options)
        elif method == "at":
            return _on(here, function_of(ufunc).at, *inputs)  # type: ignore[attr-defined]
        elif method != "__call__":
            raise unsupported(f"{ufunc.__name__}.{method}")
        else:
            function = function_of(ufunc)
            if ufunc.signature is not None and options.get("dtype") is not None:  # CuPy would convert the result only
                inputs = _cast(ufunc.__name__, inputs, options.pop("dtype"), options.pop("casting", "same_kind"))
            if len(outputs) == 1 and mask is True and isinstance(outputs[0], GpuBlock) and ufunc.signature is None:
                return _on(here, function, *inputs, out=outputs[0], **options)
            results = _on(here, function, *inputs, **options)
        if not outputs:
            return results
        for output, result in zip(outputs, results if ufunc.nout > 1 else (results,), strict=True):
            np.copyto(output, result, casting="unsafe", where=mask)
        return outputs if ufunc.nout > 1 else outputs[0]

    def __array_function__(self, function: Any, _: object, args: Any, kwargs: Any) -> Any:
        if function is np.copyto:
            return _copy(*args, **kwargs)
        out = kwargs.get("out")
        here = _first_block((out, args, kwargs))
        module = getattr(function, "__module__", "")
        options = {name: value for name, value in kwargs.items() if not is_left_out(function, name, value)}
        errors = library("cupyx").errstate(linalg="raise") if module == "numpy.linalg" else contextlib.nullcontext()
        with errors:  # as NumPy; CuPy gives NaN by default
            result = _on(here, function_named(function.__name__, module), *args, **options)
        if out is None:
            return result
        np.copyto(out, result, casting="unsafe")
        return out


def _cast(operation: str, inputs: Iterable[Any], dtype: DTypeLike, casting: Any) -> tuple[Any, ...]:
    """Converts the operands to another dtype."""
    for x in inputs:
        if not np.can_cast(x.dtype, dtype, casting):
            raise failure(
                TypeError,
                operation,
                f"an operand of {x.dtype} is not cast to {np.dtype(dtype)} by the rule {casting!r}",
                expected="dtypes that it allows",
                fix="convert it first: x.astype(dtype)",
            )
    return tuple(x.astype(dtype) for x in inputs)


def gpu_blocks(arrays: Iterable[Any]) -> list[Any]:
    """Returns blocks of CuPy arrays, which compute on the current stream of their GPUs."""
    blocks: list[Any] = []
    for array in arrays:
        with array.device:
            blocks.append(GpuBlock(array, library("cupy").cuda.get_current_stream()))
    return blocks


def is_gpu_block(block: object) -> bool:
    """Returns whether a block is in the memory of a GPU."""
    return type(block) is GpuBlock


def array_beside(value: Any, block: Any) -> Any:
    """Returns a copy of a block or an ndarray as a CuPy array on the GPU and the stream of `block`."""
    return _on(block, library("cupy").array, value).array


def host_copy(block: Any) -> Any:
    """Returns a block as an ndarray in memory that CUDA has locked; waits for the GPU. Others unchanged."""
    if not isinstance(block, GpuBlock):
        return block
    out = internal.host_empty(block.shape, block.dtype)
    with block.array.device, block.stream:
        block.array.get(out=out)
    return out


def host_value(value: object) -> Any:
    """Returns a block as an ndarray, a tuple with such values, and others unchanged; waits for the GPU."""
    if isinstance(value, tuple):
        values = [host_value(each) for each in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value.get() if isinstance(value, GpuBlock) else value


def _on(block: GpuBlock, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of CuPy on the GPU and the stream of a block."""
    with block.array.device as gpu, block.stream:
        lowered = [_lowered(value, gpu.id, block.stream) for value in args]
        named = {name: _lowered(value, gpu.id, block.stream) for name, value in kwargs.items()}
        try:
            made = function(*lowered, **named)
        except (TypeError, NotImplementedError) as error:
            if MOVE in str(error):
                raise
            name = getattr(function, "__name__", "NumPy")
            raise failure(
                TypeError, name, f"CuPy does not take these arguments ({error})", expected="some that it does", fix=MOVE
            ) from None
    return _raised(made, block.stream)


def _lowered(value: Any, gpu: int, stream: Any) -> Any:
    """Converts a value for CuPy: arrays of the current GPU and stream in place of blocks and ndarrays."""
    if isinstance(value, GpuBlock):
        return value.array if value.array.device.id == gpu and value.stream == stream else _copied_here(value)
    if isinstance(value, np.ndarray):
        return library("cupy").asarray(value)
    if type(value) in (tuple, list):
        return type(value)(_lowered(each, gpu, stream) for each in value)
    return value


def _copied_here(block: GpuBlock) -> Any:
    """Copies the block to the current GPU and waits; afterwards its memory may be reused."""
    cupy = library("cupy")
    with block.array.device, block.stream:
        dense = block.array.copy()
        written = cupy.cuda.Event()
        written.record(block.stream)
    here = cupy.cuda.get_current_stream()
    here.wait_event(written)
    copied = cupy.asarray(dense)
    here.synchronize()
    return copied


def _raised(value: object, stream: object) -> Any:
    """Converts a value of CuPy: blocks in place of CuPy arrays."""
    if isinstance(value, library("cupy").ndarray):
        return GpuBlock(value, stream)
    if isinstance(value, (tuple, list)):
        raised = [_raised(each, stream) for each in value]
        return type(value)(*raised) if hasattr(value, "_fields") else type(value)(raised)
    return value


def _first_block(values: Iterable[Any]) -> GpuBlock:
    return next(block for value in values for block in _blocks_of(value))


def _blocks_of(value: object) -> Iterable[GpuBlock]:
    if isinstance(value, GpuBlock):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _blocks_of(each)
    elif isinstance(value, dict):
        yield from _blocks_of(tuple(value.values()))


def _copy(to: Any, source: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copies as np.copyto from or to a block."""
    if not isinstance(to, GpuBlock):
        np.copyto(to, host_value(source), casting=casting, where=host_value(where))
        return
    if where is not True:
        source = np.where(where, source, to)
    to[...] = source
