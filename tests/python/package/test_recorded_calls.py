# SPDX-License-Identifier: Apache-2.0
"""Calls of the library in a world of eight devices, with their results and errors word for word."""

from __future__ import annotations

import re
import warnings

import artifex_devices as ad
import numpy as np
from artifex_devices import cluster, config, dlpack, lax, mesh_utils, models, multihost_utils  # noqa: F401 - for calls
from artifex_devices.layout import Format, Layout  # noqa: F401
from artifex_devices.planner import plan_collective, plan_reshard, plan_step, suggest  # noqa: F401
from artifex_devices.roofline import accelerator, roofline  # noqa: F401
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P  # noqa: F401
from recorded_texts import check_recorded

CALLS = {
    "options": """
config.update("cache_bytes", -2)
config.update("cache_bytes", 2**63)
config.update("cache_bytes", True)
config.update("parallel_copy_bytes", -1)
config.update("jax_num_cpu_devices", 0)
config.update("jax_num_cpu_devices", 1.0)
config.update("trace_allocations", 1)
config.update("spmd_executor", "processes")
config.update("spmd_threads_bytes", -1)
config.update("distributed_buffer_bytes", 0.5)
config.update("collective_timeout_s", 0)
config.update("collective_timeout_s", "1")
config.update("distributed_checks", 1)
config.update("flight_record_dir", 3)
config.update("jax_platforms", 3)
config.update("jax_disable_jit", "yes")
config.update("jax_array_garbage_collection_guard", "log")
config.update("jax_cpu_collectives_implementation", "spam")
config.update("cache_byte", 1)
config.update(3, 1)
config.read("spmd_execut")
config.spmd_threads_bytes, config.collective_timeout_s, config.distributed_buffer_bytes
config.spmd_executor, config.distributed_checks, config.distributed_shared_memory
config.cache_bytes_
config._spam
setattr(config, "cache_bytes", 1)
setattr(config, "spam", 1)
len(config.values), sorted(config.values)[:3]
""",
    "layouts": """
Layout((0, 1)).is_row_major, Layout((1, 0)).is_row_major
Layout("01")
Layout((0, 1.0))
Layout((0, 1)) == Layout([0, 1]), Layout((0, 1)) == Layout((1, 0)), Layout((0,)) == 3
Layout.AUTO, Format(), Format(Layout((1, 0)), d[2]), Format(None, d[2]) == Format(None, d[2]), Format() == 3
Format(3)
Format(None, 3)
Format(Layout((0, 1)))
Layout.from_pjrt_layout(3)
ad.device_put(x, Format(Layout((1, 0)), d[2]))
ad.device_put(x, Format(Layout((0, 0)), d[2]))
ad.device_put(x, Format(Layout((0, 2)), d[2]))
ad.device_put(x, Format(Layout.AUTO, d[2]))
ad.device_put(x, Format(Layout((0, 1, 2)), d[2]))
ad.device_put(x, Format(Layout((1, 0)), NamedSharding(mesh, P("x")))).format
""",
    "meshes": """
ad.make_mesh((2, 4), ("x", "y"))
ad.make_mesh((2, 2), ("x", "y")).devices.tolist()
ad.make_mesh((2, 2), ("x", "y"), devices=d[4:]).devices.tolist()
ad.make_mesh((8,), "x", AxisType.Auto)
ad.make_mesh((3, 3), ("x", "y"))
ad.make_mesh((2, 2), ("x",))
ad.make_mesh((2, 2), ("x", "x"))
ad.make_mesh((2, 0), ("x", "y"))
ad.make_mesh((2, 2.0), ("x", "y"))
ad.make_mesh((2, 2))
ad.make_mesh(mesh_shape=(2, 2), axis_names=("a", "b"))
ad.make_mesh((2, 2), ("a", "b"), mesh_shape=(2, 2))
ad.make_mesh(8, "x")
mesh.shape, mesh.size, mesh.axis_sizes, mesh.axis_types, mesh.empty, mesh.is_multi_process
mesh.abstract_mesh, mesh.local_mesh == mesh, mesh == ad.make_mesh((2, 4), ("x", "y")), mesh.update(axis_types=(AxisType.Auto,) * 2)
Mesh(np.array(d[:4]).reshape(2, 2), ("x",))
Mesh(np.array([d[0], d[0]]), ("x",))
Mesh(np.array([1, 2]), ("x",))
AbstractMesh((2, 4), ("x", "y")), AbstractMesh((2,), ("x",), axis_types=AxisType.Explicit)
AbstractMesh((2, 4), ("x",))
mesh_utils.create_device_mesh((2, 4)).tolist()
mesh_utils.create_device_mesh((3, 4))
mesh_utils.create_device_mesh((2, 2), d[:3])
mesh_utils.create_device_mesh((2, 2), d[:4]).tolist()
mesh_utils.create_device_mesh((1,) * 65)
mesh_utils.create_device_mesh(8)
mesh_utils.create_device_mesh(("a",))
mesh_utils.create_device_mesh((-1, -8))
mesh_utils.create_device_mesh((0, 4), [])
mesh_utils.create_device_mesh((2,), 3)
mesh_utils.create_device_mesh((2,), [1, 2])
mesh_utils.create_device_mesh((4, 4), v4, search="spam")
mesh_utils.create_device_mesh((4, 4), v4, traffic=[1, 2])
mesh_utils.create_device_mesh((4, 4), v4, contiguous_submeshes=True, search="exact")
mesh_utils.create_device_mesh((4, 4), v4, search="exact", traffic="ab")
mesh_utils.create_device_mesh((4, 4), v4, search="exact", traffic=[1, 100]).tolist()
mesh_utils.create_device_mesh((4, 4), v4, search="exact").tolist()
mesh_utils.create_device_mesh((4, 4), v4).tolist()
mesh_utils.create_device_mesh((2, 8), v4).tolist()
mesh_utils.create_device_mesh((2, 8), v4, allow_split_physical_axes=True).tolist()
mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), slices).tolist()
mesh_utils.create_hybrid_device_mesh((2, 2), (1, 2), slices[::-1], should_sort_granules_by_key=False).tolist()
mesh_utils.create_hybrid_device_mesh((2, 2), (2,), slices).tolist()
mesh_utils.create_hybrid_device_mesh((2, 2), (3, 1), slices)
mesh_utils.create_hybrid_device_mesh((2, 2), 2, slices)
mesh_utils.create_hybrid_device_mesh((2, 2), (1,), [])
mesh_utils.create_hybrid_device_mesh((2,), (1,), [1])
mesh_utils.explain(v4)
mesh_utils.explain(np.array(v4).reshape(4, 4), axis_names=("a",))
mesh_utils.explain(np.array(v4).reshape(4, 4), axis_names=3)
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic=[1])
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic=-1)
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic="ab")
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic=[0, 2**40])
mesh_utils.explain(mesh)
mesh_utils.explain(np.array([1]))
""",
    "placing": """
ad.device_put(x, d[3])
ad.device_put(x, NamedSharding(mesh, P("x", "y")))
ad.device_put({"a": x, "b": 1.0}, {"a": d[1], "b": d[2]})
ad.device_put([x, x], [d[1]])
ad.device_put(x, "cpu")
ad.device_put("text", d[0])
ad.device_put(None, d[0])
ad.device_put(x, NamedSharding(mesh, P("x", "y", None)))
ad.device_put(np.arange(3), NamedSharding(mesh, P("x")))
ad.device_put(np.arange(3), NamedSharding(mesh, P("x"), uneven="last-short"))
ad.device_put(x, P("x"))
ad.device_put(1, d[0]), ad.device_put(True), ad.device_put(2.5j), ad.device_put(np.float16(1))
ad.device_put_sharded([np.ones(2), np.zeros(2)], d[:2])
ad.device_put_sharded([np.ones(2), np.zeros(3)], d[:2])
ad.device_put_sharded([np.ones(2)], d[:2])
ad.device_put_sharded("ab", d[:2])
ad.device_put_sharded([], [])
ad.device_put_sharded([{"a": 1}, {"b": 1}], d[:2])
ad.device_put_replicated(x, d[:2])
ad.device_put_replicated(x, [])
ad.device_get({"a": ad.device_put(x, NamedSharding(mesh, P("x"))), "b": 3})
ad.device_get("text")
ad.make_array_from_callback((4, 2), NamedSharding(mesh, P("x")), lambda index: x[:4, :2][index])
ad.make_array_from_callback((4, 2), NamedSharding(mesh, P("x")), lambda index: np.zeros(3))
ad.make_array_from_callback((4, 2), NamedSharding(mesh, P("x")), 3)
ad.make_array_from_callback((4, -2), NamedSharding(mesh, P("x")), lambda index: x)
ad.make_array_from_single_device_arrays((4,), NamedSharding(line, P("x")), [ad.device_put(np.ones(1), one) for one in d[:4]])
ad.make_array_from_single_device_arrays((4,), NamedSharding(line, P("x")), [ad.device_put(np.ones(1), one) for one in d[:3]])
ad.make_array_from_single_device_arrays((4,), NamedSharding(line, P("x")), [np.ones(1)] * 4)
ad.make_array_from_process_local_data(NamedSharding(mesh, P("x")), x)
ad.make_array_from_process_local_data(NamedSharding(mesh, P("x")), x, (8, 8))
ad.make_array_from_process_local_data(NamedSharding(mesh, P("x")), x, (16, 8))
ad.reshard(ad.device_put(x, NamedSharding(mesh, P("x"))), NamedSharding(mesh, P(None, "y")))
ad.reshard(ad.device_put(x, NamedSharding(mesh, P("x"))), P("y", None))
ad.reshard(x, P("x"))
ad.reshard(3, P())
dlpack.from_dlpack(x)
dlpack.from_dlpack(x, d[2])
dlpack.from_dlpack(x, d[2], copy=False)
dlpack.from_dlpack(3)
dlpack.from_dlpack(ad.device_put(x, NamedSharding(mesh, P("x"))))
multihost_utils.process_allgather(x[:2, :2])
multihost_utils.process_allgather(x[:2, :2], tiled=True)
multihost_utils.process_allgather(x, tiled=1)
multihost_utils.process_allgather(3), multihost_utils.process_allgather(3, tiled=True)
multihost_utils.broadcast_one_to_all({"a": 1, "b": x[:1]})
multihost_utils.broadcast_one_to_all(1, is_source=1)
multihost_utils.sync_global_devices(3)
multihost_utils.assert_equal({"a": x}), multihost_utils.assert_equal([np.nan])
multihost_utils.host_local_array_to_global_array(x, mesh, P("x"))
multihost_utils.global_array_to_host_local_array(ad.device_put(x, NamedSharding(mesh, P("x"))), mesh, P("x"))
multihost_utils.host_local_array_to_global_array([x], mesh, P("z"))
""",
    "shardings": """
NamedSharding(mesh, P("x", ("y",)))
NamedSharding(mesh, P("z"))
NamedSharding(mesh, P("x", "x"))
NamedSharding(mesh, "x")
NamedSharding(3, P())
NamedSharding(mesh, P(), memory_kind="spam")
NamedSharding(mesh, P("x"), memory_kind="pinned_host")
NamedSharding(mesh, P("x")).shard_shape((4, 3)), NamedSharding(mesh, P(None, "y")).shard_shape((4, 8))
NamedSharding(mesh, P("x")).shard_shape((3, 3))
NamedSharding(mesh, P("x")).shard_shape(())
NamedSharding(mesh, P("x")).devices_indices_map((4,))
NamedSharding(mesh, P("x")).is_fully_replicated, NamedSharding(mesh, P()).is_fully_replicated
NamedSharding(mesh, P("x")).is_equivalent_to(NamedSharding(mesh, P("x", None)), 2), NamedSharding(mesh, P("x")) == NamedSharding(mesh, P("y"))
NamedSharding(mesh, P("x")).update(spec=P("y"))
NamedSharding(mesh, P("x")).update(spam=1)
NamedSharding(mesh, P("x")).with_memory_kind("pinned_host")
P("x", None), P(("x", "y")), P(), P("x") == P("x", None), P(None) == P(), hash(P("x")) == hash(P("x"))
P("x") + P("y"), P("x", "y")[1], len(P("x", None)), P(P.UNCONSTRAINED)
ad.SingleDeviceSharding(d[1]), ad.SingleDeviceSharding(d[1]) == ad.SingleDeviceSharding(d[1])
ad.SingleDeviceSharding(3)
ad.typeof(ad.device_put(x, NamedSharding(mesh, P("x"))))
ad.ShapeDtypeStruct((2, 3), np.int8), ad.ShapeDtypeStruct((2, 3), "bool").ndim, ad.ShapeDtypeStruct((2, 3), "int8").size
ad.ShapeDtypeStruct((0, 3), "int8").size, len(ad.ShapeDtypeStruct((2, 3), "int8")), ad.ShapeDtypeStruct((), "int8").size
len(ad.ShapeDtypeStruct((), "int8"))
ad.ShapeDtypeStruct((-1,), "int8")
ad.ShapeDtypeStruct((1.0,), "int8")
ad.ShapeDtypeStruct((1,), "spam")
ad.ShapeDtypeStruct((1,), "int8", sharding=3)
ad.ShapeDtypeStruct((4,), "int8", sharding=d[1])
ad.ShapeDtypeStruct((2,), "int8") == ad.ShapeDtypeStruct((2,), np.int8), ad.ShapeDtypeStruct((2,), "int8") == ad.ShapeDtypeStruct((3,), "int8")
""",
    "accelerators": """
roofline("h100"), roofline("h100").ridge_point, roofline("h100").critical_batch_size, roofline("h100").critical_batch_from
roofline("h100", "int8"), roofline("h100", weight_dtype="int4").critical_batch, roofline("a100", "tf32").peak_flops
roofline("h100", "int3")
roofline("v100", "bfloat16")
roofline(3)
roofline("spam")
roofline("h100", 3)
roofline("h100").attainable_flops(0), roofline("h100").attainable_flops(1), roofline("h100").attainable_flops(10**400)
roofline("h100").attainable_flops(-1)
roofline("h100").attainable_flops("1")
roofline("h100").attainable_flops(float("nan"))
roofline("h100").layer_critical_batch(4096, 4096), roofline("h100").layer_critical_batch(1, 1)
roofline("h100").layer_critical_batch(0, 1)
roofline("h100").layer_critical_batch(1, 2**63)
roofline("h100").layer_critical_batch(8192, 8192, activation_dtype="float32")
roofline("h100").plot([0])
roofline("h100").plot([1.5])
roofline("h100").plot(layer=(1,))
roofline("h100").plot(network_bandwidth=-1)
roofline("h100").plot(points=3)
accelerator("h100").memory_bytes, accelerator("tpu_v4").name, accelerator("NVIDIA H200").name
accelerator("h1000")
accelerator(3)
ad.get_batch_size_recommendation("h100"), ad.get_batch_size_recommendation("tpu_v5e", bytes_per_example=10**6, free_bytes=10**9)
ad.get_batch_size_recommendation("h100", bytes_per_example=10**6)
ad.get_batch_size_recommendation("h100", bytes_per_example=0, free_bytes=1)
ad.get_batch_size_recommendation("h100", bytes_per_example=-1, free_bytes=1)
ad.get_batch_size_recommendation("h100", bytes_per_example=1.5, free_bytes=1)
ad.get_batch_size_recommendation("h100", bytes_per_example=10, free_bytes=2**63)
ad.get_batch_size_recommendation("h100", bytes_per_example=10, free_bytes=100, model_state_bytes=55).max_memory_batch_size
ad.get_batch_size_recommendation("h100", bytes_per_example=10, free_bytes=100, model_state_bytes=101).max_memory_batch_size
ad.get_batch_size_recommendation("spam")
ad.get_batch_size_recommendation(3)
ad.get_batch_size_recommendation(device=3)
cluster.tpu("v5e", (4, 4)), cluster.tpu("v4", (2, 2, 4), slices=2).describe(), cluster.tpu("v5e", (16, 16)).parts
cluster.tpu("v5e", (4,))
cluster.tpu("v5e", (3, 3))
cluster.tpu("v5e", (4, 4), slices=0)
cluster.tpu("v5e", "4x4")
cluster.tpu(3, (4, 4))
cluster.dgx("h100"), cluster.dgx("h100", nodes=2, network_bandwidth=1e9), cluster.dgx("b200").describe()
cluster.dgx("spam")
cluster.dgx("h100", nodes=0)
cluster.dgx("h100", network_bandwidth=0)
cluster.dgx("v100", nodes=2)
cluster.nvl72(), cluster.nvl72(racks=3), cluster.mi300x(2), cluster.gpus("h200", nodes=2, chips_per_node=4)
cluster.nvl72(racks=0)
cluster.gpus("spam")
cluster.gpus("h200", chips_per_node=0)
""",
    "plans": """
models.mlp(embed=512, mlp=1024, layers=2, tokens=1024), models.mlp(embed=512, mlp=1024, layers=1, tokens=8, optimizer=None)
models.mlp(embed=0, mlp=1024, layers=2, tokens=1024)
models.mlp(embed=512, mlp=1024, layers=1.5, tokens=1024)
models.mlp(embed=512, mlp=1024, layers=2, tokens=1024, dtype="spam")
models.transformer("llama-2-7b", batch=4, sequence=128), models.transformer("mixtral-8x7b", batch=4, sequence=16, keep="all")
models.transformer("llama", batch=4, sequence=128)
models.transformer("llama-2-7b", batch=0, sequence=128)
models.transformer("llama-2-7b", batch=4, sequence=128, keep="some")
models.transformer("llama-2-7b", batch=4, sequence=128, cache=16)
models.transformer("llama-2-7b", batch=4, sequence=1, cache=-1, optimizer=None)
models.transformer("llama-2-7b", batch=4, sequence=1, cache=16, optimizer=None)
models.transformer("mixtral-8x7b", batch=4, sequence=16, capacity_factor=0.5)
models.transformer("mixtral-8x7b", batch=4, sequence=16, capacity_factor=2**62)
models.transformer("mixtral-8x7b", batch=4, sequence=16, capacity_factor=0)
plan_collective("all_gather", 1 << 20, "x", ring), plan_collective("permute", 1 << 20, "x", ring, perm=[(0, 1)])
plan_collective("spam", 1, "x", ring)
plan_collective("all_gather", -1, "x", ring)
plan_collective("all_gather", 1.5, "x", ring)
plan_collective("all_gather", 1, "z", ring)
plan_collective("all_gather", 1, ("x", "x"), ring)
plan_collective("all_gather", 1, "x", 3)
plan_collective("permute", 1, "x", ring)
plan_collective("permute", 1, "x", ring, perm=[(0, 9)])
plan_collective("permute", 1, "x", ring, perm=[(0, 1), (2, 1)])
plan_collective("all_gather", 1, "x", ring, perm=[(0, 1)])
plan_collective("all_reduce", 0, "x", ring)
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P(None, "x"))).steps
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P(None, "x")), way="spam")
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), 3)
plan_reshard((7, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P()))
plan_reshard((8, -8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P()))
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P()), memory_limit=-1)
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P()), memory_limit=1)
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(mesh, P()))
plan_step(small, ring, {"batch": "x"})
plan_step(small, ring, {"batch": "z"})
plan_step(small, ring, {"spam": "x"})
plan_step(small, ring, 3)
plan_step(3, ring, {})
plan_step(small, 3, {})
plan_step(small, ring, {"batch": 3})
suggest(small, cluster.tpu("v5e", (2, 2)), 1, 1)
suggest(small, cluster.tpu("v5e", (2, 2)), 0)
suggest(small, cluster.tpu("v5e", (2, 2)), 1, 9)
suggest(3, cluster.tpu("v5e", (2, 2)), 1)
suggest(small, 3, 1)
""",
    "collectives": """
run(lambda b: lax.psum(b, "x")), run(lambda b: lax.psum(b, ("x", "y"))), run(lambda b: lax.pmean(b, "y")), run(lambda b: lax.pmax(b, "x"))
run(lambda b: lax.pmin(b, ("y", "x"))), run(lambda b: lax.all_gather(b, "x")[0]), run(lambda b: lax.all_gather(b, "x", tiled=True)[:2])
run(lambda b: lax.all_gather(b, "y", axis=1)[:, 0]), run(lambda b: lax.all_gather(b, "y", axis=-1, tiled=True)[:, :2])
run(lambda b: lax.all_gather(b, "y", axis=5))
run(lambda b: lax.psum_scatter(np.tile(b, (2, 1)), "x", tiled=True)), run(lambda b: lax.psum_scatter(np.stack([b, b]), "x"))
run(lambda b: lax.psum_scatter(b, "y", tiled=True))
run(lambda b: lax.psum_scatter(b, "y"))
run(lambda b: lax.ppermute(b, "x", [(0, 1), (1, 0)])), run(lambda b: lax.ppermute(b, "x", [(0, 1)])), run(lambda b: lax.pshuffle(b, "x", [1, 0]))
run(lambda b: lax.ppermute(b, "x", [(0, 2)]))
run(lambda b: lax.ppermute(b, "x", [(0, 1), (1, 1)]))
run(lambda b: lax.ppermute(b, "x", 3))
run(lambda b: lax.pshuffle(b, "x", [0, 0]))
run(lambda b: lax.all_to_all(b, "x", 0, 1, tiled=True)), run(lambda b: lax.all_to_all(b, "x", 1, 0, tiled=True))
run(lambda b: lax.all_to_all(b, "y", 0, 1, tiled=True))
run(lambda b: lax.all_to_all(b, "x", 0, 1))
run(lambda b: lax.all_to_all(b, "x", 3, 1))
run(lambda b: b * 0 + lax.axis_index("x")), run(lambda b: b * 0 + lax.axis_index(("x", "y"))), run(lambda b: b * 0 + lax.axis_size("y"))
run(lambda b: lax.psum(1, "y") + b), run(lambda b: lax.pbroadcast(b, "x", 1)), run(lambda b: lax.psum([b, b], "x")[1])
run(lambda b: lax.pbroadcast(b, "x", 2))
run(lambda b: lax.psum("a", "x"))
run(lambda b: lax.axis_index("z"))
run(lambda b: lax.psum(b > 3, "x")), run(lambda b: lax.pmean(b > 3, "x")), run(lambda b: lax.psum(b.astype(np.int8), "x"))
run(lambda b: lax.psum(b, "x") if lax.axis_index("y") else lax.pmax(b, "x"))
run(lambda b: 1 / 0)
lax.axis_index("x")
lax.psum(1, "x")
""",
}


