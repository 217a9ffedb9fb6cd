# SPDX-License-Identifier: Apache-2.0
"""shard_map and smap: a function of blocks becomes a function of sharded Arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from artifex_devices import tree_util
from artifex_devices._base.checks import check_callable, check_choice, check_type, failure, wrong_type, wrong_value
from artifex_devices._base.clearable_cache import WorldCache
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import AbstractMesh, Array, Mesh, NamedSharding, PartitionSpec
from artifex_devices._placement.jax_values import from_jax_tree
from artifex_devices._placement.mesh_context import (
    abstract_mesh_that_is_set,
    check_context,
    context_mesh,
    mesh_that_is_set,
)
from artifex_devices._spmd.arguments import Blocks, blocks_of, check_fit, check_placed, infer_specs, leaf_of, paths_of
from artifex_devices._spmd.mapped import EXECUTORS, PreparedCall, flatten_arguments, name_of, run_prepared
from artifex_devices._spmd.mapped_function import MapDecorator, MappedFunction
from artifex_devices._spmd.outputs import Outputs
from artifex_devices._spmd.specs import SpecTree, check_specs, grid_of, spread_prefix

_Result = TypeVar("_Result")


@overload
def shard_map(
    f: Callable[..., _Result],
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: SpecTree = ...,
    out_specs: SpecTree = ...,
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
    in_specs: SpecTree = ...,
    out_specs: SpecTree = ...,
    check_vma: bool = True,
    *,
    check_rep: bool = True,
    axis_names: Collection[Hashable] = ...,
    executor: str | None = None,
) -> MapDecorator: ...
@hides_unknown
def shard_map(
    f: Callable[..., Any] | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: SpecTree = UNSPECIFIED,
    out_specs: SpecTree = UNSPECIFIED,
    check_vma: bool = True,
    *,
    check_rep: bool = True,
    axis_names: Collection[Hashable] = frozenset(),
    executor: str | None = None,
    **_unknown: Any,
) -> Any:
    """Maps a function over the shards of its arguments: it runs once for each device, with that device's blocks.

    Args:
        f: Takes blocks as read-only ndarrays (views of the shards, no copies) and returns ndarrays or numbers; it may
            call the collectives of `lax`. Without it, shard_map returns a decorator.
        mesh: The mesh. It must not differ from the mesh of an enclosing `set_mesh` or `use_abstract_mesh`. By default,
            the mesh of the enclosing `with mesh:`, `set_mesh` or `use_abstract_mesh` at the time of the call. An
            AbstractMesh has the devices of `set_mesh`, or without it the devices of the arguments.
        in_specs: The sharding of the arguments: a tree of PartitionSpecs that is a prefix of the tuple of arguments.
            With None, bodies receive any object unchanged. With Explicit axes (whose shardings are part of an array's
            type) in_specs may be left out, and must equal the placement of the arguments.
        out_specs: The sharding of the results: a prefix of what f returns. P() states that all devices return the same.
        check_vma: Whether to compare replicated results bit for bit; False takes the first device's.
        check_rep: Older name of check_vma; shard_map compares results if both are True.
        axis_names: Set of axes over which bodies see shards; along other axes blocks are complete. Empty for all.
        executor: "cooperative", "threads" or "auto", by default `config.spmd_executor`.

    Returns:
        A function of Arrays and ndarrays that returns Arrays with sharding NamedSharding(mesh, out_spec).

    Raises:
        TypeError: f, mesh, specs or axis_names are of a wrong type; an argument or a result is not an array; a call
            has keyword arguments.
        ValueError: Specs do not fit the mesh, the arguments or the results; devices return different values of a
            replicated result; arguments over Explicit axes are placed otherwise than in_specs; no mesh is set, or an
            empty one, or mesh differs from it.
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
    if _unknown:
        raise unknown_argument("shard_map", _unknown)
    if out_specs is UNSPECIFIED:
        raise TypeError("shard_map: out_specs is missing; expected a tree of PartitionSpecs; write out_specs=ad.P('x')")
    if f is None:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            check_vma=check_vma,
            check_rep=check_rep,
            axis_names=axis_names,
            executor=executor,
        )
    check_callable("shard_map", "f", f)
    operation = f"shard_map({name_of(f)})"
    mesh, in_specs, out_specs = (from_jax_tree(operation, value) for value in (mesh, in_specs, out_specs))
    if mesh is not None:
        expected = "a Mesh, an AbstractMesh or None"
        check_type(operation, "mesh", mesh, (Mesh, AbstractMesh), expected, "create one by make_mesh")
    check_type(operation, "axis_names", axis_names, (set, frozenset), "a set", "write {'x'}")
    check_choice(operation, "executor", executor, EXECUTORS)
    checks = bool(check_vma and check_rep)
    mapped = _ShardMapped(f, operation, mesh, in_specs, out_specs, checks, frozenset(axis_names), executor)
    mapped.check_specs(None if mesh is None else mapped.manual(mesh))

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise mapped.keyword_error(kwargs)
        return mapped.call(args)

    return call


