# SPDX-License-Identifier: Apache-2.0
"""Calls that the library refuses, word for word: messages that no table of bad_input has."""

from __future__ import annotations

import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster, config, dlpack, mesh_utils, models, multihost_utils  # noqa: F401 - for calls
from artifex_devices.layout import Format, Layout  # noqa: F401
from artifex_devices.planner import plan_collective, plan_reshard  # noqa: F401
from artifex_devices.roofline import roofline  # noqa: F401
from artifex_devices.sharding import AbstractMesh, Mesh, NamedSharding, P  # noqa: F401
from recorded_texts import check_recorded

CALLS = {
    "options": """
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
config.read("spmd_execut")
config.cache_bytes_
config._spam
setattr(config, "cache_bytes", 1)
setattr(config, "spam", 1)
""",
    "layouts": """
ad.device_put(x, Format(Layout((0, 0)), d[2]))
ad.device_put(x, Format(Layout((0, 2)), d[2]))
ad.device_put(x, Format(Layout.AUTO, d[2]))
ad.device_put(x, Format(Layout((0, 1, 2)), d[2]))
""",
    "meshes": """
ad.make_mesh((2, 2), ("x", "x"))
ad.make_mesh((2, 0), ("x", "y"))
ad.make_mesh((2, 2.0), ("x", "y"))
ad.make_mesh((2, 2), ("a", "b"), mesh_shape=(2, 2))
Mesh(np.array([d[0], d[0]]), ("x",))
AbstractMesh((2, 4), ("x",))
mesh_utils.create_device_mesh((1,) * 65)
mesh_utils.create_device_mesh(8)
mesh_utils.create_device_mesh(("a",))
mesh_utils.create_device_mesh((4, 4), v4, contiguous_submeshes=True, search="exact")
mesh_utils.create_device_mesh((4, 4), v4, search="exact", traffic="ab")
mesh_utils.create_hybrid_device_mesh((2, 2), 2, slices)
mesh_utils.create_hybrid_device_mesh((2, 2), (1,), [])
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic=-1)
mesh_utils.explain(np.array(v4).reshape(4, 4), traffic="ab")
mesh_utils.explain(mesh)
""",
    "placing": """
ad.device_put([x, x], [d[1]])
ad.device_put(x, NamedSharding(mesh, P("x", "y", None)))
ad.device_put(x, P("x"))
ad.device_put_sharded("ab", d[:2])
dlpack.from_dlpack(x, d[2], copy=False)
dlpack.from_dlpack(ad.device_put(x, NamedSharding(mesh, P("x"))))
multihost_utils.process_allgather(x, tiled=1)
multihost_utils.assert_equal({"a": x}), multihost_utils.assert_equal([np.nan])
""",
    "shardings": """
NamedSharding(mesh, P("x")).update(spam=1)
len(ad.ShapeDtypeStruct((), "int8"))
ad.ShapeDtypeStruct((1,), "int8", sharding=3)
ad.ShapeDtypeStruct((4,), "int8", sharding=d[1])
""",
    "accelerators": """
roofline("v100", "bfloat16")
roofline("h100").layer_critical_batch(1, 2**63)
roofline("h100").plot([1.5])
roofline("h100").plot(layer=(1,))
roofline("h100").plot(points=3)
ad.get_batch_size_recommendation("h100", bytes_per_example=10**6)
ad.get_batch_size_recommendation("h100", bytes_per_example=1.5, free_bytes=1)
ad.get_batch_size_recommendation("h100", bytes_per_example=10, free_bytes=2**63)
cluster.tpu("v5e", (4,))
cluster.tpu("v5e", (3, 3))
""",
    "plans": """
models.mlp(embed=512, mlp=1024, layers=1.5, tokens=1024)
models.transformer("llama", batch=4, sequence=128)
models.transformer("llama-2-7b", batch=4, sequence=128, cache=16)
models.transformer("llama-2-7b", batch=4, sequence=1, cache=-1, optimizer=None)
models.transformer("mixtral-8x7b", batch=4, sequence=16, capacity_factor=2**62)
models.transformer("mixtral-8x7b", batch=4, sequence=16, capacity_factor=0)
plan_collective("all_gather", 1, "z", ring)
plan_collective("all_gather", 1, ("x", "x"), ring)
plan_collective("permute", 1, "x", ring, perm=[(0, 1), (2, 1)])
plan_collective("all_gather", 1, "x", ring, perm=[(0, 1)])
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), 3)
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(ring, P()), memory_limit=1)
plan_reshard((8, 8), "int8", NamedSharding(ring, P("x")), NamedSharding(mesh, P()))
""",
}


def names():
    return {
        **globals(),
        "mesh": ad.make_mesh((2, 4), ("x", "y")),
        "x": np.arange(64.0).reshape(8, 8) % 5,
        "d": ad.devices(),
        "v4": cluster.tpu("v4", (2, 2, 4)).devices(),
        "slices": cluster.tpu("v4", (2, 2, 1), slices=2).devices(),
        "ring": Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()), ("x",)),
    }


def refusal(text, known):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - class and text are compared
        eval(text, known)
    return f"{caught.type.__name__}: {caught.value}"


def test_recorded_calls_are_refused_with_the_same_words():
    with ad.simulate(8), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = names()
        for title, calls in CALLS.items():
            lines = [f"{text}\n    {refusal(text, known)}" for text in calls.strip().splitlines()]
            check_recorded(f"library_{title}", {title: "\n".join(lines)})
