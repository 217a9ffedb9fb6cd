# SPDX-License-Identifier: Apache-2.0
"""Texts in which programs print shardings: "P('data', None)" and "decoder/inputs: bfloat16[8@data,2048]"."""

from __future__ import annotations

import ast
import re
from typing import Any

from artifex_devices._core import PartitionSpec
from artifex_devices.audit.leaves import FREE, MAX_SIZE, dtype_name, spec_of

_MAX_TEXT = 4096
_SPECS = ("P", "PartitionSpec")
_UNKNOWN = ("None", "Unknown", "")
_OBJECT = re.compile(r"<[^<>]*unconstrained[^<>]*>", re.IGNORECASE)  # the repr of older versions of JAX
_FREE_NAMES = ("UNCONSTRAINED", "UnconstrainedSingleton")
# A dtype, a memory space, sizes that axes may follow, and the axes over which the value varies.
_VALUE = re.compile(r"([A-Za-z]\w*(?:<\w+>)?)\[([^\[\]]*)\](?:\{.*\})?")
_KEY = re.compile(r"key<\w+>")


def read_spec(text: str) -> PartitionSpec | None:
    """Returns the spec that a text shows, or None for "None" and "Unknown".

    Raises:
        ValueError: The text is not a spec.

    Example:
        >>> read_spec("P(('fsdp', 'expert'), None)"), read_spec("('batch', UNCONSTRAINED)"), read_spec("Unknown")
        (P(('fsdp', 'expert'), None), P('batch', UNCONSTRAINED), None)
    """
    text = text.strip()
    if text in _UNKNOWN:
        return None
    if len(text) > _MAX_TEXT:
        raise ValueError("it is too long")
    try:
        node = ast.parse(_OBJECT.sub("UNCONSTRAINED", text), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("it is not a spec") from None
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in _SPECS:
            return spec_of([_entry(each) for each in node.args])
    if isinstance(node, (ast.Tuple, ast.List)):
        return spec_of([_entry(each) for each in node.elts])
    raise ValueError("it is not a spec")


def _entry(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        return [_entry(each) for each in node.elts]
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
    if name in _FREE_NAMES:
        return FREE
    raise ValueError("an entry is not a name")


def described_value(text: str) -> tuple[str, str | None, tuple[int, ...] | None]:
    """Returns the name, dtype and shape of a text that MaxText prints for an activation.

    Example:
        >>> described_value("decoder/inputs: bfloat16[8@data,2048]")
        ('decoder/inputs', 'bfloat16', (8, 2048))
        >>> described_value("inputs"), described_value("x: f32[batch,4]")
        (('inputs', None, None), ('x', 'float32', None))
    """
    name, _, description = text.rpartition(": ")
    found = _VALUE.fullmatch(description.strip()) if len(description) <= _MAX_TEXT else None
    if found is None:
        return text, None, None
    dtype, sizes = found.groups()
    if not _KEY.fullmatch(dtype):
        dtype = dtype.partition("<")[0]
    parts = [re.sub(r"@.*", "", part).strip() for part in re.split(r",(?![^()]*\))", sizes)] if sizes.strip() else []
    is_known = all(part.isdecimal() and part.isascii() and len(part) < 20 and int(part) <= MAX_SIZE for part in parts)
    return name, dtype_name(dtype), tuple(map(int, parts)) if is_known else None
