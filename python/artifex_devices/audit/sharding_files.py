# SPDX-License-Identifier: Apache-2.0
"""Files of shardings: the JSON of this package, and the three that MaxText's tests compare.

MaxText writes `named_shardings.json` (mesh, spec and shape of each parameter), `logical_shardings.json` (names of the
dimensions in place of mesh axes) and `input_shardings.json` (the activations, with both).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._base.regular_file import decompressed, read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import PartitionSpec
from artifex_devices.audit.leaves import MAX_SIZE, LeafSharding, dtype_name, leaf_of, spec_of
from artifex_devices.audit.sharding_texts import described_value, read_spec

FORMAT = "artifex_devices/shardings/1"
LIMIT = 256 << 20  # bytes of a file
_EXPECTED = "a JSON file of audit.save, or MaxText's named, logical or input shardings"
_SPEC, _ACTIVATION_SPEC = "partition_spec", "PartitionSpec"
_MAX_DIMENSIONS = 64


def read_json(operation: str, path: str | os.PathLike[str], expected: str = _EXPECTED) -> Any:
    """Returns the content of a JSON file, which may be compressed by gzip.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON.
    """
    name = safe_repr(os.fspath(path))
    try:
        content = decompressed(read_regular_file(path, LIMIT), LIMIT)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        fix = f"correct the path; this is {os.getcwd()!r}"
        problem = f"{name} cannot be read ({error.strerror})"
        raise failure(type(error), operation, problem, expected=expected, fix=fix) from None
    except (ValueError, EOFError, OSError) as error:
        raise failure(ValueError, operation, f"{name} {error}", expected=expected, fix="name another file") from None
    return parse_json(operation, content, name, expected)


def parse_json(operation: str, content: str | bytes, name: str, expected: str = _EXPECTED) -> Any:
    """Returns the content of a JSON text; ValueError with `name` if it is not JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError, MemoryError) as error:
        what = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        problem = f"{name} is not JSON: {what}"
        raise failure(ValueError, operation, problem, expected=expected, fix="write the file again") from None


def is_document(value: Any) -> bool:
    """Returns whether a value is the content of a file of shardings, as `json.load` returns it."""
    if not isinstance(value, dict) or not value:
        return False
    if "format" in value or any(_is_activations(each) for each in value.values()):
        return True
    return all(isinstance(each, dict) and _SPEC in each for each in value.values())


def leaves_of_document(operation: str, document: Any, name: str, mesh: Mapping[str, int]) -> list[LeafSharding]:
    """Returns the leaves of the content of a file.

    Args:
        operation: Name of the public function, for errors.
        document: The content.
        name: Name of the file, for errors.
        mesh: Sizes of the axes where the file has no mesh.
    """
    reader = _Reader(operation, name)
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return list(reader.own(document))
    if isinstance(document, list) and _is_activations(document):
        document = {"": document}
    if not is_document(document) or "format" in document:
        raise reader.error(f"it has {_contents(document)}", _EXPECTED)
    return list(reader.foreign(document, mesh))


def _is_activations(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, dict) and all(isinstance(each, dict) and _ACTIVATION_SPEC in each for each in row.values())
        for row in value
    )


def _contents(document: Any) -> str:
    if not isinstance(document, dict):
        return f"a {type(document).__name__} in place of an object"
    if "format" in document:
        return f"the format {safe_repr(document['format'])}"
    return f"the keys {safe_repr(list(document)[:4])}"


