# SPDX-License-Identifier: Apache-2.0
"""Where we differ from JAX between processes, on purpose: a row fails when either library stops doing as written."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="jax is not installed: nothing to compare with")

SCRIPT = Path(__file__).resolve().parent / "process_answers.py"
DROPPED = ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
X = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]


@dataclass(frozen=True)
class Answers:
    """What processes 0 and 1 answer: an exception class, or a value."""

    jax: tuple[Any, Any]
    ours: tuple[Any, Any]


def in_each(answer):
    return (answer, answer)


ROWS = {
    "ids": Answers(in_each([0, 1, 2048, 2049]), in_each([0, 1, 2, 3])),
    "local_hardware_id": Answers(([0, 1, None, None], [None, None, 0, 1]), in_each([0, 1, 0, 1])),
    "an Array to the devices of one process": Answers((NotImplementedError, ValueError), ([X[:2], X[2:]], [])),
    "an Array to one device": Answers(in_each(ValueError), ([], [X])),
    "values that differ": Answers(in_each(AssertionError), in_each(ValueError)),
}
ALIKE = {
    "start of a copy to the host": in_each(True),
    "parts here after that": ([[X[0]], [X[1]]], [[X[2]], [X[3]]]),
    "the whole after that": in_each(RuntimeError),
    "a product with an uncommitted Array": tuple(
        [[[2 * value for value in X[row]]] for row in rows] for rows in ((0, 1), (2, 3))
    ),
    "an Array to other shards on the same devices": tuple(
        [[[row[column]] for row in X] for column in columns] for columns in ((0, 1), (2, 3))
    ),
}


def answers_of(commands, seconds=45):
    """Returns what the processes print, by the number of the process.

    Raises:
        AssertionError: one process failed, or they did not end in time; the others are killed.
    """
    environment = {key: value for key, value in os.environ.items() if key not in DROPPED}
    environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with contextlib.ExitStack() as stack:
        written = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in commands]
        running = [
            subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
            for command, file in zip(commands, written, strict=True)
        ]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = [process.poll() for process in running]
            if None not in ended or any(ended):
                break
            time.sleep(0.02)
        for process in running:
            process.kill()
            process.wait()
        outputs = [(file.seek(0), file.read())[1] for file in written]
    assert ended == [0] * len(commands), (ended, outputs)
    lines = [json.loads(line) for output in outputs for line in output.splitlines() if line.startswith("{")]
    return {line["process"]: line["answers"] for line in lines}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def jax_answers():
    def answers():
        port = free_port()
        return answers_of([[sys.executable, str(SCRIPT), "jax", str(rank), port] for rank in range(2)])

    try:
        return answers()
    except AssertionError:  # the port may be taken by others before JAX listens there: process 1 then waits for minutes
        return answers()


@pytest.fixture(scope="module")
def our_answers():
    mpi4py = pytest.importorskip("mpi4py", reason="there is no mpi4py in this environment")
    prefix = Path(mpi4py.__file__).parents[4]  # mpi4py finds the MPI of its own environment only
    python = prefix / "bin" / "python"
    mpiexec = prefix / "bin" / "mpiexec"
    found = str(mpiexec) if mpiexec.exists() else shutil.which("mpiexec")
    if found is None or not python.exists():
        pytest.skip("there is no mpiexec, beside mpi4py or on the PATH")
    return answers_of([[found, "-n", "2", str(python), str(SCRIPT), "ours"]])


def check(answers, name, expected):
    for process, answer in enumerate(expected):
        kind, found = answers[process][name]
        if isinstance(answer, type):
            assert kind == "error", found
            assert answer.__name__ in found
        else:
            assert (kind, found) == ("value", answer)


@pytest.mark.parametrize("name", [*ROWS, *ALIKE])
def test_ours_is_as_written(our_answers, name):
    check(our_answers, name, ROWS[name].ours if name in ROWS else ALIKE[name])


@pytest.mark.parametrize("name", [*ROWS, *ALIKE])
def test_jax_is_as_written(jax_answers, name):
    check(jax_answers, name, ROWS[name].jax if name in ROWS else ALIKE[name])


def test_every_question_has_a_row(jax_answers):
    assert set(jax_answers[0]) == set(jax_answers[1]) == {*ROWS, *ALIKE}
