# SPDX-License-Identifier: Apache-2.0
"""A small stand-in for CuPy, for tests: its arrays are in memory of GPUs, and NumPy computes their values.

As in CuPy, results are written by work that goes on after the call, arrays compute on the current GPU only, ndarrays
are not converted, and nothing is converted to an ndarray unless get() is called.
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


class Stream:
    """A stream of the current GPU, and a context in which it is the current one."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __eq__(self, other):
        return isinstance(other, Stream)

    __hash__ = None

    def wait_event(self, event):
        assert event.is_recorded

    def synchronize(self):
        _gpu(Device().id).wait()


class Event:
    """A point in the work of a stream."""

    is_recorded = False

    def record(self, stream):
        self.is_recorded = isinstance(stream, Stream)


cuda = types.SimpleNamespace(Device=Device, Event=Event, Stream=Stream, get_current_stream=Stream)


def _span(shape, strides, itemsize):
    """The least and the largest offset of bytes of an array without zero sizes."""
    ends = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + itemsize


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):  # noqa: N801 - the name in CuPy
    """An array in the memory of a GPU."""

    def __init__(self, address, shape, strides, dtype, owner, ordinal):
        if np.dtype(dtype).kind not in "biufc" and np.dtype(dtype).name != "bfloat16":
            raise TypeError(f"Unsupported dtype {dtype}")
        self.shape, self.strides, self.dtype = tuple(shape), tuple(strides), np.dtype(dtype)
        self.data = types.SimpleNamespace(ptr=address)
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

    def get(self, out=None):
        found = self._bytes()[1].copy() if self.size else np.empty(self.shape, self.dtype)
        if out is None:
            return found
        out[...] = found
        return out

    def _write(self, value):
        if not self.size:
            return
        data, view, first = self._bytes()
        view[...] = value
        _gpu(self._ordinal).start_write(self._address + first, data)  # goes on after the call

    def tobytes(self):
        with self.device:
            return self.get().tobytes()

    @property
    def flags(self):
        return np.ndarray(self.shape, self.dtype, np.empty(max(self.nbytes, 1), np.uint8), 0, self.strides).flags

    def __getattr__(self, name):
        """A method of ndarray, as the function of this module; attributes such as T give arrays."""
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(name)
        if not callable(getattr(np.ndarray, name)):
            return self._view_or_copy(getattr(self.get(), name))
        return functools.partial(_call, lambda x, *args, **options: getattr(x, name)(*args, **options), self)

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._view(lambda frame: np.reshape(frame, shape))

    def transpose(self, *axes):
        return self._view(lambda frame: frame.transpose(*axes))

    def view(self, dtype):
        if np.dtype(dtype).itemsize != self.dtype.itemsize:
            return _on_gpu(self.get().view(dtype))
        return ndarray(self._address, self.shape, self.strides, dtype, self._owner, self._ordinal)

    def take(self, indices, axis=None, out=None):
        return _call(np.take, self, indices, axis)

    def _view(self, change):
        """A view of the same memory where `change` gives one of an ndarray, else a copy."""
        if not self.size:
            return _on_gpu(change(self.get()))
        first, end = _span(self.shape, self.strides, self.dtype.itemsize)
        frame = np.ndarray(self.shape, self.dtype, np.zeros(end - first, np.uint8), -first, self.strides)
        part = change(frame)
        if not np.shares_memory(part, frame) and part.size:
            return _on_gpu(change(self.get()))
        offset = part.__array_interface__["data"][0] - frame.__array_interface__["data"][0]
        return ndarray(self._address + offset, part.shape, part.strides, part.dtype, self._owner, self._ordinal)

    def __len__(self):
        return len(self.get()) if not self.shape else self.shape[0]  # a TypeError without dimensions, as in CuPy

    def __getitem__(self, index):
        index = _lowered(index if isinstance(index, tuple) else (index,))
        if any(isinstance(part, np.ndarray) for part in index):
            return _on_gpu(self.get()[index])
        return self._view(lambda frame: frame[index if Ellipsis in index else (*index, ...)])

    def __setitem__(self, index, value):
        index = _lowered(index if isinstance(index, tuple) else (index,))
        value = _lowered(value)
        if self.size and any(isinstance(part, np.ndarray) for part in index):
            changed = self.get()
            changed[index] = value
            self._write(changed)
        elif self.size:
            self._view(lambda frame: frame[index if Ellipsis in index else (*index, ...)])._write(value)

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method != "__call__" or any(isinstance(x, np.ndarray) for x in inputs):
            return NotImplemented
        return _call(ufunc, *inputs, out=out and out[0], **options)

    def __array_function__(self, function, types, args, kwargs):
        return _call(function, *args, **kwargs)


def _lowered(value):
    """A value with ndarrays in place of arrays of the current GPU."""
    if isinstance(value, ndarray):
        return value.get()
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_lowered, value))
    return value


def _raised(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return _on_gpu(value)
    if isinstance(value, (tuple, list)):
        raised = [_raised(each) for each in value]
        return type(value)(*raised) if hasattr(value, "_fields") else type(value)(raised)
    return value


def _call(function, *args, out=None, **options):
    """NumPy's function of the values of arrays on the current GPU."""
    result = function(*_lowered(args), **{name: _lowered(value) for name, value in options.items()})
    if out is None:
        return _raised(result)
    out._write(result)
    return out


_VIEWS = {"moveaxis", "transpose", "expand_dims", "broadcast_to", "swapaxes", "flip", "squeeze", "reshape", "rot90"}
# Functions and options of NumPy that CuPy does not have.
_ABSENT = {"matvec", "spacing", "vecdot", "vecmat"}
_SCANS_AND_REDUCTIONS = {"sum", "prod", "max", "min", "all", "any", "cumsum", "cumprod", "nanmax", "nanmin"}


def _function(name, home):
    function = getattr(home, name)
    if not callable(function) or name in _ABSENT:
        raise AttributeError(name)

    def call(*args, **options):
        if name in _VIEWS:
            x, *rest = args
            return x._view(lambda frame: function(frame, *rest, **options))
        if name in _SCANS_AND_REDUCTIONS:
            assert not {"initial", "where"} & options.keys(), "CuPy has no such option"
        return _call(function, *args, **options)

    def at(x, *arguments):
        changed = x.get()
        function.at(changed, *_lowered(arguments))
        x._write(changed)

    call.at = at
    return call


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return _function(name, np)


class _Folder:
    """A module of functions, such as linalg."""

    def __init__(self, home):
        self._home = home

    def __getattr__(self, name):
        return _function(name, self._home)


linalg, fft = _Folder(np.linalg), _Folder(np.fft)


def _on_gpu(value):
    """A new array of the current GPU with the elements of an ndarray or a number."""
    value = np.asarray(value, order="C")
    ordinal = Device().id
    memory = Allocation(_gpu(ordinal), max(value.nbytes, 1))
    made = ndarray(memory.address, value.shape, value.strides, value.dtype, memory, ordinal)
    made._write(value)
    return made


def zeros(shape, dtype):
    return _on_gpu(np.zeros(shape, dtype))


def array(value):
    return asarray(value).copy()


def asarray(value, dtype=None, order=None):
    if isinstance(value, ndarray):
        if value._ordinal == Device().id:
            return value
        with value.device:
            data = value.get()
        return _on_gpu(data)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        return _on_gpu(np.asarray(value, dtype, order=order))
    dtype = np.dtype(interface["typestr"])
    shape = interface["shape"]
    strides = interface["strides"] or np.empty(shape, dtype).strides
    return ndarray(interface["data"][0], shape, strides, dtype, value, Device().id)
