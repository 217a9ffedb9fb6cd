# SPDX-License-Identifier: Apache-2.0
"""`plan mesh`, `plan reshard` and `plan collective`."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line import console
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan import mesh_argument
from artifex_devices.command_line.plan.actions import add_action
from artifex_devices.command_line.plan.cluster_argument import add_cluster, read_cluster
from artifex_devices.command_line.plan.mesh_argument import add_mesh, lay_mesh, read_sizes

if TYPE_CHECKING:
    from artifex_devices._core import Mesh
    from artifex_devices.mesh_utils.explanation import AxisExplanation, MeshExplanation


_MESH_EXAMPLES = """\
  artifex_devices plan mesh --cluster "tpu v4 4x4x8" --mesh data=16,model=8
  artifex_devices plan mesh --cluster "tpu v4 2x2x4" --mesh a=2,b=2,c=4 --order exact
  artifex_devices plan mesh --cluster "tpu v5e 16x16 slices=4" --mesh data=64,model=16 --slices data=4
  artifex_devices plan mesh --cluster "dgx h100 nodes=4" --mesh data=4,model=8 --traffic data=1GB,model=8GB --json
"""
_RESHARD_EXAMPLES = """\
  artifex_devices plan reshard "bfloat16[4096,4096]" x,_ _,x --cluster "tpu v5e 4x4" --mesh x=4,y=4
  artifex_devices plan reshard "float32[8192,8192]" "P(x, y)" "P()" --cluster lab.toml --mesh x=2,y=8 --json
  artifex_devices plan reshard "bfloat16[65536,65536]" x+y,_ _,x --cluster "dgx h100 nodes=2" --mesh x=2,y=8 \\
      --memory-limit 1GiB --way collectives

specs: for each dimension an axis, axes joined by +, or _ for none: x,_  x+y,_; also P(x, None), P((x, y), None), P()
"""
_COLLECTIVE_EXAMPLES = """\
  artifex_devices plan collective all_gather 33.6MB x --cluster "tpu v5e 4x4"
  artifex_devices plan collective all_reduce 1GB slice,chip --cluster "dgx h100 nodes=4"
  artifex_devices plan collective permute 1GB x --perm 0:1,1:2,2:3,3:0 --cluster "tpu v5e 4x4"
  artifex_devices plan collective reduce_scatter 1GiB model --cluster "tpu v4 4x4x8" --mesh data=16,model=8 --json
