# SPDX-License-Identifier: Apache-2.0
"""Tests in several real processes: `processes(3, body)` runs `body()` in each of them, started by mpiexec.

A body is a function of a test module; each process imports it again, after `distributed.initialize()`. What it
returns comes back by pickle. Each process must import the artifex_devices of the tests, of a wheel or of a checkout.
A job that hangs is ended, and the test shows where each process stood.

With `--simulated` the bodies run in simulated processes of this one, and the tests with the mark `real_processes`
are left out.
"""

import itertools
import os
import pickle
import signal
import subprocess
import sys
import time

import pytest
from cuda_stand_in import build, variables_of
from launching import HERE, Job, environment_of, find_mpiexec, package_file, stack_of


def pytest_addoption(parser):
    parser.addoption("--simulated", action="store_true", help="run the bodies in simulated processes")


def pytest_configure(config):
    config.addinivalue_line("markers", "real_processes: the test needs processes of the system")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--simulated"):
        left_out = [each for each in items if each.get_closest_marker("real_processes")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in left_out]


@pytest.fixture(scope="session")
def cuda_library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def processes(request, tmp_path):
    """processes(count, body, *arguments) runs `body(*arguments)` in so many processes and returns the Job.

    Options: `timeout` in seconds; `devices`, how many each process has; `environment`, more variables; `flags` of
    mpiexec; `before`, a command that starts mpiexec; `initialize=False` leaves `distributed.initialize` to the body;
    `shielded=True` hides the death of a process from the launcher, which would end the others at once;
    `interrupt_after`, a function after which the launcher gets Ctrl-C; `platform="gpu"`: the devices are GPUs of the
    stand-in for the CUDA driver, or emulated ones in simulated processes.
    """
    if request.config.getoption("--simulated"):
        started = itertools.count()

        def simulate(count, body, *arguments, devices=2, timeout=60, shielded=False, platform="cpu"):
            return Job.simulated(body, arguments, count, devices, next(started), platform)

        return simulate

    mpiexec = find_mpiexec()
    started = []

    def run(
        count,
        body,
        *arguments,
        timeout=60,
        devices=2,
        environment=None,
        flags=(),
        before=(),
        initialize=True,
        shielded=False,
        interrupt_after=None,
        platform="cpu",
    ):
        if platform == "gpu":
            library = request.getfixturevalue("cuda_library")
            environment = {**variables_of(library, count * devices), **(environment or {})}
        folder = tmp_path / f"job{len(started)}"
        folder.mkdir()
        started.append(folder)
        (folder / "call").write_bytes(
            pickle.dumps(
                {
                    "package": package_file(),
                    "path": request.path,
                    "body": body.__name__,
                    "arguments": arguments,
                    "timeout": timeout,
                    "initialize": initialize,
                }
            )
        )
        command = [*before, mpiexec, *flags, "-n", str(count), sys.executable]
        if shielded:
            command.append(str(HERE / "shield.py"))
            command += [str(folder), str(count), sys.executable]
        command += [str(HERE / "runner.py"), str(folder)]
        begin = time.monotonic()
        job = subprocess.Popen(
            command,
            env=environment_of(devices, {"ARTIFEX_FLIGHT_RECORD_DIR": str(tmp_path / "flight"), **(environment or {})}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        timed_out = False
        try:
            if interrupt_after is not None:
                interrupt_after(folder)
                job.send_signal(signal.SIGINT)
            output, _ = job.communicate(timeout=timeout + 10)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(job.pid, signal.SIGKILL)
            output, _ = job.communicate()
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.communicate()
        timed_out = timed_out or any(stack_of(folder, n) for n in range(count))
        return Job(folder, count, output, job.returncode, time.monotonic() - begin, timed_out)

    return run
