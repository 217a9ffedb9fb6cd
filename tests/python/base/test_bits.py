# SPDX-License-Identifier: Apache-2.0
"""Moves keep every bit of every dtype: NaN payloads, signalling NaNs, -0.0, subnormals, all 256 bytes."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import arrays, assert_same_bits, assert_shards_tile
from artifex_devices.testing.array_strategies import ML_DTYPES, NUMPY_DTYPES, random_bits
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [np.dtype(name) for name in NUMPY_DTYPES] + [np.dtype(getattr(ml_dtypes, name)) for name in ML_DTYPES]
# Bit patterns: smallest subnormal, largest subnormal, -0.0, infinities, quiet and signalling NaNs with payloads.
SPECIAL = {
    2: np.array([0x0001, 0x03FF, 0x8000, 0x7C00, 0xFC00, 0x7E01, 0x7D55, 0xFE2A], np.uint16),
    4: np.array([1, 0x007FFFFF, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7FA55555, 0xFFD2AAAA], np.uint32),
    8: np.array(
        [1, (1 << 52) - 1, 1 << 63, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48 | 1, 0x7FF5 << 48, 2**64 - 1], np.uint64
    ),
}


def everywhere(value, line, grid, devices):
    """The value after each kind of move, on shards of every size."""
    rows = value.reshape(8, -1)
    whole = ad.device_put(value, devices[3])
    yield whole
    yield ad.device_put(whole, devices[5])
    cut = ad.device_put(rows, ad.NamedSharding(line, ad.P("x")))
    yield cut
    yield ad.device_put(cut, ad.NamedSharding(grid, ad.P("y")))
    yield ad.device_put(cut, ad.NamedSharding(grid, ad.P()))
    yield ad.device_put(cut, devices[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_bits_survive_every_move(dtype, line, grid, devices):
    value = random_bits((8, 24), dtype, 7)
    for moved in everywhere(value, line, grid, devices):
        assert moved.dtype == dtype
        assert_same_bits(moved, value)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_special_floats_survive_every_move(dtype, line, grid, devices):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = SPECIAL[kind.itemsize] if dtype != "bfloat16" else (SPECIAL[4] >> 16).astype(np.uint16)
    value = bits.view(kind)
    for moved in everywhere(value, line, grid, devices):
        assert np.asarray(moved).ravel().view(bits.dtype).tolist() == bits.tolist()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_special_complex_parts_survive_every_move(dtype, line, grid, devices):
    half = np.dtype(dtype).itemsize // 2
    bits = np.stack([SPECIAL[half], SPECIAL[half][::-1]], axis=1).ravel()
    for moved in everywhere(bits.view(dtype), line, grid, devices):
        assert np.asarray(moved).ravel().view(bits.dtype).tolist() == bits.tolist()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.itemsize == 1 and d != np.bool_], ids=str)
def test_every_byte_survives_every_move(dtype, line, grid, devices):
    bits = np.arange(256, dtype=np.uint8)
    for moved in everywhere(bits.view(dtype), line, grid, devices):
        assert np.asarray(moved).ravel().view(np.uint8).tolist() == list(range(256))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["reversed", "fortran", "stepped", "unaligned", "broadcast"])
def test_odd_layouts_keep_bits(dtype, layout, line):
    sharding = ad.NamedSharding(line, ad.P(None, "x"))

    @settings(max_examples=10)
    @given(arrays((5, 16, 3), dtype, layout=layout))
    def check(value):
        assert_same_bits(ad.device_put(value, sharding), value)

    check()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtype_objects_are_numpys(dtype):
    array = ad.device_put(np.zeros(3, dtype))
    assert array.dtype is np.dtype(dtype)
    assert np.asarray(array).dtype is np.dtype(dtype)
    assert array.itemsize == dtype.itemsize


def test_python_nan_and_negative_zero():
    for number in (float("nan"), -0.0, float("-inf"), 5e-324):
        assert_same_bits(ad.device_put(number), np.float64(number))


def test_same_bits_sees_what_equality_does_not():
    with pytest.raises(AssertionError, match=r"1 of 2 elements differ; first at \(1,\)"):
        assert_same_bits(np.float32([1, 0.0]), np.float32([1, -0.0]))
    nan = np.array([0x7FC00001, 0x7FC00002], np.uint32).view(np.float32)
    with pytest.raises(AssertionError, match="differ"):
        assert_same_bits(nan, nan[::-1])
    with pytest.raises(AssertionError, match="float32"):
        assert_same_bits(np.float32([1]), np.float64([1]))
    with pytest.raises(AssertionError, match=r"\(1, 1\)"):
        assert_same_bits(np.ones((1, 1)), np.ones(1))


class Overlapping:
    """A sharding that is wrong: both devices hold the first half."""

    num_devices = 2

    def __init__(self, second):
        self.second = second

    def devices_indices_map(self, shape):
        return {0: (slice(0, 2, None),), 1: (slice(*self.second, None),)}


@pytest.mark.parametrize("second", [(1, 3), (3, 4), (0, 1)])
def test_shards_tile_sees_gaps_and_overlaps(second):
    with pytest.raises(AssertionError, match="element"):
        assert_shards_tile(Overlapping(second), (4,))
    assert_shards_tile(Overlapping((2, 4)), (4,))


@given(st.integers(0, 2**32 - 1), st.sampled_from(DTYPES))
def test_random_bits_are_repeatable_and_well_formed(seed, dtype):
    value = random_bits((3, 4), dtype, seed)
    assert_same_bits(value, random_bits((3, 4), dtype, seed))
    if dtype == np.bool_:
        assert set(value.view(np.uint8).ravel().tolist()) <= {0, 1}
