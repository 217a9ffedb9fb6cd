# SPDX-License-Identifier: Apache-2.0
"""Errors: wrong arguments, and files that are missing, truncated, damaged or hostile."""

import json
import os
import re
import resource

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint

FILE = "shard-00001-model-00001-of-00001.safetensors"


@pytest.fixture
def saved(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": np.arange(6.0), "step": 3})
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("like", "error", "text"),
    [
        ({"w": np.zeros(6)}, ValueError, "`like` does not have 'step' of the checkpoint"),
        ({"w": np.zeros(6), "step": 0, "b": 1}, ValueError, "does not have 'b'; it has 'w', 'step'"),
        (
            {"w": np.zeros(5), "step": 0},
            ValueError,
            "'w' is float64 of shape (6,) in the checkpoint; expected float64 of",
        ),
        ({"w": np.zeros(6, int), "step": 0}, ValueError, "expected int64 of shape (6,)"),
        ({"w": 1.0, "step": 0}, ValueError, "'w' is an array in the checkpoint; expected a value of type float"),
        ({"w": np.zeros(6), "step": 0.0}, ValueError, "'step' is a value of type int; expected float"),
        ({"w": np.zeros(6), "step": np.zeros(())}, ValueError, "'step' is the value 3 in the checkpoint"),
        ({"w": object(), "step": 0}, TypeError, "the leaf 'w' of `like` is <object object"),
    ],
)
def test_a_tree_that_differs_is_an_error(saved, like, error, text):
    with pytest.raises(error, match=re.escape(text)):
        checkpoint.restore(saved, like)


def test_strict_false_leaves_names_out(saved):
    assert checkpoint.restore(saved, {"step": 0}, strict=False) == {"step": 3}


def test_wrong_arguments_of_save(tmp_path):
    with pytest.raises(TypeError, match=r"checkpoint\.save: the leaf 'a' is <object .*expected an Array, ndarray"):
        checkpoint.save(tmp_path / "c", {"a": object()})
    with pytest.raises(ValueError, match=r"checkpoint\.save: 'a\.b' each name two leaves"):
        checkpoint.save(tmp_path / "c", {"a.b": 1, "a": {"b": 2}})
    with pytest.raises(TypeError, match=r"checkpoint\.save: path is 3 \(int\); expected a path"):
        checkpoint.save(3, {"a": 1})
    with pytest.raises(ValueError, match=r"checkpoint\.save: the path is '/'; expected that of a new folder"):
        checkpoint.save("/", {"a": 1})
    with pytest.raises(ValueError, match="a leaf has the name '__metadata__', which safetensors files use"):
        checkpoint.save(tmp_path / "c", {"__metadata__": np.ones(1)})
    with pytest.raises(TypeError, match="overwrite is 1"):
        checkpoint.save(tmp_path / "c", {"a": 1}, overwrite=1)
    with pytest.raises(TypeError, match="dtype"):
        checkpoint.save(tmp_path / "c", {"a": np.array([object()])})
    deleted = ad.device_put(np.ones(3))
    deleted.delete()
    with pytest.raises(RuntimeError, match="was deleted"):
        checkpoint.save(tmp_path / "c", {"a": deleted})
    assert os.listdir(tmp_path) == []


def test_an_existing_path_is_not_replaced(saved, tmp_path):
    with pytest.raises(FileExistsError, match=r"exists; expected a new path; pass overwrite=True to replace it"):
        checkpoint.save(saved, {"a": 1})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=r"exists and is not a checkpoint"):
        checkpoint.save(tmp_path / "other", {"a": 1}, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["c", "other"]
    assert checkpoint.restore(saved)["step"] == 3


def test_a_path_without_a_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; expected a checkpoint"):
        checkpoint.restore(tmp_path / "c")
    with pytest.raises(FileNotFoundError, match=r"has neither checkpoint\.json nor safetensors files"):
        checkpoint.restore(tmp_path)


def test_a_changed_byte_is_found_by_verify_only(saved):
    text = bytearray((saved / FILE).read_bytes())
    text[-1] ^= 1
    (saved / FILE).write_bytes(text)
    assert checkpoint.restore(saved)["w"][:5].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(
        ValueError, match=r"the checksum of 48 bytes of w is [0-9a-f]{8}; expected [0-9a-f]{8}; the file"
    ):
        checkpoint.restore(saved, verify=True)


@pytest.mark.parametrize("size", [0, 7, 8, 100, 4095, 4096, 4143])
def test_a_truncated_file_is_an_error(saved, size):
    os.truncate(saved / FILE, size)
    with pytest.raises(ValueError, match=r"checkpoint\.restore: "):
        checkpoint.restore(saved)


def test_a_missing_file_is_an_error(saved):
    (saved / FILE).unlink()
    with pytest.raises(ValueError, match="'w' has 0 bytes in the files; expected 48 for float64 of shape"):
        checkpoint.restore(saved)


@pytest.mark.parametrize(
    "paths",
    [
        [],
        {"w": []},
        {"w": 3},
        {"w": [True]},
        {"w": [-1]},
        {"w": [None, "a"]},
        {"w": ["step"]},
        {"w": ["step", "x"]},
        {"step": ["w", "x", 0]},
    ],
)
def test_hostile_paths_are_an_error(saved, paths):
    file = saved / "checkpoint.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "paths": paths}))
    with pytest.raises(ValueError, match=r"checkpoint\.json' has a path that is not valid: "):
        checkpoint.restore(saved)


def write_header(path, text, data=b"", length=None):
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)


