# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for CuPy, for tests: its arrays are in memory of GPUs, and NumPy computes their values.

As in CuPy, results are written by work that goes on after the call, arrays compute on the current GPU only, and nothing
is converted to an ndarray unless get() is called.
"""

from __future__ import annotations

import functools
import threading
import types

import numpy as np
from cuda_driver import Allocation, Gpu

_current = threading.local()
_gpu = functools.cache(Gpu)


class Device:
    """A GPU, and a context in which it is the current one."""

    def __init__(self, id=None):
        self.id = getattr(_current, "id", 0) if id is None else id

    def __enter__(self):
        self._before = getattr(_current, "id", 0)
        _current.id = self.id
        return self

    def __exit__(self, *_):
        _current.id = self._before


cuda = types.SimpleNamespace(Device=Device)


def _span(shape, strides, itemsize):
    """The least and the largest offset of bytes of an array without zero sizes."""
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + itemsize


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801 - the name in CuPy
    """An array in the memory of a GPU."""

    def __init__(self, address, shape, strides, dtype, owner, ordinal):
        self.shape, self.strides, self.dtype = tuple(shape), tuple(strides), np.dtype(dtype)
        self.ndim, self.size = len(self.shape), int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize
        self._address, self._owner, self._ordinal = address, owner, ordinal

    @property
    def device(self):
        return Device(self._ordinal)

    def _bytes(self):
        """The bytes from the first to the last, and the array on them; waits for work on the GPU."""
        assert Device().id == self._ordinal, "the array is on another GPU than the current one"
        first, end = _span(self.shape, self.strides, self.dtype.itemsize)
        data = np.array(_gpu(self._ordinal).read(self._address + first, end - first))
        return data, np.ndarray(self.shape, self.dtype, data, -first, self.strides), first

    def get(self):
        return self._bytes()[1].copy() if self.size else np.empty(self.shape, self.dtype)

    def _write(self, value):
        if not self.size:
            return
        data, view, first = self._bytes()
        view[...] = value
        _gpu(self._ordinal).start_write(self._address + first, data)  # goes on after the call

    def tobytes(self):
        with self.device:
            return self.get().tobytes()

    def sum(self, **options):
        return _on_gpu(self.get().sum(**options))

    def __getitem__(self, index):
        first, end = _span(self.shape, self.strides, self.dtype.itemsize)
        frame = np.ndarray(self.shape, self.dtype, np.empty(end - first, np.uint8), -first, self.strides)
        part = frame[index] if isinstance(index, tuple) and Ellipsis in index else frame[(index, ...)]
        offset = part.__array_interface__["data"][0] - frame.__array_interface__["data"][0]
        return ndarray(self._address + offset, part.shape, part.strides, self.dtype, self._owner, self._ordinal)

    def __setitem__(self, index, value):
        part = self if index is Ellipsis else self[index]
        if isinstance(value, np.ndarray):
            raise TypeError("an ndarray is not converted")
        part._write(value.get() if isinstance(value, ndarray) else value)

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method != "__call__" or any(isinstance(x, np.ndarray) for x in inputs):
            return NotImplemented
        result = ufunc(*(x.get() if isinstance(x, ndarray) else x for x in inputs), **options)
        if out is None:
            return _on_gpu(result)
        out[0]._write(result)
        return out[0]


def _on_gpu(value):
    """A new array of the current GPU with the elements of an ndarray or a number."""
    value = np.asarray(value, order="C")
    ordinal = Device().id
    memory = Allocation(_gpu(ordinal), max(value.nbytes, 1))
    made = ndarray(memory.address, value.shape, value.strides, value.dtype, memory, ordinal)
    made._write(value)
    return made


def asarray(value):
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return _on_gpu(value)
    dtype = np.dtype(interface["typestr"])
    shape = interface["shape"]
    strides = interface["strides"] or np.empty(shape, dtype).strides
    return ndarray(interface["data"][0], shape, strides, dtype, value, Device().id)
