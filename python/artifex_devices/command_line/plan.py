# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices plan`: costs of meshes, reshards, collectives and steps on any cluster."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from artifex_devices.command_line.cluster_argument import CLUSTER_FORMS, add_cluster, is_here, read_cluster
from artifex_devices.command_line.console import (
    ATTENTION,
    OK,
    UsageError,
    bytes_of,
    write_json,
    write_picture,
    write_text,
)
from artifex_devices.command_line.mesh_argument import (
    add_mesh,
    lay_mesh,
    no_mesh_text,
    read_array,
    read_sizes,
    read_spec,
)
from artifex_devices.command_line.plan_model import (
    STEP_EXAMPLES,
    SUGGEST_EXAMPLES,
    add_step,
    add_suggest,
    run_step,
    run_suggest,
)

if TYPE_CHECKING:
    from artifex_devices._core import Cluster, Mesh
    from artifex_devices.mesh_utils.explanation import AxisExplanation, MeshExplanation
    from artifex_devices.planner.collective_plan import CollectivePlan
    from artifex_devices.planner.reshard_plan import ReshardPlan
    from artifex_devices.planner.step_values import StepPlan
    from artifex_devices.planner.suggestion_values import Suggestions


SUMMARY = "costs of meshes, reshards, collectives and steps of models on any cluster"
DESCRIPTION = """\
mesh        placement of a mesh's axes on the network, and their bandwidth
reshard     steps, bytes, memory and seconds from one sharding to another
collective  seconds of one collective, by each algorithm that the network allows
step        memory, seconds, collectives and bounds of a step of a model that rules shard over a mesh
suggest     the best meshes and rules for a model, by an exhaustive search"""
EXAMPLES = f"""\
examples:
  artifex_devices plan mesh --cluster "tpu v4 4x4x8" --mesh data=16,model=8
  artifex_devices plan reshard "bfloat16[4096,4096]" x,_ _,x --cluster "tpu v5e 4x4" --mesh x=4,y=4
  artifex_devices plan collective all_reduce 1GB slice,chip --cluster "dgx h100 nodes=4"
  artifex_devices plan suggest llama-2-7b --batch 256 --sequence 4096 --cluster "tpu v5e 16x16"
  artifex_devices plan reshard --help                 options of one of them
  artifex_devices plan mesh --cluster "tpu v5e 16x16" --mesh data=16,model=16 --svg mesh.svg

{CLUSTER_FORMS}
exit codes: 0 done; 1 done, but it does not fit (the torus has no such mesh; the reshard needs more than
            --memory-limit, the model more than a device has); 2 usage error, or a file that cannot be read;
            others as for every command
"""

