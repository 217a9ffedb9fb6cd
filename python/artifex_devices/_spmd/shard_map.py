# SPDX-License-Identifier: Apache-2.0
"""shard_map: a function of blocks becomes a function of sharded Arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable
from typing import Any, TypeVar, overload

from artifex_devices import tree_util
from artifex_devices._base.checks import check_callable, check_type
from artifex_devices._base.clearable_cache import remember
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import AbstractMesh, Array, Mesh, NamedSharding
from artifex_devices._placement.mesh_context import context_mesh
from artifex_devices._spmd.arguments import Blocks, blocks_of, check_fit, check_placed, infer_specs, leaf_of
from artifex_devices._spmd.mapped import Plan, check_executor, flatten_arguments, name_of, run_plan
from artifex_devices._spmd.mapped_function import MapDecorator, MappedFunction
from artifex_devices._spmd.outputs import Outputs
from artifex_devices._spmd.specs import (
    Infer,
    Layout,
    broadcast_prefix,
    check_specs,
    explicit_names,
    held_names,
    layout_of,
)

_Result = TypeVar("_Result")


@overload
def shard_map(
    f: Callable[..., _Result],
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any = ...,
    check_vma: bool = True,
    *,
    check_rep: bool = True,
    axis_names: Collection[Hashable] = ...,
    executor: str | None = None,
) -> MappedFunction[_Result]: ...
@overload
def shard_map(
    f: None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any = ...,
    check_vma: bool = True,
    *,
    check_rep: bool = True,
    axis_names: Collection[Hashable] = ...,
    executor: str | None = None,
) -> MapDecorator: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = Infer,
    out_specs: Any = UNSPECIFIED,
    check_vma: bool = True,
    *,
    check_rep: bool = True,
    axis_names: Collection[Hashable] = frozenset(),
    executor: str | None = None,
) -> Any:
    """Maps a function over the shards of its arguments: it runs once for each device, with that device's blocks.

    Args:
        f: Takes blocks as read-only ndarrays (views of the shards, no copies) and returns ndarrays or numbers; it may
            call the collectives of `lax`. Without it a decorator is returned.
        mesh: The mesh; None takes the one of the enclosing `with mesh:` or `set_mesh`, at the time of the call.
        in_specs: The sharding of the arguments: a tree of PartitionSpecs that is a prefix of the tuple of arguments.
            None passes any object to the bodies unchanged. With Explicit axes (whose shardings are part of an array's
            type) in_specs may be left out, and must equal the placement of the arguments.
        out_specs: The sharding of the results: a prefix of what f returns. P() states that all devices return the same.
        check_vma: Whether to compare replicated results bit for bit; False takes the first device's.
        check_rep: Older name of check_vma; results are compared where both are True.
        axis_names: Set of axes over which bodies see shards; along the others blocks are complete. Empty for all.
        executor: "cooperative", "threads" or "auto"; None takes `config.spmd_executor`.

    Returns:
        A function of Arrays and ndarrays that returns Arrays with sharding NamedSharding(mesh, out_spec).

    Raises:
        TypeError: f, mesh, specs or axis_names are of a wrong type; an argument or a result is not an array.
        ValueError: Specs do not fit the mesh, the arguments or the results; devices return different values of a
            replicated result; arguments over Explicit axes are placed otherwise than in_specs; no mesh is set.
        CollectiveError: Devices called different collectives (a RuntimeError).
        BaseException: The exception of f, with the position of each device as a note.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices import P
        >>> with ad.simulate(8):
        ...     mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        ...     total = ad.shard_map(lambda b: ad.lax.psum(b.sum(), "x"), mesh, in_specs=P("x"), out_specs=P())
        ...     int(total(np.arange(16)))
        120
    """
    if out_specs is UNSPECIFIED:
        raise TypeError("shard_map: out_specs is missing; expected a tree of PartitionSpecs; give one for each result")
    if f is None:
        return functools.partial(shard_map, **{name: value for name, value in locals().items() if name != "f"})
    check_callable("shard_map", "f", f)
    mapped = _ShardMapped(f, mesh, in_specs, out_specs, bool(check_vma and check_rep), axis_names, executor)

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        return mapped.call(args)

    return call


class _ShardMapped:
    """The state of one mapped function: its specs, and a Plan for each kind of arguments."""

    def __init__(
        self,
        f: Callable[..., Any],
        mesh: Any,
        in_specs: Any,
        out_specs: Any,
        check_vma: bool,
        axis_names: Any,
        executor: str | None,
    ) -> None:
        self.f = f
        self.operation = operation = f"shard_map({name_of(f)})"
        if mesh is not None:
            expected = "a Mesh, an AbstractMesh or None"
            check_type(operation, "mesh", mesh, (Mesh, AbstractMesh), expected, "create one by make_mesh")
        check_type(operation, "axis_names", axis_names, (set, frozenset), "a set", "write {'x'}")
        check_executor(operation, executor)
        self.mesh = mesh
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.check_vma = check_vma
        self.axis_names = frozenset(axis_names)
        self.executor = executor
        self._plans: dict[Any, Plan] = {}
        self._outputs: dict[Layout, Outputs] = {}
        self._check_specs(None if mesh is None else self._manual(mesh))

    def _check_specs(self, manual: tuple[Hashable, ...] | None) -> None:
        for argument, specs in (("in_specs", self.in_specs), ("out_specs", self.out_specs)):
            if specs is not Infer:
                check_specs(self.operation, argument, specs, manual)

    def _manual(self, mesh: Mesh | AbstractMesh) -> tuple[Hashable, ...]:
        unknown = [name for name in self.axis_names if name not in mesh.axis_names]
        if unknown:
            raise ValueError(
                f"{self.operation}: axis_names has {', '.join(map(safe_repr, unknown))}; expected axes of the mesh, "
                f"{', '.join(map(repr, mesh.axis_names))}; check the spelling"
            )
        return tuple(name for name in mesh.axis_names if not self.axis_names or name in self.axis_names)

    def call(self, args: tuple[Any, ...]) -> Any:
        """Runs the function on these arguments."""
        leaves, treedef, key = flatten_arguments(args)
        mesh = self.mesh
        if type(mesh) is not Mesh:
            mesh = self._mesh_of(leaves)
            key = (mesh, key)
        plan = self._plans.get(key)
        if plan is None:
            plan = remember(self._plans, key, self._plan(mesh, args))
        return run_plan(self.operation, self.f, plan, leaves, treedef, self.executor)

    def _mesh_of(self, leaves: Any) -> Mesh:
        if self.mesh is None:
            mesh = context_mesh()
            if mesh is not None:
                return mesh
            raise ValueError(
                f"{self.operation}: no mesh is set; expected mesh= or a call inside `with mesh:` or set_mesh; give "
                "one: shard_map(f, mesh=mesh, ...)"
            )
        meshes: list[Mesh] = []
        for x in leaves:
            mesh_of_x = x.sharding.mesh if isinstance(x, Array) and isinstance(x.sharding, NamedSharding) else None
            if isinstance(mesh_of_x, Mesh) and mesh_of_x.abstract_mesh == self.mesh and mesh_of_x not in meshes:
                meshes.append(mesh_of_x)
        if len(meshes) == 1:
            return meshes[0]
        if meshes:
            raise ValueError(
                f"{self.operation}: mesh is an AbstractMesh, and the arguments are on {len(meshes)} meshes; expected "
                f"one, got devices {' and '.join(str(mesh.device_ids.tolist()) for mesh in meshes)}; move the "
                "arguments to one mesh by device_put, or give a Mesh"
            )
        raise ValueError(
            f"{self.operation}: mesh is an AbstractMesh, which has no devices; expected an argument that is placed "
            "on such a mesh; place one: device_put(x, NamedSharding(mesh, spec)), or give a Mesh"
        )

    def _plan(self, mesh: Mesh, args: tuple[Any, ...]) -> Plan:
        operation = self.operation
        layout = layout_of(mesh, self._manual(mesh))
        if type(self.mesh) is not Mesh:
            self._check_specs(layout.manual)
        leaves, treedef = tree_util.tree_flatten(args)
        keys = treedef.paths()

        def path_of(i: int) -> str:
            return f"args{tree_util.keystr(keys[i])}"

        leaf_specs: list[Any] = [Infer] * len(leaves)
        if self.in_specs is not Infer:
            leaf_specs = broadcast_prefix(operation, "in_specs", self.in_specs, args, "the tuple of arguments")
        sharded = [i for i, spec in enumerate(leaf_specs) if spec is not None]  # bodies get the others unchanged
        arrays = [leaf_of(operation, leaves[i], path_of(i)) for i in sharded]

        def path_of_sharded(number: int) -> str:
            return path_of(sharded[number])

        specs = infer_specs(operation, layout, arrays) if self.in_specs is Infer else [leaf_specs[i] for i in sharded]
        check_fit(operation, layout, specs, arrays, path_of_sharded)
        if self.in_specs is not Infer:
            check_placed(operation, layout, specs, arrays, path_of_sharded)
        self._check_automatic(layout, arrays, path_of_sharded)
        count = len(layout.positions)
        fetches: list[Blocks] = [lambda x: [x] * count] * len(leaves)
        for i, spec, array in zip(sharded, specs, arrays, strict=True):
            fetches[i] = blocks_of(operation, layout, spec, array, path_of(i))
        if layout not in self._outputs:
            self._outputs[layout] = Outputs(operation, layout, self.out_specs, checks_replicas=self.check_vma)
        return Plan(layout, fetches, self._outputs[layout], path_of)

    def _check_automatic(self, layout: Layout, arrays: list[Any], path_of: Callable[[int], str]) -> None:
        """Refuses arguments sharded over Explicit axes that are not manual: bodies would see complete blocks."""
        automatic = [name for name in explicit_names(layout.mesh) if name not in layout.manual]
        wrong = [
            f"{path_of(i)} is sharded over {safe_repr(name)}"
            for i, x in enumerate(arrays)
            for names in held_names(x, layout.mesh)
            for name in names
            if name in automatic
        ]
        if wrong:
            raise ValueError(
                f"{self.operation}: {'; '.join(wrong)}, an Explicit axis that is not in axis_names; expected "
                "complete blocks along it, as nothing is compiled here; reshard the argument first, or add the axis to "
                "axis_names"
            )
