# SPDX-License-Identifier: Apache-2.0
"""Files of other programs: indexes, sets of files, parts without a shape, and files that are not safetensors."""

import errno
import json
import os
import re

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.command_line import main


def write(path, tensors, boxes=None):
    """Writes a safetensors file of float32 arrays, with the metadata of torch.distributed.checkpoint for `boxes`."""
    header, data = {}, b""
    for name, array in tensors.items():
        content = np.asarray(array, np.float32).tobytes()
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": "F32", "shape": list(np.shape(array)), "data_offsets": offsets}
        data += content
    if boxes is not None:
        header["__metadata__"] = {"DCP_SHARDING_INFO": json.dumps(boxes)}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_index(folder, places, total_size=None, name="model"):
    content = {"weight_map": places}
    if total_size is not None:
        content["metadata"] = {"total_size": total_size}
    (folder / f"{name}.safetensors.index.json").write_text(json.dumps(content))


def write_rows(folder, name, begin, end, rows=None):
    """Writes rows of an array (8, 5) as a part, with its global shape where `rows` is given."""
    box = {"saved_offsets": [begin, 0]} | ({} if rows is None else {"global_shape": [rows, 5]})
    write(folder / name, {"w": np.arange(40.0).reshape(8, 5)[begin:end]}, {"w": box})


OPERATIONS = {
    "metadata": checkpoint.metadata,
    "restore": checkpoint.restore,
    "convert": lambda path: checkpoint.convert(path, f"{path}.converted"),
}


def check_refused(path, error, text):
    """metadata, restore and convert refuse a path with the same text."""
    for name, call in OPERATIONS.items():
        with pytest.raises(error, match=rf"checkpoint\.{name}: .*{text}"):
            call(path)
    assert not os.path.exists(f"{path}.converted")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    write(path / "a.safetensors", {"a": np.ones(2), "b": np.ones(3)})
    write(path / "b.safetensors", {"c": np.ones(4)})
    return path


PLACES = {"a": "a.safetensors", "b": "a.safetensors", "c": "b.safetensors"}


@pytest.mark.parametrize("total_size", [None, 36, 36.0, 20])
def test_an_index_that_matches_its_files_is_read(folder, total_size):
    """Indexes of published models have sums that are smaller, of another dtype, or none."""
    write_index(folder, PLACES, total_size)
    assert set(checkpoint.metadata(folder).arrays) == {"a", "b", "c"}
    assert checkpoint.restore(folder / "model.safetensors.index.json")["c"].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("places", "total_size", "text"),
    [
        ({**PLACES, "a": "b.safetensors"}, None, r"'a' is in 'a\.safetensors', not in 'b\.safetensors'"),
        (PLACES, 40, r"have 36 bytes in the files; expected the 40 of its \"total_size\""),
    ],
)
def test_an_index_that_does_not_match_its_files_is_an_error(folder, places, total_size, text):
    write_index(folder, places, total_size)
    check_refused(folder, ValueError, text)


def test_a_file_of_an_index_that_is_not_there_is_named(folder):
    write_index(folder, {**PLACES, "d": "c.safetensors"})
    check_refused(folder, FileNotFoundError, r"names the file 'c\.safetensors', which is not in the folder")


def test_a_name_in_two_files_of_an_index_is_an_error(folder):
    write(folder / "b.safetensors", {"c": np.ones(4), "a": np.ones(2)})
    write_index(folder, PLACES)
    check_refused(folder, ValueError, r"'a' is in 'b\.safetensors', not in 'a\.safetensors'")


def test_of_several_indexes_one_is_chosen(folder):
    write_index(folder, {"c": "b.safetensors"}, name="model.fp16")
    write_index(folder, PLACES)
    check_refused(folder, ValueError, "has several indexes, .*; pass the path of one of them")
    assert set(checkpoint.metadata(folder / "model.fp16.safetensors.index.json").arrays) == {"c"}


def test_files_that_an_index_does_not_name_are_left_out(folder):
    write(folder / "consolidated.safetensors", {"other": np.ones(1)})
    write_index(folder, PLACES)
    assert set(checkpoint.restore(folder)) == {"a", "b", "c"}


@pytest.mark.parametrize("name", ["a", "other"])
def test_two_copies_of_a_model_are_not_merged(tmp_path, name):
    write(tmp_path / "model.safetensors", {"a": np.ones(2)})
    write(tmp_path / "consolidated.safetensors", {name: np.ones(2)})
    check_refused(
        tmp_path, ValueError, r"no index that says which of them belong together.*; pass the path of one file"
    )
    assert set(checkpoint.restore(tmp_path / "model.safetensors")) == {"a"}


def test_files_whose_names_count_them_are_read_together_if_all_are_there(tmp_path):
    for number in (1, 2, 3):
        write(tmp_path / f"model-0000{number}-of-00003.safetensors", {f"w{number}": np.full(2, number)})
    assert checkpoint.restore(tmp_path)["w3"].tolist() == [3, 3]
    os.remove(tmp_path / "model-00002-of-00003.safetensors")
    check_refused(tmp_path, ValueError, r"say that there are 3, and number 2 is missing")
    assert set(checkpoint.restore(tmp_path / "model-00003-of-00003.safetensors")) == {"w3"}


