# SPDX-License-Identifier: Apache-2.0
"""How often the sources of a stream were repeated before a position of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifex_devices._core.data import Order
from artifex_devices.data.stream import Stream, order_of


def epochs_of(stream: Stream, positions: NDArray[np.int64]) -> dict[str, int]:
    """Returns the latest epoch of each source that has samples at these positions; epochs count from 0.

    The sources of packed rows are those of the samples in the rows. Empty where `repeat` repeats a part of an endless
    stream, whose own epochs are then not counted from 0.
    """
    if not len(positions) or _repeats_endless(stream, repeated=False):
        return {}
    numbers, indices, marks = _marked(stream).resolve(positions)
    found: dict[str, int] = {}
    for number in np.unique(numbers).tolist():
        leaf = stream._leaves[number]
        here = numbers == number
        epoch = int(marks[number, here, 0].max())
        inside = leaf.source._samples_at(indices[here])
        if inside is None:
            found[leaf.name] = epoch
            continue
        for name, inner in epochs_of(*inside).items():
            found[name if len(stream._leaves) == 1 else f"{leaf.name}/{name}"] = epoch + inner
    return found


def _marked(stream: Stream) -> Order:
    """Returns the order of a stream with one mark for each source, at the source, and no others."""
    if stream._recipe[:1] == ("range",):
        return stream._order.mark()
    recipe = () if stream._recipe == ("mark",) else stream._recipe
    return order_of(recipe, [_marked(parent) for parent in stream._parents])


def _repeats_endless(stream: Stream, *, repeated: bool) -> bool:
    is_endless = stream._recipe == ("repeat", None) or (stream._recipe[:1] == ("mix",) and stream._recipe[-1])
    if is_endless and repeated:
        return True
    repeats = repeated or stream._recipe[:1] == ("repeat",) or is_endless
    return any(_repeats_endless(parent, repeated=repeats) for parent in stream._parents)