@dataclass(frozen=True, eq=False)
class _ShardMapped:
    """The state of one mapped function: the arguments of shard_map, and a PreparedCall for each kind of arguments."""

    f: Callable[..., Any]
    operation: str
    mesh: Mesh | AbstractMesh | None
    in_specs: SpecTree
    out_specs: SpecTree
    checks_replicas: bool
    axis_names: frozenset[Hashable]
    executor: str | None
    _prepared: WorldCache[PreparedCall] = field(default_factory=WorldCache)
    _outputs: WorldCache[Outputs] = field(default_factory=WorldCache)  # by ParticipantGrid

    def check_specs(self, manual: tuple[Hashable, ...] | None) -> None:
        """Raises as specs.check_specs; `manual` are the axes that specs may name, or None before a mesh is known."""
        for argument, specs in (("in_specs", self.in_specs), ("out_specs", self.out_specs)):
            if specs is not UNSPECIFIED:
                check_specs(self.operation, argument, specs, manual)

    def manual(self, mesh: Mesh | AbstractMesh) -> tuple[Hashable, ...]:
        """Returns the axes of a mesh over which bodies see shards; raises ValueError for unknown axis_names."""
        unknown = [name for name in self.axis_names if name not in mesh.axis_names]
        if unknown:
            raise failure(
                ValueError,
                self.operation,
                f"axis_names has {', '.join(map(safe_repr, unknown))}",
                expected=f"axes of the mesh, {', '.join(map(repr, mesh.axis_names))}",
                fix="check the spelling",
            )
        return tuple(name for name in mesh.axis_names if not self.axis_names or name in self.axis_names)

    def keyword_error(self, names: Collection[str]) -> TypeError:
        """Returns the error for a call with keyword arguments, to which in_specs do not apply."""
        function = self.operation.removeprefix("shard_map(").removesuffix(")")
        function = function if function.isidentifier() else "f"
        bound = ", ".join(f"{name}={name}" for name in names)
        return failure(
            TypeError,
            self.operation,
            "unexpected keyword arguments",
            expected="positional arguments, to which in_specs apply",
            got=", ".join(names),
            fix=(
                "pass them by position, or bind constants to the function that is mapped: "
                f"functools.partial({function}, {bound})"
            ),
        )

    def call(self, args: tuple[Any, ...]) -> Any:
        """Runs the function on these arguments."""
        leaves, treedef, key = flatten_arguments(args)
        mesh = self._mesh_of(leaves)
        if mesh is not self.mesh:
            key = (mesh, key)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = self._prepare(mesh, args)
            self._prepared.remember(prepared.grid.world, key, prepared)
        return run_prepared(self.operation, self.f, prepared, leaves, treedef, self.executor)

    def _mesh_of(self, leaves: object) -> Mesh:
        """Returns the mesh of a call: mesh=, or the context's mesh; raises an error if the two differ."""
        mesh = self.mesh
        if mesh is not None:
            if mesh.empty:
                raise failure(
                    ValueError,
                    self.operation,
                    "mesh has no axes and no devices",
                    expected="a mesh with an axis or more",
                    got=mesh,
                    fix="create one by make_mesh",
                )
            check_context(self.operation, mesh)
            if isinstance(mesh, Mesh):
                return mesh
        abstract = abstract_mesh_that_is_set() if mesh is None else mesh
        found = context_mesh() if abstract is None else mesh_that_is_set()
        if found is not None and abstract in (None, found.abstract_mesh):
            return found
        if abstract is None:
            raise failure(
                ValueError,
                self.operation,
                "no mesh is set",
                expected="mesh= or a call inside `with mesh:` or set_mesh",
                fix="write `with ad.set_mesh(mesh):` around it",
            )
        return self._mesh_of_arguments(abstract, leaves)

    def _mesh_of_arguments(self, abstract: AbstractMesh, leaves: Any) -> Mesh:
        """Returns the mesh of the arguments that are placed on the devices of an abstract one."""
        meshes: list[Mesh] = []
        for x in leaves:
            mesh_of_x = x.sharding.mesh if isinstance(x, Array) and isinstance(x.sharding, NamedSharding) else None
            if isinstance(mesh_of_x, Mesh) and mesh_of_x.abstract_mesh == abstract and mesh_of_x not in meshes:
                meshes.append(mesh_of_x)
        if len(meshes) == 1:
            return meshes[0]
        if meshes:
            raise failure(
                ValueError,
                self.operation,
                f"mesh is an AbstractMesh, and the arguments are on {len(meshes)} meshes",
                expected="one",
                got=f"devices {' and '.join(str(mesh.device_ids.tolist()) for mesh in meshes)}",
                fix="move the arguments to one mesh by device_put, or give a Mesh",
            )
        raise failure(
            ValueError,
            self.operation,
            "mesh is an AbstractMesh, which has no devices",
            expected="an argument that is placed on such a mesh",
            fix="place one: ad.device_put(x, ad.NamedSharding(mesh, spec)), or give a Mesh",
        )

    def _prepare(self, mesh: Mesh, args: tuple[Any, ...]) -> PreparedCall:
        operation = self.operation
        grid = grid_of(mesh, self.manual(mesh))
        if type(self.mesh) is not Mesh:
            self.check_specs(grid.manual)
        leaves, treedef = tree_util.tree_flatten(args)
        all_paths = paths_of(treedef, [f"args[{i}]" for i in range(len(args))])
        leaf_specs: list[Any] = [UNSPECIFIED] * len(leaves)
        if self.in_specs is not UNSPECIFIED:
            leaf_specs = spread_prefix(operation, "in_specs", self.in_specs, args, "the tuple of arguments")
        sharded = [i for i, spec in enumerate(leaf_specs) if spec is not None]  # bodies get other leaves unchanged
        paths = [all_paths[i] for i in sharded]
        arrays = [leaf_of(operation, leaves[i], path) for i, path in zip(sharded, paths, strict=True)]
        if self.in_specs is UNSPECIFIED:
            specs = infer_specs(operation, grid, arrays, paths)
            check_fit(operation, grid, specs, arrays, paths)
        else:
            specs = [leaf_specs[i] for i in sharded]
            check_fit(operation, grid, specs, arrays, paths)
            check_placed(operation, grid, specs, arrays, paths)
        count = len(grid.positions)
        fetches: list[Blocks] = [lambda x: [x] * count] * len(leaves)
        for i, spec, array, path in zip(sharded, specs, arrays, paths, strict=True):
            fetches[i] = blocks_of(operation, grid, spec, array, path)
        outputs = self._outputs.get(grid)
        if outputs is None:
            outputs = Outputs(operation, grid, self.out_specs, checks_replicas=self.checks_replicas)
            self._outputs.remember(grid.world, grid, outputs)
        return PreparedCall(grid, fetches, outputs, all_paths)


