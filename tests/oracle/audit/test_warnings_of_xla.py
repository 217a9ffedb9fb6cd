# SPDX-License-Identifier: Apache-2.0
"""Rematerialization: XLA's warnings while it compiles, and our findings in the compiled text."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from artifex_devices import audit
from audit_steps import OPTIONS, constrain, described, mesh_of

WARNING = re.compile(r"Involuntary full rematerialization.*?from sharding \{(.*?)\} to \{(.*?)\} efficiently")


def activations_turned():
    mesh = mesh_of(data=2, tensor=4)
    x = described(mesh, (64, 64), None, "tensor")
    return lambda x: constrain(mesh, jnp.sin(x), "data", None), x


def weight_of_two_axes():
    mesh = mesh_of(data=2, tensor=4)
    w = described(mesh, (64, 64), ("data", "tensor"))
    return lambda w: constrain(mesh, w * 2, None, "tensor"), w


def tokens_to_experts():
    mesh = mesh_of(data=2, fsdp=2, expert=2)
    x = described(mesh, (64, 64, 64), "expert", None, ("data", "fsdp"))
    return lambda x: constrain(mesh, x * 2, None, ("data", "fsdp", "expert"), None), x


def sequence_to_batch():
    mesh = mesh_of(data=2, fsdp=2, tensor=2)
    x = described(mesh, (64, 64, 64), ("data", "fsdp"), None, "tensor")
    return lambda x: constrain(mesh, jnp.tanh(x), None, "fsdp", "tensor"), x


def turned_in_every_layer():
    mesh = mesh_of(data=2, tensor=4)
    x = described(mesh, (64, 64), "data", None)

    def layer(h, _):
        return constrain(mesh, jnp.sin(constrain(mesh, h, None, "tensor")), "data", None), None

    return lambda x: jax.lax.scan(layer, x, length=4)[0], x


def gradient_of_turned_activations():
    mesh = mesh_of(data=2, tensor=4)
    x, w = described(mesh, (64, 64), "data", None), described(mesh, (64, 64), None, "tensor")

    def loss(x, w):
        h = constrain(mesh, x @ w, None, "tensor")
        return jnp.sum(jnp.sin(constrain(mesh, h, "data", None)))

    return jax.grad(loss), x, w


def axes_swapped():
    """An all-to-all and a permute are enough."""
    mesh = mesh_of(data=2, tensor=4)
    x = described(mesh, (64, 64), "data", "tensor")
    return lambda x: constrain(mesh, x * 2, "tensor", "data"), x


def gathered_on_purpose():
    mesh = mesh_of(data=2, tensor=4)
    x = described(mesh, (64, 64), "data", "tensor")
    return lambda x: constrain(mesh, x * 2), x


def weights_gathered_for_a_product():
    mesh = mesh_of(data=8)
    x, w = described(mesh, (64, 64), "data"), described(mesh, (64, 64), "data")
    return lambda x, w: constrain(mesh, x @ w, "data"), x, w


def embedding():
    """Rows are looked up in the part of the table that each device holds, and summed."""
    mesh = mesh_of(data=2, tensor=4)
    table, tokens = described(mesh, (256, 64), "tensor"), described(mesh, (16, 8), "data", dtype=np.int32)
    return lambda table, tokens: constrain(mesh, table[tokens], "data"), table, tokens


WARNED = (
    activations_turned,
    weight_of_two_axes,
    tokens_to_experts,
    sequence_to_batch,
    turned_in_every_layer,
    gradient_of_turned_activations,
)
SILENT = (axes_swapped, gathered_on_purpose, weights_gathered_for_a_product, embedding)


@pytest.mark.parametrize("program", [*WARNED, *SILENT], ids=lambda each: each.__name__)
def test_findings_agree_with_the_log_of_xla(program, capfd):
    function, *arguments = program()
    compiled = jax.jit(function).lower(*arguments).compile(compiler_options=OPTIONS)
    warnings = WARNING.findall(capfd.readouterr().err)
    assert bool(warnings) == (program in WARNED)
    found = [each for each in audit.program(compiled).findings(at_least=0) if each.kind == "rematerialization"]
    assert bool(found) == bool(warnings), (warnings, found)
