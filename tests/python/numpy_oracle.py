# SPDX-License-Identifier: Apache-2.0
"""NumPy as the oracle of functions on Arrays: random Arrays with tame values, and how answers are compared."""

import warnings
from dataclasses import dataclass

import artifex_devices as ad
import ml_dtypes
import numpy as np
from artifex_devices.testing import meshes, spec_entries
from artifex_devices.testing.sharding_strategies import partition_counts
from hypothesis import strategies as st

FLOATS = ("float16", "float32", "float64", "bfloat16")
NAMES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "complex64", *FLOATS)
# Of sums in this dtype, relative to the sum of absolute values.
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass(frozen=True)
class Pair:
    """The same values in NumPy and on devices."""

    host: np.ndarray
    device: ad.Array


def numbers(shape, dtype, seed, *, nan=False):
    """Values between -4 and 4 with many ties; some NaN if asked for and possible."""
    rng = np.random.default_rng(seed)
    value = rng.integers(-16, 17, size=shape) / 4
    if dtype.kind == "c":
        value = value + 1j * rng.integers(-16, 17, size=shape) / 4
    if dtype.kind in "biu":
        return np.asarray(value * 4).astype(np.int64).astype(dtype)
    value = np.asarray(value).astype(dtype)
    if nan and value.size:
        value[rng.random(shape) < 0.15] = np.nan
    return value


@st.composite
def pairs(draw, *, names=NAMES, nan=False, max_rank=3, max_side=6, uneven=True):
    """Draws a Pair: any mesh, spec, device, evenly or not; dimensions of size 0 occur."""
    dtype = dtype_of(draw(st.sampled_from(names), label="dtype"))
    shape = tuple(draw(st.lists(st.integers(0, max_side), max_size=max_rank), label="shape"))
    if draw(st.booleans(), label="no empty dimension"):
        shape = tuple(max(size, 1) for size in shape)
    value = numbers(shape, dtype, draw(st.integers(0, 99), label="seed"), nan=nan and draw(st.booleans(), label="NaN"))
    if draw(st.integers(0, 7), label="on one device") == 7:
        return Pair(value, ad.device_put(value, ad.devices()[draw(st.integers(0, 7))]))
    mesh = draw(meshes(devices=ad.devices()), label="mesh")
    entries = draw(spec_entries(mesh.axis_names, max_rank=len(shape)), label="spec")
    policy = {"uneven": "last-short"} if uneven else {}
    if not uneven:
        parts = partition_counts(entries, dict(mesh.shape))
        entries = [e if shape[d] % parts[d] == 0 else None for d, e in enumerate(entries)]
    return Pair(value, ad.device_put(value, ad.NamedSharding(mesh, ad.P(*entries), **policy)))


def axes_of(ndim):
    """Draws None, a dimension, or several, also counted from the end."""
    if not ndim:
        return st.sampled_from([None, ()])
    one = st.integers(-ndim, ndim - 1)
    several = st.lists(st.integers(0, ndim - 1), unique=True).map(tuple)
    return st.one_of(st.none(), one, several)


def outcome(call):
    """The answer, or the error."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call()
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        return error


def assert_agrees(got, expected, *, scale=None):
    """Same shape, dtype and values; floats within TOLERANCE of `scale` where that is given. Same class of errors."""
    if isinstance(expected, Exception):
        assert isinstance(got, Exception), f"got {got!r}, expected {expected!r}"
        builtin = next(c for c in type(expected).__mro__ if c.__module__ == "builtins")
        assert isinstance(got, builtin), f"got {got!r}, expected {expected!r}"
        return
    assert not isinstance(got, Exception), f"got {got!r}, expected {expected!r}"
    assert isinstance(got, ad.Array), got
    assert (got.shape, got.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    if got.dtype.kind in "biu" or scale is None:
        wide = got.dtype if got.dtype.kind != "V" else wide
        np.testing.assert_array_equal(np.asarray(got).astype(wide), np.asarray(expected).astype(wide))
        return
    one, two = np.asarray(got).astype(wide), np.asarray(expected).astype(wide)
    within = TOLERANCE[got.dtype.name] * (np.max(np.abs(scale), initial=1.0, where=np.isfinite(scale)) + 1)
    np.testing.assert_allclose(one, two, rtol=TOLERANCE[got.dtype.name], atol=within)


def magnitude(value):
    """An upper bound of what sums of `value` pass through."""
    if value.dtype.kind == "b":
        return float(value.size)
    return np.nansum(np.abs(value.astype(np.complex128)))


def check(function, pair, *, scale=None, **options):
    """The function on devices must answer as NumPy does on the host; options may hold Pairs. Returns the answer."""
    host = {key: value.host if isinstance(value, Pair) else value for key, value in options.items()}
    device = {key: value.device if isinstance(value, Pair) else value for key, value in options.items()}
    got = outcome(lambda: function(pair.device, **device))
    assert_agrees(got, outcome(lambda: function(pair.host, **host)), scale=scale)
    return got
