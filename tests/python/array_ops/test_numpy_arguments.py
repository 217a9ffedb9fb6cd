# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on Arrays take the arguments that they take for ndarrays, and refuse the others."""

import pprint

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P
from artifex_devices.errors import ShardingTypeError

pytestmark = pytest.mark.usefixtures("each_way")

MATRIX = np.arange(72.0).reshape(8, 9)


def on(line, value, *entries, **options):
    return ad.device_put(value, NamedSharding(line, P(*entries), **options))


def same(got, expected):
    np.testing.assert_array_equal(np.asarray(got), expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype


class TestBounds:
    """np.clip calls NumPy's own ufunc, which has one dtype for all three operands."""

    @pytest.mark.parametrize(
        ("dtype", "low", "high"),
        [
            ("int8", -300, 5),
            ("int8", -3, 300),
            ("uint8", -1, 2**40),
            ("int8", np.int16(-200), np.int16(3)),
            ("int16", 0.5, 2),
            ("float32", np.float64(0.1), 3),
            ("bool", 0, 1),
            ("uint64", -(2**70), 5),
        ],
    )
    def test_values_and_dtypes_are_numpys(self, dtype, low, high, line):
        value = np.arange(8).astype(dtype)
        same(np.clip(on(line, value, "x"), low, high), np.clip(value, low, high))

    @pytest.mark.parametrize(("low", "high"), [(300, None), (None, -300), (300, 301)])
    def test_bounds_that_the_dtype_cannot_hold_are_refused(self, low, high, line):
        value = np.arange(8, dtype=np.int8)
        with pytest.raises(OverflowError):
            np.clip(value, low, high)
        with pytest.raises(OverflowError):
            np.clip(on(line, value, "x"), low, high)

    def test_bounds_may_be_arrays_and_cross(self, line):
        value = np.arange(8, dtype=np.int32)
        low, high = np.full(8, 5.5), np.full(8, 2, np.int8)
        same(np.clip(on(line, value, "x"), on(line, low), high), np.clip(value, low, high))
        same(np.clip(value, on(line, low), 9), np.clip(value, low, 9))

    def test_out_and_where(self, line):
        value, out = np.arange(8, dtype=np.float32), np.full(8, -1.0)
        assert np.clip(on(line, value, "x"), 2, 5, out=out, where=value > 3) is out
        np.testing.assert_array_equal(out, [-1, -1, -1, -1, 4, 5, 5, 5])

    def test_one_bound_alone_and_two_names_are_errors(self, line):
        x = on(line, np.arange(8), "x")
        with pytest.raises(TypeError, match=r"^clip: a_max is missing; expected both bounds or neither"):
            np.clip(x, 1)
        with pytest.raises(ValueError, match=r"^clip: there are two pairs of bounds"):
            np.clip(x, 1, 2, min=0)
        same(np.clip(x, min=3), np.clip(np.arange(8), min=3))

    def test_bfloat16(self, line):
        import ml_dtypes

        value = np.arange(8).astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(
            np.asarray(np.clip(on(line, value, "x"), value[2], value[5])).astype(float), [2, 2, 2, 3, 4, 5, 5, 5]
        )


class TestOut:
    """`out` of a wider dtype is the dtype to compute in, as in NumPy."""

    # Each value alone is a float32, their sums are not.
    NARROW = np.array([2.0**24, 1, 1, 1, 1, 1, 1, 1], np.float32)

    SPLIT = (np.sum, np.cumsum, np.nansum, np.nancumsum, np.add.reduce, np.add.accumulate, np.mean, np.nanmean)

    @pytest.mark.parametrize(
        ("function", "spec"), [(f, P()) for f in (*SPLIT, np.median)] + [(f, P("x")) for f in SPLIT]
    )
    def test_a_wider_out_is_the_dtype_of_the_loop(self, function, spec, line):
        expected = np.empty(np.shape(function(self.NARROW)))
        function(self.NARROW, out=expected)
        got = np.zeros_like(expected)
        assert function(on(line, self.NARROW, *spec), out=got) is got
        np.testing.assert_array_equal(got, expected)

    def test_variances_and_traces(self, line):
        value = np.array([2.0**14, 2.0**14 + 1] * 4, np.float32)
        for function in (np.var, np.std, np.nanvar, np.nanstd):
            got = np.zeros(())
            function(on(line, value, "x"), out=got)
            np.testing.assert_allclose(got, function(value.astype(float)), rtol=1e-12)
        matrix = np.diag(self.NARROW)
        expected, got = np.zeros(()), np.zeros(())
        np.trace(matrix, out=expected)
        np.trace(on(line, matrix, "x"), out=got)
        np.testing.assert_array_equal(got, expected)

    def test_an_integer_out_keeps_its_dtype(self, line):
        value = np.full(8, 100, np.int8)
        expected, got = np.zeros((), np.int8), np.zeros((), np.int8)
        np.sum(value, out=expected)
        np.sum(on(line, value, "x"), out=got)
        np.testing.assert_array_equal(got, expected)

    @pytest.mark.parametrize(
        "call",
        [
            lambda x, out: np.add(x, 1.5, out=out),
            lambda x, out: np.sqrt(x, out=out),
            lambda x, out: np.clip(x, 0.5, 2.5, out=out),
            lambda x, out: np.less(x, 1, dtype=bool, casting="no", out=out),
        ],
    )
    @pytest.mark.parametrize("rows", [0, 8])
    def test_dtypes_that_cannot_hold_the_result_are_refused_without_elements_too(self, call, rows, line):
        value = np.ones((rows, 2))
        out = np.zeros((rows, 2), np.int32)
        with pytest.raises(TypeError):
            call(value, out)
        with pytest.raises(TypeError):
            call(on(line, value, "x"), out)
        assert not out.any()

    @pytest.mark.parametrize("function", [np.argmax, np.argmin, np.nanargmax, np.nanargmin])
    def test_positions_fit_integers_only(self, function, line):
        x = on(line, MATRIX, "x")
        for dtype in (np.float32, np.uint64):
            with pytest.raises(TypeError):
                function(MATRIX, axis=0, out=np.zeros(9, dtype))
            with pytest.raises(TypeError, match=rf"^{function.__name__}: out of dtype {np.dtype(dtype)} cannot hold"):
                function(x, axis=0, out=np.zeros(9, dtype))
        got = np.zeros(9, np.int64)
        function(x, axis=0, out=got)
        np.testing.assert_array_equal(got, function(MATRIX, axis=0))

    def test_what_is_read_only_is_refused(self, line):
        out = np.zeros(8)
        out.flags.writeable = False
        x = on(line, np.ones(8), "x")
        for call in (lambda: np.add(x, 1, out=out), lambda: np.cumsum(x, out=out)):
            with pytest.raises(ValueError, match="out is read-only; expected an ndarray to write to"):
                call()


class TestMasksAndAxes:
    @pytest.mark.parametrize("dtype", ["int8", "float32"])
    @pytest.mark.parametrize(
        "call",
        [
            lambda x, mask: np.add(x, 1, out=np.zeros((8, 9)), where=mask),
            lambda x, mask: np.sum(x, where=mask),
            lambda x, mask: np.mean(x, where=mask),
            lambda x, mask: np.var(x, where=mask),
            lambda x, mask: np.nanmax(x, initial=0, where=mask),
        ],
    )
    def test_a_mask_is_of_bools(self, call, dtype, line):
        mask = np.ones(9, dtype)
        with pytest.raises(TypeError):
            call(MATRIX, mask)
        for given in (mask, on(line, mask)):
            with pytest.raises(TypeError, match=rf": where has dtype {dtype}; expected bool, .*where=mask != 0"):
                call(on(line, MATRIX, "x"), given)
        assert call(on(line, MATRIX, "x"), [1] * 9) is not None  # NumPy converts lists

    @pytest.mark.parametrize(
        "function",
        [
            np.sum, np.max, np.any, np.mean, np.var, np.nansum, np.ptp, np.count_nonzero, np.argmax, np.nanargmin,
            np.cumsum, np.nancumprod, np.argsort, np.squeeze, np.add.reduce, np.add.accumulate,
            lambda x, axis: np.take(x, [0], axis), lambda x, axis: np.repeat(x, 2, axis),
            lambda x, axis: np.concatenate([x, x], axis),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("axis", [True, np.True_])
    def test_bools_are_refused_as_axes_as_in_numpy(self, function, axis, line):
        with pytest.raises(TypeError):
            function(MATRIX[:, :1], axis=axis)
        with pytest.raises(TypeError, match=": an axis is a bool; expected an integer, got True; give axis=1"):
            function(on(line, MATRIX[:, :1], "x"), axis=axis)

    @pytest.mark.parametrize("function", [np.sort, np.median, np.flip, np.diff])
    def test_functions_of_numpys_that_are_written_in_python_take_true_as_1(self, function, line):
        same(function(on(line, MATRIX, "x"), axis=True), function(MATRIX, axis=1))

    @pytest.mark.usefixtures("no_moves")
    @pytest.mark.parametrize("function", [np.sort, lambda x, **o: np.argsort(x, stable=True, **o)])
    def test_order_of_the_flattened_array(self, function, line):
        value = MATRIX[::-1] % 7
        same(function(on(line, value), axis=None), function(value, axis=None))
        with pytest.raises(ShardingTypeError, match=r"expected unsharded dimensions \(0, 1\)"):
            function(on(line, value, "x"), axis=None)

    @pytest.mark.parametrize("function", [np.partition, np.argpartition])
    def test_partitions_of_the_flattened_array(self, function, line):
        value = np.random.default_rng(1).permutation(72).reshape(8, 9)
        got = np.asarray(function(on(line, value), 30, axis=None))
        found = value.reshape(-1)[got] if function is np.argpartition else got
        assert found[30] == 30
        assert found[:30].max() < 30 < found[31:].min()


class TestStatistics:
    @pytest.mark.parametrize("function", [np.nanvar, np.nanstd, np.var, np.std])
    @pytest.mark.parametrize("dtype", ["int32", "bool", "float32", "complex64"])
    @pytest.mark.parametrize("ddof", [8, 9, 8.5])
    def test_more_degrees_of_freedom_than_elements(self, function, dtype, ddof, line):
        value = np.arange(16).reshape(8, 2).astype(dtype)
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0"):
            expected = function(value, axis=0, ddof=ddof)
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0"):
            got = function(on(line, value, "x"), axis=0, ddof=ddof)
        same(got, expected)


class TestMethodsAndShapes:
    @pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
    def test_conj_keeps_the_dtype(self, dtype, line):
        value = (np.arange(8) + (1j if dtype == "complex64" else 0)).astype(dtype)
        for method in ("conj", "conjugate"):
            same(getattr(on(line, value, "x"), method)(), getattr(value, method)())

    @pytest.mark.parametrize("function", [np.triu, np.tril])
    @pytest.mark.parametrize("k", [-2, 0, 3])
    def test_triangles_of_a_vector(self, function, k, line):
        value = np.arange(1, 9)
        got = function(on(line, value, "x"), k)
        same(got, function(value, k))
        assert got.sharding.spec == P(None, "x")
        with pytest.raises(TypeError):
            function(on(line, np.array(1)))

    def test_broadcast_arrays_takes_what_numpy_takes(self, line):
        x = on(line, np.arange(8.0), "x")
        first, nothing, text = np.broadcast_arrays(x, None, "label")
        assert first is x
        assert nothing.shape == text.shape == (8,)
        assert nothing.dtype == object
        assert set(nothing.tolist()) == {None}
        assert set(text.tolist()) == {"label"}

    def test_what_a_bar_chart_does(self, line):
        """matplotlib's bar(x, height): everything is broadcast, then taken element by element."""
        x = on(line, np.arange(8.0), "x")
        columns = np.broadcast_arrays(np.atleast_1d(x), x, 0.8, None, "/")
        bars = list(zip(*columns, strict=True))
        assert [(float(left), float(height), float(width)) for left, height, width, _, _ in bars] == [
            (i, i, 0.8) for i in range(8)
        ]
        assert {(bottom, hatch) for *_, bottom, hatch in bars} == {(None, "/")}

    def test_memory_is_shared_with_the_cached_value(self, line):
        x = on(line, np.arange(8.0), "x")
        other = on(line, np.arange(8.0), "x")
        assert not np.may_share_memory(np.zeros(8), x)
        gathered = np.asarray(x)
        assert np.may_share_memory(gathered, x)
        assert np.shares_memory(x, gathered[3:])
        assert not np.may_share_memory(gathered, other)
        assert not np.may_share_memory(gathered.copy(), x)


class TestPrettyPrinting:
    def test_pprint_takes_all_that_is_printed(self, line):
        x = on(line, np.arange(8.0), "x")
        things = {
            "array": x,
            "shard": x.addressable_shards[0],
            "sharding": x.sharding,
            "spec": x.sharding.spec,
            "single": ad.SingleDeviceSharding(ad.devices()[0]),
            "mesh": line,
            "abstract": line.abstract_mesh,
            "device": ad.devices()[0],
            "memory": ad.devices()[0].default_memory(),
            "types": line.axis_types,
        }
        for name, thing in things.items():
            hash(type(thing).__repr__)
            assert repr(thing) in pprint.pformat({name: thing}, width=10**6)
        text = pprint.pformat(things, width=40)
        assert all(f"'{name}': " in text for name in things)
        assert "Shard(device=" in text

    def test_reprs_are_those_of_the_core(self, line):
        for thing in (line, ad.devices()[0], P("x"), line.axis_types[0]):
            assert type(thing).__repr__(thing) == repr(thing)
