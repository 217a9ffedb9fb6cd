# SPDX-License-Identifier: Apache-2.0
"""NumPy functions on CUDA devices, through CuPy, against NumPy; run by test_cuda_stand_in.py and tools/test_gpu.py."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest

X = np.arange(128, dtype=np.float32).reshape(8, 16)  # sums of these are exact in any order
PLACES = np.array([[0, 5], [7, 2]])


def place(grid, value, *spec, **options):
    return ad.device_put(value, ad.NamedSharding(grid, ad.P(*spec), **options))


def check(made, expected):
    """An Array, or a tuple or list of Arrays, in the memory of GPUs with NumPy's values and dtype."""
    if isinstance(expected, (tuple, list)):
        assert len(made) == len(expected)
        for one, other in zip(made, expected, strict=True):
            check(one, other)
        return
    assert {device.platform for device in made.devices()} == {"gpu"}
    value = ad.device_get(made)
    assert (value.shape, value.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    np.testing.assert_array_equal(value, expected)


FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(axis=1),
    "sum of columns, kept": lambda x: x.sum(axis=0, keepdims=True),
    "sum in float64": lambda x: np.sum(x, dtype=np.float64),
    "sum of some": lambda x: np.sum(x, where=x > 9),
    "sum from a start": lambda x: np.sum(x, axis=0, initial=5),
    "prod": lambda x: np.prod(x[:, :3], axis=1),
    "mean": lambda x: x.mean(axis=0),
    "var": lambda x: np.var(x - 1, axis=1),
    "max": lambda x: x.max(axis=1),
    "min of all": lambda x: np.min(x),
    "max of some": lambda x: np.max(x, axis=0, where=x < 70, initial=-1),
    "fmax": lambda x: np.fmax.reduce(x, axis=1),
    "argmax": lambda x: x.argmax(axis=0),
    "argmin of all": lambda x: np.argmin(-x),
    "any, all": lambda x: [np.any(x > 126, axis=0), np.all(x >= 0, axis=1)],
    "count_nonzero": lambda x: np.count_nonzero(x % 3, axis=1),
    "ptp": lambda x: np.ptp(x, axis=0),
    "gcd": lambda x: np.gcd.reduce(x.astype(np.int32) * 6, axis=0),
    "bitwise_or": lambda x: np.bitwise_or.reduce(x.astype(np.int64), axis=1),
    "norm": lambda x: np.linalg.norm(x % 2, axis=1),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum, the other dimension": lambda x: x.cumsum(axis=0),
    "modf": lambda x: np.modf(x / 4),
    "where": lambda x: np.where(x > 3, x, 0),
    "clip": lambda x: np.clip(x, 3, 90),
    "nan_to_num": lambda x: np.nan_to_num(np.where(x > 50, np.float32(np.nan), x)),
    "round": lambda x: np.round(x / 8, 1),
    "real, imag": lambda x: [np.real(x + 2j), np.imag(x * 1j)],
    "matmul": lambda x: x @ x.T,
    "matmul of integers": lambda x: x.astype(np.int64).T @ x.astype(np.int64),
    "matrix by vector": lambda x: x @ np.ones(16, np.float32),
    "dot": lambda x: np.dot(x.T, x),
    "vdot": lambda x: np.vdot(x % 5, x % 3),
    "outer": lambda x: np.outer(x[0], x[1]),
    "tensordot": lambda x: np.tensordot(x, x, axes=([0, 1], [0, 1])),
    "einsum": lambda x: np.einsum("ij,kj->ki", x, x % 4),
    "row": lambda x: x[3],
    "element": lambda x: x[2, 5],
    "range": lambda x: x[1:7:2, ::-3],
    "new dimension": lambda x: x[:, None, 2:5],
    "index arrays": lambda x: x[PLACES, 3],
    "rows by an index array": lambda x: x[np.array([5, 0, -1])],
    "take": lambda x: np.take(x, PLACES, axis=1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(-x, axis=1), axis=1)[:, :4],
    "set a range": lambda x: x.at[1:3, ::4].set(-1),
    "set by an index array": lambda x: x.at[np.array([6, 1])].set(np.arange(16, dtype=np.float32)),
    "add to some": lambda x: x.at[np.array([1, 1, 2]), 4].add(10),
    "set by a mask": lambda x: x.at[x > 100].set(0),
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(8, 4, 4),
    "flip, roll": lambda x: [np.flip(x, 1), np.roll(x, 3, axis=1)],
    "expand_dims, squeeze": lambda x: [np.expand_dims(x, 1), np.squeeze(x[:, :1])],
    "broadcast_to": lambda x: np.broadcast_to(x[0], (3, 16)),
    "concatenate": lambda x: np.concatenate([x, x + 1], axis=0),
    "stack": lambda x: np.stack([x, -x], axis=1),
    "split": lambda x: np.split(x, 4, axis=1),
    "pad": lambda x: np.pad(x, 1),
    "tile, repeat": lambda x: [np.tile(x, 2), np.repeat(x, 2, axis=1)],
    "tril": lambda x: np.tril(x),
    "diagonal": lambda x: np.diagonal(x),
    "zeros_like, full_like": lambda x: [np.zeros_like(x), np.full_like(x, 7)],
    "sort": lambda x: np.sort(x[:, ::-1] % 9, axis=1),
    "argsort": lambda x: np.argsort(-x, axis=1),
    "searchsorted": lambda x: np.searchsorted(np.arange(0.0, 100.0, 9.0), x),
    "view": lambda x: x.view(np.int32),
    "nonzero": lambda x: np.nonzero(x % 5 == 0),
    "argwhere": lambda x: np.argwhere(x > 120),
    "unique": lambda x: np.unique_counts(x % 5).counts,
    "nanargmax": lambda x: np.nanargmax(np.where(x % 3 == 0, np.float32(np.nan), x), axis=1),
}


