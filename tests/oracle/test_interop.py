# SPDX-License-Identifier: Apache-2.0
"""DLPack, buffers, pickles and copies: the same answers as JAX, and each reads the other's memory."""

import copy
import pickle

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.dlpack import from_dlpack
from artifex_devices.testing import assert_same_bits
from both import JAX, LIBRARIES, OURS, assert_agree, jax

X = np.arange(64, dtype=np.float32).reshape(8, 8)
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
DTYPES += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def placed(lib, value, how):
    mesh = lib.Mesh(np.array(lib.devices), ("x",))
    targets = {
        "default": None,
        "device": lib.devices[3],
        "sharded": lib.NamedSharding(mesh, lib.P("x")),
        "replicated": lib.NamedSharding(mesh, lib.P()),
    }
    return lib.device_put(value, targets[how])


def aligned(value):
    """A copy at an address of 64 bytes, as JAX wants it for copy=False."""
    memory = np.empty(value.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copied = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copied[...] = value
    return copied


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3)], ids=str)
def test_jax_reads_our_memory(dtype, shape):
    value = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    ours = ad.device_put(value, OURS.devices[1])
    theirs = jax.dlpack.from_dlpack(ours)
    assert_same_bits(np.asarray(theirs), value)
    ours.delete()
    assert_same_bits(np.asarray(theirs), value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3)], ids=str)
def test_we_read_jax_memory(dtype, shape):
    value = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    theirs = JAX.device_put(value, JAX.devices[0])
    ours = from_dlpack(theirs, copy=False)
    if value.size:
        assert ours.unsafe_buffer_pointer() == theirs.unsafe_buffer_pointer()
    theirs.delete()
    del theirs
    assert_same_bits(ours, value)
    assert_same_bits(np.asarray(jax.numpy.from_dlpack(ours)), value)


@pytest.mark.parametrize("how", ["default", "device", "sharded", "replicated"])
@pytest.mark.parametrize(
    "question",
    [
        lambda x: tuple(int(part) for part in x.__dlpack_device__()),
        lambda x: type(x.__dlpack__()).__name__,
        lambda x: type(x.__dlpack__(max_version=(0, 8))).__name__,
        lambda x: x.__dlpack__(dl_device=(8, 0)),
        np.from_dlpack,
        lambda x: np.from_dlpack(x).flags.writeable,
        lambda x: memoryview(x).tobytes(),
        lambda x: (memoryview(x).readonly, memoryview(x).shape, memoryview(x).strides),
        lambda x: np.array(x, copy=True).flags.writeable,
    ],
)
def test_both_give_the_same_or_the_same_error(how, question):
    assert_agree(lambda lib: question(placed(lib, X, how)))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4])
def test_buffers_of_other_dtypes_agree(dtype):
    assert_agree(lambda lib: memoryview(lib.device_put(X.astype(dtype))))


@pytest.mark.parametrize(
    "question",
    [
        lambda lib, make: make(X),
        lambda lib, make: make(X).committed,
        lambda lib, make: make(X).device.id,
        lambda lib, make: make(X.T),
        lambda lib, make: make(X, device=lib.devices[2]).device.id,
        lambda lib, make: make(X, device=lib.devices[2], copy=False),
        lambda lib, make: make(aligned(X), device=lib.devices[0], copy=False),
        lambda lib, make: make(X, device=lib.SingleDeviceSharding(lib.devices[3])).device.id,
        lambda lib, make: make(X, copy=True),
        lambda lib, make: make(X, device=lib.NamedSharding(lib.Mesh(np.array(lib.devices), "x"), lib.P("x"))),
        lambda lib, make: make(3),
        lambda lib, make: make(X.__dlpack__()),
    ],
)
def test_from_dlpack_takes_the_same_arguments(question):
    assert_agree(lambda lib: question(lib, lib.from_dlpack))


@pytest.mark.parametrize("how", ["default", "sharded", "replicated"])
@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_copies_agree(how, copier):
    def question(lib):
        source = placed(lib, X, how)
        made = copier(source)
        return made, made is source, made.committed, sorted(d.id for d in made.devices())

    assert_agree(question)


def test_pickles_keep_the_value():
    for lib in LIBRARIES:
        assert_same_bits(np.asarray(pickle.loads(pickle.dumps(placed(lib, X, "sharded")))), X)


def test_an_old_version_of_dlpack_gets_a_capsule_without_a_version():
    ours, theirs = OURS.device_put(X), JAX.device_put(X)
    assert "dltensor" in repr(ours.__dlpack__(max_version=(0, 1)))
    with pytest.raises(BufferError, match="any version below"):
        theirs.__dlpack__(max_version=(0, 1))
