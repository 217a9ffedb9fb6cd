# SPDX-License-Identifier: Apache-2.0
"""Writes texts of small programs as the installed JAX and XLA print them, for the tests of tests/python/audit.

python make_texts.py [tpu | gpu TARGET]    needs JAX from 0.4.30 on, in an environment of its own; see README.md

`train` is a training step with annotations on a mesh data=4, tensor=2. `mapped` calls each collective by shard_map.
`scattered` is a right product, and `replicated`, `twice`, `sliced` and `widened` have a mistake each.
"""

import gzip
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DUMP = tempfile.mkdtemp()
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count=8 --xla_dump_to={DUMP} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re=spmd"
)
TARGET = (sys.argv[1:] or ["cpu"])[0]
if TARGET == "tpu":  # compiles for 8 chips that are not there; libtpu reads these
    os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-8"}
    os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"
if TARGET == "gpu":  # the same for GPUs
    import nvidia

    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"
    folder = next(iter(nvidia.__path__))
    os.environ["XLA_FLAGS"] = f"--xla_gpu_cuda_data_dir={folder}/cuda_nvcc --xla_gpu_autotune_level=0"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402 - reads the environment
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import topologies  # noqa: E402

P = jax.sharding.PartitionSpec


def devices():
    if TARGET == "cpu":
        return jax.devices()
    if TARGET == "tpu":
        return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    target = Path(sys.argv[2]).read_text()
    return topologies.get_topology_desc(
        platform="cuda", topology_name="", topology="1x1x8", target_config=target
    ).devices


MESH = jax.sharding.Mesh(np.array(devices()).reshape(4, 2), ("data", "tensor"))
shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map


def described(shape, *spec):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=jax.sharding.NamedSharding(MESH, P(*spec)))


def constrain(x, *spec):
    return jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(MESH, P(*spec)))


def train(w, x, y):
    def layer(h, one):
        h = constrain(jax.nn.relu(h @ one["up"]), "data", "tensor")
        return constrain(h @ one["down"], "data", None), None

    def loss(w):
        h, _ = jax.lax.scan(layer, x, w)
        return jnp.mean((h - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(w)
    return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, w, gradients), value


def mapped(x):
    whole = jax.lax.all_gather(x, "tensor", axis=1, tiled=True)
    total = jax.lax.psum(jnp.sin(whole), "data")
    part = jax.lax.psum_scatter(total * whole, ("data", "tensor"), scatter_dimension=0, tiled=True)
    turned = jax.lax.all_to_all(part, "tensor", split_axis=1, concat_axis=0, tiled=True)
    return jax.lax.ppermute(turned, "data", [(i, (i + 1) % 4) for i in range(4)])


def scattered(x, y):
    """The gradient of a weight that is sharded over the axes of the batch."""
    return constrain(x.T @ y, ("data", "tensor"))


def replicated(x, head):
    """Logits on all devices, for a loss that needs a row at a time."""
    logits = constrain(x @ head, "data", "tensor")
    return jnp.mean(jax.scipy.special.logsumexp(constrain(logits * 2, None, None), -1))


def twice(x):
    """Gathers the same array along two dimensions."""
    return jax.lax.all_gather(x, "data", axis=0, tiled=True) @ jax.lax.all_gather(x, "data", axis=1).reshape(-1, 64)


def sliced(x):
    """A sum of which each device uses a part: psum_scatter was meant."""
    total = jax.lax.psum(jnp.sin(x), "data")
    return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("data") * 4, 4)


def widened(x):
    """Sends bfloat16 values as float32."""
    return jax.lax.psum(x.astype(np.float32), "data").astype(x.dtype)


def write(name, text):
    text = text.replace(f"{HERE}/", "/home/me/")
    (HERE / f"jax-{jax.__version__}-{name}.txt.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def main():
    w = {
        "up": described((3, 64, 128), None, "data", "tensor"),
        "down": described((3, 128, 64), None, "tensor", "data"),
    }
    x = described((32, 64), "data")
    results = (jax.tree_util.tree_map(lambda each: each.sharding, w), None)
    both = P("data", "tensor")
    bodies = {mapped: P(("data", "tensor"))}
    if TARGET == "gpu":
        bodies |= {sliced: both, widened: P(None, "tensor"), twice: P(("data", "tensor"))}
    programs = {"train": jax.jit(train, out_shardings=results).lower(w, x, x)}
    if TARGET == "tpu":
        batch = ("data", "tensor")
        programs["scattered"] = jax.jit(scattered).lower(described((32, 64), batch), described((32, 128), batch))
    if TARGET == "gpu":
        head = described((64, 4096), None, "tensor")
        programs["replicated"] = jax.jit(replicated).lower(described((512, 64), "data"), head)
    for body, out in bodies.items():
        dtype = jnp.bfloat16 if body is widened else np.float32
        square = jax.ShapeDtypeStruct((64, 64), dtype, sharding=jax.sharding.NamedSharding(MESH, both))
        function = shard_map(body, mesh=MESH, in_specs=both, out_specs=out)
        programs[body.__name__] = jax.jit(function).lower(square)
    for name, lowered in programs.items():
        if TARGET != "cpu":
            write(f"{TARGET}-{name}-compiled", lowered.compile().as_text())
            continue
        write(f"{name}-stablehlo", lowered.as_text())
        write(f"{name}-compiled", lowered.compile().as_text())
        for stage, pattern in (
            ("before_partitioning", f"*jit_{name}.before_optimizations.txt"),
            ("after_partitioning", f"*jit_{name}*after_spmd-partitioning*.txt"),
        ):
            found = sorted(Path(DUMP).glob(pattern))
            write(f"{name}-{stage}", found[0].read_text())
    shutil.rmtree(DUMP)


if __name__ == "__main__":
    main()
