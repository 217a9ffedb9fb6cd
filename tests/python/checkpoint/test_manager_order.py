# SPDX-License-Identifier: Apache-2.0
"""Which checkpoints of a run a Manager keeps: the newest by the time of their commit, in every process."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices._core import internal
from artifex_devices.checkpoint import commit_times, folders


def test_a_run_that_goes_on_from_an_older_step_keeps_its_new_steps(tmp_path):
    before = checkpoint.Manager(tmp_path)
    for step in (100, 200, 300):
        before.save(step, {"w": step})
    manager = checkpoint.Manager(tmp_path, max_to_keep=2)
    manager.save(110, {"w": 110})
    assert (manager.all_steps(), manager.latest_step()) == ([110, 300], 110)
    manager.save_async(120, {"w": 120}).wait()
    assert (manager.all_steps(), manager.latest_step()) == ([110, 120], 120)
    assert checkpoint.Manager(tmp_path).latest_step() == before.latest_step() == 120
    assert manager.restore(120) == {"w": 120}


def test_the_abandoned_steps_that_always_stay_are_not_the_latest(tmp_path):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1, keep_every=100)
    for step in (100, 200, 300, 110, 120):
        manager.save(step, {"w": step})
    assert (manager.all_steps(), manager.latest_step()) == ([100, 120, 200, 300], 120)


def test_the_order_is_that_of_the_commits_in_a_copy_of_the_run_and_after_the_clock_was_set_back(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path / "run")
    for step in (5, 2):
        manager.save(step, {"w": step})
    shutil.copytree(tmp_path / "run", tmp_path / "copy", copy_function=shutil.copyfile)
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    copy = checkpoint.Manager(tmp_path / "copy", max_to_keep=2)
    assert copy.latest_step() == 2
    copy.save(1, {"w": 1})
    assert (copy.all_steps(), copy.latest_step()) == ([1, 2], 1)


def test_checkpoints_that_no_manager_committed_are_older_in_the_order_of_their_steps(tmp_path):
    for step in (3, 1, 2):
        checkpoint.save(tmp_path / str(step), {"w": step})
    manager = checkpoint.Manager(tmp_path, max_to_keep=2)
    assert manager.latest_step() == 3
    manager.save(0, {"w": 0})
    assert (manager.all_steps(), manager.latest_step()) == ([0, 3], 0)


@pytest.mark.parametrize("text", ["", "{", '{"committed_ns": "1"}', '{"committed_ns": -1}', "[" * 5000, "[]"])
def test_a_damaged_time_counts_as_none(text, tmp_path):
    manager = checkpoint.Manager(tmp_path)
    manager.save(1, {"w": 1})
    manager.save(2, {"w": 2})
    (tmp_path / "2" / "manager.json").write_text(text)
    assert manager.latest_step() == 1


def test_a_step_that_is_replaced_by_its_manager_is_the_newest_and_by_others_keeps_its_place(tmp_path):
    manager = checkpoint.Manager(tmp_path)
    for step in (1, 2, 3):
        manager.save(step, {"w": np.arange(step)})
    checkpoint.convert(tmp_path / "3", tmp_path / "3", num_files=2, overwrite=True)
    checkpoint.save(tmp_path / "1", {"w": 1}, overwrite=True)
    assert manager.latest_step() == 3
    manager.save(2, {"w": 2}, overwrite=True)
    assert manager.latest_step() == 2


def test_overlapping_saves_are_committed_in_the_order_of_their_calls(tmp_path, monkeypatch):
    written = {step: threading.Event() for step in (1, 2, 3)}
    write = checkpoint.saving.Save.write

    def write_backwards(self):
        step = int(os.path.basename(self.path))
        if step < 3:
            assert written[step + 1].wait(30)
        write(self)
        written[step].set()

    monkeypatch.setattr(checkpoint.saving.Save, "write", write_backwards)
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    futures = [manager.save_async(step, {"w": step}) for step in (1, 2, 3)]
    for future in futures:
        future.wait()
    assert (os.listdir(tmp_path), manager.latest_step()) == (["3"], 3)


def test_a_save_waits_for_earlier_saves_in_the_background_and_leaves_their_errors_to_wait(tmp_path, monkeypatch):
    write = checkpoint.saving.Save.write
    go_on = threading.Event()

    def write_late(self):
        if self.path.endswith("1"):
            assert go_on.wait(30)
            raise OSError(28, "No space left on device")
        go_on.set()
        write(self)

    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    monkeypatch.setattr(checkpoint.saving.Save, "write", write_late)
    futures = [manager.save_async(step, {"w": step}) for step in (1, 2)]
    manager.save(3, {"w": 3})
    assert [future.done() for future in futures] == [True, True]
    with pytest.raises(OSError, match="No space left on device"):
        futures[0].wait()
    futures[1].wait()
    assert os.listdir(tmp_path) == ["3"]


def test_many_overlapping_saves_of_several_managers_all_succeed(tmp_path):
    managers = [checkpoint.Manager(tmp_path, max_to_keep=1) for _ in range(3)]
    futures = [managers[step % 3].save_async(step, {"w": np.full(1000, step)}) for step in range(30)]
    for future in futures:
        future.wait()
    (name,) = os.listdir(tmp_path)
    assert int(name) == managers[0].latest_step()
    assert managers[0].restore(int(name))["w"].tolist() == [int(name)] * 1000


MANAGE = """
import sys
import numpy as np
from artifex_devices import checkpoint