_MESH_EXAMPLES = f"""\
examples:
  artifex_devices plan mesh --cluster "tpu v4 4x4x8" --mesh data=16,model=8
  artifex_devices plan mesh --cluster "tpu v4 2x2x4" --mesh a=2,b=2,c=4 --order exact
  artifex_devices plan mesh --cluster "tpu v5e 16x16 slices=4" --mesh data=64,model=16 --slices data=4
  artifex_devices plan mesh --cluster "dgx h100 nodes=4" --mesh data=4,model=8 --traffic data=1GB,model=8GB --json

{CLUSTER_FORMS}
exit codes: 0 done; 1 this torus has no such mesh; 2 usage error; others as for every command
"""
_RESHARD_EXAMPLES = f"""\
examples:
  artifex_devices plan reshard "bfloat16[4096,4096]" x,_ _,x --cluster "tpu v5e 4x4" --mesh x=4,y=4
  artifex_devices plan reshard "float32[8192,8192]" "P(x, y)" "P()" --cluster lab.toml --mesh x=2,y=8 --json
  artifex_devices plan reshard "bfloat16[65536,65536]" x+y,_ _,x --cluster "dgx h100 nodes=2" --mesh x=2,y=8 \\
      --memory-limit 1GiB --way collectives

specs: an axis for each dimension, axes joined by +, or _ for none: x,_  x+y,_; also P(x, None), P((x, y), None), P()

{CLUSTER_FORMS}
exit codes: 0 done; 1 no plan is within --memory-limit; 2 usage error; others as for every command
"""
_COLLECTIVE_EXAMPLES = f"""\
examples:
  artifex_devices plan collective all_gather 33.6MB x --cluster "tpu v5e 4x4"
  artifex_devices plan collective all_reduce 1GB slice,chip --cluster "dgx h100 nodes=4"
  artifex_devices plan collective permute 1GB x --perm 0:1,1:2,2:3,3:0 --cluster "tpu v5e 4x4"
  artifex_devices plan collective reduce_scatter 1GiB model --cluster "tpu v4 4x4x8" --mesh data=16,model=8 --json

{CLUSTER_FORMS}
exit codes: 0 done; 2 usage error; 3 the cluster lacks a rate that is needed; others as for every command
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommands and their options."""
    actions = parser.add_subparsers(title="what to plan", metavar="<what>", dest="action", required=True)

    mesh = _add(actions, "mesh", "the placement of a mesh on the network", _MESH_EXAMPLES, _mesh)
    add_cluster(mesh)
    add_mesh(mesh, required=True)
    mesh.add_argument(
        "--traffic",
        metavar="AXIS=BYTES,...",
        help="bytes gathered over each axis, 0 for axes that are left out (default: 1 GiB over each)",
    )
    _add_output(mesh, picture="the mesh on its network")

    reshard = _add(actions, "reshard", "the steps from one sharding to another", _RESHARD_EXAMPLES, _reshard)
    reshard.add_argument("array", metavar="ARRAY", help="dtype and shape: bfloat16[4096,4096]")
    reshard.add_argument("source", metavar="FROM", help="spec before: x,_ or P(x, None)")
    reshard.add_argument("destination", metavar="TO", help="spec afterwards")
    add_cluster(reshard)
    add_mesh(reshard, required=True)
    reshard.add_argument("--way", choices=("copies", "collectives"), help="strategy (default: the faster one)")
    reshard.add_argument("--memory-limit", type=bytes_of, metavar="BYTES", help="maximum on each device: 16GiB")
    _add_output(reshard, picture="before and after, with the bytes between devices,")

    collective = _add(actions, "collective", "seconds of one collective", _COLLECTIVE_EXAMPLES, _collective)
    collective.add_argument(
        "op", metavar="OP", help="all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, or permute with --perm"
    )
    collective.add_argument("nbytes", metavar="BYTES", type=bytes_of, help="of the global array of a group: 1GB, 1GiB")
    collective.add_argument(
        "axes", metavar="AXES", help="of the cluster (x,y,z of a torus, chip, slice), or of --mesh: x,y"
    )
    add_cluster(collective)
    add_mesh(collective, required=False)
    collective.add_argument(
        "--perm",
        metavar="FROM:TO,...",
        help="of a permute: senders and receivers, as positions in a group: 0:1,1:2,2:0",
    )
    _add_output(collective, picture="the mesh (of --mesh) on its network, with the groups of each axis,")

    step = _add(actions, "step", "the costs of a step of a model", STEP_EXAMPLES, _step)
    add_step(step)
    _add_output(step, picture="the roofline of a device with the step in it,")

    suggest = _add(actions, "suggest", "the best meshes and rules for a model", SUGGEST_EXAMPLES, _suggest)
    add_suggest(suggest)
    _add_output(suggest, picture="the mesh of the best option on its network")


def _add(actions: Any, name: str, summary: str, examples: str, run_action: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run_action=run_action)
    return parser


