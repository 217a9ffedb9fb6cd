# SPDX-License-Identifier: Apache-2.0
"""pmap: a function runs once for each device, with its row of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.checks import (
    bounded_list,
    check_callable,
    check_choice,
    check_int,
    check_type,
    failure,
    wrong_type,
)
from artifex_devices._base.clearable_cache import WorldCache
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.text import more_devices
from artifex_devices._core import Array, Device, Mesh, NamedSharding, PartitionSpec
from artifex_devices._runtime.devices import devices as devices_of
from artifex_devices._spmd.arguments import Blocks, blocks_of, is_free_for, leaf_of, paths_of
from artifex_devices._spmd.mapped import EXECUTORS, PreparedCall, flatten_arguments, name_of, run_prepared
from artifex_devices._spmd.mapped_function import MappedFunction
from artifex_devices._spmd.outputs import Outputs
from artifex_devices._spmd.result_check import ResultCheck
from artifex_devices._spmd.specs import grid_of, shape_text, spread_prefix
from artifex_devices._spmd.static_and_donated import check_hashable, delete_donated, donated_arrays, numbers_of
from artifex_devices.errors import IndivisibleError

_Result = TypeVar("_Result")

# The axis of a pmap without axis_name; collectives inside may use any name for it.
_UNNAMED = "_internal_pmap_axis_name"


@hides_unknown
def pmap(
    fun: Callable[..., _Result],
    axis_name: Hashable | None = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
    executor: str | None = None,
    **_unknown: NoReturn,
) -> MappedFunction[_Result]:
    """Maps a function over devices: each runs it with one row of the arguments.

    In a job of several processes each process passes and gets the rows of its own devices; the axis spans the devices
    of all processes.

    Args:
        fun: Takes rows as read-only ndarrays and returns ndarrays or numbers; it may call the collectives of `lax`.
        axis_name: Name of the axis in collectives. Without a name, collectives accept any name for this axis.
        in_axes: The dimension of each argument whose rows go to the devices, or None to replicate it: an int, None, or
            a tree of ints and None that is a prefix of the tuple of arguments. Keyword arguments are mapped along
            dimension 0.
        out_axes: The dimension along which results are stacked; a prefix of the result of fun. None takes the result of
            the first device.
        static_broadcasted_argnums: Positions of hashable arguments that all devices get unchanged.
        devices: Devices to run on, one for each row; by default the first of devices().
        backend: Platform of the devices.
        axis_size: Number of rows, or None to take it from the arguments.
        donate_argnums: Positions of arguments whose Arrays are deleted after the call.
        executor: As in shard_map.

    Returns:
        A function of Arrays and ndarrays that returns Arrays over a mesh of one axis.

    Raises:
        TypeError: fun is not callable; axes are not ints; an argument or a result is not an array.
        ValueError: No argument has a mapped axis; there are more rows than devices, or different numbers of rows (an
            IndivisibleError); an Array is committed to another placement; axes are not a prefix.
        IndexError: An argument does not have the dimension.
        RuntimeError: Unknown backend.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(4):
        ...     share = ad.pmap(lambda x: x / ad.lax.psum(x, "i"), axis_name="i")
        ...     np.asarray(share(np.array([1.0, 2.0, 3.0, 4.0]))).tolist()
        [0.1, 0.2, 0.3, 0.4]
    """
    if _unknown:
        raise unknown_argument("pmap", _unknown)
    check_callable("pmap", "fun", fun)
    operation = f"pmap({name_of(fun)})"
    check_choice(operation, "executor", executor, EXECUTORS)
    for argument, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for path, axis in tree_util.tree_leaves_with_path(axes, _is_axis):
            if not _is_axis(axis):
                name, expected = f"{argument}{tree_util.keystr(path)}", "an int, None, or a tree of ints and None"
                raise wrong_type(operation, name, axis, expected, "write the dimension's number")
    mapped = _Pmapped(
        fun,
        operation,
        axis_name,
        in_axes,
        out_axes,
        numbers_of(operation, "static_broadcasted_argnums", static_broadcasted_argnums),
        numbers_of(operation, "donate_argnums", donate_argnums),
        None if axis_size is None else check_int(operation, "axis_size", axis_size),
        None if devices is None else _devices(operation, devices),
        backend,
        executor,
    )

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return mapped.call(args, kwargs)

    return call


def _devices(operation: str, devices: Any) -> tuple[Device, ...]:
    is_sequence = isinstance(devices, Iterable) and not isinstance(devices, str)
    chosen = tuple(bounded_list(operation, "devices", devices)) if is_sequence else (devices,)
    for device in chosen:
        fix = "take them from devices()" + (f": devices=ad.devices()[:{device}]" if isinstance(device, int) else "")
        check_type(operation, "an entry of devices", device, Device, "a Device", fix)
    if not chosen:
        raise ValueError(f"{operation}: devices is empty; expected at least one, or None; list some")
    return chosen


class _Outputs(Outputs):
    """Stacks the results of devices along out_axes."""

    argument = "out_axes"

    @staticmethod
    def _is_spec(node: object) -> bool:
        return _is_axis(node)

    def _array(self, spec: Any, parts: list[NDArray[Any]], path: str, check: ResultCheck | None) -> Array:
        if spec is None:
            return super()._array(PartitionSpec(), parts, path, check)
        ndim = parts[0].ndim + 1
        if not -ndim <= spec < ndim:
            raise failure(
                ValueError,
                self.operation,
                f"out_axes is {spec} for output{path} of {shape_text(parts[0].shape, parts[0].dtype)}",
                expected=f"{-ndim} to {ndim - 1}",
                fix="choose one of them",
            )
        axis = spec % ndim
        for i, part in enumerate(parts):
            parts[i] = part.reshape(*part.shape[:axis], 1, *part.shape[axis:])
        return super()._array(PartitionSpec(*(None,) * axis, self.grid.manual[0]), parts, path, check)


@dataclass(frozen=True, eq=False)
class _Pmapped:
    """The state of one mapped function: the arguments of pmap, and a PreparedCall for each kind of arguments."""

    fun: Callable[..., Any]
    operation: str
    axis_name: Hashable | None
    in_axes: int | Tree
    out_axes: int | Tree
    static: tuple[int, ...]
    donated: tuple[int, ...]
    axis_size: int | None
    devices: tuple[Device, ...] | None
    backend: str | None
    executor: str | None
    _prepared: WorldCache[PreparedCall] = field(default_factory=WorldCache)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function on the rows of these arguments."""
        static, fun = self._static(args), self.fun
        dynamic = args
        if static or kwargs:
            fun = functools.partial(_bound, fun, static, tuple(kwargs))
            dynamic = (*(x for i, x in enumerate(args) if i not in static), *kwargs.values())
        leaves, treedef, key = flatten_arguments(dynamic)
        pool = self.devices if self.devices is not None else tuple(devices_of(self.backend))
        key = (pool, tuple(kwargs), tuple(static), key)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(pool, args, dynamic, static, tuple(kwargs))
            self._prepared.remember(prepared.grid.world, key, prepared)
        donated = [args[i] for i in self.donated if -len(args) <= i < len(args)]
        deleted = donated_arrays(self.operation, donated, (args, kwargs))
        result = run_prepared(
            self.operation, fun, prepared, leaves, treedef, self.executor, any_name=self.axis_name is None
        )
        delete_donated(deleted, result)
        return result

    def _static(self, args: tuple[Any, ...]) -> dict[int, Any]:
        if not self.static:
            return {}
        count = len(args)
        missing = [i for i in self.static if not -count <= i < count]
        if missing:
            raise failure(
                ValueError,
                self.operation,
                f"static_broadcasted_argnums has {missing}, and the call {count} positional arguments",
                expected="all static arguments by position",
                fix="pass them by position",
            )
        static = {i % count: args[i] for i in sorted(i % count for i in self.static)}
        check_hashable(self.operation, static)
        return static

    def _prepare(
        self,
        pool: tuple[Device, ...],
        args: tuple[Any, ...],
        dynamic: tuple[Any, ...],
        static: dict[int, Any],
        names: tuple[str, ...],
    ) -> PreparedCall:
        operation = self.operation
        count = len(dynamic) - len(names)
        in_axes = self.in_axes
        if static and isinstance(in_axes, tuple) and len(in_axes) == len(args):
            in_axes = tuple(axis for i, axis in enumerate(in_axes) if i not in static)
        what = "the tuple of arguments" + (f" without {', '.join(names)}, passed by keyword" if names else "")
        axes = spread_prefix(operation, "in_axes", in_axes, dynamic[:count], what, _is_axis)
        leaves, treedef = tree_util.tree_flatten(dynamic)
        axes += [0] * (len(leaves) - len(axes))  # of keyword arguments
        paths = paths_of(treedef, [*(f"args[{i}]" for i in range(len(args)) if i not in static), *names])
        arrays = [leaf_of(operation, leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
        if all(axis is None for axis in axes):
            raise failure(
                ValueError,
                operation,
                "no argument has a mapped axis",
                expected="at least one array that is sharded over devices",
                fix="give one whose in_axes is an int",
            )
        replicating: tuple[Any, ...] = ()  # the in_axes that replicate numbers, where all arguments are leaves
        if isinstance(in_axes, int) and len(arrays) == len(dynamic):
            replicating = tuple(in_axes if x.ndim else None for x in arrays[:count])
        axes = [self._checked_axis(*each, replicating) for each in zip(axes, arrays, paths, strict=True)]
        own = tuple(device for device in pool if device.process_index == device.client.process_index())
        rows = self._rows(own, arrays, axes, paths)
        name = _UNNAMED if self.axis_name is None else self.axis_name
        mesh = Mesh(np.array(own[:rows], dtype=object), (name,))
        grid = grid_of(mesh, (name,))
        if len(own) < len(pool) and rows < len(own):
            raise failure(
                ValueError,
                operation,
                f"arguments have {rows} rows for the {len(own)} devices of this process",
                expected="one for each device, as the axis spans all processes",
                fix="give that many rows, or pass devices=",
            )
        fetches = []
        for axis, array, path in zip(axes, arrays, paths, strict=True):
            spec = PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, name)
            wanted = NamedSharding(mesh, spec)
            if not is_free_for(array, wanted):
                entries = "" if axis is None else "None, " * axis + "'i'"
                where = "devices" if self.devices is not None else f"ad.devices()[:{rows}]"
                raise failure(
                    ValueError,
                    operation,
                    f"{path} is committed to another placement",
                    expected=f"{wanted!r} (one row for each device)",
                    got=f"{array.sharding!r}",
                    fix=(
                        f"move it first: ad.device_put({path}, ad.NamedSharding(ad.Mesh({where}, ('i',)), "
                        f"ad.P({entries})))"
                    ),
                )
            blocks = blocks_of(operation, grid, spec, array, path, moves=True)
            fetches.append(blocks if axis is None else _rows_of(blocks, axis))
        outputs = _Outputs(operation, grid, self.out_axes, checks_replicas=False)
        if len(own) < len(pool):
            grid = grid.within(grid_of(Mesh(np.array(pool, dtype=object), (name,)), (name,)))
        return PreparedCall(grid, fetches, outputs, paths)

    def _checked_axis(self, axis: int | None, array: Any, path: str, replicating: tuple[Any, ...]) -> int | None:
        """Counts the axis from 0; ValueError for a number without dimensions, IndexError for a missing dimension."""
        if axis is None:
            return None
        if not -array.ndim <= axis < array.ndim:
            kind = ValueError if array.ndim == 0 else IndexError
            fix = "choose another in_axes, or None to replicate it"
            if array.ndim == 0 and any(each is not None for each in replicating):
                fix = f"replicate numbers: in_axes={replicating}"
            raise kind(
                f"{self.operation}: {path} of {shape_text(array.shape, array.dtype)} has no dimension {axis}; "
                f"expected one to shard over devices; {fix}"
            )
        return int(axis % array.ndim)

    def _rows(self, pool: tuple[Device, ...], arrays: Sequence[Any], axes: Sequence[Any], paths: Sequence[str]) -> int:
        leaves = zip(paths, arrays, axes, strict=True)
        sizes = [(path, x.shape[axis]) for path, x, axis in leaves if axis is not None]
        rows = sizes[0][1]
        differing = [f"{path} has {size}" for path, size in sizes if size != rows]
        if differing:
            raise failure(
                IndivisibleError,
                self.operation,
                "arguments have different numbers of rows",
                expected=f"{rows} as {sizes[0][0]} has, got: {', '.join(differing)}",
                fix="make them equal, or use in_axes=None to replicate an argument",
            )
        if self.axis_size is not None and self.axis_size != rows:
            raise failure(
                ValueError,
                self.operation,
                f"axis_size is {self.axis_size} and {sizes[0][0]} has {rows} rows",
                expected="equal numbers",
                fix="leave axis_size out",
            )
        if rows == 0:
            raise failure(
                ValueError,
                self.operation,
                f"{sizes[0][0]} has no rows",
                expected="at least one, for one device each",
                fix="give some",
            )
        if rows > len(pool):
            count = len(pool)
            reshaped = f"reshape it to ({count}, rows per device, ...)"
            if rows % count == 0 and axes[0] == 0:
                reshaped += f": {paths[0]}.reshape({count}, {rows // count}, *{paths[0]}.shape[1:])"
            raise failure(
                IndivisibleError,
                self.operation,
                f"{sizes[0][0]} has {rows} rows for {count} devices",
                expected="at most one for each device",
                fix=f"{reshaped}, use shard_map, {more_devices(rows)}",
            )
        return int(rows)


def _rows_of(blocks: Blocks, axis: int) -> Blocks:
    """Returns blocks of size 1 along the axis, without that axis."""
    index: Any = (*(slice(None),) * axis, 0, ...)

    def rows(x: object) -> list[NDArray[Any]]:
        return [block[index] for block in blocks(x)]

    return rows


def _bound(fun: Callable[..., Any], static: dict[int, Any], names: tuple[str, ...], *values: Any) -> Any:
    """Calls fun with static arguments at their positions and the last values by name."""
    rest = iter(values)
    total = len(static) + len(values) - len(names)
    positional = [static[i] if i in static else next(rest) for i in range(total)]
    return fun(*positional, **dict(zip(names, rest, strict=True)))


def _is_axis(node: object) -> bool:
    return node is None or (isinstance(node, (int, np.integer)) and not isinstance(node, bool))
