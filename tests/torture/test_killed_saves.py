# SPDX-License-Identifier: Apache-2.0
"""Saves that are killed at random moments: the last checkpoint is always complete.

python tests/torture/test_killed_saves.py 200    more kills, by hand
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint

SHAPE = (64, 1024)


def save_forever(folder):
    """Replaces one checkpoint again and again; its arrays and its value are those of one turn."""
    mesh = ad.make_mesh((ad.device_count(),), ("x",))
    rows = ad.NamedSharding(mesh, ad.P("x"))
    turn = 0
    while True:
        tree = {str(i): ad.device_put(np.full(SHAPE, turn + i), rows) for i in range(4)}
        checkpoint.save(os.path.join(folder, "c"), {**tree, "turn": turn}, overwrite=True)
        if turn == 0:
            print("saved", flush=True)
        turn += 1


def kill_saves(folder, count, seed):
    """Kills `count` saves; returns the turn of the last checkpoint after each."""
    dice = random.Random(seed)
    turns = []
    for _ in range(count):
        process = subprocess.Popen(
            [sys.executable, __file__, "--save", folder],
            stdout=subprocess.PIPE,
            env={**os.environ, "JAX_NUM_CPU_DEVICES": "4", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            assert process.stdout.readline() == b"saved\n"
            time.sleep(dice.uniform(0.0, 0.05))  # a random moment
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        found = checkpoint.restore(os.path.join(folder, "c"), verify=True)
        for i in range(4):
            assert np.array_equal(found[str(i)], np.full(SHAPE, found["turn"] + i))
        turns.append(found["turn"])
    assert set(os.listdir(folder)) <= {"c", ".c.saving"}
    checkpoint.save(os.path.join(folder, "c"), {"turn": 0}, overwrite=True)
    assert os.listdir(folder) == ["c"]
    return turns


@pytest.mark.timeout(300)
def test_the_checkpoint_is_complete_after_each_kill(tmp_path):
    assert len(kill_saves(str(tmp_path), 20, seed=7)) == 20


@pytest.mark.timeout(120)
def test_ctrl_c_ends_a_save_and_removes_its_files(tmp_path):
    dice = random.Random(3)
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, __file__, "--save", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "JAX_NUM_CPU_DEVICES": "4", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            assert process.stdout.readline() == b"saved\n"
            time.sleep(dice.uniform(0.0, 0.05))  # a random moment
            process.send_signal(signal.SIGINT)
            _, text = process.communicate(timeout=30)
        finally:
            process.kill()
        assert process.returncode == -signal.SIGINT, text
        assert text.rstrip().splitlines()[-1].startswith(b"KeyboardInterrupt"), text
        assert os.listdir(tmp_path) == ["c"]
        assert "turn" in checkpoint.restore(tmp_path / "c", verify=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
    if sys.argv[1] == "--save":
        save_forever(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(kill_saves(folder, int(sys.argv[1]), seed=11))
