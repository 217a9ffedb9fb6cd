#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that objects compiled for one instruction set export only symbols with the name of that set.

    tools/check_isa_symbols.py OBJECT...

The linker keeps one copy of an inline function that several objects have. If the kept copy is compiled for AVX-512,
programs crash on older processors. So each symbol in an object gemm_<set>.cpp.o, copy_kernels_<set>.cpp.o,
combine_<set>.cpp.o, exact_kernels_<set>.cpp.o or totals_<set>.cpp.o must contain the name of its set. Other objects
are ignored. Prints `object: symbol` for other symbols and exits with 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VARIANT = re.compile(r"(?:gemm|copy_kernels|combine|exact_kernels|totals)_(baseline|avx\w+)\.cpp\.o$")
# Pointers and marks of the compiler, not code.
HARMLESS = re.compile(r"^(DW\.ref\.|__odr_asan|_GLOBAL__|_{2,3}asan_|__tsan_|__ubsan_)")


def foreign_symbols(listing: str, isa: str) -> Iterator[str]:
    """Yields exported symbols in the output of `nm -C --defined-only --extern-only` that lack the set's name."""
    for line in listing.splitlines():
        name = line.split(maxsplit=2)[-1] if line.split() else ""
        tables = (f"{table}_{isa}" for table in ("copy_kernels", "combine_loops", "exact_kernels", "total_loops"))
        own = (f"artifex_eigen_{isa}::", f"gemm_{isa}(", *tables)
        if name and not any(mark in name for mark in own) and not HARMLESS.match(name):
            yield name


def main(arguments: list[str]) -> int:
    """Checks the objects."""
    problems, seen = [], 0
    for argument in arguments:
        match = VARIANT.search(Path(argument).name)
        if match is None:
            continue
        seen += 1
        done = subprocess.run(["nm", "-C", "--defined-only", "--extern-only", argument], capture_output=True, text=True)
        if done.returncode:
            problems.append(f"{argument}: {done.stderr.strip()}")
        problems += [f"{argument}: {name}" for name in foreign_symbols(done.stdout, match[1])]
    if not seen:
        problems.append("no object of an instruction set was given")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
