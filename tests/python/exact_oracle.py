# SPDX-License-Identifier: Apache-2.0
"""Sums by rational numbers, rounded once, as `ad.reproducible()` promises, and Arrays to compare with them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np

BITS = {"float64": (53, -1074), "float32": (24, -149), "float16": (11, -24), "bfloat16": (8, -133)}


def nearest(value: Fraction, dtype: Any) -> Any:
    """The number of a dtype that is nearest to a fraction, ties to even."""
    dtype = np.dtype(dtype)
    precision, least = BITS[dtype.name]
    if value == 0:
        return dtype.type(0)
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    last = Fraction(2) ** max(exponent - precision + 1, least)
    number = Fraction(round(value / last)) * last  # Python rounds ties to even
    return dtype.type(float(number))


def exact_sum(values: Iterable[Any]) -> Fraction:
    return sum((Fraction(float(value)) for value in values), Fraction(0))


def rounded_sum(values: np.ndarray, count: int = 1, dtype: Any = None) -> Any:
    """The sum of a vector divided by `count`; of complex numbers by parts."""
    if values.dtype.kind == "c":
        parts = [rounded_sum(part, count) for part in (values.real, values.imag)]
        return values.dtype.type(complex(*parts))
    return nearest(exact_sum(values) / count, values.dtype if dtype is None else dtype)


def spread(dtype: Any, count: int, seed: int = 0) -> np.ndarray:
    """Random numbers of many magnitudes, of which large ones cancel."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        real = np.zeros((), dtype).real.dtype
        return (spread(real, count, seed) + 1j * spread(real, count, seed + 1)).astype(dtype)
    reach = {"float16": 6, "bfloat16": 30, "float32": 30, "float64": 60}[dtype.name]
    found = np.ldexp(random.standard_normal(count), random.integers(-reach, reach, count))
    half = count // 2
    found[:half] = -found[half : 2 * half] * (1 + np.ldexp(random.standard_normal(half), -9))
    return random.permutation(found).astype(dtype)


def kind(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def bits(value: Any) -> bytes:
    return np.asarray(value).tobytes()


def on(sizes: tuple[int, ...], host: np.ndarray, *spec: Any) -> ad.Array:
    names = ("x", "y")[: len(sizes)]
    mesh = ad.make_mesh(sizes, names)
    spec = spec or (names,)
    return ad.device_put(host, ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short"))
