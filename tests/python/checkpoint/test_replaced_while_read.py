# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that another save replaces or removes while they are read: one whole save, or an error that says it."""

import errno
import os
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _core, checkpoint
from artifex_devices.checkpoint import restoring
from artifex_devices.checkpoint.stored import Stored


def tree(turn):
    """A tree whose shapes and files differ from turn to turn."""
    return {"turn": turn, "w": np.full(1000 * (1 + turn % 3), turn), "x": ad.device_put(np.full(5, turn))}


def turn_of(found):
    """The one turn of all leaves."""
    (turn,) = {found["turn"], *found["w"].tolist(), *np.asarray(found["x"]).tolist()}
    assert len(found["w"]) == 1000 * (1 + turn % 3)
    return turn


@pytest.fixture
def path(tmp_path):
    checkpoint.save(tmp_path / "c", tree(1))
    return tmp_path / "c"


def replace_once(path, before, monkeypatch, owner, name):
    """Lets a save replace the checkpoint at the first call of a function, before or after the call."""
    function = getattr(owner, name)
    turns = iter([2])

    def replacing(*args, **options):
        result = None if before else function(*args, **options)
        for turn in turns:
            checkpoint.save(path, tree(turn), overwrite=True)
        return function(*args, **options) if before else result

    monkeypatch.setattr(owner, name, replacing)


@pytest.mark.parametrize(
    ("owner", "name", "before", "expected"),
    [
        (Stored, "_open_folder", False, 2),  # opened, not listed
        (Stored, "_find_files", False, 2),  # listed, no file is open
        (Stored, "_read_headers", False, 2),  # the check at the end of the headers
        (restoring, "_read", True, 1),  # files are open
    ],
)
def test_a_restore_returns_one_whole_save(path, owner, name, before, expected, monkeypatch):
    replace_once(path, before, monkeypatch, owner, name)
    assert turn_of(checkpoint.restore(path, verify=True)) == expected
    assert turn_of(checkpoint.restore(path)) == 2


@pytest.mark.parametrize("name", ["_open_folder", "_find_files"])
def test_metadata_and_convert_read_one_whole_save(path, name, monkeypatch):
    replace_once(path, False, monkeypatch, Stored, name)
    found = checkpoint.metadata(path)
    assert (found.values["turn"], found.arrays["w"].shape) == (2, (3000,))
    monkeypatch.undo()
    checkpoint.save(path, tree(1), overwrite=True)
    replace_once(path, False, monkeypatch, Stored, name)
    checkpoint.convert(path, path.parent / "copy", num_files=2)
    assert turn_of(checkpoint.restore(path.parent / "copy", verify=True)) == 2


def test_convert_copies_the_checkpoint_that_it_has_opened(path, monkeypatch):
    replace_once(path, True, monkeypatch, _core, "_add_stored")
    checkpoint.convert(path, path.parent / "copy", num_files=3)
    assert turn_of(checkpoint.restore(path.parent / "copy", verify=True)) == 1


def test_a_file_that_is_replaced_after_its_header_was_read_is_read_as_it_was(path, monkeypatch):
    file = path.parent / "one.safetensors"
    shard = "shard-00001-model-00001-of-00001.safetensors"
    os.rename(path / shard, file)
    checkpoint.save(path, tree(2), overwrite=True)
    read = restoring._read

    def replace_and_read(*args):
        os.replace(path / shard, file)
        return read(*args)

    monkeypatch.setattr(restoring, "_read", replace_and_read)
    assert checkpoint.restore(file)["w"].tolist() == [1] * 2000


def test_files_that_are_not_open_when_they_are_removed_are_an_error_with_the_cause(path, monkeypatch):
    many = path.parent / "many"
    checkpoint.convert(path, many, num_files=70)
    replace_once(many, True, monkeypatch, restoring, "_read")
    text = (
        r"checkpoint\.restore: .*\.safetensors was removed or replaced while the checkpoint was read; .*call it again$"
    )
    with pytest.raises(OSError, match=text) as caught:
        checkpoint.restore(many)
    assert caught.value.errno == errno.ESTALE
    assert turn_of(checkpoint.restore(many)) == 2


def test_a_step_that_is_removed_while_it_is_read_is_an_error_with_the_cause(tmp_path, monkeypatch):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, tree(1))
    find = Stored._find_files

    def retire_and_find(self, folder):
        manager.save(2, tree(2))
        monkeypatch.undo()
        return find(self, folder)

    monkeypatch.setattr(Stored, "_find_files", retire_and_find)
    with pytest.raises(FileNotFoundError, match=r"1' was removed while it was read; expected a checkpoint"):
        manager.restore(1)


def test_a_checkpoint_that_is_replaced_at_each_try_is_an_error(path, monkeypatch):
    turns = iter(range(2, 1000))
    find = Stored._find_files

    def replace_and_find(self, folder):
        checkpoint.save(path, tree(next(turns)), overwrite=True)
        return find(self, folder)

    monkeypatch.setattr(Stored, "_find_files", replace_and_find)
    monkeypatch.setattr(checkpoint.stored, "_TRIES", 3)
    with pytest.raises(
        OSError, match=r"c' was replaced by another save each of the 3 times that it was read"
    ) as caught:
        checkpoint.restore(path)
    assert caught.value.errno == errno.ESTALE
    assert next(turns) == 5


def test_a_damaged_checkpoint_is_an_error_of_the_first_try(path, monkeypatch):
    os.truncate(path / "shard-00001-model-00001-of-00001.safetensors", 100)
    tries = []
    find = Stored._find_files
    monkeypatch.setattr(Stored, "_find_files", lambda self, folder: tries.append(1) or find(self, folder))
    with pytest.raises(ValueError, match="the file is damaged"):
        checkpoint.restore(path)
    assert tries == [1]


def test_restores_beside_saves_return_whole_saves(path):
    is_over = threading.Event()
    errors = []

    def save_all():
        try:
            for turn in range(2, 40):
                checkpoint.save(path, tree(turn), overwrite=True)
        except BaseException as error:
            errors.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=save_all)
    thread.start()
    turns = []
    while not is_over.is_set():
        turns.append(turn_of(checkpoint.restore(path)))
    thread.join()
    assert errors == []
    assert turns == sorted(turns)


def test_no_descriptor_stays_open(path):
    def count():
        return len(os.listdir("/proc/self/fd"))

    before = count()
    for _ in range(3):
        checkpoint.restore(path)
        checkpoint.metadata(path)
        with pytest.raises(ValueError, match="does not have"):
            checkpoint.restore(path, {"spam": 1})
    assert count() == before
