# SPDX-License-Identifier: Apache-2.0
"""Sums, products, means, variances and norms of large blocks: exact results, bounds of errors, and NumPy's reports."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices._core import internal

INTEGERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
AXES: list[Any] = [None, *chain.from_iterable(combinations(range(3), count) for count in (1, 2, 3))]


@pytest.fixture(params=[1, 3])
def devices(request: pytest.FixtureRequest) -> Iterator[int]:
    with ad.simulate(request.param):
        yield request.param


def placed(host: np.ndarray, devices: int) -> ad.Array:
    """Sharded unevenly along the first dimension."""
    mesh = ad.make_mesh((devices,), ("x",))
    return ad.device_put(host, ad.NamedSharding(mesh, ad.P("x"), uneven="last-short"))


def whole_numbers(dtype: str, shape: tuple[int, ...] = (9, 300, 72)) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.random.default_rng(0).random(shape) < 0.5
    limits = np.iinfo(kind)
    return np.random.default_rng(0).integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_as_numpy_over_any_axes(devices: int, dtype: str, axis: Any) -> None:
    host = whole_numbers(dtype)
    x = placed(host, devices)
    for function in (np.sum, np.prod):
        expected = function(host, axis=axis)
        result = function(x, axis=axis)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(result), expected)
    np.testing.assert_array_equal(
        np.asarray(np.sum(x, axis=axis, dtype=np.int16, keepdims=True)),
        np.sum(host, axis=axis, dtype=np.int16, keepdims=True),
    )


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_means_and_variances_over_any_axes(devices: int, dtype: str, axis: Any) -> None:
    if dtype.startswith("float"):
        host = np.random.default_rng(0).standard_normal((9, 300, 72)).astype(dtype)
    else:
        host = whole_numbers(dtype)
    x = placed(host, devices)
    exact = host.astype(np.longdouble)
    for function in (np.mean, np.var, np.std):
        result = function(x, axis=axis)
        assert result.dtype == function(host[:1, :1, :1], axis=axis).dtype
        precision = 8 * np.finfo(result.dtype).eps
        allowed = precision * float(np.abs(exact).max()) if function is np.mean else 0
        np.testing.assert_allclose(np.asarray(result), function(exact, axis=axis), rtol=precision, atol=allowed)


def adversarial(name: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "cancellation":
        half = rng.standard_normal(40_000) * 2.0 ** rng.integers(-20, 20, 40_000)
        return rng.permutation(np.concatenate([half, -half, rng.standard_normal(11) * 1e-3]))
    if name == "large offset":
        return 1e6 + rng.standard_normal(80_011)
    if name == "one large number":
        return np.concatenate([[2.0**30], rng.random(80_010)])
    if name == "ascending":
        return np.sort(rng.random(80_011) ** 20)
    return rng.standard_normal(80_011) * 2.0 ** rng.integers(-30, 30, 80_011)


CASES = ["cancellation", "large offset", "one large number", "ascending", "wide range"]


@pytest.mark.parametrize("name", CASES)
def test_float32_totals_are_as_if_rounded_once(devices: int, name: str) -> None:
    host = adversarial(name).astype(np.float32)
    x = placed(host, devices)
    exact = math.fsum(host.tolist())
    size = math.fsum(np.abs(host).tolist())
    slack = 40 * 2.0**-53 * size  # the additions in float64
    for result, expected, numpys in (
        (np.sum(x), exact, np.sum(host)),
        (np.mean(x), exact / host.size, np.mean(host)),
    ):
        error = abs(float(result) - expected)
        rounding = float(np.spacing(np.float32(abs(expected)))) / 2
        assert error <= rounding + slack
        assert error <= max(abs(float(numpys) - expected), rounding)
    for order, power in ((1, 1), (2, 2)):
        total = math.fsum((np.abs(host.astype(np.float64)) ** power).tolist()) ** (1 / power)
        assert abs(float(np.linalg.norm(x, order)) - total) <= float(np.spacing(np.float32(total))) * 0.51


@pytest.mark.parametrize("name", CASES)
def test_float64_sums_have_a_smaller_bound_of_errors_than_numpys(devices: int, name: str) -> None:
    """NumPy's bound has 11 in place of 7: 16 additions in a row and 3 of pairs in each block of 128."""
    for seed in range(8):
        host = adversarial(name, seed)
        exact = Fraction(math.fsum(host.tolist()))
        size = math.fsum(np.abs(host).tolist())
        error = abs(float(Fraction(float(np.sum(placed(host, devices)))) - exact))
        assert error <= (math.log2(host.size) + 7) * 2.0**-53 * size


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variances_have_no_larger_errors_than_numpys(devices: int, name: str, dtype: str) -> None:
    errors = np.zeros(2)
    for seed in range(4):
        host = adversarial(name, seed)[::4].astype(dtype)
        numbers = [Fraction(number) for number in host.tolist()]
        mean = sum(numbers) / len(numbers)
        exact = sum((number - mean) ** 2 for number in numbers) / len(numbers)
        x = placed(host, devices)
        results = float(np.var(x)), float(np.var(host))
        errors += [float(abs(Fraction(result) - exact) / exact) / np.finfo(dtype).eps for result in results]
    # In steps of the dtype. The mean of four results that are rounded once has an error of at most half a step.
    assert errors[0] <= (2.01 if dtype == "float32" else 8)


