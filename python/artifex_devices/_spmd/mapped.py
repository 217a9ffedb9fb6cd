# SPDX-License-Identifier: Apache-2.0
"""Mapped functions: blocks in, one participant for each device, Arrays out. The common part of shard_map and pmap."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._placement.device_put import LEAF_TYPES
from artifex_devices._runtime.cupy_arrays import is_on_gpu
from artifex_devices._spmd.arguments import Blocks, check_alive, key_of
from artifex_devices._spmd.cross_process import CrossProcess
from artifex_devices._spmd.executors import run
from artifex_devices._spmd.on_cuda import on_gpus
from artifex_devices._spmd.outputs import Outputs
from artifex_devices._spmd.result_check import ResultCheck
from artifex_devices._spmd.session import Session
from artifex_devices._spmd.specs import ParticipantGrid
from artifex_devices.config import config

EXECUTORS = ("auto", "cooperative", "threads", None)  # None takes config.spmd_executor


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCall:
    """The part of a call that depends on shapes, dtypes and shardings only."""

    grid: ParticipantGrid
    fetches: Sequence[Blocks]  # one for each argument leaf
    outputs: Outputs
    paths: Sequence[str]  # the names of argument leaves
    sessions: list[Session] = field(default_factory=list)  # of successful calls, for the next ones


def name_of(function: object) -> str:
    """Returns the name of a function in errors."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def flatten_arguments(args: tuple[Any, ...]) -> tuple[Sequence[Any], Any, Any]:
    """Returns the leaves, their structure (None where every argument is a leaf), and the key of their PreparedCall."""
    for x in args:
        if type(x) not in LEAF_TYPES:
            break
    else:
        return args, None, tuple([key_of(x) for x in args])
    leaves, treedef = tree_util.tree_flatten(args)
    return leaves, treedef, (treedef, *[key_of(x) for x in leaves])


def run_prepared(
    operation: str,
    function: Callable[..., Any],
    prepared: PreparedCall,
    leaves: Sequence[Any],
    treedef: Any,
    executor: str | None,
    *,
    any_name: bool = False,
) -> Any:
    """Calls the function for each participant and turns the results into Arrays."""
    grid = prepared.grid
    try:
        columns = list(map(operator.call, prepared.fetches, leaves))
    except RuntimeError:
        for x, path in zip(leaves, prepared.paths, strict=True):
            check_alive(operation, x, path)
        raise
    count = len(grid.positions)
    executor = executor or config.spmd_executor
    threads_bytes = math.inf
    if executor == "auto":
        executor = "cooperative"
        if count > 1:
            threads_bytes = config.spmd_threads_bytes
    for column in columns:
        block: Any = column[0]
        if isinstance(block, np.ndarray):
            if block.nbytes >= threads_bytes:
                executor = "threads"
        elif is_on_gpu(block):
            # The GPU on which CuPy computes is a fact of the thread.
            executor, function = "threads", on_gpus(function)
            break
    rows: list[Any]
    if treedef is not None:
        leaves_of_each = zip(*columns, strict=True) if columns else [()] * count
        rows = [treedef.unflatten(row) for row in leaves_of_each]
    elif len(columns) == 1:
        rows = columns[0]
    else:
        rows = list(zip(*columns, strict=True)) if columns else [()] * count
    session = _session_of(prepared, operation, any_name)
    timeout_s = config.collective_timeout_s
    others = session.others
    if not isinstance(others, CrossProcess):
        made = prepared.outputs.assemble(run(session, function, rows, executor, timeout_s))
    else:
        try:
            check = ResultCheck(others)
            made = prepared.outputs.assemble(run(session, function, rows, executor, timeout_s), check)
            check.run()
            others.forget_common()
        except BaseException as error:
            others.abandon(error)
            raise
    if session.is_reusable:
        prepared.sessions.append(session)
    return made


def _session_of(prepared: PreparedCall, operation: str, any_name: bool) -> Session:
    """Returns an unused session: that of a successful call, which has its collectives cached, or a new one."""
    try:
        return prepared.sessions.pop()
    except IndexError:
        grid = prepared.grid
        return Session(
            grid.manual,
            grid.sizes,
            grid.device_names,
            operation=operation,
            any_name=any_name,
            groups=None if any_name else grid.groups,
            others=None if grid.process_map is None else CrossProcess(grid.process_map, operation),
        )
