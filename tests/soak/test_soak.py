# SPDX-License-Identifier: Apache-2.0
"""The soak finds bugs that are put into the library, and makes small scripts of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from soak.generator import program_of  # noqa: E402
from soak.hired import Hired  # noqa: E402
from soak.kinds import Kind  # noqa: E402

INJECT = "--inject=soak.injected"
IN_SCRIPT = "import soak.injected, runpy, sys; runpy.run_path(sys.argv[1])"


def python(*words, bug=""):
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "SOAK_BUG": bug, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)


def test_a_seed_is_a_program():
    assert json.dumps(program_of(7)) == json.dumps(program_of(7))
    assert program_of(7) != program_of(8)
    drawn = {step["kind"] for seed in range(40) for step in program_of(seed)}
    assert drawn == set(Kind.ALL)


@pytest.mark.parametrize(("bug", "seed", "steps"), [("wrong", 2, 6), ("crash", 2, 6)])
def test_a_bug_is_found_and_shrunk_to_a_script(bug, seed, steps, tmp_path):
    words = ["--programs", "1", "--seed", str(seed), "--shrinking", "600", INJECT, "--folder", str(tmp_path)]
    run = python("-m", "soak", *words, bug=bug)
    assert run.returncode == 1, run.stdout + run.stderr
    scripts = list(tmp_path.iterdir())
    assert scripts, run.stdout
    for script in scripts:
        text = script.read_text()
        assert "import soak" not in text
        assert int(text.partition(" steps made ")[2].partition(".")[0]) <= steps, text
        assert python("-c", IN_SCRIPT, str(script), bug=bug).returncode, "the script does not show the bug"
        good = python(str(script))
        assert (good.returncode, good.stdout) == (0, "nothing failed\n"), good.stderr


def test_a_hang_is_reported_with_stacks(monkeypatch):
    monkeypatch.setenv("SOAK_BUG", "hang")
    hired = Hired([INJECT])
    mesh = {"kind": "mesh", "out": "m1", "ids": [0, 1], "sizes": [2], "names": ["x"], "explicit": False}
    numbers = {"kind": "numbers", "out": "a1", "shape": [2], "dtype": "int32", "seed": 0, "style": "tame"}
    put = {"kind": "put", "out": "v1", "in": "a1", "place": {"mesh": "m1", "spec": ["x"]}}
    mapped = {"kind": "shard_map", "out": "v2", "in": "v1", "mesh": "m1", "in_spec": ["x"], "out_spec": []}
    mapped |= {"body": [["psum", ["x"]]], "executor": "cooperative"}
    failure = hired.ask([mesh, numbers, put, mapped], seconds=20)
    assert failure["class"] == "hang"
    assert "in hang" in failure["text"]
    assert hired.ask([mesh, numbers, put]) is None  # another worker goes on
    hired.stop()
