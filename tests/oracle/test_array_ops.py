# SPDX-License-Identifier: Apache-2.0
"""Products, sums and shapes of arrays on Explicit meshes: values and specs of the results are JAX's.

What differs on purpose is in test_deviations.py, and the random tests keep clear of it: products that sum over a
dimension which both operands cut, stacks that only one operand cuts, reshapes that JAX refuses or moves silently.

Meshes with axes of size 1 are among them: JAX's rules know axes by name, and sizes only where they must divide.
"""

import math

import numpy as np
import pytest
from both import JAX, OURS, jax
from hypothesis import assume, given, settings
from hypothesis import strategies as st

SHAPE = (8, 8)
ENTRIES = st.sampled_from([None, "x", "y", ("x", "y"), ("y", "x")])
FEW = settings(max_examples=40)  # JAX compiles each one
SHAPES = [(2, 4), (1, 4), (4, 1), (2, 2), (1, 1)]  # of meshes
SHAPE_OF_MESH = st.sampled_from(SHAPES)


def functions_of(library):
    return np if library is OURS else jax.numpy


def place(library, value, entries, mesh_shape):
    mesh = library.make_mesh(mesh_shape, ("x", "y"))
    assert all(kind == library.AxisType.Explicit for kind in mesh.axis_types)
    return library.device_put(value, library.NamedSharding(mesh, library.P(*entries)))


