# SPDX-License-Identifier: Apache-2.0
"""Means, spreads, averages, medians, quantiles and norms over Arrays: NumPy's values within float tolerance."""

import warnings

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from numpy_oracle import FLOATS, assert_agrees, axes_of, check, numbers, outcome, pairs

pytestmark = pytest.mark.usefixtures("each_way")

P = ad.P
REAL = ("bool", "int8", "uint8", "int32", "int64", *FLOATS)


def drawn_options(data, pair, *, where=True):
    options = {
        "axis": data.draw(axes_of(pair.host.ndim), label="axis"),
        "keepdims": data.draw(st.booleans(), label="keepdims"),
    }
    if where and data.draw(st.booleans(), label="with where"):
        options["where"] = numbers(pair.host.shape, np.dtype(bool), 3)
    return options


@given(st.data())
def test_means_are_numpys(data):
    pair = data.draw(pairs(names=(*REAL, "complex64"), nan=True))
    function = data.draw(st.sampled_from([np.mean, np.nanmean]))
    if pair.host.dtype.name == "bfloat16":  # whose NaN NumPy's nan functions do not know
        function = np.mean
    options = drawn_options(data, pair)
    if pair.host.dtype.kind != "c" and data.draw(st.booleans(), label="with dtype"):
        options["dtype"] = data.draw(st.sampled_from(["float32", "float64"]))
    check(function, pair, scale=64.0, **options)


@given(st.data())
def test_spreads_are_numpys(data):
    pair = data.draw(pairs(names=(*REAL, "complex64"), nan=True))
    function = data.draw(st.sampled_from([np.var, np.std, np.nanvar, np.nanstd]))
    if pair.host.dtype.name == "bfloat16":  # whose NaN NumPy's nan functions do not know
        function = {np.nanvar: np.var, np.nanstd: np.std}.get(function, function)
    options = drawn_options(data, pair)
    options[data.draw(st.sampled_from(["ddof", "correction"]))] = data.draw(st.sampled_from([0, 1, 2, 0.5]))
    # Without integers' 8 bit values (up to 255) squared, 16 bit floats would not need so much.
    check(function, pair, scale=100.0, **options)


@given(st.data())
def test_a_given_mean_is_used(data):
    pair = data.draw(pairs(names=("int32", "float32", "float64")))
    axis = data.draw(axes_of(pair.host.ndim))
    with np.errstate(all="ignore"):
        middle = np.full(
            [
                1 if axis is None or d in np.arange(pair.host.ndim)[list(np.atleast_1d(axis))] else n
                for d, n in enumerate(pair.host.shape)
            ],
            1.5,
        )
    check(np.var, pair, scale=100.0, axis=axis, mean=middle)
    check(np.std, pair, scale=100.0, axis=axis, mean=middle, keepdims=True)


@given(st.data())
def test_averages_are_numpys(data):
    pair = data.draw(pairs(names=("int32", "float32", "float64", "float16")).filter(lambda pair: pair.host.size > 0))
    options = drawn_options(data, pair, where=False)
    kind = data.draw(st.sampled_from(["none", "full", "along"]))
    if kind == "full":
        options["weights"] = np.abs(numbers(pair.host.shape, np.dtype("float32"), 4))
    elif kind == "along" and pair.host.size and pair.host.ndim:
        options["axis"] = data.draw(st.integers(0, pair.host.ndim - 1))
        options["weights"] = np.abs(numbers((pair.host.shape[options["axis"]],), np.dtype("float32"), 4))
    check(np.average, pair, scale=64.0, **options)


@given(st.data())
def test_medians_and_quantiles_of_unsharded_dimensions_are_numpys(data):
    kinds = ("int32", "float32", "float64", "float16")
    pair = data.draw(pairs(names=kinds, nan=True).filter(lambda pair: pair.host.size > 0))
    whole = ad.device_put(pair.device, ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), P()))
    axis = data.draw(axes_of(pair.host.ndim))
    keepdims = data.draw(st.booleans())
    q = data.draw(st.sampled_from([0.5, 0.25, [0.0, 0.3, 1.0], [[0.1], [0.9]]]))
    for call in (
        lambda x: np.median(x, axis=axis, keepdims=keepdims),
        lambda x: np.nanmedian(x, axis=axis, keepdims=keepdims),
        lambda x: np.quantile(x, q, axis=axis, keepdims=keepdims),
        lambda x: np.percentile(x, np.multiply(q, 100.0), axis=axis, keepdims=keepdims, method="lower"),
    ):
        assert_agrees(outcome(lambda call=call: call(whole)), outcome(lambda call=call: call(pair.host)), scale=4.0)