def test_a_plain_name_in_two_files_is_an_error(tmp_path):
    for number in (1, 2):
        write(tmp_path / f"model-0000{number}-of-00002.safetensors", {"a": np.ones(2)})
    check_refused(tmp_path, ValueError, r"both have 'a', and do not state parts of it")


def test_a_shape_that_no_file_states_is_marked(tmp_path):
    write_rows(tmp_path, "part0.safetensors", 0, 3)
    write_rows(tmp_path, "part1.safetensors", 3, 6)
    found = checkpoint.metadata(tmp_path)
    assert (found.arrays["w"].shape, found.arrays["w"].shape_is_derived) == ((6, 5), True)
    assert "shape derived from the parts present, no file states it: 'w'" in str(found)
    assert json.loads(found.to_json())["arrays"]["w"]["shape_is_derived"] is True
    write_rows(tmp_path, "part1.safetensors", 3, 6, rows=6)
    found = checkpoint.metadata(tmp_path)
    assert not found.arrays["w"].shape_is_derived
    assert "derived" not in str(found)
    assert checkpoint.restore(tmp_path)["w"].tolist() == np.arange(30.0).reshape(6, 5).tolist()


def test_parts_that_state_different_shapes_are_an_error(tmp_path):
    write_rows(tmp_path, "part0.safetensors", 0, 3, rows=8)
    write_rows(tmp_path, "part1.safetensors", 3, 6, rows=6)
    check_refused(tmp_path, ValueError, "the parts of 'w' have several types, shapes of the array")


def test_parts_that_overlap_are_an_error_everywhere(tmp_path):
    write_rows(tmp_path, "part0.safetensors", 0, 4)
    write_rows(tmp_path, "part1.safetensors", 3, 8)
    check_refused(tmp_path, ValueError, r"two stored parts of w overlap, at \(0, 0\) and \(3, 0\)")


HTML = b"\n<!DOCTYPE html><html><body>404</body></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (POINTER, "is a Git LFS pointer, .*; run `git lfs pull`"),
        (b"PK\x03\x04\x00\x00\x08\x08" + bytes(100), r"is a file of torch\.save .*torch\.load\(FILE, weights_only="),
    ],
)
def test_another_file_in_place_of_safetensors_is_named(tmp_path, content, text):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    check_refused(path, ValueError, text)
    check_refused(tmp_path, ValueError, text)


@pytest.mark.parametrize("content", [POINTER, HTML])
def test_another_file_in_place_of_an_index_is_named(folder, content):
    (folder / "model.safetensors.index.json").write_bytes(content)
    check_refused(folder, ValueError, r"index\.json' is (a Git LFS pointer|an HTML page)")


def test_a_header_may_begin_like_another_format(tmp_path):
    """A header of 0x04034b50 bytes begins as a ZIP file does."""
    text = b"{}".ljust(0x04034B50)
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    assert dict(checkpoint.metadata(tmp_path).arrays) == {}


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "checkpoint.json"])
def test_pipes_and_devices_are_not_read(tmp_path, name):
    os.mkfifo(tmp_path / name)
    check_refused(tmp_path, ValueError, "is not a regular file")
    os.remove(tmp_path / name)
    os.symlink("/dev/zero", tmp_path / name)
    for call in (checkpoint.metadata, checkpoint.restore):
        with pytest.raises(ValueError, match="is a link to '/dev/zero', outside the folder"):
            call(tmp_path)
        with pytest.raises(ValueError, match="is not a regular file"):
            call(tmp_path, follow_links=True)


def test_a_pipe_as_the_path_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    check_refused(tmp_path / "pipe", ValueError, "is not a regular file")


def test_a_link_that_leads_nowhere_is_named(tmp_path):
    os.symlink("nowhere", tmp_path / "model.safetensors")
    for call in OPERATIONS.values():
        with pytest.raises(FileNotFoundError, match=r"model\.safetensors: cannot open") as caught:
            call(tmp_path)
        assert caught.value.errno == errno.ENOENT


NAME = "w\x1b[2J\x9b31m\u202e"


def test_names_of_files_and_tensors_are_shown_escaped(tmp_path, capsys):
    write(tmp_path / "model.safetensors", {NAME: np.ones(2)})
    assert main(["checkpoint", "inspect", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert all(line.isprintable() for line in shown.split("\n"))
    assert r"w\x1b[2J\x9b31m\u202e" in shown
    assert all(line.isprintable() for line in str(checkpoint.metadata(tmp_path)).split("\n"))
    write_index(tmp_path, {"other": "model.safetensors"})
    assert main(["checkpoint", "inspect", str(tmp_path)]) == 2
    assert all(line.isprintable() for line in capsys.readouterr().err.split("\n"))
    for damaged in ({NAME: {"dtype": "F32", "shape": [3], "data_offsets": [0, 4]}}, {NAME: 3}):
        text = json.dumps(damaged).encode()
        os.remove(tmp_path / "model.safetensors.index.json") if damaged[NAME] != 3 else None
        (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
        with pytest.raises(ValueError, match=re.escape("checkpoint.metadata: ")) as caught:
            checkpoint.metadata(tmp_path)
        assert str(caught.value).isprintable()
