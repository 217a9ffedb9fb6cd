# SPDX-License-Identifier: Apache-2.0
"""The scope in which sums of Arrays have the same bits on any mesh."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from artifex_devices._base.public_path import public

_is_on: ContextVar[bool] = ContextVar("sums of Arrays are reproducible", default=False)


@public("artifex_devices")
@contextlib.contextmanager
def reproducible() -> Iterator[None]:
    """Makes sums of Arrays exact and rounds them once, in a `with` block or a decorated function.

    The result then depends on the elements only: it has the same bits for every number of devices, every sharding and
    every order of the elements. This covers floating-point and complex results of `sum`, `mean`, `var`, `std`, their
    `nan` variants, `np.linalg.norm` and `np.linalg.vector_norm`, `np.vdot`, and `np.dot`, `np.inner`, `np.matmul` and
    `np.vecdot` of vectors. Other functions compute as usual: products of matrices, `einsum`, `cumsum`, `prod`, weighted
    averages and Fourier transforms. So do functions of NumPy on the blocks inside `shard_map`, where
    `lax.psum(..., reproducible=True)` and `lax.sum_over` do the same work.

    The scope belongs to the calling context, as `set_mesh` does: other threads are not affected.

    Returns:
        A context manager, which also decorates functions.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> x = np.array([1e16, 1.0, -1e16, 1.0])
        >>> with ad.simulate(4), ad.reproducible():
        ...     print(float(ad.device_put(x, ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P("x"))).sum()))
        2.0
    """
    token = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(token)


def is_reproducible() -> bool:
    """Returns whether the calling context is inside `reproducible()`."""
    return _is_on.get()
