#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the includes of the C++ code and the imports of the Python package against the order of their rooms.

    tools/check_layers.py [ROOT]

artifex_layer(... DEPENDS ...) declares the C++ rooms: a room includes itself and what its DEPENDS reach, and depends
only on rooms declared before it. The planner is above the runtime, and only its own bindings include it. Python stays
out of both, and a few libraries stay in the rooms that wrap them. tools/python_rooms.py declares the Python rooms.
Prints `file:line: what is wrong` and exits with 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from python_rooms import check_python

CORE = "cpp/artifex_devices"
PLANNER = "cpp/artifex_planner"
PLANNER_DEPENDS = "sharding"  # it uses this room of the runtime, and those that the room reaches
BINDINGS = "cpp/bindings"
BELOW_PYBIND = ("pybind.h", "gil.h")  # the others include pybind.h, which has the casts of shared objects
NUMPY_BINDINGS = ("bind_data.cpp", "numpy_bridge.cpp", "planner/bind_reshard.cpp")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
LAYER = re.compile(r"^[ \t]*artifex_layer\(([^)]*)\)", re.MULTILINE)


@dataclass
class Room:
    """One artifex_layer call."""

    name: str
    line: int
    sources: list[str] = field(default_factory=list)
    depends: list[str] = field(default_factory=list)
    reach: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Confined:
    """A library that only some files may include."""

    what: str
    matches: Callable[[str], bool]
    allowed: Callable[[Path], bool]
    where: str


def _in_rooms(*rooms: str) -> Callable[[Path], bool]:
    return lambda path: (
        path.suffix == ".cpp" and path.parts[:2] == ("cpp", "artifex_devices") and path.parts[2] in rooms
    )


CONFINED = (
    Confined(
        "Python",
        lambda header: header == "Python.h" or header.startswith("pybind11/"),
        lambda path: path.parts[:2] == ("cpp", "bindings"),
        f"{BINDINGS}: the core builds without Python",
    ),
    Confined(
        "pybind11",
        lambda header: header == "pybind11/pybind11.h",
        lambda path: path.parts[:2] != ("cpp", "bindings") or path.parts[2] in ("planner", *BELOW_PYBIND),
        f"{BINDINGS}/pybind.h, which has the casts of shared objects; include that",
    ),
    Confined(
        "NumPy",
        lambda header: header in ("pybind11/numpy.h", "pybind11/eigen.h") or header.startswith("numpy/"),
        lambda path: path.as_posix().removeprefix(f"{BINDINGS}/") in NUMPY_BINDINGS,
        f"{', '.join(NUMPY_BINDINGS)} in {BINDINGS}",
    ),
    Confined(
        "hwloc",
        lambda header: header == "hwloc.h" or header.startswith("hwloc/"),
        _in_rooms("topology"),
        f"{CORE}/topology/*.cpp",
    ),
    Confined(
        "Eigen",
        lambda header: header.startswith(("Eigen/", "eigen3/", "unsupported/Eigen/")),
        _in_rooms("measure", "collective"),
        f"the sources of measure and collective in {CORE}",
    ),
)


def read_rooms(cmake: Path, shown: str) -> tuple[dict[str, Room], list[str]]:
    """Reads the artifex_layer calls in order, with what each room reaches."""
    rooms: dict[str, Room] = {}
    problems: list[str] = []
    text = re.sub(r"#[^\n]*", "", cmake.read_text(encoding="utf-8"))
    for call in LAYER.finditer(text):
        name, *words = call.group(1).split()
        room = Room(name, text.count("\n", 0, call.start()) + 1)
        if name in rooms:
            problems.append(f"{shown}:{room.line}: room {name} is declared twice")
        collect: list[str] | None = None
        for word in words:
            if word in ("PUBLIC", "SOURCES", "RARE", "DEPENDS", "LIBRARIES"):
                collect = {"SOURCES": room.sources, "RARE": room.sources, "DEPENDS": room.depends}.get(word)
            elif collect is not None:
                collect.append(word)
        room.reach = {name}
        for other in room.depends:
            if other in rooms:
                room.reach |= rooms[other].reach
            else:
                problems.append(
                    f"{shown}:{room.line}: room {name} depends on {other}, which is not declared before it; "
                    "dependencies point only to earlier rooms"
                )
        rooms[name] = room
    if not rooms:
        problems.append(f"{shown}:1: no artifex_layer(...) found")
    return rooms, problems


def check_includes(path: Path, text: str, rooms: dict[str, Room]) -> Iterator[str]:
    """Yields what is wrong with the includes of one file; `path` is relative to the root."""
    is_core = path.is_relative_to(CORE)
    is_planner = path.is_relative_to(PLANNER)
    room = rooms.get(path.parts[2]) if is_core else rooms.get(PLANNER_DEPENDS) if is_planner else None
    for match in INCLUDE.finditer(text):
        quote, header = match.groups()
        place = f"{path.as_posix()}:{text.count(chr(10), 0, match.start(2)) + 1}"
        for library in CONFINED:
            if library.matches(header) and not library.allowed(path):
                yield f"{place}: includes {header}; {library.what} belongs to {library.where}"
        parts = header.split("/")
        if parts[0] == "artifex_planner":
            if not is_planner and not path.is_relative_to(f"{BINDINGS}/planner"):
                yield f"{place}: includes {header}; only {PLANNER} and {BINDINGS}/planner may use the planner"
        elif parts[0] != "artifex_devices":
            if quote == '"' and (is_core or is_planner):
                yield f'{place}: includes "{header}"; write the whole path, "{path.parts[1]}/<folder>/<file>.h"'
        elif len(parts) < 3 or parts[1] not in rooms:
            yield f"{place}: includes {header}, which is in no room; rooms are {', '.join(rooms)}"
        elif room is not None and parts[1] not in room.reach:
            yield (
                f"{place}: {'the planner' if is_planner else f'room {room.name}'} includes {header}, but "
                f"{'it' if is_planner else room.name} may include only "
                f"{', '.join(name for name in rooms if name in room.reach)}"
            )


def check_tree(root: Path) -> list[str]:
    """Returns every violation below `root`, in the order of files and lines."""
    shown = f"{CORE}/CMakeLists.txt"
    if not (root / shown).is_file():
        return [f"{shown}:1: there is no such file in {root}"]
    rooms, problems = read_rooms(root / shown, shown)
    files = sorted(
        file
        for top in (CORE, PLANNER, BINDINGS)
        for file in (root / top).rglob("*")
        if file.suffix in (".h", ".cpp", ".hpp", ".cc")
    )
    for file in files:
        path = file.relative_to(root)
        if path.parts[:2] == ("cpp", "artifex_devices"):
            room = rooms.get(path.parts[2])
            if room is None:
                problems.append(f"{path.as_posix()}:1: lies in no room; rooms are {', '.join(rooms)}")
            elif path.suffix != ".h" and "/".join(path.parts[3:]) not in room.sources:
                problems.append(f"{path.as_posix()}:1: is not in the SOURCES of artifex_layer({room.name} ...)")
        problems.extend(check_includes(path, file.read_text(encoding="utf-8"), rooms))
    return [*problems, *check_python(root)]


def main(arguments: list[str]) -> int:
    """Checks one tree."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    problems = check_tree(root)
    for problem in problems:
        print(problem)
    if problems:
        print(f"check_layers: {len(problems)} violations", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
