# SPDX-License-Identifier: Apache-2.0
"""Small Arrays as one ndarray, and what is kept of how results lie."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices._array_ops.core.fused_small import from_fused, fused_value, is_small
from artifex_devices.testing import assert_same_bits
from hypothesis import given
from numpy_oracle import pairs


@given(pairs(uneven=False))
def test_a_fused_value_makes_the_round_trip(pair):
    whole = fused_value(pair.device)
    if whole is None:
        assert pair.device.size == 0 or len({shard.device for shard in pair.device.addressable_shards}) > 1
        return
    assert_same_bits(whole, pair.host)
    back = from_fused("test", pair.host, pair.host.dtype, pair.device.sharding, committed=pair.device.committed)
    assert (back.sharding, back.committed) == (pair.device.sharding, pair.device.committed)
    assert_same_bits(np.asarray(back), pair.host)
    for one, two in zip(back.addressable_shards, pair.device.addressable_shards, strict=True):
        assert_same_bits(np.asarray(one.data), np.asarray(two.data))


def test_rows_over_devices_are_a_view_and_cannot_be_written(line):
    x = ad.device_put(np.arange(128, dtype=np.float32).reshape(8, 16), ad.NamedSharding(line, ad.P("x")))
    whole = fused_value(x)
    assert np.shares_memory(whole, fused_value(x))
    assert not whole.flags.writeable


def test_uneven_shards_have_no_fused_value(line):
    x = ad.device_put(np.ones(9, np.float32), ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
    assert fused_value(x) is None
    assert np.sum(x).item() == 9.0


def test_what_is_small():
    assert is_small(1000, 2000)
    assert not is_small(0)
    assert not is_small(1 << 18, 1 << 18)


def test_one_shape_in_different_shardings_is_distinguished(grid):
    value = np.arange(64, dtype=np.float32).reshape(8, 8)
    for entries in (("x",), (None, "y"), ("y", "x"), ((), ("x", "y")), (("y", "x"),)):
        x = ad.device_put(value, ad.NamedSharding(grid, ad.P(*entries)))
        for _ in range(2):  # found, then known
            assert_same_bits(np.asarray(x[3]), value[3])
            assert_same_bits(np.asarray(x[1:5:2, -1]), value[1:5:2, -1])
            assert_same_bits(np.asarray(x @ value), value @ value)
            total = x + value[0]
            assert_same_bits(np.asarray(total), value + value[0])
            assert total.sharding == x.sharding


def test_an_error_is_raised_each_time(devices):
    mesh = ad.Mesh(np.array(devices), ("x",), axis_types=(ad.AxisType.Explicit,))
    value = np.ones((8, 8), np.float32)
    rows, columns = (ad.device_put(value, ad.NamedSharding(mesh, ad.P(*e))) for e in (("x",), (None, "x")))
    for call in (lambda: rows + columns, lambda: rows[0], lambda: rows @ columns):
        for _ in range(2):
            with pytest.raises(ValueError, match="Explicit"):
                call()


def test_a_deleted_operand_is_an_error_with_a_cached_layout(line):
    x, y = (ad.device_put(np.ones((8, 4), np.float32), ad.NamedSharding(line, ad.P("x"))) for _ in range(2))
    host = np.ones(4, np.float32)
    assert_same_bits(np.asarray(x + host), np.full((8, 4), 2, np.float32))
    y.delete()
    for call in (lambda: y + host, lambda: y[0], lambda: y.sum(), lambda: y @ host, lambda: np.sort(y, axis=1)):
        with pytest.raises(RuntimeError, match="deleted"):
            call()


def test_a_guard_sees_host_operands_of_small_arrays(line):
    x = ad.device_put(np.ones((8, 4), np.float32), ad.NamedSharding(line, ad.P("x")))
    host = np.ones(4, np.float32)
    for call in (lambda: x + host, lambda: x @ host, lambda: np.concatenate([x, host[None]], axis=0)):
        call()
        with ad.transfer_guard_host_to_device("disallow"), pytest.raises(RuntimeError, match="host"):
            call()
