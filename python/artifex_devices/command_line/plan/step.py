# SPDX-License-Identifier: Apache-2.0
"""`plan step`: the costs of a model's step that rules shard over a mesh."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices.command_line import console
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan.actions import MODEL_FORMS, add_action, add_run, read_model
from artifex_devices.command_line.plan.cluster_argument import add_cluster, read_cluster
from artifex_devices.command_line.plan.mesh_argument import add_mesh, lay_mesh

if TYPE_CHECKING:
    from artifex_devices.planner.step import StepModel

_EXAMPLES = f"""\
  artifex_devices plan step llama-2-7b --batch 64 --sequence 4096 --cluster "tpu v5p 4x4x4" --mesh data=16,model=4 \\
      --rules batch=data,embed=data,mlp=model,kv_heads=model,vocab=model
  artifex_devices plan step llama-3-8b --batch 16 --sequence 1 --forward --cache 8192 --cluster "dgx h100" \\
      --mesh model=8 --rules kv_heads=model,mlp=model,vocab=model --json

{MODEL_FORMS}"""


def add_step(actions: Any) -> None:
    """Adds the subcommand and its options."""
    codes = (
        "1 it does not fit in memory, or the torus has no such mesh; 2 usage error; 3 the cluster lacks a rate that is "
        "needed"
    )
    parser = add_action(actions, "step", "estimate a model's step, sharded by rules", _EXAMPLES, codes, run_step)
    add_run(parser)
    add_cluster(parser)
    add_mesh(parser, required=True)
    rules = "mesh axes that shard each logical axis: batch=data,embed=data+model,mlp=model"
    parser.add_argument("--rules", metavar="LOGICAL=AXIS,...", required=True, help=rules)
    add = parser.add_argument_group("step").add_argument
    keep = "activations to keep for the backward pass (default: products)"
    add("--keep", choices=("layers", "products", "all"), default="products", help=keep)
    add("--forward", action="store_true", help="plan a forward step (default: training with Adam)")
    cache = "for decoding with --forward: tokens whose keys and values are cached"
    add("--cache", type=console.tokens_of, metavar="N", help=cache)
    add("--dtype", default="bfloat16", help="dtype of parameters and activations (default: bfloat16)")
    console.add_output(parser, "the step in the roofline of a device")


def read_step(arguments: argparse.Namespace) -> StepModel:
    """Returns the step that the options describe."""
    from artifex_devices.models import Optimizer, transformer

    shape = read_model(arguments.model)
    with console.usage_errors(TypeError, ValueError):
        return transformer(
            shape,
            batch=arguments.batch,
            sequence=arguments.sequence,
            keep=arguments.keep,
            optimizer=None if arguments.forward else Optimizer(8),
            cache=arguments.cache or 0,
            dtype=arguments.dtype,
        )


def read_rules(text: str) -> dict[str, tuple[str, ...]]:
    """Reads mesh axes by logical axis: `batch=data,embed=data+model`."""
    found: dict[str, tuple[str, ...]] = {}
    for part in (each.strip() for each in text.split(",")):
        logical, equals, axes = (each.strip() for each in part.partition("="))
        names = tuple(axis.strip() for axis in axes.split("+"))
        if not equals or not logical or not all(names) or logical in found:
            raise failure(
                UsageError,
                "--rules",
                f"{part!r} is not a rule",
                expected="each logical axis once, =, and mesh axes joined by +",
                fix="write batch=data,embed=data+model",
            )
        found[logical] = names
    return found


def run_step(arguments: argparse.Namespace) -> int:
    """Writes the plan of a step; 1 if it does not fit."""
    from artifex_devices.planner import plan_step

    cluster = read_cluster(arguments.cluster, arguments.measured)
    model, rules = read_step(arguments), read_rules(arguments.rules)
    mesh = lay_mesh(cluster, arguments)
    with console.usage_errors(TypeError, ValueError):
        plan = plan_step(model, mesh, rules)
    if arguments.svg is None:
        console.write_plan(plan, arguments)
    else:
        console.write_picture(arguments.svg, console.chart_svg(plan))
    return console.OK if plan.fits else console.ATTENTION
