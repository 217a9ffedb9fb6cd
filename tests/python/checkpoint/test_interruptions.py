# SPDX-License-Identifier: Apache-2.0
"""Saves that cannot finish: the error says what is left, and the checkpoint that was there stays."""

import os
import shutil
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import future as futures
from polling import wait_until

LIMITED = """
import resource
import sys
import numpy as np
from artifex_devices import checkpoint

path, way = sys.argv[1:]
checkpoint.save(path, {"w": np.arange(3)})
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # files cannot grow further, as on a full disk
tree = {"w": np.ones((4, 1 << 20), np.uint8)}
try:
    if way == "save":
        checkpoint.save(path, tree, overwrite=True)
    else:
        checkpoint.save_async(path, tree, overwrite=True).wait()
except OSError as error:
    print(type(error).__name__, error.errno, error)
"""


@pytest.mark.parametrize("way", ["save", "save_async"])
def test_a_file_that_cannot_grow_is_an_error_and_leaves_nothing(way, tmp_path):
    path = tmp_path / "c"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), way],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("OSError 27 "), done.stdout
    assert ".c.saving/shard-00001-model-00001-of-00001.safetensors: cannot write" in done.stdout
    assert f"{str(path)!r} is unchanged; the files of this save are removed" in done.stdout
    assert os.listdir(tmp_path) == ["c"]
    assert checkpoint.restore(path, verify=True)["w"].tolist() == [0, 1, 2]


