# SPDX-License-Identifier: Apache-2.0
"""repr and str of Arrays are JAX's, for every dtype, any shape and the edges of lines; so are pictures of shardings."""

import contextlib
import io

import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import MeshLayout
from both import JAX, OURS, index_map, sharding_of
from hypothesis import given
from hypothesis import strategies as st

GRID = MeshLayout(("x", "y"), (2, 4), tuple(range(8)))
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
]
SHAPES = [(), (0,), (0, 3), (3, 0), (1,), (3, 4), (2, 3, 4), (2, 2, 2, 2), (1001,), (40, 40), (2000, 2), (2, 1, 800)]


def value_of(shape, dtype):
    return np.asarray(np.random.default_rng(0).standard_normal(shape) * 5).astype(dtype)


def texts(lib, value, sharding):
    array = lib.device_put(value, sharding)
    return repr(array), str(array)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_texts_of_every_dtype(dtype):
    lengths = [(count,) for count in range(2, 40)]  # the dtype's text crosses the end of the line
    for shape in SHAPES + lengths:
        value = value_of(shape, dtype)
        assert texts(OURS, value, OURS.devices[0]) == texts(JAX, value, JAX.devices[0])


@pytest.mark.parametrize(
    ("shape", "entries"),
    [((16, 4), ("x", "y")), ((1600,), ("y",)), ((64, 64), ("y", "x")), ((8, 4, 80), (None, ("x", "y"))), ((8,), ())],
    ids=str,
)
def test_texts_of_sharded_arrays(shape, entries):
    if entries == (None, ("x", "y")):
        entries = (("x", "y"),)
    value = value_of(shape, np.float32)
    assert texts(OURS, value, sharding_of(OURS, GRID, entries)) == texts(JAX, value, sharding_of(JAX, GRID, entries))


@given(
    shape=st.lists(st.integers(0, 12), max_size=4),
    linewidth=st.integers(20, 100),
    threshold=st.integers(0, 200),
    edgeitems=st.integers(1, 4),
    dtype=st.sampled_from(["float32", "int64", "bool", "complex64"]),
)
def test_texts_under_print_options(shape, linewidth, threshold, edgeitems, dtype):
    value = value_of([2 * size if i == 0 else size for i, size in enumerate(shape)], dtype)
    entries = ("x",) if shape else ()
    with np.printoptions(linewidth=linewidth, threshold=threshold, edgeitems=edgeitems):
        ours = texts(OURS, value, sharding_of(OURS, GRID, entries))
        assert ours == texts(JAX, value, sharding_of(JAX, GRID, entries))


def picture(lib, shape, sharding, **options):
    import artifex_devices as ad
    import jax

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        (ad if lib is OURS else jax).debug.visualize_sharding(shape, sharding, **options)
    return output.getvalue()


SPECS = [(), ("x",), (None, "x"), ("x", "y"), ("y", "x"), (("x", "y"),)]
DRAWN = [(shape, spec) for shape in [(8,), (16,), (8, 8), (16, 8), (64, 8), (8, 16)] for spec in SPECS]
SIZES = [{}, {"scale": 0.5}, {"min_width": 14}, {"scale": 1.5, "max_width": 100}]


@pytest.mark.parametrize("options", SIZES, ids=str)
@pytest.mark.parametrize(("shape", "entries"), [pair for pair in DRAWN if len(pair[1]) <= len(pair[0])], ids=str)
def test_pictures_are_jaxs_where_they_have_room(shape, entries, options):
    pytest.importorskip("rich", reason="rich is not installed: JAX draws nothing")
    ours, theirs = (sharding_of(lib, GRID, entries) for lib in (OURS, JAX))
    assert index_map(ours, shape) == index_map(theirs, shape)
    our_text, jax_text = picture(OURS, shape, ours, **options), picture(JAX, shape, theirs, **options)
    if "…" in jax_text:  # no room: JAX cuts the devices' names, ours draws narrower cells
        assert all(f"CPU {number}" in our_text for number in range(8))
    else:
        assert our_text == jax_text
