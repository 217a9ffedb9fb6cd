#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that built libraries have the hardening of cmake/ArtifexCompile.cmake, since a lost flag has no other symptom.

    tools/check_hardening.py LIBRARY...

Prints `library: problem` for what an ELF file of 64 bits lacks and exits with 1: addresses of functions that are all
resolved at load and read-only from then on, no memory that is both written and run, folders of libraries relative to
the library only, guards on the stack, and assertions of the standard library.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Names and numbers of the ELF specification and of glibc's elf.h.
LOAD, DYNAMIC, GNU_STACK, GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
EXECUTABLE, WRITABLE = 1, 2
NEEDED, RPATH, TEXTREL, RUNPATH, FLAGS, FLAGS_1 = 1, 15, 22, 29, 30, 0x6FFFFFFB
FLAG_TEXTREL, FLAG_BIND_NOW, FLAG_1_NOW = 4, 8, 1
SECTION_DYNAMIC, SECTION_DYNSYM = 6, 11

FAILED_ASSERTION = "_ZSt21__glibcxx_assert_failPKciS0_S0_"
# Functions that the compiler's guards call.
GUARDS = {
    "__stack_chk_fail": "no function checks its stack (-fstack-protector-strong)",
    FAILED_ASSERTION: "the standard library checks nothing (-D_GLIBCXX_ASSERTIONS)",
}


class Library(NamedTuple):
    """Properties of a library that the checks read."""

    segments: list[tuple[int, int]]  # type, flags
    dynamic: list[tuple[int, int]]  # tag, value
    words: dict[int, list[str]]  # those whose value is a text
    symbols: set[str]


def read_library(data: bytes) -> Library:
    """Reads an ELF file of 64 bits, little endian; raises ValueError for other files."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits, little endian")
    (program_at, section_at) = struct.unpack_from("<QQ", data, 32)
    (program_bytes, programs, section_bytes, sections) = struct.unpack_from("<HHHH", data, 54)
    segments = [struct.unpack_from("<II", data, program_at + i * program_bytes) for i in range(programs)]
    # type, offset, size, section of its texts
    table = [
        (kind, offset, size, link)
        for _, kind, _, _, offset, size, link in (
            struct.unpack_from("<IIQQQQI", data, section_at + i * section_bytes) for i in range(sections)
        )
    ]

    def text(section: int, at: int) -> str:
        start = table[section][1] + at
        return data[start : data.index(b"\0", start)].decode()

    dynamic: list[tuple[int, int]] = []
    words: dict[int, list[str]] = {NEEDED: [], RPATH: [], RUNPATH: []}
    symbols: set[str] = set()
    if b": Assertion '%s' failed." in data:  # linked statically, without a name
        symbols.add(FAILED_ASSERTION)
    for kind, offset, size, link in table:
        if kind == SECTION_DYNAMIC:
            dynamic += struct.iter_unpack("<QQ", data[offset : offset + size])
            for tag, value in dynamic:
                if tag in words:
                    words[tag].append(text(link, value))
        elif kind == SECTION_DYNSYM:
            symbols.update(text(link, name) for name, *_ in struct.iter_unpack("<IBBHQQ", data[offset : offset + size]))
    return Library(segments, dynamic, words, symbols)


def problems(library: Library) -> Iterator[str]:
    """Yields missing hardening."""
    flags = {tag: value for tag, value in library.dynamic if tag in (FLAGS, FLAGS_1)}
    kinds = dict(library.segments)
    if GNU_RELRO not in kinds:
        yield "addresses of functions stay writable (-z relro)"
    if not (flags.get(FLAGS, 0) & FLAG_BIND_NOW or flags.get(FLAGS_1, 0) & FLAG_1_NOW):
        yield "functions are looked up at their first call (-z now)"
    if kinds.get(GNU_STACK, EXECUTABLE) & EXECUTABLE:
        yield "the stack is executable (-z noexecstack)"
    if any(kind == LOAD and flag & WRITABLE and flag & EXECUTABLE for kind, flag in library.segments):
        yield "memory is both writable and executable"
    if any(tag == TEXTREL for tag, _ in library.dynamic) or flags.get(FLAGS, 0) & FLAG_TEXTREL:
        yield "code is changed at load (text relocations)"
    for folder in (each for tag in (RPATH, RUNPATH) for entry in library.words[tag] for each in entry.split(":")):
        if folder != "$ORIGIN" and not folder.startswith("$ORIGIN/"):
            yield f"libraries are looked for in {folder!r} (RPATH or RUNPATH)"
    for name in library.words[NEEDED]:
        if "/" in name:
            yield f"needs the library {name!r} of one folder"
    for symbol, lack in GUARDS.items():
        if symbol not in library.symbols:
            yield lack


def main(arguments: list[str]) -> int:
    """Checks the libraries."""
    found = [] if arguments else ["no library was given"]
    for argument in arguments:
        try:
            found += [f"{argument}: {problem}" for problem in problems(read_library(Path(argument).read_bytes()))]
        except (OSError, ValueError, IndexError, struct.error) as error:
            found.append(f"{argument}: {error}")
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
