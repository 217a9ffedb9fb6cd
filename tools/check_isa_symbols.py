#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that objects compiled for one instruction set give nothing to the rest of the program but what is theirs.

    tools/check_isa_symbols.py OBJECT...

The linker keeps one copy of an inline function that several objects have. Were one of them compiled for AVX-512, that
copy would end programs on older processors. So all that an object gemm_<set>.cpp.o, copy_kernels_<set>.cpp.o or
combine_<set>.cpp.o defines must carry the name of its set. Objects of other names are not looked at. Prints
`object: symbol` for what does not and exits with 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VARIANT = re.compile(r"(?:gemm|copy_kernels|combine)_(baseline|avx\w+)\.cpp\.o$")
# Pointers and marks that compilers put in: no code.
HARMLESS = re.compile(r"^(DW\.ref\.|__odr_asan|_GLOBAL__|__asan_|__tsan_|__ubsan_)")


def foreign_symbols(listing: str, isa: str) -> Iterator[str]:
    """Yields symbols that others can see, of `nm -C --defined-only --extern-only`, and that lack the set's name."""
    for line in listing.splitlines():
        name = line.split(maxsplit=2)[-1] if line.split() else ""
        own = (f"artifex_eigen_{isa}::", f"gemm_{isa}(", f"copy_kernels_{isa}", f"combine_loops_{isa}")
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
        told = subprocess.run(["nm", "-C", "--defined-only", "--extern-only", argument], capture_output=True, text=True)
        if told.returncode:
            problems.append(f"{argument}: {told.stderr.strip()}")
        problems += [f"{argument}: {name}" for name in foreign_symbols(told.stdout, match[1])]
    if not seen:
        problems.append("no object of an instruction set was given")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
