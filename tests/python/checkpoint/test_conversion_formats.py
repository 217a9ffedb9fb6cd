# SPDX-License-Identifier: Apache-2.0
"""convert from each format that needs no library to each format: exact bits of all dtypes, values, refusals."""

import json
import os

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, rules

NAN = np.array([0x7FF8DEADBEEF0001, 0xFFF0000000000001, 0x3FF0000000000000], np.uint64).view(np.float64)
NUMPY = {
    "bool": np.array([True, False, True]),
    "nan": NAN,
    "half": np.arange(7, dtype=np.uint16).view(np.float16).reshape(7, 1),
    "i64": np.array([[-(2**63), 2**63 - 1]]),
    "u8": np.arange(256, dtype=np.uint8).reshape(16, 16),
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((3, 0, 2), np.int16),
    "c64": np.array([1 + 2j, np.nan * 1j], np.complex64),
}
EVERY = NUMPY | {
    "bf16": np.arange(0, 1 << 16, 257)[:255].astype(np.uint16).view(ml_dtypes.bfloat16).reshape(5, 51),
    "e4m3": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
    "e5m2": np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2).reshape(2, 128),
    "int4 in int8": np.arange(-128, 128, dtype=np.int8).reshape(2, 2, 64),
}


def write_safetensors(path, arrays):
    types = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int16": "I16", "uint8": "U8"}
    types |= {"bool": "BOOL", "complex64": "C64", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "int8": "I8"}
    types |= {"float8_e5m2": "F8_E5M2"}
    header, begin = {}, 0
    for name, array in arrays.items():
        offsets = [begin, begin + array.nbytes]
        header[name] = {"dtype": types[array.dtype.name], "shape": array.shape, "data_offsets": offsets}
        begin += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(each.tobytes() for each in arrays.values()))


def write_source(folder, format):
    """Writes a checkpoint, and returns its path and its arrays."""
    if format == "artifex":
        checkpoint.save(folder / "a", EVERY)
        return folder / "a", EVERY
    if format == "safetensors":
        write_safetensors(folder / "a.safetensors", EVERY)
        return folder / "a.safetensors", EVERY
    if format == "dcp":
        checkpoint.save(folder / "whole", EVERY)
        checkpoint.convert(folder / "whole", folder / "a", num_files=3)
        os.unlink(folder / "a" / "checkpoint.json")
        known = {name: array for name, array in EVERY.items() if name not in ("empty", "c64")}
        return folder / "a", known | {"c64": NUMPY["c64"].view(np.float32).reshape(2, 2)}
    if format == "npz":
        np.savez(folder / "a.npz", **NUMPY)
        return folder / "a.npz", NUMPY
    np.save(folder / "a.npy", NUMPY["nan"])
    return folder / "a.npy", {"a": NUMPY["nan"]}


def same(path, arrays):
    with checkpoint.open(path) as reader:
        assert set(reader.names()) == set(arrays)
        for name, array in arrays.items():
            found = reader.read(name)
            assert (found.dtype, found.shape) == (array.dtype, array.shape), name
            assert found.tobytes() == array.tobytes(), name


@pytest.mark.parametrize("piece_bytes", [64 << 20, 16])
@pytest.mark.parametrize("to", ["artifex", "safetensors"])
@pytest.mark.parametrize("source", ["artifex", "safetensors", "dcp", "npz", "npy"])
def test_each_format_becomes_each_format_with_the_same_bits(source, to, piece_bytes, tmp_path, monkeypatch):
    path, arrays = write_source(tmp_path, source)
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
    with checkpoint.open(path) as reader:
        assert reader.format == (source if source != "npy" else "npz")
        if source in ("npy", "dcp"):
            arrays = {name: arrays.get(name, reader.read(name)) for name in reader.names()}
    done = checkpoint.convert(path, tmp_path / "b", format=to)
    same(tmp_path / "b", arrays)
    with checkpoint.open(tmp_path / "b") as reader:
        assert reader.format == to
    if to == "artifex":
        checkpoint.restore(tmp_path / "b", verify=True)
    assert done.nbytes == sum(array.nbytes for array in arrays.values())
    assert not (tmp_path / "b.partial").exists()


