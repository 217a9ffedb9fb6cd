# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several processes: each writes and reads its own part, under any numbers of processes."""

import os
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _core, checkpoint
from artifex_devices.checkpoint.stored import Stored

SHAPE = (12, 10, 3)
SPECS = [
    (),
    ("x",),
    ("y",),
    (None, "x"),
    (None, "y"),
    (None, None, "x"),
    ("x", "y"),
    ("y", "x"),
    ("x", None, "y"),
    ("y", None, "x"),
    (None, "x", "y"),
    (("x", "y"),),
    (("y", "x"),),
    (None, ("x", "y")),
    (None, ("y", "x")),
]


def value(number):
    return np.random.default_rng(number).integers(0, 2**31, SHAPE, np.int32)


def shardings():
    """60 shardings: each spec on two meshes, over all devices in order and over devices of the processes in turn."""
    devices = np.array(ad.devices())
    found = []
    for order in (devices, devices.reshape(ad.process_count(), -1).T.reshape(-1)):
        for sizes in ((-1, 2), (2, -1)):
            mesh = ad.Mesh(order.reshape(sizes), ("x", "y"))
            found += [ad.NamedSharding(mesh, ad.P(*spec), uneven="last-short") for spec in SPECS]
    return found


def save_all(folder):
    tree = {
        str(i): ad.make_array_from_callback(SHAPE, sharding, value(i).__getitem__)
        for i, sharding in enumerate(shardings())
    }
    checkpoint.save(folder, {"arrays": tree, "host": np.arange(3), "step": 7})
    return checkpoint.metadata(folder).nbytes


def restore_all(folder, turn):
    targets = shardings()
    like = {str(i): targets[(i + turn) % len(targets)] for i in range(len(targets))}
    like = {"arrays": like, "host": np.zeros(3, int), "step": 0}
    found = checkpoint.restore(folder, like, verify=turn == 0)
    for i in range(len(targets)):
        for shard in found["arrays"][str(i)].addressable_shards:
            assert np.array_equal(np.asarray(shard.data), value(i)[shard.index]), (i, turn, shard.index)
    return found["host"].tolist(), found["step"]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_any_number_of_processes_restores_what_any_number_saved(processes, count, tmp_path):
    folder = str(tmp_path / "c")
    assert processes(count, save_all, folder, timeout=120).values == [60 * 12 * 10 * 3 * 4 + 24] * count
    for other in {1, 2, 3, 4} - {count}:
        assert processes(other, restore_all, folder, other, timeout=120).values == [([0, 1, 2], 7)] * other


def shares(folder):
    """Each process saves as many bytes of a replicated array."""
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    replicated = ad.device_put(np.arange(4096.0).reshape(64, 64), ad.NamedSharding(mesh, ad.P()))
    checkpoint.save(folder, replicated)
    parts = checkpoint.metadata(folder).arrays["value"].parts
    return sorted((part.file[:11], part.origin, part.nbytes) for part in parts)


def test_replicas_share_the_work(processes, tmp_path):
    expected = [(f"shard-0000{i + 1}", (16 * i, 0), 8192) for i in range(4)]
    assert processes(4, shares, str(tmp_path / "c"), timeout=120).values == [expected] * 4


def save_in_background(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    rows = ad.NamedSharding(mesh, ad.P("x"))
    manager = checkpoint.Manager(folder, max_to_keep=1)
    for step in (1, 2):
        array = ad.make_array_from_callback((8, 2), rows, np.full((8, 2), step).__getitem__)
        future = manager.save_async(step, {"w": array})
        array.delete()
        future.wait()
    found = manager.restore(2, {"w": rows})["w"]
    return manager.all_steps(), {int(np.asarray(shard.data)[0, 0]) for shard in found.addressable_shards}


def test_saves_in_the_background_commit_in_wait(processes, tmp_path):
    assert processes(2, save_in_background, str(tmp_path), timeout=120).values == [([2], {2})] * 2


def fail_in_one_process(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    array = ad.make_array_from_callback((8,), ad.NamedSharding(mesh, ad.P("x")), np.arange(8).__getitem__)
    checkpoint.save(folder, {"w": array})
    if ad.process_index() == 1:
        write = checkpoint.saving.Save._write

        def fail(self):
            write(self)
            raise OSError(28, "No space left on device")

        checkpoint.saving.Save._write = fail
    try:
        checkpoint.save(folder, {"w": array + array}, overwrite=True)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    found = checkpoint.restore(folder, {"w": array.sharding})["w"]
    same = all(np.array_equal(np.asarray(shard.data), np.arange(8)[shard.index]) for shard in found.addressable_shards)
    return text, same


@pytest.mark.real_processes  # replaces a method of the package in one of them
def test_the_error_of_one_process_reaches_all_and_the_last_checkpoint_stays(processes, tmp_path):
    (first, second), (mine, stays) = processes(2, fail_in_one_process, str(tmp_path / "c"), timeout=120).values
    assert second
    assert stays
    assert first.startswith("CollectiveError")
    assert "No space left on device" in first
    assert mine == "OSError: [Errno 28] No space left on device"
    assert "c" in os.listdir(tmp_path)


def save_different_trees(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    size = 8 + 8 * ad.process_index()
    array = ad.make_array_from_callback((size,), ad.NamedSharding(mesh, ad.P("x")), np.arange(size).__getitem__)
    try:
        checkpoint.save(folder, {"w": array})
    except Exception as error:
        return type(error).__name__
    return "saved"


def test_different_trees_are_an_error(processes, tmp_path):
    assert (
        processes(2, save_different_trees, str(tmp_path / "run" / "c"), timeout=120).values == ["CollectiveError"] * 2
    )
    assert os.listdir(tmp_path / "run") == []


def save_local_array(folder):
    try:
        checkpoint.save(folder, {"w": ad.device_put(np.ones(3), ad.local_devices()[0])})
    except ValueError as error:
        return str(error)
    return "saved"


def test_an_array_of_one_process_is_an_error(processes, tmp_path):
    texts = processes(2, save_local_array, str(tmp_path / "c"), timeout=120).values
    assert [text.startswith("checkpoint.save: the Array 'w' is only on devices of process") for text in texts] == [
        True
    ] * 2


def bytes_read(folder):
    """For each sharding: the bytes that are read, and those of the distinct parts in this process."""
    stored = Stored("test", Path(folder))
    numbers = stored.arrays["arrays.0"].numbers
    found = []
    for sharding in shardings():
        array = _core._checkpoint_array(SHAPE, "int32", sharding, "test")
        read = stored.files.read([("arrays.0", array, numbers)], False, "test")
        found.append((read, sum(part.nbytes for part in _core._local_arrays(array, some=True))))
    return found


@pytest.mark.parametrize("count", [1, 3])
def test_each_process_reads_the_bytes_of_its_shards_only(processes, count, tmp_path):
    folder = str(tmp_path / "c")
    processes(2, save_all, folder, timeout=120)
    for rows in processes(count, bytes_read, folder, timeout=120).values:
        assert [read for read, _ in rows] == [needed for _, needed in rows]
