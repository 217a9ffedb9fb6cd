# SPDX-License-Identifier: Apache-2.0
"""nonzero, unique and their kind on sharded Arrays, and masks that are sharded: NumPy's values."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from numpy_oracle import pairs

pytestmark = pytest.mark.usefixtures("each_way")

NAN = float("nan")


def assert_whole(got, x, expected):
    """Same dtype and values (NaN at the same places), whole on each device of x."""
    assert isinstance(got, ad.Array)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert got.sharding.is_fully_replicated
    assert got.devices() == x.devices()
    assert got.committed == x.committed
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    np.testing.assert_array_equal(np.asarray(got).astype(wide), expected.astype(wide))


@pytest.mark.parametrize("call", [np.nonzero, np.where])
def test_nonzero_of_a_number_names_the_repair(call, named):
    for x in (ad.device_put(3), ad.device_put(np.array(3.0), named())):
        text = r"^nonzero: Calling nonzero on 0d arrays .*got shape \(\); use np\.atleast_1d\(x\) first$"
        with pytest.raises(ValueError, match=text):
            call(x)
        assert [part.tolist() for part in call(np.atleast_1d(x))] == [[0]]


@given(pairs(nan=True))
def test_nonzero_as_numpy(pair):
    x, host = pair.device, pair.host
    if host.ndim == 0:
        with pytest.raises(ValueError, match="0d"):
            np.nonzero(x)
    else:
        for got, expected in zip(np.nonzero(x), np.nonzero(host), strict=True):
            assert_whole(got, x, expected)
        assert [p.tolist() for p in np.where(x)] == [p.tolist() for p in np.nonzero(host)]
    assert_whole(np.argwhere(x), x, np.argwhere(host))
    assert_whole(np.flatnonzero(x), x, np.flatnonzero(host))


@given(pairs(nan=True), st.booleans())
def test_unique_as_numpy(pair, equal_nan):
    x, host = pair.device, pair.host
    options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": equal_nan}
    values, index, inverse, counts = np.unique(x, **options)
    expected = np.unique(host, **options)
    assert_whole(values, x, expected[0])
    assert_whole(index, x, expected[1])
    assert_whole(counts, x, expected[3])
    assert inverse.sharding == x.sharding
    assert inverse.dtype == np.intp
    if not equal_nan:  # NumPy may number equal NaNs in any order
        one, two = np.asarray(values)[np.asarray(inverse)], host
        np.testing.assert_array_equal(one.astype(np.complex128), two.astype(np.complex128))
        assert np.bincount(np.asarray(inverse).ravel(), minlength=values.size).tolist() == counts.tolist()
    else:
        assert np.asarray(inverse).tolist() == expected[2].reshape(host.shape).tolist()
    assert_whole(np.unique(x), x, np.unique(host))


def test_the_standards_functions_name_their_results(named):
    host = np.array([[3.0, NAN, 1, 3], [NAN, 1, 1, 2]])
    x = ad.device_put(host, named("x", "y"))
    every = np.unique_all(x)
    assert type(every) is type(np.unique_all(host))
    assert np.asarray(every.values).tolist()[:3] == [1, 2, 3]
    assert every.indices.tolist() == [2, 7, 0, 1, 4]
    assert every.inverse_indices.tolist() == [[2, 3, 0, 2], [4, 0, 0, 1]]
    assert every.counts.tolist() == [3, 1, 2, 1, 1]
    assert every.inverse_indices.sharding == x.sharding
    counts, inverse = np.unique_counts(x), np.unique_inverse(x)
    assert type(counts) is type(np.unique_counts(host))
    assert type(inverse) is type(np.unique_inverse(host))
    assert counts.counts.tolist() == every.counts.tolist()
    assert inverse.inverse_indices.tolist() == every.inverse_indices.tolist()
    assert np.isnan(np.asarray(np.unique_values(x))).tolist() == [False] * 3 + [True] * 2


def test_zeros_of_both_signs_are_one_value(named):
    x = ad.device_put(np.array([0.0, -0.0, 1.0, -0.0]), named("y"))
    assert np.unique(x, return_inverse=True)[1].tolist() == [0, 0, 1, 0]


def test_big_arrays_are_searched_tile_by_tile(line):
    host = np.random.default_rng(0).integers(0, 50, size=(800, 300))
    x = ad.device_put(host, ad.NamedSharding(line, ad.P(None, "x"), uneven="last-short"))
    with ad.transfers.record() as report:
        values, inverse = np.unique(x, return_inverse=True)
        rows, columns = np.nonzero(x)
    assert report.bytes("device-to-host") == 0  # x is not gathered
    assert_same_bits(values, np.arange(50))
    assert_same_bits(inverse, host)
    assert_same_bits(rows, np.nonzero(host)[0])
    assert_same_bits(columns, np.nonzero(host)[1])


def test_rows_are_not_compared(named):
    with pytest.raises(TypeError, match=r"unique: rows are not compared .*np\.unique\(np\.asarray\(x\), axis=0\)"):
        np.unique(ad.device_put(np.ones((8, 8)), named("x")), axis=0)


@given(pairs(names=("int32", "float64")).filter(lambda pair: pair.host.ndim > 0), st.integers(-4, 4))
def test_sharded_masks_select_as_numpy(pair, bound):
    x, host = pair.device, pair.host
    got = x[x > bound]
    assert_same_bits(got, host[host > bound])
    assert got.devices() == x.devices()
    assert_same_bits(x[(x > bound)[:, ...]], host[host > bound])
