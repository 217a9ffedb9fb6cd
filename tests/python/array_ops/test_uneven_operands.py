# SPDX-License-Identifier: Apache-2.0
"""Replicated operands beside unevenly sharded ones: the sharded operand decides, wherever it stands."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P
from artifex_devices.errors import IndivisibleError

pytestmark = pytest.mark.usefixtures("each_way")

ROWS = np.arange(9.0)
VALUE = np.arange(27.0).reshape(9, 3)
OTHER = VALUE[::-1] / 2 + 3

# f(one, two) with operands of 9 x 3; the spec of the result where the first dimension of either is sharded.
SAME_SHAPE = {
    "add": (np.add, P("x")),
    "operator": (lambda a, b: a - b, P("x")),
    "maximum": (np.maximum, P("x")),
    "less": (lambda a, b: a < b, P("x")),
    "clip": (lambda a, b: np.clip(a, 2, b), P("x")),
    "divmod": (lambda a, b: np.divmod(a, b + 1)[1], P("x")),
    "where": (lambda a, b: np.where(a > b, a, b), P("x")),
    "select": (lambda a, b: np.select([a > 4, b > 4], [a, b], 0), P("x")),
    "isclose": (np.isclose, P("x")),
    "stack": (lambda a, b: np.stack([a, b]), P(None, "x")),
    "concatenate": (lambda a, b: np.concatenate([a, b], axis=1), P("x")),
    "concatenate rows": (lambda a, b: np.concatenate([a, b]), P("x")),
    "append": (lambda a, b: np.append(a, b, axis=1), P("x")),
    "einsum": (lambda a, b: np.einsum("ij,ij->i", a, b), P("x")),
    "vecdot": (np.vecdot, P("x")),
    "take_along_axis": (lambda a, b: np.take_along_axis(a, (b % 3).astype(int), axis=1), P("x")),
    "array_equal": (np.array_equal, P()),
}
OF_PRODUCTS = {
    "matmul": (lambda a, b: a @ b.T, P("x"), P(None, "x")),
    "tensordot": (lambda a, b: np.tensordot(a, b, axes=([1], [1])), P("x"), P(None, "x")),
    "inner": (np.inner, P("x"), P(None, "x")),
    "outer": (lambda a, b: np.outer(a[:, 0], b[:, 0]), P("x"), P(None, "x")),
    "add.outer": (lambda a, b: np.add.outer(a[:, 0], b[:, 0]), P("x"), P(None, "x")),
}


def placed(value, line, *entries, **options):
    return ad.device_put(value, NamedSharding(line, P(*entries), **options))


def assert_like(got, expected, spec, mesh):
    np.testing.assert_array_equal(np.asarray(got), expected)
    assert got.sharding == NamedSharding(mesh, spec, uneven="last-short")


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_the_uneven_operand_decides_as_first_and_as_second(name, line):
    function, spec = SAME_SHAPE[name]
    replicated = placed(VALUE, line)
    uneven = placed(OTHER, line, "x", uneven="last-short")
    assert_like(function(replicated, uneven), function(VALUE, OTHER), spec, line)
    assert_like(function(uneven, replicated), function(OTHER, VALUE), spec, line)


@pytest.mark.parametrize("name", OF_PRODUCTS)
def test_products_of_a_replicated_and_an_uneven_operand(name, line):
    function, first, second = OF_PRODUCTS[name]
    replicated = placed(VALUE, line)
    uneven = placed(OTHER, line, "x", uneven="last-short")
    assert_like(function(replicated, uneven), function(VALUE, OTHER), second, line)
    assert_like(function(uneven, replicated), function(OTHER, VALUE), first, line)


def test_an_uneven_index_shards_the_result(line):
    places = np.array([8, 0, 3, 3, 1, 7, 2, 5, 6])
    index = placed(places, line, "x", uneven="last-short")
    assert_like(placed(VALUE, line)[index], VALUE[places], P("x"), line)
    assert_like(np.take(placed(VALUE.T, line), index, axis=1), VALUE.T[:, places], P(None, "x"), line)


def test_an_evenly_sharded_operand_and_an_uneven_one(named, grid):
    even = ad.device_put(np.ones((8, 9)), named("x"))
    uneven = ad.device_put(np.arange(72.0).reshape(8, 9), named(None, "y", uneven="last-short"))
    assert_like(even + uneven, 1 + np.arange(72.0).reshape(8, 9), P("x", "y"), grid)
    assert_like(uneven + even, 1 + np.arange(72.0).reshape(8, 9), P("x", "y"), grid)


def test_a_replicated_operand_that_allows_uneven_shards_does_not_decide(line):
    even, allowing = placed(np.ones((8, 3)), line, "x"), placed(np.ones((8, 3)), line, uneven="last-short")
    assert (allowing + even).sharding == even.sharding
    assert (even + allowing).sharding == even.sharding


def test_a_sharded_operand_decides_on_the_mesh(line, grid):
    """The same devices in the same order, as another mesh."""
    replicated, sharded = placed(np.ones((8, 3)), line), ad.device_put(np.ones((8, 3)), NamedSharding(grid, P("x")))
    assert (replicated + sharded).sharding == sharded.sharding
    assert (sharded + replicated).sharding == sharded.sharding
    assert np.stack([replicated, sharded]).sharding == NamedSharding(grid, P(None, "x"))


def test_even_operands_still_refuse_uneven_results(line):
    rows = placed(np.ones((8, 9)), line, "x")
    with pytest.raises(IndivisibleError):
        ad.device_put(np.ones((9, 9)), rows.sharding)
    assert np.concatenate([rows, placed(np.ones((1, 9)), line)]).sharding.spec == P()
