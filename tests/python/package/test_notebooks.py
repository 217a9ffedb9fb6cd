# SPDX-License-Identifier: Apache-2.0
"""The notebooks run, and what they show is what they have been committed with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "run_notebooks.py"
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def run(*arguments):
    return subprocess.run(
        [sys.executable, TOOL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=110,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


def notebook(*cells):
    made = [
        {"cell_type": "code", "execution_count": None, "id": f"c{i}", "metadata": {}, "outputs": [], "source": [source]}
        for i, source in enumerate(cells)
    ]
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == [
        "find_a_sharding_mistake",
        "interrupt_and_resume",
        "plan_70b_on_v5e_and_h100",
        "plan_7b_on_v5e_256",
        "sharded_arrays_and_shard_map",
        "ten_minutes",
        "train_data_and_tensor_parallel",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_outputs_are_what_runs(path):
    done = run(path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_tool_finds_what_is_stale_and_what_fails(tmp_path):
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps(notebook("print('a')\n[1, 2]", "3;", "x = 4")), encoding="utf-8")
    done = run(path)
    assert done.returncode == 1
    assert "its outputs are not what runs" in done.stdout
    assert run("--write", path).returncode == 0
    first, second, third = (cell["outputs"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    assert [output["output_type"] for output in first] == ["stream", "execute_result"]
    assert first[0]["text"] == ["a\n"]
    assert first[1]["data"] == {"text/plain": ["[1, 2]"]}
    assert (second, third) == ([], [])
    assert run(path).returncode == 0
    path.write_text(json.dumps(notebook("1 / 0")), encoding="utf-8")
    done = run(path)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "one.ipynb, cell 0" in done.stderr
