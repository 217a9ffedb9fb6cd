# SPDX-License-Identifier: Apache-2.0
"""ufunc.reduce, sums, extremes and positions over Arrays: NumPy's values, and results that say how they lie."""

import operator

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits
from hypothesis import given
from hypothesis import strategies as st
from numpy_oracle import assert_agrees, axes_of, check, dtype_of, magnitude, numbers, outcome, pairs

pytestmark = pytest.mark.usefixtures("each_way")

P = ad.P


EXACT = [np.max, np.min, np.any, np.all, np.count_nonzero, np.ptp]
SUMS = [np.sum, np.nansum]


@given(st.data())
def test_extremes_truth_and_counts_are_numpys(data):
    pair = data.draw(pairs(nan=True))
    function = data.draw(st.sampled_from(EXACT))
    axis = data.draw(axes_of(pair.host.ndim), label="axis")
    check(function, pair, axis=axis, keepdims=data.draw(st.booleans(), label="keepdims"))


@given(st.data())
def test_sums_are_numpys(data):
    pair = data.draw(pairs(nan=True))
    function = data.draw(st.sampled_from(SUMS))
    options = {"axis": data.draw(axes_of(pair.host.ndim), label="axis"), "keepdims": data.draw(st.booleans())}
    if data.draw(st.booleans(), label="with dtype"):
        options["dtype"] = data.draw(st.sampled_from(["float32", "float64", "complex128"]))
    if data.draw(st.booleans(), label="with initial"):
        options["initial"] = data.draw(st.integers(-3, 3))
    if data.draw(st.booleans(), label="with where"):
        options["where"] = numbers(pair.host.shape, np.dtype(bool), 3)
    if function is np.nansum and pair.host.dtype == ml_dtypes.bfloat16:
        function = np.sum  # NumPy's nansum does not know these NaN
    check(function, pair, scale=magnitude(pair.host), **options)


@given(st.data())
def test_products_of_small_integers_are_numpys(data):
    pair = data.draw(pairs(names=("bool", "int8", "uint8", "int32", "int64", "uint64")))
    check(np.prod, pair, axis=data.draw(axes_of(pair.host.ndim)), keepdims=data.draw(st.booleans()))


@given(st.data())
def test_positions_are_numpys(data):
    pair = data.draw(pairs(nan=True))
    function = data.draw(st.sampled_from([np.argmax, np.argmin, np.nanargmax, np.nanargmin]))
    axes = st.none() if not pair.host.ndim else st.one_of(st.none(), st.integers(-pair.host.ndim, pair.host.ndim - 1))
    check(function, pair, axis=data.draw(axes, label="axis"), keepdims=data.draw(st.booleans()))


