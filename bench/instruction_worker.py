# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of each hot call; runs under callgrind, started by instructions.py."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM_UP = 60
CALLS = 20


def main() -> None:
    """Warms up each call and counts it in a loop; the empty loop is counted first, as "nothing"."""
    marks = ctypes.CDLL(sys.argv[1])
    shift = [object() for _ in range(int(sys.argv[2]))]  # moves later objects to other addresses
    if not marks.under_valgrind():
        sys.exit("instruction_worker: this is not valgrind; run bench/instructions.py")
    sys.path.insert(0, str(Path(__file__).parent))
    from hot_calls import hot_calls

    calls: dict[str, Callable[[], Any]] = {"nothing": lambda: None, **hot_calls()}
    chosen = sys.argv[3:]
    gc.collect()
    gc.disable()
    marks.start_counting()  # the first use looks the mark up in its library; this must not count
    marks.stop_counting()
    marks.write_counts(b"marks")
    for name, call in calls.items():
        if chosen and name != "nothing" and name not in chosen:
            continue
        for _ in range(WARM_UP):
            call()
        marks.start_counting()
        for _ in range(CALLS):
            call()
        marks.stop_counting()
        marks.write_counts(name.encode())
    del shift


if __name__ == "__main__":
    main()