@given(st.data())
def test_vector_norms_are_numpys(data):
    pair = data.draw(pairs(names=("bool", "int32", "float16", "float32", "float64", "complex64")))
    order = data.draw(st.sampled_from([None, 0, 1, 2, 3, 0.5, np.inf, -np.inf]))
    ndim = pair.host.ndim
    axis = data.draw(st.integers(-ndim, ndim - 1) if ndim else st.none())
    if axis is None:
        order = None
    scale = 16.0 * 40 if order != 0.5 else 16.0 * 40**2
    check(np.linalg.norm, pair, scale=scale, ord=order, axis=axis, keepdims=data.draw(st.booleans()))


@given(st.data())
def test_matrix_norms_are_numpys(data):
    pair = data.draw(pairs(names=("int32", "float32", "float64", "complex64")).filter(lambda p: p.host.ndim >= 2))
    order = data.draw(st.sampled_from([None, "fro", 1, -1, np.inf, -np.inf]))
    axis = tuple(data.draw(st.permutations(range(pair.host.ndim)))[:2])
    check(np.linalg.norm, pair, scale=640.0, ord=order, axis=axis, keepdims=data.draw(st.booleans()))


class TestStable:
    def test_a_big_offset_does_not_hurt(self, line):
        value = np.random.default_rng(0).normal(size=80_000) + 1e8
        x = ad.device_put(value, ad.NamedSharding(line, P("x")))
        assert float(np.asarray(np.var(x))) == pytest.approx(np.var(value), rel=1e-9)

    def test_infinity_gives_nan(self, line):
        value = np.ones(16)
        value[3] = np.inf
        x = ad.device_put(value, ad.NamedSharding(line, P("x")))
        with np.errstate(invalid="ignore"):
            assert np.isnan(np.asarray(np.std(x)))
        assert np.asarray(np.mean(x)) == np.inf

    def test_float16_means_do_not_overflow(self, line):
        value = np.full(1 << 16, 1000, np.float16)
        x = ad.device_put(value, ad.NamedSharding(line, P("x")))
        assert np.asarray(np.mean(x)) == 1000
        assert np.mean(x).dtype == np.float16


