# SPDX-License-Identifier: Apache-2.0
"""Exact sums in bodies: the bits of the sum of all elements, however blocks, members and processes divide them."""

from __future__ import annotations

import math
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import P, lax
from exact_oracle import rounded_sum, spread

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def kind(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def bits(value: Any) -> bytes:
    return np.ascontiguousarray(value).tobytes()


def mapped(body: Any, count: int, out_specs: Any, host: np.ndarray, processes: int = 1, **options: Any) -> np.ndarray:
    """What a body makes of the rows of an array; in several processes from the first one."""

    def run(_: int = 0) -> np.ndarray:
        mesh = ad.make_mesh((count,), ("x",))
        found = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out_specs, **options)(host)
        return np.asarray(ad.multihost_utils.process_allgather(found, tiled=True) if processes > 1 else found)

    if processes == 1:
        with ad.simulate(count):
            return run()
    from artifex_devices.testing import run_processes

    outcomes = run_processes(run, processes, devices=count // processes).results
    assert all(bits(outcome) == bits(outcomes[0]) for outcome in outcomes)
    return outcomes[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_psum_and_pmean_round_the_exact_sum_once(dtype: str) -> None:
    host = spread(kind(dtype), 12 * 30).reshape(12, 30)
    total = np.array([rounded_sum(host[:, i]) for i in range(30)], host.dtype)
    mean = np.array([rounded_sum(host[:, i], 12) for i in range(30)], host.dtype)

    def body(x: Any) -> Any:
        rows = x[0]
        return lax.psum(rows, "x", reproducible=True), lax.pmean(rows, "x", reproducible=True)

    for order in range(3):
        shuffled = np.random.default_rng(order).permutation(host)
        with ad.simulate(12):
            mesh = ad.make_mesh((12,), ("x",))
            found = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(shuffled)
            assert [bits(np.asarray(each)) for each in found] == [bits(total), bits(mean)]


def test_the_second_call_of_a_program_too() -> None:
    host = np.array([1e16, 1.0, -1e16, 1.0])[:, None] * np.ones(3)

    def body(x: Any) -> Any:
        plain = lax.psum(x[0], "x")
        return [lax.psum(x[0], "x", reproducible=True) for _ in range(3)] + [lax.psum(x[0], "x") - plain]

    with ad.simulate(4):
        f = ad.shard_map(body, mesh=ad.make_mesh((4,), ("x",)), in_specs=P("x"), out_specs=P())
        for _ in range(3):
            *sums, zero = f(host)
            for each in sums:
                np.testing.assert_array_equal(np.asarray(each), [2.0, 2.0, 2.0])
            np.testing.assert_array_equal(np.asarray(zero), [0.0, 0.0, 0.0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "complex64"])
def test_psum_scatter_gives_each_member_its_piece(dtype: str) -> None:
    host = spread(kind(dtype), 4 * 8 * 3).reshape(4, 8, 3)
    total = np.array([rounded_sum(host[:, i, j]) for i in range(8) for j in range(3)], host.dtype).reshape(8, 3)
    tiled = mapped(lambda x: lax.psum_scatter(x[0], "x", tiled=True, reproducible=True), 4, P("x"), host)
    assert bits(tiled) == bits(total)
    columns = host.reshape(4, 3, 8)[:, :, :4]
    found = mapped(
        lambda x: lax.psum_scatter(x[0], "x", scatter_dimension=1, reproducible=True)[None], 4, P("x"), columns
    )
    expected = [[rounded_sum(columns[:, j, i]) for j in range(3)] for i in range(4)]
    assert bits(found) == bits(np.array(expected, host.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 3, 8, 48])
def test_sum_over_has_the_bits_of_the_global_sum(dtype: str, count: int) -> None:
    host = spread(kind(dtype), 48 * 20).reshape(48, 20)
    found = mapped(lambda x: lax.sum_over(x, "x"), count, P(), host)
    assert found.dtype == host.dtype
    assert bits(found) == bits(rounded_sum(host.reshape(-1)))
    with ad.simulate(5), ad.reproducible():
        line = ad.NamedSharding(ad.make_mesh((5,), ("y",)), P(None, "y"))
        assert bits(np.asarray(ad.device_put(host, line).sum())) == bits(found)


def test_sum_over_a_dimension_of_trees_and_groups_of_axes() -> None:
    host = spread(np.dtype(np.float32), 8 * 6).reshape(8, 6)
    columns = np.array([rounded_sum(host[:, i]) for i in range(6)])
    rows = np.array([rounded_sum(np.concatenate([host[i], host[i + 4]])) for i in range(4)])

    def body(x: Any) -> Any:
        tree = lax.sum_over({"columns": x, "count": x > 0}, ("a", "b"), 0)
        assert not tree["columns"].flags.writeable
        return tree["columns"], tree["count"], lax.sum_over(x, "a", axis=-1)

    with ad.simulate(4):
        mesh = ad.make_mesh((2, 2), ("a", "b"))
        f = ad.shard_map(body, mesh=mesh, in_specs=P(("a", "b")), out_specs=(P(), P(), P("b")))
        found = f(host)
    assert bits(np.asarray(found[0])) == bits(columns)
    np.testing.assert_array_equal(np.asarray(found[1]), (host > 0).sum(0))
    assert bits(np.asarray(found[2])) == bits(rows)


@pytest.mark.parametrize("size", [6, 6_000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_simulated_processes_give_the_same_bits(dtype: str, size: int) -> None:
    host = spread(kind(dtype), 4 * size).reshape(4, size)

    def body(x: Any) -> Any:
        everything = lax.sum_over(x, "x").reshape(1)
        return np.concatenate([lax.psum(x[0], "x", reproducible=True), everything])

    alone = mapped(body, 4, P(), host)
    assert bits(alone[-1]) == bits(rounded_sum(host.reshape(-1)))
    assert bits(alone[0]) == bits(rounded_sum(host[:, 0]))
    for processes in (2, 4):
        assert bits(mapped(body, 4, P(), host, processes)) == bits(alone)
    assert bits(mapped(body, 4, P(), host, executor="threads")) == bits(alone)


def test_members_that_sum_over_other_dimensions_are_refused() -> None:
    def body(x: Any) -> Any:
        return lax.sum_over(x, "x", int(lax.axis_index("x")) % 2)

    with pytest.raises(ad.errors.CollectiveError, match=r"axis=\(\(1,\),\)"):
        mapped(body, 2, P(), np.ones((4, 2)))


def test_special_values_in_bodies() -> None:
    host = np.array([[math.inf, math.nan, 1.7e308, -0.0], [-math.inf, 1, 1.7e308, -0.0], [1, 1, -1.7e308, -0.0]])
    found = mapped(lambda x: lax.psum(x[0], "x", reproducible=True), 3, P(), host)
    np.testing.assert_array_equal(found, [math.nan, math.nan, 1.7e308, -0.0])
    assert np.signbit(found[3])
    assert np.isnan(mapped(lambda x: lax.sum_over(x, "x"), 3, P(), host))


def test_integers_and_numbers_are_added_as_usual() -> None:
    host = np.array([[2**62, 1], [2**62, 2], [2**62, 3]])
    found = mapped(lambda x: lax.psum(x[0], "x", reproducible=True), 3, P(), host)
    np.testing.assert_array_equal(found, np.add.reduce(host))
    assert mapped(lambda x: x * 0 + lax.psum(2.5, "x", reproducible=True), 3, P("x"), host * 1.0)[0, 0] == 7.5
    assert mapped(lambda x: lax.sum_over(x, "x"), 3, P(), host.astype(np.int8)).dtype == np.int64