def test_variance_of_equal_float32_is_zero(devices: int) -> None:
    assert float(np.std(placed(np.full(70_001, 0.1, np.float32), devices))) == 0


def test_special_values_are_numpys(devices: int) -> None:
    ones = np.ones(80_000)
    for values, expected in (([np.nan], np.nan), ([np.inf], np.inf), ([-np.inf], -np.inf)):
        for dtype in (np.float32, np.float64):
            host = np.concatenate([ones, values]).astype(dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for function in (np.sum, np.mean, np.prod):
                    np.testing.assert_equal(float(function(placed(host, devices))), expected)
    with pytest.warns(RuntimeWarning, match="invalid value encountered in reduce"):
        assert np.isnan(np.asarray(np.sum(placed(np.concatenate([ones, [np.inf, -np.inf]]), 1))))
    with pytest.warns(RuntimeWarning, match="overflow encountered in reduce"):
        assert float(np.sum(placed(ones * 1e308, devices))) == np.inf
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        np.sum(placed(ones * 1e308, devices))
    zeros = np.full(80_000, -0.0)
    assert math.copysign(1, float(np.sum(placed(zeros, devices)))) == math.copysign(1, float(np.sum(zeros))) == 1
    assert float(np.sum(placed(np.full(80_000, 5e-324), devices))) == 80_000 * 5e-324


def test_a_product_that_leaves_the_range_is_numpys() -> None:
    """In order the product stays near 1; of every 16th number it overflows."""
    with ad.simulate(1):
        for dtype, large in ((np.float64, 2.0**900), (np.float32, 2.0**100)):
            host = np.ones(80_000, dtype)
            host[::16], host[1::16] = large, 1 / large
            assert float(np.prod(placed(host, 1))) == 1


def test_empty_and_short_blocks() -> None:
    host = np.random.default_rng(0).integers(0, 9, (9, 30_000)).astype(np.float32)
    with ad.simulate(8):
        x = placed(host, 8)  # blocks of 2, 2, 2, 2, 1, 0, 0 and 0 rows
        for axis in (None, 0, 1):
            np.testing.assert_array_equal(np.asarray(np.sum(x, axis=axis)), np.sum(host.astype(np.float64), axis=axis))


def test_which_arrays_the_core_reduces() -> None:
    values = np.ones((200, 300), np.float32)
    out = np.empty((200, 1))
    assert internal.totals("sum", values, (1,), out)
    assert internal.totals("sum", values[5:, 7:90], (1,), out[5:])
    assert not internal.totals("sum", values[:, ::2], (1,), out)
    assert not internal.totals("sum", values.T, (0,), out.T)
    assert not internal.totals("sum", values, (), np.empty((200, 300)))
    with pytest.raises(TypeError, match="there is no loop from float16 to float64"):
        internal.totals("sum", values.astype(np.float16), (1,), out)
    with pytest.raises(ValueError, match="expected a dense writable array of 200 elements"):
        internal.totals("sum", values, (1,), out[:5])
