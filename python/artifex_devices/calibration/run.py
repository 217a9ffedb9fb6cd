# SPDX-License-Identifier: Apache-2.0
"""Calibration of this machine, and its check against measurements that were not fitted."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from artifex_devices._base.checks import check_bool, check_int, wrong_value
from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.rich_console import rich_console
from artifex_devices._core import internal
from artifex_devices._hardware.fingerprint import machine_fingerprint
from artifex_devices.calibration.accuracy import CalibrationCheck, check_rows
from artifex_devices.calibration.measurement import measure_calibration
from artifex_devices.planner.calibration import Calibration
from artifex_devices.planner.collective import check_calibration
from artifex_devices.roofline.cache import check_cache, find_or_measure, measurement_lock, measurement_path

_ROUNDS = 10
_CHECK_ROUNDS = 3
_MAX_ROUNDS = 100
_LINES = 10  # of progress without a terminal
_JOB_NOTE = (
    "not stored: in a job of several processes each measures its share of the machine while the other processes do"
)
_SINGLE_NOTE = "one process: no links between processes to measure (mpiexec, distributed.initialize)"

_calibrations: dict[Path, Calibration] = {}  # of this process, by the path of their file


def calibrate(
    *,
    refresh: bool = False,
    rounds: int = _ROUNDS,
    cache: str | os.PathLike[str] | bool | None = None,
    progress: bool | None = None,
) -> Calibration:
    """Measures this machine's copies and collectives, fits their model, and stores it for the machine.

    Reshards of 16 KiB to 96 MiB (three times the last-level caches, if that is more) between 6 simulated devices, and
    small and large collectives of 2 and 6 devices, are timed in turn on the workers of the real devices. The fit
    minimizes the sum of squared relative errors. It takes about 10 s; its arrays need at most a third of the memory
    that the process may use (half a GB with caches of 32 MiB). Cached free memory is released.

    In a job of several processes (`distributed.initialize`) every process must call it: all processes measure their
    shares of the machine at the same time, and then the links between them. Nothing is stored then.

    Args:
        refresh: Whether to measure now, even if a calibration is stored.
        rounds: Number of times that each case is run: more for a busy machine. A stored calibration is used if it had
            at least as many; otherwise it is measured again and replaced. With fewer than 3 a busy machine cannot be
            detected.
        cache: As for `measure_roofline`.
        progress: Whether to show a progress bar on standard error. By default it is shown on a terminal if rich is
            installed.

    Returns:
        A Calibration, for `plan_reshard(calibration=)`, `plan_collective(calibration=)` and
        `cluster.this_machine(calibration=)`.

    Raises:
        ValueError: `rounds` is below 1 or above 100, or `cache` is not a path.
        TypeError: An argument is of the wrong type.
        MemoryError: A sixteenth of the memory that the process may use is less than 8 MiB.
        KeyboardInterrupt: At Ctrl-C, within one measured call.

    Example:
        >>> from artifex_devices.calibration import calibrate
        >>> found = calibrate(rounds=1, cache=False)
        >>> found.rates["memory"] > 1e8, found.conditions.workers >= 1
        (True, True)
    """
    _check_common("calibrate", rounds, _ROUNDS, progress)
    check_bool("calibrate", "refresh", refresh, "leave it out")
    check_cache("calibrate", cache)
    fingerprint = {
        **machine_fingerprint(),
        "measured": "calibration",
        "copy_isa": internal.copy_isa(),
        "parallel_copy_bytes": internal.config_read("parallel_copy_bytes"),
    }
    in_job = _is_in_job()

    def measure() -> Calibration:
        with progress_on("calibrate", progress) as bar:
            found = measure_calibration(rounds, bar.step)
        if not in_job:
            return found
        from artifex_devices.calibration.processes import measure_processes

        return dataclasses.replace(found, processes=measure_processes(found.conditions.array_bytes))

    def why_unfit(found: Calibration) -> str:
        known = found.conditions.rounds
        return "" if known >= rounds else f"it was measured with rounds={known}, not {rounds}"

    return find_or_measure(
        _calibrations,
        (None, _JOB_NOTE) if in_job else measurement_path(cache, fingerprint, "calibration"),
        fingerprint,
        Calibration.from_dict,
        measure,
        refresh=refresh,
        notes=() if in_job else (_SINGLE_NOTE,),
        why_unfit=why_unfit,
    )


def check(
    calibration: Calibration | None = None,
    *,
    rounds: int = _CHECK_ROUNDS,
    most_bytes: int = 256 << 20,
    progress: bool | None = None,
) -> CalibrationCheck:
    """Predicts a table of reshards and collectives, measures them, and reports the errors of the predictions.

    Calibrations are not fitted to any of the rows: they have 4 and 8 simulated devices, other shapes and other sizes,
    1 to 256 MiB. It takes about 20 s.

    Args:
        calibration: Calibration that makes the predictions; None means `calibrate()`.
        rounds: Number of times that each row is run, with 3 repeats each.
        most_bytes: Size of the largest array, in bytes; arrays above a sixteenth of the memory that the process may use
            are left out too.
        progress: As for `calibrate`.

    Returns:
        A CalibrationCheck: its rows, and `median_error()` of the rows of 64 MiB and more; `print` shows a table.

    Raises:
        ValueError: A number is out of range.
        TypeError: An argument is of the wrong type.
        KeyboardInterrupt: At Ctrl-C.

    Example:
        >>> from artifex_devices import calibration
        >>> found = calibration.calibrate(rounds=1, cache=False)
        >>> table = calibration.check(found, rounds=1, most_bytes=1 << 20)
        >>> {row.nbytes for row in table.rows} == {1 << 20}, table.median_error() is None
        (True, True)
    """
    check_calibration("check", calibration)
    _check_common("check", rounds, _CHECK_ROUNDS, progress)
    most_bytes = check_int("check", "most_bytes", most_bytes, "write most_bytes=256 << 20")
    if most_bytes < 1 << 20:
        expected = "1 MiB (1048576) or more"
        raise wrong_value("check", "most_bytes", most_bytes, expected, "write most_bytes=256 << 20")
    found = calibrate(progress=progress) if calibration is None else calibration
    with measurement_lock(), progress_on("check", progress) as bar:
        return check_rows(found, rounds=rounds, max_bytes=most_bytes, step=bar.step)


def _is_in_job() -> bool:
    from artifex_devices.distributed import job

    membership = job.members()
    return membership is not None and len(membership[1]) > 1


def _check_common(operation: str, rounds: object, default: int, progress: object) -> None:
    check_int(operation, "rounds", rounds, f"write rounds={default}", minimum=1, maximum=_MAX_ROUNDS)
    if progress is not None:
        check_bool(operation, "progress", progress, "leave it out")


@dataclass(frozen=True)
class Progress:
    """Progress of a measurement; `step` records that the next part begins, by its name and the number of parts."""

    step: Callable[[str, int], None]


@context_manager
def progress_on(operation: str, show: bool | None, stream: TextIO | None = None) -> Generator[Progress, None, None]:
    """Shows a bar on a terminal if rich is installed; elsewhere lines if `show` is True, and nothing if it is None.

    `operation` names the bar; a `show` of False shows nothing; `stream` None means sys.stderr.
    """
    stream = sys.stderr if stream is None else stream
    is_terminal = show is not False and stream is not None and stream.isatty()
    bar = _bar(operation, stream) if is_terminal else None
    if bar is None:
        yield _lines(operation, stream) if show and stream is not None else Progress(lambda name, total: None)
        return
    with bar:
        task = bar.add_task("", total=None)
        # Drawn between the measurements so as not to disturb them.
        yield Progress(lambda name, total: bar.update(task, advance=1, total=total, description=name, refresh=True))


def _bar(operation: str, stream: TextIO | None) -> Any:
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    columns: list[Any] = [TextColumn(operation), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    columns.append(TextColumn("{task.description}"))
    return Progress(*columns, console=rich_console(file=stream), auto_refresh=False, transient=True)


def _lines(operation: str, stream: TextIO) -> Progress:
    """Prints a line for each tenth."""
    done = 0

    def step(name: str, total: int) -> None:
        nonlocal done
        done += 1
        if done * _LINES // total > (done - 1) * _LINES // total:
            print(f"{operation}: {100 * done // total} %, {name}", file=stream, flush=True)

    return Progress(step)
