# SPDX-License-Identifier: Apache-2.0
"""`--mesh`, specs and shapes as texts: `data=4,model=4`, `P(data, None)` or `data,_`, `bfloat16[4096,4096]`.

A text or an option that does not fit is a UsageError.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line.console import UsageError, usage_errors

if TYPE_CHECKING:
    from artifex_devices._core import Cluster, Mesh, PartitionSpec

_NAME = re.compile(r"(?!_$)[^\W\d]\w*")


def add_mesh(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Adds --mesh and the options of its order."""
    add = parser.add_argument
    sizes = "names and sizes, outermost first: data=4,model=4"
    add("--mesh", metavar="AXIS=N,...", required=required, help=sizes)
    add = parser.add_argument_group("order of devices").add_argument
    slices = "for several TPU slices: number of slices along each axis (included in the sizes of --mesh)"
    add("--slices", metavar="AXIS=N,...", help=slices)
    order = "order of the devices: JAX's rule (default), an exact search over the torus, or by id"
    add("--order", choices=("jax", "exact", "id"), default="jax", help=order)
    add("--split", action="store_true", help="let several axes of the mesh share one axis of the torus")


def read_sizes(option: str, text: str) -> dict[str, int]:
    """Returns sizes by axis."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = (each.strip() for each in part.partition("="))
        if not equals or not _NAME.fullmatch(name) or not re.fullmatch(r"0*[1-9][0-9]{0,8}", size):
            raise failure(
                UsageError,
                option,
                f"{part.strip()!r} is not an axis and its size",
                expected="a name, = and a whole number from 1 on",
                fix="write data=4,model=4",
            )
        if name in found:
            raise UsageError(f"{option}: axis {name!r} is given twice; expected each once; leave one out")
        found[name] = int(size)
    return found


def lay_mesh(cluster: Cluster, arguments: argparse.Namespace, traffic: list[float] | None = None) -> Mesh:
    """Returns the mesh of a cluster's devices; raises NotImplementedError if the torus has no such order."""
    from artifex_devices import mesh_utils
    from artifex_devices.sharding import Mesh

    sizes = read_sizes("--mesh", arguments.mesh)
    count = math.prod(sizes.values())
    if count != cluster.device_count:
        raise failure(
            UsageError,
            "--mesh",
            f"{arguments.mesh} has {count} devices",
            expected=f"{cluster.device_count}, all of {cluster.name}",
            fix=f"write {_nearest_sizes(sizes, cluster.device_count)}",
        )
    across = _across(cluster, sizes, arguments)
    devices, shape, split = cluster.devices(), tuple(sizes.values()), arguments.split
    if arguments.order == "id":
        import numpy as np

        ordered = np.array(devices).reshape(shape)
    elif across is not None:
        inside = [size // there for size, there in zip(shape, across, strict=True)]
        ordered = mesh_utils.create_hybrid_device_mesh(inside, across, devices, allow_split_physical_axes=split)
    else:
        exact: dict[str, Any] = {"search": "exact", "traffic": traffic} if arguments.order == "exact" else {}
        with usage_errors(ValueError, option="--mesh: "):
            ordered = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=split, **exact)
    return Mesh(ordered, tuple(sizes))


def no_mesh_text(error: NotImplementedError, arguments: argparse.Namespace) -> str:
    """Formats the error of an order without such a mesh, with options to try."""
    options = [] if arguments.order == "exact" or arguments.slices is not None else ["--order exact"]
    if not arguments.split:
        options.append("--split")
    other = f"{' or '.join(options)}; or other sizes" if options else "other sizes"
    return f"{' '.join(str(error).split())} (Here: {other}.)"


