# SPDX-License-Identifier: Apache-2.0
"""The placement of the arguments and results of a jitted function, and the devices of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices import tree_util
from artifex_devices._array_ops.core.operand_sharding import ids_text
from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import (
    AbstractMesh,
    Array,
    AxisType,
    Device,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    internal,
)
from artifex_devices._placement.jax_values import from_jax_tree
from artifex_devices._placement.mesh_context import mesh_of_spec, mesh_that_is_set
from artifex_devices._runtime.scopes import transfer_guard_host_to_device
from artifex_devices._spmd.arguments import check_alive, is_free_for, leaf_of, paths_of
from artifex_devices._spmd.specs import spread_prefix


class JitShardings:
    """The shardings of one jitted function, and the devices of its calls."""

    def __init__(self, operation: str, in_shardings: object, out_shardings: object, device: Device | None) -> None:
        """The shardings are prefixes of the arguments that are not static and of the results, or UNSPECIFIED.

        `device` is the device of all arguments and results, or None. TypeError where a leaf is not a sharding.
        """
        self.operation = operation
        in_shardings, out_shardings = (from_jax_tree(operation, tree) for tree in (in_shardings, out_shardings))
        self.device = None if device is None else SingleDeviceSharding(device)
        # As in JAX, a list of one value for each argument stands for a tuple.
        self.in_shardings = in_shardings = tuple(in_shardings) if type(in_shardings) is list else in_shardings
        self.out_shardings = out_shardings
        self._check_shardings("in_shardings", in_shardings)
        self._of_results = self._check_shardings("out_shardings", out_shardings)
        self.is_plain = device is None and in_shardings is UNSPECIFIED and out_shardings is UNSPECIFIED

    def _check_shardings(self, argument: str, shardings: object) -> list[Any]:
        leaves = tree_util.tree_leaves_with_path(shardings, is_sharding)
        for path, leaf in leaves:
            if not is_sharding(leaf):
                axis = leaf.axis_names[0] if isinstance(leaf, Mesh) else "x"
                is_device = isinstance(leaf, Device)
                fix = "ad.SingleDeviceSharding(device)" if is_device else f"ad.NamedSharding(mesh, ad.P({axis!r}))"
                raise failure(
                    TypeError,
                    self.operation,
                    f"{argument}{tree_util.keystr(path)} is of type {type(leaf).__name__}",
                    expected="a Sharding, a PartitionSpec or None",
                    got=safe_repr(leaf),
                    fix=f"write {fix}",
                )
        return [leaf for _, leaf in leaves]

    def place_arguments(self, dynamic: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], Sharding | None]:
        """Places the arguments; returns them and a sharding on the devices of the call, or None for the default device.

        `dynamic` and `named` are the positional and keyword arguments that are not static. TypeError for leaves that
        are not arrays; ValueError where devices differ or a sharding does not fit; RuntimeError for deleted Arrays and
        transfers that a guard refuses.
        """
        leaves, treedef = tree_util.tree_flatten([*dynamic, *named.values()])
        paths = paths_of(treedef, [*(f"args[{i}]" for i in range(len(dynamic))), *named])
        wanted = self._in_shardings(dynamic, len(leaves))
        arrays = [leaf_of(self.operation, leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
        for array, path in zip(arrays, paths, strict=True):
            check_alive(self.operation, array, path)
        home = self._home(arrays, wanted, paths)
        placed = [
            self._argument(leaf, array, sharding, home, path)
            for leaf, array, sharding, path in zip(leaves, arrays, wanted, paths, strict=True)
        ]
        return tree_util.tree_unflatten(treedef, placed), home

    def place_results(self, result: object, home: Sharding | None) -> Any:
        """Places the results as Arrays by out_shardings or on the devices of the call.

        ValueError for an Array that the function has committed to other devices; else raises as place_arguments.
        """
        leaves, treedef = tree_util.tree_flatten(result)
        wanted: list[Any] = [None] * len(leaves)
        if self.out_shardings is not UNSPECIFIED:
            what = "what the function returns"
            wanted = spread_prefix(self.operation, "out_shardings", self.out_shardings, result, what, is_sharding)
        paths = [f"output{tree_util.keystr(path)}" for path in treedef.paths()]
        arrays = [leaf_of(self.operation, leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
        if home is None:  # as in JAX, one result that the function has placed decides for all results
            home = next((x.sharding for x in arrays if isinstance(x, Array) and x.committed), None)
        self._check_devices(arrays, paths, home)
        placed = []
        for leaf, x, sharding, path in zip(leaves, arrays, wanted, paths, strict=True):
            target = self._resolved("out_shardings", sharding)
            if target is None and home is not None and not is_placed_on(x, home):
                target = _replicated_on(home, x.ndim)
            if target is None and isinstance(x, Array):
                placed.append(x)
            elif isinstance(leaf, (Array, np.ndarray)):
                placed.append(self._put(x, target, path))
            else:  # a number is a constant of the program, which no guard refuses
                with transfer_guard_host_to_device("allow"):
                    placed.append(self._put(x, target, path))
        return tree_util.tree_unflatten(treedef, placed)

    def _check_devices(self, arrays: Sequence[Any], paths: Sequence[str], home: Sharding | None) -> None:
        """Raises ValueError where the function has placed a result on other devices than the call's."""
        for x, path in zip(arrays, paths, strict=True):
            if isinstance(x, Array) and x.committed and home is not None and not same_devices(x.sharding, home):
                raise failure(
                    ValueError,
                    self.operation,
                    f"the function placed {path} on other devices than the call's",
                    expected="the same devices in the same order",
                    got=f"{ids_text(x.sharding)} in a call on {ids_text(home)}",
                    fix="move it after the call: device_put(result, sharding)",
                )

    def _in_shardings(self, dynamic: tuple[Any, ...], count: int) -> list[Sharding | None]:
        """Returns the sharding of each leaf, None where its placement does not change."""
        if self.in_shardings is UNSPECIFIED:
            return [self.device] * count
        what = "the tuple of arguments"
        prefix = spread_prefix(self.operation, "in_shardings", self.in_shardings, dynamic, what, is_sharding)
        return [self._resolved("in_shardings", sharding) for sharding in prefix]

    def _resolved(self, argument: str, sharding: Any) -> Sharding | None:
        if sharding is None or sharding is UNSPECIFIED:
            return None
        if isinstance(sharding, PartitionSpec):
            return NamedSharding(mesh_of_spec(f"{self.operation}: {argument}", sharding, entered=True), sharding)
        placed: Sharding = sharding
        return placed

    def _home(self, arrays: Sequence[Any], wanted: Sequence[Sharding | None], paths: Sequence[str]) -> Sharding | None:
        """Returns the devices of committed arguments, shardings and set_mesh's mesh; ValueError where they differ."""
        mesh = mesh_that_is_set()
        if self.device is not None:
            if mesh is not None:
                raise failure(
                    ValueError,
                    self.operation,
                    "device or backend was passed under set_mesh, whose mesh places the call",
                    expected="one of the two",
                    got=mesh,
                    fix="drop device and backend",
                )
            return self.device
        requests: list[tuple[Sharding | None, str]] = []
        if mesh is not None:
            requests.append((NamedSharding(mesh, PartitionSpec()), "the mesh of set_mesh"))
        for array, sharding, path in zip(arrays, wanted, paths, strict=True):
            held = array.sharding if isinstance(array, Array) and array.committed else None
            requests.append((held, path) if sharding is None else (sharding, f"in_shardings of {path}"))
        requests += [(self._resolved("out_shardings", leaf), "out_shardings") for leaf in self._of_results]
        home, home_name = None, ""
        for sharding, name in requests:
            if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
                continue  # it has no devices
            if home is None:
                home, home_name = sharding, name
            elif sharding is not None and not same_devices(home, sharding):
                raise failure(
                    ValueError,
                    self.operation,
                    f"{home_name} and {name} are on different devices",
                    expected="the same devices in the same order",
                    got=f"{ids_text(home)} and {ids_text(sharding)}",
                    fix="move an argument by device_put(x, sharding)",
                )
        return home

    def _argument(self, leaf: object, array: Any, sharding: Sharding | None, home: Sharding | None, path: str) -> Any:
        if sharding is None:
            if not isinstance(array, Array):
                target = "the default device" if home is None else _replicated_on(home, array.ndim)
                kind = (array.shape, array.dtype)
                internal.check_transfer("host_to_device", False, *kind, "host", target, self.operation)
            return leaf
        # An Array that is committed to another sharding is refused; the devices may differ, as in JAX.
        if sharding is not self.device and not is_free_for(array, sharding):
            raise failure(
                ValueError,
                self.operation,
                f"{path} is committed to another sharding than in_shardings has",
                expected=safe_repr(sharding),
                got=f"{array.sharding!r}",
                fix=f"move it first: ad.device_put({path}, sharding)",
            )
        return self._put(array, sharding, path)

    def _put(self, x: object, target: Sharding | None, path: str) -> Any:
        """Places x by an implicit transfer."""
        return internal.put_leaves([x], target, False, None, lambda _: f"{path} of {self.operation}", explicit=False)[0]


def is_sharding(node: object) -> bool:
    """Returns whether a node of in_shardings or out_shardings is a leaf."""
    return node is None or node is UNSPECIFIED or isinstance(node, (Sharding, PartitionSpec))


def same_devices(a: Sharding, b: Sharding) -> bool:
    """Returns whether two shardings are on the same devices in the same order, in any kind of memory."""
    return a is b or a._same_devices(b) or a._device_assignment == b._device_assignment


def is_placed_on(x: object, home: Sharding) -> bool:
    """Returns whether x is an Array that is committed to the devices of `home`."""
    return isinstance(x, Array) and x.committed and same_devices(x.sharding, home)


def _replicated_on(home: Sharding, ndim: int) -> Sharding:
    """Returns the sharding that replicates an array of this rank on the devices of `home`."""
    if not isinstance(home, NamedSharding):
        return SingleDeviceSharding(home._device_assignment[0])
    # As in JAX, a spec on Explicit axes has an entry for each dimension.
    entries = (None,) * ndim if AxisType.Explicit in home.mesh.axis_types else ()
    return NamedSharding(home.mesh, PartitionSpec(*entries))
