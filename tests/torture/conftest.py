# SPDX-License-Identifier: Apache-2.0
"""What the library promises when things go wrong; each test is a process of its own with a time-out.

`own_process(body, ...)` runs a function of a test module there. A process that hangs shows where its threads stand.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parent / "runner.py"
TIMEOUT_S = 100  # of a process, on a machine that does much else; within the 120 s of pytest-timeout


@pytest.fixture
def own_process(request):
    """own_process(body, *words) runs `body(*words)` in a new process with 8 devices; it must end well and be silent.

    Options: `code`, the exit status that it must have; `interrupt`: when its first line is there, it gets Ctrl-C, and
    must end in 30 s; `environment`, more variables; `folder`, where it runs; `stderr`, a line of
    standard error, which notes of the exception may follow. Returns its lines of standard output.
    """

    def run(body, *words, code=0, interrupt=False, environment=None, folder=None, stderr=""):
        command = [sys.executable, "-X", "dev", "-W", "error", str(RUNNER), str(request.path), body.__name__]
        process = subprocess.Popen(
            [*command, str(TIMEOUT_S - 10), *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "JAX_NUM_CPU_DEVICES": "8", "PYTHONFAULTHANDLER": "1", **(environment or {})},
        )
        first = ""
        try:
            if interrupt:
                first = process.stdout.readline()
                process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30 if interrupt else TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        report = f"{body.__name__}{words} ended with {process.returncode}\n{first}{output}\n{errors}"
        assert process.returncode == code, report
        assert stderr in errors.splitlines() if stderr else not errors, report
        return (first + output).splitlines()

    return run