class _Reader:
    """Reads the leaves of one file; errors name the file and the leaf."""

    def __init__(self, operation: str, name: str) -> None:
        self.operation = operation
        self.name = name

    def error(self, problem: str, expected: str) -> ValueError:
        return failure(
            ValueError, self.operation, f"{self.name}: {problem}", expected=expected, fix="write the file again"
        )

    def own(self, document: dict[str, Any]) -> Iterator[LeafSharding]:
        """Yields the leaves of a file of this package."""
        meshes, rows = document.get("meshes"), document.get("leaves")
        if not isinstance(meshes, list) or not isinstance(rows, list):
            raise self.error("it has no lists of meshes and leaves", "the file of audit.save, complete")
        sizes = [self.mesh(f"mesh {number}", each) for number, each in enumerate(meshes)]
        for row in rows:
            path = row.get("path") if isinstance(row, dict) else None
            if not isinstance(path, str):
                raise self.error(f"a leaf is {safe_repr(row)}", "an object with a path")
            number = row.get("mesh")
            if number is not None and (type(number) is not int or not 0 <= number < len(sizes)):
                raise self.error(f"{safe_repr(path)} has the mesh {safe_repr(number)}", f"one of {len(sizes)} meshes")
            known = {key: self.count(path, key, row.get(key)) for key in ("device_bytes", "replicas")}
            yield leaf_of(
                self.operation,
                path,
                self.shape(path, row.get("shape")),
                self.dtype(path, row.get("dtype")),
                {} if number is None else sizes[number],
                self.spec(path, row.get("spec")),
                logical=self.spec(path, row.get("logical")),
                **known,
            )

    def foreign(self, document: dict[str, Any], mesh: Mapping[str, int]) -> Iterator[LeafSharding]:
        """Yields the leaves of a file of MaxText."""
        for path, row in document.items():
            if _is_activations(row):
                for text, each in (pair for rows in row for pair in rows.items()):
                    yield self.activation(text, each, mesh)
                continue
            if not isinstance(row, dict) or _SPEC not in row:
                raise self.error(f"{safe_repr(path)} is {safe_repr(row)}", f"an object with a {_SPEC}")
            yield leaf_of(
                self.operation,
                path,
                self.shape(path, row.get("shape")),
                self.dtype(path, row.get("dtype")),
                self.mesh(path, row["mesh"]) if row.get("mesh") is not None else mesh,
                self.spec(path, row[_SPEC]),
            )

    def activation(self, text: str, row: dict[str, Any], mesh: Mapping[str, int]) -> LeafSharding:
        """Returns the leaf of a line such as "decoder/inputs: bfloat16[8,2048]"."""
        path, dtype, shape = described_value(text)
        logical = row.get("logic_axes")
        try:
            names = read_spec(logical) if isinstance(logical, str) else None
        except ValueError:
            names = PartitionSpec(logical)
        spec = self.spec(path, row[_ACTIVATION_SPEC])
        return leaf_of(self.operation, path, shape, dtype, mesh, spec, logical=names)

    def mesh(self, path: str, value: Any) -> dict[str, int]:
        """Returns the sizes of a mesh: {"axis_names": [...], "shape": {...}} or {"data": 4}."""
        names, sizes = None, value
        if isinstance(value, dict) and isinstance(value.get("shape"), (dict, list)):
            names, sizes = value.get("axis_names"), value["shape"]
        if isinstance(sizes, list) and isinstance(names, list) and len(names) == len(sizes):
            sizes = {str(name): size for name, size in zip(names, sizes, strict=True)}
        elif isinstance(sizes, dict) and isinstance(names, list) and set(map(str, names)) == set(sizes):
            sizes = {str(name): sizes[str(name)] for name in names}
        is_right = isinstance(sizes, dict) and all(type(size) is int and size > 0 for size in sizes.values())
        if not is_right or math.prod(sizes.values()) > MAX_SIZE:
            problem = f"{safe_repr(path)} has the mesh {safe_repr(value)}"
            raise self.error(problem, "names of axes and their sizes of 1 or more")
        found: dict[str, int] = sizes
        return found

    def shape(self, path: str, value: Any) -> tuple[int, ...] | None:
        if value is None:
            return None
        is_list = isinstance(value, list) and len(value) <= _MAX_DIMENSIONS
        if not is_list or not all(type(size) is int and 0 <= size <= MAX_SIZE for size in value):
            raise self.error(f"{safe_repr(path)} has the shape {safe_repr(value)}", "a list of sizes, or null")
        return tuple(value)

    def dtype(self, path: str, value: Any) -> str | None:
        if value is not None and not isinstance(value, str):
            raise self.error(f"{safe_repr(path)} has the dtype {safe_repr(value)}", "the name of a dtype, or null")
        return dtype_name(value)

    def count(self, path: str, key: str, value: Any) -> int | None:
        if value is not None and (type(value) is not int or value < 0):
            raise self.error(f"{safe_repr(path)} has the {key} {safe_repr(value)}", "a number, or null")
        return value

    def spec(self, path: str, value: Any) -> PartitionSpec | None:
        try:
            if isinstance(value, str):
                return read_spec(value)
            if isinstance(value, list) and len(value) <= _MAX_DIMENSIONS and all(map(_is_entry, value)):
                return spec_of(value)
        except (ValueError, RecursionError):
            value = value[:80]
        else:
            if value is None:
                return None
        expected = 'axes of each dimension, as ["data", null, ["fsdp", "model"]], or null'
        raise self.error(f"{safe_repr(path)} has the spec {safe_repr(value)}", expected)


def _is_entry(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, list) and all(map(_is_entry, value)))
