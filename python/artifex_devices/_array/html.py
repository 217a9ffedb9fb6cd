# SPDX-License-Identifier: Apache-2.0
"""HTML of Arrays, shards, meshes, shardings and clusters. Imported when the first one is shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artifex_devices._array.describe import facts_of, mesh_text_of, sharding_facts, title_of
from artifex_devices._base.html import around_value, facts, folded, page
from artifex_devices._base.text import bytes_text
from artifex_devices._core import AbstractMesh, Array, Cluster, Mesh, NamedSharding, Shard, Sharding
from artifex_devices.render import mesh_svg, placed_mesh_svg, sharding_svg

_CELLS = 256  # largest number of cells of a mesh that are drawn
_NAME_END = 16  # column of Cluster.describe() where the texts begin
_SIDE = 32


def array_html(array: Array) -> str:
    """Returns value, facts and picture of an Array; only the facts of a deleted one."""
    title, rows = title_of(array), facts(facts_of(array))
    if array.is_deleted():
        return page(title, rows)
    if not array.shape:  # its value says all
        return page(title, *around_value(repr(array), rows))
    picture = sharding_svg(array.sharding, array.shape)._repr_html_()
    return page(title, *around_value(repr(array), rows, picture))


def shard_html(shard: Shard) -> str:
    """Returns value and facts of a shard."""
    index = ", ".join(_slice_text(part) for part in shard.index)
    rows = [("device", str(shard.device)), ("index", f"[{index}]"), ("replica", str(shard.replica_id))]
    data = shard.data
    if data is None:
        return page("Shard of another process", facts(rows))
    title = f"Shard {data.dtype.name}{data.shape}, {bytes_text(data.nbytes)}"
    return page(title, *around_value(repr(data), facts(rows)))


def mesh_html(mesh: Mesh) -> str:
    """Returns facts and picture of a mesh."""
    kinds = ", ".join(kind.name for kind in mesh.axis_types)
    rows = facts([("axes", mesh_text_of(mesh)), ("axis types", kinds or "none"), ("devices", str(mesh.size))])
    try:
        placed = placed_mesh_svg(mesh)._repr_html_()
    except ValueError:  # the devices do not belong to a cluster
        return page("Mesh", rows, _mesh_picture(mesh))
    return page("Mesh", rows, placed, folded("device ids", _mesh_picture(mesh)))


def struct_html(shape: tuple[int, ...], dtype: np.dtype[Any], sharding: Sharding | None) -> str:
    """Returns facts of a ShapeDtypeStruct, with the picture of its sharding if it has devices."""
    title = f"{dtype.name}{shape}, {bytes_text(math.prod(shape) * dtype.itemsize)}"
    if sharding is None:
        return page(title, facts([("sharding", "none")]))
    rows = sharding_facts(sharding)
    try:
        shard = sharding.shard_shape(shape)
    except ValueError as error:
        return page(title, facts([*rows, ("does not fit", str(error))]))
    rows.append(("per device", f"{shard}, {bytes_text(math.prod(shard) * dtype.itemsize)}"))
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    is_abstract = isinstance(mesh, AbstractMesh)
    return page(title, facts(rows), "" if is_abstract else sharding_svg(sharding, shape)._repr_html_())


def sharding_html(sharding: Sharding) -> str:
    """Returns facts of a sharding, with the picture of its mesh."""
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    picture = _mesh_picture(mesh) if isinstance(mesh, Mesh) else ""  # an AbstractMesh has no devices to show
    return page(type(sharding).__name__, facts(sharding_facts(sharding)), picture)


def cluster_html(cluster: Cluster) -> str:
    """Formats the lines of `Cluster.describe()`, names and texts."""
    _, *lines = cluster.describe().splitlines()
    rows = [(line[:_NAME_END].strip(), line[_NAME_END:]) for line in lines]
    return page(f"Cluster {cluster.name}", facts(rows))


def _slice_text(part: slice) -> str:
    start, stop = ("" if bound is None else bound for bound in (part.start, part.stop))
    return f"{start}:{stop}"


def _mesh_picture(mesh: Mesh) -> str:
    # Letters in a picture that is much wider than a page would be too small to read.
    cells = _CELLS
    if len(mesh.axis_sizes) > 1:
        rows = max(mesh.axis_sizes[0], 1)
        cells = min(cells, _SIDE * rows, _SIDE * max(mesh.size // rows, 1))
    return mesh_svg(mesh, max_cells=cells)._repr_html_()