def _across(cluster: Cluster, sizes: dict[str, int], arguments: argparse.Namespace) -> list[int] | None:
    """Returns the slices along each axis; None if they do not matter."""
    if arguments.order == "id" or cluster.slices == 1 or cluster.platform != "tpu":
        if arguments.slices is not None:
            raise UsageError("--slices: expected several TPU slices, and another --order than id; leave it out")
        return None
    if arguments.order == "exact":
        problem = f"it searches one torus; expected one slice, got {cluster.slices}"
        raise UsageError(f"--order exact: {problem}; write --order jax")
    first = next((name for name, size in sizes.items() if size % cluster.slices == 0), next(iter(sizes)))
    write = f"write --slices {first}={cluster.slices}"
    if arguments.slices is None:
        problem = f"{cluster.name} has {cluster.slices} slices"
        raise UsageError(f"--slices: {problem}; expected their axes of the mesh; {write}")
    along = read_sizes("--slices", arguments.slices)
    for name, there in along.items():
        _known_axis("--slices", name, sizes)
        if sizes[name] % there != 0:
            raise failure(
                UsageError,
                "--slices",
                f"there are {there} slices along {name!r} of size {sizes[name]}",
                expected="a divisor",
                fix=write,
            )
    if math.prod(along.values()) != cluster.slices:
        raise failure(
            UsageError,
            "--slices",
            f"{arguments.slices} makes {math.prod(along.values())} slices",
            expected=cluster.slices,
            fix=write,
        )
    return [along.get(name, 1) for name in sizes]


def _nearest_sizes(sizes: dict[str, int], count: int) -> str:
    """Suggests the same axes with one size changed to fit, or one axis for all devices."""
    for name in reversed(sizes):
        rest = math.prod(size for other, size in sizes.items() if other != name)
        if count % rest == 0:
            changed = {**sizes, name: count // rest}
            return ",".join(f"{axis}={size}" for axis, size in changed.items())
    return f"{next(iter(sizes))}={count}"


def _known_axis(option: str, name: str, sizes: dict[str, int] | tuple[str, ...]) -> None:
    if name not in sizes:
        raise failure(
            UsageError,
            option,
            f"the mesh has no axis {name!r}{did_you_mean(name, sizes)}",
            expected=f"some of {', '.join(sizes)}",
            fix="correct it",
        )


def read_spec(option: str, text: str, axes: tuple[str, ...]) -> PartitionSpec:
    """Parses a PartitionSpec: `P(x, None)`, with quotes or without, or `x,_`; several axes as `(x, y)` or `x+y`."""
    from artifex_devices.sharding import P

    try:
        parts = _python_spec(text) if text.lstrip().startswith("P(") else _short_spec(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise failure(
            UsageError,
            option,
            f"{text!r} is not a spec",
            expected="for each dimension an axis, axes joined by +, or _",
            fix="write 'x,_', 'x+y,_' or 'P(x, None)'",
        ) from None
    for part in parts:
        for name in part:
            _known_axis(option, name, axes)
    return P(*(None if not part else part[0] if len(part) == 1 else part for part in parts))


def _short_spec(text: str) -> list[tuple[str, ...]]:
    parts = []
    for part in (each.strip() for each in text.split(",")):
        names = () if part == "_" else tuple(name.strip() for name in part.split("+"))
        if not all(_NAME.fullmatch(name) for name in names):
            raise ValueError(part)
        parts.append(names)
    return parts


def _python_spec(text: str) -> list[tuple[str, ...]]:
    call = ast.parse(text.strip(), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        raise ValueError(text)
    parts: list[tuple[str, ...]] = []
    for node in call.args:
        if isinstance(node, ast.Constant) and node.value is None:
            parts.append(())
        else:
            parts.append(tuple(map(_name_of, node.elts if isinstance(node, ast.Tuple) else [node])))
    return parts


def _name_of(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
    if not isinstance(name, str):
        raise ValueError(name)
    return name


def read_array(text: str) -> tuple[tuple[int, ...], str]:
    """Parses shape and dtype of `bfloat16[4096,4096]`."""
    match = re.fullmatch(r"(\w+)\[((?:[0-9]{1,18}(?:,[0-9]{1,18})*)?)\]", text.replace(" ", ""))
    if match is None:
        raise failure(
            UsageError,
            "ARRAY",
            f"{text!r} is not a dtype with a shape",
            expected="a dtype and sizes in brackets",
            fix="write 'bfloat16[4096,4096]'",
        )
    return tuple(int(size) for size in match[2].split(",") if size), match[1]
