# SPDX-License-Identifier: Apache-2.0
"""Locks on folders in processes that fork while they hold one."""

import os
import pickle
import signal
import subprocess
import sys

from artifex_devices import checkpoint
from artifex_devices._core import internal

FORKING = """
import os
import sys
import threading
import numpy as np
from artifex_devices import checkpoint

path, way = sys.argv[1:]
is_written, go_on = threading.Event(), threading.Event()
write = checkpoint.saving.Save.write


def write_late(self):
    is_written.set()
    assert go_on.wait(60)
    write(self)


checkpoint.saving.Save.write = write_late
future = checkpoint.save_async(path, {"w": 1})
assert is_written.wait(60)
reading, writing = os.pipe()
forked, has_forked = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    descriptors = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    assert not [each for each in descriptors if os.path.realpath(each).endswith(".saving")]
    os.write(has_forked, b"1")  # it has closed its copies
    os.read(reading, 1)  # until the test ends the parent and itself closes its end
    os._exit(0)
os.read(forked, 1)
print(child, flush=True)
if way == "killed":
    sys.stdin.read()
go_on.set()
future.wait()
checkpoint.saving.Save.write = write
checkpoint.save(path, {"w": 2}, overwrite=True)
checkpoint.Manager(os.path.dirname(path), max_to_keep=1).save(1, {"w": 3})
print(os.waitpid(child, os.WNOHANG) == (0, 0), flush=True)
"""


def start(path, way):
    return subprocess.Popen(
        [sys.executable, "-c", FORKING, str(path), way],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_child_forked_during_a_save_does_not_keep_its_lock(tmp_path):
    process = start(tmp_path / "c", "finished")
    child = int(process.stdout.readline())
    try:
        assert process.stdout.readline() == "True\n", process.communicate()[1]
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()
    assert sorted(os.listdir(tmp_path)) == ["1", "c"]
    assert checkpoint.restore(tmp_path / "c") == {"w": 2}


def test_a_child_of_a_process_that_was_killed_during_a_save_does_not_keep_its_lock(tmp_path):
    process = start(tmp_path / "c", "killed")
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        assert os.listdir(tmp_path) == [".c.saving"]
        checkpoint.save(tmp_path / "c", {"w": 3})
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()
    assert os.listdir(tmp_path) == ["c"]


def test_a_lock_keeps_others_out_until_it_is_released(tmp_path):
    first, second = internal.FolderLock(), internal.FolderLock()
    assert first.take(str(tmp_path))
    try:
        second.take(str(tmp_path))
    except BlockingIOError:
        assert (first.is_held, second.is_held) == (True, False)
    first.release()
    first.release()
    assert second.take(str(tmp_path))
    second.release()
    assert not second.take(str(tmp_path / "none"))


MANAGING = """
import os
import sys
from artifex_devices import checkpoint

manager = checkpoint.Manager(sys.argv[1], max_to_keep=1)
manager.save_async(1, {"w": 1}).wait()
child = os.fork()
if child == 0:
    manager.save(2, {"w": 2})
    manager.save_async(3, {"w": 3}).wait()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


def test_a_child_may_manage_the_run_of_its_parent(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", MANAGING, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert os.listdir(tmp_path) == ["3"]


def test_a_copy_of_a_manager_that_has_saved_in_the_background_manages_the_same_run(tmp_path):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save_async(1, {"w": 1}).wait()
    copy = pickle.loads(pickle.dumps(manager))
    copy.save(2, {"w": 2})
    assert (repr(copy), manager.all_steps()) == (repr(manager), [2])