def _add_output(parser: argparse.ArgumentParser, *, picture: str = "") -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all numbers, as JSON")
    if picture:
        form.add_argument(
            "--svg", metavar="FILE", nargs="?", const="-", help=f"{picture} as SVG, to standard output without FILE"
        )


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns the exit code."""
    try:
        code: int = arguments.run_action(arguments)
    except NotImplementedError as error:  # the torus has no such mesh
        _complain(no_mesh_text(error, arguments))
        return ATTENTION
    except RuntimeError as error:  # a rate is not known
        if not is_here(arguments.cluster):
            raise
        if arguments.measured:
            hint = "; only FLOP/s of float32 are measured: add --dtype float32" if "FLOP/s" in str(error) else ""
            raise RuntimeError(f"{error}{hint}") from None
        raise RuntimeError(
            f"{error}; for this machine add --measured, in Python cluster.this_machine(measured=measure_roofline())"
        ) from None
    return code


def _write(plan: ReshardPlan | CollectivePlan | StepPlan | Suggestions, arguments: argparse.Namespace) -> None:

    if getattr(arguments, "svg", None) is not None:
        write_picture(arguments.svg, cast("ReshardPlan | StepPlan", plan).to_svg())
        return
    write_text((plan.to_json() if arguments.json else str(plan)) + "\n")


def _complain(text: str) -> None:
    print(f"artifex_devices plan: {text}", file=sys.stderr)


def _mesh(arguments: argparse.Namespace) -> int:
    from artifex_devices import mesh_utils

    cluster = read_cluster(arguments.cluster, arguments.measured)
    sizes = read_sizes("--mesh", arguments.mesh)
    traffic = [float(1 << 30)] * len(sizes)
    if arguments.traffic is not None:
        by_axis = _traffic(arguments.traffic, sizes)
        traffic = [by_axis.get(name, 0.0) for name in sizes]
    mesh = lay_mesh(cluster, arguments, traffic)
    explanation = mesh_utils.explain(mesh, traffic=traffic)
    if arguments.json:
        write_json(mesh_content(mesh, explanation, traffic, cluster, arguments.order))
    elif arguments.svg is not None:
        write_picture(arguments.svg, explanation.to_svg())
    else:
        write_text(f"{explanation}\n")
    return OK


def _traffic(text: str, sizes: dict[str, int]) -> dict[str, float]:
    from artifex_devices._base.nearest_name import did_you_mean

    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, amount = (each.strip() for each in part.partition("="))
        if not equals or name not in sizes or name in found:
            raise UsageError(
                f"--traffic: {part.strip()!r} is not an axis of the mesh with its bytes{did_you_mean(name, sizes)}; "
                f"expected each of {', '.join(sizes)} at most once; write {next(iter(sizes))}=1GB"
            )
        try:
            found[name] = float(bytes_of(amount))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--traffic: {name}: {error}") from None
    return found


def _reshard(arguments: argparse.Namespace) -> int:
    from artifex_devices.planner import plan_reshard
    from artifex_devices.sharding import NamedSharding

    cluster = read_cluster(arguments.cluster, arguments.measured)
    shape, dtype = read_array(arguments.array)
    axes = tuple(read_sizes("--mesh", arguments.mesh))
    specs = (read_spec("FROM", arguments.source, axes), read_spec("TO", arguments.destination, axes))
    mesh = lay_mesh(cluster, arguments)
    limit = arguments.memory_limit
    try:
        ends = [NamedSharding(mesh, spec) for spec in specs]
        try:
            plan = plan_reshard(shape, dtype, *ends, way=arguments.way, memory_limit=limit)
        except ValueError as error:
            if limit is None:
                raise
            # Without the limit there is a plan, or another reason.
            plan = plan_reshard(shape, dtype, *ends, way=arguments.way)
            _write(plan, arguments)
            _complain(f"does not fit: {error}")
            return ATTENTION
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    _write(plan, arguments)
    return OK


def _collective(arguments: argparse.Namespace) -> int:
    from artifex_devices.planner import plan_collective

    cluster = read_cluster(arguments.cluster, arguments.measured)
    axes = tuple(axis.strip() for axis in arguments.axes.split(","))
    if arguments.mesh is None and (arguments.slices is not None or arguments.split or arguments.order != "jax"):
        raise UsageError("--slices, --order and --split order the devices of a mesh; expected --mesh with them; add it")
    if arguments.mesh is None and arguments.svg is not None:
        raise UsageError("--svg draws the mesh of --mesh on its network; expected --mesh with it; add it")
    target = cluster if arguments.mesh is None else lay_mesh(cluster, arguments)
    perm = _perm(arguments)
    try:
        plan = plan_collective(arguments.op, arguments.nbytes, axes, target, perm=perm)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if arguments.svg is not None:
        _write_mesh(cast("Mesh", target), arguments)
    else:
        _write(plan, arguments)
    return OK


def _perm(arguments: argparse.Namespace) -> list[tuple[int, int]] | None:
    text: str | None = arguments.perm
    if (arguments.op == "permute") != (text is not None):
        raise UsageError(
            f"--perm: OP is {arguments.op} and --perm is {'not ' * (text is None)}given; expected --perm with permute "
            "and with no other op; write permute and --perm 0:1,1:0"
        )
    if text is None:
        return None
    pairs = [re.fullmatch(r"\s*([0-9]{1,9}):([0-9]{1,9})\s*", part) for part in text.split(",")]
    if not all(pairs):
        raise UsageError(f"--perm: {text!r} is not a list of FROM:TO; expected positions in a group; write 0:1,1:0")
    return [(int(pair[1]), int(pair[2])) for pair in pairs if pair]


def _write_mesh(mesh: Mesh, arguments: argparse.Namespace) -> None:
    from artifex_devices.render import placed_mesh_svg

    write_picture(arguments.svg, placed_mesh_svg(mesh))


def _step(arguments: argparse.Namespace) -> int:
    plan, code = run_step(arguments)
    _write(plan, arguments)
    return code


def _suggest(arguments: argparse.Namespace) -> int:
    found, code = run_suggest(arguments)
    if arguments.svg is None:
        _write(found, arguments)
    elif found.options:
        _write_mesh(found.options[0].mesh, arguments)
    else:
        _complain("nothing fits in memory: there is no best option to draw; omit --svg to see the nearest options")
    return code


def mesh_content(
    mesh: Mesh, explanation: MeshExplanation, traffic: Sequence[float], cluster: Cluster, order: str
) -> dict[str, Any]:
    """The mesh and its explanation; `device_ids` are nested like the axes."""
    return {
        "kind": "mesh",
        "cluster": cluster.name,
        "title": explanation.title,
        "axis_names": list(mesh.axis_names),
        "shape": list(mesh.devices.shape),
        "order": order,
        "device_ids": _ids(mesh.devices.tolist()),
        "traffic": list(traffic),
        "axes": [_axis(axis) for axis in explanation.axes],
        "seconds": explanation.seconds,
        "naive_axes": [_axis(axis) for axis in explanation.naive_axes],
        "naive_seconds": explanation.naive_seconds,
        "source": explanation.source,
    }


def _ids(devices: Any) -> Any:
    return [_ids(each) for each in devices] if isinstance(devices, list) else devices.id


def _axis(axis: AxisExplanation) -> dict[str, Any]:
    content = dataclasses.asdict(axis)
    if math.isinf(axis.bandwidth):  # one device receives nothing
        content["bandwidth"] = None
    return content
