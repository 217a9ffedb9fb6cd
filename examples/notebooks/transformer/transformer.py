# SPDX-License-Identifier: Apache-2.0
"""A training step of a small transformer in JAX, whose compiled text the notebook find_a_sharding_mistake reads.

python transformer.py    compiles the step, as it was and repaired, for 8 CPU devices; needs JAX, and writes beside
                         this file: step.hlo.txt.gz, repaired.hlo.txt.gz and state.json
"""

import gzip
import os
import re
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
from artifex_devices import audit
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, BATCH, LENGTH, WIDTH, HEADS, VOCABULARY = 4, 32, 128, 256, 8, 8192
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
SPECS = {
    "embed": P("model", "data"),
    "qkv": P(None, "data", "model"),
    "out": P(None, "model", "data"),
    "up": P(None, "data", "model"),
    "down": P(None, "model", "data"),
}
SHAPES = {
    "embed": (VOCABULARY, WIDTH),
    "qkv": (LAYERS, WIDTH, 3 * WIDTH),
    "out": (LAYERS, WIDTH, WIDTH),
    "up": (LAYERS, WIDTH, 4 * WIDTH),
    "down": (LAYERS, 4 * WIDTH, WIDTH),
}


def constrain(x: Any, *spec: Any) -> Any:
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


def layer(x: Any, w: dict[str, Any]) -> tuple[Any, None]:
    q, k, v = jnp.split(constrain(x @ w["qkv"], "data", None, "model").reshape(BATCH, LENGTH, HEADS, -1), 3, axis=-1)
    scores = jax.nn.softmax(jnp.einsum("blhd,bmhd->bhlm", q, k))
    mixed = jnp.einsum("bhlm,bmhd->blhd", scores, v).reshape(BATCH, LENGTH, WIDTH)
    x = constrain(x + mixed @ w["out"], "data", None, None)
    hidden = jax.nn.gelu(constrain(x @ w["up"], "data", None, "model"))
    return constrain(x + hidden @ w["down"], "data", None, None), None


def loss(weights: dict[str, Any], tokens: Any, batch_axis: str | None) -> Any:
    x = constrain(weights["embed"][tokens], "data", None, None)
    layers = {name: weights[name] for name in ("qkv", "out", "up", "down")}
    x, _ = jax.lax.scan(layer, x, layers)
    logits = constrain(x @ weights["embed"].T, batch_axis, None, "model")
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], axis=-1)
    return -chosen.mean()


def step(state: dict[str, Any], tokens: Any, batch_axis: str | None) -> tuple[dict[str, Any], Any]:
    value, gradients = jax.value_and_grad(loss)(state["params"], tokens, batch_axis)
    mu = jax.tree.map(lambda m, g: 0.9 * m + g, state["opt_state"]["mu"], gradients)
    params = jax.tree.map(lambda w, m: w - 0.01 * m, state["params"], mu)
    return {"params": params, "opt_state": {"mu": mu}}, value


def described(shape: tuple[int, ...], spec: Any, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, spec))


def main() -> None:
    here = Path(__file__).resolve().parent
    params = {name: described(SHAPES[name], SPECS[name]) for name in SHAPES}
    replicated = {**params, "embed": described(SHAPES["embed"], P())}  # the mistake of the state
    tokens = described((BATCH, LENGTH), P("data"), jnp.int32)
    audit.save({"params": params, "opt_state": {"mu": replicated}}, here / "state.json")
    for name, batch_axis in (("step", None), ("repaired", "data")):
        state = {"params": params, "opt_state": {"mu": params}}
        shardings = jax.tree.map(lambda each: each.sharding, state)
        jitted = jax.jit(step, static_argnums=2, out_shardings=(shardings, None), donate_argnums=0)
        text = jitted.lower(state, tokens, batch_axis).compile().as_text()
        text = re.sub(r'"[^"]*/(?=site-packages/)', '"', text.replace(f"{here}/", ""))
        (here / f"{name}.hlo.txt.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
