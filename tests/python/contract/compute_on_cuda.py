# SPDX-License-Identifier: Apache-2.0
"""Element-wise functions and bodies of shard_map on CUDA devices, through CuPy; run by test_cuda_stand_in.py."""

from __future__ import annotations

import sys

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices.prefetch import prefetch_to_device

X = np.arange(128, dtype=np.float32).reshape(8, 16)


def place(grid, value, *spec, **options):
    return ad.device_put(value, ad.NamedSharding(grid, ad.P(*spec), **options))


def test_element_wise_functions_run_where_the_operands_are(grid):
    a, row, column = place(grid, X, "x", "y"), place(grid, X[0], "y"), place(grid, X[:, :1], "x")
    with ad.transfers.record() as report:
        results = [
            a.astype(np.int16),
            a + 1,
            a * row - column,
            np.exp(-a / 8),
            a > 17,
            np.maximum(a, np.float32(9)),
            -a,
            a**2,
        ]
    assert report.bytes() == 0
    expected = [
        X.astype(np.int16),
        X + 1,
        X * X[0] - X[:, :1],
        np.exp(-X / 8),
        X > 17,
        np.maximum(X, np.float32(9)),
        -X,
        X**2,
    ]
    for result, value in zip(results, expected, strict=True):
        assert result.sharding == a.sharding
        assert (result.dtype, next(iter(result.devices())).platform) == (value.dtype, "gpu")
        if value.dtype == np.bool_ or value.dtype == np.int16:
            np.testing.assert_array_equal(ad.device_get(result), value)
        else:
            np.testing.assert_array_max_ulp(ad.device_get(result), value, 2)  # exp of a GPU rounds in its own way


def test_operands_in_other_places_are_moved_or_guarded(grid):
    a, moved = place(grid, X, "x", "y"), place(grid, X, "y", "x")
    np.testing.assert_array_equal(ad.device_get(a + moved), X + X)
    with ad.transfers.record() as report:
        total = a + X
    assert report.bytes("host-to-device") == X.nbytes
    np.testing.assert_array_equal(ad.device_get(total), X + X)
    with ad.transfer_guard("disallow"), pytest.raises(ad.errors.TransferGuardError, match="add: disallowed implicit"):
        a + X


def test_uneven_empty_and_single_parts(grid):
    short = place(grid, X[:5], "x", uneven="last-short")
    np.testing.assert_array_equal(ad.device_get(short * 2), X[:5] * 2)
    assert ad.device_get(place(grid, X[:0], None, "y") + 1).shape == (0, 16)
    one = ad.device_put(np.float32(3), ad.devices()[2])
    assert float(ad.device_get(one + 4)) == 7.0
    big = place(grid, np.ones((1024, 1024), np.float32), "x", "y")
    assert float(ad.device_get(big + big).sum()) == 2.0 * 2**20


def test_results_are_complete_for_every_copy(grid):
    """CuPy's work goes on after its call; copies from and to its memory, and its end, wait for it."""
    a = place(grid, X, "x", "y")
    for _ in range(3):
        a = place(grid, ad.device_get(a + 1), "x", "y") * 2
    moved = ad.device_put(a + 0, ad.NamedSharding(grid, ad.P("y", "x")))
    np.testing.assert_array_equal(ad.device_get(moved), ((X + 1) * 2 + 1) * 2 * 2 + 2)
    for _ in range(8):
        a + 1
        place(grid, X, "x", "y")


def test_bodies_of_shard_map_get_cupy_arrays_of_their_gpu(grid):
    import cupy

    kinds = set()

    def body(block, row):
        kinds.add(type(block))
        assert cupy.cuda.Device().id == block.device.id
        return block * row, block.sum(axis=0, keepdims=True)

    mapped = ad.shard_map(
        body, mesh=grid, in_specs=(ad.P("x", "y"), ad.P("y")), out_specs=(ad.P("x", "y"), ad.P("x", "y"))
    )
    scaled, sums = mapped(place(grid, X, "x", "y"), place(grid, X[0], "y"))
    assert kinds == {cupy.ndarray}
    np.testing.assert_array_equal(ad.device_get(scaled), X * X[0])
    np.testing.assert_array_equal(ad.device_get(sums), X.reshape(2, 4, 16).sum(axis=1))
    assert scaled.sharding == sums.sharding == ad.NamedSharding(grid, ad.P("x", "y"))


