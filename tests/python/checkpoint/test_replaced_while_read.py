# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that another save replaces while they are read: one whole save, or an error that says it.

tests/cpp/checkpoint/stored_checkpoint_open_test.cpp has saves that come while the headers are read.
"""

import errno
import os
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import converting, restoring


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


def replace_before(path, monkeypatch, owner, name):
    """Lets a save replace the checkpoint before the first call of a function."""
    function = getattr(owner, name)
    turns = iter([2])

    def replacing(*args, **options):
        for turn in turns:
            checkpoint.save(path, tree(turn), overwrite=True)
        return function(*args, **options)

    monkeypatch.setattr(owner, name, replacing)


def test_a_restore_reads_the_checkpoint_whose_headers_it_has_read(path, monkeypatch):
    replace_before(path, monkeypatch, restoring, "_read")
    assert turn_of(checkpoint.restore(path, verify=True)) == 1
    assert turn_of(checkpoint.restore(path)) == 2


def test_convert_copies_the_checkpoint_that_it_has_opened(path, monkeypatch):
    replace_before(path, monkeypatch, converting.PartialFolder, "resume")
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
    replace_before(many, monkeypatch, restoring, "_read")
    text = (
        r"checkpoint\.restore: .*\.safetensors was removed or replaced while the checkpoint was read; .*call it again$"
    )
    with pytest.raises(OSError, match=text) as caught:
        checkpoint.restore(many)
    assert caught.value.errno == errno.ESTALE
    assert turn_of(checkpoint.restore(many)) == 2


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
