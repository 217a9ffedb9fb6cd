# SPDX-License-Identifier: Apache-2.0
"""Texts of refused calls of NumPy's functions, and of a.at; compared as a whole."""

import artifex_devices as ad
import numpy as np
import pytest


@pytest.fixture(scope="module")
def x():
    with ad.simulate(4):
        yield ad.device_put(np.arange(16.0).reshape(4, 4))


@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda x: np.take(x.astype(np.float32), [0], out=np.zeros(1)),
            TypeError,
            "take: out of dtype float64 is not safely cast to float32; expected float32, got float64; make it by "
            "np.empty(shape, np.float32)",
        ),
        (
            lambda x: np.take(x, [0], mode="wrong"),
            ValueError,
            "take: mode 'wrong' is not known; expected 'raise', 'wrap' or 'clip'; choose one of them",
        ),
        (
            lambda x: np.einsum("ij,jk", x, x, out=np.zeros((4, 3))),
            ValueError,
            "einsum: out has another shape than the result; expected (4, 4), got (4, 3); create it by np.empty((4, 4), "
            "dtype)",
        ),
        (
            lambda x: np.einsum("ij,jk", x, x, out=np.zeros((4, 4), np.int32)),
            TypeError,
            "einsum: out of dtype int32 cannot hold the result; expected float64, got int32; create it by "
            "np.empty((4, 4), np.float64)",
        ),
        (
            lambda x: np.einsum(x, list(range(60)), []),
            ValueError,
            "einsum: 60 different labels; expected at most 52",
        ),
        (
            lambda x: np.trapezoid(x, np.ones((2, 4))),
            ValueError,
            "trapezoid: sample points of shape (2, 4) differ between shards; expected one dimension; pass one row of "
            "points, or gather: np.asarray(y)",
        ),
        (
            lambda x: np.trapezoid(x, x),
            TypeError,
            "trapezoid: sample points must be on the host; expected an ndarray or None, got an Array; pass "
            "np.asarray(x)",
        ),
        (
            lambda x: x.at[0].set("abc"),
            TypeError,
            "at[...].set: the values: dtype <U3 is not supported on a device; expected a bool, integer, float or "
            "complex dtype of NumPy or ml_dtypes; convert it to numbers first, for example by x.astype(np.float32)",
        ),
        (
            lambda x: np.piecewise(x, [x > 3], [float, np.int32]),
            TypeError,
            "piecewise: this NumPy function does not support Arrays; expected NumPy arrays; gather first: "
            "np.piecewise(np.asarray(x), [np.asarray(y)], [float, np.int32])",
        ),
    ],
)
def test_refused_calls(x, call, error, text):
    with pytest.raises(error) as raised:
        call(x)
    assert str(raised.value) == text


def test_a_sharded_dimension_is_not_squeezed():
    with ad.simulate(4):
        sharding = ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P("x"), uneven="last-short")
        x = ad.device_put(np.zeros((1, 4)), sharding)
        with pytest.raises(ad.errors.ShardingTypeError) as raised:
            np.squeeze(x)
    assert str(raised.value) == (
        "squeeze: dimensions [0] of size 1 are sharded over [('x',)]: only one device has elements; expected unsharded "
        f"ones, got {sharding}; replicate it first: ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P()))"
    )


def test_updates_are_named_by_their_index(x):
    assert repr(x.at) == "<at of an Array of shape (4, 4)>"
    assert repr(x.at[1:3, None]) == "<at[(slice(1, 3, None), None)] of an Array of shape (4, 4)>"


@pytest.mark.parametrize("edgeitems", [0, 1, 2])
def test_values_are_summarized_as_numpy_does(x, edgeitems):
    with np.printoptions(edgeitems=edgeitems, threshold=3):
        assert str(x) == str(np.asarray(x))