class TestWarningsAndErrors:
    def test_empty_slices_warn_as_in_numpy(self, named):
        x = ad.device_put(np.zeros((0, 4)), named(None, "y"))
        with pytest.warns(RuntimeWarning, match="Mean of empty slice"), np.errstate(invalid="ignore"):
            assert np.isnan(np.asarray(x.mean(0))).all()
        with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0"), np.errstate(all="ignore"):
            assert np.isnan(np.asarray(x.var(0))).all()
        y = ad.device_put(np.full((4, 4), np.nan), named(None, "y"))
        with pytest.warns(RuntimeWarning, match="All-NaN slice"):
            assert np.isnan(np.asarray(np.nanmax(y))).all()
        with pytest.raises(ValueError, match="nanargmax: All-NaN slice encountered"):
            np.nanargmax(y, axis=0)

    def test_weights(self, named):
        x = ad.device_put(np.ones((8, 8)), named("x", "y"))
        with pytest.raises(ZeroDivisionError, match="average: weights sum to zero"):
            np.average(x, axis=0, weights=np.zeros(8))
        with pytest.raises(TypeError, match=r"average: weights have another shape .* got \(8,\)"):
            np.average(x, weights=np.ones(8))
        with pytest.raises(ValueError, match="average: weights have another shape"):
            np.average(x, axis=0, weights=np.ones(7))
        got, total = np.average(x, axis=0, weights=np.arange(8.0), returned=True)
        assert_same_bits(got, np.ones(8))
        assert_same_bits(total, np.full(8, 28.0))
        assert got.sharding == total.sharding == named("y")
        assert_same_bits(np.average(x, axis=0, returned=True)[1], np.full(8, 8.0))

    def test_weights_may_lie_otherwise(self, named):
        value, weights = np.arange(64.0).reshape(8, 8), np.arange(64.0).reshape(8, 8)[::-1].copy()
        x = ad.device_put(value, named("x", "y"))
        got = np.average(x, axis=1, weights=ad.device_put(weights, named("y", "x")))
        np.testing.assert_allclose(np.asarray(got), np.average(value, axis=1, weights=weights))
        assert got.sharding == named("x")

    def test_ddof_and_correction_at_once(self, named):
        with pytest.raises(ValueError, match="std: ddof and correction"):
            np.std(ad.device_put(np.ones(8), named("x")), ddof=1, correction=1)

    @pytest.mark.usefixtures("no_moves")
    def test_medians_along_sharded_dimensions_name_the_repair(self, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        for call in (lambda: np.median(x), lambda: np.quantile(x, 0.5, axis=0), lambda: np.linalg.norm(x, 2)):
            with pytest.raises(
                ad.errors.ShardingTypeError, match=r"dimension 0 over \('x',\).*ad\.reshard\(x, ad\.NamedSharding"
            ):
                call()

    def test_norm_orders(self, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        with pytest.raises(ValueError, match="norm: Invalid norm order"):
            np.linalg.norm(x, "what")
        with pytest.raises(ValueError, match="norm: Improper number of dimensions"):
            np.linalg.norm(ad.device_put(np.ones((2, 2, 2))), 1)
        whole = ad.device_put(np.arange(64.0).reshape(8, 8), named())
        for order in (2, -2, "nuc"):
            assert_agrees(np.linalg.norm(whole, order), np.linalg.norm(np.arange(64.0).reshape(8, 8), order), scale=1e3)
        assert_agrees(np.linalg.vector_norm(x, axis=0), np.linalg.norm(np.asarray(x), axis=0), scale=1e3)
        assert_agrees(np.linalg.matrix_norm(x), np.linalg.norm(np.asarray(x)), scale=1e3)


class TestEquality:
    def test_one_answer(self, named):
        value = np.arange(64.0).reshape(8, 8)
        value[2, 2] = np.nan
        x, y = ad.device_put(value, named("x", "y")), ad.device_put(value, named("y"))
        assert bool(np.asarray(np.array_equal(x, y, equal_nan=True)))
        assert not bool(np.asarray(np.array_equal(x, y)))
        assert bool(np.asarray(np.allclose(x, value, equal_nan=True)))
        assert not bool(np.asarray(np.array_equal(x, value[0])))
        z = ad.device_put(np.ones((8, 8)), named("x"))
        assert bool(np.asarray(np.array_equiv(z, np.ones(8))))
        assert not bool(np.asarray(np.array_equiv(z, np.ones(7))))
        for answer in (np.array_equal(x, y), np.allclose(x, y), np.array_equiv(z, np.ones(7))):
            assert isinstance(answer, ad.Array)
            assert (answer.shape, answer.dtype, answer.sharding) == ((), np.dtype(bool), named())


@pytest.mark.parametrize("function", [np.mean, np.var, np.std, np.average, np.sum, np.nanmean, np.max])
@pytest.mark.parametrize("axis", [0, -1, 1, None, ()])
def test_axes_of_a_number_are_those_of_numpy(function, axis):
    value = np.array(2.5)
    x = ad.device_put(value)
    try:
        expected = function(value, axis=axis)
    except np.exceptions.AxisError:
        with pytest.raises(np.exceptions.AxisError):
            function(x, axis=axis)
    else:
        assert float(function(x, axis=axis)) == expected


@pytest.mark.parametrize("spec", [(), ("x",)])
@pytest.mark.parametrize("function", [np.mean, np.var, np.nanmax])
def test_warnings_show_the_callers_line(function, spec, named):
    values = np.full((8, 2), np.nan) if function is np.nanmax else np.ones((8, 0))
    x = ad.device_put(values, named(*spec))
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        function(x, axis=1)
    assert {warning.filename for warning in seen} == {__file__}


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint2", "uint4"])
def test_small_integers_have_no_spread_and_no_mean_of_nothing(dtype):
    value = np.array([1, 0, 1, 1]).astype(getattr(ml_dtypes, dtype))
    x, nothing = ad.device_put(value), ad.device_put(value[:0])
    for function in (np.var, np.std):
        with pytest.raises(TypeError, match=f"{function.__name__}: squares of {dtype} overflow"):
            function(x)
        assert float(function(x, dtype="float32")) == float(function(value.astype("float32")))
    with pytest.raises(ValueError, match="mean of no elements is NaN"), pytest.warns(RuntimeWarning, match="empty"):
        np.mean(nothing)
    assert float(np.mean(x, dtype="float32")) == 0.75
