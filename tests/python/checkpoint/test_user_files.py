# SPDX-License-Identifier: Apache-2.0
"""Files of others in the folders of checkpoints, and links to checkpoints: no save and no Manager removes them."""

import os
import re

import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import folders


def save_in_background(path, tree):
    checkpoint.save_async(path, tree, overwrite=True).wait()


def convert_one(path, tree):
    checkpoint.convert(path.parent / "source", path, overwrite=True)


def save_a_step(path, tree):
    checkpoint.Manager(path.parent).save(int(path.name), tree, overwrite=True)


WAYS = {
    "save": lambda path, tree: checkpoint.save(path, tree, overwrite=True),
    "save_async": save_in_background,
    "convert": convert_one,
    "Manager": save_a_step,
}


@pytest.mark.parametrize("kind", ["file", "folder", "folder with the name of a shard"])
@pytest.mark.parametrize("way", WAYS)
def test_a_save_that_would_remove_a_foreign_file_is_refused_before_it_writes(way, kind, tmp_path):
    checkpoint.save(tmp_path / "source", {"w": 2})
    path = tmp_path / "1"
    checkpoint.save(path, {"w": 1})
    name = "shard-00001-model-00001-of-00001.safetensors" if kind.startswith("folder with") else "notes"
    if kind == "file":
        (path / name).write_text("mine")
    else:
        (path / name).mkdir()
    text = (
        f"{str(path)!r} contains {name!r}, which no save wrote; expected only files of a checkpoint, because the save "
        "removes this folder; move it away, or save to another path"
    )
    for _ in range(2):
        with pytest.raises(OSError, match=re.escape(text)):
            WAYS[way](path, {"w": 2})
        assert sorted(os.listdir(tmp_path)) == ["1", "source"]
        assert sorted(os.listdir(path)) == sorted(["checkpoint.json", name])
    os.rename(path / name, tmp_path / "mine")
    WAYS[way](path, {"w": 2})
    assert checkpoint.restore(path) == {"w": 2}
    assert sorted(os.listdir(tmp_path)) == ["1", "mine", "source"]


def test_a_foreign_file_that_comes_during_the_save_is_an_error_and_both_stay(tmp_path, monkeypatch):
    path = tmp_path / "c"
    checkpoint.save(path, {"w": 1})
    write = checkpoint.saving.Save.write

    def write_late(self):
        (path / "notes").write_text("mine")
        write(self)

    monkeypatch.setattr(checkpoint.saving.Save, "write", write_late)
    with pytest.raises(OSError, match=r"contains 'notes', .*c' is unchanged; the files of this save are removed"):
        checkpoint.save(path, {"w": 2}, overwrite=True)
    assert os.listdir(tmp_path) == ["c"]
    assert checkpoint.restore(path) == {"w": 1}
    assert (path / "notes").read_text() == "mine"


def test_a_foreign_file_in_the_folder_of_a_killed_save_is_an_error_that_names_it(tmp_path):
    (tmp_path / ".c.saving").mkdir()
    (tmp_path / ".c.saving" / "notes").write_text("mine")
    with pytest.raises(OSError, match=r"\.c\.saving' contains 'notes', which no save wrote; .*move it away"):
        checkpoint.save(tmp_path / "c", {"w": 1})
    assert os.listdir(tmp_path) == [".c.saving"]
    os.rename(tmp_path / ".c.saving" / "notes", tmp_path / "notes")
    checkpoint.save(tmp_path / "c", {"w": 1})
    assert sorted(os.listdir(tmp_path)) == ["c", "notes"]


def test_the_folder_of_a_killed_save_is_not_used_again(tmp_path):
    """A reader that opened a folder reads files of one save only."""
    (tmp_path / ".c.saving").mkdir()
    (tmp_path / ".c.saving" / "checkpoint.json").write_text("")
    descriptor = os.open(tmp_path / ".c.saving", os.O_RDONLY)
    checkpoint.save(tmp_path / "c", {"w": 1})
    assert os.listdir(descriptor) == []
    assert not os.path.samestat(os.fstat(descriptor), os.stat(tmp_path / "c"))
    os.close(descriptor)


def test_a_manager_keeps_a_step_that_has_a_foreign_file(tmp_path):
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    manager.save(1, {"w": 1})
    (tmp_path / "1" / "notes").write_text("mine")
    for step in (2, 3):
        manager.save(step, {"w": step})
    assert manager.all_steps() == [1, 3]
    assert manager.restore(1) == {"w": 1}
    assert (tmp_path / "1" / "notes").read_text() == "mine"
    os.unlink(tmp_path / "1" / "notes")
    manager.save(4, {"w": 4})
    assert os.listdir(tmp_path) == ["4"]


def test_foreign_files_at_the_names_of_retired_steps_stay_without_an_error(tmp_path):
    (tmp_path / ".1.removed").mkdir()
    (tmp_path / ".1.removed" / "notes").write_text("mine")
    (tmp_path / ".1.1.removed").write_text("mine")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "checkpoint.json").write_text("mine")
    (tmp_path / ".1.2.removed").symlink_to("precious")
    manager = checkpoint.Manager(tmp_path, max_to_keep=1)
    for step in (1, 2):
        manager.save(step, {"w": step})
    assert sorted(os.listdir(tmp_path)) == [".1.1.removed", ".1.2.removed", ".1.removed", "2", "precious"]
    assert os.listdir(tmp_path / ".1.removed") == ["notes"]
    assert os.listdir(tmp_path / "precious") == ["checkpoint.json"]


def test_a_manager_leaves_a_step_that_is_a_link_and_what_it_links_to(tmp_path):
    checkpoint.save(tmp_path / "archive" / "best", {"w": 7})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "1").symlink_to(tmp_path / "archive" / "best")
    manager = checkpoint.Manager(tmp_path / "run", max_to_keep=1)
    for step in (2, 3):
        manager.save(step, {"w": step})
    assert manager.all_steps() == [1, 3]
    assert sorted(os.listdir(tmp_path / "run")) == ["1", "3"]
    assert manager.restore(1) == checkpoint.restore(tmp_path / "archive" / "best") == {"w": 7}


def test_remove_refuses_a_link(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": 1})
    (tmp_path / "link").symlink_to("c")
    with pytest.raises(OSError, match="link"):
        folders.remove(str(tmp_path / "link"))
    assert checkpoint.restore(tmp_path / "link") == {"w": 1}


def test_a_manager_of_a_directory_that_is_a_link_locks_what_it_links_to(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to("disk")
    manager = checkpoint.Manager(tmp_path / "run", max_to_keep=1)
    for step in (1, 2):
        manager.save(step, {"w": step})
    assert os.listdir(tmp_path / "disk") == ["2"]
