# SPDX-License-Identifier: Apache-2.0
"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MIN_PREFIX = 3  # letters; shorter texts resemble the beginning of many words
_PREFIX_CUTOFF = 0.8


def nearest(text: str, known: Iterable[str]) -> str | None:
    """Returns the known word that is most similar to a text, ignoring case, or None.

    Example:
        >>> nearest("memry_bytes", ["memory_bytes", "memory_bandwidth"])
        'memory_bytes'
        >>> nearest("llam", ["llama-2-7b", "mixtral-8x7b"])  # similar to its beginning
        'llama-2-7b'
    """
    by_lower = {word.lower(): word for word in known}
    found = difflib.get_close_matches(text.lower(), by_lower, n=1)
    if not found and len(text) >= _MIN_PREFIX:
        by_prefix = {word[: len(text) + 1]: word for word in reversed(by_lower)}  # the first word wins
        matches = difflib.get_close_matches(text.lower(), by_prefix, n=1, cutoff=_PREFIX_CUTOFF)
        found = [by_prefix[match] for match in matches]
    return by_lower[found[0]] if found else None


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """Returns " (did you mean memory_bytes?)" for an error, or nothing.

    Example:
        >>> did_you_mean("dgxx", ["tpu", "dgx"]), did_you_mean("spam", ["tpu"])
        (' (did you mean dgx?)', '')
    """
    found = nearest(text, known)
    return "" if found is None else f" (did you mean {found}?)"