"""


def add_network(actions: Any) -> None:
    """Adds the subcommands and their options."""
    codes = "1 this torus has no such mesh; 2 usage error"
    mesh = add_action(actions, "mesh", "show how a mesh is placed on the network", _MESH_EXAMPLES, codes, _mesh)
    add_cluster(mesh)
    add_mesh(mesh, required=True)
    traffic = "bytes gathered over each axis, 0 for axes not listed (default: 1 GiB over each axis)"
    mesh.add_argument("--traffic", metavar="AXIS=BYTES,...", help=traffic)
    console.add_output(mesh, "the mesh on its network")

    codes = "1 no plan is within --memory-limit; 2 usage error"
    reshard = add_action(actions, "reshard", "plan a reshard", _RESHARD_EXAMPLES, codes, _reshard)
    add = reshard.add_argument
    add("array", metavar="ARRAY", help="dtype and shape: bfloat16[4096,4096]")
    add("source", metavar="FROM", help="spec before the reshard: x,_ or P(x, None)")
    add("destination", metavar="TO", help="spec after the reshard")
    add_cluster(reshard)
    add_mesh(reshard, required=True)
    add("--way", choices=("copies", "collectives"), help="strategy (default: the faster of the two)")
    add("--memory-limit", type=console.bytes_of, metavar="BYTES", help="maximum memory per device: 16GiB")
    console.add_output(reshard, "both shardings and the bytes between devices")

    codes = "2 usage error; 3 the cluster lacks a rate that is needed"
    collective = add_action(actions, "collective", "estimate a collective", _COLLECTIVE_EXAMPLES, codes, _collective)
    add = collective.add_argument
    ops = "all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, or permute with --perm"
    add("op", metavar="OP", help=ops)
    add("nbytes", metavar="BYTES", type=console.bytes_of, help="bytes of the global array of a group: 1GB, 1GiB")
    add("axes", metavar="AXES", help="axes of the cluster (x,y,z of a torus, chip, slice) or of --mesh: x,y")
    add_cluster(collective)
    add_mesh(collective, required=False)
    pairs = "for permute: senders and receivers, as positions in a group: 0:1,1:2,2:0"
    add("--perm", metavar="FROM:TO,...", help=pairs)
    console.add_output(collective, "the mesh of --mesh on its network, with the groups of each axis,")


def _mesh(arguments: argparse.Namespace) -> int:
    from artifex_devices import mesh_utils

    cluster = read_cluster(arguments.cluster, arguments.measured)
    sizes = read_sizes("--mesh", arguments.mesh)
    by_axis = dict.fromkeys(sizes, float(1 << 30)) if arguments.traffic is None else _traffic(arguments.traffic, sizes)
    traffic = [by_axis.get(name, 0.0) for name in sizes]
    mesh = lay_mesh(cluster, arguments, traffic)
    explanation = mesh_utils.explain(mesh, traffic=traffic)
    if arguments.json:
        options = {"cluster": cluster.name, "order": arguments.order, "traffic": traffic}
        console.write_json("plan", {**_mesh_content(mesh, explanation), **options})
    else:
        console.write_plan(explanation, arguments)
    return console.OK


def _mesh_content(mesh: Mesh, explanation: MeshExplanation) -> dict[str, Any]:
    """Returns the mesh and its explanation; `device_ids` are nested like the axes."""
    from artifex_devices.accelerators import source_notes

    return {
        "kind": "mesh",
        "axis_names": list(mesh.axis_names),
        "shape": list(mesh.devices.shape),
        "device_ids": mesh.device_ids.tolist(),
        **{name: getattr(explanation, name) for name in ("title", "seconds", "naive_seconds", "source")},
        **{name: [_axis(axis) for axis in getattr(explanation, name)] for name in ("axes", "naive_axes")},
        "sources": source_notes(f"[{explanation.source}]"),
    }


def _axis(axis: AxisExplanation) -> dict[str, Any]:
    # One device receives nothing.
    return {**dataclasses.asdict(axis), "bandwidth": None if math.isinf(axis.bandwidth) else axis.bandwidth}


def _traffic(text: str, sizes: dict[str, int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, amount = (each.strip() for each in part.partition("="))
        if not equals or name not in sizes or name in found:
            raise failure(
                UsageError,
                "--traffic",
                f"{part.strip()!r} is not an axis of the mesh with its bytes{did_you_mean(name, sizes)}",
                expected=f"each of {', '.join(sizes)} at most once",
                fix=f"write {next(iter(sizes))}=1GB",
            )
        with console.usage_errors(argparse.ArgumentTypeError, option=f"--traffic: {name}: "):
            found[name] = float(console.bytes_of(amount))
    return found


def _reshard(arguments: argparse.Namespace) -> int:
    from artifex_devices.planner import plan_reshard
    from artifex_devices.sharding import NamedSharding

    cluster = read_cluster(arguments.cluster, arguments.measured)
    shape, dtype = mesh_argument.read_array(arguments.array)
    axes = tuple(read_sizes("--mesh", arguments.mesh))
    specs = [mesh_argument.read_spec(*end, axes) for end in (("FROM", arguments.source), ("TO", arguments.destination))]
    mesh = lay_mesh(cluster, arguments)
    limit, problem = arguments.memory_limit, None
    with console.usage_errors(TypeError, ValueError):
        ends = [NamedSharding(mesh, spec) for spec in specs]
        try:
            plan = plan_reshard(shape, dtype, *ends, way=arguments.way, memory_limit=limit)
        except ValueError as error:
            if limit is None:
                raise
            problem = error  # without the limit there is a plan, or another reason
            plan = plan_reshard(shape, dtype, *ends, way=arguments.way)
    console.write_plan(plan, arguments)
    if problem is not None:
        console.complain(f"artifex_devices plan: does not fit: {problem}")
    return console.OK if problem is None else console.ATTENTION


def _collective(arguments: argparse.Namespace) -> int:
    from artifex_devices.planner import plan_collective

    cluster = read_cluster(arguments.cluster, arguments.measured)
    axes = tuple(axis.strip() for axis in arguments.axes.split(","))
    if arguments.mesh is None and (arguments.slices is not None or arguments.split or arguments.order != "jax"):
        raise UsageError("--slices, --order and --split order the devices of a mesh; they need --mesh; add it")
    if arguments.mesh is None and arguments.svg is not None:
        raise UsageError("--svg draws a mesh on its network; it needs --mesh; add it")
    target = cluster if arguments.mesh is None else lay_mesh(cluster, arguments)
    perm = _perm(arguments)
    with console.usage_errors(ValueError):
        plan = plan_collective(arguments.op, arguments.nbytes, axes, target, perm=perm)
    if arguments.svg is not None:
        console.write_mesh(target, arguments)
    else:
        console.write_plan(plan, arguments)
    return console.OK


def _perm(arguments: argparse.Namespace) -> list[tuple[int, int]] | None:
    text: str | None = arguments.perm
    if (arguments.op == "permute") != (text is not None):
        raise failure(
            UsageError,
            "--perm",
            f"OP is {arguments.op} and --perm is {'not ' * (text is None)}given",
            expected="--perm with permute and with no other op",
            fix="write permute and --perm 0:1,1:0",
        )
    if text is None:
        return None
    pairs = [re.fullmatch(r"\s*([0-9]{1,9}):([0-9]{1,9})\s*", part) for part in text.split(",")]
    if not all(pairs):
        raise UsageError(f"--perm: {text!r} is not a list of FROM:TO; expected positions in a group; write 0:1,1:0")
    return [(int(pair[1]), int(pair[2])) for pair in pairs if pair]
