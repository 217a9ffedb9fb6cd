# SPDX-License-Identifier: Apache-2.0
"""The scenarios of docs/reliability.md behave as promised here, and the page shows the recorded results."""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "beside_jax"
sys.path.insert(0, str(HERE))

from catalogue import GROUPS, SCENARIOS  # noqa: E402
from compare import run_scenario  # noqa: E402


@pytest.mark.parametrize("name", SCENARIOS)
def test_our_outcome_is_as_expected(name):
    scenario = SCENARIOS[name]
    found = run_scenario("ours", dataclasses.replace(scenario, runs=min(scenario.runs, 2)))
    assert found["good"], f"{scenario.title}: {found}; expected {scenario.should}"


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("hangs", r"hangs \(killed after 2 s\)"),
        ("aborts", "died by SIGABRT"),
        ("returns_a_wrong_value", "wrong: 2 instead of 1"),
        ("aborts_at_the_end", "the work is done; then the process died by SIGABRT"),
        ("breaks_what_follows", "ValueError: no; then good calls fail: AttributeError: .*"),
        ("prints", "ok; then it prints: loud"),
    ],
)
def test_bad_outcomes_are_detected(name, outcome, tmp_path):
    """Without this, a broken rule could accept every row."""
    for file in HERE.glob("*.py"):
        shutil.copy(file, tmp_path)
    (tmp_path / "catalogue.py").write_text(BROKEN, encoding="utf-8")
    code = f"""if True:
        import re, sys
        sys.path.insert(0, {str(HERE.parents[2] / "bench")!r})
        from catalogue import SCENARIOS
        from compare import run_scenario
        found = run_scenario("ours", SCENARIOS[{name!r}])
        assert not found["good"] and re.fullmatch({outcome!r}, found["outcome"]), found
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


BROKEN = """
import atexit, os, sys, time
from scenario import SCENARIOS, Scenario, same, scenario

@scenario("", "", "", timeout_s=2)
def hangs(b): time.sleep(60)

@scenario("", "", "")
def aborts(b): os.abort()

@scenario("", "", "")
def returns_a_wrong_value(b): same(2, 1)

@scenario("", "", "")
def aborts_at_the_end(b): atexit.register(os.abort)

@scenario("", "", "", "ValueError: no")
def breaks_what_follows(b):
    b.jax = None
    raise ValueError("no")

@scenario("", "", "", silent=True)
def prints(b): print("loud", file=sys.stderr)
"""


def page(*arguments):
    command = [sys.executable, str(HERE / "page.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_the_page_is_what_the_results_say():
    assert page("--check") == (0, "", ""), "python tests/torture/beside_jax/page.py, and commit"


def test_a_page_edited_by_hand_is_reported(tmp_path):
    assert page("--docs", tmp_path) == (0, "", "")
    text = (tmp_path / "reliability.md").read_text(encoding="utf-8")
    (tmp_path / "reliability.md").write_text(text.replace("SIGABRT", "grace"), encoding="utf-8")
    message = "reliability page: docs/reliability.md differs from the results\n"
    assert page("--check", "--docs", tmp_path) == (1, message, "")


def test_the_results_are_all_there_and_ours_are_as_they_should_be():
    rows = json.loads((HERE / "results.json").read_text(encoding="utf-8"))["rows"]
    assert list(rows) == list(SCENARIOS)
    assert {each.group for each in SCENARIOS.values()} == set(GROUPS)
    assert [name for name, row in rows.items() if not row["ours"]["good"]] == []
    for name, row in rows.items():
        for found in row.values():
            assert found["good"] == (re.fullmatch(SCENARIOS[name].good, found["outcome"], re.DOTALL) is not None)
