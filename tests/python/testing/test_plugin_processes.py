# SPDX-License-Identifier: Apache-2.0
"""The mark `artifex_processes` of the pytest plugin, run by pytest itself."""

import re

import artifex_devices.multihost_utils  # pytester removes modules that a run imports first, but not their state
import artifex_devices.testing  # noqa: F401
import pytest

pytest_plugins = ["pytester"]

IMPORTS = """
import artifex_devices as ad, numpy as np, pytest
from artifex_devices import distributed, multihost_utils
"""


@pytest.fixture
def run(pytester):
    """run(text of a test file, *arguments) runs it and returns its result."""

    def run_file(text, *arguments):
        pytester.makepyfile(test_jobs=IMPORTS + text)
        return pytester.runpytest_inprocess("-p", "no:randomly", *arguments)

    return run_file


def test_a_mark_runs_a_test_with_each_number_of_processes(run):
    result = run(
        """
@pytest.mark.artifex_processes(1, 2, 4)
def test_gather(artifex_processes):
    assert (ad.process_count(), ad.local_device_count()) == (artifex_processes, 2)
    assert multihost_utils.process_allgather(ad.process_index()).tolist() == list(range(artifex_processes))

@pytest.mark.artifex_processes(3, devices=1)
class TestClass:
    @pytest.mark.parametrize("value", [5, 6])
    def test_devices(self, value, tmp_path):
        multihost_utils.assert_equal(value)
        assert ad.device_count() == 3 and tmp_path.exists()

def test_outside(): assert ad.process_count() == 1
""",
        "-v",
    )
    result.assert_outcomes(passed=6)
    assert re.findall(r"^test_jobs\.py::(\S+) PASSED", result.stdout.str(), re.MULTILINE) == [
        "test_gather[1-process]",
        "test_gather[2-processes]",
        "test_gather[4-processes]",
        "TestClass::test_devices[3-processes-5]",
        "TestClass::test_devices[3-processes-6]",
        "test_outside",
    ]


FAILING = """
@pytest.mark.artifex_processes(3)
def test_job():
    print("before", ad.process_index())
    if ad.process_index() == 1:
        raise ValueError("boom")
    multihost_utils.sync_global_devices("here")
"""


def test_failures_and_output_are_grouped_by_process(run):
    result = run(FAILING)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert re.search(r"^E +ValueError: boom$", text, re.MULTILINE)
    again = "--artifex-schedule-seed 0 or @pytest.mark.artifex_processes(3, seed=0)"
    assert f"process 1 of 3, schedule 0; run it again with {again}" in text
    for number in (0, 2):
        assert re.search(
            rf"--- process {number}\nE +artifex_devices.errors.CollectiveError: sync_global_devices: ", text
        )
    assert re.search(r"--- process 0\nbefore 0\n--- process 1\nbefore 1\n--- process 2\nbefore 2\n", text)
    report = text.partition("short test summary info")[0]  # with CI in the environment, the summary repeats errors
    assert report.count("process 1 (simulated) has failed: ValueError: boom; expected it to call the same") == 2


RACE = """
@pytest.mark.artifex_processes(2)
def test_race(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    if ad.process_index() == 0:
        (folder / "file").unlink(missing_ok=True)
    multihost_utils.sync_global_devices("start")
    if ad.process_index() == 0:
        (folder / "file").write_text("")
    assert (folder / "file").exists()
    multihost_utils.sync_global_devices("end")
"""


def test_schedules_are_explored_and_the_failing_one_is_printed(run):
    result = run(RACE, "--artifex-schedules", "50")
    result.assert_outcomes(failed=1)
    seed = re.search(r"--artifex-schedule-seed (\d+) or", result.stdout.str())[1]
    again = run(RACE, "--artifex-schedule-seed", seed)
    again.assert_outcomes(failed=1)
    assert f"schedule {seed};" in again.stdout.str()


def test_faults_of_the_mark(run):
    result = run("""
from artifex_devices.errors import CollectiveError
from artifex_devices.testing import kill

@pytest.mark.artifex_processes(2, seed=3, faults=[kill(1)])
def test_survivor():
    with pytest.raises(CollectiveError, match="ended without notice"):
        multihost_utils.sync_global_devices("here")
""")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "problem"),
    [
        (
            "artifex_processes()",
            "the mark artifex_processes has the arguments () and {}; expected numbers of processes",
        ),
        (
            "artifex_processes(0)",
            "the mark artifex_processes has the arguments (0,) and {}; expected numbers of processes",
        ),
        ("artifex_processes(2, world=3)", "has the arguments (2,) and {'world': 3}; expected numbers of processes"),
        (
            "artifex_processes(2)\n@pytest.mark.artifex_devices(2)",
            "it has the marks artifex_devices and artifex_processes; expected only one mark",
        ),
    ],
)
def test_wrong_marks_are_refused(run, mark, problem):
    result = run(f"@pytest.mark.{mark}\ndef test_it(): pass\n")
    assert problem in result.stdout.str() + result.stderr.str()


def test_a_frozen_exception_is_reported_with_the_notes(run):
    result = run("""
import dataclasses

@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int

@pytest.mark.artifex_processes(2)
def test_raises():
    raise FrozenError(7)
""")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*raise FrozenError(7)*", "*FrozenError: 7*", "*process 0 of 2, schedule 0;*"])
    result.stdout.no_fnmatch_line("*FrozenInstanceError*")
