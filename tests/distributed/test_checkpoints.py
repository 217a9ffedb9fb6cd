# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several processes: each writes and reads its own part, under any numbers of processes."""

import os
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices._core import internal
from artifex_devices.checkpoint.stored import Stored
from artifex_devices.testing import kill, run_processes

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
    everywhere = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), ad.P())
    small = {"scalar": ad.device_put(np.int32(9), everywhere), "empty": ad.device_put(np.zeros((0, 3)), everywhere)}
    checkpoint.save(folder, {"arrays": tree, "small": small, "host": np.arange(3), "step": 7})
    return checkpoint.metadata(folder).nbytes


def restore_all(folders):
    """Restores the checkpoints of all folders, the first one as it was saved, the others in turn."""
    targets = shardings()
    values = []
    for turn, folder in enumerate(folders):
        like = {str(i): targets[(i + 13 * turn) % len(targets)] for i in range(len(targets))}
        small = {"scalar": targets[0], "empty": np.zeros((0, 3))}
        like = {"arrays": like, "small": small, "host": np.zeros(3, int), "step": 0}
        found = checkpoint.restore(folder, like, verify=turn == 0)
        for i in range(len(targets)):
            for shard in found["arrays"][str(i)].addressable_shards:
                assert np.array_equal(np.asarray(shard.data), value(i)[shard.index]), (folder, i, shard.index)
        values.append((found["host"].tolist(), found["step"], int(np.asarray(found["small"]["scalar"]))))
    return values, [bytes_read(folder, targets) for folder in folders]


def bytes_read(folder, targets):
    """The numbers of shardings for which other bytes are read than those of the distinct parts in this process."""
    stored = Stored("test", Path(folder))
    number = stored.arrays["arrays.0"].number
    found = []
    for i, sharding in enumerate(targets):
        array = internal.empty(SHAPE, "int32", sharding, True, "test")
        read = stored.files.read([(number, array)], False, "test")
        if read != sum(part.nbytes for part in internal.local_arrays(array, some=True)):
            found.append((i, read))
    return found


@pytest.mark.timeout(300)
def test_any_number_of_processes_restores_what_any_number_saved(processes, tmp_path):
    """60 shardings of 1 to 4 processes under 60 others of 1 to 4: the same values, and no byte too many is read."""
    folders = [str(tmp_path / str(count)) for count in (1, 2, 3, 4)]
    for count, folder in enumerate(folders, 1):
        saved = processes(count, save_all, folder, timeout=120).values
        assert saved == [60 * 12 * 10 * 3 * 4 + 24 + 4] * count
    for count in (1, 2, 3, 4):
        restored = processes(count, restore_all, folders, timeout=120).values
        assert restored == [([([0, 1, 2], 7, 9)] * 4, [[]] * 4)] * count


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


def manage_a_run(folder):
    """Goes on from step 100 after 200 was saved, with saves that overlap; process 1 waits for them backwards."""
    rows = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), ad.P("x"))

    def tree(step):
        return {"w": ad.make_array_from_callback((8,), rows, np.full(8, step).__getitem__), "step": step}

    manager = checkpoint.Manager(folder, max_to_keep=2)
    for step in (100, 200):
        manager.save(step, tree(step))
    futures = [manager.save_async(step, tree(step)) for step in (110, 120, 130)]
    for future in futures if ad.process_index() != 1 else reversed(futures):
        future.wait()
    found = [(manager.all_steps(), manager.latest_step())]
    ad.multihost_utils.sync_global_devices("read")
    manager.save_async(140, tree(140))  # no wait: the next save commits it
    manager.save(135, tree(135))
    found.append((manager.all_steps(), manager.latest_step()))
    return found, manager.restore(140, {"w": rows, "step": 0})["step"]


def test_the_managers_of_a_job_commit_in_the_order_of_the_calls(processes, tmp_path):
    expected = ([([120, 130], 130), ([135, 140], 135)], 140)
    assert processes(4, manage_a_run, str(tmp_path / "run"), timeout=120).values == [expected] * 4
    assert sorted(os.listdir(tmp_path / "run")) == ["135", "140"]


