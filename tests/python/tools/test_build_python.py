# SPDX-License-Identifier: Apache-2.0
"""tools/build_python.sh: an interpreter is built once, and its absence has a reason."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"


@pytest.fixture
def build(tmp_path):
    """build(version): exit code, output and errors of the tool in a folder where no package has sources."""
    tools, commands = tmp_path / "tools", tmp_path / "commands"
    tools.mkdir()
    commands.mkdir()
    shutil.copy(TOOLS / "build_python.sh", tools)
    for path, text in ((commands / "apt-get", "exit 0"), (tools / "debian_source.sh", 'echo "$3 has no $1"; exit 1')):
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(version):
        done = subprocess.run(
            [tools / "build_python.sh", version],
            env={**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_without_sources_it_fails_and_names_the_log(build, tmp_path):
    log = tmp_path / "build/pythons/3.14t.log"
    assert build("3.14t") == (
        1,
        "",
        f"build_python: no sources of Python 3.14 in Debian's suites up to sid (see {log})\n",
    )
    assert log.read_text(encoding="utf-8") == "sid has no python3.14\n"


def test_a_second_call_prints_the_interpreter_at_once(build, tmp_path):
    prefix = tmp_path / "build/pythons/3.14t"
    prefix.mkdir(parents=True)
    (prefix / "LICENSE").touch()
    assert build("3.14t") == (0, f"{prefix}/bin/python3.14t\n", "")


@pytest.mark.parametrize("version", ["", "3", "3.14.1", "python3.14", "3.14-t"])
def test_a_version_has_two_numbers(build, version):
    code, output, errors = build(version)
    assert (code, output) == (1, "")
    assert errors == f"build_python: the version is '{version}'; expected one such as 3.14 or 3.14t\n"
