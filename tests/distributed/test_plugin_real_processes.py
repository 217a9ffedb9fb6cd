# SPDX-License-Identifier: Apache-2.0
"""The mark `artifex_processes` of the pytest plugin with processes that mpiexec starts."""

import re
import subprocess
import sys

import pytest
from launching import environment_of, find_mpiexec

pytestmark = pytest.mark.real_processes

TESTS = """
import os
import artifex_devices as ad, numpy as np, pytest
from artifex_devices import distributed, multihost_utils

@pytest.mark.artifex_processes(2, 3, devices=1)
@pytest.mark.parametrize("value", [5])
def test_passes(artifex_processes, value):
    assert distributed.is_initialized()
    assert (ad.process_count(), ad.device_count()) == (artifex_processes, artifex_processes)
    pids = multihost_utils.process_allgather(os.getpid())
    assert len(set(pids.tolist())) == artifex_processes

@pytest.mark.artifex_processes(2)
def test_fails():
    print("before", ad.process_index())
    if ad.process_index() == 1:
        raise ValueError("boom")
    multihost_utils.sync_global_devices("here")
"""


def test_marked_tests_run_under_mpiexec(tmp_path):
    find_mpiexec()
    (tmp_path / "test_jobs.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--artifex-real-processes",
        "-v",
        "test_jobs.py",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment_of(None, {}), capture_output=True, text=True, timeout=120, check=False
    )
    text = done.stdout
    assert re.findall(r"^test_jobs\.py::(\S+) (\w+)", text, re.MULTILINE) == [
        ("test_passes[2-processes-5]", "PASSED"),
        ("test_passes[3-processes-5]", "PASSED"),
        ("test_fails[2-processes]", "FAILED"),
    ], text
    assert "--- process 1\n" in text
    assert re.search("E +ValueError: boom", text)
    assert "CollectiveError: process 1 (pid " in text
    assert "--- process 0\nbefore 0\n--- process 1\nbefore 1\n" in text
