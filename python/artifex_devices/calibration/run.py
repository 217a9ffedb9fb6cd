# SPDX-License-Identifier: Apache-2.0
"""Seconds of this machine's own CPU devices: measured once, fitted to a model, and checked against what was not fitted.

See docs/guide/calibration.md for the model, and how far to trust it.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._hardware.fingerprint import machine_fingerprint
from artifex_devices.calibration.accuracy import CalibrationCheck, CheckedRow, check_rows
from artifex_devices.calibration.measurement import measure_calibration
from artifex_devices.calibration.progress import progress_on
from artifex_devices.planner.calibration_values import (
    TERMS,
    Calibration,
    CalibrationConditions,
    Link,
    ProcessLink,
    Sample,
)
from artifex_devices.roofline.cache import (
    cache_directory,
    check_cache,
    file_of,
    read_measurement,
    write_measurement,
)
from artifex_devices.roofline.measurement import measuring

__all__ = [
    "TERMS",
    "Calibration",
    "CalibrationCheck",
    "CalibrationConditions",
    "CheckedRow",
    "Link",
    "ProcessLink",
    "Sample",
    "calibrate",
    "check",
]

_ROUNDS = 10
_CHECK_ROUNDS = 3
_MOST_ROUNDS = 100
_PREFIX = "calibration"
_JOB_NOTE = "not kept: in a job of several processes each measures its share of the machine while the others do"

_found: dict[str, Calibration] = {}  # of this process, by the name of their file


def calibrate(
    *,
    refresh: bool = False,
    rounds: int = _ROUNDS,
    cache: str | os.PathLike[str] | bool | None = None,
    progress: bool | None = None,
) -> Calibration:
    """Measures this machine's copies and collectives, fits their model, and keeps it for the machine.

    Reshards of 16 KiB to 96 MiB (three times the last-level caches, if that is more) between 6 simulated devices, and
    small and large collectives of 2 and 6 of them, are timed in turn on the workers of the real devices. The
    coefficients are those with the least sum of squared relative errors. Takes some 10 s; its arrays at most a third
    of the memory that the process may use (half a GB with caches of 32 MiB). Freed memory that is kept is given back.

    In a job of several processes (`distributed.initialize`) all of them call it: each measures its own share of the
    machine while the others do, and then all of them what lies between them. Nothing is kept then.

    Args:
        refresh: Measure now, whatever is kept.
        rounds: How often each case has its turn: more of them for a machine that is not quiet. What is kept serves
            where it had as many at least; else it is measured anew and replaced. With fewer than 3 it cannot be known
            whether the machine was busy.
        cache: As of `measure_roofline`: a directory, True for the user's, False to keep nothing and measure now; None
            is what the environment variable ARTIFEX_DEVICES_CACHE says, else the user's.
        progress: A progress bar on standard error; None: where that is a terminal and rich is installed.

    Returns:
        A Calibration, for `plan_reshard(calibration=)`, `plan_collective(calibration=)` and
        `cluster.this_machine(calibration=)`.

    Raises:
        ValueError: `rounds` is below 1 or above 100, or `cache` is no path.
        TypeError: An argument is of the wrong type.
        MemoryError: A sixteenth of the memory that the process may use is less than 8 MiB.
        KeyboardInterrupt: At Ctrl-C, within one call of what is measured.

    Example:
        >>> from artifex_devices.calibration import calibrate
        >>> found = calibrate(rounds=1, cache=False)
        >>> found.rates["memory"] > 1e8, found.conditions.workers >= 1
        (True, True)
    """
    _check_rounds("calibrate", rounds, _ROUNDS)
    _check_flag("calibrate", "refresh", refresh)
    _check_progress("calibrate", progress)
    check_cache("calibrate", cache)
    fingerprint = _fingerprint()
    in_job = _is_in_job()
    directory, reason = (None, _JOB_NOTE) if in_job else cache_directory(cache)
    path = file_of(directory, fingerprint, _PREFIX) if directory else None
    with measuring():
        notes = [reason] if reason else []
        if path is not None and not refresh:
            kept, why = _kept(path, fingerprint, rounds)
            if kept is not None:
                return kept
            notes += [why] if why else []
        with progress_on("calibrate", progress) as bar:
            found = measure_calibration(rounds, bar.step)
        if in_job:
            from artifex_devices.calibration.processes import measure_processes

            found = dataclasses.replace(found, processes=measure_processes(found.conditions.array_bytes))
        else:
            notes.append("one process: there is nothing between processes to measure (mpiexec, distributed.initialize)")
        if path is not None:
            notes.append(write_measurement(path, fingerprint, found))
        found = dataclasses.replace(found, notes=(*found.notes, *notes))
        if path is not None:
            _found[str(path)] = found
        return found


def check(
    calibration: Calibration | None = None,
    *,
    rounds: int = _CHECK_ROUNDS,
    most_bytes: int = 256 << 20,
    progress: bool | None = None,
) -> CalibrationCheck:
    """Predicts a table of reshards and collectives, measures them, and says how far off the predictions are.

    None of the rows is one that calibrations are fitted to: they have 4 and 8 simulated devices, other shapes and other
    sizes, 1 to 256 MiB. Takes some 20 s.

    Args:
        calibration: What predicts; None is `calibrate()`.
        rounds: How often each row has its turn, of 3 repeats each.
        most_bytes: Larger arrays are left out, and those above a sixteenth of the memory that the process may use.
        progress: As of `calibrate`.

    Returns:
        A CalibrationCheck: its rows, and `median_error()` of those of 64 MiB and more; `print` shows a table.

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
    if calibration is not None and not isinstance(calibration, Calibration):
        raise TypeError(
            f"check: calibration is {shown(calibration)} ({type(calibration).__name__}); expected a Calibration or "
            "None; give what calibrate() returns"
        )
    _check_rounds("check", rounds, _CHECK_ROUNDS)
    _check_progress("check", progress)
    if isinstance(most_bytes, bool) or not isinstance(most_bytes, int):
        raise TypeError(
            f"check: most_bytes is {shown(most_bytes)} ({type(most_bytes).__name__}); expected an int; say 256 << 20"
        )
    if most_bytes < 1 << 20:
        raise ValueError(f"check: most_bytes is {most_bytes}; expected 1 MiB (1048576) or more; say 256 << 20")
    found = calibrate(progress=progress) if calibration is None else calibration
    with measuring(), progress_on("check", progress) as bar:
        return check_rows(found, rounds=rounds, most_bytes=most_bytes, step=bar.step)


