# SPDX-License-Identifier: Apache-2.0
"""Assertions about the collectives of a program, for tests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from artifex_devices._base.checks import check_bool, check_bytes, check_int, check_str, failure, wrong_type
from artifex_devices._base.leaf_types import Tree
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, printable, shortened
from artifex_devices.audit.program import Program
from artifex_devices.audit.reading import program as read_program
from artifex_devices.audit.summary import axes_text
from artifex_devices.audit.values import Collective

KINDS = (
    *("all_gather", "all_reduce", "reduce_scatter", "all_to_all", "ragged_all_to_all"),
    *("collective_permute", "collective_broadcast", "send"),
)
_SHOWN = 8


@public("artifex_devices.audit")
@dataclass(frozen=True)
class AtMost:
    """An upper limit of `assert_collectives`; `at_most` makes it.

    Attributes:
        limit: Largest number that is allowed.
    """

    limit: int

    def __str__(self) -> str:
        return f"at most {self.limit}"


@public("artifex_devices.audit")
def at_most(limit: int) -> AtMost:
    """Returns an upper limit for `assert_collectives`.

    Args:
        limit: Largest number of operations that is allowed.

    Raises:
        TypeError: `limit` is not an int.
        ValueError: It is negative.

    Example:
        >>> from artifex_devices import audit
        >>> audit.at_most(2)
        AtMost(limit=2)
    """
    return AtMost(check_int("audit.at_most", "limit", limit, "write at_most(2)", minimum=0))


@public("artifex_devices.audit")
def assert_collectives(program: Tree, *, runs: bool = False, **counts: int | AtMost) -> None:
    """Raises AssertionError unless a program has these numbers of collectives; other kinds are not counted.

    An operation counts once where the program has it, also if it combines several operands.

    Args:
        program: A Program, or what `audit.program` reads.
        runs: Whether to count executions: an operation in a loop of 32 turns counts 32 times.
        **counts: Number of operations of each kind, or `at_most(2)`: all_gather, all_reduce, reduce_scatter,
            all_to_all, ragged_all_to_all, collective_permute, collective_broadcast, send.

    Raises:
        AssertionError: A number differs, with the source lines; or executions are counted and a trip count is unknown.
        TypeError: A kind is unknown, no kind is given, or a number is not an int.
        ValueError: A number is negative.

    Example:
        >>> from artifex_devices import audit
        >>> gather = audit.Collective("all-gather.1", "all_gather", file="train.py", line=12)
        >>> program = audit.Program("HLO text", "step", 8, "cpu", True, (("data", 8),), (gather,))
        >>> audit.assert_collectives(program, all_gather=1, all_to_all=0)
        >>> audit.assert_collectives(program, all_gather=0)
        Traceback (most recent call last):
        AssertionError: audit.assert_collectives: step has 1 all_gather, expected 0
          all_gather at train.py:12 over unknown, unknown bytes, 1 run
    """
    operation = "audit.assert_collectives"
    found = checked_program(operation, program)
    check_bool(operation, "runs", runs, "write runs=True")
    if not counts:
        raise failure(TypeError, operation, "no kind is given", expected="a kind at least", fix="write all_gather=2")
    lines = []
    for kind, expected in counts.items():
        check_kind(operation, kind)
        limit = expected if isinstance(expected, AtMost) else AtMost(_number(operation, kind, expected))
        chosen = [each for each in found.collectives if each.kind == kind]
        unknown = [each for each in chosen if runs and each.runs is None]
        count = sum((each.runs or 0) if runs else 1 for each in chosen)
        what = f"{'at least ' if unknown else ''}{count}{' runs of' if runs else ''} {kind}"
        if count > limit.limit or (count != limit.limit and limit is not expected and not unknown):
            lines += [f"{printable(found.name)} has {what}, expected {expected}", *_lines(chosen)]
        elif unknown:
            problem = f"{printable(found.name)} has {what}: the trip count of a loop is unknown"
            lines += [f"{problem}, expected {expected}", *_lines(unknown)]
    _raise(operation, lines)


@public("artifex_devices.audit")
def assert_no_rematerialization(program: Tree, *, at_least: int | str = 0) -> None:
    """Raises AssertionError if a program gathers a whole array to keep a part of it.

    XLA calls this an involuntary full rematerialization: it knows no shorter way from one sharding to another than to
    replicate the array.

    Args:
        program: A Program, or what `audit.program` reads.
        at_least: Least number of bytes of an array that counts, also as "1 MiB".

    Raises:
        AssertionError: There is one, with its source line and the usual repair.
        TypeError: `program` cannot be read, or `at_least` has the wrong type.
        ValueError: `at_least` is not an amount.

    Example:
        >>> from artifex_devices import audit
        >>> audit.assert_no_rematerialization(audit.Program("HLO text", "step", 8, "cpu", True, (), ()))
    """
    operation = "audit.assert_no_rematerialization"
    found = checked_program(operation, program)
    least = check_bytes(operation, "at_least", at_least)
    chosen = [each for each in found.all_findings if each.kind == "rematerialization" and each.bytes >= least]
    lines = [f"  {printable(each.where)}: {each.text} {each.repair}" for each in chosen]
    if lines:
        count = f"{len(lines)} array{'' if len(lines) == 1 else 's'}"
        lines.insert(0, f"{printable(found.name)} rematerializes {count} in full, expected none")
    _raise(operation, lines)


@public("artifex_devices.audit")
def assert_bytes(program: Tree, *, at_most: int | str, axis: str | None = None, kind: str | None = None) -> None:
    """Raises AssertionError if one device sends more bytes in one execution of a program.

    Args:
        program: A Program, or what `audit.program` reads.
        at_most: Largest number of bytes, also as "40 MB".
        axis: Axis of the mesh: counts the collectives over it, also those that span further axes. None counts all.
        kind: Kind of collectives, such as "all_gather". None counts all.

    Raises:
        AssertionError: The sum is larger, with the largest messages; or it may be, because a trip count or a size is
            unknown.
        TypeError: An argument has the wrong type.
        ValueError: The program's mesh does not have the axis, the kind is unknown, or `at_most` is not an amount.

    Example:
        >>> from artifex_devices import audit
        >>> gather = audit.Collective("all-gather.1", "all_gather", bytes=448, axes=("data",), runs=2)
        >>> program = audit.Program("HLO text", "step", 8, "cpu", True, (("data", 8),), (gather,))
        >>> audit.assert_bytes(program, axis="data", at_most="1 KB")
    """
    operation = "audit.assert_bytes"
    found = checked_program(operation, program)
    limit = check_bytes(operation, "at_most", at_most)
    if kind is not None:
        check_kind(operation, check_str(operation, "kind", kind), ValueError)
    if axis is not None:
        _check_axis(operation, found, check_str(operation, "axis", axis))
    chosen = [
        each
        for each in found.collectives
        if kind in (None, each.kind) and (axis is None or _spans(each, dict(found.mesh), axis))
    ]
    sent = [(each.bytes or 0) * (1 if each.runs is None else each.runs) for each in chosen]
    unknown = [each for each in chosen if None in (each.bytes, each.runs)]
    what = f"sends {'at least ' if unknown else ''}{_exact(sum(sent))}"
    where = "" if axis is None else f" over {printable(axis)}"
    head = f"a device of {printable(found.name)} {what}{where}, expected at most {_exact(limit)}"
    if sum(sent) > limit:
        order = sorted(range(len(chosen)), key=lambda i: -sent[i])
        _raise(operation, [head, *_lines(chosen[i] for i in order)])
    if unknown:
        _raise(operation, [f"{head}; sizes or runs are unknown", *_lines(unknown)])


def checked_program(operation: str, value: Any) -> Program:
    """Returns a Program; TypeError of `audit.program` if a value cannot be read."""
    if isinstance(value, Program):
        return value
    if value is None or isinstance(value, (bool, int, float)):
        raise wrong_type(operation, "program", value, "a Program", "write audit.program(jitted.lower(x).compile())")
    return read_program(value)


def check_kind(operation: str, kind: str, error: type[Exception] = TypeError) -> None:
    """Raises `error` unless a text is a kind of collectives."""
    if kind not in KINDS:
        problem = f"{printable(kind)!r} is not a kind of collectives{did_you_mean(kind, KINDS)}"
        raise failure(error, operation, problem, expected=f"one of {', '.join(KINDS)}", fix="correct the name")


def _number(operation: str, kind: str, value: object) -> int:
    return check_int(operation, kind, value, f"write {kind}=2 or {kind}=at_most(2)", minimum=0)


def _check_axis(operation: str, program: Program, axis: str) -> None:
    names = [name for name, _ in program.mesh]
    if axis not in names:
        problem = f"the mesh of {printable(program.name)} has no axis {printable(axis)!r}{did_you_mean(axis, names)}"
        expected = f"one of {', '.join(map(printable, names))}" if names else "a program that was read with a mesh"
        fix = 'write audit.program(x, mesh={"data": 4, "model": 2})'
        raise failure(ValueError, operation, problem, expected=expected, fix=fix)


def _spans(collective: Collective, mesh: dict[str, int], axis: str) -> bool:
    """Returns whether messages of a collective go along an axis; if its groups are unknown, they may."""
    if collective.axes is not None:
        return axis in collective.axes
    names = list(mesh)
    stride = math.prod(mesh[name] for name in names[names.index(axis) + 1 :])
    places = ({device // stride % mesh[axis] for device in group} for group in collective.groups)
    return not collective.groups or any(len(each) > 1 for each in places)


def _exact(size: int) -> str:
    return f"{size:,} bytes" + (f" ({bytes_text(size)})" if size >= 1024 else "")


def _lines(collectives: Iterable[Collective]) -> list[str]:
    texts = []
    for each in collectives:
        size = "unknown bytes" if each.bytes is None else bytes_text(each.bytes)
        runs = "unknown runs" if each.runs is None else f"{each.runs} run{'' if each.runs == 1 else 's'}"
        texts.append(f"  {each.kind} at {printable(each.where)} over {axes_text(each.axes)}, {size}, {runs}")
    return shortened(texts, _SHOWN, "  and {} more")


def _raise(operation: str, lines: list[str]) -> None:
    if lines:
        raise AssertionError("\n".join([f"{operation}: {lines[0]}", *lines[1:]]))
