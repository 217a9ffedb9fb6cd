# SPDX-License-Identifier: Apache-2.0
"""Runs the tests on copies of the package."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from .places import PACKAGE

__all__ = ["copy_package", "run_tests"]

ROOT = PACKAGE.parents[1]

# Removes the finder of the editable installation, which would take precedence.
_START = """\
import os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_skbc")]
"""
# Reports the functions that are called in a process which a test has started.
_START_RECORDING = """
import atexit, builtins, json
_called = set()
builtins._note_call = _called.add
def _report():
    with open(os.environ["MUTANTS_LOG"], "a") as log:
        log.write(json.dumps([os.environ.get("MUTANTS_TEST", ""), 0, True, sorted(_called)]) + "\\n")
atexit.register(_report)
"""
_PLUGIN = """\
import json, os, time
import pytest
from sitecustomize import _called
failed = set()
def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        failed.add(report.nodeid)
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    _called.clear()
    os.environ["MUTANTS_TEST"] = item.nodeid
    began = time.monotonic()
    result = yield
    row = [item.nodeid, time.monotonic() - began, item.nodeid not in failed, sorted(_called)]
    with open(os.environ["MUTANTS_LOG"], "a") as log:
        log.write(json.dumps(row) + "\\n")
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
        for path in (folder / "artifex_devices").rglob("*.py"):
            path.write_text(_noted(path.read_text(), str(path.relative_to(folder / "artifex_devices"))))


def _noted(source: str, name: str) -> str:
    """The code, with a call at the start of each function that records its name."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            after_docstring = 1 if ast.get_docstring(node) is not None else 0
            node.body.insert(after_docstring, ast.parse(f"_note_call({f'{name}::{node.name}'!r})").body[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def run_tests(folder: Path, tests: Iterable[str], limit: float | None, *options: str) -> tuple[int | None, str]:
    """Runs tests on the package of a folder; returns the exit status, None if they took too long, and the output."""
    listed = folder / "tests.txt"
    listed.write_text("\n".join(tests))
    variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    variables |= {"MUTANTS_LOG": str(folder / "log.jsonl")}
    command = ["nice", "-n", "19", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
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
