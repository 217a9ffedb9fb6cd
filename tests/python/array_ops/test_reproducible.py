# SPDX-License-Identifier: Apache-2.0
"""`ad.reproducible()`: sums are exact and rounded once, and have the same bits on any mesh."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from exact_oracle import bits, kind, on, rounded_sum, spread

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
MESHES: list[tuple[int, ...]] = [(1,), (2,), (3,), (8,), (61,), (4, 4), (256,), (4096,)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_sum_and_mean_are_rounded_once_on_any_mesh_in_any_order(dtype: str) -> None:
    host = spread(kind(dtype), 5_003)
    total, mean = rounded_sum(host), rounded_sum(host, len(host))
    for number, sizes in enumerate(MESHES):
        shuffled = np.random.default_rng(number).permutation(host)
        with ad.simulate(math.prod(sizes)), ad.reproducible():
            x = on(sizes, shuffled)
            assert bits(x.sum()) == bits(total)
            assert bits(np.add.reduce(x)) == bits(total)
            assert bits(x.mean()) == bits(mean)
            assert np.sum(x).dtype == np.mean(x).dtype == host.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_many_pieces(dtype: str) -> None:
    host = spread(kind(dtype), 5 << 20)
    total = math.fsum(host)  # not halfway between two numbers of float32
    for sizes in [(1,), (3,)]:
        with ad.simulate(sizes[0]), ad.reproducible():
            assert bits(on(sizes, host).sum()) == bits(host.dtype.type(total))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_variance_and_deviation_follow_their_definition(dtype: str) -> None:
    host = np.random.default_rng(1).standard_normal(1_001).astype(dtype) + np.ones((), dtype) * 1000
    wide = np.complex128 if host.dtype.kind == "c" else np.float64
    deviation = host.astype(wide) - rounded_sum(host.astype(wide), len(host))
    squares = np.concatenate([deviation.real**2, deviation.imag**2]) if wide is np.complex128 else deviation**2
    total = float(rounded_sum(squares))
    real = np.zeros((), dtype).real.dtype
    for sizes in MESHES[:6]:
        with ad.simulate(math.prod(sizes)), ad.reproducible():
            x = on(sizes, np.random.default_rng(sizes[0]).permutation(host))
            assert bits(np.var(x)) == bits(real.type(total / 1001))
            assert bits(np.var(x, ddof=1)) == bits(real.type(total / 1000))
            assert bits(x.std()) == bits(real.type(np.sqrt(total / 1001)))


def test_variance_over_a_dimension() -> None:
    host = np.random.default_rng(2).standard_normal((12, 7)).astype(np.float32)
    columns = []
    for column in host.T:
        deviation = column.astype(np.float64) - float(rounded_sum(column.astype(np.float64), 12))
        columns.append(np.float32(float(rounded_sum(deviation**2)) / 12))
    for spec in [("x",), (None, "x")]:
        with ad.simulate(4), ad.reproducible():
            np.testing.assert_array_equal(np.asarray(np.var(on((4,), host, *spec), axis=0)), columns)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_norms(dtype: str) -> None:
    host = spread(kind(dtype), 700) if dtype != "float16" else spread(kind(dtype), 700) / 64
    host = host.astype(dtype)
    parts = np.concatenate([host.real, host.imag]) if host.dtype.kind == "c" else host
    squares = parts.astype(np.float64) ** 2
    result = np.linalg.norm(host).dtype
    for sizes in [(1,), (3,), (8,)]:
        with ad.simulate(sizes[0]), ad.reproducible():
            x = on(sizes, np.random.default_rng(sizes[0]).permutation(host))
            assert bits(np.linalg.norm(x)) == bits(result.type(np.sqrt(rounded_sum(squares))))
            assert bits(np.linalg.vector_norm(x)) == bits(np.linalg.norm(x))
            if host.dtype.kind != "c":
                sizes_sum = rounded_sum(np.abs(host).astype(np.float64))
                assert bits(np.linalg.norm(x, 1)) == bits(result.type(sizes_sum))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dot_products_of_vectors(dtype: str) -> None:
    a, b = (spread(kind(dtype), 500, seed) for seed in (3, 4))
    if dtype == "float16":
        a, b = (x / 16 for x in (a, b))

    def products(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return one.astype(np.float64) * two.astype(np.float64)

    def total(x: np.ndarray) -> Any:
        if x.dtype.kind != "c":
            return rounded_sum(products(x, b), dtype=x.dtype)
        real = np.zeros((), x.dtype).real.dtype
        parts = (
            np.concatenate([products(x.real, b.real), -products(x.imag, b.imag)]),
            np.concatenate([products(x.real, b.imag), products(x.imag, b.real)]),
        )
        return x.dtype.type(complex(*(rounded_sum(part, dtype=real) for part in parts)))

    for sizes in [(1,), (3,), (8,)]:
        with ad.simulate(sizes[0]), ad.reproducible():
            x, y = on(sizes, a), on(sizes, b)
            for found in (np.dot(x, y), np.inner(x, y), x @ y, np.dot(x, b), np.dot(a, y), np.matmul(a, y)):
                assert bits(found) == bits(total(a))
                assert found.shape == ()
            wide = [on(sizes, host.reshape(5, 100), None, "x") for host in (a, b)]
            for found in (np.vdot(x, y), np.vecdot(x, y), np.vdot(*wide)):
                assert bits(found) == bits(total(np.conj(a)))


def test_special_values() -> None:
    cases = [
        ([1.0, math.nan, math.inf], math.nan),
        ([math.inf, 1.0, -math.inf], math.nan),
        ([math.inf, -1e308], math.inf),
        ([-math.inf, 1.0], -math.inf),
        ([1.7e308, 1.7e308, -1.7e308], 1.7e308),
        ([1.7e308, 1.7e308], math.inf),
        ([-0.0, -0.0, -0.0], -0.0),
        ([-0.0, 0.0], 0.0),
        ([5e-324, -5e-324], 0.0),
        ([], 0.0),
    ]
    for values, expected in cases:
        for count in (1, 3):
            with ad.simulate(count), ad.reproducible():
                found = np.asarray(np.sum(on((count,), np.array(values))))
            assert np.array_equal(found, expected, equal_nan=True), values
            assert np.signbit(found) == np.signbit(expected) or math.isnan(expected), values


def test_initial_where_dtype_and_out() -> None:
    host = spread(np.dtype(np.float64), 999)
    mask = np.random.default_rng(5).random(999) < 0.5
    with ad.simulate(3), ad.reproducible():
        x, chosen = on((3,), host), on((3,), mask)
        assert bits(np.sum(x, initial=1e20)) == bits(rounded_sum(np.append(host, 1e20)))
        assert bits(np.sum(x, where=chosen)) == bits(rounded_sum(host[mask]))
        assert bits(np.mean(x, where=chosen)) == bits(rounded_sum(host[mask], int(mask.sum())))
        assert bits(np.sum(x, dtype=np.float32)) == bits(rounded_sum(host.astype(np.float32)))
        out = np.zeros(())
        assert np.sum(x, out=out) is out
        assert bits(out) == bits(rounded_sum(host))
        holes = np.where(mask, host, np.nan)
        assert bits(np.nansum(on((3,), holes))) == bits(rounded_sum(host[mask]))
        assert bits(np.nanmean(on((3,), holes))) == bits(rounded_sum(host[mask], int(mask.sum())))
        with pytest.warns(RuntimeWarning, match="Mean of empty slice"):
            assert np.isnan(np.asarray(np.mean(on((3,), np.zeros(0)))))


def test_means_of_integers_are_exact() -> None:
    host = np.array([2**62 + 1, 2**62 + 3, -(2**62), 5], np.int64)
    for each in (host, host.astype(np.uint64), host.astype(np.int8), host > 3):
        with ad.simulate(2), ad.reproducible():
            found = np.mean(on((2,), each))
            assert found.dtype == np.float64
            assert float(np.asarray(found)) == float(Fraction(sum(map(int, each)), 4))


def test_the_scope_ends_and_belongs_to_its_context() -> None:
    host = np.array([1.0, 1e100, 1.0, -1e100])
    with ad.simulate(1):
        x = ad.device_put(host)
        plain = float(np.asarray(x.sum()))
        assert plain != 2.0
        with ad.reproducible():
            with ad.reproducible():
                assert float(np.asarray(x.sum())) == 2.0
            assert float(np.asarray(x.sum())) == 2.0
            seen: list[float] = []
            thread = threading.Thread(target=lambda: seen.append(float(np.asarray(x.sum()))))
            thread.start()
            thread.join()
        assert float(np.asarray(x.sum())) == plain
        assert seen == [plain]
        assert float(np.asarray(ad.reproducible()(lambda: x.sum())())) == 2.0


def test_integers_and_products_of_matrices_compute_as_usual() -> None:
    with ad.simulate(2):
        x, a = on((2,), np.arange(10)), on((2,), np.arange(12.0).reshape(4, 3))
        plain = [np.asarray(f) for f in (x.sum(), np.dot(x, x), a @ np.ones(3), np.cumsum(a))]
        with ad.reproducible():
            for one, two in zip(plain, (x.sum(), np.dot(x, x), a @ np.ones(3), np.cumsum(a)), strict=True):
                np.testing.assert_array_equal(one, np.asarray(two))


def test_vectors_that_do_not_fit_are_refused_as_usual() -> None:
    with ad.simulate(2), ad.reproducible():
        x = on((2,), np.arange(4.0))
        with pytest.raises(ValueError, match="dot"):
            np.dot(x, np.arange(5.0))
