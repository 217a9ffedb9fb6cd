# SPDX-License-Identifier: Apache-2.0
"""Products, sums and shapes of arrays on Explicit meshes: values and specs of the results are JAX's.

What differs on purpose is in test_deviations.py, and the random tests keep clear of it: products that sum over a
dimension which both operands cut, stacks that only one operand cuts, reshapes that JAX refuses or moves silently.
"""

import numpy as np
import pytest
from both import JAX, OURS, jax
from hypothesis import assume, given, settings
from hypothesis import strategies as st

SHAPE = (8, 8)
ENTRIES = st.sampled_from([None, "x", "y", ("x", "y"), ("y", "x")])
FEW = settings(max_examples=30)  # JAX compiles each one


def functions_of(library):
    return np if library is OURS else jax.numpy


def place(library, value, entries):
    mesh = library.make_mesh((2, 4), ("x", "y"))
    assert all(kind == library.AxisType.Explicit for kind in mesh.axis_types)
    return library.device_put(value, library.NamedSharding(mesh, library.P(*entries)))


def names(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def is_valid(entries):
    used = [name for entry in entries for name in names(entry)]
    return len(set(used)) == len(used)


def answer(library, call, operands):
    """The spec of the result without trailing Nones and the value, or the name of the error's class."""
    placed = [place(library, value, entries) for value, entries in operands]
    try:
        result = call(functions_of(library), *placed)
    except Exception as error:
        return type(error).__name__, isinstance(error, ValueError), str(error)
    spec = list(result.sharding.spec)
    while spec and spec[-1] in (None, ()):
        spec.pop()
    return tuple(spec), np.asarray(result)


def assert_same_answer(call, *operands):
    """Values and specs are equal, or both raise; ours a ShardingTypeError where JAX does."""
    ours, theirs = (answer(library, call, operands) for library in (OURS, JAX))
    if len(theirs) == 3:
        assert len(ours) == 3, f"JAX raises {theirs}, ours gives {ours}"
        assert ours[:2] == ("ShardingTypeError", True), ours
        assert theirs[0] in ("ShardingTypeError", "ValueError"), theirs
        return
    assert len(ours) == 2, f"JAX gives {theirs}, ours raises {ours}"
    assert ours[0] == theirs[0]
    assert ours[1].dtype == theirs[1].dtype
    np.testing.assert_array_equal(ours[1], theirs[1])


def numbers(shape, seed=0):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float32)


def specs(rank):
    return st.tuples(*[ENTRIES] * rank).filter(is_valid)


@FEW
@given(specs(2), specs(2))
def test_sums_of_arrays(a, b):
    assert_same_answer(lambda xp, x, y: x + y, (numbers(SHAPE), a), (numbers(SHAPE, 1), b))


@FEW
@given(specs(2), specs(1))
def test_broadcast_sums(a, b):
    assert_same_answer(lambda xp, x, y: x * y, (numbers(SHAPE), a), (numbers(8, 1), b))


@FEW
@given(specs(2), specs(2))
def test_matrix_products(a, b):
    assume(not (a[1] is not None and a[1] == b[0]))
    assert_same_answer(lambda xp, x, y: x @ y, (numbers(SHAPE), a), (numbers(SHAPE, 1), b))


@FEW
@given(specs(2), specs(1))
def test_products_with_vectors(a, b):
    assume(not (a[1] is not None and a[1] == b[0]))
    assert_same_answer(lambda xp, x, y: xp.dot(x, y), (numbers(SHAPE), a), (numbers(8, 1), b))


@FEW
@given(specs(3), specs(3), st.sampled_from(["bij,bjk->bik", "bij,bjk->kib", "bij,bkj->kbi"]))
def test_einsums(a, b, text):
    b = (a[0], *b[1:])
    assume(is_valid(b))
    left, right = text.split("->")[0].split(",")
    j = left.index("j"), right.index("j")
    assume(not (a[j[0]] is not None and a[j[0]] == b[j[1]]))
    assert_same_answer(lambda xp, x, y: xp.einsum(text, x, y), (numbers((8, 8, 8)), a), (numbers((8, 8, 8), 1), b))


@FEW
@given(specs(3), st.permutations(range(3)))
def test_transposes(a, order):
    assert_same_answer(lambda xp, x: xp.transpose(x, order), (numbers((8, 16, 8)), a))
    assert_same_answer(lambda xp, x: x.T, (numbers((8, 16, 8)), a))
    assert_same_answer(lambda xp, x: xp.moveaxis(x, 0, 2), (numbers((8, 16, 8)), a))


@pytest.mark.parametrize(
    ("shape", "entries", "new"),
    [
        ((8, 4), ("x",), (32,)),
        ((8, 4), (None, "x"), (32,)),
        ((8, 4), ("x",), (2, 4, 4)),
        ((8, 4), ("x",), (4, 2, 4)),
        ((8, 4), ("y",), (4, 2, 4)),
        ((8, 4), ("y",), (2, 4, 4)),
        ((8, 4), ("x", "y"), (8, 2, 2)),
        ((8, 4), ("x", "y"), (8, 4, 1)),
        ((8, 4), ("x", "y"), (8, 1, 4)),
        ((8, 4), (None, "x"), (4, 8)),
        ((8, 1, 4), ("x", None, "y"), (8, 4)),
        ((8, 4), (("x", "y"),), (4, 2, 4)),
        ((8, 4), (("x", "y"),), (32,)),
        ((8, 4), (("x", "y"),), (2, 4, 4)),
        ((32,), ("x",), (8, 4)),
        ((32,), (("x", "y"),), (8, 4)),
        ((32,), (("x", "y"),), (2, 16)),
        ((32,), (("x", "y"),), (2, 4, 4)),
        ((8, 4), ("x",), (1, 8, 4)),
        ((8, 6), (None, "x"), (8, 2, 3)),
        ((8, 6), (None, "x"), (8, 3, 2)),
        ((8, 6), ("y", "x"), (2, 4, 6)),
        ((8, 2, 3), ("y", "x"), (8, 6)),
        ((8, 2, 3), ("y",), (16, 3)),
        ((2, 4, 4), (None, "x"), (8, 4)),
        ((2, 4, 4), ("x",), (8, 4)),
        ((2, 4, 4), (None, "x"), (2, 16)),
        ((2, 4, 4), ("x", "y"), (8, 4)),
        ((2, 4, 4), ("x", "y"), (2, 16)),
        ((8, 4), ("x",), (-1,)),
    ],
)
def test_reshapes(shape, entries, new):
    assert_same_answer(lambda xp, x: xp.reshape(x, new), (numbers(shape), entries))


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.ravel(x),
        lambda xp, x: xp.expand_dims(x, (0, 2)),
        lambda xp, x: xp.squeeze(xp.expand_dims(x, 1), 1),
        lambda xp, x: xp.broadcast_to(x, (3, 8, 8)),
        lambda xp, x: xp.flip(x, 1),
        lambda xp, x: xp.flip(x, 0),
        lambda xp, x: xp.roll(x, 3, 1),
        lambda xp, x: xp.roll(x, 3, 0),
        lambda xp, x: xp.tile(x, (1, 2)),
        lambda xp, x: xp.tile(x, (2, 1)),
        lambda xp, x: xp.pad(x, ((0, 0), (1, 2))),
        lambda xp, x: xp.triu(x, 1),
        lambda xp, x: xp.tril(x),
        lambda xp, x: xp.trace(x),
        lambda xp, x: xp.einsum("ij->j", x),
    ],
)
def test_shapes_and_turns_of_rows(call):
    assert_same_answer(call, (numbers(SHAPE), ("x",)))
