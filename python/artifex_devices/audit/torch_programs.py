# SPDX-License-Identifier: Apache-2.0
"""Programs of torch: texts of FX graphs, and the counts of CommDebugMode."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_int, failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import hlo
from artifex_devices.audit.program import Program
from artifex_devices.audit.values import Collective

_OPERATION = "audit.program"
# Operators of torch.distributed, without their namespace, "_out", "_coalesced" and underscores at the end.
_KINDS = {
    "all_gather_into_tensor": "all_gather",
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "allgather_into_tensor": "all_gather",
    "_allgather_base": "all_gather",
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "reduce_scatter_tensor": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "all_to_all_single": "all_to_all",
    "all_to_all": "all_to_all",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "shard_dim_alltoall": "all_to_all",
    "broadcast": "collective_broadcast",
    "permute_tensor": "collective_permute",
    "send": "collective_permute",
}
_ENDS = re.compile(r"(?:_out|_coalesced|_)+$")
_OPERATOR = re.compile(r"torch\.ops\.(?:_?c10d_functional|c10d|_dtensor)\.(\w+)(?:\.\w+)?\]?\((?:args = \()?")
_NAMED = re.compile(r'(\w+): ?"([a-z0-9]+)\[([\d, ]*)\]')
_PLACE = re.compile(r"# File: (.*?):(\d+) in ")
_RESULT = re.compile(r"%?(\w+)\s*(?::[^=\n]*)?=\s*(?:call_function\[target=)?$")
# Names of dtypes in torch's readable graphs.
_DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u8": "uint8", "b8": "bool", "c64": "complex64", "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_SIZES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
# The argument that has the size of the group.
_GROUP_SIZE = {"all_gather_into_tensor": 1, "reduce_scatter_tensor": 2}


def is_graph_text(text: str) -> bool:
    """Returns whether a text is an FX graph or its code with operators of torch."""
    start = text.lstrip()[:64]
    if start.startswith(("graph():", "class GraphModule", "class <lambda>", "def forward(")):
        return True
    return _OPERATOR.search(text) is not None and not start.startswith(("HloModule", "module", "#"))


def program_of_graph(text: str) -> Program:
    """Reads the collectives of an FX graph: str(module.graph), module.code or print_readable()."""
    shapes = {
        name: (_DTYPES.get(dtype, ""), tuple(int(size) for size in dims.split(",") if size.strip()))
        for name, dtype, dims in _NAMED.findall(text)
    }
    collectives = tuple(_collectives(text, shapes))
    notes = []
    if any(each.bytes is None for each in collectives):
        notes.append("bytes are unknown where the graph lacks the shape of an operand or the size of a group")
    return Program(
        source="FX graph",
        name="graph",
        devices=None,
        backend=None,
        is_partitioned=True,
        mesh=(),
        collectives=collectives,
        notes=tuple(notes),
    )


def _collectives(text: str, shapes: Mapping[str, tuple[str, tuple[int, ...]]]) -> Iterator[Collective]:
    places = [(match.start(), match[1], int(match[2])) for match in _PLACE.finditer(text)]
    place = 0
    for match in _OPERATOR.finditer(text):
        operator = _ENDS.sub("", match[1])
        if operator not in _KINDS:
            continue  # wait_tensor
        end = text.find(")", match.end())
        arguments = [each.strip().lstrip("%[(") for each in text[match.end() : end].split(",")]
        while place < len(places) and places[place][0] < match.start():
            place += 1
        file, line = places[place - 1][1:] if place else ("", 0)
        result = _RESULT.search(text[max(0, match.start() - 200) : match.start()])
        dtype, shape = shapes.get(arguments[0].rstrip("]"), ("", ()))
        number = _GROUP_SIZE.get(operator, len(arguments))
        size = int(arguments[number]) if number < len(arguments) and arguments[number].isdigit() else 0
        count = int(np.prod(shape, dtype=np.int64)) * (_SIZES.get(dtype) or np.dtype(dtype).itemsize) if dtype else None
        kind = _KINDS[operator]
        yield Collective(
            name=result[1] if result else "",
            kind=kind,
            dtypes=(dtype,) if dtype else (),
            shapes=(shape,) if dtype else (),
            bytes=hlo.ring_bytes(kind, count, size) if size else None,
            op_name=match[1],
            file=file,
            line=line,
        )


def program_of_counts(counts: Mapping[Any, Any]) -> Program:
    """Reads the counts of CommDebugMode: operators of torch.distributed, or their names, and numbers of calls.

    Raises:
        ValueError: A key is not a collective, or a number is negative.
        TypeError: A number is not an int.
    """
    runs: dict[str, int] = {}
    for key, number in counts.items():
        name = str(key)
        operator = _ENDS.sub("", re.sub(r"\.(?:default|out)$", "", name).rpartition(".")[2])
        if operator not in _KINDS:
            raise failure(
                ValueError,
                _OPERATION,
                f"the counts have the key {safe_repr(name)}",
                expected="collectives of torch.distributed, such as c10d_functional.all_reduce",
                fix="write audit.program(mode.get_comm_counts())",
            )
        count = check_int(_OPERATION, f"the count of {name}", number, "write a number of calls", minimum=0)
        runs[_KINDS[operator]] = runs.get(_KINDS[operator], 0) + count
    return Program(
        source="CommDebugMode",
        name="counts",
        devices=None,
        backend=None,
        is_partitioned=True,
        mesh=(),
        collectives=tuple(Collective(name="", kind=kind, runs=count) for kind, count in runs.items() if count),
        notes=("counts have no shapes: bytes and axes are unknown",),
    )
