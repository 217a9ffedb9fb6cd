# SPDX-License-Identifier: Apache-2.0
"""numpy.linalg on stacks of matrices: factorizations, inverses, determinants, ranks and systems of equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._array_ops.core.arguments import array_operand, as_operand
from artifex_devices._array_ops.core.per_block import matrices, over_matrices
from artifex_devices._array_ops.core.registry import implements, implements_each
from artifex_devices._array_ops.linalg.contraction import Labels, contract
from artifex_devices._array_ops.shape.joining import stack
from artifex_devices._array_ops.shape.reshaping import expand_dims, squeeze
from artifex_devices._base.argument_types import Operand
from artifex_devices._base.checks import failure
from artifex_devices._core import Array
from artifex_devices._runtime.gpu_block import is_gpu_block


@implements_each(
    *(np.linalg.cholesky, np.linalg.det, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.inv, np.linalg.matrix_power),
    *(np.linalg.qr, np.linalg.slogdet, np.linalg.svd, np.linalg.svdvals),
)
def _per_matrix(function: Callable[..., Any], a: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    name = f"linalg.{function.__name__}"
    return over_matrices(name, array_operand(name, a), lambda block: function(block, *args, **kwargs))


def _with_operand(
    operation: str, function: Callable[[NDArray[Any], Any], Any], a: Operand, b: Operand, core: Labels, out: Labels
) -> Array:
    """Returns function(matrices, b) for stacks that broadcast; the result is sharded as the operands in their stacks.

    The labels of the other dimensions are ("rows", "columns") for a, `core` for b and `out` for the result.
    """
    dtype = function(*(np.empty((0, *x.shape[x.ndim - n :]), x.dtype) for x, n in ((a, 2), (b, len(core))))).dtype
    stacks = [tuple(range(n - x.ndim, 0)) for x, n in ((a, 2), (b, len(core)))]
    labels = [(*stacks[0], "rows", "columns"), (*stacks[1], *core)]

    def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
        np.copyto(output, function(*parts))

    stretches = lambda label: isinstance(label, int)  # noqa: E731 - the stacks broadcast
    return contract(operation, (a, b), labels, (*max(stacks, key=len), *out), dtype, multiply, broadcast=stretches)


@implements(np.linalg.solve)
def _solve(a: ArrayLike, b: ArrayLike) -> Operand:
    """Implements np.linalg.solve: both stacks broadcast; a vector b is one right-hand side for all matrices."""
    x, y = as_operand("linalg.solve", a), as_operand("linalg.solve", b)
    sides = expand_dims(y, 1) if y.ndim == 1 else y
    x, sides = matrices("linalg.solve", x, sides)
    solved = _with_operand("linalg.solve", _solved, x, sides, ("rows", "sides"), ("columns", "sides"))
    return squeeze(solved, -1) if y.ndim == 1 else solved


def _solved(a: Any, b: Any) -> Any:
    if is_gpu_block(a) or is_gpu_block(b):  # the stacks do not broadcast in CuPy
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (np.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b))
    return np.linalg.solve(a, b)


def _with_tolerance(
    function: Callable[..., Any], a: Operand, name: str, tolerance: ArrayLike | None, hermitian: bool, out: Labels
) -> Any:
    """Makes a function of matrices with a tolerance, which is one number or one for each matrix."""
    operation = f"linalg.{function.__name__}"
    limit: Any = tolerance
    if limit is not None:
        limit = np.asarray(limit) if np.ndim(limit) == 0 else as_operand(operation, limit)
    (a,) = matrices(operation, a)

    def compute(block: Any, each: Any = limit) -> Any:
        return function(block, hermitian=hermitian, **{name: each})

    if np.ndim(limit) == 0 and isinstance(a, Array):
        return over_matrices(operation, a, compute)
    return _with_operand(operation, compute, a, limit, (), out)


@implements(np.linalg.pinv)
def _pinv(a: ArrayLike, rcond: ArrayLike | None = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Implements np.linalg.pinv, also with a tolerance for each matrix."""
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("linalg.pinv: `rtol` and `rcond` can't be both set; expected one of them; leave rcond out")
    name, tolerance = ("rcond", rcond) if rtol is np._NoValue else ("rtol", rtol)
    operand = as_operand("linalg.pinv", a)
    return _with_tolerance(np.linalg.pinv, operand, name, tolerance, hermitian, ("columns", "rows"))


@implements(np.linalg.matrix_rank)
def _matrix_rank(
    A: ArrayLike,  # noqa: N803 - NumPy's name
    tol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: ArrayLike | None = None,
) -> Any:
    """Implements np.linalg.matrix_rank, also with a tolerance for each matrix; a vector's is 0 or 1."""
    if tol is not None and rtol is not None:
        raise ValueError("linalg.matrix_rank: `tol` and `rtol` can't be both set; expected one of them; leave tol out")
    a = as_operand("linalg.matrix_rank", A)
    if a.ndim < 2:
        return np.astype(np.any(a != 0), int)  # type: ignore[call-overload]
    name, tolerance = ("rtol", rtol) if tol is None else ("tol", tol)
    return _with_tolerance(np.linalg.matrix_rank, a, name, tolerance, hermitian, ())


@implements(np.cross, np.linalg.cross)
def _cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Returns np.cross of vectors with 3 elements, along dimensions that are not sharded."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first: Any = as_operand("cross", a)
    second: Any = as_operand("cross", b)
    one, two = np.moveaxis(first, axisa, -1), np.moveaxis(second, axisb, -1)
    for number, x in enumerate((one, two)):
        if x.shape[-1] != 3:
            raise failure(
                ValueError,
                "cross",
                "Both input arrays must be (arrays of) 3-dimensional vectors",
                expected="3 elements along the dimension",
                got=f"{x.shape[-1]} in operand {number}",
            )
    parts = [np.subtract(one[..., i] * two[..., j], one[..., j] * two[..., i]) for i, j in ((1, 2), (2, 0), (0, 1))]
    joined: Any = stack(parts, -1)
    return np.moveaxis(joined, -1, axisc)
