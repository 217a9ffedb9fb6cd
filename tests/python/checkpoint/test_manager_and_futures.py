# SPDX-License-Identifier: Apache-2.0
"""Manager, save_async and metadata."""

import json
import os
import subprocess
import sys
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint


def test_the_newest_steps_and_multiples_stay(tmp_path):
    manager = checkpoint.Manager(tmp_path / "run", max_to_keep=2, keep_every=4)
    assert manager.latest_step() is None
    assert manager.all_steps() == []
    for step in range(7):
        manager.save(step, {"w": np.full(3, step)})
    assert manager.all_steps() == [0, 4, 5, 6]
    assert manager.latest_step() == 6
    assert manager.restore(4, {"w": np.zeros(3, int)})["w"].tolist() == [4, 4, 4]
    assert sorted(os.listdir(tmp_path / "run")) == ["0", "4", "5", "6"]


def test_other_entries_of_the_directory_are_ignored(tmp_path):
    manager = checkpoint.Manager(tmp_path)
    manager.save(1, {"w": 1})
    (tmp_path / "2").mkdir()
    (tmp_path / "007").mkdir()
    (tmp_path / "notes").write_text("")
    assert manager.all_steps() == [1]
    with pytest.raises(FileNotFoundError, match=r"has no checkpoint of step 2; expected one of \[1\]"):
        manager.restore(2)


def test_a_removal_that_was_interrupted_is_finished_by_the_next_save(tmp_path):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, {"w": 1})
    os.rename(tmp_path / "1", tmp_path / ".1.removed")
    manager.save(2, {"w": 2})
    assert os.listdir(tmp_path) == ["2"]


def test_an_async_save_has_the_values_of_its_call(tmp_path):
    host = np.arange(1000.0)
    array = ad.device_put(host + 1, ad.SingleDeviceSharding(ad.devices()[0]))
    future = checkpoint.save_async(tmp_path / "c", {"host": host, "array": array})
    host[:] = 0
    array.delete()
    future.wait()
    future.wait()
    assert future.done()
    assert future.bytes_written == future.nbytes == 16000
    restored = checkpoint.restore(tmp_path / "c")
    assert restored["host"].tolist() == list(range(1000))
    assert restored["array"].tolist() == list(range(1, 1001))


def test_an_async_save_of_a_manager_removes_old_steps(tmp_path):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    for step in (1, 2):
        manager.save_async(step, {"w": step}).wait()
    assert manager.all_steps() == [2]


def test_a_manager_waits_at_the_end_of_its_block(tmp_path):
    with checkpoint.Manager(tmp_path, max_to_keep=2) as manager:
        futures = [manager.save_async(step, {"w": step}) for step in (1, 2, 3)]
    assert [future.done() for future in futures] == [True, True, True]
    assert manager.all_steps() == [2, 3]
    manager.close()


def test_a_manager_raises_the_error_of_its_last_save_at_the_end_of_its_block(tmp_path, monkeypatch):
    def fail(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.saving.Save, "write", fail)
    for wait in (checkpoint.Manager.wait_until_finished, checkpoint.Manager.close):
        with pytest.raises(OSError, match="No space left on device"), checkpoint.Manager(tmp_path) as manager:
            manager.save_async(1, {"w": 1})
        with pytest.raises(OSError, match="No space left on device"):
            wait(manager)
    assert manager.all_steps() == []


def test_two_saves_to_one_path_exclude_each_other(tmp_path, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    write = checkpoint.saving.Save.write

    def wait_first(self):
        began.set()
        go_on.wait(30)
        write(self)

    monkeypatch.setattr(checkpoint.saving.Save, "write", wait_first)
    future = checkpoint.save_async(tmp_path / "c", {"w": 1})
    assert began.wait(30)
    with pytest.raises(BlockingIOError, match=r"another save to .* is running; expected one at a time"):
        checkpoint.save(tmp_path / "c", {"w": 2})
    go_on.set()
    future.wait()
    assert checkpoint.restore(tmp_path / "c") == {"w": 1}


def test_the_error_of_an_async_save_is_raised_by_wait(tmp_path, monkeypatch):
    def fail(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.saving.Save, "write", fail)
    future = checkpoint.save_async(tmp_path / "c", {"w": 1})
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device"):
            future.wait()
    assert os.listdir(tmp_path) == []
    assert "failed: OSError" in repr(future)


def test_metadata_lists_names_shapes_and_parts(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": np.ones((8, 2), np.float32), "z": np.ones(3, complex), "step": 10})
    found = checkpoint.metadata(tmp_path / "c")
    assert found.nbytes == 64 + 48
    assert found.process_count == 1
    assert dict(found.values) == {"step": 10}
    assert found.arrays["z"].shape == (3,)
    assert found.arrays["z"].dtype == np.complex128
    assert found.arrays["z"].type == "F64"
    file = "shard-00001-model-00001-of-00001.safetensors"
    assert found.arrays["w"].parts == (checkpoint.PartMetadata(file, (0, 0), (8, 2), 64),)
    assert json.loads(found.to_json())["arrays"]["w"]["dtype"] == "float32"
    assert str(found).splitlines()[1:] == [
        "name  dtype       shape   parts  bytes",
        "w     float32     (8, 2)  1      64 bytes",
        "z     complex128  (3,)    1      48 bytes",
        "step  int         10",
        "2 arrays, 112 bytes in 1 file",
    ]


def test_metadata_shows_ints_of_many_digits(tmp_path):
    checkpoint.save(tmp_path / "c", {"n": 10**5000})
    found = checkpoint.metadata(tmp_path / "c")
    assert hex(10**5000)[:40] in str(found)
    assert json.loads(found.to_json())["values"]["n"] == {"type": "int", "value": hex(10**5000)}
    assert checkpoint.restore(tmp_path / "c") == {"n": 10**5000}


def test_metadata_uses_no_device(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": np.ones((8, 2), np.float32)})
    program = """
import sys
import artifex_devices as ad
from artifex_devices import checkpoint

print(checkpoint.metadata(sys.argv[1]).arrays["w"].shape)
try:
    ad.devices()
except ValueError as error:
    print("JAX_NUM_CPU_DEVICES" in str(error))
"""
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "many", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.stdout.split("\n") == ["(8, 2)", "True", ""], done.stderr


def test_the_interpreter_waits_at_exit_for_running_saves(tmp_path):
    program = """
import sys
import time
import numpy as np
from artifex_devices import checkpoint

write = checkpoint.saving.Save.write


def write_late(self):
    time.sleep(0.5)  # a slow write
    write(self)


checkpoint.saving.Save.write = write_late
checkpoint.save_async(sys.argv[1], {"w": np.arange(4)})
"""
    command = [sys.executable, "-c", program, str(tmp_path / "c")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert checkpoint.restore(tmp_path / "c")["w"].tolist() == [0, 1, 2, 3]
