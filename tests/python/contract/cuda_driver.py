# SPDX-License-Identifier: Apache-2.0
"""Another library in the process that uses CUDA: it allocates, copies on streams, produces and consumes DLPack."""

from __future__ import annotations

import ctypes
import os

import numpy as np

_NAME = b"dltensor"
_USED = b"used_dltensor"
_driver = ctypes.CDLL(os.environ.get("ARTIFEX_CUDA_LIBRARY", "libcuda.so.1"))
_python = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


def call(name, *arguments):
    error = getattr(_driver, name)(*arguments)
    assert error == 0, f"{name}: CUDA error {error}"


class Gpu:
    """A GPU with its primary context and a stream of the other library."""

    def __init__(self, ordinal):
        self.ordinal = ordinal
        self._context = ctypes.c_void_p()
        self.stream = ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), ordinal)
        with self:
            call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def __enter__(self):
        call("cuCtxPushCurrent_v2", self._context)
        return self

    def __exit__(self, *_):
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def locked_bytes(self, count):
        """An ndarray on host memory that CUDA has locked; never freed."""
        address = ctypes.c_void_p()
        with self:
            call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(count), 1)
        return np.frombuffer((ctypes.c_uint8 * count).from_address(address.value), np.uint8)

    def start_copy(self, to, source, count):
        with self:
            call("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(count), self.stream)

    def start_write(self, address, data):
        """Copies the bytes of an ndarray to an address of a GPU, after the call has returned."""
        staged = self.locked_bytes(data.nbytes)
        staged[:] = data.view(np.uint8)
        self.start_copy(address, staged.ctypes.data, data.nbytes)

    def wait(self):
        with self:
            call("cuStreamSynchronize", self.stream)

    def start_read(self, address, count):
        """An ndarray that has the bytes at an address of a GPU after wait()."""
        out = self.locked_bytes(count)
        out[:] = 0xEE
        self.start_copy(out.ctypes.data, address, count)
        return out

    def read(self, address, count):
        out = self.start_read(address, count)
        self.wait()
        return out


class Allocation:
    """Memory of a GPU, freed with the object."""

    def __init__(self, gpu, count):
        self._gpu = gpu
        address = ctypes.c_uint64()
        with gpu:
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        self.address = address.value

    def __del__(self):
        self._gpu.wait()
        with self._gpu:
            call("cuMemFree_v2", ctypes.c_uint64(self.address))


_produced: list[Produced] = []


class Produced:
    """An array of the other library in the memory of a GPU, with DLPack."""

    def __init__(self, gpu, value, *, strides=None):
        self.gpu, self.value, self._strides = gpu, value, strides
        _produced.append(self)  # its deleter may be called later than its last use in a test
        self.freed = 0
        self.streams = []
        self._memory = Allocation(gpu, value.nbytes)
        self.address = self._memory.address
        gpu.start_write(self.address, np.frombuffer(value.tobytes(), np.uint8))  # running when it is exported

    def __dlpack_device__(self):
        return 2, self.gpu.ordinal

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        shape = self.value.shape
        strides = self._strides or [each // self.value.itemsize for each in self.value.strides]
        tensor = _Tensor(self.address, 2, self.gpu.ordinal, len(shape), 2, 8 * self.value.itemsize, 1)
        tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
        tensor.strides = (ctypes.c_int64 * len(shape))(*strides)
        tensor.deleter = type(tensor.deleter)(self._free)
        self._tensor = tensor
        return _python.PyCapsule_New(ctypes.addressof(tensor), _NAME, None)

    def _free(self, _):
        self.freed += 1
        self._memory = None


class Consumed:
    """What the other library makes of an Array by DLPack."""

    def __init__(self, array, **options):
        capsule = array.__dlpack__(**options)
        self._tensor = _Tensor.from_address(_python.PyCapsule_GetPointer(capsule, _NAME))
        assert _python.PyCapsule_SetName(capsule, _USED) == 0
        self.address = self._tensor.data
        self.device = self._tensor.device_type, self._tensor.device_id
        self.shape = tuple(self._tensor.shape[i] for i in range(self._tensor.ndim))
        self.strides = tuple(self._tensor.strides[i] for i in range(self._tensor.ndim))

    def free(self):
        self._tensor.deleter(ctypes.addressof(self._tensor))
