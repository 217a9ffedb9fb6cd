# SPDX-License-Identifier: Apache-2.0
"""smap: shard_map along one axis of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, overload

from artifex_devices import tree_util
from artifex_devices._base.checks import check_type, wrong_type, wrong_value
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import AbstractMesh, Mesh, PartitionSpec
from artifex_devices._spmd.mapped_function import MapDecorator, MappedFunction
from artifex_devices._spmd.shard_map import shard_map
from artifex_devices._spmd.specs import Infer

_Result = TypeVar("_Result")


@overload
def smap(
    f: Callable[..., _Result],
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any = ...,
    check_rep: bool = True,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_name: Hashable = ...,
    **options: Any,
) -> MappedFunction[_Result]: ...
@overload
def smap(
    f: None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = ...,
    out_specs: Any = ...,
    check_rep: bool = True,
    *,
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_name: Hashable = ...,
    **options: Any,
) -> MapDecorator: ...
def smap(
    f: Callable[..., Any] | None = None,
    mesh: Mesh | AbstractMesh | None = None,
    in_specs: Any = Infer,
    out_specs: Any = UNSPECIFIED,
    check_rep: bool = True,
    *,
    in_axes: Any = Infer,
    out_axes: Any = UNSPECIFIED,
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
            tree of these for each argument. It may be left out where the axis is Explicit.
        out_axes: Dimension along which the results are put together; an int, None (equal on all devices) or a tree of
            these that is a prefix of what f returns.
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
        if in_axes is not Infer or out_axes is not UNSPECIFIED:
            raise TypeError(
                "smap: in_axes and out_axes came without axis_name; expected the name of the axis; write axis_name='x'"
            )
        return shard_map(f, mesh, in_specs, out_specs, check_rep=check_rep, **options)
    if in_specs is not Infer or out_specs is not UNSPECIFIED:
        raise TypeError("smap: in_specs and out_specs came with axis_name; expected in_axes and out_axes; write those")
    if out_axes is UNSPECIFIED:
        raise TypeError("smap: out_axes is missing; expected an int, None or a tree of these; write out_axes=0")
    if isinstance(axis_name, (list, tuple)):
        fix = "call smap once for each axis, or use shard_map"
        raise wrong_type("smap", "axis_name", axis_name, "the name of one axis", fix)
    if in_axes is not Infer and in_axes is not None:
        expected = "an int, None or a tuple with one entry for each argument"
        check_type("smap", "in_axes", in_axes, (int, tuple), expected, "write in_axes=(0, None)")
    specs = in_axes if in_axes is Infer else _specs_of_axes("in_axes", in_axes, axis_name)
    outputs = _specs_of_axes("out_axes", out_axes, axis_name)
    return shard_map(f, mesh, specs, outputs, check_rep=check_rep, axis_names={axis_name}, **options)


def _specs_of_axes(argument: str, axes: Any, name: Hashable) -> Any:
    """A tree of PartitionSpecs from a tree of dimensions that are sharded over one axis, or None."""

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
