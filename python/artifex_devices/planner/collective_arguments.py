# SPDX-License-Identifier: Apache-2.0
"""Arguments of `plan_collective`, checked, and what follows from them alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from artifex_devices._base.safe_repr import shown

__all__ = ["checked_bytes", "checked_pairs", "peak_bytes", "whole_bytes"]


def checked_bytes(nbytes: Any) -> float:
    """Bytes, 0 to 2**63.

    Raises:
        TypeError: It is no number.
        ValueError: It is out of range.
    """
    if isinstance(nbytes, bool) or not isinstance(nbytes, (int, float, np.integer, np.floating)):
        raise TypeError(
            f"plan_collective: nbytes is {shown(nbytes)} ({type(nbytes).__name__}); expected a number of bytes; say "
            "34e6"
        )
    told: float = nbytes.item() if isinstance(nbytes, np.generic) else nbytes
    if not 0 <= told <= 2**63:  # not a number is neither
        text = "more than 1e30" if 1e30 < told < math.inf else repr(told)
        raise ValueError(f"plan_collective: nbytes is {text}; expected 0 to 2**63; give the whole array's bytes")
    return told


def checked_pairs(op: str, perm: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    """The pairs of a permute, none of another collective.

    Raises:
        ValueError: A permute without pairs, or pairs without a permute.
        TypeError: They are no pairs of whole numbers.
    """
    if (op == "permute") != (perm is not None):
        raise ValueError(
            f"plan_collective: op is {shown(op)} and perm is {shown(perm)}; expected pairs of places with 'permute' "
            "and with no other; say perm=[(0, 1), (1, 0)]"
        )
    try:
        pairs = [tuple(operator.index(place) for place in pair) for pair in perm or ()]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 or not all(abs(place) < 2**62 for place in pair) for pair in pairs):
        raise TypeError(
            f"plan_collective: perm is {shown(perm)}; expected pairs (source, destination) of places in a group; say "
            "perm=[(0, 1), (1, 0)]"
        )
    return [(pair[0], pair[1]) for pair in pairs]


def peak_bytes(op: str, nbytes: float, devices: int) -> float:
    """Bytes of one device's input and result, of a collective that moves `nbytes` in all."""
    before = nbytes / devices if op in ("all_gather", "all_to_all", "permute") else nbytes
    after = nbytes / devices if op in ("reduce_scatter", "all_to_all", "permute") else nbytes
    return before + after


def whole_bytes(nbytes: float) -> float:
    """An int where it is one."""
    return int(nbytes) if float(nbytes).is_integer() else nbytes
