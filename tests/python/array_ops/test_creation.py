# SPDX-License-Identifier: Apache-2.0
"""zeros_like and its kind, and NumPy's questions about arrays."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits, dtypes, shardable_arrays
from hypothesis import given

V = np.arange(64.0).reshape(8, 8)


@given(shardable_arrays(dtype=dtypes()), dtypes())
def test_like_keeps_shape_dtype_and_layout(placement, dtype):
    x = ad.device_put(placement.value, placement.sharding)
    for function in (np.zeros_like, np.ones_like):
        result = function(x)
        assert_same_bits(result, function(placement.value, order="C"))
        assert result.sharding == x.sharding
        assert result.committed == x.committed
        assert_same_bits(function(x, dtype), function(placement.value, dtype, order="C"))
    assert_same_bits(np.full_like(x, 1), np.full_like(placement.value, 1, order="C"))
    empty = np.empty_like(x, dtype)
    assert (empty.shape, empty.dtype, empty.sharding) == (x.shape, dtype, x.sharding)


def test_another_shape_is_placed_on_the_default_device(named, devices):
    x = ad.device_put(V, named("x", "y"))
    result = np.zeros_like(x, shape=(3,))
    assert result.devices() == {devices[0]}
    assert not result.committed
    assert np.zeros_like(x, shape=(8, 8)).sharding == x.sharding
    assert_same_bits(np.ones_like(x, shape=2), np.ones(2))


def test_device(named, devices):
    x = ad.device_put(V, named("x", "y"))
    assert np.zeros_like(x, device=devices[3]).devices() == {devices[3]}
    moved = np.full_like(x, 7, device=named("y"), shape=(4, 2), dtype=np.int8)
    assert moved.sharding == named("y")
    assert moved.committed
    assert_same_bits(moved, np.full((4, 2), 7, np.int8))
    with pytest.raises(TypeError, match=r"device is .*; write ad\.devices"):
        np.zeros_like(x, device="cpu")
    for shape in ((3, 2), ()):  # named("y") does not divide it, or has too many dimensions
        whole = np.zeros_like(x, shape=shape, device=named("y"))
        assert (whole.shape, whole.sharding) == (shape, named())
        assert whole.committed
    with pytest.raises(TypeError, match="order"):
        np.zeros_like(x, order="F")


def test_full_like_with_a_row_and_with_an_array(named):
    x = ad.device_put(V, named("x", "y"))
    assert_same_bits(np.full_like(x, V[3]), np.full_like(V, V[3]))
    assert_same_bits(np.full_like(x, x[0, 5]), np.full_like(V, 5))
    assert_same_bits(np.full_like(x, x[3]), np.full_like(V, V[3]))


def test_values_are_cast_as_numpy_does(named):
    x = ad.device_put(V.astype(np.int8), named("x"))
    assert_same_bits(np.full_like(x, 2.7), np.full_like(V.astype(np.int8), 2.7))
    with pytest.raises(OverflowError):
        np.full_like(x, 300)


def test_shape_ndim_size(named):
    x = ad.device_put(V[:, :4], named("x", "y"))
    assert np.shape(x) == (8, 4)
    assert np.ndim(x) == 2
    assert np.size(x) == 32
    assert np.size(x, 1) == 4


def test_dtypes_are_asked_without_reading(named):
    x = ad.device_put(V.astype(np.float32), named("x"))
    x.delete()
    assert np.result_type(x, np.int64) == np.float64
    assert np.result_type(x, 1.0) == np.float32
    assert np.result_type(np.float64, x) == np.float64
    assert np.can_cast(x, np.float64)
    assert not np.can_cast(x, np.int8)
    assert np.common_type(x) is np.float32
    assert not np.iscomplexobj(x)
    assert np.isrealobj(x)
    assert np.min_scalar_type(x) == np.float32
    assert np.iscomplexobj(ad.device_put(1j))
    value = np.ones(2, ml_dtypes.bfloat16)
    assert np.result_type(ad.device_put(value), 1.0) == np.result_type(value, 1.0)
    assert np.result_type(ad.device_put(value), np.float32) == np.float32


def test_shared_memory(named):
    x = ad.device_put(V, named("x", "y"))
    y = ad.device_put(V, named("x", "y"))
    assert np.may_share_memory(x, x)
    assert np.shares_memory(x, x.addressable_shards[3].data)
    assert not np.shares_memory(x, y)
    assert not np.may_share_memory(x, V)
    whole = ad.device_put(V)
    assert np.shares_memory(np.asarray(whole), whole)
    assert not np.shares_memory(whole[:4], whole)


def test_text(named):
    x = ad.device_put(V[:1, :3], named())
    assert np.array_repr(x) == repr(x) == "Array([[0., 1., 2.]], dtype=float64)"
    assert np.array_str(x) == "[[0. 1. 2.]]"
    assert np.array2string(x / 3, precision=2) == np.array2string(V[:1, :3] / 3, precision=2)
    assert np.array_repr(x / 3, precision=2) == "Array([[0.  , 0.33, 0.67]], dtype=float64)"