@pytest.mark.parametrize(
    ("text", "data", "length"),
    [
        (b"{}", b"", 2**63),
        (b"{}", b"", 2**64 - 1),
        (b"{}", b"", 3),
        (b"[]", b"", None),
        (b"\xff", b"", None),
        (b"[" * 100, b"", None),
        (b'{"a":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,1]}}', b"1", None),
        (b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":' + b"[" * 10000 + b"}}", b"1", None),
        (b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}}', b"1", None),
    ],
)
def test_a_hostile_header_is_an_error(tmp_path, text, data, length):
    write_header(tmp_path / "model.safetensors", text, data, length)
    with pytest.raises(ValueError, match=r"checkpoint\.metadata: .*model\.safetensors"):
        checkpoint.metadata(tmp_path)


def test_a_global_shape_allocates_nothing(tmp_path):
    boxes = json.dumps(json.dumps({"a": {"saved_offsets": [0], "global_shape": [2**60]}}))
    head = f'{{"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}},"__metadata__":{{"DCP_SHARDING_INFO":{boxes}}}}}'
    write_header(tmp_path / "model.safetensors", head.encode(), b"1")
    with pytest.raises(ValueError, match=f"'a' has 1 bytes in the files; expected {2**60} for uint8"):
        checkpoint.restore(tmp_path)


def test_parts_that_overlap_are_an_error(tmp_path):
    for i, (origin, size) in enumerate([(0, 3), (2, 2), (5, 1)]):  # as many bytes as the array, one of them twice
        boxes = json.dumps(json.dumps({"a": {"saved_offsets": [origin], "global_shape": [6]}}))
        head = (
            f'{{"a":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}},'
            f'"__metadata__":{{"DCP_SHARDING_INFO":{boxes}}}}}'
        )
        write_header(tmp_path / f"{i}.safetensors", head.encode(), b"123"[:size])
    with pytest.raises(ValueError, match=r"two stored parts of a overlap, at \(0,\) and \(2,\)"):
        checkpoint.restore(tmp_path)


@pytest.mark.parametrize("name", ["../a.safetensors", "/etc/a.safetensors", "a.bin", 3, "a\\u0000.safetensors"])
def test_an_index_names_files_of_its_folder_only(tmp_path, name):
    text = json.dumps({"weight_map": {"a": name}}).replace("\\\\u", "\\u")
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError, match=r"expected names of safetensors files in the same folder|is not an index"):
        checkpoint.metadata(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"format": "other"},
        {"process_count": 0},
        {"arrays": {"w": {"shape": [-1], "dtype": "float64"}}},
        {"arrays": {"w": {"shape": [2**63], "dtype": "float64"}}},
        {"arrays": {"w": {"shape": [6], "dtype": "object"}}},
        {"arrays": {"w": {"shape": [6], "dtype": "__class__"}}},
        {"arrays": []},
        {"values": {"a": {"type": "eval", "text": "1"}}},
        {"values": {"a": {"type": "int", "text": "x"}}},
        {"values": {"a": {"type": "bool", "text": "1"}}},
    ],
)
def test_a_damaged_manifest_is_an_error(saved, change):
    document = json.loads((saved / "checkpoint.json").read_text())
    (saved / "checkpoint.json").write_text(json.dumps({**document, **change}))
    with pytest.raises(ValueError, match=r"checkpoint\.restore: .*checkpoint\.json"):
        checkpoint.restore(saved)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", "{}", '{"format": 1}'])
def test_a_manifest_that_is_not_one_is_an_error(saved, text):
    (saved / "checkpoint.json").write_text(text)
    with pytest.raises(
        ValueError, match=r"checkpoint\.json': (the JSON is not valid at byte|the file does not have the format)"
    ):
        checkpoint.restore(saved)


def test_a_file_of_another_save_is_an_error(saved, tmp_path):
    checkpoint.save(tmp_path / "d", {"v": np.ones(3)})
    os.rename(tmp_path / "d" / FILE, saved / "shard-00002-model-00001-of-00001.safetensors")
    with pytest.raises(ValueError, match=r"has 'v', which checkpoint\.json does not list"):
        checkpoint.restore(saved)


def test_a_named_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="is not a regular file"):
        checkpoint.metadata(tmp_path)


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"is a file; expected a folder; save to another path"):
        checkpoint.save(tmp_path / "file" / "c", {"a": 1})


def test_a_sharding_without_devices_is_an_error(saved):
    mesh = ad.AbstractMesh((2,), ("x",))
    with pytest.raises(ValueError, match=r"checkpoint\.restore"):
        checkpoint.restore(saved, {"w": ad.NamedSharding(mesh, ad.P("x")), "step": 0})


def test_a_full_disk_leaves_the_previous_checkpoint(saved):
    """A limit on the size of files stands for a full disk: the system writes a part, then refuses."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(
            OSError, match=rf"checkpoint\.save: .*{FILE}: cannot write \d+ bytes at \d+: File too large"
        ):
            checkpoint.save(saved, {"w": np.zeros(100_000)}, overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(saved.parent) == ["c"]
    assert checkpoint.restore(saved)["w"].tolist() == [0, 1, 2, 3, 4, 5]
