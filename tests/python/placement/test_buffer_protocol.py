# SPDX-License-Identifier: Apache-2.0
"""memoryview of an Array, and what __array__ does with dtype and copy."""

import gc
import io

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits

X = np.arange(64, dtype=np.float32).reshape(8, 8)
NUMPY_DTYPES = "? b h i l B H I L e f d F D".split()  # noqa: SIM905


@pytest.mark.parametrize("letter", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_a_view_says_what_numpy_says(letter, shape, devices):
    value = np.arange(int(np.prod(shape))).reshape(shape).astype(np.dtype(letter))
    ours, theirs = memoryview(ad.device_put(value, devices[1])), memoryview(value)
    assert (ours.format, ours.itemsize, ours.shape, ours.nbytes) == (
        theirs.format,
        theirs.itemsize,
        theirs.shape,
        theirs.nbytes,
    )
    assert ours.tobytes() == value.tobytes()
    assert ours.readonly
    assert ours.c_contiguous
    assert_same_bits(np.asarray(ours), value)


def test_a_view_is_the_memory_itself_and_outlives_the_array():
    array = ad.device_put(X)
    view = memoryview(array)
    assert np.asarray(view).ctypes.data == array.unsafe_buffer_pointer()
    array.delete()
    del array
    gc.collect()
    assert view.tobytes() == X.tobytes()
    view.release()


def test_an_array_is_not_freed_while_it_is_viewed():
    with ad.simulate(1):
        device = ad.devices()[0]
        big = np.ones(1 << 20, np.float32)
        view = memoryview(ad.device_put(big))
        gc.collect()
        assert device.memory_stats()["bytes_in_use"] == big.nbytes  # the view keeps the Array
        view.release()
        gc.collect()
        assert device.memory_stats()["bytes_in_use"] == 0


def test_bytes_and_files_take_an_array(tmp_path):
    array = ad.device_put(X)
    assert bytes(array) == X.tobytes()
    (tmp_path / "x").write_bytes(array)
    assert (tmp_path / "x").read_bytes() == X.tobytes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda named, devices: ad.device_put(X, named("x")), "several devices.*np.asarray"),
        (lambda named, devices: ad.device_put(X, named()), "several devices.*addressable_shards"),
        (lambda named, devices: ad.device_put(X.astype(ml_dtypes.bfloat16)), r"bfloat16.*view\(np.uint8\)"),
        (lambda named, devices: ad.device_put(X.astype(ml_dtypes.float8_e4m3fn)), "float8_e4m3fn"),
    ],
    ids="sharded replicated bfloat16 float8".split(),  # noqa: SIM905
)
def test_what_has_no_buffer_says_how_to_get_one(make, words, named, devices):
    array = make(named, devices)
    with pytest.raises(BufferError, match=words):
        memoryview(array)
    assert_same_bits(np.asarray(array), np.asarray(array))


def test_a_deleted_array_has_no_buffer():
    array = ad.device_put(X)
    array.delete()
    with pytest.raises(BufferError, match="deleted"):
        memoryview(array)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(array)


def test_nobody_writes_through_a_buffer():
    array = ad.device_put(X)
    with pytest.raises(TypeError, match="read-only"):
        memoryview(array)[0, 0] = 1
    with pytest.raises((BufferError, TypeError), match=r"does not change|read-write"):
        io.BytesIO(X.tobytes()).readinto(array)
    assert_same_bits(array, X)


def test_shards_have_buffers(named):
    array = ad.device_put(X, named("x", "y"))
    for shard in array.addressable_shards:
        assert memoryview(shard.data).tobytes() == X[shard.index].tobytes()


def test_asarray_of_one_device_copies_nothing(devices):
    array = ad.device_put(X, devices[2])
    assert np.asarray(array).ctypes.data == array.unsafe_buffer_pointer()
    assert np.asarray(array, copy=False).ctypes.data == array.unsafe_buffer_pointer()
    assert not np.asarray(array).flags.writeable


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_copy_true_is_the_callers_own(dtype, devices, named):
    value = X.astype(dtype)
    for array in (ad.device_put(value), ad.device_put(value, named("x", "y"))):
        for made in (np.array(array), np.asarray(array, copy=True), array.__array__(copy=True)):
            made[0, 0] = 7
            assert_same_bits(array, value)


def test_copy_false_is_an_error_where_a_copy_is_needed(named):
    one, cut, whole = ad.device_put(X), ad.device_put(X, named("x", "y")), ad.device_put(X, named())
    for call in (
        lambda: np.asarray(one, dtype=np.float64, copy=False),
        lambda: one.__array__(np.float64, copy=False),
        lambda: np.asarray(cut, copy=False),
        lambda: cut.__array__(copy=False),
    ):
        with pytest.raises(ValueError, match="cop"):
            call()
    np.asarray(cut)  # a value that is kept changes no answer
    with pytest.raises(ValueError, match="8 parts"):
        np.asarray(cut, copy=False)
    assert_same_bits(np.asarray(whole, copy=False), X)
    assert_same_bits(one.__array__(np.dtype("f4"), copy=False), X)


def test_a_dtype_changes_the_value_not_the_array(named):
    for array in (ad.device_put(X), ad.device_put(X, named("x"))):
        assert_same_bits(np.asarray(array, dtype=np.int16), X.astype(np.int16))
        assert_same_bits(array, X)
