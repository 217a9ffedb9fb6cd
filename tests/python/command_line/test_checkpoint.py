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


def test_convert_changes_the_number_of_files(saved, tmp_path, capsys):
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    assert main(["checkpoint", "convert", str(saved), str(parts), "--files", "3"]) == 0
    found = checkpoint.metadata(parts)
    assert [part.shape for part in found.arrays["w"].parts] == [(3, 2), (3, 2), (2, 2)]
    assert found.process_count == 3
    assert main(["checkpoint", "convert", str(parts), str(whole)]) == 0
    file = "shard-00001-model-00001-of-00001.safetensors"
    assert (whole / file).read_bytes() == (saved / file).read_bytes()
    assert checkpoint.restore(whole, verify=True)["step"] == 10
    assert main(["checkpoint", "convert", str(parts), str(whole)]) == 2
    assert "pass overwrite=True" in capsys.readouterr().err
