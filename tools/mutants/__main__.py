# SPDX-License-Identifier: Apache-2.0
"""Measures the share of small random faults in the Python layer that the tests detect (mutation testing). Run by hand.

    python -m tools.mutants --count 150 --seed 7          exit status 0 if at least --goal percent are noticed, else 1
    python -m tools.mutants --count 20 --only array_ops/  some files
    python -m tools.mutants --seed 7 --number 12 31       the mutants 12 and 31 of that seed again, after a new test
    python -m tools.mutants --seed 7 --list               what would be changed

A mutant is a copy of the package with one change: of a comparison, an operator, a number, a condition, a return value
or a statement. It runs the tests that execute the changed block (a body, branch or loop), then those that call the
function, then those that call another function of the file, until one fails. A change outside of functions runs first
the tests of files that name the module, or read all modules. Mutants that no test notices are printed as diffs. Some of
them cannot be noticed, because the change has no effect or concerns speed only; a person must sort these out.

Not changed: annotations, overloads, docstrings, imports, `__all__`, `__slots__`, asserts, `strict=`, f-strings, the
arguments of `raise`, and code below `if TYPE_CHECKING`. The tests are those of tests/python, and those of
tests/distributed in simulated processes: code that only runs under mpiexec is left out. A seed draws the same mutants
only of the same code. On a machine that others use, start it with `nice`.

The first run records which test executes which blocks, in build/mutants; later runs do so again for test files that
have changed. `--record` does it for all of them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import queue
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .calls import Calls, Test, recorded_calls
from .copies import FOLDERS, copy_package, run_tests
from .places import PACKAGE, Mutant, choose

_FIRST_SECONDS = 10.0  # of tests, before the others follow in a second run of pytest
_MINUTE = 60.0


class Verdict(NamedTuple):
    """Outcome of a mutant.

    Attributes:
        noticed: Whether a test failed, or did not end.
        by: The test that failed, or how many passed.
        seconds: Duration of the tests.
    """

    noticed: bool
    by: str
    seconds: float


def judge(mutant: Mutant, calls: Calls, folder: Path, limit: float) -> Verdict:
    """Runs the tests on a mutant; `limit` bounds the seconds of tests."""
    target = folder / "artifex_devices" / mutant.path
    began = time.monotonic()
    passed = 0
    try:
        target.write_text(mutant.source())
        for tests in _groups(calls.tests_of(mutant), limit):
            usual = sum(test.seconds for test in tests)
            status, output = run_tests(folder, [test.name for test in tests], 2 * _MINUTE + 6 * usual, "-x")
            if status != 0:
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                by = failed[1] if failed else "a test that did not end" if status is None else f"exit status {status}"
                if "not found: " in output:  # its file is unchanged, so the mutant has changed a parameter
                    by = "a test whose name has changed"
                return Verdict(True, by, time.monotonic() - began)
            passed += len(tests)
    finally:
        target.write_bytes((PACKAGE / mutant.path).read_bytes())
    return Verdict(False, f"{passed} tests pass", time.monotonic() - began)


def _groups(tests: list[Test], limit: float) -> list[list[Test]]:
    """The first tests, and the others within the limit, for each folder of tests; without empty groups."""
    groups: dict[tuple[bool, str], list[Test]] = {}
    seconds = 0.0
    for test in tests:
        seconds += test.seconds
        if seconds > limit:
            break
        folder = next(each for each in FOLDERS if test.name.startswith(each))
        groups.setdefault((seconds > _FIRST_SECONDS, folder), []).append(test)
    return [groups[key] for key in sorted(groups, key=lambda key: (key[0], FOLDERS.index(key[1])))]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=150, help="mutants (150)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="files whose path has one of these texts")
    parser.add_argument("--number", nargs="+", type=int, default=[], help="only these of the seed")
    parser.add_argument("--goal", type=float, default=92.0, help="percent that must be noticed (92)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once (1)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of tests for each mutant at most (300)")
    parser.add_argument("--record", action="store_true", help="record the calls of all tests again")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    options = parser.parse_args()
    numbered = list(enumerate(choose(options.seed, options.count, options.only), 1))
    numbered = [(n, mutant) for n, mutant in numbered if not options.number or n in options.number]
    if options.list:
        print(*(f"{n}: {mutant.title()}" for n, mutant in numbered), sep="\n")
        return 0
    calls = recorded_calls(again=options.record, jobs=options.jobs)
    survivors = []
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()

    def run(entry: tuple[int, Mutant]) -> Verdict:
        folder = free.get()
        try:
            return judge(entry[1], calls, folder, options.limit)
        finally:
            free.put(folder)

    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as copies,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
    ):
        for job in range(options.jobs):
            copy_package(Path(copies) / str(job), recording=False)
            free.put(Path(copies) / str(job))
        for (n, mutant), verdict in zip(numbered, pool.map(run, numbered), strict=True):
            word = "noticed" if verdict.noticed else "SURVIVED"
            print(f"{n}: {word} {mutant.title()}  ({verdict.by}, {verdict.seconds:.0f} s)", flush=True)
            if not verdict.noticed:
                survivors.append((n, mutant))
    for n, mutant in survivors:
        print(f"\n--- {n}: {mutant.title()}\n{mutant.diff()}")
    noticed = len(numbered) - len(survivors)
    share = 100 * noticed / max(1, len(numbered))
    print(f"\n{noticed} of {len(numbered)} noticed: {share:.1f} %; goal {options.goal:g} %")
    return 0 if share >= options.goal else 1


if __name__ == "__main__":
    sys.exit(main())
