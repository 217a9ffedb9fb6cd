# SPDX-License-Identifier: Apache-2.0
"""Numbers of things and of bytes as options say them; for argparse."""

from __future__ import annotations

import argparse
import re

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def count_of(text: str) -> int:
    """A whole number from 1 on; 1,024 and 1_024 are taken too."""
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return value


def bytes_of(text: str) -> int:
    """`4000000`, `4MB` (of a million), `4MiB` (of 2 to the 20th), `1.5 GB`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4000000, 4MB or 4MiB, got {text!r}")
    unit = _UNITS[match[2] or ""]
    return round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
