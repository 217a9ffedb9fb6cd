# SPDX-License-Identifier: Apache-2.0
"""Types that type checkers infer for calls of the public functions.

test_types.py checks this file with mypy and pyright, and runs it with an assert_type that compares values with types.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple, assert_type

import artifex_devices as ad
import numpy as np
from artifex_devices import P
from artifex_devices.prefetch import Prefetcher, prefetch_to_device
from numpy.typing import NDArray

HostBatch = dict[str, NDArray[np.float64]]


class State(NamedTuple):
    """A tree of the user."""

    weights: ad.Array
    bias: ad.Array


def check_placement(host: NDArray[np.float64], rows: ad.NamedSharding) -> None:
    """Placing a tree: arrays become Arrays, the containers stay."""
    x = ad.device_put(host, rows)
    assert_type(x, ad.Array)
    assert_type(ad.device_put(1.5), ad.Array)
    assert_type(ad.device_put({"x": host}, rows), dict[str, ad.Array])
    assert_type(ad.device_put({"x": x}, rows), dict[str, ad.Array])
    assert_type(ad.device_put([host, host], rows), list[ad.Array])
    assert_type(ad.device_put((host, x), rows), tuple[ad.Array, ...])
    assert_type(ad.device_put(State(x, x), rows), State)
    assert_type(ad.device_put({"layer": {"x": host}}, rows), dict[str, Any])
    assert_type(ad.device_put({"layer": [host]}, rows), dict[str, Any])
    assert_type(ad.device_put([[host]], rows), Any)
    assert_type(ad.device_get(x), NDArray[Any])
    assert_type(ad.device_get({"x": x}), dict[str, NDArray[Any]])
    assert_type(ad.device_get([{"x": x}]), Any)
    assert_type(ad.block_until_ready({"x": x}), dict[str, ad.Array])
    assert_type(ad.with_sharding_constraint(host, rows), ad.Array)
    assert_type(ad.reshard(x, rows), ad.Array)
    assert_type(ad.reshard({"x": host}, rows), dict[str, ad.Array])
    assert_type(ad.reshard(State(x, x), rows), State)
    assert_type(ad.reshard({"layer": {"x": host}}, rows), Any)
    assert_type(ad.place_on_device(host), ad.Array)
    assert_type(ad.distribute_batch({"x": host}, rows), dict[str, ad.Array])
    assert_type(ad.DevicePlacement().distribute_batch(host, rows), ad.Array)
    assert_type(ad.DevicePlacement().replicate_across_devices({"x": host}), dict[str, ad.Array])


def check_batches(host: NDArray[np.float64], x: ad.Array, mesh: ad.Mesh) -> None:
    """Arrays of a batch become Arrays; numbers and text are unchanged."""
    placement = ad.DevicePlacement()
    assert_type(placement.shard_batch_dim(host, mesh), ad.Array)
    assert_type(placement.shard_batch_dim({"x": host}, mesh), dict[str, ad.Array])
    assert_type(placement.shard_batch_dim([x, x], mesh, batch_axis=0), list[ad.Array])
    assert_type(placement.shard_batch_dim((host, x), mesh), tuple[ad.Array, ...])
    assert_type(placement.shard_batch_dim(State(x, x), mesh), State)
    assert_type(placement.shard_batch_dim({"x": host, "step": 3}, mesh), Any)
    assert_type(placement.shard_batch_dim("train", mesh), str)


def check_trees(host: NDArray[np.float64], x: ad.Array) -> None:
    """Leaves of a tree of one level keep their type; deeper trees are Any."""

    def size(leaf: ad.Array) -> int:
        return leaf.size

    def minus(weights: ad.Array, step: ad.Array) -> ad.Array:
        return weights - step

    def add_size(total: int, leaf: ad.Array) -> int:
        return total + leaf.size

    params = {"w": x, "b": x}
    assert_type(ad.tree.leaves(params), list[ad.Array])
    assert_type(ad.tree.leaves([host, host]), list[NDArray[np.float64]])
    assert_type(ad.tree.leaves(x), list[ad.Array])
    assert_type(ad.tree.leaves({"layer": params}), list[Any])
    assert_type(ad.tree.leaves(params, is_leaf=lambda node: isinstance(node, dict)), list[Any])
    leaves, structure = ad.tree.flatten(params)
    assert_type(leaves, list[ad.Array])
    assert_type(structure, ad.tree_util.PyTreeDef)
    assert_type(structure.node_data(), tuple[type, Any] | None)
    assert_type(ad.tree.unflatten(structure, leaves), Any)
    assert_type(ad.tree.map(size, params), dict[str, int])
    assert_type(ad.tree.map(size, [x, x]), list[int])
    assert_type(ad.tree.map(size, (x, x)), tuple[int, ...])
    assert_type(ad.tree.map(size, x), int)
    assert_type(ad.tree.map(minus, State(x, x), State(x, x)), State)
    assert_type(ad.tree.map(minus, params, params), Any)
    assert_type(ad.tree.reduce(add_size, params, 0), int)


def check_properties(x: ad.Array) -> None:
    """Properties of an Array and its shards."""
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.shape[0], int)
    assert_type(x.ndim, int)
    assert_type(x.dtype, np.dtype[Any])
    assert_type(x.sharding, ad.Sharding)
    assert_type(x.device, ad.Device | ad.Sharding)
    assert_type(x.devices(), set[ad.Device])
    assert_type(x.addressable_shards, list[ad.Shard])
    assert_type(x.addressable_shards[0].data, ad.Array | Any)
    assert_type(x.addressable_shards[0].index, tuple[slice, ...])
    assert_type(x.sharding.devices_indices_map(x.shape), dict[ad.Device, tuple[slice, ...]])
    assert_type(x.sharding.shard_shape(x.shape), tuple[int, ...])
    assert_type(np.asarray(x), NDArray[Any])
    assert_type(x.tobytes(), bytes)
    assert_type(x.tolist(), Any)
    assert_type(x.item(0), Any)
    assert_type(float(x[0, 0]), float)


def check_operators(x: ad.Array, host: NDArray[np.float64]) -> None:
    """Operators and methods return Arrays."""
    assert_type(x + 1, ad.Array)
    assert_type(1 + x, ad.Array)
    assert_type(2.0 * x, ad.Array)
    assert_type(x - host, ad.Array)
    assert_type(x / x, ad.Array)
    assert_type(x**2, ad.Array)
    assert_type(-x, ad.Array)
    assert_type(abs(x), ad.Array)
    assert_type(x @ x.T, ad.Array)
    assert_type(x == x, ad.Array)
    assert_type(x != host, ad.Array)
    assert_type(x < 3, ad.Array)
    assert_type(divmod(x, 2), tuple[ad.Array, ad.Array])
    assert_type(x[0], ad.Array)
    assert_type(x[:, 1:], ad.Array)
    assert_type(next(iter(x)), ad.Array)
    assert_type(x.at[0].set(1.0), ad.Array)
    assert_type(x.sum(axis=0), ad.Array)
    assert_type(x.mean(), ad.Array)
    assert_type(x.max(axis=1), ad.Array)
    assert_type(x.argmax(), ad.Array)
    assert_type(x.astype(np.float32), ad.Array)
    assert_type(x.reshape(-1), ad.Array)
    assert_type(x.transpose(), ad.Array)
    assert_type(x.dot(x.T), ad.Array)
    assert_type(x.block_until_ready(), ad.Array)


def check_devices(x: ad.Array, mesh: ad.Mesh) -> None:
    """Devices, meshes and shardings."""
    assert_type(ad.devices(), list[ad.Device])
    assert_type(ad.devices()[0].id, int)
    assert_type(ad.devices()[0].memory_stats(), dict[str, int])
    assert_type(ad.device_count(), int)
    assert_type(ad.make_mesh((4, 2), ("data", "model")), ad.Mesh)
    assert_type(ad.DeviceMeshManager().create_data_parallel_mesh(), ad.Mesh)
    assert_type(mesh.axis_names, tuple[Hashable, ...])
    assert_type(mesh.shape, collections.OrderedDict[Hashable, int])
    assert_type(mesh.shape["data"], int)
    assert_type(mesh.devices, NDArray[Any])
    assert_type(P("data", None), ad.PartitionSpec)
    assert_type(P("data") + P(None), ad.PartitionSpec)
    sharding = ad.NamedSharding(mesh, P("data"))
    assert_type(sharding.spec, ad.PartitionSpec)
    assert_type(sharding.with_memory_kind("pinned_host"), ad.NamedSharding)
    assert_type(ad.live_arrays(), list[ad.Array])
    parts = [ad.device_put(np.ones(1), device) for device in ad.devices()[:2]]
    pair = ad.NamedSharding(ad.make_mesh({"data": 2}), P("data"))
    assert_type(ad.make_array_from_single_device_arrays((2,), pair, parts), ad.Array)
    assert_type(ad.make_array_from_single_device_arrays(parts, pair), ad.Array)
    assert_type(ad.make_array_from_callback((2,), pair, lambda index: np.zeros(1)), ad.Array)
    abstract = ad.AbstractMesh((2,), ("data",))
    assert_type(abstract.update_axis_types({"data": ad.sharding.AxisType.Auto}), ad.AbstractMesh)


def check_settings() -> None:
    """Options and their values."""
    assert_type(ad.config.read("spmd_executor"), bool | int | float | str | None)
    assert_type(ad.config.values, dict[str, bool | int | float | str | None])


def check_mapped_functions(x: ad.Array, mesh: ad.Mesh) -> None:
    """Bodies take ndarrays and return ndarrays; mapped functions take and return Arrays."""

    def double(block: NDArray[np.float64]) -> NDArray[np.float64]:
        return block * 2

    def both(block: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        return block, 1.0

    def named(block: NDArray[np.float64]) -> HostBatch:
        return {"block": block}

    rows = P("data")
    assert_type(ad.shard_map(double, mesh, in_specs=rows, out_specs=rows)(x), ad.Array)
    assert_type(ad.shard_map(both, mesh, in_specs=rows, out_specs=(rows, P()))(x), tuple[ad.Array, ad.Array])
    assert_type(ad.shard_map(named, mesh, in_specs=rows, out_specs=rows)(x), dict[str, ad.Array])
    assert_type(ad.smap(double, mesh, in_axes=0, out_axes=0, axis_name="data")(x), ad.Array)
    assert_type(ad.pmap(double)(np.ones((4, 2))), ad.Array)

    @ad.shard_map(mesh=mesh, in_specs=rows, out_specs=rows)
    def triple(block: NDArray[np.float64]) -> NDArray[np.float64]:
        return block * 3

    assert_type(triple(x), ad.Array)


def check_collectives(x: ad.Array, mesh: ad.Mesh) -> None:
    """Collectives return what they get; numbers become ndarrays, except in psum."""
    lax = ad.lax

    def body(block: NDArray[np.float64]) -> NDArray[np.float64]:
        counts = block.astype(np.int64)
        assert_type(lax.psum(block, "data"), NDArray[np.float64])
        assert_type(lax.psum({"w": block}, "data"), dict[str, NDArray[np.float64]])
        assert_type(lax.psum(1, "data"), int)
        assert_type(lax.psum(block > 0, "data"), NDArray[np.int32])
        assert_type(lax.psum(np.sum(block), "data"), NDArray[Any])
        assert_type(lax.pmean(block, "data"), NDArray[np.float64])
        assert_type(lax.pmean(counts, "data"), NDArray[Any])
        assert_type(lax.pmean({"w": block}, "data"), dict[str, NDArray[np.float64]])
        assert_type(lax.pmax(counts, "data"), NDArray[np.int64])
        assert_type(lax.pmin(1.5, "data"), NDArray[Any])
        assert_type(lax.all_gather(block, "data", tiled=True), NDArray[np.float64])
        assert_type(lax.all_gather([block], "data"), list[NDArray[np.float64]])
        assert_type(lax.all_gather(3, "data"), NDArray[Any])
        assert_type(lax.psum_scatter(block, "data", tiled=True), NDArray[np.float64])
        assert_type(lax.all_to_all(block, "data", 0, 1, tiled=True), NDArray[np.float64])
        assert_type(lax.pswapaxes(counts, "data", 0), NDArray[np.int64])
        assert_type(lax.ppermute(block, "data", [(0, 1)]), NDArray[np.float64])
        assert_type(lax.pshuffle((block, counts), "data", [1, 0, 3, 2]), tuple[NDArray[np.float64], NDArray[np.int64]])
        assert_type(lax.pbroadcast(block, "data", 0), NDArray[np.float64])
        assert_type(lax.pvary(block, "data"), NDArray[np.float64])
        assert_type(lax.axis_index("data"), np.int32)
        assert_type(lax.axis_size("data"), int)
        return block

    rows = P("data")
    assert_type(ad.shard_map(body, mesh, in_specs=rows, out_specs=rows)(x), ad.Array)


def check_jit(x: ad.Array) -> None:
    """The function that jit returns has the type of its argument."""

    def scaled(x: ad.Array, by: float = 2.0) -> ad.Array:
        return x * by

    assert_type(ad.jit(scaled)(x, by=3.0), ad.Array)

    @ad.jit(donate_argnums=())
    def shifted(x: ad.Array) -> ad.Array:
        return x + 1

    assert_type(shifted(x), ad.Array)


def check_prefetching(host: NDArray[np.float64], x: ad.Array, rows: ad.NamedSharding) -> None:
    """Prefetchers are iterators of placed batches."""

    def batches() -> Iterator[HostBatch]:
        yield {"x": host}

    arrays = prefetch_to_device([host, host], rows)
    assert_type(arrays, Prefetcher[ad.Array])
    assert_type(next(arrays), ad.Array)
    assert_type(next(prefetch_to_device(batches(), rows)), dict[str, ad.Array])
    assert_type(next(prefetch_to_device([(host, host)], rows)), tuple[ad.Array, ...])
    assert_type(next(prefetch_to_device([State(x, x)], rows)), State)
    with ad.DevicePlacement().prefetch_to_device(batches(), rows) as placed:
        for batch in placed:
            assert_type(batch, dict[str, ad.Array])


def main() -> None:
    """Runs every check on 8 devices."""
    with ad.simulate(8) as client:
        assert_type(client, ad.Client)
        mesh = ad.Mesh(np.array(ad.devices()).reshape(4, 2), ("data", "model"))
        rows = ad.NamedSharding(mesh, P("data"))
        host = np.arange(1.0, 33.0).reshape(16, 2)
        x = ad.device_put(host, rows)
        check_placement(host, rows)
        check_batches(host, x, mesh)
        check_trees(host, x)
        check_properties(x)
        check_operators(x, host)
        check_devices(x, mesh)
        check_settings()
        check_mapped_functions(x, mesh)
        check_collectives(x, mesh)
        check_jit(x)
        check_prefetching(host, x, rows)


if __name__ == "__main__":
    main()
