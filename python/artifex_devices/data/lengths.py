# SPDX-License-Identifier: Apache-2.0
"""Lengths of the samples of each source of a stream: given, stored beside the source, or measured in one pass."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.digest import digest_of
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list
from artifex_devices.data.columns import MAX_LENGTH, columns_of
from artifex_devices.data.leaves import Leaf
from artifex_devices.data.length_file import digest_of_lengths, read_table, write_table
from artifex_devices.data.reading import read
from artifex_devices.data.stream import Stream
from artifex_devices.data.workers import map_in_order

_OPERATION = "data.pack"
_BLOCK = 256  # samples that are read together
_SHOWN = 4
_GIVE = "give the lengths: data.pack(stream, lengths=[3, 5, 2])"


class Lengths(NamedTuple):
    """The lengths of the samples of a source.

    Attributes:
        values: One length for each sample.
        digest: Digest of the values.
        fix: How to repair them, for messages.
    """

    values: NDArray[np.int64]
    digest: str
    fix: str


def lengths_of(stream: Stream, by: str, lengths: Any, workers: int) -> list[Lengths]:
    """Returns the lengths for each source of a stream.

    Args:
        stream: The stream.
        by: Name of the column whose length counts.
        lengths: Lengths of the samples of the only source, a dict of lengths by name of the source, or None.
        workers: Number of threads that read where lengths must be measured.
    """
    given = _given(stream, lengths)
    found: dict[Any, Lengths] = {}  # sources that a stream uses twice are read once
    result = []
    for number, leaf in enumerate(stream._leaves):
        if leaf.name in given:
            values = _checked(leaf, given[leaf.name])
            result.append(Lengths(values, digest_of_lengths(values), "correct lengths="))
            continue
        identity = (id(leaf.source), leaf.steps)
        if identity not in found:
            found[identity] = _stored_or_measured(stream, number, by, workers)
        result.append(found[identity])
    return result


def _given(stream: Stream, lengths: Any) -> Mapping[str, Any]:
    names = [leaf.name for leaf in stream._leaves]
    if lengths is None:
        return {}
    if isinstance(lengths, Mapping):
        unknown = [safe_repr(name) for name in lengths if name not in names]
        if unknown:
            raise failure(
                ValueError,
                _OPERATION,
                f"lengths has {shortened_list(unknown, _SHOWN)}, which the stream does not read",
                expected=f"names of its sources: {shortened_list(list(map(repr, names)), _SHOWN)}",
                fix="correct the names",
            )
        return lengths
    if len(names) != 1:
        raise failure(
            ValueError,
            _OPERATION,
            f"lengths is one array, and the stream reads {len(names)} sources",
            expected="a dict of arrays by name of the source",
            fix=f"write lengths={{{', '.join(f'{name!r}: ...' for name in names[:2])}}}",
        )
    return {names[0]: lengths}


def _checked(leaf: Leaf, lengths: Any) -> NDArray[np.int64]:
    """Returns lengths that the caller gave, without a copy if they are int64."""
    what = f"the lengths of the source {leaf.name!r}"
    try:
        values = np.asarray(lengths)
    except ValueError:  # rows of different lengths
        values = np.empty((), object)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and len(values)):
        raise wrong_type(_OPERATION, what, lengths, "an array of integers, one for each sample", _GIVE)
    count = len(leaf.source)
    if len(values) != count:
        raise failure(
            ValueError,
            _OPERATION,
            f"there are {len(values)} lengths of the source {leaf.name!r}",
            expected=f"{count}, one for each sample of the source",
            fix="give the lengths of all samples in the order of the source, before shuffling and slicing",
        )
    wrong = np.flatnonzero((values < 0) | (values > MAX_LENGTH))
    if len(wrong):
        raise failure(
            ValueError,
            _OPERATION,
            f"the length of sample {wrong[0]} of the source {leaf.name!r} is {values[wrong[0]]}",
            expected=f"0 to {MAX_LENGTH}",
            fix="correct lengths=",
        )
    return np.ascontiguousarray(values, np.int64)


def _stored_or_measured(stream: Stream, number: int, by: str, workers: int) -> Lengths:
    leaf = stream._leaves[number]
    if any(step.mark is not None for step in leaf.steps):
        raise failure(
            ValueError,
            _OPERATION,
            f"samples of the source {leaf.name!r} go through map(f, random=True), so their lengths are not in a table",
            expected="lengths=, or a random function after data.pack",
            fix=_GIVE,
        )
    path = leaf.source.path
    names = [_name(step.function) for step in leaf.steps]
    if path is None or None in names:
        values = _measured(stream, number, by, workers)
        return Lengths(values, digest_of_lengths(values), "create the packed stream again")
    key = digest_of(json.dumps([leaf.source.digest(), by, names])).hex()
    file = table_path(path, key)
    fix = f"remove {str(file)!r} and create the packed stream again"
    found = read_table(file, key, len(leaf.source))
    if found is None:
        values = _measured(stream, number, by, workers)
        try:
            found = values, write_table(file, key, values)
        except OSError as error:
            warn_user(
                f"{_OPERATION}: the lengths of {leaf.source!r} cannot be stored ({error}); they are in memory now, and "
                "the next run reads all samples again; make the folder writable, or give lengths="
            )
            found = values, digest_of_lengths(values)
            fix = "create the packed stream again"
    return Lengths(*found, fix)


def table_path(path: Path, key: str) -> Path:
    """Returns the file of a table beside a source: in the folder that is the source, or that has its file."""
    return (path if path.is_dir() else path.parent) / f"artifex-{key[:16]}.lengths"


def _name(function: Any) -> str | None:
    """Returns the qualified name of a function; None if the same name may mean another function or other state."""
    if not isinstance(function, types.FunctionType) or "<" in function.__qualname__:
        return None
    return f"{function.__module__}.{function.__qualname__}"


def _measured(stream: Stream, number: int, by: str, workers: int) -> NDArray[np.int64]:
    """Reads every sample of a source once, through the functions of `map`, and returns their lengths."""
    leaf = stream._leaves[number]
    samples = Stream._of_leaf(leaf, len(leaf.source))
    count = len(leaf.source)

    def block(start: int) -> NDArray[np.int64]:
        positions = np.arange(start, min(start + _BLOCK, count), dtype=np.int64)
        found = read(samples, positions, skips=False, operation=_OPERATION, fix="repair the source").samples
        texts = [functools.partial(samples.describe_position, int(position)) for position in positions]
        return np.array(
            [len(columns_of(sample, by, text)[by]) for sample, text in zip(found, texts, strict=True)], np.int64
        )

    return np.concatenate([np.empty(0, np.int64), *map_in_order(block, range(0, count, _BLOCK), workers)])
