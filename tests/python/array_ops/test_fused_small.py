# SPDX-License-Identifier: Apache-2.0
"""Small Arrays, which are computed as one ndarray: layouts that are cached, and errors that are not."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits


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
