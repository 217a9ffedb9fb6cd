# SPDX-License-Identifier: Apache-2.0
"""Options and edge cases of NumPy functions: value, dtype, shape, `out` and class of error are those of NumPy.

No result is gathered silently. The files of `recorded/` list the calls that differ, and how.
"""

from __future__ import annotations

import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AxisType, NamedSharding, P
from recorded_texts import check_recorded

if np.lib.NumpyVersion(np.__version__) < "2.3.0":
    pytest.skip("the recorded calls are those of newer versions of NumPy", allow_module_level=True)

F = np.arange(1.0, 49.0).reshape(4, 6, 2) % 7.0 - 2.0
I = np.arange(48).reshape(4, 6, 2) % 11 - 3  # noqa: E741 - a name in the calls below
V = np.array([3.0, -1.0, 2.0, 2.0, -5.0, 0.5, 7.0, 1.0])
N = np.where(F == 1.0, np.nan, F)
B = I > 2
C = F + 1j * I
M = F[:, :4, 0]


def out(*shape, dtype=float):
    return np.full(shape, 99, dtype)


# Functions of the operands by name. "out" in a text makes an ndarray whose content is compared too.
CALLS = """
np.round(f, 0) | np.round(f, 1) | np.round(f, 0, out(4, 6, 2)) | np.round(v, -1) | np.round(f, 0, out(4, 6, 2, dtype=int))
np.take(v, [0, -1, 3]) | np.take(f, [1, 0], 1) | np.take(f, 2, axis=0) | np.take(v, [9]) | np.take(v, [-9])
np.take(v, [9, -9], mode="wrap") | np.take(v, [9, -9], mode="clip") | np.take(v, [7]) | np.take(v, [-8]) | np.take(v, [8])
np.take(v, [0, 1], out=out(2)) | np.take(v, [0, 1], out=out(2, dtype=np.float32)) | np.take(v, [0.5]) | np.take(v, [])
np.take(i, [0, 1], 0, out(2, 6, 2, dtype=np.int8)) | np.take(v, [True, False]) | np.take(f, [[0, 1], [2, 3]], 1)
np.take_along_axis(f, np.argsort(F, 1), 1) | np.take_along_axis(v, np.array([1, -8]), 0) | np.take_along_axis(f, I, None)
np.take_along_axis(v, np.array([8]), 0) | np.take_along_axis(v, np.array([-9]), 0) | np.take_along_axis(v, V, 0)
np.take_along_axis(f, np.zeros((4, 6), int), 1) | np.take_along_axis(f, np.zeros((1, 1, 2), int), 1)
np.take_along_axis(f, np.argsort(F)) | np.take_along_axis(v, np.argsort(V))
np.select([f > 1, f > 0], [f, -f]) | np.select([f > 1, f > 0], [f, -f], 7) | np.select([f > 1], [f, f]) | np.select([], [])
np.quantile(v, 0.5) | np.quantile(f, [0.25, 0.5], axis=1) | np.quantile(f, 0.3, axis=(0, 2)) | np.median(f, axis=1)
np.quantile(f, 0.5, axis=2, keepdims=True) | np.percentile(f, 30, axis=1, out=out(4, 2)) | np.quantile(v, 2.0)
np.quantile(f, 0.5, axis=1, out=out(4, 3)) | np.quantile(v, 0.3, method="lower") | np.quantile(v, 0.3, method="spam")
np.nanmedian(n, axis=1) | np.nanquantile(n, 0.4, axis=2) | np.nanpercentile(n, [10, 90], axis=1) | np.median(v, keepdims=True)
np.diff(v) | np.diff(f, 2, axis=1) | np.diff(f, 0) | np.diff(f, -1) | np.diff(v, 8) | np.diff(v, 7) | np.diff(v, 9)
np.diff(v, prepend=0) | np.diff(v, append=[1, 2]) | np.diff(f, axis=1, prepend=0, append=9) | np.diff(b, axis=1)
np.trapezoid(f, axis=1) | np.trapezoid(f, dx=0.5, axis=1) | np.trapezoid(f, np.arange(6.0), axis=1) | np.trapezoid(v)
np.mean(f) | np.mean(f, 1) | np.mean(f, (0, 2)) | np.mean(f, -1, keepdims=True) | np.mean(i, 1) | np.mean(i, dtype=int)
np.mean(f, 1, out=out(4, 2)) | np.mean(f, 1, out=out(4, 2, dtype=np.float32)) | np.mean(i, 1, out=out(4, 2, dtype=int))
np.mean(f, where=B) | np.mean(f, 1, where=B) | np.mean(f, (), keepdims=True) | np.mean(f[:0]) | np.mean(f[:0], 1)
np.nanmean(n) | np.nanmean(n, 1) | np.nanmean(n, 1, where=B) | np.nanmean(n, dtype=int) | np.nanmean(i, 1) | np.mean(c, 1)
np.var(f) | np.var(f, 1) | np.var(f, 1, ddof=1) | np.var(f, 1, ddof=6) | np.var(f, 1, ddof=7) | np.std(f, (0, 1))
np.var(f, 1, correction=1) | np.var(f, 1, ddof=1, correction=1) | np.std(f, 1, keepdims=True) | np.var(i, 1) | np.var(c, 1)
np.var(f, 1, mean=np.mean(F, 1, keepdims=True)) | np.var(f, 1, where=B) | np.var(f, 1, dtype=int) | np.var(i, dtype=int)
np.nanvar(n, 1) | np.nanstd(n, 1, ddof=1) | np.nanvar(n, 2, ddof=2) | np.var(f, 1, out=out(4, 2)) | np.var(f[:, :0], 1)
np.average(f) | np.average(f, 1) | np.average(f, 1, weights=np.arange(6)) | np.average(f, weights=F + 3)
np.average(f, 1, returned=True) | np.average(f, 1, np.arange(6.0), True) | np.average(f, 1, np.zeros(6))
np.average(f, 1, np.ones(5)) | np.average(f, weights=np.ones(6)) | np.average(f, (0, 1), np.ones((4, 6)), keepdims=True)
np.linalg.norm(f) | np.linalg.norm(f, axis=1) | np.linalg.norm(f, 1, 1) | np.linalg.norm(f, 0, 1) | np.linalg.norm(f, 3, 1)
np.linalg.norm(f, np.inf, 1) | np.linalg.norm(f, -np.inf, 1) | np.linalg.norm(f, -1, 1) | np.linalg.norm(f, -2, 1)
np.linalg.norm(f, "fro", (1, 2)) | np.linalg.norm(f, 1, (1, 2)) | np.linalg.norm(f, -1, (1, 2)) | np.linalg.norm(f, "spam", 1)
np.linalg.norm(f, np.inf, (1, 2)) | np.linalg.norm(f, -np.inf, (1, 2)) | np.linalg.norm(f, 2, (1, 2), True)
np.linalg.norm(f, -2, (1, 2)) | np.linalg.norm(f, "nuc", (1, 2)) | np.linalg.norm(f, 3, (1, 2)) | np.linalg.norm(f, axis=(0, 1, 2))
np.linalg.norm(f, 2) | np.linalg.norm(v, 2) | np.linalg.norm(c, axis=1) | np.linalg.norm(c, 1, 1) | np.linalg.norm(i, axis=1)
np.linalg.norm(f[:, :0], np.inf, 1) | np.linalg.norm(f[:, :0], -np.inf, 1) | np.linalg.norm(f[:, :0], axis=1)
np.linalg.vector_norm(f, axis=1) | np.linalg.vector_norm(f, ord=3) | np.linalg.matrix_norm(f) | np.linalg.matrix_norm(f, ord=1)
np.ptp(f) | np.ptp(f, 1) | np.ptp(f, 1, out=out(4, 2)) | np.ptp(f, 1, out=out(4, 2, dtype=np.float32)) | np.ptp(f, (0, 2), keepdims=True)
np.ptp(f, 1, out=out(4, 2, dtype=int)) | np.ptp(f[:, :0], 1) | np.ptp(i) | np.count_nonzero(f, 1) | np.count_nonzero(i, keepdims=True)
np.sum(f) | np.sum(f, 1) | np.sum(f, (0, 2)) | np.sum(f, ()) | np.sum(f, 1, initial=5) | np.sum(f, 1, where=B) | np.sum(b, 1)
np.sum(f, 1, dtype=np.float32) | np.sum(f, 1, out=out(4, 2)) | np.sum(f, 1, keepdims=True, out=out(4, 1, 2)) | np.sum(f, 3)
np.sum(f, (1, 1)) | np.sum(f, -4) | np.prod(f, 1) | np.max(f, 1) | np.max(f, initial=3) | np.max(f, 1, where=B, initial=-9)
np.max(f, 1, where=B) | np.max(f[:, :0], 1) | np.max(f[:, :0], 1, initial=0) | np.min(f, (0, 1)) | np.min(f, 2, keepdims=True)
np.any(f, 1) | np.all(f, 1) | np.any(f) | np.all(b, (0, 1)) | np.nansum(n, 1) | np.nanprod(n, 1) | np.nanmax(n, 1) | np.nanmin(n)
np.argmax(f) | np.argmax(f, 1) | np.argmin(f, 2, keepdims=True) | np.argmax(f, 1, out=out(4, 2, dtype=np.intp)) | np.nanargmax(n, 1)
np.argmax(f[:, :0], 1) | np.nanargmin(n, 2) | np.add.reduce(f) | np.add.reduce(f, None) | np.maximum.reduce(f, 1) | np.subtract.reduce(f)
np.add.accumulate(f) | np.add.accumulate(f, 1) | np.add.accumulate(f, None) | np.maximum.accumulate(f, 2) | np.subtract.accumulate(f, 1)
np.add.accumulate(v, None) | np.add.accumulate(f, 1, out=out(4, 6, 2)) | np.add.accumulate(i, 1, np.int8)
np.cumsum(f, 1) | np.cumsum(v) | np.cumprod(f, 2) | np.cumsum(i, 1, dtype=float) | np.cumsum(f, 1, out=out(4, 6, 2)) | np.nancumsum(n, 1)
np.nancumprod(n, 1) | np.cumulative_sum(v) | np.cumulative_sum(f, axis=1, include_initial=True) | np.cumulative_sum(f)
np.cumulative_sum(v, include_initial=True, out=out(9)) | np.cumulative_sum(v, include_initial=True, out=out(9, dtype=np.float32))
np.cumulative_prod(f, axis=1, include_initial=True) | np.cumulative_sum(v, include_initial=True, out=out(8)) | np.cumulative_sum(i, axis=-1)
np.dot(m, m) | np.dot(v, v) | np.dot(m, 2.0) | np.dot(m, m, out(4, 4)) | np.dot(m, m, out(4, 4, dtype=int)) | np.dot(m, m, out(4, 4).T)
np.dot(m, m, out(4, 3)) | np.dot(f, m) | np.inner(m, m) | np.inner(v, 2) | np.vdot(v, v) | np.vdot(c, c) | np.vdot(m, v)
np.outer(v, v) | np.outer(m, v, out(16, 8)) | np.linalg.outer(v, v) | np.linalg.outer(m, v) | np.linalg.outer(v, m)
np.tensordot(m, m) | np.tensordot(m, m, 1) | np.tensordot(f, f, ((1, 2), (1, 2))) | np.tensordot(f, f, (0, 0)) | np.tensordot(f, m, 3)
np.matmul(m, m) | np.matmul(v, v) | np.matmul(f, f) | np.matmul(m, m, dtype=np.float32) | np.matmul(m, m, out=out(4, 4)) | np.matmul(m, 2)
np.vecdot(f, f) | np.vecdot(f, f, axis=1) | np.matvec(m, m) | np.vecmat(m, m) | np.kron(m, v) | np.cross(f[..., [0, 1, 0]], f[..., [1, 1, 0]])
np.einsum("ij,jk->ik", m, m) | np.einsum("ij,jk", m, m) | np.einsum("ii->i", m) | np.einsum("ii", m) | np.einsum("ij->ji", m)
np.einsum("...i,...i", f, f) | np.einsum("ij,ij,ij->i", m, m, m) | np.einsum("ij,kj->", m, m) | np.einsum(m, [0, 1], m, [1, 2], [0, 2])
np.einsum("ij,jk->ik", m, m, out=out(4, 4)) | np.einsum("ij,jk->ik", m, m, dtype=np.float32, casting="same_kind") | np.einsum()
np.einsum("ij,jk->ik", m, m, out=out(4, 4, dtype=complex)) | np.einsum("ij,jk->ik", m, m[:1]) | np.einsum("ij", v) | np.einsum("ij->ik", m)
np.einsum("ij,jk->ik", m, m, optimize=True) | np.einsum("i j , jk -> i k", m, m) | np.einsum("i.j", m) | np.einsum("ij,jk,kl->il", m, m, m)
np.linalg.matrix_power(m, 3) | np.linalg.multi_dot([m, m, m]) | np.trace(m) | np.trace(f, 1) | np.trace(f, -1, 0, 1) | np.diagonal(m, 1)
np.diagonal(f, -1, 0, 1) | np.diag(v, 1) | np.diag(m, -1) | np.tril(m, -1) | np.triu(f, 1) | np.triu(m)
np.concatenate([f, f]) | np.concatenate([f, f], 1) | np.concatenate([f, v], None) | np.concatenate(f, 0) | np.concatenate([f, v])
np.concatenate([f, f], 3) | np.concatenate([f, f], dtype=np.float32) | np.concatenate([f, f], dtype=int) | np.concatenate([f, i], casting="no")
np.concatenate([f, f], out=out(8, 6, 2)) | np.concatenate([v[0], v]) | np.concatenate([]) | np.concatenate([f, f[:, :3]], 1)
np.stack([f, f]) | np.stack([f, f], 1) | np.stack([f, f], -1) | np.stack([v, v], out=out(2, 8)) | np.stack([]) | np.stack([f, v]) | np.stack([v], 2)
np.vstack([v, v]) | np.hstack([m, m]) | np.hstack([v, v]) | np.dstack([m, m]) | np.column_stack([v, v]) | np.block([[m, m], [m, m]])
np.block([m, 1]) | np.block([[m], [m]]) | np.block([]) | np.block(m) | np.block([[m], m]) | np.unstack(f, axis=1) | np.unstack(f[0, 0, 0])
np.append(v, [1, 2]) | np.append(f, f, 1) | np.insert(v, 2, 9) | np.insert(f, [1, 3], 5, axis=1) | np.delete(v, [0, 2]) | np.delete(f, 1, 1)
np.split(v, 4) | np.split(v, 3) | np.split(f, [1, 3], 1) | np.array_split(v, 3) | np.array_split(f, 4, 1) | np.hsplit(f, 2) | np.dsplit(f, 2)
np.moveaxis(f, 0, 2) | np.moveaxis(f, (0, 1), (1,)) | np.moveaxis(f, [0, 1], [1, 0]) | np.moveaxis(f, 0, 3) | np.rollaxis(f, 2) | np.swapaxes(f, 0, 2)
np.flip(f) | np.flip(f, 1) | np.flip(f, (0, 2)) | np.fliplr(m) | np.fliplr(v) | np.flipud(v) | np.flipud(v[0]) | np.roll(f, 1) | np.roll(f, 2, 1)
np.roll(f, (1, 2), (0, 1)) | np.roll(v, -9) | np.rot90(m) | np.rot90(m, 2) | np.rot90(m, 3) | np.rot90(m, 4) | np.rot90(m, -1) | np.rot90(f, 1, (1, 2))
np.rot90(m, 1, (1, 0)) | np.rot90(v) | np.rot90(f, 1, (0, 0)) | np.transpose(f) | np.transpose(f, (2, 0, 1)) | np.transpose(f, (0, 0, 1))
np.squeeze(f[:, :1]) | np.squeeze(f[:, :1], 1) | np.squeeze(f, 1) | np.squeeze(f[0, 0, 0], 0) | np.squeeze(f) | np.expand_dims(f, (0, 2)) | np.expand_dims(v, 3)
np.reshape(v, (4, 2)) | np.reshape(v, -1) | np.reshape(v, (2, -1)) | np.reshape(v, (3, -1)) | np.reshape(v, (-1, -1)) | np.reshape(v, (8,), copy=True)
np.reshape(f[:0], (0, -1)) | np.reshape(f[:0], (2, -1)) | np.reshape(f[:, :0], (4, 0)) | np.reshape(v, ()) | np.reshape(v[:1], ())
np.ravel(f) | np.ravel(v) | np.atleast_1d(v[0]) | np.atleast_2d(v) | np.atleast_3d(v, m) | np.atleast_3d(m) | np.atleast_2d(v, f) | np.resize(v, (3, 4))
np.tile(v, 2) | np.tile(f, (2, 1, 1)) | np.tile(v, (2, 2)) | np.repeat(f, 2, 1) | np.repeat(v, [0, 1, 2, 0, 1, 2, 0, 1]) | np.repeat(v, -1) | np.repeat(f, 2)
np.pad(v, 2) | np.pad(f, ((0, 0), (1, 2), (0, 0)), constant_values=7) | np.pad(v, (1, 2), "edge") | np.pad(f, {1: 2}) | np.pad(f, {-1: (1, 0)})
np.pad(v, 2, "spam") | np.pad(f, ((0, 0), (2, 2), (1, 1)), "reflect") | np.broadcast_to(v, (3, 8)) | np.broadcast_to(v, (8, 3)) | np.broadcast_to(v[:1], (4,))
np.meshgrid(v, v[:3]) | np.meshgrid(v, v[:3], indexing="ij") | np.meshgrid(v, v[:3], sparse=True) | np.meshgrid(v, v, indexing="spam")
np.sort(f) | np.sort(f, 1) | np.sort(f, None) | np.argsort(f, 1) | np.sort(v, stable=True) | np.partition(f, 2, 1) | np.argpartition(v, 3) | np.sort(c, 1)
np.searchsorted(np.sort(V), v) | np.searchsorted(np.sort(v), 2.0) | np.searchsorted(np.sort(v), [0, 2], "right") | np.digitize(v, [0, 2])
np.digitize(v, [2, 0], right=True) | np.bincount(np.abs(i[:, 0, 0])) | np.bincount(np.abs(i[:, 0, 0]), minlength=9) | np.interp(v, [0, 1], [5, 6])
np.unique(v) | np.unique(v, return_counts=True) | np.unique(i, return_inverse=True, return_index=True) | np.isin(v, [2.0, 7.0]) | np.isin(v, [2.0], invert=True)
np.nonzero(f) | np.flatnonzero(v) | np.argwhere(m) | np.where(f > 0, f, 1) | np.where(f > 0) | np.extract(v > 0, v) | np.compress([True, False, True], f, 0)
np.clip(f, 0, 2) | np.clip(f, None, 2) | np.clip(f, 0, None) | np.clip(f, None, None) | np.clip(f, 0, 2, out=out(4, 6, 2)) | np.clip(i, -999, 2**70) | np.clip(f, 2, 0)
np.real(c) | np.imag(c) | np.angle(c) | np.angle(c, True) | np.isposinf(v) | np.isneginf(v, out(8, dtype=bool)) | np.isreal(c) | np.iscomplex(c) | np.conjugate(c)
np.nan_to_num(n) | np.nan_to_num(n, nan=3.0) | np.sinc(f) | np.i0(v) | np.unwrap(v) | np.gradient(f, axis=1) | np.ediff1d(v) | np.convolve(v, [1, 2]) | np.correlate(v, v)
np.add(f, 1, out=out(4, 6, 2)) | np.add(f, 1, where=B, out=out(4, 6, 2)) | np.add(f, 1, dtype=np.float32) | np.add(f, 1, order="F") | np.add(f, 1, subok=True)
np.add(f, 1, casting="no") | np.add(i, 1.5, out=out(4, 6, 2, dtype=int)) | np.divmod(f, 2) | np.divmod(i, 0) | np.modf(f) | np.frexp(f) | np.add(f, v)
np.array_equal(f, f) | np.array_equal(f, v) | np.array_equal(n, n) | np.array_equal(n, n, equal_nan=True) | np.allclose(f, f + 1e-9) | np.allclose(f * 0, f * 0 + 1e-7) | np.allclose(f, f + 0.5) | np.isclose(f, f + 1e-3)
np.isclose(n, n, equal_nan=True) | np.copy(f) | np.zeros_like(f) | np.ones_like(f, dtype=int) | np.full_like(f, 7) | np.full_like(f, 3, shape=(2, 2)) | np.empty_like(f).shape
np.shape(f) | np.size(f) | np.size(f, 1) | np.ndim(f) | np.iscomplexobj(c) | np.isrealobj(c) | np.result_type(f, i) | np.can_cast(f.dtype, int) | np.min_scalar_type(f)
f.sum(1) | f.mean(axis=(0, 1)) | f.reshape(8, -1) | f.reshape((6, 8)) | f.astype(int) | f.astype(np.float32, copy=False) | f.T | f.transpose(2, 1, 0) | f.flatten()
f[1] | f[1, 2, 1] | f[..., 0] | f[:, ::2] | f[::-1] | f[[0, 2]] | f[[0, 2], [1, 1]] | f[F > 0] | f[:, None, 1:3] | f[4] | f[-5] | f[0, 0, 0, 0] | f[:, [True] * 3] | f[5:]
f[-1, -6:-1:2, 1] | f[:, 4:1:-2] | f[1:1] | f[np.array(2)] | f[:, np.array([[0, 1], [5, 4]])] | f[None, ...] | f[..., None] | f["a"] | f[1.0] | f[True] | f[[]]
f.max(2) | f.argmax() | f.clip(0, 1) | f.round(1) | f.cumsum(1) | f.prod() | f.var(1) | f.std() | f.any() | f.all(1) | f.squeeze() | f.repeat(2, 0) | f.dot(m) | f.ravel()
f.item(3) | f.item() | f.item(1, 2, 1) | f.tolist() | f.nbytes | f.ndim | f.size | f.itemsize | len(f) | len(f[0, 0, 0]) | float(f[0, 0, 0]) | int(f[1, 1, 1]) | bool(f[0, 0, 0]) | bool(f)
f + i | f - 2 | 2 - f | f * f | f / 2 | f // 2 | f % 2 | f**2 | -f | abs(f) | f > i | f == 1 | f != f | i & 3 | i | 4 | i ^ 1 | ~i | i << 1 | i >> 1 | m @ m | divmod(f, 3)
""".strip().splitlines()  # noqa: E501
TEXTS = [text.strip() for line in CALLS for text in line.split(" | ")]


