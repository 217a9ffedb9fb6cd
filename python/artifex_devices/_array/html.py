# SPDX-License-Identifier: Apache-2.0
"""HTML of Arrays, meshes and shardings for notebooks. Imported when the first one is shown.

Stand-alone HTML with an SVG picture: no script, no class, no external reference. Letters and lines have the colour of
the surrounding page, so that dark pages stay dark. All text is escaped.
"""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from artifex_devices._array.describe import facts_of, mesh_text_of, sharding_facts, title_of
from artifex_devices._base.text import bytes_text
from artifex_devices._core import (
    AbstractMesh,
    Array,
    Mesh,
    NamedSharding,
    Sharding,
    mesh_svg,
    placed_mesh_svg,
    sharding_svg,
)

if TYPE_CHECKING:
    from artifex_devices._array.shape_dtype import ShapeDtypeStruct

_CELLS = 256  # largest number of cells of a mesh that are drawn
_SIDE = 32


def array_html(array: Array) -> str:
    """Facts, picture and value of an Array; only the facts of a deleted one."""
    title, facts = title_of(array), facts_of(array)
    if array.is_deleted():
        return page(title, facts)
    return page(title, facts, picture=sharding_svg(array.sharding, array.shape), value=repr(array))


def mesh_html(mesh: Mesh) -> str:
    """Facts and picture of a mesh."""
    kinds = ", ".join(kind.name for kind in mesh.axis_types)
    facts = [("axes", mesh_text_of(mesh)), ("axis types", kinds or "none"), ("devices", str(mesh.size))]
    try:
        placed = placed_mesh_svg(mesh)
    except ValueError:  # of devices that are no cluster's
        return page("Mesh", facts, picture=_mesh_picture(mesh))
    table = f"<details><summary>device ids</summary>{_mesh_picture(mesh)}</details>"
    return page("Mesh", facts, picture=placed + table)


def struct_html(struct: ShapeDtypeStruct) -> str:
    """Facts of a ShapeDtypeStruct, with the picture of its sharding if that has devices."""
    title = f"{struct.dtype.name}{struct.shape}, {bytes_text(struct.size * struct.dtype.itemsize)}"
    sharding = struct.sharding
    if sharding is None:
        return page(title, [("sharding", "none")])
    facts = sharding_facts(sharding)
    try:
        shard = sharding.shard_shape(struct.shape)
    except ValueError as error:
        return page(title, [*facts, ("does not fit", str(error))])
    facts.append(("a device", f"{shard}, {bytes_text(math.prod(shard) * struct.dtype.itemsize)}"))
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    picture = "" if isinstance(mesh, AbstractMesh) else sharding_svg(sharding, struct.shape)
    return page(title, facts, picture=picture)


def sharding_html(sharding: Sharding) -> str:
    """Facts of a sharding, with the picture of its mesh."""
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    picture = _mesh_picture(mesh) if isinstance(mesh, Mesh) else ""  # an AbstractMesh has no devices to show
    return page(type(sharding).__name__, sharding_facts(sharding), picture=picture)


def _mesh_picture(mesh: Mesh) -> str:
    # Letters in a picture that is much wider than a page would be too small to read.
    cells = _CELLS
    if len(mesh.axis_sizes) > 1:
        rows = max(mesh.axis_sizes[0], 1)
        cells = min(cells, _SIDE * rows, _SIDE * max(mesh.size // rows, 1))
    return mesh_svg(mesh, max_cells=cells)


def page(title: str, facts: list[tuple[str, str]], *, picture: str = "", value: str = "", text: str = "") -> str:
    """One HTML page: title, table of facts, preformatted text, picture and the value to unfold."""
    rows = "".join(
        f'<div style="opacity:0.7">{html.escape(name)}</div><div>{html.escape(text)}</div>' for name, text in facts
    )
    parts = [
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">',
        f'<div style="font-weight:600">{html.escape(title)}</div>',
        f'<div style="display:grid;grid-template-columns:max-content auto;column-gap:1em">{rows}</div>',
    ]
    if text:
        parts.append(f'<pre style="overflow-x:auto">{html.escape(text)}</pre>')
    if picture:
        parts.append(f'<div style="overflow-x:auto">{picture}</div>')
    if value:
        parts.append(
            f'<details><summary>value</summary><pre style="overflow-x:auto">{html.escape(value)}</pre></details>'
        )
    return "\n".join([*parts, "</div>"])
