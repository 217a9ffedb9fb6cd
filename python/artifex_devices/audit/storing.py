# SPDX-License-Identifier: Apache-2.0
"""audit.save, audit.load and audit.diff: audits as small JSON files, and what changed between two of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import AbstractMesh, Mesh
from artifex_devices.audit.differences import Difference, difference_of_programs, difference_of_shardings
from artifex_devices.audit.mesh_argument import mesh_sizes
from artifex_devices.audit.program import Program
from artifex_devices.audit.reading import program
from artifex_devices.audit.sharding_files import leaves_of_document, read_json
from artifex_devices.audit.sharding_table import Shardings, shardings
from artifex_devices.audit.summary import FORMAT, ProgramSummary, summary_of, summary_of_document

_FILES = "a JSON file of audit.save, or MaxText's named, logical or input shardings"
_BEGIN = 4096  # bytes that show whether a file is JSON


@public("artifex_devices.audit")
def save(value: Tree, path: str | os.PathLike[str]) -> None:
    """Writes shardings, or the collectives of a program, as JSON that is small in review and sorted.

    Args:
        value: Shardings, a Program or its summary; or what `audit.shardings` or `audit.program` read.
        path: File to write. Its folder must exist.

    Raises:
        TypeError: `value` or `path` has the wrong type.
        OSError: The file cannot be written.

    Example:
        >>> import artifex_devices as ad, tempfile
        >>> from artifex_devices import audit
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     audit.save({"w": (ad.P("data"), (8, 4))}, f"{folder}/w.json")
        ...     audit.load(f"{folder}/w.json").leaves[0].spec
        P('data',)
    """
    name = checked_path("audit.save", path)
    text = audited("audit.save", value).to_json()
    try:
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fix = "create its folder, or name another file"
        problem = f"{name!r} cannot be written ({error.strerror})"
        raise failure(type(error), "audit.save", problem, expected="a file in an existing folder", fix=fix) from None


@public("artifex_devices.audit")
def load(path: str | os.PathLike[str]) -> Shardings | ProgramSummary:
    """Reads a file of `audit.save`, or a file of shardings that MaxText writes.

    Args:
        path: The file; it may be compressed by gzip.

    Raises:
        ValueError: It is another file.
        OSError: It cannot be read.
        TypeError: `path` is not a path.

    Example:
        >>> import artifex_devices as ad, tempfile
        >>> from artifex_devices import audit
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     audit.save({"w": (ad.P("data"), (8, 4))}, f"{folder}/w.json")
        ...     audit.load(f"{folder}/w.json")
        <Shardings: 1 leaf, bytes unknown>
    """
    name = checked_path("audit.load", path)
    return _of_document("audit.load", read_json("audit.load", name, _FILES), safe_repr(name), {})


@public("artifex_devices.audit")
def diff(before: Tree, after: Tree, *, mesh: Mesh | AbstractMesh | Mapping[str, int] | None = None) -> Difference:
    """Compares two trees of shardings, or the collectives of two programs.

    Leaves are compared by path, collectives by kind, axes, dtypes, bytes and runs. The names and the order that a
    compiler chooses do not matter, nor do line numbers. Values that one of both does not have, such as the dtype of a
    leaf in a file of MaxText, are not compared.

    Args:
        before: Shardings, a Program or its summary; what `audit.shardings` or `audit.program` read; or a file of
            `audit.save`.
        after: The same.
        mesh: Mesh of programs and files without one: a Mesh, also of JAX, or sizes by axis, as {"data": 4}.

    Raises:
        TypeError: One of both is neither; one is a program and the other is not.
        ValueError: A file cannot be understood.
        OSError: A file cannot be read.

    Example:
        >>> import artifex_devices as ad
        >>> from artifex_devices import audit
        >>> old = audit.shardings({"w": (ad.P("data"), (8, 4))}, mesh={"data": 4})
        >>> new = audit.shardings({"w": (ad.P(), (8, 4))}, mesh={"data": 4})
        >>> print(audit.diff(old, new))
        ~ ['w']: P('data') -> P()
    """
    first, second = (audited("audit.diff", each, mesh) for each in (before, after))
    return difference_of("audit.diff", first, second)


def difference_of(operation: str, first: Shardings | ProgramSummary, second: Shardings | ProgramSummary) -> Difference:
    """Compares two audits of the same kind; TypeError if they are of different kinds."""
    if isinstance(first, Shardings) and isinstance(second, Shardings):
        return difference_of_shardings(first, second)
    if isinstance(first, ProgramSummary) and isinstance(second, ProgramSummary):
        return difference_of_programs(first, second)
    kinds = ("shardings" if isinstance(each, Shardings) else "a program" for each in (first, second))
    problem = f"one is {next(kinds)}, the other {next(kinds)}"
    raise failure(TypeError, operation, problem, expected="two of the same kind", fix="compare it with another file")


def audited(operation: str, value: Any, mesh: Any = None) -> Shardings | ProgramSummary:
    """Returns the audit of a value: of a program, of a tree, or of a file of either.

    Raises:
        TypeError, ValueError, OSError: As `audit.program` and `audit.shardings`.
    """
    if isinstance(value, (Shardings, ProgramSummary)):
        return value
    if isinstance(value, Program):
        return summary_of(value)
    if isinstance(value, (str, os.PathLike)):
        name = os.fspath(value)
        if not isinstance(name, str) or "\n" in name or not _begins_as_json(name):
            return summary_of(program(value, mesh))
        document = read_json(operation, name, _FILES)
        if isinstance(document, dict) and "traceEvents" in document:
            return summary_of(program(value, mesh))
        return _of_document(operation, document, safe_repr(name), dict(mesh_sizes(operation, mesh)))
    if callable(getattr(value, "as_text", None)):
        return summary_of(program(value, mesh))
    return shardings(value, mesh=mesh)


def _begins_as_json(name: str) -> bool:
    """Returns whether a file begins as JSON, or cannot be opened."""
    if os.path.isdir(name):
        return False
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(_BEGIN)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _BEGIN)
    except (OSError, ValueError, zlib.error):
        return True
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _of_document(operation: str, document: Any, name: str, mesh: Mapping[str, int]) -> Shardings | ProgramSummary:
    if isinstance(document, dict) and document.get("format") == FORMAT:
        return summary_of_document(operation, document, name)
    return Shardings(tuple(leaves_of_document(operation, document, name, mesh)))


def checked_path(operation: str, path: object) -> str:
    """Returns a path as a str; TypeError if it is something else."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str):
        raise wrong_type(operation, "path", path, "a path", 'write "golden/step.json"')
    return name