folder, first = sys.argv[1], int(sys.argv[2])
manager = checkpoint.Manager(folder, max_to_keep=1)
for step in range(first, first + 40, 4):
    manager.save(step, {"w": np.full(10, step)})
"""


def test_independent_processes_manage_one_directory(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MANAGE, str(tmp_path), str(first)],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for first in range(4)
    ]
    texts = [process.communicate(timeout=120)[1] for process in started]
    assert [(process.returncode, text) for process, text in zip(started, texts, strict=True)] == [(0, "")] * 4
    (name,) = os.listdir(tmp_path)
    assert checkpoint.restore(tmp_path / name)["w"].tolist() == [int(name)] * 10
    assert checkpoint.Manager(tmp_path).latest_step() == int(name)


def test_a_step_that_another_process_has_retired_or_removed_is_gone_without_an_error(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, {"w": 1})
    retire, remove = folders.retire, folders.remove

    def retire_twice(folder):
        retire(folder)
        retire(folder)

    def remove_twice(folder):
        remove(folder)
        remove(folder)

    monkeypatch.setattr(folders, "retire", retire_twice)
    monkeypatch.setattr(folders, "remove", remove_twice)
    manager.save(2, {"w": 2})
    assert os.listdir(tmp_path) == ["2"]


def test_a_step_that_another_process_retires_before_it_is_replaced_is_saved(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path)
    manager.save(1, {"w": 1})
    is_checkpoint = folders.is_checkpoint

    def retire_after(folder):
        found = is_checkpoint(folder)
        if found:
            folders.retire(folder)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(folders, "is_checkpoint", retire_after)
        checkpoint.save(tmp_path / "1", {"w": 2}, overwrite=True)
    assert checkpoint.restore(tmp_path / "1") == {"w": 2}
    manager.save(2, {"w": 2})
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]


def test_a_step_that_is_being_replaced_is_not_retired(tmp_path):
    checkpoint.save(tmp_path / "1", {"w": 1})
    lock = internal.FolderLock()
    assert lock.take(str(tmp_path / "1"))
    folders.retire(str(tmp_path / "1"))
    assert os.listdir(tmp_path) == ["1"]
    lock.release()
    folders.retire(str(tmp_path / "1"))
    assert os.listdir(tmp_path) == [".1.removed"]


def test_a_manager_that_cannot_lock_its_directory_raises_before_the_commit(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, {"w": 1})
    lock = internal.FolderLock()
    other = threading.Thread(target=lock.take, args=(str(tmp_path),))
    other.start()
    other.join()
    assert lock.is_held
    monkeypatch.setattr(folders, "_RUN_LOCK_S", 0.0)
    with pytest.raises(BlockingIOError, match=r"^.*Manager\.save: another process or thread has locked .* for 0 s; "):
        manager.save(2, {"w": 2})
    lock.release()
    assert os.listdir(tmp_path) == ["1"]
    manager.save(2, {"w": 2})
    assert os.listdir(tmp_path) == ["2"]


@pytest.mark.parametrize("owner", [commit_times, folders])
def test_a_signal_handler_may_save_a_step_during_a_commit(owner, tmp_path, monkeypatch):
    name = "write" if owner is commit_times else "retire"
    function = getattr(owner, name)
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, {"w": 1})
    monkeypatch.setattr(folders, "_RUN_LOCK_S", 0.0)

    def interrupted(*args):
        monkeypatch.undo()
        signal.raise_signal(signal.SIGUSR1)
        function(*args)

    monkeypatch.setattr(owner, name, interrupted)
    before = signal.signal(signal.SIGUSR1, lambda *_: manager.save(3, {"w": 3}))
    try:
        manager.save(2, {"w": 2})
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert manager.latest_step() == 3
    assert os.listdir(tmp_path) == ["3"]
    lock = internal.FolderLock()
    assert lock.take(str(tmp_path))
    lock.release()


def test_the_time_of_a_commit_is_in_nanoseconds(tmp_path):
    before = time.time_ns()
    checkpoint.Manager(tmp_path).save(1, {"w": 1})
    assert before <= commit_times.read(str(tmp_path / "1")) <= time.time_ns()
    assert commit_times.read(str(tmp_path)) == 0
