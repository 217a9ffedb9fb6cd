# SPDX-License-Identifier: Apache-2.0
"""The mesh of bare PartitionSpecs: set_mesh, use_abstract_mesh and their getters.

It is stored in a context variable: a new thread starts without one, as in JAX.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from artifex_devices._base.checks import check_type, failure
from artifex_devices._base.public_path import public
from artifex_devices._core import AbstractMesh, Mesh, NamedSharding, PartitionSpec
from artifex_devices._core.internal import entered_meshes
from artifex_devices._placement.jax_values import from_jax


class _Scope(NamedTuple):
    mesh: Mesh | None
    abstract: AbstractMesh | None


_NONE = _Scope(None, None)
_scope: ContextVar[_Scope] = ContextVar("artifex_devices_mesh", default=_NONE)


@public("artifex_devices")
class set_mesh:  # noqa: N801 - used like a function
    """Sets the mesh of this thread's context, for a `with` block or permanently.

    With it, a bare PartitionSpec stands for a NamedSharding in every argument that is a sharding.

    Args:
        mesh: A Mesh, or None to unset it.

    Raises:
        ValueError: `mesh` is not a Mesh.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8), ad.set_mesh(ad.make_mesh((8,), ("data",))):
        ...     ad.device_put(np.ones((16, 4)), ad.P("data")).sharding.shard_shape((16, 4))
        (2, 4)
    """

    def __init__(self, mesh: Mesh | None) -> None:
        """Sets the mesh; the end of the `with` block restores the mesh from before this call."""
        kinds = (Mesh, type(None))
        mesh = from_jax("set_mesh", mesh)
        check_type(
            "set_mesh",
            "mesh",
            mesh,
            kinds,
            "a Mesh or None",
            "write ad.set_mesh(ad.make_mesh((8,), ('x',)))",
            ValueError,
        )
        self._before = _scope.get()
        _scope.set(_NONE if mesh is None or mesh.empty else _Scope(mesh, mesh.abstract_mesh))

    def __enter__(self) -> None:
        """Does nothing: the mesh is set already."""

    def __exit__(self, *_: object) -> None:
        _scope.set(self._before)


@public("artifex_devices.sharding")
class use_abstract_mesh:  # noqa: N801 - used like a function
    """Sets the result of `get_abstract_mesh` for a `with` block; it does not place data, unlike `set_mesh`.

    Args:
        mesh: An AbstractMesh.

    Raises:
        ValueError: `mesh` is not an AbstractMesh.

    Example:
        >>> from artifex_devices.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
        >>> with use_abstract_mesh(AbstractMesh((2, 4), ("x", "y"))):
        ...     get_abstract_mesh().size
        8
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        fix = "take mesh.abstract_mesh of a Mesh"
        check_type("use_abstract_mesh", "mesh", mesh, AbstractMesh, "an AbstractMesh", fix, ValueError)
        self._mesh = mesh
        self._before: list[_Scope] = []

    def __enter__(self) -> None:
        self._before.append(_scope.get())
        _scope.set(_Scope(_scope.get().mesh, self._mesh))

    def __exit__(self, *_: object) -> None:
        _scope.set(self._before.pop())


def get_mesh() -> Mesh:
    """Returns the mesh of `set_mesh`; an empty one without it.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.get_mesh().empty
        True
    """
    mesh = _scope.get().mesh
    return Mesh(np.empty((), object), ()) if mesh is None else mesh


def get_abstract_mesh() -> AbstractMesh:
    """Returns the mesh of `use_abstract_mesh`, else the abstract mesh of `set_mesh`, else one without axes.

    Example:
        >>> import artifex_devices as ad
        >>> ad.sharding.get_abstract_mesh().empty
        True
    """
    mesh = _scope.get().abstract
    return AbstractMesh((), ()) if mesh is None else mesh


def mesh_that_is_set() -> Mesh | None:
    """Returns the mesh of set_mesh, or None."""
    return _scope.get().mesh


def context_mesh() -> Mesh | None:
    """Returns the mesh of set_mesh, else that of the innermost `with mesh:`, else None."""
    mesh = _scope.get().mesh
    if mesh is not None:
        return mesh
    entered = entered_meshes()
    return entered[-1] if entered else None


def abstract_mesh_that_is_set() -> AbstractMesh | None:
    """Returns the mesh of use_abstract_mesh, else the abstract mesh of set_mesh, or None."""
    return _scope.get().abstract


def check_context(operation: str, mesh: Mesh | AbstractMesh) -> None:
    """Raises ValueError where a mesh differs from the mesh of set_mesh or use_abstract_mesh, as in JAX."""
    scope = _scope.get()
    if scope is _NONE or scope.mesh is mesh:
        return
    found, given = "", str(mesh)
    if scope.abstract is not None and scope.abstract != (mesh.abstract_mesh if isinstance(mesh, Mesh) else mesh):
        found = str(scope.abstract)
    elif scope.mesh is not None and isinstance(mesh, Mesh) and scope.mesh != mesh:
        found = f"{scope.mesh} on devices {scope.mesh.device_ids.tolist()}"
        given += f" on devices {mesh.device_ids.tolist()}"
    if found:
        raise failure(
            ValueError,
            operation,
            "mesh differs from the mesh of the context",
            expected=found,
            got=given,
            fix="leave mesh out, or call it outside of the block of set_mesh or use_abstract_mesh",
        )


def mesh_of_spec(operation: str, spec: PartitionSpec, *, entered: bool = False) -> Mesh:
    """Returns the mesh of a bare PartitionSpec, with `entered` also that of a `with mesh:` block.

    Without one it raises ValueError, or with `entered` RuntimeError, as in JAX.
    """
    mesh = context_mesh() if entered else _scope.get().mesh
    if mesh is not None:
        return mesh
    kind: type[Exception] = RuntimeError if entered else ValueError
    raise kind(
        f"{operation}: {spec!r} needs a mesh and none is set; expected a mesh set by set_mesh; "
        f"write `with ad.set_mesh(mesh):` around it, or ad.NamedSharding(mesh, ad.{spec!r})"
    )


def names_of_entry(entry: object) -> tuple[Any, ...]:
    """Returns the axes over which a spec's entry shards its dimension, major to minor."""
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def sharding_of_spec(operation: str, spec: object, *, entered: bool = False) -> Any:
    """Binds a PartitionSpec to the mesh that is set; converts JAX's values, and returns other values unchanged."""
    spec = spec if isinstance(spec, (PartitionSpec, NamedSharding)) else from_jax(operation, spec)
    if isinstance(spec, PartitionSpec):
        return NamedSharding(mesh_of_spec(operation, spec, entered=entered), spec)
    return spec
