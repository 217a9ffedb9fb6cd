# SPDX-License-Identifier: Apache-2.0
"""Records which test calls which functions, and selects the tests of a mutant."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from .copies import ROOT, copy_package, run_tests
from .places import Mutant

__all__ = ["Calls", "Test", "recorded_calls"]

STATE = ROOT / "build" / "mutants"


class Test(NamedTuple):
    """One test: its duration and the functions that it calls, as "path::name"."""

    name: str
    seconds: float
    functions: frozenset[str]

    @property
    def file(self) -> str:
        """The file of the test."""
        return self.name.partition("::")[0]


class Calls:
    """The tests that pass, and the functions that they call."""

    def __init__(self, tests: list[Test]) -> None:
        """All recorded tests."""
        self._tests = tests

    def tests_of(self, mutant: Mutant) -> list[Test]:
        """Tests that can detect a mutant, the most likely ones first.

        Tests that call the function come before those that call another one of its file, which may have its result
        from a cache. Among these, the tests of the area come first, then quick ones; a file's tests stay together.
        """
        function = f"{mutant.path}::{mutant.function}"
        prefix = f"{mutant.path}::"
        direct = [test for test in self._tests if function in test.functions]
        known = {test.name for test in direct}
        others = [
            test
            for test in self._tests
            if test.name not in known and any(each.startswith(prefix) for each in test.functions)
        ]
        return [*_in_order(direct, mutant), *_in_order(others, mutant)]


def _in_order(tests: list[Test], mutant: Mutant) -> list[Test]:
    words = set(mutant.path.removesuffix(".py").replace("/", "_").split("_"))
    seconds: dict[str, float] = defaultdict(float)
    for test in tests:
        seconds[test.file] += test.seconds

    def rank(test: Test) -> tuple[int, float, str]:
        alike = len(words.intersection(Path(test.file).stem.removeprefix("test_").split("_")))
        return -alike, seconds[test.file], test.file

    return sorted(tests, key=rank)  # stable: a file's tests stay in their order


def recorded_calls(*, again: bool) -> Calls:
    """The recorded calls; new or changed test files, or all of them, are run first."""
    STATE.mkdir(parents=True, exist_ok=True)
    stored = STATE / "calls.json"
    known: dict[str, list[Any]] = {} if again or not stored.exists() else json.loads(stored.read_text())
    # By file: the hash of its text, then [test, seconds, functions] of those that passed.
    hashes = {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((ROOT / "tests" / "python").rglob("test_*.py"))
    }
    old = [file for file, digest in hashes.items() if file not in known or known[file][0] != digest]
    known = {file: rows for file, rows in known.items() if file in hashes and file not in old}
    if old:
        print(f"recording which functions the tests of {len(old)} files call", flush=True)
        folder = STATE / "recording"
        copy_package(folder, recording=True)
        run_tests(folder, old, None, "-p", "mutants_recorder")
        known |= {file: [hashes[file]] for file in old}
        for name, (seconds, passed, functions) in _rows(folder / "log.jsonl").items():
            if passed:
                known[name.partition("::")[0]].append([name, seconds, sorted(functions)])
        stored.write_text(json.dumps(known))
    tests = [
        Test(name, seconds, frozenset(functions))
        for rows in known.values()
        for name, seconds, functions in rows[1:]
        if not any(each in name for each in (" at 0x", "<module "))  # names with an address or a path differ each time
    ]
    return Calls(tests)


def _rows(log: Path) -> dict[str, tuple[float, bool, set[str]]]:
    """For each test: seconds, whether it passed, and the functions called in its process and its children."""
    rows: dict[str, tuple[float, bool, set[str]]] = {}
    for line in log.read_text().splitlines():
        name, seconds, passed, functions = json.loads(line)
        if name:
            before = rows.get(name, (0.0, True, set()))
            rows[name] = before[0] + seconds, before[1] and passed, before[2].union(functions)
    return rows