def test_shards_have_at_most_the_size_and_an_index(tmp_path):
    arrays = {f"layer.{number:02}.w": np.full((10, 10), number, np.float32) for number in range(7)}
    arrays["large"] = np.arange(400.0)
    np.savez(tmp_path / "a.npz", **arrays)
    done = checkpoint.convert(tmp_path / "a.npz", tmp_path / "b", format="safetensors", max_shard_size="1 kB")
    assert done.files == tuple(f"model-{number:05}-of-00005.safetensors" for number in range(1, 6))
    assert sorted(os.listdir(tmp_path / "b")) == [*done.files, "model.safetensors.index.json"]
    index = json.loads((tmp_path / "b" / "model.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 7 * 400 + 3200}
    assert index["weight_map"]["large"] == "model-00001-of-00005.safetensors"
    assert index["weight_map"]["layer.03.w"] == "model-00003-of-00005.safetensors"
    same(tmp_path / "b", arrays)


def test_a_target_with_the_suffix_is_one_file(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(5))
    checkpoint.convert(tmp_path / "a.npz", tmp_path / "b.safetensors", format="safetensors")
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b.safetensors"]
    same(tmp_path / "b.safetensors", {"w": np.arange(5)})
    with pytest.raises(ValueError, match=r"one file, and max_shard_size=8 needs 2; expected a folder; pass"):
        checkpoint.convert(
            tmp_path / "a.npz",
            tmp_path / "c.safetensors",
            rules=rules.split("w", ["a", "b"], 0, (2, 3)),
            format="safetensors",
            max_shard_size=8,
        )


def test_values_and_trees_stay_in_our_format(tmp_path):
    tree = {"a": {"w": np.arange(3)}, "b": [np.ones(2), 5], "name": "é", "rate": 0.1}
    checkpoint.save(tmp_path / "a", tree)
    checkpoint.convert(tmp_path / "a", tmp_path / "b", num_files=2)
    found = checkpoint.restore(tmp_path / "b")
    assert (found["b"][1], found["name"], found["rate"]) == (5, "é", 0.1)
    assert found["a"]["w"].tolist() == [0, 1, 2]


def test_values_that_a_format_lacks_are_an_error_unless_they_are_left_out(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.arange(3), "step": 5, "run": {"name": "x"}})
    text = (
        r"the format 'safetensors' cannot store the values 'run.name', 'step'; expected only arrays; pass "
        r"allow_extra=\['run.name', 'step'\] to leave them out"
    )
    with pytest.raises(ValueError, match=text):
        checkpoint.convert(tmp_path / "a", tmp_path / "b", format="safetensors")
    assert os.listdir(tmp_path) == ["a"]
    checkpoint.convert(tmp_path / "a", tmp_path / "b", format="safetensors", allow_extra=["step", "run.*"])
    same(tmp_path / "b", {"w": np.arange(3)})


def test_a_dtype_that_a_format_lacks_is_an_error(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.arange(3).astype(ml_dtypes.int4)})
    with pytest.raises(ValueError, match=r"have no type for int4, the dtype of 'w'; expected another dtype; cast them"):
        checkpoint.convert(tmp_path / "a", tmp_path / "b", format="safetensors")
    assert os.listdir(tmp_path) == ["a"]
    checkpoint.convert(tmp_path / "a", tmp_path / "b")
    same(tmp_path / "b", {"w": np.arange(3).astype(ml_dtypes.int4)})


