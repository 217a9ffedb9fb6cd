# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several ranks of torch.distributed.checkpoint, and ours in several ranks of it."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.testing import run_processes

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.timeout(300),
]
SHAPE = (7, 6, 5)
NAMES = ["columns", "copies", "grid", "half", "last", "plain", "replicated", "rows"]
DTYPES = {"half": np.dtype(ml_dtypes.bfloat16), "last": np.dtype(np.int32)}
SPECS = [(), ("x",), ("y",), (None, "x"), (None, "y"), ("x", "y"), (None, None, ("y", "x")), (("x", "y"),)]


def value(name):
    numbers = np.arange(np.prod(SHAPE)).reshape(SHAPE) + len(name)
    return numbers.astype(DTYPES.get(name, np.float32))


def shardings(turn):
    """A sharding for each name, in turn."""
    mesh = ad.Mesh(np.array(ad.devices()).reshape(-1, 2), ("x", "y"))
    specs = [SPECS[(i + turn) % len(SPECS)] for i in range(len(NAMES))]
    return {
        name: ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short") for name, spec in zip(NAMES, specs, strict=True)
    }


def run_ranks(action, count, folder, tmp_path):
    """Runs a rank in each of `count` processes; returns what each printed."""
    program = str(Path(__file__).with_name("torch_ranks.py"))
    arguments = [str(count), str(folder), str(tmp_path / f"meeting-{action}")]
    ranks = [
        subprocess.Popen(
            [sys.executable, program, action, str(rank), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for rank in range(count)
    ]
    try:
        texts = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * count, b"\n".join(error for _, error in texts).decode()
    return [json.loads(text.splitlines()[-1]) for text, _ in texts]


@pytest.mark.parametrize(("ours", "ranks"), [(1, 4), (2, 3), (3, 2), (4, 4)])
def test_ranks_of_torch_load_what_our_processes_saved(ours, ranks, tmp_path):
    folder = tmp_path / "c"

    def save():
        tree = {
            name: ad.make_array_from_callback(SHAPE, sharding, value(name).__getitem__)
            for name, sharding in shardings(turn=ours).items()
        }
        checkpoint.save(folder, tree)

    run_processes(save, ours)
    assert len(list(folder.glob("shard-*-model-00001-of-*.safetensors"))) == ours
    everything = [*sorted(set(NAMES) - {"plain"}), "plain"]
    assert run_ranks("load", ranks, folder, tmp_path) == [everything] * ranks


@pytest.mark.parametrize(("ranks", "ours"), [(2, 3), (3, 4), (4, 2), (4, 1)])
def test_our_processes_restore_what_ranks_of_torch_saved(ranks, ours, tmp_path):
    folder = tmp_path / "c"
    run_ranks("save", ranks, folder, tmp_path)
    assert len(list(folder.glob("shard-*.safetensors"))) == ranks

    def restore(turn):
        like = shardings(turn)
        found = checkpoint.restore(folder, like)
        for name in NAMES:
            assert found[name].dtype == DTYPES.get(name, np.float32)
            for shard in found[name].addressable_shards:
                assert np.array_equal(np.asarray(shard.data), value(name)[shard.index]), (name, turn)
        return len(found)

    for turn in range(3):
        assert run_processes(lambda turn=turn: restore(turn), ours).results == [len(NAMES)] * ours


def test_distcp_files_of_ranks_are_opened_and_restored(tmp_path):
    folder = tmp_path / "c"
    run_ranks("save-distcp", 2, folder, tmp_path)
    assert len(list(folder.glob("*.distcp"))) == 2
    with checkpoint.open(folder) as reader:
        assert sorted(reader.names()) == NAMES
        for name in NAMES:
            for box in [(), (slice(2, 6), slice(1, 4)), (slice(None), slice(None), slice(2, 4))]:
                assert np.array_equal(reader.read(name, box), value(name)[box]), (name, box)
    like = shardings(turn=1)
    found = checkpoint.restore(folder, like)
    for name in NAMES:
        assert found[name].dtype == DTYPES.get(name, np.float32)
        assert found[name].sharding == like[name]
        assert np.array_equal(np.asarray(found[name]), value(name)), name
