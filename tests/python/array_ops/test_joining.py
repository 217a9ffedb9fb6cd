# SPDX-License-Identifier: Apache-2.0
"""Joining and splitting: NumPy's values, and where the results lie."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import ShardingTypeError
from artifex_devices.testing import assert_same_bits, dtypes, shardable_arrays, shardings
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("each_way")

V = np.arange(64.0).reshape(8, 8)


def put(value, sharding):
    return ad.device_put(value, sharding)


def spec_of(x):
    return tuple(x.sharding.spec)


@st.composite
def operands(draw, *, same_shape):
    """Arrays on the same devices and ndarrays, to be joined along the dimension that is given with them."""
    first = draw(shardable_arrays(dtype=dtypes()))
    value = first.value
    axis = draw(st.integers(-value.ndim, value.ndim - 1)) if value.ndim and not same_shape else 0
    values, arrays = [value], [put(value, first.sharding)]
    for _ in range(draw(st.integers(0, 2))):
        shape = list(value.shape)
        if not same_shape and value.ndim:
            shape[axis] = draw(st.integers(0, 6))
        other = np.arange(np.prod(shape), dtype="int8").astype(value.dtype).reshape(shape)
        kind = draw(st.sampled_from(["host", "like", "whole"]))
        if kind == "host":
            arrays.append(other)
        elif kind == "like" and other.shape == value.shape:
            arrays.append(put(other, first.sharding))
        elif isinstance(first.sharding, ad.NamedSharding):
            arrays.append(put(other, ad.NamedSharding(first.sharding.mesh, ad.P())))
        else:
            arrays.append(put(other, first.sharding))
        values.append(other)
    order = draw(st.permutations(range(len(values))))
    return [values[i] for i in order], [arrays[i] for i in order], axis


@given(operands(same_shape=False))
def test_concatenate(drawn):
    values, arrays, axis = drawn
    if not values[0].ndim:
        with pytest.raises(ValueError, match="no dimension"):
            np.concatenate(arrays)
        return
    result = np.concatenate(arrays, axis)
    assert isinstance(result, ad.Array)
    expected = np.concatenate(values, axis)
    assert_same_bits(result, expected)
    out = np.empty_like(expected, order="C")
    assert np.concatenate(arrays, axis, out=out) is out
    assert_same_bits(out, expected)


@given(operands(same_shape=True), st.data())
def test_stack(drawn, data):
    values, arrays, _ = drawn
    axis = data.draw(st.integers(-values[0].ndim - 1, values[0].ndim))
    result = np.stack(arrays, axis)
    assert isinstance(result, ad.Array)
    assert_same_bits(result, np.stack(values, axis))


@pytest.mark.parametrize(
    "function", [np.vstack, np.hstack, np.dstack, np.column_stack, lambda parts: np.append(*parts, axis=0)]
)
@pytest.mark.parametrize("shape", [(8,), (8, 4), (4, 8, 2)], ids=str)
def test_the_stacking_family(named, function, shape):
    value = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    expected = function([value, value + 1])
    x = put(value, named("x"))
    assert_same_bits(function([x, x + 1]), expected)
    assert_same_bits(function([value, x + 1]), expected)


def test_stacks_of_numbers():
    x = ad.device_put(np.float64(2.0))
    for function in (np.hstack, np.vstack, np.dstack, np.stack):
        assert_same_bits(function([x, 3.0]), function([np.float64(2.0), 3.0]))


@given(shardable_arrays(dtype=dtypes()), st.data())
def test_split(placement, data):
    value = placement.value
    x = put(value, placement.sharding)
    if not value.ndim:
        return
    axis = data.draw(st.integers(-value.ndim, value.ndim - 1))
    where = data.draw(st.integers(1, 5) | st.lists(st.integers(-7, 7), max_size=3))
    for part, expected in zip(np.array_split(x, where, axis), np.array_split(value, where, axis), strict=True):
        assert isinstance(part, ad.Array)
        assert_same_bits(part, expected)
    for part, expected in zip(np.unstack(x, axis=axis), np.unstack(value, axis=axis), strict=True):
        assert_same_bits(part, expected)


@given(shardings(shape=(8, 8)), st.integers(0, 1))
def test_splitting_undoes_joining(sharding, axis):
    x = put(V, sharding)
    for part in np.split(np.concatenate([x, x], axis), 2, axis):
        assert_same_bits(part, V)
        assert part.sharding.is_equivalent_to(sharding, 2)


def test_where_the_results_lie(named):
    x = put(V, named("x", "y"))
    whole = put(V, named())
    assert spec_of(np.concatenate([x, x])) == ("x", "y")
    assert spec_of(np.concatenate([x, x], 1)) == ("x", "y")
    assert spec_of(np.concatenate([whole, x])) == ("x", "y")
    assert spec_of(np.concatenate([x, V[:1]])) == (None, "y")  # 9 rows cannot be cut in two
    assert spec_of(np.concatenate([x, V[:2]])) == ("x", "y")
    assert spec_of(np.stack([x, x])) == (None, "x", "y")
    assert spec_of(np.stack([V, x], axis=-1)) == ("x", "y")
    assert [spec_of(part) for part in np.split(x, 2)] == [("x", "y")] * 2
    assert [spec_of(part) for part in np.split(x, [3])] == [(None, "y")] * 2
    assert [spec_of(part) for part in np.split(x, 8, axis=1)] == [("x",)] * 8
    assert [spec_of(part) for part in np.unstack(x, axis=1)] == [("x",)] * 8
    assert spec_of(np.hstack([x, x])) == ("x", "y")
    assert spec_of(np.block([[x, x], [x, x]])) == ("x", "y")


def test_another_layout_on_the_same_devices_is_brought_to_the_first(named):
    x, y = put(V, named("x", "y")), put(V + 1, named("y", "x"))
    result = np.concatenate([x, y])
    assert spec_of(result) == ("x", "y")
    assert_same_bits(result, np.concatenate([V, V + 1]))
    assert spec_of(np.stack([put(V, named("y")), x])) == (None, "y")


def test_explicit_axes_must_agree(devices):
    mesh = ad.make_mesh((2, 4), ("x", "y"), axis_types=(ad.sharding.AxisType.Explicit,) * 2)
    x, y = (put(V, ad.NamedSharding(mesh, ad.P(name))) for name in "xy")
    for axis in (0, 1):
        with pytest.raises(ShardingTypeError, match="reshard"):
            np.concatenate([x, y], axis)
    with pytest.raises(ShardingTypeError, match="9"):
        np.concatenate([x, V[:1]])
    with pytest.raises(ShardingTypeError, match="multiple of 4"):
        np.split(y, 8)
    assert spec_of(np.concatenate([x, x])) == ("x",)


def test_uneven_shards(grid):
    sharding = ad.NamedSharding(grid, ad.P("y"), uneven="last-short")
    value = np.arange(9)
    x = put(value, sharding)
    assert_same_bits(np.concatenate([x, x, [1, 2]]), np.concatenate([value, value, [1, 2]]))
    assert np.concatenate([x, x]).sharding == sharding
    for part, expected in zip(np.array_split(x, 4), np.array_split(value, 4), strict=True):
        assert_same_bits(part, expected)
        assert part.sharding == sharding


def test_dtypes_are_numpys(named):
    x = put(V.astype(np.float32), named("x"))
    assert np.concatenate([x, np.ones((1, 8), np.int32)]).dtype == np.float64
    assert np.stack([x, x], dtype=np.float16, casting="same_kind").dtype == np.float16
    assert_same_bits(
        np.concatenate([x, x], dtype=np.int8, casting="unsafe"), np.concatenate([V, V], dtype="int8", casting="unsafe")
    )
    with pytest.raises(TypeError):
        np.concatenate([x, x], dtype=np.int8)


def test_devices_that_differ(devices):
    x, y = put(V, devices[0]), put(V, devices[1])
    with pytest.raises(ValueError, match="incompatible devices"):
        np.concatenate([x, y])
    free = ad.device_put(V)
    result = np.concatenate([y, free])
    assert result.devices() == {devices[1]}
    assert result.committed
    assert not np.concatenate([free, free]).committed


def test_transfer_guards_hold(named):
    x = put(V, named("x"))
    with ad.transfer_guard("disallow"):
        assert_same_bits(np.concatenate([x[:1], x]), np.concatenate([V[:1], V]))
        for call in (lambda: np.concatenate([x, V]), lambda: np.stack([V, x])):
            with pytest.raises(RuntimeError, match=r"(concatenate|stack): disallowed implicit host-to-device"):
                call()


def test_every_mismatch_is_listed(named):
    x = put(V, named("x"))
    with pytest.raises(ValueError, match=r"operand 1: \(3,\); operand 2: \(8, 7\)"):
        np.concatenate([x, np.ones(3), np.ones((8, 7))])
    with pytest.raises(ValueError, match=r"operand 1: \(8,\)"):
        np.stack([x, V[0]])
    with pytest.raises(ValueError, match="array_split"):
        np.split(x, 3)
    with pytest.raises(ValueError, match="1 or more"):
        np.array_split(x, 0)
    with pytest.raises(ValueError, match="too few dimensions"):
        np.dsplit(x, 2)
    with pytest.raises(np.exceptions.AxisError):
        np.concatenate([x, x], 2)
    with pytest.raises(TypeError, match="out is not an ndarray"):
        np.concatenate([x, x], out=x)


def test_split_by_name(named):
    value = np.arange(64).reshape(4, 4, 4)
    x = put(value, named("x"))
    for function in (np.hsplit, np.vsplit, np.dsplit):
        for part, expected in zip(function(x, 2), function(value, 2), strict=True):
            assert_same_bits(part, expected)
    assert_same_bits(np.hsplit(put(V[0], named()), 2)[1], V[0, 4:])


def test_at_least(named):
    x = put(np.arange(8), named("x"))
    assert spec_of(np.atleast_2d(x)) == (None, "x")
    assert spec_of(np.atleast_3d(x)) == (None, "x")
    first, second = np.atleast_2d(x, V)
    assert_same_bits(first, np.arange(8)[None])
    assert second is V


def test_block(named):
    x = put(V, named("x"))
    layout = [[V, V[:, :1]], [np.ones((1, 8)), 5.0 * np.ones((1, 1))]]
    assert_same_bits(np.block([[x, V[:, :1]], layout[1]]), np.block(layout))
    assert_same_bits(np.block([x, x]), np.block([V, V]))
    with pytest.raises(ValueError, match="nested unevenly"):
        np.block([[x], x])
