# SPDX-License-Identifier: Apache-2.0
"""Import over NumPy: seconds and resident memory, each in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from measure import Row

CODE = """
import json, time
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
import numpy
before = resident()
begin = time.perf_counter()
{work}
print(json.dumps([time.perf_counter() - begin, resident() - before]))
"""


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """Import alone, then with the first look at the devices."""
    if not peer.IMPORT:
        return
    library = peer.IMPORT.split()[-1]
    for what, work in (
        ("import over NumPy", peer.IMPORT),
        ("import and devices() over NumPy", f"{peer.IMPORT}\n{library}.devices()"),
    ):
        answers = [_run(work) for _ in range(4 if quick else 12)][1:]
        yield Row(what, samples=[seconds for seconds, _ in answers])
        yield Row(f"{what}, resident memory", samples=[float(size) for _, size in answers], unit="bytes")


def _run(work: str) -> tuple[float, int]:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(work=work)], stdout=subprocess.PIPE, check=True, text=True, timeout=120
    )
    seconds, size = json.loads(done.stdout)
    return seconds, size
