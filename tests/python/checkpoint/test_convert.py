# SPDX-License-Identifier: Apache-2.0
"""convert: other numbers of files, from any files that restore reads, with progress."""

import json
import os

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint


@pytest.fixture
def tree():
    random = np.random.default_rng(0)
    return {
        "w": random.integers(0, 256, (13, 5, 3), np.uint8),
        "large": random.integers(0, 2**31, (1025, 1023), np.int32),  # pieces that do not begin at rows
        "z": random.random((6, 2)) * 1j,
        "int4": random.integers(-8, 8, 7).astype(ml_dtypes.int4),
        "b": random.random((3, 1)).astype(ml_dtypes.bfloat16),
        "scalar": np.float32(2.5),
        "empty": np.zeros((0, 4)),
        "step": 12,
        "name": "é",
    }


def same(found, tree):
    assert sorted(found) == sorted(tree)
    for name, value in tree.items():
        assert type(found[name]) is type(value) or isinstance(value, np.generic)
        assert np.asarray(found[name]).tobytes() == np.asarray(value).tobytes(), name


@pytest.mark.parametrize("num_files", [1, 2, 7])
def test_the_bits_stay_in_any_number_of_files(tree, num_files, tmp_path):
    with ad.simulate(8):
        mesh = ad.make_mesh((4, 2), ("x", "y"))
        target = ad.NamedSharding(mesh, ad.P("y", "x"), uneven="last-short")
        checkpoint.save(tmp_path / "a", {**tree, "large": ad.device_put(tree["large"], target)})
    checkpoint.convert(tmp_path / "a", tmp_path / "b", num_files=num_files)
    checkpoint.convert(tmp_path / "b", tmp_path / "c", num_files=3)
    for folder in ("b", "c"):
        same(checkpoint.restore(tmp_path / folder, verify=True), tree)
    assert len(checkpoint.metadata(tmp_path / "b").arrays["large"].parts) == num_files
    assert sum(name.endswith(".safetensors") for name in os.listdir(tmp_path / "c")) == 3


def test_an_error_of_the_progress_function_ends_the_conversion(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.ones(3)})

    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        checkpoint.convert(tmp_path / "a", tmp_path / "b", progress=fail)
    assert os.listdir(tmp_path) == ["a"]


def test_a_safetensors_file_becomes_a_checkpoint(tmp_path):
    values = {"a": np.arange(4, dtype=np.float32), "b": np.arange(2, dtype=np.float32)}
    header = {
        "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
    }
    text = json.dumps(header).encode()
    data = b"".join(value.tobytes() for value in values.values())
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    checkpoint.convert(tmp_path / "model.safetensors", tmp_path / "c", num_files=2)
    same(checkpoint.restore(tmp_path / "c", verify=True), values)


def test_a_damaged_source_leaves_nothing(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.arange(600.0)})
    file = tmp_path / "a" / "shard-00001-model-00001-of-00001.safetensors"
    os.truncate(file, os.path.getsize(file) - 8)
    with pytest.raises(ValueError, match=r"the file is damaged"):
        checkpoint.convert(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def saved_for_damage(folder, format):
    """Saves one array in one file, and returns the path and the file."""
    array = {"w": np.arange(600.0)}
    if format == "artifex":
        checkpoint.save(folder / "a", array)
        return folder / "a", next((folder / "a").glob("*.safetensors"))
    (np.savez if format == "npz" else np.savez_compressed)(folder / "a.npz", **array)
    return folder / "a.npz", folder / "a.npz"


@pytest.mark.parametrize("format", ["artifex", "npz", "compressed npz"])
@pytest.mark.parametrize("operation", ["convert", "compare", "restore"])
def test_errors_of_damaged_bytes_name_the_function_the_file_and_the_array(tmp_path, format, operation):
    path, file = saved_for_damage(tmp_path, format)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    calls = {
        "convert": lambda: checkpoint.convert(path, tmp_path / "b"),
        "compare": lambda: checkpoint.compare(path, path),
        "restore": lambda: checkpoint.restore(path, verify=True),
    }
    with pytest.raises(ValueError, match=rf"^checkpoint\.{operation}: .*{file.name}.*\bw\b") as caught:
        calls[operation]()
    assert "Reader" not in str(caught.value)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("operation", ["convert", "compare"])
def test_types_without_a_dtype_are_errors_of_the_function(tmp_path, operation):
    np.save(tmp_path / "a.npy", np.array(["x"]))
    calls = {
        "convert": lambda: checkpoint.convert(tmp_path / "a.npy", tmp_path / "b"),
        "compare": lambda: checkpoint.compare(tmp_path / "a.npy", tmp_path / "a.npy"),
    }
    with pytest.raises(ValueError, match=rf"^checkpoint\.{operation}: 'value' is stored as <U1, which has no dtype"):
        calls[operation]()