REDUCIBLE = (
    *("add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "hypot", "logaddexp", "logaddexp2"),
)


@given(st.data())
def test_ufunc_reduce_is_numpys(data):
    pair = data.draw(pairs(names=("bool", "int8", "int32", "float32", "float64"), nan=True))
    ufunc = getattr(np, data.draw(st.sampled_from(REDUCIBLE)))
    options = {"keepdims": data.draw(st.booleans())}
    if data.draw(st.booleans(), label="with axis"):
        options["axis"] = data.draw(axes_of(pair.host.ndim), label="axis")
    if data.draw(st.booleans(), label="with initial"):
        options["initial"] = data.draw(st.integers(0, 3))
    if data.draw(st.booleans(), label="with where"):
        options["where"] = numbers(pair.host.shape, np.dtype(bool), 5)
    scale = 16.0 * pair.host.size + 16 if ufunc not in (np.multiply, np.lcm) else 4.0 ** min(pair.host.size, 300)
    check(ufunc.reduce, pair, scale=scale, **options)


@pytest.mark.usefixtures("no_moves")
@pytest.mark.parametrize("name", ["subtract", "divide", "power", "floor_divide", "copysign", "equal"])
def test_other_ufuncs_need_an_unsharded_dimension(name, named):
    ufunc = getattr(np, name)
    value = np.arange(1.0, 33).reshape(8, 4)
    rows = ad.device_put(value, named("x"))
    assert_agrees(outcome(lambda: ufunc.reduce(rows, axis=1)), outcome(lambda: ufunc.reduce(value, axis=1)))
    if name != "equal":  # which has no loop for this in NumPy
        with pytest.raises(ad.errors.ShardingTypeError, match=rf"{name}\.reduce: .*dimension 0 over \('x',\); move it"):
            ufunc.reduce(rows, axis=0)


class TestResultShardings:
    @pytest.mark.parametrize(
        ("spec", "axis", "keepdims", "expected"),
        [
            (P("x", "y"), 0, False, P("y")),
            (P("x", "y"), 1, False, P("x")),
            (P("x", "y"), None, False, P()),
            (P("x", "y"), (0, 2), False, P("y")),
            (P("x", "y"), 2, False, P("x", "y")),
            (P("x", "y"), 0, True, P(None, "y")),
            (P("x", "y"), None, True, P()),
            (P(("x", "y")), 1, False, P(("x", "y"))),
            (P(("y", "x")), 0, False, P()),
            (P(None, ("y", "x")), 0, False, P(("y", "x"))),
            (P("x", None, None), 2, False, P("x")),
            (P("x", "y"), (), False, P("x", "y")),
        ],
    )
    def test_reduced_dimensions_are_not_sharded(self, spec, axis, keepdims, expected, grid):
        value = np.arange(8 * 8 * 8).reshape(8, 8, 8)
        x = ad.device_put(value, ad.NamedSharding(grid, spec))
        for function in (np.sum, np.max, np.any, np.mean, np.std, np.linalg.norm):
            if function is np.linalg.norm and (axis == () or (axis is not None and not isinstance(axis, int))):
                continue
            result = function(x, axis=axis, keepdims=keepdims)
            assert result.sharding == ad.NamedSharding(grid, expected), function
            assert result.committed

    def test_one_device_stays(self, devices):
        x = ad.device_put(np.arange(6.0), devices[5])
        assert x.sum().sharding == x.sharding
        assert x.sum().committed
        assert not ad.device_put(np.arange(6.0)).sum().committed

    def test_every_replica_has_the_result(self, named):
        total = ad.device_put(np.arange(64).reshape(8, 8), named("x", "y")).sum(0)
        for shard in total.addressable_shards:
            assert np.asarray(shard.data).tolist() == np.arange(64).reshape(8, 8).sum(0)[shard.index].tolist()

    def test_an_axis_of_size_one_stays_in_the_spec(self, devices):
        mesh = ad.Mesh(np.array(devices).reshape(8, 1), ("x", "y"))
        x = ad.device_put(np.arange(64.0).reshape(8, 8), ad.NamedSharding(mesh, P("x", "y")))
        assert x.sum(0).sharding == ad.NamedSharding(mesh, P("y"))
        assert x.sum(1).sharding == ad.NamedSharding(mesh, P("x"))


class TestUneven:
    @pytest.mark.parametrize("size", [1, 2, 5, 8, 9])
    def test_short_and_empty_shards(self, size, line):
        value = np.arange(size * 3, dtype=np.float32).reshape(size, 3) - 4
        x = ad.device_put(value, ad.NamedSharding(line, P("x"), uneven="last-short"))
        for function in (np.sum, np.max, np.argmin, np.ptp, np.var, np.median, np.cumsum):
            for axis in (0, 1):
                if function is np.median and axis == 0:
                    continue
                assert_agrees(function(x, axis=axis), function(value, axis=axis), scale=40.0)
        assert x.sum(1).sharding == ad.NamedSharding(line, P("x"), uneven="last-short")


class TestBigBuffers:
    """Over 2 MiB a buffer is cut into pieces; the answer does not depend on which."""

    @pytest.mark.parametrize("shape", [(1 << 20, 3), (3, 1 << 20), (700, 1500), (1 << 21,), (2, 600, 700)])
    @pytest.mark.parametrize("where", ["one device", "rows", "replicas"])
    def test_sums_extremes_and_positions(self, shape, where, devices, line):
        value = np.random.default_rng(1).integers(-1000, 1000, size=shape)
        sharding = {
            "one device": devices[2],
            "rows": ad.NamedSharding(line, P("x"), uneven="last-short"),
            "replicas": ad.NamedSharding(line, P()),
        }[where]
        x = ad.device_put(value, sharding)
        for axis in (None, *range(len(shape))):
            for function in (np.sum, np.max, np.argmax, np.ptp, np.count_nonzero):
                assert np.array_equal(np.asarray(function(x, axis=axis)), function(value, axis=axis)), function
            assert_agrees(np.std(x, axis=axis), np.std(value, axis=axis), scale=1e5)
            assert_agrees(np.mean(x, axis=axis), np.mean(value, axis=axis), scale=1000.0)
        assert np.array_equal(np.asarray(np.sum(x, axis=0, where=value > 7)), np.sum(value, axis=0, where=value > 7))

    def test_the_same_bits_each_time(self, devices):
        value = np.random.default_rng(2).normal(size=1 << 20).astype(np.float32)
        x = ad.device_put(value, devices[0])
        assert len({np.asarray(np.sum(x)).tobytes() for _ in range(10)}) == 1


class TestSeveralMemories:
    """Replicas in different NUMA nodes have buffers of their own."""

    @pytest.mark.parametrize("spec", [P(), P("x"), P("y"), P("x", "y"), P(None, ("y", "x"))], ids=str)
    @pytest.mark.parametrize("order", [range(8), [3, 6, 1, 4, 0, 7, 2, 5]], ids=["in order", "mixed"])
    def test_every_replica_is_written(self, spec, order):
        with ad.simulate("2 nodes x 4"):
            devices = ad.devices()
            mesh = ad.Mesh(np.array([devices[i] for i in order]).reshape(2, 4), ("x", "y"))
            value = np.random.default_rng(0).integers(-9, 9, size=(8, 8))
            x = ad.device_put(value, ad.NamedSharding(mesh, spec))
            for function in (np.sum, np.max, np.argmin, np.cumsum, np.std, np.mean):
                for axis in (0, 1):
                    got, expected = function(x, axis=axis), function(value, axis=axis)
                    for shard in got.addressable_shards:
                        np.testing.assert_allclose(np.asarray(shard.data), expected[shard.index], rtol=1e-12)
            for shard in np.multiply.outer(x, np.float32(2)).addressable_shards:
                assert np.asarray(shard.data).tolist() == (value * 2.0)[shard.index].tolist()


class TestLowPrecision:
    @pytest.mark.parametrize("name", ["float16", "bfloat16"])
    def test_sums_are_added_up_in_float32(self, name, named):
        ones = np.ones((8, 4096), dtype_of(name))
        x = ad.device_put(ones, named("x", "y"))
        assert float(np.asarray(np.sum(x))) == 32768.0
        assert np.asarray(np.sum(x, axis=1)).astype(float).tolist() == [4096.0] * 8
        assert np.sum(x).dtype == ones.dtype
        assert float(np.asarray(np.mean(x))) == 1.0

    def test_nan_wins_in_bfloat16(self, named):
        value = np.ones((8, 8), ml_dtypes.bfloat16)
        value[5, 3] = np.nan
        x = ad.device_put(value, named("x", "y"))
        with np.errstate(invalid="ignore"):  # NumPy's own loop warns
            assert np.isnan(float(np.asarray(x.max())))
        assert int(np.asarray(x.argmax())) == 43
        assert float(np.asarray(np.nanmax(x))) == 1.0

    def test_nan_is_skipped_in_bfloat16_where_numpy_does_not(self, named):
        value = np.ones((8, 8), ml_dtypes.bfloat16)
        value[5, 3] = np.nan
        x = ad.device_put(value, named("x", "y"))
        assert float(np.asarray(np.nansum(x))) == 63.0
        assert float(np.asarray(np.nanmean(x))) == 1.0
        assert float(np.asarray(np.nanvar(x))) == 0.0


class TestOut:
    def test_out_is_written_and_returned(self, named):
        value = np.arange(64).reshape(8, 8)
        x = ad.device_put(value, named("x", "y"))
        out = np.zeros(8, np.float32)
        assert np.sum(x, axis=0, out=out) is out
        assert out.tolist() == value.sum(0).tolist()
        assert np.add.reduce(x, axis=1, out=out) is out
        assert out.tolist() == value.sum(1).tolist()
        assert np.argmax(x, axis=1, out=np.zeros(8, np.intp)).tolist() == [7] * 8

    def test_wrong_out(self, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        with pytest.raises(ValueError, match=r"sum: out has another shape .* expected \(8,\), got \(7,\)"):
            np.sum(x, axis=0, out=np.zeros(7))
        with pytest.raises(TypeError, match="sum: out is not an ndarray; Arrays are immutable"):
            np.sum(x, axis=0, out=x)

    def test_out_is_cast_to_as_in_numpy(self, named):
        value = np.full((8, 8), 1.5)
        x = ad.device_put(value, named("x", "y"))
        for function in (np.sum, np.max, np.mean, np.any, np.var, np.cumsum, np.median):
            whole = ad.device_put(value, named(None, "x"))
            out, expected = np.zeros(8, np.int32), np.zeros(8, np.int32)
            if function is np.cumsum:
                out, expected = np.zeros((8, 8), np.int32), np.zeros((8, 8), np.int32)
            function(whole if function is np.median else x, axis=0, out=out)
            function(value, axis=0, out=expected)
            assert out.tolist() == expected.tolist(), function


class TestMasks:
    def test_a_mask_may_be_sharded_otherwise_or_broadcast(self, named, devices):
        value, mask = numbers((8, 8), np.dtype("int32"), 1), numbers((8, 8), np.dtype(bool), 2)
        x = ad.device_put(value, named("x", "y"))
        for placed in (
            mask,
            ad.device_put(mask, named("y", "x")),
            ad.device_put(mask, named()),
            ad.device_put(mask),
        ):
            assert np.asarray(np.sum(x, axis=0, where=placed)).tolist() == value.sum(0, where=mask).tolist()
        row = ad.device_put(mask[0], named("x"))
        assert np.asarray(np.sum(x, axis=1, where=row)).tolist() == value.sum(1, where=mask[0]).tolist()

    @pytest.mark.parametrize("shape", [(7,), (8, 8, 1), (2, 8), (1, 8, 8)])
    def test_masks_of_other_shapes(self, shape, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        for mask in (np.ones(shape, bool), ad.device_put(np.ones(shape, bool), named())):
            with pytest.raises(ValueError, match=r"sum: another operand does not broadcast .* and \(8, 8\)"):
                np.sum(x, where=mask)
            with pytest.raises(ValueError, match="std: another operand does not broadcast"):
                np.std(x, where=mask)
        assert float(np.asarray(np.sum(x, where=False))) == 0.0
        assert float(np.asarray(np.sum(x, where=np.True_))) == 2016.0

    @pytest.mark.parametrize("shape", [(8,), (64, 8)])
    def test_an_uncommitted_operand_moves_to_the_devices_of_the_mask(self, shape, named):
        value = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        mask = value % 3 == 0
        x, placed = ad.device_put(value), ad.device_put(mask, named("x"))
        total = np.sum(x, where=placed)
        assert float(np.asarray(total)) == value.sum(where=mask)
        assert (total.committed, total.sharding.device_set) == (True, placed.sharding.device_set)
        rows = np.max(x, axis=-1, where=placed, initial=-1.0)
        assert np.asarray(rows).tolist() == np.max(value, axis=-1, where=mask, initial=-1.0).tolist()

    def test_no_identity_needs_initial(self, named):
        x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
        with pytest.raises(ValueError, match="max: reduction operation 'maximum' does not have an identity"):
            np.max(x, where=np.ones((8, 8), bool))


class TestErrors:
    def test_nothing_to_reduce(self, named):
        x = ad.device_put(np.zeros((0, 8)), named("x", "y"))
        with pytest.raises(
            ValueError, match="max: zero-size array to reduction operation maximum which has no identity"
        ):
            x.max()
        with pytest.raises(ValueError, match="argmin: attempt to get argmin of an empty sequence"):
            x.argmin(0)
        assert np.asarray(x.max(1)).tolist() == []
        assert np.asarray(x.sum(0)).tolist() == [0.0] * 8
        assert np.asarray(x.max(0, initial=3)).tolist() == [3.0] * 8

    def test_axes(self, named):
        x = ad.device_put(np.zeros((8, 8)), named("x", "y"))
        with pytest.raises(np.exceptions.AxisError):
            x.sum(2)
        with pytest.raises(ValueError, match=r"repeated|duplicate"):
            x.sum((0, 0))
        with pytest.raises(np.exceptions.AxisError):
            x.argmax(-3)

    @pytest.mark.usefixtures("no_moves")
    def test_methods_that_are_refused_name_the_way(self, named):
        x = ad.device_put(np.zeros((8, 8)), named("x", "y"))
        with pytest.raises(TypeError, match=r"add\.at: not supported on Arrays.*x\.at\["):
            np.add.at(x, 0, 1)
        with pytest.raises(TypeError, match=r"add\.reduceat: this NumPy function does not support Arrays.*np\.asarray"):
            np.add.reduceat(x, [0])

    def test_unary_ufuncs_do_not_reduce(self, named):
        x = ad.device_put(np.zeros((8, 8)), named("x", "y"))
        with pytest.raises(ValueError, match="binary"):
            np.sin.reduce(x)

    def test_arrays_on_different_devices(self, devices):
        x, mask = ad.device_put(np.zeros(4), devices[0]), ad.device_put(np.ones(4, bool), devices[1])
        with pytest.raises(ValueError, match="sum: the operands are on incompatible devices"):
            np.sum(x, where=mask)

    def test_the_operand_must_be_the_array(self, named):
        with pytest.raises(TypeError, match="sum: the operand is not an Array"):
            np.sum(np.zeros((8, 8)), axis=0, out=ad.device_put(np.zeros(8), named("x")))

    def test_deleted_arrays(self, named):
        x = ad.device_put(np.zeros((8, 8)), named("x", "y"))
        x.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            x.sum()


def test_methods_are_numpys(named):
    value = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)
    x = ad.device_put(value, named("x"))
    sums = ("sum", "prod", "mean", "std", "var", "cumsum", "cumprod")
    for name in (*sums, "max", "min", "any", "all", "argmax", "argmin", "sort", "argsort", "round"):
        assert_agrees(operator.methodcaller(name)(x), _method(value, name), scale=64.0)
    for name in ["sum", "max", "mean", "var", "argmax"]:
        call = operator.methodcaller(name, axis=0, keepdims=True)
        assert_agrees(call(x), call(value), scale=64.0)
    assert_same_bits(x.clip(-0.5, 0.5), value.clip(-0.5, 0.5))
    assert_same_bits(x.astype(np.int32), value.astype(np.int32))
    assert_same_bits(x.copy(), value)
    wave = ad.device_put(value + 1j * value, named("y"))
    assert_same_bits(wave.conj(), (value + 1j * value).conj())
    assert_same_bits(wave.real, value)
    assert_same_bits(wave.imag, value)
    assert x.sort() is not None
    assert np.asarray(x).tolist() == value.tolist()
    assert_same_bits(x.ptp(0), np.ptp(value, 0))


def _method(value, name):
    if name in ("sort", "argsort"):
        return getattr(np, name)(value)
    return getattr(value, name)()


def test_nothing_is_left(named, nothing_left):
    x = ad.device_put(np.arange(64.0).reshape(8, 8), named("x", "y"))
    assert x.sum().shape == x.mean(0).max().shape == ()
    with pytest.raises(ValueError, match="out has another shape"):
        np.sum(x, out=np.zeros(3))


@pytest.mark.parametrize("shape", [(3,), (2, 4, 8), (4, 1, 1)])
def test_a_mask_of_another_shape_is_an_error(shape):
    with ad.simulate(4):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        x = ad.device_put(np.ones((4, 8)), ad.NamedSharding(mesh, ad.P("x")))
        with pytest.raises(ValueError, match="sum: another operand does not broadcast to the Array; expected equal"):
            np.sum(x, where=np.ones(shape, bool))
