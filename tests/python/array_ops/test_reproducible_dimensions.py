# SPDX-License-Identifier: Apache-2.0
"""`ad.reproducible()` over some dimensions: many results, each exact and rounded once."""

from __future__ import annotations

import math
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from exact_oracle import bits, kind, on, rounded_sum, spread

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), ()], ids=str)
def test_sums_over_some_dimensions(dtype: str, axis: Any) -> None:
    host = spread(kind(dtype), 6 * 10 * 14).reshape(6, 10, 14)
    axes = axis if isinstance(axis, tuple) else (axis,)
    moved = np.moveaxis(host, axes, range(len(axes))).reshape(math.prod(host.shape[d] for d in axes), -1)
    shape = tuple(size for d, size in enumerate(host.shape) if d not in axes)
    expected = np.array([rounded_sum(moved[:, i]) for i in range(moved.shape[1])], host.dtype).reshape(shape)
    for spec in [("x",), (None, "x"), (None, None, "x"), ("x", "y"), (("x", "y"),), ()]:
        with ad.simulate(6), ad.reproducible():
            x = on((2, 3), host, *(spec or (None,)))
            np.testing.assert_array_equal(np.asarray(x.sum(axis=axis)), expected)
            kept = x.sum(axis=axis, keepdims=True)
            np.testing.assert_array_equal(np.asarray(kept), expected.reshape(kept.shape))


def test_many_results_need_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from artifex_devices._array_ops.reduce import partials

    host = spread(np.dtype(np.float64), 5 * 3000).reshape(5, 3, 1000)
    sizes = []
    whole = partials._reduce_all

    def recorded(rule: Any, parts: Any, outputs: Any) -> None:
        sizes.append(outputs[0][0].size)
        whole(rule, parts, outputs)

    monkeypatch.setattr(partials, "_reduce_all", recorded)
    with ad.simulate(5), ad.reproducible():
        found = np.asarray(on((5,), host).sum(axis=0))
    assert sum(sizes) == 3000
    assert max(sizes) * 576 <= 1 << 20
    np.testing.assert_array_equal(found, [[rounded_sum(host[:, i, j]) for j in range(1000)] for i in range(3)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_results_have_the_bits_of_few(dtype: str) -> None:
    host = spread(kind(dtype), 21 * 2500).reshape(21, 2500)
    host[:, 5] = np.nan
    host[3, 6] = np.inf
    host[:, 7] = np.zeros((), host.dtype) * -1
    host[:, 8:1000] = np.arange(21 * 992).reshape(21, 992) % 100

    def results(x: Any) -> list[np.ndarray]:
        norms = [np.linalg.vector_norm(x, axis=0, ord=order) for order in (1, 2)]
        return [np.asarray(r) for r in (x.sum(axis=0), x.mean(axis=0), np.var(x, axis=0), np.std(x, axis=0), *norms)]

    with np.errstate(all="ignore"), ad.simulate(4), ad.reproducible():
        one = results(on((4,), host))
        columns = [results(on((4,), np.ascontiguousarray(host[:, i : i + 1250]))) for i in (0, 1250)]
        rows = results(on((4,), host, None, "x"))
    for number, found in enumerate(one):
        parts = np.concatenate([column[number] for column in columns])
        assert bits(np.nan_to_num(found)) == bits(np.nan_to_num(parts)) == bits(np.nan_to_num(rows[number]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (0, 1, 2)], ids=str)
def test_variances_and_norms_over_some_dimensions(dtype: str, axis: Any) -> None:
    host = np.random.default_rng(3).standard_normal((9, 10, 14)).astype(kind(dtype)) + np.ones((), kind(dtype))
    axes = axis if isinstance(axis, tuple) else (axis,)
    moved = np.moveaxis(host, axes, range(len(axes))).reshape(math.prod(host.shape[d] for d in axes), -1)
    wide = np.dtype(np.complex128 if host.dtype.kind == "c" else np.float64)
    real = np.zeros((), dtype=host.dtype).real.dtype
    mean, variance, ones, twos = [], [], [], []
    for column in moved.T:
        column = column.astype(wide)
        mean.append(rounded_sum(column, len(column)))
        deviation = column - mean[-1]
        squares = [part**2 for x in (deviation, column) for part in (x.real, x.imag)]
        variance.append(float(rounded_sum(np.concatenate(squares[:2]))) / len(column))
        twos.append(np.sqrt(rounded_sum(np.concatenate(squares[2:]))))
        ones.append(float(rounded_sum(np.abs(column))))
    for spec in [("x",), (None, "x"), (None, None, "x"), ("x", "y"), ()]:
        with ad.simulate(6), ad.reproducible():
            x = on((2, 3), host, *(spec or (None,)))
            for layout in (x, x.transpose(2, 0, 1)):
                place = tuple(d if layout is x else (d + 1) % 3 for d in axes)
                back = np.asarray(np.var(layout, axis=place, keepdims=True))
                back = back if layout is x else back.transpose(1, 2, 0)
                np.testing.assert_array_equal(back.reshape(-1), np.array(variance).astype(real))
            center = np.array(mean, wide).reshape(np.var(x, axis=axis, keepdims=True).shape)
            given = np.asarray(np.var(x, axis=axis, mean=center)).reshape(-1)
            np.testing.assert_array_equal(given.astype(real), np.array(variance).astype(real))
            if dtype != "complex64" or axis != (0, 1, 2):
                for order, expected in ((1, ones), (2, twos)):
                    found = np.asarray(np.linalg.vector_norm(x, axis=axis, ord=order))
                    np.testing.assert_array_equal(found.reshape(-1), np.array(expected).astype(found.dtype))


@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan, 1e308, 5e-324, -0.0], ids=str)
def test_special_values_in_one_column(special: float) -> None:
    host = np.random.default_rng(6).standard_normal((40, 300))
    host[:, 7] = 0.0 if special else -0.0
    host[11, 7] = special
    with np.errstate(all="ignore"), ad.simulate(3), ad.reproducible():
        x = on((3,), host)
        for function in (np.sum, np.var, np.linalg.norm, lambda a, axis: np.linalg.norm(a, 1, axis)):
            found, expected = np.asarray(function(x, axis=0)), function(host, axis=0)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            is_negative = bool(np.signbit(expected[7])) if special else function is np.sum  # all of column 7 is -0.0
            assert bool(np.signbit(found[7])) == is_negative or math.isnan(found[7])