def _is_in_job() -> bool:
    from artifex_devices.distributed import job

    joined = job.members()
    return joined is not None and len(joined[1]) > 1


def _fingerprint() -> dict[str, Any]:
    return {
        **machine_fingerprint(),
        "measured": "calibration",
        "copy_isa": _core._copy_isa(),
        "parallel_copy_bytes": _core._config_read("parallel_copy_bytes"),
    }


def _kept(path: Path, fingerprint: dict[str, Any], rounds: int) -> tuple[Calibration | None, str]:
    """What is kept and had as many rounds, or None and why it is not used."""
    kept, why = _found.get(str(path)), ""
    if kept is None:
        kept, why = read_measurement(path, fingerprint, Calibration.from_dict)
        if kept is not None:
            kept = _found[str(path)] = dataclasses.replace(kept, notes=(*kept.notes, f"read from {path}"))
    if kept is None:
        return None, why
    if kept.conditions.rounds < rounds:
        return None, f"{path} is not used: it was measured with rounds={kept.conditions.rounds}, not {rounds}"
    return dataclasses.replace(kept, from_cache=True), ""


def _check_rounds(operation: str, rounds: Any, usual: int) -> None:
    if isinstance(rounds, bool) or not isinstance(rounds, int):
        raise TypeError(
            f"{operation}: rounds is {shown(rounds)} ({type(rounds).__name__}); expected an int; say rounds={usual}"
        )
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise ValueError(f"{operation}: rounds is {rounds}; expected 1 to {_MOST_ROUNDS}; say rounds={usual}")


def _check_flag(operation: str, name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"{operation}: {name} is {shown(value)} ({type(value).__name__}); expected a bool; leave it out"
        )


def _check_progress(operation: str, progress: Any) -> None:
    if progress is not None:
        _check_flag(operation, "progress", progress)
