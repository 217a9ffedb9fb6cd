# SPDX-License-Identifier: Apache-2.0
"""The examples: training learns on any mesh, gives what one device gives, and is measured for its batch size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from artifex_devices import checkpoint, tree

EXAMPLES = Path(__file__).parents[3] / "examples"


def train(mesh):
    return run("digits_train.py", "--mesh", mesh)


def run(example, *arguments):
    return subprocess.run(
        [sys.executable, EXAMPLES / example, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


@pytest.mark.parametrize("mesh", ["data=8", "data=4,model=2"])
def test_training_learns_and_agrees_with_one_device(mesh):
    done = train(mesh)
    assert done.returncode == 0, done.stdout + done.stderr  # else it says what is not as expected
    assert "Test accuracy 9" in done.stdout


@pytest.mark.parametrize("mesh", ["data=8,model=2", "data=0", "model=2", "eight"])
def test_meshes_that_cannot_be_made(mesh):
    done = train(mesh)
    assert done.returncode == 1
    assert done.stderr.startswith("--mesh: expected")


def test_an_interrupted_training_goes_on_with_the_same_bits(tmp_path):
    whole = run("digits_train.py", "--epochs", "9", "--checkpoint", tmp_path / "whole")
    assert sorted(os.listdir(tmp_path / "whole")) == ["100", "200"], whole.stdout + whole.stderr
    run("digits_train.py", "--epochs", "5", "--checkpoint", tmp_path / "parts")
    assert os.listdir(tmp_path / "parts") == ["100"]
    run("digits_train.py", "--epochs", "9", "--checkpoint", tmp_path / "parts")
    first, second = (checkpoint.restore(tmp_path / name / "200") for name in ("whole", "parts"))
    assert tree.structure(first) == tree.structure(second)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(tree.leaves(first), tree.leaves(second), strict=True))


def test_the_batch_size_of_the_training_step_is_measured():
    done = run("digits_batch_size.py", "--seconds", "2", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    outcomes = {probe["batch_size"]: probe["outcome"] for probe in found["evidence"]}
    assert outcomes[8] == "measured"
    assert all(size % 8 == 0 for size in outcomes)
    assert found["recommended_batch_size"] in range(8, max(outcomes) + 1, 8)
    device = next(fit for fit in found["memory"] if fit["memory"] == "cpu:0")
    assert device["bytes_per_example"] == (64 * 8 + 8) / 8  # 64 pixels and a label; each device has an eighth
    assert done.stderr.startswith("measure_batch_size: batch 8: ")
