#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the rooms that a change touches: a first answer within a minute.

    tools/test_quick.py              the rooms of the files that differ from the last commit
    tools/test_quick.py planner      these rooms, by the name of a C++ room, a Python room or a folder of tests

For each room: the order of the rooms, the C++ tests of cpp/artifex_devices/ROOM and tests/python/ROOM. After a change
in C++ the extension is built and installed first. Before a change is submitted, `make check` and `make test` run all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON_TESTS = ROOT / "tests" / "python"
CPP_TESTS = ROOT / "tests" / "cpp"
BUILD = ROOT / "build" / "python"

# Modules of the package's root, and C++ rooms without a folder of Python tests: the folders that test them.
TESTED_BY = {
    "__init__": ("package",),
    "__main__": ("command_line",),
    "accelerators": ("hardware",),
    "advice": ("hardware",),
    "array_api": ("array_ops",),
    "batch_placement": ("placement",),
    "bindings": ("package",),
    "collective": ("spmd",),
    "compat": ("package",),
    "config": ("runtime",),
    "debug": ("package",),
    "device": ("runtime",),
    "device_placement": ("placement",),
    "dlpack": ("placement",),
    "errors": ("package",),
    "experimental": ("package",),
    "hlo": ("audit",),
    "lax": ("spmd",),
    "layout": ("placement",),
    "measure": ("roofline",),
    "memory": ("runtime",),
    "mesh": ("sharding",),
    "models": ("planner",),
    "multihost_utils": ("distributed",),
    "numpy": ("package",),
    "partition": ("sharding",),
    "prefetch": ("placement",),
    "profiler": ("package", "profiler"),
    "testing": ("package",),
    "topology": ("runtime", "hardware"),
    "transfer": ("placement",),
    "transfers": ("runtime",),
    "reduction": ("array_ops", "spmd"),
    "tree_util": ("tree",),
    "unpickle": ("array",),
    "xla_client": ("runtime",),
}


def room_of(path: str) -> str | None:
    """The room of a file of the repository, or None where no room owns it."""
    parts = Path(path).parts
    if parts[:2] == ("cpp", "artifex_planner"):
        return "planner"
    if parts[:2] in (("cpp", "artifex_devices"), ("python", "artifex_devices"), ("tests", "python"), ("tests", "cpp")):
        name = Path(parts[2]).stem
        if parts[0] == "tests" and len(parts) == 3:
            return None  # shared by the tests of several rooms
        return name if name.startswith("__") else name.removeprefix("_")
    return {"cpp": "bindings", "tools": "tools", "bench": "tools"}.get(parts[0])


def changed_rooms() -> set[str]:
    """Rooms of the files that differ from the last commit, new files included."""
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    rooms = {room_of(line[3:].split(" -> ")[-1]) for line in status.stdout.splitlines()}
    return {room for room in rooms if room}


def commands(rooms: set[str]) -> list[list[str]]:
    """What to run for these rooms, in order.

    Raises:
        ValueError: A name belongs to no room.
    """
    folders: set[str] = set()
    targets: list[str] = []
    programs: list[str] = []
    for room in sorted(rooms):
        has_cpp_tests = (CPP_TESTS / room).is_dir()
        own = {room} if (PYTHON_TESTS / room).is_dir() else set(TESTED_BY.get(room, ()))
        if not own and not has_cpp_tests:
            folders_of_tests = (path.name for path in PYTHON_TESTS.iterdir() if path.is_dir())
            names = sorted(name for name in {*TESTED_BY, *folders_of_tests} if not name.startswith("__"))
            raise ValueError(f"test_quick: {room} is not a room; expected some of {', '.join(names)}")
        folders |= own
        house = "artifex_planner" if room == "planner" else f"artifex_devices/{room}"
        if has_cpp_tests and (ROOT / "cpp" / house).is_dir():
            targets.append(f"{room}_test")
            programs.append(str(BUILD / "cpp" / house.partition("/")[0] / f"{room}_test"))
    found = [[sys.executable, "tools/check_layers.py"]]
    if targets or "bindings" in rooms:
        found.append(["tools/setup.sh"])  # pytest loads the installed extension, which ninja alone does not replace
    if targets:
        found.append(["cmake", "--build", str(BUILD), "--target", *targets])
    found += [[program] for program in programs]
    if folders:
        tests = [f"tests/python/{folder}" for folder in sorted(folders)]
        found.append([sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *tests])
    return found


def main(arguments: list[str]) -> int:
    """Runs the tests of the named or changed rooms and returns the first exit status that is not 0."""
    rooms = {room_of(f"python/artifex_devices/{name}") or name for name in arguments} or changed_rooms()
    if not rooms:
        print("test_quick: no file of a room differs from the last commit; name a room, such as planner")
        return 0
    try:
        steps = commands(rooms)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for step in steps:
        print("+", *step, flush=True)
        done = subprocess.run(step, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
