# SPDX-License-Identifier: Apache-2.0
"""float16 and bfloat16: reductions add up in float32 and round once, on one device and on several."""

from __future__ import annotations

from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices.layout import Format, Layout

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
SHAPE = (8, 24, 10)
AXES: list[Any] = [None, 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), ()]


@pytest.fixture(params=HALVES, ids=lambda dtype: dtype.name)
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return request.param


@pytest.fixture(params=[None, ("x",), (None, "x"), (None, None, "x"), ()], ids=str)
def placed(request: pytest.FixtureRequest, dtype: np.dtype[Any]) -> Any:
    """Whole numbers, on one device, sharded along each dimension (the last one unevenly), and replicated."""
    host = (np.random.default_rng(0).integers(-9, 9, SHAPE)).astype(dtype)
    with ad.simulate(8):
        if request.param is None:
            yield ad.device_put(host), host
        else:
            mesh = ad.make_mesh((8,), ("x",))
            yield ad.device_put(host, ad.NamedSharding(mesh, ad.P(*request.param), uneven="last-short")), host


def exact(function: Any, host: np.ndarray, axis: Any, **options: Any) -> np.ndarray:
    """In float64, rounded once: the totals here are whole numbers below 2**24, so float32 has them exactly."""
    return function(host.astype(np.float64), axis=axis, **options).astype(np.float32).astype(host.dtype)


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min", "ptp", "mean"])
def test_reductions_are_those_of_float32_rounded_once(placed: Any, name: str, axis: Any) -> None:
    x, host = placed
    function = getattr(np, name)
    if name == "mean":
        totals = host.astype(np.float64).sum(axis=axis).astype(np.float32)
        count = host.size if axis is None else np.prod([SHAPE[d] for d in np.atleast_1d(np.asarray(axis, int))])
        expected = (totals / np.float32(count)).astype(host.dtype)
    else:
        expected = exact(function, host, axis)
    result = function(x, axis=axis)
    assert result.dtype == host.dtype
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_products_and_keepdims(placed: Any) -> None:
    x, host = placed
    signs = np.sign(np.asarray(x).astype(np.float32)).astype(host.dtype)
    y = ad.device_put(signs, x.sharding)
    np.testing.assert_array_equal(
        np.asarray(np.prod(y, axis=1, keepdims=True)), exact(np.prod, signs, 1, keepdims=True)
    )


def test_a_nan_wins_and_zeros_keep_their_sign(dtype: np.dtype[Any]) -> None:
    with ad.simulate(4):
        rows = ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P("x"))
        host = np.full((8, 70), -0.0, dtype)
        assert np.signbit(np.asarray(ad.device_put(host, rows).sum(axis=1))).all()
        host[5, 33] = np.nan
        for name in ("sum", "max", "min", "mean"):
            found = np.isnan(np.asarray(getattr(ad.device_put(host, rows), name)(axis=1)))
            np.testing.assert_array_equal(found, np.arange(8) == 5)
        assert np.isnan(np.asarray(ad.device_put(host, rows).max()))


def test_long_sums_do_not_stop_growing(dtype: np.dtype[Any]) -> None:
    ones = np.ones(1 << 16, dtype)  # float16 and bfloat16 themselves stop at 2,048 and 256
    with ad.simulate(2):
        x = ad.device_put(ones, ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")))
        assert float(np.sum(x, dtype=np.float32)) == 65536.0
        assert float(x.mean()) == 1.0


def test_columns_first_and_reversed_memory(dtype: np.dtype[Any]) -> None:
    host = np.arange(60).reshape(6, 10).astype(dtype)
    with ad.simulate(1):
        x = ad.device_put(host, Format(Layout((1, 0)), ad.SingleDeviceSharding(ad.devices()[0])))
        np.testing.assert_array_equal(np.asarray(x.sum(axis=0)), exact(np.sum, host, 0))
        np.testing.assert_array_equal(np.asarray(x.T[::-1].max(axis=1)), exact(np.max, host.T[::-1], 1))


def test_other_dtypes_to_add_up_in_take_numpys_way(dtype: np.dtype[Any]) -> None:
    host = (np.arange(64) / 7).astype(dtype)
    with ad.simulate(1):
        x = ad.device_put(host)
        assert float(np.sum(x, dtype=np.float64)) == float(host.astype(np.float64).sum())
        assert float(np.max(x, initial=100)) == 100.0
        assert float(np.sum(x, initial=dtype.type(2))) == float((host.astype(np.float32).sum() + 2).astype(dtype))
        where = host > 4
        assert float(np.sum(x, where=where)) == float(host[where].astype(np.float32).sum().astype(dtype))


def test_means_over_devices_divide_the_rounded_sum(dtype: np.dtype[Any]) -> None:
    host = np.random.default_rng(1).standard_normal((8, 1000)).astype(dtype)
    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))
        mean = ad.shard_map(lambda block: lax.pmean(block, "x"), mesh=mesh, in_specs=ad.P("x"), out_specs=ad.P())
        result = np.asarray(mean(ad.device_put(host, ad.NamedSharding(mesh, ad.P("x")))))
    total = host[0].astype(np.float32)
    for row in host[1:]:
        total = total + row.astype(np.float32)
    np.testing.assert_array_equal(result[0], (total.astype(dtype).astype(np.float32) / 8).astype(dtype))
