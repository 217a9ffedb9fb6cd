# SPDX-License-Identifier: Apache-2.0
"""lax collectives give every participant what JAX gives it, for all dtypes at once, as one tree: movement exactly."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import MeshLayout
from both import OURS, assert_agree, jax, mesh_of
from collective_table import TABLE, blocks_for

GRID = MeshLayout(("x", "y"), (2, 4), (7, 6, 5, 4, 3, 2, 1, 0))
CUBE = MeshLayout(("a", "b", "c"), (2, 2, 2), tuple(range(8)))
EVERYWHERE = {GRID: ("x", "y"), CUBE: ("a", "b", "c")}
AXES = [(GRID, "x"), (GRID, ("y",)), (GRID, ("x", "y")), (GRID, ("y", "x")), (CUBE, ("c", "a"))]
ORDERED = ["bool", "int8", "uint8", "int16", "uint32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES = [*ORDERED, "complex64", "complex128"]
SIZES = ["bool", "bfloat16", "float32", "complex128"]  # one of each, for the many that only move


def size_of(layout, axes):
    sizes = dict(zip(layout.axis_names, layout.axis_sizes, strict=True))
    return int(np.prod([sizes[name] for name in (axes if isinstance(axes, tuple) else (axes,))]))


def tree_of(shape, dtypes=DTYPES, high=2):
    """A row of small whole numbers a participant in every dtype: sums are exact, and no two rows are alike."""
    rng = np.random.default_rng(sum(shape))
    numbers = rng.integers(0, high, (8, *shape))
    return {name: numbers.astype(getattr(ml_dtypes, name, name)) for name in dtypes}


def top(library):
    return ad if library is OURS else jax


def numbers(row):
    return {name: leaf for name, leaf in row.items() if name != "bool"}


def everybodys(layout, body, tree):
    """What each participant gets, stacked in the order of the mesh; `body` takes lax and its row of the tree."""

    def ask(library):
        over = library.P(EVERYWHERE[layout])
        first = library.tree_util.tree_map

        def rows(block):
            made = body(top(library).lax, first(lambda leaf: leaf[0], block))
            return first(lambda leaf: leaf[None], made)

        mapped = top(library).shard_map(
            rows, mesh=mesh_of(library, layout), in_specs=over, out_specs=over, check_vma=False
        )
        if library is not OURS:
            mapped = jax.jit(mapped)  # else JAX compiles each collective of each leaf by itself
        return first(np.asarray, mapped(tree))

    return assert_agree(ask)


@pytest.mark.parametrize(("layout", "axes"), AXES)
@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.is_jaxs])
def test_each_row_of_the_table_is_jaxs(name, layout, axes):
    axes = axes if isinstance(axes, tuple) else (axes,)
    if sorted(axes, key=layout.axis_names.index) != list(axes) and name in ("ppermute", "pshuffle"):
        pytest.skip("ours refuses another order of the axes")
    n = size_of(layout, axes)
    tree = {dtype: np.stack(blocks_for(dtype, 8, n)) for dtype in TABLE[name].dtypes}
    made = everybodys(
        layout, lambda lax, row: {dtype: TABLE[name].call(lax, x, axes, n) for dtype, x in row.items()}, tree
    )
    assert made is not None


@pytest.mark.parametrize(("layout", "axes"), AXES)
def test_means(layout, axes):
    dtypes = [name for name in DTYPES if name not in ("uint8", "int16", "uint32")]
    assert everybodys(layout, lambda lax, row: lax.pmean(row, axes), tree_of((3, 2), dtypes)) is not None


def test_over_no_axis():
    made = everybodys(
        CUBE,
        lambda lax, row: [lax.all_gather(row, ()), row["int64"] * lax.axis_size(()) + lax.axis_index(())],
        tree_of((3,), ["int64"]),
    )
    assert made is not None


GROUPS = [[[0, 2, 4, 6], [7, 5, 3, 1]], [[0, 1], [2, 3], [4, 5], [6, 7]], [[i] for i in range(8)]]
GROUPED = {
    "psum": lambda lax, x, groups, n: lax.psum(x, "i", axis_index_groups=groups),
    "pmax": lambda lax, x, groups, n: lax.pmax(x, "i", axis_index_groups=groups),
    "pmean": lambda lax, x, groups, n: lax.pmean(x.astype(np.float32), "i", axis_index_groups=groups),
    "all_gather": lambda lax, x, groups, n: lax.all_gather(x, "i", axis_index_groups=groups, axis=1, tiled=True),
    "psum_scatter": lambda lax, x, groups, n: lax.psum_scatter(x[:n], "i", axis_index_groups=groups),
    "all_to_all": lambda lax, x, groups, n: lax.all_to_all(x, "i", 0, 1, axis_index_groups=groups, tiled=True),
}


@pytest.mark.parametrize("groups", GROUPS, ids=len)
@pytest.mark.parametrize("name", GROUPED)
def test_groups_of_an_axis(name, groups):
    source = np.random.default_rng(1).integers(0, 99, (8, 8, 2))

    def ask(library):
        lax = top(library).lax
        body = lambda x: GROUPED[name](lax, x, groups, len(groups[0]))  # noqa: E731
        return np.asarray(top(library).pmap(body, axis_name="i")(source))

    assert assert_agree(ask) is not None


WRONG = {
    "unbound": lambda lax, x: lax.psum(x, "q"),
    "unbound in a tuple": lambda lax, x: lax.psum(x, ("x", "q")),
    "twice": lambda lax, x: lax.psum(x, ("x", "x")),
    "unbound index": lambda lax, x: lax.axis_index("q"),
    "unbound size": lambda lax, x: lax.axis_size("q"),
    "text": lambda lax, x: lax.psum("text", "x"),
    "gather axis": lambda lax, x: lax.all_gather(x, "x", axis=5),
    "scatter size": lambda lax, x: lax.psum_scatter(x, "y"),
    "scatter multiple": lambda lax, x: lax.psum_scatter(x, "y", tiled=True),
    "scatter dimension": lambda lax, x: lax.psum_scatter(x, "y", scatter_dimension=4, tiled=True),
    "exchange size": lambda lax, x: lax.all_to_all(x, "y", 0, 0),
    "exchange dimension": lambda lax, x: lax.all_to_all(x, "y", 7, 0),
    "swap size": lambda lax, x: lax.pswapaxes(x, "y", 0),
    "source twice": lambda lax, x: lax.ppermute(x, "y", [(0, 1), (0, 2)]),
    "target twice": lambda lax, x: lax.ppermute(x, "y", [(0, 1), (2, 1)]),
    "no member": lambda lax, x: lax.ppermute(x, "y", [(0, 9)]),
    "shuffle": lambda lax, x: lax.pshuffle(x, "y", [0, 0, 1, 2]),
    "bool scatter": lambda lax, x: lax.psum_scatter(np.ones(4, bool), "y"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_collectives_refuse(name):
    def ask(library):
        over = library.P(("x", "y"))
        body = lambda x: WRONG[name](top(library).lax, x)  # noqa: E731
        mesh = mesh_of(library, GRID)
        mapped = top(library).shard_map(body, mesh=mesh, in_specs=over, out_specs=over, check_vma=False)
        return np.asarray(mapped(np.ones((24, 3), np.float32)))

    assert assert_agree(ask) is None
