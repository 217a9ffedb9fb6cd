# SPDX-License-Identifier: Apache-2.0
"""Order and neighbours along whole dimensions of Arrays; outer ufuncs."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from numpy_oracle import assert_agrees, numbers, outcome, pairs

pytestmark = pytest.mark.usefixtures("each_way")

P = ad.P


CALLS = {
    "sort": lambda x, d: np.sort(x, axis=d),
    "stable argsort": lambda x, d: np.argsort(x, axis=d, stable=True),
    "partition": lambda x, d: np.sort(np.partition(x, 0, axis=d), axis=d),
    "diff": lambda x, d: np.diff(x, axis=d),
    "second diff": lambda x, d: np.diff(x, 2, axis=d),
}


@given(st.data())
def test_unsharded_dimensions_as_numpy_sharded_ones_refused(data):
    pair = data.draw(pairs(nan=True).filter(lambda pair: pair.host.ndim > 0 and pair.host.size > 0))
    d = data.draw(st.integers(-pair.host.ndim, pair.host.ndim - 1))
    call = CALLS[data.draw(st.sampled_from(sorted(CALLS)))]
    got = outcome(lambda: call(pair.device, d))
    if isinstance(got, ad.errors.ShardingTypeError):
        sizes = dict(pair.device.sharding.mesh.shape)
        entry = tuple(pair.device.sharding.spec)[d % pair.host.ndim]
        assert max(sizes[name] for name in (entry if isinstance(entry, tuple) else (entry,))) > 1
    else:
        assert_agrees(got, outcome(lambda: call(pair.host, d)))


class TestSharding:
    def test_other_dimensions_stay_cut(self, named):
        value = numbers((8, 4, 8), np.dtype("int32"), 1)
        x = ad.device_put(value, named("x", None, "y"))
        for function in (np.sort, np.argsort, np.diff):
            got = function(x, axis=1)
            assert got.sharding == named("x", None, "y")
        assert np.median(x, axis=1).sharding == named("x", "y")
        assert np.median(x, axis=1, keepdims=True).sharding == named("x", None, "y")
        assert np.quantile(x, [0.1, 0.5], axis=1).sharding == named(None, "x", "y")
        assert np.trapezoid(x, axis=1).sharding == named("x", "y")

    @pytest.mark.usefixtures("no_moves")
    def test_along_a_sharded_dimension_the_repair_works(self, grid, named):
        value = numbers((8, 8), np.dtype("float32"), 2)
        x = ad.device_put(value, named("x", "y"))
        with pytest.raises(ad.errors.ShardingTypeError) as caught:
            np.sort(x, axis=0)
        text = str(caught.value)
        assert text.startswith("sort: a dimension that it works along is sharded")
        assert "dimension 0 over ('x',)" in text
        assert "ad.reshard(x, ad.NamedSharding(x.sharding.mesh, ad.P(None, 'y')))" in text
        moved = ad.device_put(x, ad.NamedSharding(grid, P(None, "y")))
        assert_same_bits(np.sort(moved, axis=0), np.sort(value, axis=0))

    def test_an_axis_of_size_one_does_not_cut(self, devices):
        mesh = ad.Mesh(np.array(devices[:1]), ("x",))
        x = ad.device_put(np.array([3, 1, 2]), ad.NamedSharding(mesh, P("x")))
        assert np.asarray(x.sort()).tolist() == [1, 2, 3]


class TestBigBuffers:
    def test_pieces(self, devices, line):
        value = np.random.default_rng(0).normal(size=(900, 700))
        for sharding in (devices[1], ad.NamedSharding(line, P(None, "x"), uneven="last-short")):
            x = ad.device_put(value, sharding)
            assert_same_bits(np.sort(x, axis=0), np.sort(value, axis=0))
            assert_same_bits(np.median(x, axis=0), np.median(value, axis=0))
            assert_same_bits(np.diff(x, axis=0), np.diff(value, axis=0))


class TestDiff:
    def test_elements_before_and_after(self, named):
        value = numbers((8, 4), np.dtype("int32"), 3)
        x = ad.device_put(value, named("x"))
        column = value[:, :2]
        for options in ({"prepend": 0}, {"append": column}, {"prepend": column, "append": 2.5, "n": 2}):
            got = np.diff(x, **options)
            assert_agrees(got, np.diff(value, **options))
            assert got.sharding == named("x")
        placed = ad.device_put(column, named("x"))
        assert_same_bits(np.diff(x, prepend=placed), np.diff(value, prepend=column))
        assert_same_bits(np.diff(value, prepend=placed), np.diff(value, prepend=column))
        assert np.diff(x, 0, prepend=0) is x

    @pytest.mark.usefixtures("no_moves")
    def test_along_a_sharded_dimension_it_is_refused(self, named):
        with pytest.raises(ad.errors.ShardingTypeError, match="diff: a dimension that it works along is sharded"):
            np.diff(ad.device_put(np.ones((8, 4)), named("x")), axis=0)


class TestErrors:
    @pytest.mark.usefixtures("no_moves")
    def test_none_flattens_only_unsharded_arrays(self, named):
        assert np.asarray(np.sort(ad.device_put(np.array([2, 1]), named()), axis=None)).tolist() == [1, 2]
        with pytest.raises(ShardingTypeError, match=r"sort: a dimension .*got dimension 0 over \('x',\)"):
            np.sort(ad.device_put(np.ones((8, 8)), named("x")), axis=None)

    def test_options_without_meaning(self, named):
        x = ad.device_put(np.arange(8), named())
        with pytest.raises(TypeError, match="sort: order names fields"):
            np.sort(x, order="a")
        with pytest.raises(ValueError, match="diff: order must be non-negative"):
            np.diff(x, -1)
        assert np.diff(x, 0) is x
        with pytest.raises(np.exceptions.AxisError):
            np.sort(x, axis=1)
        with pytest.raises(TypeError, match=r"quantile: weights .*np\.asarray"):
            np.quantile(x, 0.5, weights=np.ones(8), method="inverted_cdf")

    def test_trapezoid(self, named):
        value = numbers((8, 5), np.dtype("float32"), 3)
        x = ad.device_put(value, named("x"))
        points = np.array([0, 1, 3, 4, 9.0])
        assert_agrees(np.trapezoid(x), np.trapezoid(value), scale=40.0)
        assert_agrees(np.trapezoid(x, points), np.trapezoid(value, points), scale=40.0)
        assert_agrees(np.trapezoid(x, dx=0.5), np.trapezoid(value, dx=0.5), scale=40.0)
        with pytest.raises(TypeError, match="trapezoid: sample points"):
            np.trapezoid(x, ad.device_put(points))


class TestOuter:
    @given(st.data())
    def test_values(self, data):
        one = data.draw(pairs(names=("int32", "float32"), max_rank=2))
        two = data.draw(pairs(names=("int32", "float64"), max_rank=2))
        ufunc = data.draw(st.sampled_from([np.add, np.multiply, np.less, np.divmod]))
        for a, b in ((one.device, two.host), (one.host, two.device), (one.device, 3), (2.5, two.device)):
            host_a = one.host if a is one.device else a
            host_b = two.host if b is two.device else b
            got, expected = (
                outcome(lambda a=a, b=b: ufunc.outer(a, b)),
                outcome(lambda a=host_a, b=host_b: ufunc.outer(a, b)),
            )
            for g, e in zip(got, expected, strict=True) if ufunc is np.divmod else [(got, expected)]:
                assert_agrees(g, e)

    def test_the_result_is_sharded_as_both(self, named):
        a, b = np.arange(8), np.arange(16).reshape(8, 2)
        x, y = ad.device_put(a, named("x")), ad.device_put(b, named("y"))
        got = np.multiply.outer(x, y)
        assert_same_bits(got, np.multiply.outer(a, b))
        assert got.sharding == named("x", "y")
        assert np.add.outer(y, x).sharding == named("y", None, "x")
        assert np.add.outer(x, 2).sharding == named("x")

    def test_an_axis_shards_one_dimension_of_the_result(self, named):
        a = np.arange(8)
        x = ad.device_put(a, named("x"))
        got = np.add.outer(x, x)
        assert_same_bits(got, np.add.outer(a, a))
        assert got.sharding == named("x")
        mesh = ad.make_mesh((8,), ("x",))
        y = ad.device_put(a, ad.NamedSharding(mesh, P("x")))
        with pytest.raises(ad.errors.ShardingTypeError, match=r"add\.outer: both operands are sharded over \('x',\)"):
            np.add.outer(y, y)

    def test_what_is_not_supported(self, named):
        x = ad.device_put(np.arange(8), named("x"))
        with pytest.raises(TypeError, match=r"add\.outer: out and where"):
            np.add.outer(x, x, out=np.zeros((8, 8)))
        with pytest.raises(ValueError, match="binary"):
            np.sin.outer(x)


def test_methods_of_order_are_numpys(named):
    values = np.array([[3.0, 1.0, 2.0, 0.0]] * 8)
    x = ad.device_put(values, named("x"))
    assert_same_bits(np.sort(np.asarray(x.argpartition(1))[:, :2], axis=1), np.array([[1, 3]] * 8))
    edges = ad.device_put(np.array([0.5, 1.5]))
    assert edges.searchsorted(x).sharding.spec == x.sharding.spec
    assert_same_bits(np.asarray(edges.searchsorted(x, side="right")), np.searchsorted([0.5, 1.5], values, "right"))
    assert x.tobytes() == values.tobytes()