def text_of(value):
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(text_of, value))})"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text_of(each)}" for key, each in value.items())
    if isinstance(value, ad.Array):
        place = value.sharding.spec if isinstance(value.sharding, NamedSharding) else value.device
        layout = "" if value.ndim < 2 else value.format.layout.major_to_minor
        return f"{value.dtype} {np.asarray(value).tolist()} {place} {layout} committed={value.committed}"
    if isinstance(value, np.ndarray):
        return f"ndarray {value.dtype} {value.tolist()}"
    return re.sub(r" at 0x[0-9a-f]+", " at ADDRESS", f"{value}")


def names():
    mesh, line = ad.make_mesh((2, 4), ("x", "y")), ad.make_mesh((4,), ("x",))
    grid = ad.make_mesh((2, 2), ("x", "y"))
    x = np.arange(64.0).reshape(8, 8) % 5
    small = models.mlp(embed=512, mlp=1024, layers=2, tokens=1024)
    ring = Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()), ("x",))

    def run(body):
        return ad.shard_map(body, mesh=grid, in_specs=P("x", "y"), out_specs=P("x", "y"))(x[:4, :4])

    return {
        **globals(),
        "mesh": mesh,
        "line": line,
        "x": x,
        "d": ad.devices(),
        "v4": cluster.tpu("v4", (2, 2, 4)).devices(),
        "slices": cluster.tpu("v4", (2, 2, 1), slices=2).devices(),
        "small": small,
        "ring": ring,
        "run": run,
    }


def outcome(text, known):
    try:
        return text_of(eval(text, known))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_recorded_calls_return_and_refuse_the_same():
    with ad.simulate(8), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = names()
        for title, calls in CALLS.items():
            lines = [f"{text}\n    {outcome(text, known)}" for text in calls.strip().splitlines()]
            check_recorded(f"library_{title}", {title: "\n".join(lines)})
