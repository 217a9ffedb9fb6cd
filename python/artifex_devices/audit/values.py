# SPDX-License-Identifier: Apache-2.0
"""Values of an audited program: its collectives, what is suspicious about it, and totals."""

from __future__ import annotations

from dataclasses import dataclass

from artifex_devices._base.public_path import public


@public("artifex_devices.audit")
@dataclass(frozen=True)
class Collective:
    """One collective operation of a program; an operation that combines several operands is one.

    Attributes:
        name: Name of the instruction, such as "all-gather.12"; "" where the source has no names.
        kind: "all_gather", "all_reduce", "reduce_scatter", "all_to_all", "ragged_all_to_all", "collective_permute",
            "collective_broadcast", or of profiles and counts also "send".
        dtypes: Dtype of each operand, by its name in NumPy and ml_dtypes; () where the source does not have them.
        shapes: Shape of each operand on one device.
        bytes: Least number of bytes that one device must send in one run, on a ring: it receives as many. None where
            the dtype or the size of the group is unknown.
        groups: Devices of each group; for a permute, the pairs of source and target.
        axes: Axes of the mesh that the groups span, in the order of the mesh: () for groups of one device, None where
            the groups are not along axes or no mesh is known.
        runs: Number of runs in one execution of the program, or None where the trip count of a loop is unknown.
        is_async: Whether the operation has a start and a done.
        overlaps: Whether computation lies between start and done.
        in_loop: Whether the operation is in the body of a loop.
        op_name: Name of the operation in the program's own words, such as "jit(step)/dot_general"; "" if unknown.
        file: Source file of the innermost frame of the user's code; "" if unknown.
        line: Line in this file; 0 if unknown.
    """

    name: str
    kind: str
    dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    bytes: int | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    axes: tuple[str, ...] | None = None
    runs: int | None = 1
    is_async: bool = False
    overlaps: bool = False
    in_loop: bool = False
    op_name: str = ""
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """The place in the source as "train.py:12", else `op_name`, else `name`."""
        return place_of(self.file, self.line) or self.op_name or self.name


@public("artifex_devices.audit")
@dataclass(frozen=True)
class Finding:
    """Something suspicious about a program.

    Attributes:
        kind: "rematerialization", "gathered twice", "all-reduce then slice", "invariant in loop", "resharded in loop",
            "replicated temporary", "float32 message" or "axis of size 1".
        collective: The collective, or None where the finding is about another instruction.
        name: Name of the instruction.
        op_name: Name of the operation in the program's own words; "" if unknown.
        file: Source file; "" if unknown.
        line: Line in this file; 0 if unknown.
        bytes: Bytes that one device sends in one run, or holds in the case of a temporary.
        runs: Number of runs in one execution of the program; None if unknown.
        text: The problem in one sentence.
        repair: The usual repair in one sentence.
    """

    kind: str
    collective: Collective | None
    name: str
    op_name: str
    file: str
    line: int
    bytes: int
    runs: int | None
    text: str
    repair: str

    @property
    def where(self) -> str:
        """The place in the source as "train.py:12", else `op_name`, else `name`."""
        return place_of(self.file, self.line) or self.op_name or self.name


@public("artifex_devices.audit")
@dataclass(frozen=True)
class Total:
    """Sum over the collectives that share an axis, a kind or a line.

    Attributes:
        count: Number of operations in the program.
        runs: Number of their runs in one execution; None if the trip count of a loop is unknown.
        bytes: Bytes that one device sends in all these runs. An operation whose runs are unknown counts as one run;
            one whose bytes are unknown as 0.
        at_least: Whether the true bytes may be higher, for one of these two reasons.
    """

    count: int
    runs: int | None
    bytes: int
    at_least: bool


def place_of(file: str, line: int) -> str:
    """Formats the last part of a path with the line; "" without a file.

    Example:
        >>> place_of("/home/me/train.py", 12), place_of("", 0)
        ('train.py:12', '')
    """
    name = file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line}" if name and line else name
