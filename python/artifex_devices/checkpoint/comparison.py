# SPDX-License-Identifier: Apache-2.0
"""Comparison: what differs between two checkpoints."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, counted, printable, table_lines
from artifex_devices.checkpoint.named_leaves import list_of


@public("artifex_devices.checkpoint")
@dataclass(frozen=True)
class ArrayDifference:
    """One array that differs.

    Attributes:
        name: Name of the array.
        a: Dtype and shape in `a` after the rules, such as "float32 (8, 2)"; None if only `b` has the array.
        b: Dtype and shape in `b`; None if only `a` has the array.
        elements: Number of elements that differ; None if the elements were not compared.
        largest: Largest absolute difference of two elements. It is 0 where only bits differ (payloads of NaN, signs
            of zeros), and infinite for a number and a NaN. None if the elements were not compared.
    """

    name: str
    a: str | None
    b: str | None
    elements: int | None = None
    largest: float | None = None

    def __str__(self) -> str:
        """Formats the difference, without the name."""
        if self.a is None or self.b is None:
            return f"only in {'b' if self.a is None else 'a'}: {self.a or self.b}"
        types = self.a if self.a == self.b else f"{self.a} and {self.b}"
        if self.elements is None:
            return types
        if not self.elements:
            return f"{types}, equal values"
        size = "in bits only" if self.largest == 0 else f"by up to {self.largest:.6g}"
        return f"{types}, {self.elements:,} element{'s differ' if self.elements != 1 else ' differs'} {size}"


@public("artifex_devices.checkpoint")
@dataclass(frozen=True)
class Comparison:
    """The result of `compare`, which is false if the checkpoints differ.

    Attributes:
        a: Absolute path of the first checkpoint.
        b: Absolute path of the second checkpoint.
        arrays: Number of arrays whose elements were compared.
        nbytes: Bytes of these arrays in `b`.
        differences: An ArrayDifference for each array that differs.
        values: Names of the Python values that differ.
        notes: Sentences on what was not compared.
    """

    a: str
    b: str
    arrays: int
    nbytes: int
    differences: tuple[ArrayDifference, ...]
    values: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Returns whether nothing differs."""
        return not self.differences and not self.values

    def __str__(self) -> str:
        """Formats a table of what differs."""
        lines = [f"a: {printable(self.a)}", f"b: {printable(self.b)}"]
        if self.differences:
            rows = [("name", "difference"), *((printable(each.name), str(each)) for each in self.differences)]
            lines += table_lines(rows)
        if self.values:
            lines.append(f"Python values differ: {list_of(list(self.values))}")
        count = len(self.differences) + len(self.values)
        result = counted(count, "difference") if count else "equal"
        total = f"{counted(self.arrays, 'array')} compared, {bytes_text(self.nbytes)}: {result}"
        return "\n".join([*lines, *self.notes, total])

    def to_json(self) -> str:
        """Returns everything as JSON. An infinite `largest` is null."""
        document = {"is_equal": bool(self), **asdict(self)}
        for row in document["differences"]:
            if row["largest"] is not None and not math.isfinite(row["largest"]):
                row["largest"] = None
        return json.dumps(document, indent=2, allow_nan=False)
