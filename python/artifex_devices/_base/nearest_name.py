# SPDX-License-Identifier: Apache-2.0
"""Words that were probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

_LEAST_BEGIN = 3  # letters: shorter ones are like the begin of anything
_LIKE = 0.8


def nearest(text: str, known: Iterable[str]) -> str | None:
    """The known word that is most like a text, without case; None where none is like it.

    Example:
        >>> nearest("memry_bytes", ["memory_bytes", "memory_bandwidth"])
        'memory_bytes'
        >>> nearest("llam", ["llama-2-7b", "mixtral-8x7b"])  # or like how it begins
        'llama-2-7b'
    """
    by_lower = {word.lower(): word for word in known}
    found = difflib.get_close_matches(text.lower(), by_lower, n=1)
    if not found and len(text) >= _LEAST_BEGIN:
        begins = {word[: len(text) + 1]: word for word in reversed(by_lower)}  # of several the first
        found = [begins[each] for each in difflib.get_close_matches(text.lower(), begins, n=1, cutoff=_LIKE)]
    return by_lower[found[0]] if found else None


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """For the middle of an error: " (did you mean memory_bytes?)", or nothing.

    Example:
        >>> did_you_mean("dgxx", ["tpu", "dgx"]), did_you_mean("spam", ["tpu"])
        (' (did you mean dgx?)', '')
    """
    found = nearest(text, known)
    return "" if found is None else f" (did you mean {found}?)"
