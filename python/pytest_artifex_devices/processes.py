# SPDX-License-Identifier: Apache-2.0
"""Runs a test in several processes, simulated or started by mpiexec. Groups output by process."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_OUTCOMES = "ARTIFEX_DEVICES_TEST_OUTCOMES"  # in a process that mpiexec has started: the folder of the outcomes
_TIMEOUT_S = 300.0


class Settings(NamedTuple):
    """The arguments of the mark of a test."""

    processes: int
    devices: int
    seed: int
    faults: Sequence[Any]


def is_in_job() -> bool:
    """Returns whether this is one of the processes that mpiexec has started for a test."""
    return _OUTCOMES in os.environ


# --- simulated processes


def run_simulated(function: Callable[[], Any], settings: Settings, schedules: int) -> None:
    """Runs a test in simulated processes under several schedules; raises the error of the first schedule that fails."""
    from artifex_devices.testing import run_processes

    for seed in range(settings.seed, settings.seed + schedules):
        output = _OutputByProcess(settings.processes)
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            done = run_processes(
                function, settings.processes, settings.devices, seed, settings.faults, return_exceptions=True
            )
        errors = [(n, result) for n, result in enumerate(done.results) if isinstance(result, BaseException)]
        if errors or seed == settings.seed + schedules - 1:
            output.show()
        if errors:
            _raise(errors, settings, seed, done.shared_globals)


def _raise(
    errors: list[tuple[int, BaseException]], settings: Settings, seed: int, shared_globals: Sequence[str]
) -> None:
    """Raises the error of the first process that failed by itself; the other processes' errors are notes of it."""
    from artifex_devices._base.raised_exceptions import add_note
    from artifex_devices.errors import CollectiveError

    number, error = min(errors, key=lambda each: isinstance(each[1], CollectiveError))
    notes = [
        f"process {number} of {settings.processes}, schedule {seed}; run it again with "
        f"--artifex-schedule-seed {seed} or @pytest.mark.artifex_processes({settings.processes}, seed={seed})"
    ]
    if shared_globals:
        notes.append(f"several processes have changed {', '.join(shared_globals)}; real ones would each have their own")
    for other, each in errors:
        if other != number:
            is_own = not isinstance(each, CollectiveError)  # the text of that one has its line
            text = "".join(traceback.format_exception(type(each), each, each.__traceback__ if is_own else None))
            notes.append(f"--- process {other}\n{text.rstrip()}")
    for note in notes:
        add_note(error, note)
    if _passes_through_pytest(error):
        raise error
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    pytest.fail(text, pytrace=False)


def _passes_through_pytest(error: BaseException) -> bool:
    """Returns whether an error's class allows what contextlib does in pytest, which otherwise reports that error."""
    try:
        error.__traceback__ = error.__traceback__
    except Exception:
        return False
    return True


class _OutputByProcess(io.TextIOBase):
    """Standard output and error of simulated processes."""

    def __init__(self, processes: int) -> None:
        self._texts = [io.StringIO() for _ in range(processes)]

    def write(self, text: str) -> int:
        """Adds text to the output of the calling process; of process 0, in a thread that belongs to none."""
        from artifex_devices.distributed.simulated import membership

        member = membership.current.get()
        return self._texts[member.process_index if member is not None else 0].write(text)

    def show(self) -> None:
        """Prints the output of each process."""
        for number, text in enumerate(self._texts):
            print_output(number, text.getvalue())


def print_output(number: int, text: str) -> None:
    """Prints the output of one process below its number."""
    if text:
        print(f"--- process {number}\n{text.rstrip()}")


# --- real processes


def run_real(item: pytest.Function, settings: Settings) -> None:
    """Runs a test in processes that mpiexec starts, each of which runs pytest for it; fails where one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [_mpiexec(), "-n", str(settings.processes), sys.executable, "-m", "pytest", "-q"]
        command += ["-p", "no:cacheprovider", f"--rootdir={item.config.rootpath}", "--artifex-real-processes"]
        command += ["-n0"] if item.config.pluginmanager.hasplugin("xdist") else []
        command.append(f"{item.path}::{item.nodeid.partition('::')[2]}")
        environment = {**os.environ, _OUTCOMES: folder, "JAX_NUM_CPU_DEVICES": str(settings.devices)}
        environment.pop("PYTEST_CURRENT_TEST", None)
        done = subprocess.run(
            command,
            env=environment,
            cwd=item.config.invocation_params.dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        outcomes = list(_read_outcomes(Path(folder), settings.processes))
    for number, outcome in enumerate(outcomes):
        print_output(number, outcome["output"])
    failed = [(number, outcome) for number, outcome in enumerate(outcomes) if outcome["failure"]]
    if failed:
        pytest.fail("\n".join(f"--- process {n}\n{outcome['failure']}" for n, outcome in failed), pytrace=False)
    if done.returncode:
        pytest.fail(f"mpiexec ended with status {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)


def _mpiexec() -> str:
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None or importlib.util.find_spec("mpi4py") is None:
        raise pytest.UsageError(
            "--artifex-real-processes: MPI is not installed; expected mpi4py and mpiexec; "
            "pip install 'artifex_devices[mpi]', or leave the option out for simulated processes"
        )
    return found


def _read_outcomes(folder: Path, processes: int) -> Iterator[dict[str, str]]:
    for number in range(processes):
        file = folder / str(number)
        ended = {"output": "", "failure": "the process has ended before the end of the test"}
        yield json.loads(file.read_text(encoding="utf-8")) if file.exists() else ended


def initialize_once() -> None:
    """Joins the job, in a process that mpiexec has started."""
    from artifex_devices import distributed

    if not distributed.is_initialized():
        distributed.initialize()


def write_outcome(report: pytest.TestReport) -> None:
    """Writes the outcome of the test, in a process that mpiexec has started."""
    import artifex_devices as ad

    failure = report.longreprtext if report.failed else ""
    outcome = json.dumps({"output": report.capstdout + report.capstderr, "failure": failure})
    Path(os.environ[_OUTCOMES], str(ad.process_index())).write_text(outcome, encoding="utf-8")
