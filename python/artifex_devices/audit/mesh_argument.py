# SPDX-License-Identifier: Apache-2.0
"""Meshes as arguments: names and sizes of axes of our meshes, of JAX's, or in a dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from artifex_devices._base.checks import check_int, check_str, failure, wrong_type

_FIX = 'write mesh={"data": 4, "model": 2}'
_MOST_LEAVES = 1 << 16
_MOST_DEVICES = 1 << 20


def mesh_sizes(operation: str, mesh: object) -> tuple[tuple[str, int], ...]:
    """Returns names and sizes of the axes in order; () for None.

    Raises:
        TypeError: It is not a mesh.
        ValueError: It has no axes, a size is not positive, or it has more than 2^20 devices.

    Example:
        >>> mesh_sizes("f", {"data": 4, "model": 2})
        (('data', 4), ('model', 2))
    """
    if mesh is None:
        return ()
    shape = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(shape, Mapping) or isinstance(mesh, type):
        raise wrong_type(operation, "mesh", mesh, "a Mesh, or a dict of names and sizes", _FIX)
    names = tuple(shape) if isinstance(mesh, Mapping) else tuple(getattr(mesh, "axis_names", shape))
    axes = []
    count = 1
    for name in names:
        check_str(operation, "the name of a mesh axis", name, _FIX)
        size = check_int(
            operation, f"the size of mesh axis {name!r}", shape[name], _FIX, minimum=1, maximum=_MOST_DEVICES
        )
        axes.append((name, size))
        count *= size
    if not axes or count > _MOST_DEVICES:
        problem = f"mesh has {len(axes)} axes and {count} devices"
        raise failure(
            ValueError, operation, problem, expected=f"an axis or more, and {_MOST_DEVICES} devices or less", fix=_FIX
        )
    return tuple(axes)


def mesh_of_object(x: object) -> tuple[tuple[str, int], ...]:
    """Returns the mesh of the first sharding that a compiled function of JAX has; () if it has none."""
    try:
        shardings = getattr(x, "input_shardings", None)
    except Exception:  # of a library; the mesh is optional
        return ()
    for leaf in _leaves(shardings):
        mesh = getattr(leaf, "mesh", None)
        if isinstance(getattr(mesh, "shape", None), Mapping) and getattr(mesh, "axis_names", None):
            return mesh_sizes("audit.program", mesh)
    return ()


def _leaves(tree: object) -> Iterator[object]:
    stack = [tree]
    for _ in range(_MOST_LEAVES):
        if not stack:
            return
        node = stack.pop()
        if isinstance(node, Mapping):
            stack.extend(node.values())
        elif isinstance(node, (tuple, list)):
            stack.extend(reversed(node))
        else:
            yield node
