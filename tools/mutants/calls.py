# SPDX-License-Identifier: Apache-2.0
"""Records which test executes which blocks, and selects the tests of a mutant."""

from __future__ import annotations

import functools
import hashlib
import json
from array import array
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from .copies import FOLDERS, ROOT, copy_package, run_tests
from .places import Mutant

__all__ = ["Calls", "Test", "recorded_calls"]

STATE = ROOT / "build" / "mutants"


class Test(NamedTuple):
    """One test: its duration and the numbers of the blocks that it executes."""

    name: str
    seconds: float
    blocks: array[int]

    @property
    def file(self) -> str:
        """The file of the test."""
        return self.name.partition("::")[0]


class Calls:
    """The tests that pass, and the blocks that they execute."""

    def __init__(self, names: list[str], tests: list[Test]) -> None:
        """Keys of the blocks by number, and all recorded tests."""
        self._names = names
        self._tests = tests

    def executed(self) -> set[str]:
        """Keys of the blocks that a test executes."""
        numbers = set[int]().union(*(test.blocks for test in self._tests))
        return {self._names[number] for number in numbers}

    def tests_of(self, mutant: Mutant) -> list[Test]:
        """Tests that can detect a mutant, the most likely ones first.

        Tests that execute the block come before those that call the function, and these before those that call another
        one of its file, which may have its result from a cache. Among these, the tests of the area come first, then
        quick ones; a file's tests stay together. Code outside of functions runs when the package is imported, before
        any test: tests of files that name the module, or read all modules, come first for it.
        """
        module = f"artifex_devices.{mutant.path.removesuffix('.py').replace('/', '.')}"
        found = [] if mutant.function else [test for test in self._tests if _reads(test.file, module)]
        known = {test.name for test in found}
        for part in (mutant.block(), f"{mutant.path}::{mutant.function}#", f"{mutant.path}::"):
            is_prefix = part.endswith(("#", ":"))
            numbers = {i for i, key in enumerate(self._names) if key == part or (is_prefix and key.startswith(part))}
            more = [test for test in self._tests if test.name not in known and not numbers.isdisjoint(test.blocks)]
            known.update(test.name for test in more)
            found += _in_order(more, mutant)
        return found


@functools.cache
def _reads(file: str, module: str) -> bool:
    """Whether a test file names the module, or reads all of them."""
    source = (ROOT / file).read_text()
    return module in source or "walk_packages" in source


def _in_order(tests: list[Test], mutant: Mutant) -> list[Test]:
    words = set(mutant.path.removesuffix(".py").replace("/", "_").split("_"))
    seconds: dict[str, float] = defaultdict(float)
    for test in tests:
        seconds[test.file] += test.seconds

    def rank(test: Test) -> tuple[int, float, str]:
        path = Path(test.file)
        area = f"{path.parent.name}_{path.stem.removeprefix('test_')}"  # a folder of tests is named like its room
        alike = len(words.intersection(area.split("_")))
        return -alike, seconds[test.file], test.file

    return sorted(tests, key=rank)  # stable: a file's tests stay in their order


def recorded_calls(*, again: bool, jobs: int = 1) -> Calls:
    """The recorded calls; new or changed test files, or all of them, are run first."""
    STATE.mkdir(parents=True, exist_ok=True)
    stored = STATE / "blocks.json"
    state: dict[str, Any] = {"names": [], "files": {}}
    if stored.exists() and not again:
        state = json.loads(stored.read_text())
    numbers: dict[str, int] = {name: number for number, name in enumerate(state["names"])}
    # By file: the hash of its text, then [test, seconds, numbers of blocks] of those that passed.
    known: dict[str, list[Any]] = state["files"]
    hashes = {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("test_*.py"))
    }
    old = [file for file, digest in hashes.items() if file not in known or known[file][0] != digest]
    known = {file: rows for file, rows in known.items() if file in hashes and file not in old}
    if old:
        print(f"recording which code the tests of {len(old)} files execute", flush=True)
        folder = STATE / "recording"
        copy_package(folder, recording=True)
        for tests_folder in FOLDERS:
            if files := [file for file in old if file.startswith(tests_folder)]:
                status, output = run_tests(folder, files, None, "-p", "mutants_recorder", "-n", str(jobs))
                # 5: all tests of these files need real processes. After other errors tests that did not run would be
                # stored as none.
                if status not in (0, 1, 5):
                    raise RuntimeError(f"pytest ended with status {status} before all tests had run:\n{output[-4000:]}")
        names = json.loads((folder / "names.json").read_text())
        known |= {file: [hashes[file]] for file in old}
        for test, (seconds, passed, executed) in _rows(folder / "log.jsonl").items():
            if passed:
                blocks = sorted(numbers.setdefault(names[each], len(numbers)) for each in executed)
                known[test.partition("::")[0]].append([test, seconds, blocks])
        stored.write_text(json.dumps({"names": list(numbers), "files": known}))
    tests = [
        Test(name, seconds, array("i", blocks))
        for rows in known.values()
        for name, seconds, blocks in rows[1:]
        if not any(each in name for each in (" at 0x", "<module "))  # names with an address or a path differ each time
    ]
    return Calls(list(numbers), tests)


def _rows(log: Path) -> dict[str, tuple[float, bool, set[int]]]:
    """For each test: seconds, whether it passed, and the blocks executed in its process and its children."""
    rows: dict[str, tuple[float, bool, set[int]]] = {}
    for line in log.read_text().splitlines():
        name, seconds, passed, executed = json.loads(line)
        if name:
            before = rows.get(name, (0.0, True, set()))
            rows[name] = before[0] + seconds, before[1] and passed, before[2].union(executed)
    return rows
