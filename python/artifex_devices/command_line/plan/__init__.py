# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices plan`: training runs, steps, meshes, reshards and collectives on any cluster."""

from __future__ import annotations

import argparse

from artifex_devices.command_line import console
from artifex_devices.command_line.parser import Parser
from artifex_devices.command_line.plan import lists, mesh_argument, model, model_options, network, step
from artifex_devices.command_line.plan.actions import MODEL
from artifex_devices.command_line.plan.cluster_argument import CLUSTER_FORMS, is_here

SUMMARY = "find the best configuration of a model on any cluster, or the cost of one; plan reshards and collectives"
DESCRIPTION = "Plans runs of a model, and parts of them, on a cluster that you describe. Nothing is executed."
EXAMPLES = f"""\
examples:
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k --tensor 8 --pipeline 2
  artifex_devices plan mesh --cluster "tpu v4 4x4x8" --mesh data=16,model=8
  artifex_devices plan reshard "bfloat16[4096,4096]" x,_ _,x --cluster "tpu v5e 4x4" --mesh x=4,y=4
  artifex_devices plan collective all_reduce 1GB slice,chip --cluster "dgx h100 nodes=4"
  artifex_devices plan MODEL --help                   show the options of a training run
  artifex_devices plan reshard --help                 show the options of one subcommand

{CLUSTER_FORMS}
exit codes: 0 success; 1 it does not fit (the torus has no such mesh; the reshard needs more than --memory-limit, or
            the model more memory than a device has); 2 usage error, or a file cannot be read;
            other codes: artifex_devices --help
"""


def add_arguments(parser: Parser) -> None:
    """Adds the subcommands and their options. Words that name no subcommand begin with a model."""
    parser.usage = "%(prog)s MODEL --cluster TEXT --batch N --sequence N [options]\n       %(prog)s <what> ..."
    parser.default_command = MODEL
    parser.former_commands = ("suggest", "train")
    texts = {"prog": parser.prog, "title": "what to plan", "metavar": "<what>"}
    actions = parser.add_subparsers(**texts, dest="action", required=True)
    model_options.add_model(actions, model.run_model)
    lists.add_lists(actions)
    step.add_step(actions)
    network.add_network(actions)


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns the exit code."""
    try:
        code: int = arguments.run_action(arguments)
    except NotImplementedError as error:  # the torus has no such mesh
        console.complain(f"artifex_devices plan: {mesh_argument.no_mesh_text(error, arguments)}")
        return console.ATTENTION
    except RuntimeError as error:  # a rate is not known
        if not is_here(arguments.cluster):
            raise
        hint = ""
        if not arguments.measured:
            hint = "; for this machine add --measured, in Python cluster.this_machine(measured=measure_roofline())"
        elif "FLOP/s" in str(error):
            hint = "; only FLOP/s of float32 are measured: add --dtype float32"
        raise RuntimeError(f"{error}{hint}") from None
    return code
