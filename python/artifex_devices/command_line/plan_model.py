# SPDX-License-Identifier: Apache-2.0
"""`plan step` and `plan suggest`: costs of a step of a model, and the best shardings."""

from __future__ import annotations

import argparse
from typing import Any

from artifex_devices.command_line.amounts import count_of
from artifex_devices.command_line.cluster_argument import CLUSTER_FORMS, add_cluster, read_cluster
from artifex_devices.command_line.exit_codes import ATTENTION, OK, UsageError
from artifex_devices.command_line.mesh_argument import add_mesh, lay_mesh
from artifex_devices.command_line.model_argument import MODEL_FORMS, add_model, read_model, read_rules

STEP_EXAMPLES = f"""\
examples:
  artifex_devices plan step llama-2-7b --batch 64 --sequence 4096 --cluster "tpu v5p 4x4x4" --mesh data=16,model=4 \\
      --rules batch=data,embed=data,mlp=model,kv_heads=model,vocab=model
  artifex_devices plan step llama-3-8b --batch 16 --sequence 1 --forward --cache 8192 --cluster "dgx h100" \\
      --mesh model=8 --rules kv_heads=model,mlp=model,vocab=model --json

{MODEL_FORMS}
{CLUSTER_FORMS}
exit codes: 0 done; 1 it does not fit in memory, or the torus has no such mesh; 2 usage error; 3 the cluster lacks a
            rate that is needed; others as for every command
"""
SUGGEST_EXAMPLES = f"""\
examples:
  artifex_devices plan suggest llama-2-7b --batch 256 --sequence 4096 --cluster "tpu v5e 16x16"
  artifex_devices plan suggest llama-2-70b --batch 128 --sequence 4096 --cluster "tpu v5p 8x8x8" --top 3 --max-axes 3
  artifex_devices plan suggest mine.toml --batch 32 --sequence 2048 --cluster lab.toml --axes batch,embed,mlp --json

{MODEL_FORMS}
{CLUSTER_FORMS}
exit codes: 0 done; 1 nothing fits in memory; 2 usage error; 3 the cluster lacks a rate that is needed; others as
            for every command
"""


def add_step(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plan step`, except for the output."""
    add_model(parser)
    add_cluster(parser)
    add_mesh(parser, required=True)
    parser.add_argument(
        "--rules",
        metavar="LOGICAL=AXIS,...",
        required=True,
        help="mesh axes that shard each logical axis: batch=data,embed=data+model,mlp=model",
    )


def add_suggest(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plan suggest`, except for the output."""
    add_model(parser)
    add_cluster(parser)
    add = parser.add_argument
    add("--top", type=count_of, default=5, metavar="N", help="number of options (default: 5)")
    add("--max-axes", type=count_of, default=2, metavar="N", help="maximum for a mesh, 1 to 4 (default: 2)")
    add("--axes", metavar="LOGICAL,...", help="logical axes that rules may shard (default: all of products)")
    add("--no-overlap", action="store_true", help="rank by the seconds of steps whose parts do not overlap")
    add("--quiet", action="store_true", help="no progress on standard error")


def run_step(arguments: argparse.Namespace) -> tuple[Any, int]:
    """Returns the plan and the exit code.

    Raises:
        NotImplementedError: The torus has no such mesh.
    """
    from artifex_devices.planner import plan_step

    cluster = read_cluster(arguments.cluster, arguments.measured)
    model = read_model(arguments)
    rules = read_rules(arguments.rules)
    mesh = lay_mesh(cluster, arguments)
    try:
        plan = plan_step(model, mesh, rules)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    return plan, OK if plan.fits else ATTENTION


def run_suggest(arguments: argparse.Namespace) -> tuple[Any, int]:
    """Returns the suggestions and the exit code."""
    from artifex_devices.planner import suggest

    cluster = read_cluster(arguments.cluster, arguments.measured)
    model = read_model(arguments)
    axes = None if arguments.axes is None else [axis.strip() for axis in arguments.axes.split(",")]
    try:
        found = suggest(
            model, cluster, arguments.top, max_axes=arguments.max_axes, axes=axes,
            overlap=not arguments.no_overlap, progress=not arguments.quiet,
        )  # fmt: skip
    except ValueError as error:
        raise UsageError(str(error)) from None
    return found, OK if found.fits else ATTENTION