@pytest.mark.parametrize("piece_bytes", [64 << 20, 24])
@pytest.mark.parametrize("format", ["artifex", "safetensors"])
def test_rules_change_arrays_piece_by_piece(format, piece_bytes, tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
    random = np.random.default_rng(0)
    layers = {f"layers.{number}.w": random.random((5, 7), np.float32) for number in range(4)}
    np.savez(tmp_path / "a.npz", **layers, qkv=np.arange(24).reshape(6, 4), rope=np.ones(3))
    checkpoint.convert(
        tmp_path / "a.npz",
        tmp_path / "b",
        rules=[
            rules.transpose("layers.{layer}.w", (1, 0)),
            rules.stack("layers.{layer}.w", "layers.w", axis="layer", position=1),
            rules.split("qkv", ["q", "k", "v"], 0, (2, 2, 2)),
            rules.cast("layers.w", "bfloat16"),
            rules.drop("rope"),
            rules.constant("step", (2, 3), np.int32, 7),
        ],
        format=format,
    )
    stacked = np.stack([each.T for each in layers.values()], 1).astype(ml_dtypes.bfloat16)
    q, k, v = np.arange(24).reshape(3, 2, 4)
    same(tmp_path / "b", {"layers.w": stacked, "q": q, "k": k, "v": v, "step": np.full((2, 3), 7, np.int32)})


def test_dtype_casts_all_floats(tmp_path):
    values = np.random.default_rng(0).random(9)
    np.savez(tmp_path / "a.npz", w=values, half=values.astype(np.float16), n=np.arange(3), z=values[:2] * 1j)
    checkpoint.convert(tmp_path / "a.npz", tmp_path / "b", dtype="bfloat16")
    half = values.astype(np.float16).astype(ml_dtypes.bfloat16)
    expected = {"w": values.astype(ml_dtypes.bfloat16), "half": half, "n": np.arange(3), "z": values[:2] * 1j}
    same(tmp_path / "b", expected)


def test_a_dry_run_writes_nothing_and_returns_the_table(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(6.0).reshape(2, 3))
    done = checkpoint.convert(tmp_path / "a.npz", tmp_path / "b", rules=rules.rename("w", "v"), dry_run=True)
    assert os.listdir(tmp_path) == ["a.npz"]
    assert done.seconds is None
    assert done.files == ("shard-00001-model-00001-of-00001.safetensors",)
    lines = str(done).splitlines()
    assert lines[-1] == f"{tmp_path}/b: artifex, 48 bytes in 1 file; nothing is written"
    assert any("v" in line and "w" in line for line in lines[:-1])


def test_the_text_of_a_conversion_is_a_summary(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(6.0))
    text = str(checkpoint.convert(tmp_path / "a.npz", tmp_path / "b"))
    assert text.startswith(f"{tmp_path}/b: artifex, 48 bytes in 1 file; measured ")
    assert text.endswith("/s")


def test_a_reader_can_be_the_source_and_stays_open(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(3))
    with checkpoint.open(tmp_path / "a.npz") as reader:
        checkpoint.convert(reader, tmp_path / "b")
        assert reader.read("w").tolist() == [0, 1, 2]


def test_a_target_that_exists_is_replaced_only_with_overwrite(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(3))
    checkpoint.save(tmp_path / "b", {"old": 1})
    with pytest.raises(FileExistsError, match=r"b' exists; expected a new path; pass overwrite=True to replace it"):
        checkpoint.convert(tmp_path / "a.npz", tmp_path / "b")
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b"]
    checkpoint.convert(tmp_path / "a.npz", tmp_path / "b", overwrite=True)
    same(tmp_path / "b", {"w": np.arange(3)})
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b"]
    (tmp_path / "c").mkdir()
    with pytest.raises(ValueError, match=r"c' exists and is not a checkpoint"):
        checkpoint.convert(tmp_path / "a.npz", tmp_path / "c", overwrite=True)


def test_a_target_in_the_source_folder_is_not_part_of_the_source(tmp_path):
    checkpoint.save(tmp_path / "a", {"w": np.arange(3)})
    checkpoint.convert(tmp_path / "a", tmp_path / "a" / "b")
    same(tmp_path / "a" / "b", {"w": np.arange(3)})


def test_no_device_is_used(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.arange(3))
    with ad.simulate(2):
        checkpoint.convert(tmp_path / "a.npz", tmp_path / "b")
        assert all(device.memory_stats()["peak_bytes_in_use"] == 0 for device in ad.devices())