COLLECTIVES = {
    "psum": (lambda x: ad.lax.psum(x, "x"), lambda parts: [sum(parts)] * 2),
    "psum of float16": (lambda x: ad.lax.psum(x.astype(np.float16), "x"), lambda parts: [sum(parts).astype("f2")] * 2),
    "psum of bfloat16": (
        lambda x: ad.lax.psum((x % 9).astype(ml_dtypes.bfloat16), "x"),
        lambda parts: [sum(part % 9 for part in parts).astype(ml_dtypes.bfloat16)] * 2,
    ),
    "psum of a tree": (
        lambda x: ad.lax.psum({"a": x, "b": (x > 70).sum(axis=1)}, "x")["b"],
        lambda parts: [sum((part > 70).sum(axis=1) for part in parts)] * 2,
    ),
    "pmean": (lambda x: ad.lax.pmean(x, "x"), lambda parts: [sum(parts) / 2] * 2),
    "pmax": (lambda x: ad.lax.pmax(x * x % 61, "x"), lambda parts: [np.maximum(*(p * p % 61 for p in parts))] * 2),
    "all_gather": (lambda x: ad.lax.all_gather(x, "x"), lambda parts: [np.stack(parts)] * 2),
    "all_gather, tiled": (lambda x: ad.lax.all_gather(x, "x", tiled=True), lambda parts: [np.concatenate(parts)] * 2),
    "psum_scatter": (
        lambda x: ad.lax.psum_scatter(x, "x", scatter_dimension=0, tiled=True),
        lambda parts: np.split(sum(parts), 2),
    ),
    "all_to_all": (
        lambda x: ad.lax.all_to_all(x, "x", 0, 1, tiled=True),
        lambda parts: [np.concatenate([np.split(part, 2)[i] for part in parts], axis=1) for i in range(2)],
    ),
    "ppermute": (lambda x: ad.lax.ppermute(x, "x", [(0, 1)]), lambda parts: [np.zeros_like(parts[0]), parts[0]]),
    "pbroadcast": (lambda x: ad.lax.pbroadcast(x, "x", 1), lambda parts: [parts[1]] * 2),
}


@pytest.mark.parametrize("name", COLLECTIVES, ids=str)
def test_collectives_combine_blocks_of_gpus(grid, name):
    """Each member gets a CuPy array on its own GPU, which it may write."""
    import cupy

    call, combine = COLLECTIVES[name]
    found = {}

    def body(block):
        made = call(block)
        assert type(made) is cupy.ndarray
        assert made.device.id == block.device.id
        found[ad.lax.axis_index("x"), ad.lax.axis_index("y")] = made.get()
        made[...] = 0  # must not change what others got
        return block

    with ad.transfers.record() as report:
        ad.shard_map(body, mesh=grid, in_specs=ad.P("x", "y"), out_specs=ad.P("x", "y"))(place(grid, X, "x", "y"))
    assert report.bytes("device-to-host") == 0
    for column in range(4):
        expected = combine([X[rows, 4 * column : 4 * column + 4] for rows in (slice(4), slice(4, 8))])
        for row in range(2):
            assert found[row, column].dtype == expected[row].dtype
            np.testing.assert_array_equal(found[row, column], expected[row])


def test_one_gpu_is_a_group_of_its_own(world):
    mesh = ad.Mesh(np.array(ad.devices()[:1]), ("x",))
    total = ad.shard_map(lambda block: ad.lax.psum(block, "x"), mesh=mesh, in_specs=ad.P("x"), out_specs=ad.P())
    assert np.array_equal(ad.device_get(total(place(mesh, X, "x"))), X)


def test_blocks_on_a_gpu_and_on_the_host_do_not_meet(grid):
    def body(block):
        return ad.lax.psum(block if ad.lax.axis_index("x") == 0 else block.get(), "x")

    total = ad.shard_map(body, mesh=grid, in_specs=ad.P("x", "y"), out_specs=ad.P(None, "y"))
    with pytest.raises(ad.errors.CollectiveError) as caught:
        total(place(grid, X, "x", "y"))
    assert "psum gpu float32(4, 4) over x" in str(caught.value)
    assert "psum float32(4, 4) over x" in str(caught.value)


