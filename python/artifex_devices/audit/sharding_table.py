# SPDX-License-Identifier: Apache-2.0
"""audit.shardings: the table of the arrays of a tree and their shardings."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from artifex_devices._base import html
from artifex_devices._base.checks import check_bytes, wrong_type
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, printable, shortened_list, table_lines, wrapped
from artifex_devices._core import AbstractMesh, Mesh, PartitionSpec
from artifex_devices.audit.leaves import FREE, LeafSharding, shown_axes
from artifex_devices.audit.mesh_argument import mesh_sizes
from artifex_devices.audit.notices import Notice, notices_of
from artifex_devices.audit.object_leaves import leaves_of
from artifex_devices.audit.sharding_files import FORMAT, is_document, leaves_of_document, parse_json, read_json

_OPERATION = "audit.shardings"
_EXPECTED = "a tree of arrays or shardings of JAX, torch or this package, or a file of shardings"
_SHOWN = 30  # rows of the printed table
_SHOWN_NOTES = 10
_HEAD = ("on each device", "replicas", "shape", "dtype", "spec", "leaf")


@public("artifex_devices.audit")
@dataclass(frozen=True, repr=False)
class Shardings(html.NotebookText):
    """The arrays of a tree, with their shardings and bytes; `print` shows the largest, and what is notable.

    Attributes:
        leaves: Arrays in the order of the tree.
        skipped: Paths and types of values that have neither shape nor sharding.
        at_least: Least number of bytes of an array that `notes` reports as replicated.
    """

    leaves: tuple[LeafSharding, ...]
    skipped: tuple[str, ...] = field(default=(), compare=False)
    at_least: int = field(default=1 << 20, compare=False)

    @property
    def notes(self) -> tuple[Notice, ...]:
        """What is notable.

        These are large arrays that every device holds, dimensions that do not divide, axes that no array uses, and
        optimizer states that are sharded otherwise than their parameters.
        """
        return notices_of(self.leaves, self.at_least)

    @property
    def largest(self) -> LeafSharding | None:
        """The leaf with most bytes on each device; None of an empty tree."""
        return max(self.leaves, key=lambda leaf: (leaf.device_bytes or 0, leaf.weight), default=None)

    @property
    def total_bytes(self) -> int:
        """The bytes of all global arrays whose shape and dtype are known."""
        return sum(leaf.total_bytes or 0 for leaf in self.leaves)

    @property
    def device_bytes(self) -> int:
        """The bytes on the fullest device, of all arrays whose sharding and dtype are known."""
        return sum(leaf.device_bytes or 0 for leaf in self.leaves)

    def to_json(self) -> str:
        """Returns the leaves as JSON, one leaf for each line, sorted by path; `audit.save` writes it."""
        meshes: list[dict[str, int]] = []
        rows = []
        for leaf in sorted(self.leaves, key=_order):
            if leaf.mesh and list(leaf.mesh.items()) not in [list(mesh.items()) for mesh in meshes]:
                meshes.append(leaf.mesh)
            rows.append(json.dumps(_row(leaf, meshes)))
        lines = ["{", f'"format": "{FORMAT}",', f'"meshes": {json.dumps(meshes)},', '"leaves": [', ",\n".join(rows)]
        return "\n".join(line for line in (*lines, "]", "}") if line) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Shardings:
        """Returns the shardings of a text of `to_json`.

        Raises:
            ValueError: The text is something else.
            TypeError: `text` is not a str.

        Example:
            >>> import artifex_devices as ad
            >>> from artifex_devices import audit
            >>> found = audit.shardings({"w": (ad.P("data"), (8, 4))}, mesh={"data": 4})
            >>> audit.Shardings.from_json(found.to_json()) == found
            True
        """
        operation = "Shardings.from_json"
        if not isinstance(text, str):
            raise wrong_type(operation, "text", text, "the text of Shardings.to_json")
        document = parse_json(operation, text, "text")
        return cls(tuple(leaves_of_document(operation, document, "text", {})))

    def __str__(self) -> str:
        """Returns the table of the largest leaves, and the notes."""
        return f"{self}"

    def __format__(self, width: str) -> str:
        """Returns the text in lines of at most `width` characters: f"{shardings:80}"."""
        columns = int(width or 0)
        rows = table_lines(self._table(), width=max(columns - 2, 0)) if self.leaves else []
        found = self.notes
        notes = [f"{each.kind}: {printable(each.path)}: {printable(each.text)}" for each in found[:_SHOWN_NOTES]]
        below = [*notes, *_rest(len(found), _SHOWN_NOTES, "more in notes")]
        facts = self._facts()
        if columns:
            facts, below = (
                [line for text in texts for line in wrapped(text, columns, rest="    ")] for texts in (facts, below)
            )
        return "\n".join(
            [*facts, *(f"  {line}" for line in (*rows, *_rest(len(self.leaves), _SHOWN, "smaller leaves"))), *below]
        )

    def _repr_html_(self) -> str:
        """Returns the table for notebooks."""
        found = self.notes
        notes = [(each.kind, printable(each.path), printable(each.text)) for each in found[:_SHOWN_NOTES]]
        head, *rows = self._table()
        return html.page(
            self._facts()[0],
            html.note("; ".join(self._facts()[1:])),
            html.table(head, rows),
            *map(html.note, _rest(len(self.leaves), _SHOWN, "smaller leaves")),
            html.table(("notable", "leaf or axis", "what"), notes),
            *map(html.note, _rest(len(found), _SHOWN_NOTES, "more in notes")),
        )

    def __repr__(self) -> str:
        return f"<Shardings: {self._facts()[0]}>"

    def _facts(self) -> list[str]:
        count = f"{len(self.leaves)} {'leaf' if len(self.leaves) == 1 else 'leaves'}"
        unknown = sum(leaf.device_bytes is None for leaf in self.leaves)
        amounts = f"{bytes_text(self.device_bytes)} on each device of {bytes_text(self.total_bytes)} in all"
        if unknown == len(self.leaves):
            amounts = "bytes unknown"
        elif unknown:
            amounts = f"at least {amounts}; bytes of {unknown} unknown"
        meshes = list(dict.fromkeys(mesh_text(leaf.mesh) for leaf in self.leaves if leaf.mesh))
        facts = [f"{count}, {amounts}", *(f"mesh {mesh}" for mesh in meshes[:4])]
        if self.skipped:
            facts.append(f"without a shape: {shortened_list(list(map(printable, self.skipped)), 4)}")
        return facts

    def _table(self) -> list[tuple[str, ...]]:
        """Returns the head and the rows of the largest leaves, without columns that say nothing."""
        largest = sorted(self.leaves, key=lambda leaf: (-(leaf.device_bytes or 0), -leaf.weight))[:_SHOWN]
        rows = [
            (
                "" if leaf.device_bytes is None else bytes_text(leaf.device_bytes),
                "" if leaf.replicas is None else str(leaf.replicas),
                "" if leaf.shape is None else str(leaf.shape).replace(",)", ")").replace(" ", ""),
                printable(leaf.dtype or ""),
                printable(spec_text(leaf)),
                printable(leaf.path) or "(the tree)",
            )
            for leaf in largest
        ]
        shown = [i for i in range(len(_HEAD)) if any(row[i] for row in rows)]
        return [tuple(row[i] for i in shown) for row in (_HEAD, *rows)]


@public("artifex_devices.audit")
def shardings(
    tree: Tree,
    shapes: Tree = None,
    *,
    mesh: Mesh | AbstractMesh | Mapping[str, int] | None = None,
    at_least: int | str = "1 MiB",
) -> Shardings:
    """Returns the table of the arrays of a tree: shape, dtype, mesh, spec, bytes on each device, and replicas.

    Values of JAX and torch are read by their attributes; neither library is imported.

    Args:
        tree: A tree of jax.Arrays, ShapeDtypeStructs, DTensors or Arrays; of NamedShardings or PartitionSpecs; or of
            pairs of one of them and a shape or ShapeDtypeStruct. A module or optimizer of torch. A path of a JSON file:
            of `audit.save`, or MaxText's named, logical or input shardings.
        shapes: Tree of the same structure with the shapes, where `tree` has shardings only.
        mesh: Mesh of PartitionSpecs, and of files without one: a Mesh, also of JAX, or sizes by axis, as {"data": 4}.
        at_least: Least size of an array that `notes` reports as replicated: bytes, or a text such as "1 MiB".

    Raises:
        TypeError: The tree has no array and no sharding; an argument has the wrong type.
        ValueError: A file is not one of shardings; a spec does not fit its shape or mesh.
        OSError: A file cannot be read.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> from artifex_devices import audit
        >>> with ad.simulate(8):
        ...     mesh = ad.make_mesh((4, 2), ("data", "model"))
        ...     w = ad.device_put(np.zeros((16, 8), np.float32), ad.NamedSharding(mesh, ad.P("data", "model")))
        ...     print(audit.shardings({"w": w}))
        1 leaf, 64 bytes on each device of 512 bytes in all
        mesh data 4, model 2
          on each device  replicas  shape   dtype    spec                leaf
          64 bytes        1         (16,8)  float32  P('data', 'model')  ['w']
    """
    least = check_bytes(_OPERATION, "at_least", at_least)
    axes = dict(mesh_sizes(_OPERATION, mesh))
    if isinstance(tree, Shardings):
        return Shardings(tree.leaves, tree.skipped, least)
    if isinstance(tree, (str, os.PathLike)):
        name = os.fspath(tree)
        document = read_json(_OPERATION, tree)
        return Shardings(tuple(leaves_of_document(_OPERATION, document, repr(name), axes)), (), least)
    if is_document(tree):
        return Shardings(tuple(leaves_of_document(_OPERATION, tree, "tree", axes)), (), least)
    leaves, skipped = leaves_of(_OPERATION, tree, shapes, axes)
    if not leaves:
        raise wrong_type(_OPERATION, "tree", tree, _EXPECTED, "give the parameters, or jax.eval_shape(init, ...)")
    return Shardings(tuple(leaves), tuple(skipped), least)


def _rest(count: int, shown: int, what: str) -> list[str]:
    """Returns a line that counts what is not shown, if there is something."""
    return [f"and {count - shown} {what}"] if count > shown else []


def _order(leaf: LeafSharding) -> tuple[Any, ...]:
    """Sorts paths with their numbers as numbers."""
    parts = re.split(r"([0-9]+)", leaf.path[:4096])
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts], leaf.path, str(leaf)


def _row(leaf: LeafSharding, meshes: list[dict[str, int]]) -> dict[str, object]:
    known = {"shape": leaf.shape, "dtype": leaf.dtype, "spec": _entries(leaf.spec), "logical": _entries(leaf.logical)}
    row: dict[str, object] = {"path": leaf.path, **{key: value for key, value in known.items() if value is not None}}
    if leaf.mesh:
        row["mesh"] = next(i for i, mesh in enumerate(meshes) if list(mesh.items()) == list(leaf.mesh.items()))
    elif leaf.spec is None or leaf.replicas is not None:
        sizes = {"device_bytes": leaf.device_bytes, "replicas": leaf.replicas}
        row.update({key: value for key, value in sizes.items() if value is not None})
    return row


def _entries(spec: PartitionSpec | None) -> list[object] | None:
    return None if spec is None else ["UNCONSTRAINED" if entry is FREE else entry for entry in spec]


def spec_text(leaf: LeafSharding) -> str:
    """Formats the spec of a leaf without the axes of one device: "P('data', None)"; "unknown" if it is unknown."""
    if leaf.spec is None:
        return "unknown"
    kept = [entry if entry is FREE else shown_axes(leaf, entry) for entry in leaf.spec]
    return str(PartitionSpec(*kept)).replace(",)", ")")


def mesh_text(mesh: Mapping[str, int]) -> str:
    """Formats the axes of more than one device."""
    axes: Iterable[str] = (f"{printable(name)} {size}" for name, size in mesh.items() if size > 1)
    return ", ".join(axes) or "of one device"