def names(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def is_valid(entries):
    used = [name for entry in entries for name in names(entry)]
    return len(set(used)) == len(used)


def answer(library, call, operands, mesh_shape):
    """The spec of the result without trailing Nones and the value, or the name of the error's class."""
    placed = [place(library, value, entries, mesh_shape) for value, entries in operands]
    try:
        result = call(functions_of(library), *placed)
    except Exception as error:
        return type(error).__name__, isinstance(error, ValueError), str(error)
    spec = list(result.sharding.spec)
    while spec and spec[-1] in (None, ()):
        spec.pop()
    return tuple(spec), np.asarray(result)


def assert_same_answer(call, *operands, mesh_shape=(2, 4)):
    """Values and specs are equal, or both raise; ours a ShardingTypeError where JAX does."""
    ours, theirs = (answer(library, call, operands, mesh_shape) for library in (OURS, JAX))
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
@given(specs(2), specs(2), SHAPE_OF_MESH)
def test_sums_of_arrays(a, b, shape):
    assert_same_answer(lambda xp, x, y: x + y, (numbers(SHAPE), a), (numbers(SHAPE, 1), b), mesh_shape=shape)


@FEW
@given(specs(2), specs(1), SHAPE_OF_MESH)
def test_broadcast_sums(a, b, shape):
    assert_same_answer(lambda xp, x, y: x * y, (numbers(SHAPE), a), (numbers(8, 1), b), mesh_shape=shape)


@FEW
@given(specs(2), specs(2), SHAPE_OF_MESH)
def test_matrix_products(a, b, shape):
    assume(not (a[1] is not None and a[1] == b[0]))
    assert_same_answer(lambda xp, x, y: x @ y, (numbers(SHAPE), a), (numbers(SHAPE, 1), b), mesh_shape=shape)


@FEW
@given(specs(2), specs(1), SHAPE_OF_MESH)
def test_products_with_vectors(a, b, shape):
    assume(not (a[1] is not None and a[1] == b[0]))
    assert_same_answer(lambda xp, x, y: xp.dot(x, y), (numbers(SHAPE), a), (numbers(8, 1), b), mesh_shape=shape)


@FEW
@given(specs(3), specs(3), st.sampled_from(["bij,bjk->bik", "bij,bjk->kib", "bij,bkj->kbi"]), SHAPE_OF_MESH)
def test_einsums(a, b, text, shape):
    b = (a[0], *b[1:])
    assume(is_valid(b))
    left, right = text.split("->")[0].split(",")
    j = left.index("j"), right.index("j")
    assume(not (a[j[0]] is not None and a[j[0]] == b[j[1]]))
    assert_same_answer(
        lambda xp, x, y: xp.einsum(text, x, y), (numbers((8, 8, 8)), a), (numbers((8, 8, 8), 1), b), mesh_shape=shape
    )


@FEW
@given(specs(3), st.permutations(range(3)), SHAPE_OF_MESH)
def test_transposes(a, order, shape):
    assert_same_answer(lambda xp, x: xp.transpose(x, order), (numbers((8, 16, 8)), a), mesh_shape=shape)
    assert_same_answer(lambda xp, x: x.T, (numbers((8, 16, 8)), a), mesh_shape=shape)
    assert_same_answer(lambda xp, x: xp.moveaxis(x, 0, 2), (numbers((8, 16, 8)), a), mesh_shape=shape)


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
@pytest.mark.parametrize("mesh_shape", SHAPES, ids=str)
def test_reshapes(shape, entries, new, mesh_shape):
    sizes = dict(zip("xy", mesh_shape, strict=True))
    parts = [math.prod(sizes[name] for name in names(entry)) for entry in entries]
    if any(size % count for size, count in zip(shape, parts, strict=False)):
        pytest.skip("the mesh does not divide the shape")
    if mesh_shape == (1, 4) and (shape, new) == ((2, 4, 4), (8, 4)) and entries == ("x", "y"):
        pytest.skip("JAX moves elements silently, see test_deviations")
    assert_same_answer(lambda xp, x: xp.reshape(x, new), (numbers(shape), entries), mesh_shape=mesh_shape)


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


# What JAX gives for all these specs on meshes of all sizes, or refuses as ours does.
EVERYWHERE = {
    "transpose": lambda xp, x: x.T,
    "negative": lambda xp, x: -x,
    "sum": lambda xp, x: xp.sum(x),
    "sum of rows": lambda xp, x: xp.sum(x, 0),
    "sum of columns, kept": lambda xp, x: xp.sum(x, 1, keepdims=True),
    "mean": lambda xp, x: xp.mean(x, 1),
    "variance": lambda xp, x: xp.var(x, 0, keepdims=True),
    "maximum": lambda xp, x: xp.max(x, 0),
    "argmax": lambda xp, x: xp.argmax(x, 1),
    "any": lambda xp, x: xp.any(x > 1, 0),
    "new dimension": lambda xp, x: x[:, None],
    "squeeze": lambda xp, x: xp.squeeze(xp.expand_dims(x, 1), 1),
    "broadcast": lambda xp, x: xp.broadcast_to(x, (3, 8, 8)),
    "one row": lambda xp, x: x[0],
    "half of the rows": lambda xp, x: x[:4],
    "backwards": lambda xp, x: x[::-1],
    "picked rows": lambda xp, x: x[np.array([0, 3, 1, 2])],
    "flip": lambda xp, x: xp.flip(x, 0),
    "repeat": lambda xp, x: xp.repeat(x, 2, axis=0),
    "upper triangle": lambda xp, x: xp.triu(x),
    "joined": lambda xp, x: xp.concatenate([x, x], 0),
    "stacked": lambda xp, x: xp.stack([x, x], 1),
    "where": lambda xp, x: xp.where(x > 0, x, 0),
    "layer norm": lambda xp, x: xp.round(x - xp.mean(x, -1, keepdims=True)),
    "einsum": lambda xp, x: xp.einsum("ij->ji", x),
    "zeros": lambda xp, x: xp.zeros_like(x),
    "cast": lambda xp, x: x.astype(np.float64),
}
ENTRIES_OF_MATRICES = [(), ("x",), (None, "x"), ("y",), ("x", "y"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))]


@pytest.mark.parametrize("mesh_shape", SHAPES[1:], ids=str)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_specs_of_results_on_meshes_of_all_sizes(name, mesh_shape):
    for entries in ENTRIES_OF_MATRICES:
        assert_same_answer(EVERYWHERE[name], (numbers(SHAPE), entries), mesh_shape=mesh_shape)
