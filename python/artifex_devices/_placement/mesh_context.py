# SPDX-License-Identifier: Apache-2.0
"""The mesh that bare PartitionSpecs refer to: set_mesh, get_mesh and their abstract kin.

It is a context variable: a new thread starts without one, as in JAX.
"""

from __future__ import annotations

from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import AbstractMesh, Mesh, NamedSharding, PartitionSpec, _entered_meshes

__all__ = ["get_abstract_mesh", "get_mesh", "mesh_of_spec", "set_mesh", "use_abstract_mesh"]


class _Scope(NamedTuple):
    mesh: Mesh | None
    abstract: AbstractMesh | None


_NONE = _Scope(None, None)
_scope: ContextVar[_Scope] = ContextVar("artifex_devices_mesh", default=_NONE)


@public("artifex_devices")
class set_mesh:  # noqa: N801 - used like a function
    """Sets the mesh of this thread's context, for a `with` block or for good.

    Under it a bare PartitionSpec stands for a NamedSharding wherever a sharding is taken.

    Args:
        mesh: A Mesh; None for none.

    Raises:
        ValueError: `mesh` is no Mesh.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8), ad.set_mesh(ad.make_mesh((8,), ("data",))):
        ...     ad.device_put(np.ones((16, 4)), ad.P("data")).sharding.shard_shape((16, 4))
        (2, 4)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        """Sets it; leaving the `with` block brings back what was set before this call."""
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(
                f"set_mesh: mesh is of type {type(mesh).__name__}; expected a Mesh or None, got {shown(mesh)}; "
                "make one with make_mesh"
            )
        empty = mesh is None or mesh.empty
        self._before = _scope.get()
        _scope.set(_NONE if mesh is None or empty else _Scope(mesh, mesh.abstract_mesh))

    def __enter__(self) -> None:
        """The mesh is set already."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Brings the mesh from before back."""
        _scope.set(self._before)


@public("artifex_devices.sharding")
class use_abstract_mesh:  # noqa: N801 - used like a function
    """Sets what `get_abstract_mesh` says for a `with` block; data goes by `set_mesh` alone.

    Args:
        mesh: An AbstractMesh.

    Raises:
        ValueError: `mesh` is no AbstractMesh.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
        >>> with use_abstract_mesh(AbstractMesh((2, 4), ("x", "y"))):
        ...     get_abstract_mesh().size
        8
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        """Checks the mesh; `with` sets it."""
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(
                f"use_abstract_mesh: mesh is of type {type(mesh).__name__}; expected an AbstractMesh, got "
                f"{shown(mesh)}; take mesh.abstract_mesh of a Mesh"
            )
        self._mesh = mesh
        self._before: list[_Scope] = []

    def __enter__(self) -> None:
        """Sets it."""
        self._before.append(_scope.get())
        _scope.set(_Scope(_scope.get().mesh, self._mesh))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Brings back what was there before."""
        _scope.set(self._before.pop())


def get_mesh() -> Mesh:
    """The mesh of `set_mesh`; an empty one without it.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.get_mesh().empty
        True
    """
    mesh = _scope.get().mesh
    return Mesh(np.empty((), object), ()) if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """The mesh of `use_abstract_mesh`, else the axes of that of `set_mesh`; one without axes if there is neither.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.get_abstract_mesh().empty
        True
    """
    mesh = _scope.get().abstract
    return AbstractMesh((), ()) if mesh is None else mesh


def mesh_that_is_set() -> Mesh | None:
    """The mesh of set_mesh, or None."""
    return _scope.get().mesh


def context_mesh() -> Mesh | None:
    """The mesh that set_mesh set, else that of the innermost `with mesh:`, else None."""
    mesh = _scope.get().mesh
    if mesh is not None:
        return mesh
    entered = _entered_meshes()
    return entered[-1] if entered else None


def mesh_of_spec(operation: str, spec: PartitionSpec, *, entered: bool = False) -> Mesh:
    """The mesh that a bare PartitionSpec refers to.

    Args:
        operation: Begins the message.
        spec: For the message.
        entered: Whether the mesh of a `with mesh:` block counts, where there is no other.

    Raises:
        ValueError: No mesh is set. RuntimeError, as in JAX, where those of `with mesh:` count too.
    """
    mesh = _scope.get().mesh
    if mesh is not None:
        return mesh
    if entered and _entered_meshes():
        innermost: Mesh = _entered_meshes()[-1]
        return innermost
    kind: type[Exception] = RuntimeError if entered else ValueError
    raise kind(
        f"{operation}: {spec!r} names mesh axes but no mesh is set; expected a mesh set by set_mesh; "
        f"write `with set_mesh(mesh):` around it, or NamedSharding(mesh, {spec!r})"
    )


def sharding_of_spec(operation: str, spec: Any, *, entered: bool = False) -> Any:
    """A PartitionSpec bound to the mesh that is set; anything else as it is."""
    if isinstance(spec, PartitionSpec):
        return NamedSharding(mesh_of_spec(operation, spec, entered=entered), spec)
    return spec