def outcome(text, operands):
    """The value and what was written to `out`, or the class of the error."""
    made = []

    def recorded_out(*shape, dtype=float):
        made.append(out(*shape, dtype=dtype))
        return made[-1]

    names = {"np": np, "F": F, "I": I, "V": V, "B": B, "M": M, "out": recorded_out, **operands}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return eval(text, names), made
        except (TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError) as error:
            return error, made


def check_equal(found, expected):
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, two in zip(found, expected, strict=True):
            check_equal(one, two)
    elif isinstance(expected, (np.ndarray, np.generic)):
        found = np.asarray(found)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    else:
        assert found == expected


PLACEMENTS = {
    "one device": (),
    "rows": ("x",),
    "replicated": (None,),
}


@pytest.fixture(params=PLACEMENTS)
def operands(request):
    spec = PLACEMENTS[request.param]
    with ad.simulate(4):
        mesh = ad.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

        def placed(value):
            return ad.device_put(value, NamedSharding(mesh, P(*spec)) if spec else ad.devices()[1])

        yield {name: placed(value) for name, value in PLAIN.items()}


PLAIN = {"f": F, "i": I, "v": V, "n": N, "b": B, "c": C, "m": M}


def check_still_placed(found, expected):
    """Raises AssertionError where NumPy's ndarray is an ndarray here too: the operands were gathered silently."""
    if isinstance(expected, (list, tuple)):
        for one, two in zip(found, expected, strict=True):
            check_still_placed(one, two)
    elif isinstance(expected, np.ndarray):
        assert isinstance(found, ad.Array), f"expected an Array, got {type(found).__name__}"


def test_recorded_calls_have_numpys_values_and_errors(operands, request):
    """The file lists only calls that differ from NumPy: those that are refused, and other classes of errors."""
    placement = request.node.callspec.params["operands"]
    different = {}
    for text in TEXTS:
        expected, written = outcome(text, PLAIN)
        found, into = outcome(text, operands)
        if isinstance(expected, Exception):
            if not isinstance(found, type(expected)):
                different[text] = f"{type(found).__name__}; expected {type(expected).__name__}"
        elif isinstance(found, Exception):
            different[text] = f"{found}"
        else:
            try:
                check_equal(found, expected)
                check_equal(into, written)
                if "out(" not in text:
                    check_still_placed(found, expected)
            except AssertionError as error:
                different[text] = f"differs: {error}"
    check_recorded(f"calls_{placement.replace(' ', '_')}", different)
