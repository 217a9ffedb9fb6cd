# SPDX-License-Identifier: Apache-2.0
"""Running sums over Arrays: NumPy's values, also along sharded dimensions and across pieces of large buffers."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy_oracle import assert_agrees, check, dtype_of, magnitude, outcome, pairs

pytestmark = pytest.mark.usefixtures("each_way")

P = ad.P


def scale_of(function, value):
    return magnitude(value) if function in (np.cumsum, np.nancumsum, np.add.accumulate) else 4.0 ** min(value.size, 99)


@given(st.data())
def test_running_sums_are_numpys(data):
    pair = data.draw(pairs(nan=True).filter(lambda pair: pair.host.ndim > 0))
    axis = data.draw(st.integers(-pair.host.ndim, pair.host.ndim - 1))
    function = data.draw(st.sampled_from([np.cumsum, np.nancumsum, np.add.accumulate]))
    assume(function is not np.nancumsum or pair.host.dtype.name != "bfloat16")  # NumPy knows no NaN of bfloat16
    options = {"dtype": "float64"} if data.draw(st.booleans()) and pair.host.dtype.kind != "c" else {}
    got = check(function, pair, scale=magnitude(pair.host), axis=axis, **options)
    if isinstance(got, ad.Array) and isinstance(got.sharding, ad.NamedSharding):
        assert got.sharding.is_equivalent_to(pair.device.sharding, got.ndim)


EXACT = "maximum minimum fmax logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor add multiply gcd"


@given(st.data())
def test_accumulate_of_integers_is_numpys(data):
    pair = data.draw(pairs(names=("bool", "int8", "uint8", "int64")).filter(lambda pair: pair.host.ndim > 0))
    axis = data.draw(st.integers(-pair.host.ndim, pair.host.ndim - 1))
    check(getattr(np, data.draw(st.sampled_from(EXACT.split()))).accumulate, pair, axis=axis)


@given(st.data())
def test_subtract_and_others_need_an_unsharded_dimension(data):
    pair = data.draw(pairs(names=("int32",), uneven=False).filter(lambda pair: pair.host.ndim > 0))
    axis = data.draw(st.integers(0, pair.host.ndim - 1))
    got = outcome(lambda: np.subtract.accumulate(pair.device, axis=axis))
    if isinstance(got, Exception):
        assert isinstance(got, ad.errors.ShardingTypeError)
        assert isinstance(pair.device.sharding, ad.NamedSharding)
        assert pair.device.sharding.shard_shape(pair.host.shape)[axis] != pair.host.shape[axis] or not pair.host.size
    else:
        assert_agrees(got, np.subtract.accumulate(pair.host, axis=axis))


@pytest.mark.parametrize("shape", [(1 << 20,), (3, 1 << 19), (1 << 19, 3), (700, 800)])
@pytest.mark.parametrize("where", ["one device", "rows", "replicas"])
def test_big_buffers(shape, where, devices, line):
    value = np.random.default_rng(1).integers(-1000, 1000, size=shape)
    sharding = {
        "one device": devices[2],
        "rows": ad.NamedSharding(line, P("x"), uneven="last-short"),
        "replicas": ad.NamedSharding(line, P()),
    }[where]
    x = ad.device_put(value, sharding)
    for axis in range(len(shape)):
        assert_same_bits(np.cumsum(x, axis=axis), np.cumsum(value, axis=axis))
    if where != "rows" or len(shape) == 1:
        assert_same_bits(np.cumsum(x), np.cumsum(value))
        if where != "rows":
            assert_same_bits(np.subtract.accumulate(x), np.subtract.accumulate(value))


class TestWithoutAxis:
    def test_rows_follow_each_other(self, named):
        value = np.arange(64).reshape(8, 8)
        for spec in (("x",), (("y", "x"),), ()):
            got = np.cumsum(ad.device_put(value, named(*spec)))
            assert_same_bits(got, np.cumsum(value))
            assert got.sharding == named(*spec)

    @pytest.mark.usefixtures("no_moves")
    def test_columns_do_not(self, named):
        x = ad.device_put(np.arange(64).reshape(8, 8), named(None, "x"))
        with pytest.raises(ad.errors.ShardingTypeError, match="cumsum: without axis the Array is flattened"):
            np.cumsum(x)

    @pytest.mark.usefixtures("no_moves")
    def test_uneven_rows_do_not(self, grid):
        sharding = ad.NamedSharding(grid, P("x"), uneven="last-short")
        with pytest.raises(ad.errors.ShardingTypeError, match="and evenly"):
            np.cumsum(ad.device_put(np.arange(12).reshape(3, 4), sharding))

    def test_no_dimension(self, devices):
        assert_same_bits(np.cumsum(ad.device_put(np.int32(7), devices[1])), np.cumsum(np.int32(7)))


class TestCumulative:
    @pytest.mark.usefixtures("no_moves")
    def test_functions_of_the_array_api(self, named):
        value = np.arange(1, 65).reshape(8, 8)
        x = ad.device_put(value, named("x"))
        assert_same_bits(np.cumulative_sum(x, axis=0), np.cumulative_sum(value, axis=0))
        assert_same_bits(np.cumulative_prod(x, axis=1), np.cumulative_prod(value, axis=1))
        got = np.cumulative_sum(x, axis=1, include_initial=True)
        assert_same_bits(got, np.cumulative_sum(value, axis=1, include_initial=True))
        assert got.sharding == named("x")
        with pytest.raises(ad.errors.ShardingTypeError, match=r"cumulative_sum: .*dimension 0"):
            np.cumulative_sum(x, axis=0, include_initial=True)
        with pytest.raises(ValueError, match="cumulative_sum: more than one dimension"):
            np.cumulative_sum(x)


class TestOptions:
    def test_out(self, named):
        value = np.arange(64).reshape(8, 8)
        x = ad.device_put(value, named("x", "y"))
        out = np.zeros((8, 8))
        assert np.cumsum(x, axis=0, out=out) is out
        assert out.tolist() == np.cumsum(value, axis=0).tolist()
        with pytest.raises(ValueError, match="cumsum: out has another shape"):
            np.cumsum(x, axis=0, out=np.zeros(8))
        with pytest.raises(TypeError, match="cumsum: out is not an ndarray"):
            np.cumsum(x, axis=0, out=x)

    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_low_precision_is_added_up_in_float32(self, name, line):
        value = np.ones(4096, dtype_of(name))
        got = np.cumsum(ad.device_put(value, ad.NamedSharding(line, P("x"))))
        assert got.dtype == value.dtype
        assert float(np.asarray(got)[-1]) == 4096.0

    def test_errors(self, named):
        x = ad.device_put(np.arange(64).reshape(8, 8), named("x", "y"))
        with pytest.raises(np.exceptions.AxisError):
            np.cumsum(x, axis=2)
        with pytest.raises(ValueError, match="does not allow multiple axes"):
            np.add.accumulate(x, axis=None)
        with pytest.raises(TypeError, match="scalar"):
            np.add.accumulate(x[0, 0])