class Indexed:
    """x.at[index], which ndarrays do not have."""

    def __init__(self, value):
        self.copy = value.copy()

    def __getitem__(self, index):
        self.index = index
        return self

    def set(self, new):
        self.copy[self.index] = new
        return self.copy

    def add(self, new):
        np.add.at(self.copy, self.index, new)
        return self.copy


class WithAt(np.ndarray):
    """An ndarray with the updates of Arrays."""

    @property
    def at(self):
        return Indexed(self.view(np.ndarray))


def of_numpy(call, value):
    """The same call with an ndarray."""
    made = call(value.view(WithAt))
    return [np.asarray(each) for each in made] if isinstance(made, (list, tuple)) else np.asarray(made)


# How the operand is sharded: over both axes, except for functions that need a dimension in one piece.
BY_ROWS = ("sort", "argsort", "take_along_axis", "tile, repeat", "view")
REPLICATED = ("pad", "diagonal")


@pytest.mark.parametrize("call", FUNCTIONS, ids=str)
def test_functions_have_the_values_of_numpy(grid, call):
    spec = ("x",) if call in BY_ROWS else () if call in REPLICATED else ("x", "y")
    check(FUNCTIONS[call](place(grid, X, *spec)), of_numpy(FUNCTIONS[call], X))


@pytest.mark.parametrize("spec", [("x",), (None, "y"), (("x", "y"),), ()], ids=str)
def test_shardings_do_not_change_the_values(grid, spec):
    x = place(grid, X, *spec)
    check([x.sum(axis=0), x @ x.T, x[1:7:3], x.argmax()], [X.sum(axis=0), X @ X.T, X[1:7:3], X.argmax()])


def test_uneven_shards_have_the_values_of_numpy(grid):
    x = place(grid, X[:5], "x", uneven="last-short")
    check([x.sum(), x.max(axis=1), x.T @ x, x[::2]], [X[:5].sum(), X[:5].max(axis=1), X[:5].T @ X[:5], X[:5:2]])


def test_complex_and_small_floats_have_the_values_of_numpy(grid):
    value = (X - 60) + 1j * X[::-1]
    x = place(grid, value, "x", "y")
    check([x.sum(axis=1), x @ x.T, np.conj(x)], [value.sum(axis=1), value @ value.T, np.conj(value)])
    half = (X % 9).astype(np.float16)
    y = place(grid, half, "x", "y")
    check([y.sum(), y.mean(axis=0), y * 2], [half.sum(dtype=np.float32).astype("f2"), half.mean(axis=0), half * 2])


def test_factorizations_and_transforms_are_near_those_of_numpy(grid):
    value = np.arange(36.0).reshape(4, 3, 3) % 7 + 5 * np.eye(3)
    x = place(grid, value, "y")
    for call in (np.linalg.inv, np.linalg.det, np.linalg.svdvals, np.linalg.pinv, lambda m: np.fft.fft(m, axis=1)):
        made = call(x)
        np.testing.assert_allclose(ad.device_get(made), call(value), rtol=1e-9, atol=1e-9)
    q, r = np.linalg.qr(x)
    np.testing.assert_allclose(ad.device_get(q @ r), value, atol=1e-9)
