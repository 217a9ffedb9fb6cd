#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets this machine's compiler link libraries that run with glibc 2.28 and its libstdc++: wheels for manylinux_2_28.

    tools/older_libraries.py FOLDER     then link with -LFOLDER; CXX chooses the compiler

The folder gets libraries without code in the place of libc, libm and libstdc++: each has the symbols of this machine's
library in the newest version that manylinux_2_28 has. Newer functions that headers call are linked statically, from
libstdc++.a and tools/older_glibc.c.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}  # auditwheel's manylinux-policy.json
SYMBOL = re.compile(  # of `readelf --dyn-syms -W`
    r" *\d+: [0-9a-f]+ +(?P<size>\w+) (?P<kind>\w+) .* (?P<section>\w+) (?P<name>\w+)@@?(?P<version>\w+_[\d.]+)"
)
# Names that are in glibc's libc.so.6 since 2.34, and in a library of their own before.
OWN_LIBRARIES = {
    "libpthread.so.0": re.compile(r"pthread_|sem_"),
    "libdl.so.2": re.compile(r"dl(?!_)"),
    "librt.so.1": re.compile(r"shm_|aio_|mq_|timer_|lio_"),
}


class Symbol(NamedTuple):
    """A symbol of a library in one of its versions."""

    version: tuple[int, ...]
    node: str  # the version's name, such as GLIBC_2.2.5
    kind: str
    size: int


def symbols_of(library: str, readelf: str) -> dict[str, Symbol]:
    """Each symbol that the library has up to the versions of NEWEST, in the newest of them."""
    table = subprocess.run([readelf, "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout
    found: dict[str, Symbol] = {}
    for line in table.splitlines():
        match = SYMBOL.fullmatch(line)
        if not match or match["section"] == "UND":
            continue
        family, _, number = match["version"].rpartition("_")
        version = tuple(map(int, number.split(".")))
        if version > NEWEST.get(family, ()):
            continue
        symbol = Symbol(version, match["version"], match["kind"], int(match["size"], 0))
        found[match["name"]] = max(symbol, found.get(match["name"], symbol))
    return found


def write_library(compiler: str, path: Path, symbols: dict[str, Symbol]) -> None:
    """Links a library of this name that has the symbols, and nothing behind them."""
    nodes = defaultdict(list)
    assembly = []
    for name, symbol in symbols.items():
        nodes[symbol.node].append(name)
        section, kind = {
            "TLS": ('.section .tbss,"awT",%nobits', "%tls_object"),
            "OBJECT": (".bss", "%object"),
        }.get(symbol.kind, (".text", "%function"))
        space = "" if kind == "%function" else f"\n.zero {symbol.size}\n.size {name}, {symbol.size}"
        assembly.append(f"{section}\n.globl {name}\n.type {name}, {kind}\n{name}:{space}\n")
    source, script = path.with_name(f"{path.name}.s"), path.with_name(f"{path.name}.map")
    source.write_text("".join(assembly) + '.section .note.GNU-stack,"",%progbits\n', encoding="utf-8")
    lines = [f"{node} {{ {'; '.join(names)}; }};\n" for node, names in nodes.items()]
    script.write_text("".join(lines), encoding="utf-8")
    options = ["-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={script}"]
    subprocess.run([compiler, *options, source, "-o", path], check=True)


def main() -> None:
    """Writes the folder."""
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CXX", "c++")

    def asked(question: str) -> str:
        return subprocess.run([compiler, question], check=True, capture_output=True, text=True).stdout.strip()

    readelf = asked("-print-prog-name=readelf")
    names = ("libc.so.6", "libm.so.6", "libstdc++.so.6")
    libraries = {name: symbols_of(asked(f"-print-file-name={name}"), readelf) for name in names}
    libc = libraries["libc.so.6"]
    for name, pattern in OWN_LIBRARIES.items():
        libraries[name] = {symbol: libc.pop(symbol) for symbol in list(libc) if pattern.match(symbol)}
    for name, symbols in libraries.items():
        write_library(compiler, folder / name, symbols)
    older_glibc = folder / "older_glibc.a"
    options = ["-x", "c", "-c", "-O2", "-fPIC", "-fvisibility=hidden", "-fstack-protector-strong", "-Wall", "-Werror"]
    source = Path(__file__).with_name("older_glibc.c")
    subprocess.run([compiler, *options, source, "-o", older_glibc.with_suffix(".o")], check=True)
    subprocess.run([asked("-print-prog-name=ar"), "rcs", older_glibc, older_glibc.with_suffix(".o")], check=True)

    # What -lc, -lm and -lstdc++ find.
    own = " ".join(str(folder / name) for name in OWN_LIBRARIES)
    script = Path(asked("-print-file-name=libc.so")).read_text(encoding="utf-8")
    script = re.sub(r"\S*/libc\.so\.6", f"{folder}/libc.so.6 AS_NEEDED ( {own} )", script)
    (folder / "libc.so").write_text(script, encoding="utf-8")
    (folder / "libm.so").write_text(f"INPUT ( {folder}/libm.so.6 )\n", encoding="utf-8")
    archive = asked("-print-file-name=libstdc++.a")
    (folder / "libstdc++.so").write_text(
        f"GROUP ( {folder}/libstdc++.so.6 {older_glibc} {archive} )\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
