# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command prints, and how it ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import pytest
from artifex_devices.command_line import COMMANDS, main


def run(
    *words: str, environment: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, on 8 devices; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "artifex_devices", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        stdin=stdin,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(environment or {})},
        check=False,
    )


# --- Help, version, wrong words ---


def test_version_and_cmake_dir_stay_what_builds_read() -> None:
    version = run("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"{ad.__version__}\n", "")
    folder = run("--cmake-dir")
    assert (folder.returncode, folder.stdout) == (0, f"{Path(ad.__file__).parent / 'cmake'}\n")


def test_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert re.findall(r"(?m)^    (\w+) ", text) == list(COMMANDS)
    assert re.findall(r"(?m)^  (\d+) ", text) == ["0", "1", "2", "3", "130", "141"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_teaches_by_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    examples = text.partition("examples:\n")[2].partition("exit codes:")[0]
    assert f"artifex_devices {command}" in examples
    assert "exit codes: 0 " in text


def test_without_a_command_the_help_is_on_stderr() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: artifex_devices ")


@pytest.mark.parametrize("words", [["spam"], ["info", "--spam"], ["--spam"]], ids=" ".join)
def test_what_is_not_understood_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "spam" in captured.err


def test_the_package_does_not_import_the_command_line() -> None:
    script = "import sys, artifex_devices; print([n for n in sys.modules if 'command_line' in n or n == 'argparse'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- info ---

INFO = """\
🔍 Artifex Device Manager
========================================
Backend: cpu
Device Type: cpu
Device Count: 8
GPU Count: 0
Memory Strategy: balanced
Memory Fraction: 0.75
Default Device: cpu:0
"""


def test_info_prints_the_documented_text() -> None:
    done = run("info")
    assert (done.returncode, done.stdout, done.stderr) == (0, INFO, "")


def test_info_without_utf8_has_no_sign_in_its_title() -> None:
    done = run("info", environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stdout, done.stderr) == (0, INFO.replace("🔍 ", ""), "")


# --- Ends ---


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "artifex_devices", "info"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_cannot_be_written_is_said() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "artifex_devices", "info"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "artifex_devices info: [Errno 28] No space left on device\n"


def test_closed_output_is_said() -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -m artifex_devices info >&-"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == "artifex_devices info: standard output is closed\n"


def test_ctrl_c_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("artifex_devices.device_manager.print_device_info", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr() == ("", "")
