# SPDX-License-Identifier: Apache-2.0
"""Runs the tests on copies of the package."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .places import PACKAGE, blocks_of

__all__ = ["FOLDERS", "ROOT", "copy_package", "run_tests"]

ROOT = PACKAGE.parents[1]
_SIMULATED = "tests/distributed/"  # those that need no real processes
FOLDERS = ("tests/python/", _SIMULATED)  # each in runs of its own: modules of the two have the same names

# Removes the finder of the editable installation, which would take precedence.
_START = """\
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_skbc")]
"""
# Reports the blocks that are executed in a process which a test has started.
_START_RECORDING = """
import atexit, builtins, json
_executed = set()
builtins._note_block = _executed.add
def _report():
    row = [os.environ.get("MUTANTS_TEST", ""), 0, True, sorted(_executed)]
    with open(os.environ["MUTANTS_LOG"], "ab", 0) as log:  # one write a line: several processes write
        log.write(json.dumps(row).encode() + b"\\n")
atexit.register(_report)
"""
_PLUGIN = """\
import json, os, time
import pytest
from sitecustomize import _executed
failed = set()
def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        failed.add(report.nodeid)
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _executed.clear()
    os.environ["MUTANTS_TEST"] = item.nodeid
    began = time.monotonic()
    result = yield
    row = [item.nodeid, time.monotonic() - began, item.nodeid not in failed, sorted(_executed)]
    with open(os.environ["MUTANTS_LOG"], "ab", 0) as log:
        log.write(json.dumps(row).encode() + b"\\n")
    return result
"""


def copy_package(folder: Path, *, recording: bool) -> None:
    """Makes a folder with a copy of the package that comes before the installed one on PYTHONPATH."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PACKAGE, folder / "artifex_devices", ignore=shutil.ignore_patterns("__pycache__"))
    found = importlib.util.find_spec("artifex_devices._core")
    assert found is not None
    assert found.origin is not None
    for part in Path(found.origin).parent.iterdir():
        target = folder / "artifex_devices" / part.name
        if part.suffix != ".py" and not target.exists():
            target.symlink_to(part)
    (folder / "sitecustomize.py").write_text(_START + (_START_RECORDING if recording else ""))
    if recording:
        (folder / "mutants_recorder.py").write_text(_PLUGIN)
        names: list[str] = []
        for path in sorted((folder / "artifex_devices").rglob("*.py")):
            path.write_text(_noted(path.read_text(), str(path.relative_to(folder / "artifex_devices")), names))
        (folder / "names.json").write_text(json.dumps(names))


def _noted(source: str, path: str, names: list[str]) -> str:
    """The code, with a call at the start of each block that records its position in `names`, which grows."""
    tree = ast.parse(source)
    for block in blocks_of(tree):
        block.statements.insert(block.begin, ast.parse(f"_note_block({len(names)})").body[0])
        names.append(f"{path}::{block.function}#{block.number}")
    return ast.unparse(ast.fix_missing_locations(tree))


def run_tests(folder: Path, tests: Sequence[str], limit: float | None, *options: str) -> tuple[int | None, str]:
    """Runs tests of one of `FOLDERS` on the package of a folder.

    Returns the exit status, None if they took too long, and the output.
    """
    if tests[0].startswith(_SIMULATED):
        options = (*options, "--simulated")
    listed = folder / "tests.txt"
    listed.write_text("\n".join(tests))
    variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    variables |= {"MUTANTS_LOG": str(folder / "log.jsonl")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    status: int | None = None
    with open(folder / "output.txt", "w+") as output:
        process = subprocess.Popen(
            [*command, f"@{listed}"], cwd=ROOT, env=variables, stdout=output, stderr=output, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return status, output.read()
