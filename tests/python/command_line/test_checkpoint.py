# SPDX-License-Identifier: Apache-2.0
"""artifex_devices checkpoint."""

import json

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.command_line import main


@pytest.fixture
def saved(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": np.ones((8, 2), np.float32), "step": 10})
    return tmp_path / "c"


def test_info_is_a_table(saved, capsys):
    assert main(["checkpoint", "info", str(saved)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(saved),
        "name  dtype    shape   parts  bytes",
        "w     float32  (8, 2)  1      64 bytes",
        "step  int      10",
        "1 arrays, 64 bytes in 1 files",
    ]


def test_info_as_json(saved, capsys):
    assert main(["checkpoint", "info", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arrays"]["w"]["shape"] == [8, 2]


def test_a_path_without_a_checkpoint_is_an_invalid_argument(tmp_path, capsys):
    assert main(["checkpoint", "info", str(tmp_path / "none")]) == 2
    assert "does not exist; expected a checkpoint or a safetensors file" in capsys.readouterr().err
