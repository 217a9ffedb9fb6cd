# SPDX-License-Identifier: Apache-2.0
"""calibrate() and its command: arguments, progress, interrupts and threads."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
import threading
from types import MappingProxyType

import artifex_devices as ad
import pytest
from artifex_devices import calibration, command_line
from artifex_devices.calibration import Sample
from artifex_devices.calibration import measurement as calibration_measurement
from artifex_devices.calibration import run as calibration_run
from artifex_devices.calibration.accuracy import CalibrationCheck
from artifex_devices.calibration.run import progress_on
from artifex_devices.roofline.cache import measurement_lock
from calibrations import MIB, made, rows_of


def is_held_elsewhere(lock):
    """Whether a thread that comes now would have to wait."""
    got = []
    thread = threading.Thread(target=lambda: got.append(lock.acquire(blocking=False) and (lock.release() or True)))
    thread.start()
    thread.join()
    return not got[0]


def test_bad_arguments_are_named():
    for call, error, message in (
        (lambda: calibration.calibrate(rounds=0), ValueError, r"^calibrate: rounds is 0; expected 1 to 100"),
        (lambda: calibration.calibrate(rounds=1.5), TypeError, r"^calibrate: rounds is 1.5 \(float\)"),
        (lambda: calibration.calibrate(refresh=1), TypeError, r"^calibrate: refresh is 1 \(int\); expected True"),
        (lambda: calibration.calibrate(progress="a"), TypeError, r"^calibrate: progress is 'a' \(str\)"),
        (lambda: calibration.calibrate(cache=3), TypeError, r"^calibrate: cache is 3 \(int\)"),
        (lambda: calibration.calibrate(cache=""), ValueError, r"^calibrate: cache is ''; expected the path"),
        (lambda: calibration.check(3), TypeError, r"^check: calibration is 3 \(int\); expected a Calibration"),
        (lambda: calibration.check(made(), rounds=101), ValueError, r"^check: rounds is 101; .* write rounds=3$"),
        (lambda: calibration.calibrate(rounds=-1), ValueError, r"^calibrate: rounds is -1; .* write rounds=10$"),
        (lambda: calibration.check(made(), most_bytes=1), ValueError, r"^check: most_bytes is 1; expected 1 MiB"),
        (lambda: calibration.check(made(), most_bytes=1e9), TypeError, r"^check: most_bytes is 1000000000.0 \(float\)"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_ctrl_c_leaves_everything_as_it_was(monkeypatch, tmp_path):
    before = ad.devices()

    def step(name, total):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibration_measurement, "_DEFAULT_ARRAY", 8 * MIB)
    monkeypatch.setattr(calibration_measurement, "_CACHE_MULTIPLE", 0)
    with pytest.raises(KeyboardInterrupt):
        calibration_measurement.measure_calibration(1, step)
    assert ad.devices() == before
    assert gc.isenabled()
    monkeypatch.setattr(calibration_run, "measure_calibration", lambda rounds, _: step("", 1))
    with pytest.raises(KeyboardInterrupt):
        calibration.calibrate(cache=tmp_path)
    assert not is_held_elsewhere(measurement_lock())
    assert list(tmp_path.iterdir()) == []


def test_progress_is_printed_in_lines_without_a_terminal():
    stream = io.StringIO()
    with progress_on("calibrate", True, stream) as bar:
        for i in range(20):
            bar.step(f"part {i}", 20)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == "calibrate: 100 %, part 19"
    for shown in (None, False):
        silent = io.StringIO()
        with progress_on("calibrate", shown, silent) as bar:
            bar.step("a part", 1)
        assert silent.getvalue() == ""


def test_progress_is_a_bar_on_a_terminal():
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with progress_on("calibrate", None, stream) as bar:
        bar.step("a gather", 2)
    assert "a gather" in stream.getvalue()
    assert "1/2" in stream.getvalue()


def test_the_command(stand_in, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", str(tmp_path))
    assert command_line.main(["calibrate", "--rounds", "12"]) == 0
    assert stand_in == [12]
    assert capsys.readouterr().out.startswith("a processor, 2 workers")
    assert command_line.main(["calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["from_cache"] is True

    def checked(error):
        rows = rows_of(("reshard", 64 * MIB, error))
        return lambda found, **_: CalibrationCheck(found, rows, "2026-11-22T15:00:00+00:00")

    monkeypatch.setattr(calibration, "check", checked(0.19))
    assert command_line.main(["calibrate", "--check"]) == 0
    assert "median error of all: 19.0 % from 64.0 MiB on" in capsys.readouterr().out
    monkeypatch.setattr(calibration, "check", checked(-0.21))
    assert command_line.main(["calibrate", "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["median_error_large"] == pytest.approx(0.21)
    noisy = Sample("a gather", MappingProxyType({"calls": 1.0}), 1e-6, 1e-6, 12, 1e-6)
    monkeypatch.setattr(calibration_run, "measure_calibration", lambda rounds, step: made(samples=(noisy,)))
    assert command_line.main(["calibrate", "--refresh"]) == 1
    capsys.readouterr()
    for wrong in (["--rounds", "0"], ["--rounds", "a"], ["--never"]):
        with pytest.raises(SystemExit) as ended:
            command_line.main(["calibrate", *wrong])
        assert ended.value.code == 2


def test_two_threads_measure_one_after_the_other(monkeypatch, fresh):
    inside = []

    def measure(rounds, step):
        inside.append(is_held_elsewhere(measurement_lock()))
        return made()

    monkeypatch.setattr(calibration_run, "measure_calibration", measure)
    threads = [threading.Thread(target=lambda: calibration.calibrate(cache=False)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == [True, True]


def test_importing_the_package_does_not_import_it():
    code = "import sys, artifex_devices; print([n for n in sys.modules if 'calibration' in n])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=dict(os.environ), check=True
    )
    assert done.stdout.strip() == "[]"
