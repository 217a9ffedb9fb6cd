# SPDX-License-Identifier: Apache-2.0
"""The training in examples/ learns on any mesh, gives what one device gives, and says what is wrong with --mesh."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def train(mesh):
    return subprocess.run(
        [sys.executable, EXAMPLES / "digits_train.py", "--mesh", mesh],
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