def test_what_cannot_be_removed_is_named(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(checkpoint.saving.Save, "write", fail)
    monkeypatch.setattr(checkpoint.folders, "remove", fail)
    text = r"Input/output error; there is nothing at .*c'; the folder .*\.c\.saving' is left, which the next save"
    with pytest.raises(OSError, match=text):
        checkpoint.save(tmp_path / "c", {"w": 1})
    monkeypatch.undo()
    checkpoint.save(tmp_path / "c", {"w": 1})
    assert os.listdir(tmp_path) == ["c"]


def test_an_error_after_the_commit_says_that_the_checkpoint_is_complete(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(5, "Input/output error")

    manager = checkpoint.Manager(tmp_path)
    monkeypatch.setattr(checkpoint.Manager, "_remove_old", fail)
    with pytest.raises(OSError, match=r"Input/output error; the checkpoint .*/1' is complete$"):
        manager.save(1, {"w": 1})
    assert manager.restore(1) == {"w": 1}


def test_ctrl_c_says_what_is_left(tmp_path, monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    checkpoint.save(tmp_path / "c", {"w": 1})
    monkeypatch.setattr(checkpoint.saving.Save, "write", interrupt)
    with pytest.raises(KeyboardInterrupt, match=r"checkpoint\.save: interrupted; .*c' is unchanged; the files"):
        checkpoint.save(tmp_path / "c", {"w": 2}, overwrite=True)
    assert os.listdir(tmp_path) == ["c"]
    assert checkpoint.restore(tmp_path / "c") == {"w": 1}


class CtrlC:
    """Raises KeyboardInterrupt at one event of this thread in the functions of checkpoint, counted from 1.

    The events are the calls and returns: Python handles a signal at the first one after it. `where` has it.
    """

    def __init__(self, number):
        self._number = number
        self.where = []
        self._seen = 0

    def __enter__(self):
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _event(self, frame, event, _):
        code = frame.f_code
        if event != "c_call" and os.path.dirname(code.co_filename) == os.path.dirname(checkpoint.__file__):
            self._seen += 1
            if self._seen == self._number:
                self.where.append(f"{event} in {code.co_name}, line {frame.f_lineno}")
                raise KeyboardInterrupt


def save_in_background(path, tree, overwrite):
    future = checkpoint.save_async(path, tree, overwrite=overwrite)
    return future.wait()


def convert_one(path, tree, overwrite):
    return checkpoint.convert(path.parent / "source", path, overwrite=overwrite)


# Ctrl-C between `open` and `with` leaves a file open, which Python closes later, with a warning. While Python closes a
# generator, it ignores Ctrl-C with a warning.
UNCLOSED = pytest.mark.filterwarnings(
    r"ignore:.*(_io\.FileIO|generator object):pytest.PytestUnraisableExceptionWarning"
)
WAYS = {"save": checkpoint.save, "save_async": save_in_background, "convert": convert_one}


@UNCLOSED
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_between_any_two_calls_leaves_nothing_and_says_which_checkpoint_is_there(way, overwrite, tmp_path):
    checkpoint.save(tmp_path / "source", {"w": np.ones(4), "turn": 2})
    path = tmp_path / "c"
    texts = set()
    for number in range(1, 1000):
        shutil.rmtree(path, ignore_errors=True)
        if overwrite:
            checkpoint.save(path, {"w": np.zeros(4), "turn": 1})
        text = None
        with CtrlC(number) as ctrl_c:
            try:
                WAYS[way](path, {"w": np.ones(4), "turn": 2}, overwrite=overwrite)
            except KeyboardInterrupt as error:
                text = str(error)
                kept = error  # with its frames, as a notebook keeps it
        if not ctrl_c.where:
            break
        assert wait_until(lambda: not futures._running)
        assert set(os.listdir(tmp_path)) <= {"source", "c", "c.partial"}, ctrl_c.where
        turn = checkpoint.restore(path, verify=True)["turn"] if path.exists() else None
        assert turn in ({1, 2} if overwrite else {None, 2}), ctrl_c.where
        if text:
            texts.add(text)
            assert ("is complete" in text) == (turn == 2), (ctrl_c.where, text)
        if (tmp_path / "c.partial").exists():  # a conversion that the same call continues
            assert "c.partial' has 1 finished file; the same call continues" in text
            assert turn != 2
            WAYS[way](path, None, overwrite=overwrite)
            assert checkpoint.restore(path, verify=True)["turn"] == 2
        assert set(os.listdir(tmp_path)) <= {"source", "c"}, ctrl_c.where
        checkpoint.save(path, {"turn": 3}, overwrite=True)  # no lock is left
    assert number > 50
    assert kept is not None
    assert texts


@UNCLOSED
def test_ctrl_c_between_any_two_calls_of_a_managers_commit_leaves_whole_checkpoints_and_no_lock(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    commit = checkpoint.Manager._commit
    manager.save(2, {"turn": 1})
    for number in range(1, 1000):
        checkpoint.save(tmp_path / "1", {"turn": 0}, overwrite=True)
        ctrl_c = CtrlC(number)

        def commit_interrupted(self, staging, ctrl_c=ctrl_c):
            with ctrl_c:
                commit(self, staging)

        kept = None
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.Manager, "_commit", commit_interrupted)
            try:
                manager.save(2, {"turn": 2}, overwrite=True)
            except KeyboardInterrupt as error:
                kept = error  # with its frames, as a notebook keeps it
        if not ctrl_c.where:
            break
        turn = checkpoint.restore(tmp_path / "2", verify=True)["turn"]
        assert turn in {1, 2}, ctrl_c.where
        assert kept is None or ("is complete" in str(kept)) == (turn == 2), ctrl_c.where
        assert set(os.listdir(tmp_path)) <= {"1", ".1.removed", "2"}, ctrl_c.where
        manager.save(2, {"turn": 1}, overwrite=True)  # no lock is left
        assert os.listdir(tmp_path) == ["2"], ctrl_c.where
    assert number > 50


def test_a_second_ctrl_c_while_files_are_removed_leaves_no_lock(tmp_path, monkeypatch):
    path = tmp_path / "c"
    checkpoint.save(path, {"turn": 1})
    end = checkpoint.folders.StagingFolder._end

    def interrupt(self):
        raise KeyboardInterrupt

    for number in range(1, 1000):
        ctrl_c = CtrlC(number)

        def end_interrupted(self, ctrl_c=ctrl_c):
            with ctrl_c:
                end(self)

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint.saving.Save, "write", interrupt)
            patch.setattr(checkpoint.folders.StagingFolder, "_end", end_interrupted)
            with pytest.raises(KeyboardInterrupt) as kept:
                checkpoint.save(path, {"turn": 2}, overwrite=True)
        if not ctrl_c.where:
            break
        assert checkpoint.restore(path)["turn"] == 1, ctrl_c.where
        checkpoint.save(path, {"turn": 1}, overwrite=True)
        assert os.listdir(tmp_path) == ["c"], (ctrl_c.where, kept.value)
    assert number > 10


def test_no_save_begins_in_the_old_checkpoint_before_it_is_removed(tmp_path, monkeypatch):
    path = tmp_path / "c"
    checkpoint.save(path, {"turn": 1})
    remove, sync = checkpoint.folders.remove, checkpoint.folders.sync
    tries, synced = [], []

    def note_and_sync(folder):
        synced.append(folder)
        sync(folder)

    def save_again_then_remove(folder):
        with pytest.raises(BlockingIOError, match=r"another save to .*c' is running"):
            checkpoint.save(path, {"turn": 3}, overwrite=True)
        tries.append(checkpoint.restore(path)["turn"])
        assert synced == [str(tmp_path / ".c.saving"), str(tmp_path)]
        remove(folder)

    monkeypatch.setattr(checkpoint.folders, "remove", save_again_then_remove)
    monkeypatch.setattr(checkpoint.folders, "sync", note_and_sync)
    checkpoint.save(path, {"turn": 2}, overwrite=True)
    assert tries == [2]
    assert os.listdir(tmp_path) == ["c"]
    assert checkpoint.restore(path) == {"turn": 2}


def test_a_file_that_took_the_place_of_the_old_checkpoint_stays(tmp_path, monkeypatch):
    path = tmp_path / "c"
    checkpoint.save(path, {"turn": 1})
    write = checkpoint.saving.Save.write

    def write_late(self):
        shutil.rmtree(path)
        path.write_text("mine")
        write(self)

    monkeypatch.setattr(checkpoint.saving.Save, "write", write_late)
    text = r"cannot replace .*c': Not a directory; expected a checkpoint that this process can read; .* is unchanged; "
    with pytest.raises(NotADirectoryError, match=rf"^.*checkpoint\.save: {text}the files of this save are removed$"):
        checkpoint.save(path, {"turn": 2}, overwrite=True)
    assert os.listdir(tmp_path) == ["c"]
    assert path.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every folder")
def test_a_read_only_folder_is_an_error(tmp_path):
    (tmp_path / "run").mkdir(mode=0o555)
    text = (
        r"checkpoint\.save: cannot create .*\.c\.saving': Permission denied; expected a folder .* nothing was written"
    )
    with pytest.raises(PermissionError, match=text):
        checkpoint.save(tmp_path / "run" / "c", {"w": 1})


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path):
    text = r"checkpoint\.save: cannot create .*: .*; expected a folder in which this process can create files"
    for parent in ("/proc/self/no", "/proc/self/task"):
        with pytest.raises(OSError, match=text):
            checkpoint.save(f"{parent}/c", {"w": 1})


def test_the_folder_of_a_save_is_not_a_link_or_a_file(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "checkpoint.json").write_text("")
    (tmp_path / ".c.saving").symlink_to("precious")
    with pytest.raises(NotADirectoryError, match=r"checkpoint\.save: cannot create .*\.c\.saving'"):
        checkpoint.save(tmp_path / "c", {"w": 1})
    assert os.listdir(tmp_path / "precious") == ["checkpoint.json"]


def test_overwriting_a_link_replaces_the_checkpoint_that_it_names(tmp_path):
    checkpoint.save(tmp_path / "1", {"w": 1})
    (tmp_path / "latest").symlink_to("1")
    checkpoint.save(tmp_path / "latest", {"w": 2}, overwrite=True)
    assert (tmp_path / "latest").is_symlink()
    assert checkpoint.restore(tmp_path / "1") == checkpoint.restore(tmp_path / "latest") == {"w": 2}
    assert sorted(os.listdir(tmp_path)) == ["1", "latest"]


def test_donated_and_deleted_arrays_are_saved_with_their_values(tmp_path, monkeypatch):
    """The memory of arrays is not used again before it is written."""
    write = checkpoint.saving.Save.write
    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",))
        rows, columns = ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P(None, "x"))
        values = {name: np.full((512, 2048), i, np.float32) for i, name in enumerate("abcd")}
        arrays = {name: ad.device_put(value, rows) for name, value in values.items()}
        others = []

        def write_late(self):
            arrays["a"].delete()
            others.append(ad.device_put(arrays["b"], rows, donate=True))
            others.append(ad.device_put(arrays["c"], columns, donate=True))
            others.append(ad.jit(lambda x: x + 1, donate_argnums=0)(arrays["d"]))
            others.extend(ad.device_put(np.full((512, 2048), 7, np.float32), rows) for _ in range(8))
            write(self)

        monkeypatch.setattr(checkpoint.saving.Save, "write", write_late)
        checkpoint.save_async(tmp_path / "c", arrays).wait()
        assert [array.is_deleted() for array in arrays.values()] == [True] * 4
    found = checkpoint.restore(tmp_path / "c", verify=True)
    for name, value in values.items():
        assert np.array_equal(found[name], value), name


def test_a_link_to_itself_is_not_a_checkpoint(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(FileExistsError, match="loop"):
        checkpoint.save(loop, {"x": 1})
    with pytest.raises(ValueError, match="is not a checkpoint"):
        checkpoint.save(loop, {"x": 1}, overwrite=True)
    assert loop.is_symlink()


def test_a_name_that_is_too_long_is_an_error_of_the_system(tmp_path):
    for overwrite in (False, True):
        with pytest.raises(OSError, match="File name too long"):
            checkpoint.save(tmp_path / ("a" * 300), {"x": 1}, overwrite=overwrite)