def fail_in_one_process(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    array = ad.make_array_from_callback((8,), ad.NamedSharding(mesh, ad.P("x")), np.arange(8).__getitem__)
    checkpoint.save(folder, {"w": array})
    if ad.process_index() == 1:
        write = checkpoint.saving.Save.write

        def fail(self):
            write(self)
            raise OSError(28, "No space left on device")

        checkpoint.saving.Save.write = fail
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
    assert mine.startswith("OSError: [Errno 28] No space left on device; ")
    for text in (first, mine):
        assert f"{str(tmp_path / 'c')!r} is unchanged" in text
    assert ".c.saving" not in os.listdir(tmp_path)


def save_while_one_ends(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    array = ad.make_array_from_callback((9,), ad.NamedSharding(mesh, ad.P()), np.arange(9).__getitem__)
    checkpoint.save(folder, {"w": array})
    if ad.process_index() == 1:
        return "ended"
    try:
        checkpoint.save(folder, {"w": array + array}, overwrite=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "saved"


def test_a_process_that_has_ended_is_an_error_and_the_last_checkpoint_stays(tmp_path):
    results = run_processes(save_while_one_ends, 3, args=(str(tmp_path / "c"),)).results
    assert results[1] == "ended"
    for text in (results[0], results[2]):
        assert text.startswith("CollectiveError")
        assert f"{str(tmp_path / 'c')!r} is unchanged" in text
    assert checkpoint.restore(tmp_path / "c")["w"].tolist() == list(range(9))
    checkpoint.save(tmp_path / "c", {"w": np.ones(2)}, overwrite=True)
    assert os.listdir(tmp_path) == ["c"]


def save_steps(folder):
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    rows = ad.NamedSharding(mesh, ad.P("x"))
    for step in range(3):
        array = ad.make_array_from_callback((12,), rows, np.full(12, step).__getitem__)
        checkpoint.save(folder, {"w": array, "step": step}, overwrite=True)


@pytest.mark.parametrize("process", [0, 2])
@pytest.mark.parametrize("call", range(2, 10))
def test_a_process_that_is_killed_at_any_meeting_leaves_a_complete_checkpoint(process, call, tmp_path):
    path = tmp_path / "c"
    run = run_processes(
        save_steps,
        3,
        args=(str(path),),
        faults=[kill(process, at="checkpoint.save", call=call)],
        return_exceptions=True,
    )
    others = [result for number, result in enumerate(run.results) if number != process]
    assert run.unfinished == (process,)
    for error in others:
        assert type(error).__name__ == "CollectiveError"
        assert f"{str(path)!r}" in str(error) or "there is nothing at" in str(error)
    if path.exists():
        found = checkpoint.restore(path, verify=True)
        assert found["w"].tolist() == [found["step"]] * 12
    checkpoint.save(path, {"w": np.ones(2)}, overwrite=True)
    assert os.listdir(tmp_path) == ["c"]


def save_twice(path):
    """Saves to a path while another save to it has not been committed."""
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    array = ad.make_array_from_callback((8,), ad.NamedSharding(mesh, ad.P("x")), np.arange(8).__getitem__)
    future = checkpoint.save_async(path, {"w": array})
    try:
        checkpoint.save(path, {"w": array})
        text = "saved"
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    future.wait()
    return text


def test_two_saves_to_one_path_are_an_error_in_all_processes(processes, tmp_path):
    first, second = processes(2, save_twice, str(tmp_path / "c"), timeout=120).values
    assert first.startswith("BlockingIOError")
    assert second.startswith("CollectiveError")
    for text in (first, second):
        assert "another save to" in text
        assert "is running; expected one at a time" in text
    assert checkpoint.restore(tmp_path / "c")["w"].tolist() == list(range(8))


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


def extra_memory(folder):
    """Bytes by which the resident memory of this process grows at most in a save and in a restore."""

    def status(name):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    def peak_of(work):
        Path("/proc/self/clear_refs").write_text("5")
        before = status("VmRSS")
        made = work()
        return status("VmHWM") - before, made

    devices = np.array(ad.devices())
    shape = (4096, 8192)  # 128 MiB
    rows, columns = (ad.NamedSharding(ad.Mesh(devices, ("x",)), ad.P(*spec)) for spec in (("x",), (None, "x")))
    array = ad.make_array_from_callback(shape, rows, lambda index: np.ones(shape, np.float32)[index])
    checkpoint.save(f"{folder}/warm", {"w": array})
    saved, _ = peak_of(lambda: checkpoint.save(f"{folder}/c", {"w": array}))
    array.delete()
    internal.trim()
    restored, found = peak_of(lambda: checkpoint.restore(f"{folder}/c", {"w": columns})["w"])
    return saved, restored - sum(part.nbytes for part in internal.local_arrays(found, some=True))


@pytest.mark.real_processes  # resident memory is that of a process of the system
def test_a_save_and_a_restore_need_less_than_64_mib_in_each_process(processes, tmp_path):
    for extra in processes(2, extra_memory, str(tmp_path), timeout=120).values:
        assert max(extra) < 64 << 20, extra
