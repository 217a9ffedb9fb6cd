# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios, each in a separate process, and judges the outcomes by rules.

Example:
    python tests/torture/beside_jax/compare.py --only ours -k fork
    .venv-oracle/bin/python tests/torture/beside_jax/compare.py --update   # results.json and docs/reliability.md
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "bench")]

from catalogue import SCENARIOS, Scenario  # noqa: E402
from machine import machine_facts  # noqa: E402

RESULTS = HERE / "results.json"
PRINTED = 160  # characters of an outcome that are recorded


def run_scenario(library: str, scenario: Scenario) -> dict[str, Any]:
    """{"outcome": words, "good": bool, "seconds": of the scenario, or of the process where that ended early}."""
    found: list[dict[str, Any]] = []
    for _ in range(scenario.runs):
        found.append(_run_once(library, scenario))
    bad = [each for each in found if not each["good"]]
    worst = (bad or found)[0]
    if bad and scenario.runs > 1:
        worst = {**worst, "outcome": f"{len(bad)} of {scenario.runs}: {worst['outcome']}"}
    return worst


def _run_once(library: str, scenario: Scenario) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(HERE / "child.py"), library, scenario.name, str(report)]
        environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment.pop("XLA_FLAGS", None)
        begin = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            env=environment,
            start_new_session=True,  # so that forked children end with it
        )
        hangs = False
        try:
            if scenario.interrupt:
                process.stdout.readline()  # type: ignore[union-attr]
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=scenario.timeout_s)
        except subprocess.TimeoutExpired:
            hangs = True
        finally:
            _end(process)
        seconds = time.monotonic() - begin
        if hangs:
            _, errors = process.communicate()
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    outcome = _outcome(scenario, found, process.returncode, hangs, errors)
    return {
        "outcome": outcome,
        "good": re.fullmatch(scenario.good, outcome, re.DOTALL) is not None,
        "seconds": round(seconds if hangs or not found else found["seconds"], 1),
    }


def _end(process: subprocess.Popen[str]) -> None:
    """Ends the process and its forked children."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _outcome(scenario: Scenario, found: dict[str, Any], code: int, hangs: bool, errors: str) -> str:
    if scenario.interrupt:
        return f"still there {scenario.timeout_s:g} s later" if hangs else _ended(code, errors, "ended")
    if not found:
        return f"hangs (killed after {scenario.timeout_s:g} s)" if hangs else _ended(code, errors, "died")
    outcome = " ".join(found["outcome"].split())[:PRINTED]
    if found["outcome"] == "ok" and ("afterwards" in found or hangs or code != scenario.code):
        outcome = "the work is done"
    if "afterwards" in found:
        outcome += f"; then good calls fail: {' '.join(found['afterwards'].split())[:PRINTED]}"
    if hangs:
        outcome += f"; then the process does not end (killed after {scenario.timeout_s:g} s)"
    elif code != scenario.code:
        outcome += f"; then the process {_ended(code, errors, 'died')}"
    elif scenario.silent and errors.strip():
        outcome += f"; then it prints: {errors.strip().splitlines()[-1][:PRINTED]}"
    return outcome


def _ended(code: int, errors: str, word: str) -> str:
    if code < 0:
        return f"{word} by {signal.Signals(-code).name}"
    last = (errors.strip().splitlines() or [""])[-1][:PRINTED]
    return f"{word} with status {code}{': ' if last else ''}{last}"


def versions() -> dict[str, str]:
    """Versions of Python and the libraries."""
    names = {"NumPy": "numpy", "artifex_devices": "artifex_devices", "JAX": "jax", "jaxlib": "jaxlib"}
    found = {label: importlib.import_module(name).__version__ for label, name in names.items()}
    return {"Python": platform.python_version(), **found}


def main() -> int:
    """Returns 1 if an outcome of ours is not good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["ours", "jax"], help="both without it")
    parser.add_argument("-k", default="", help="scenarios whose names contain this")
    parser.add_argument("--update", action="store_true", help="writes results.json and docs/reliability.md")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    arguments = parser.parse_args()
    if arguments.only != "ours" and importlib.util.find_spec("jax") is None:
        parser.error(
            "this Python has no JAX; run `make oracle` once and use .venv-oracle/bin/python, or use --only ours"
        )
    libraries = [arguments.only] if arguments.only else ["ours", "jax"]
    names = [name for name in SCENARIOS if arguments.k in name]
    tasks = [(library, name) for library in libraries for name in names]
    rows: dict[str, dict[str, Any]] = {name: {} for name in names}
    with ThreadPoolExecutor(arguments.jobs) as pool:

        def one(task: tuple[str, str]) -> tuple[str, str, dict[str, Any]]:
            library, name = task
            return library, name, run_scenario(library, SCENARIOS[name])

        for library, name, found in pool.map(one, tasks):
            rows[name][library] = found
            mark = "good" if found["good"] else "BAD "
            print(f"{mark} {library:4} {name:26} {found['seconds']:6.1f} s  {found['outcome']}", flush=True)
    if arguments.update:
        kept = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"] if RESULTS.exists() else {}
        merged = {name: {**kept.get(name, {}), **rows.get(name, {})} for name in SCENARIOS}
        facts = machine_facts()
        table = {
            "machine": {key: facts[key] for key in ("date", "cpu", "cores", "memory_bytes", "kernel")},
            "versions": versions(),
            "rows": merged,
        }
        RESULTS.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, str(HERE / "page.py")], check=True)
    bad = [name for name in names if "ours" in rows[name] and not rows[name]["ours"]["good"]]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