def test_replicated_results_of_bodies_are_compared(grid):
    same = ad.shard_map(lambda block: block + 1, mesh=grid, in_specs=ad.P(), out_specs=ad.P())
    np.testing.assert_array_equal(ad.device_get(same(place(grid, X))), X + 1)
    differ = ad.shard_map(lambda block: block + 1, mesh=grid, in_specs=ad.P("x"), out_specs=ad.P())
    with pytest.raises(ValueError, match="replicated by its spec, but not the same everywhere"):
        differ(place(grid, X, "x"))


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (
            np.maximum.accumulate,
            "maximum.accumulate: CuPy has no such function; expected a function of CuPy, or host memory",
        ),
        (np.subtract.reduce, "subtract.reduce: CuPy has no such function; expected a function of CuPy, or host memory"),
        (np.spacing, "spacing: CuPy has no such function"),
    ],
    ids=["scan", "reduction", "function"],
)
def test_functions_that_cupy_lacks_are_refused_with_the_transfer(grid, compute, message):
    with pytest.raises(TypeError, match=message) as caught:
        compute(place(grid, X, None, "y"))
    assert 'move the Array: device_put(x, devices("cpu")[0])' in str(caught.value)


def test_bfloat16_is_computed_and_dtypes_that_cupy_lacks_are_refused(grid):
    value = (X % 5).astype(ml_dtypes.bfloat16)
    total = place(grid, value, "x") + 1
    assert total.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(ad.device_get(total).astype(np.float32), X % 5 + 1)
    with pytest.raises(
        TypeError, match="add: CuPy has no dtype float8_e4m3fn; expected a dtype that it has; convert it"
    ):
        place(grid, X.astype(ml_dtypes.float8_e4m3fn), "x") + 1


def test_out_and_where_are_those_of_numpy(grid):
    """`out` is memory of the host, so that the result is read from the GPUs."""
    x, out = place(grid, X, "x", "y"), np.zeros_like(X)
    with ad.transfers.record() as report:
        assert np.add(x, x, out=out) is out
        np.sum(x, axis=0, out=out[0])
    assert report.bytes("device-to-host") == X.nbytes + X[0].nbytes
    np.testing.assert_array_equal(out[1:], 2 * X[1:])
    np.testing.assert_array_equal(out[0], X.sum(axis=0))
    np.testing.assert_array_equal(ad.device_get(np.add(x, 1, where=x > 9)), np.where(X > 9, X + 1, 0))


def test_numbers_are_read_by_the_host(grid):
    x = place(grid, X, "x", "y")
    with ad.transfers.record() as report:
        assert (float(x[3, 5]), x.sum().item(), bool(np.any(x > 126)), int(x.argmax())) == (X[3, 5], X.sum(), True, 127)
    assert report.bytes("device-to-host") == 4 + 4 + 1 + 8
    with ad.transfer_guard("disallow"), pytest.raises(ad.errors.TransferGuardError):
        float(x[3, 5])


def test_singular_matrices_are_errors(grid):
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(place(grid, np.zeros((4, 3, 3)), "y"))
    value = np.arange(36.0).reshape(4, 3, 3) % 7 + 5 * np.eye(3)
    sides = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(
        ad.device_get(np.linalg.solve(place(grid, value, "y"), sides)), np.linalg.solve(value, sides), rtol=1e-10
    )


def test_without_cupy_the_install_line_is_named(grid, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TypeError, match=r"add: .*CuPy cannot be imported.*pip install 'artifex_devices\[cuda\]'"):
        place(grid, X, "x") + 1


def test_batches_are_prefetched_to_gpus(grid):
    rows = ad.NamedSharding(grid, ad.P("x"))
    batches = list(prefetch_to_device(iter([X, X + 1, X + 2]), rows))
    assert [batch.sharding for batch in batches] == [rows] * 3
    for i, batch in enumerate(batches):
        np.testing.assert_array_equal(ad.device_get(batch), X + i)