@overload
def smap(
    f: Callable[..., _Result],
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: SpecTree = ...,
    out_specs: SpecTree = ...,
    check_rep: bool = True,
    *,
    in_axes: int | Tree = ...,
    out_axes: int | Tree = ...,
    axis_name: Hashable = ...,
    **options: object,
) -> MappedFunction[_Result]: ...
@overload
def smap(
    f: None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: SpecTree = ...,
    out_specs: SpecTree = ...,
    check_rep: bool = True,
    *,
    in_axes: int | Tree = ...,
    out_axes: int | Tree = ...,
    axis_name: Hashable = ...,
    **options: object,
) -> MapDecorator: ...
def smap(
    f: Callable[..., Any] | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: SpecTree = UNSPECIFIED,
    out_specs: SpecTree = UNSPECIFIED,
    check_rep: bool = True,
    *,
    in_axes: int | Tree = UNSPECIFIED,
    out_axes: int | Tree = UNSPECIFIED,
    axis_name: Hashable = UNSPECIFIED,
    **options: Any,
) -> Any:
    """Maps a function over the shards along one axis of the mesh.

    Without axis_name it is another name of shard_map, with its parameters.

    Args:
        f: As in shard_map. Without it a decorator is returned.
        mesh: As in shard_map.
        in_specs: As in shard_map; not together with axis_name.
        out_specs: As in shard_map; not together with axis_name.
        check_rep: As in shard_map.
        in_axes: Dimension of each argument that is sharded over the axis: an int, None (replicated), or a tuple with a
            tree of ints and None for each argument. It may be left out where the axis is Explicit.
        out_axes: Dimension along which the results are put together; an int, None (equal on all devices) or a tree of
            ints and None that is a prefix of the result of f.
        axis_name: Name of the axis; along the other axes of the mesh the body sees complete blocks.
        **options: check_vma, axis_names and executor, as in shard_map.

    Returns:
        As shard_map.

    Raises:
        TypeError: axis_name is a list or tuple; in_axes or out_axes are not ints; specs came with axis_name, or axes
            without it.
        ValueError: An axis is negative; and as shard_map.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8), ad.set_mesh(ad.Mesh(np.array(ad.devices()), ("x",))):
        ...     total = ad.smap(lambda b: ad.lax.psum(b.sum(), "x"), in_axes=0, out_axes=None, axis_name="x")
        ...     int(total(np.arange(16)))
        120
    """
    if axis_name is UNSPECIFIED:
        if in_axes is not UNSPECIFIED or out_axes is not UNSPECIFIED:
            raise failure(
                TypeError,
                "smap",
                "in_axes and out_axes came without axis_name",
                expected="the name of the axis",
                fix="write axis_name='x'",
            )
        return shard_map(f, mesh, in_specs, out_specs, check_rep=check_rep, **options)
    if in_specs is not UNSPECIFIED or out_specs is not UNSPECIFIED:
        raise TypeError("smap: in_specs and out_specs came with axis_name; expected in_axes and out_axes; use these")
    if out_axes is UNSPECIFIED:
        raise TypeError("smap: out_axes is missing; expected an int, None, or a tree of them; write out_axes=0")
    if isinstance(axis_name, (list, tuple)):
        fix = "call smap once for each axis, or use shard_map"
        raise wrong_type("smap", "axis_name", axis_name, "the name of one axis", fix)
    if in_axes is not UNSPECIFIED and in_axes is not None:
        expected = "an int, None or a tuple with one entry for each argument"
        check_type("smap", "in_axes", in_axes, (int, tuple), expected, "write in_axes=(0, None)")
    specs = in_axes if in_axes is UNSPECIFIED else _specs_of_axes("in_axes", in_axes, axis_name)
    outputs = _specs_of_axes("out_axes", out_axes, axis_name)
    return shard_map(f, mesh, specs, outputs, check_rep=check_rep, axis_names={axis_name}, **options)


def _specs_of_axes(argument: str, axes: object, name: Hashable) -> Any:
    """Converts a tree of dimensions that are sharded over one axis, or None, to a tree of PartitionSpecs."""

    def spec(axis: Any) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        check_type("smap", f"an entry of {argument}", axis, int, "an int or None", "write the number of the dimension")
        if axis < 0:
            raise wrong_value(
                "smap", f"an entry of {argument}", axis, "0 or more", "count the dimensions from the first"
            )
        return PartitionSpec(*(None,) * axis, name)

    return tree_util.tree_map(spec, axes, is_leaf=lambda node: node is None)
