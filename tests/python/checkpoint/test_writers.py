# SPDX-License-Identifier: Apache-2.0
"""convert to .npz, DCP in safetensors files and Orbax: bits, boxes, and what the formats cannot store."""

import errno
import json
import math
import zipfile

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, rules
from artifex_devices.checkpoint.writers import orbax_writer, writer

NUMPY = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
]  # fmt: skip
COMPLEX = ["complex64", "complex128"]


def value(dtype, shape=(8, 6)):
    """An array of random bits."""
    dtype = np.dtype(dtype)
    most = 2 if dtype == np.bool_ else 256
    return np.random.default_rng(2).integers(0, most, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


def converted(tmp_path, tree, format, **options):
    """Returns the path of a checkpoint in a format, from one of ours."""
    checkpoint.save(tmp_path / "source", tree)
    checkpoint.convert(tmp_path / "source", tmp_path / "target", format=format, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
    return tmp_path / "target"


def zarr_of(folder):
    """Returns an array in the format Zarr 2, read without a library."""
    header = json.loads((folder / ".zarray").read_text())
    assert (header["compressor"], header["filters"], header["order"]) == (None, None, "C")
    name = header["dtype"]
    dtype = np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)
    shape, chunk = header["shape"], header["chunks"]
    out = np.zeros(shape, dtype)
    grid = [range(-(-size // part)) for size, part in zip(shape, chunk, strict=True)]
    for index in np.ndindex(*map(len, grid)):
        part = np.frombuffer((folder / (".".join(map(str, index)) or "0")).read_bytes(), dtype).reshape(chunk)
        place = tuple(slice(i * c, i * c + c) for i, c in zip(index, chunk, strict=True))
        out[place] = part[tuple(map(slice, out[place].shape))]
    assert len(list(folder.iterdir())) == 1 + math.prod(map(len, grid))
    return out


def test_numpy_reads_npz(tmp_path):
    tree = {name: value(name) for name in NUMPY + COMPLEX}
    tree |= {"a/b.c": np.float32(2.5), "é": np.zeros((0, 3)), "one": np.ones((1, 1, 1)), "row": np.arange(5)}
    path = converted(tmp_path, tree, "npz")
    with np.load(path) as found:
        assert sorted(found.files) == sorted(tree)
        for name, array in tree.items():
            assert (found[name].shape, found[name].dtype) == (np.shape(array), np.asarray(array).dtype), name
            assert found[name].tobytes() == np.asarray(array).tobytes(), name
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    assert checkpoint.compare(tmp_path / "source", path)


def test_the_same_arrays_are_the_same_npz_file(tmp_path):
    first = converted(tmp_path, {"w": value("float32")}, "npz").read_bytes()
    checkpoint.convert(tmp_path / "source", tmp_path / "again", format="npz")
    assert (tmp_path / "again").read_bytes() == first


def test_dcp_has_a_file_for_each_process_and_states_the_boxes(tmp_path):
    tree = {name: value(name) for name in [*NUMPY, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]}
    tree = {np.dtype(name).name: array for name, array in tree.items()} | {"n": np.int32(7)}
    path = converted(tmp_path, tree, "dcp", num_files=3)
    assert sorted(file.name for file in path.iterdir()) == [
        f"shard-0000{process}-model-00001-of-00001.safetensors" for process in (1, 2, 3)
    ]
    with checkpoint.open(path) as reader:
        assert reader.format == "dcp"
        assert not any("a missing last file" in note for note in reader.notes)
        for name, array in tree.items():
            assert reader.read(name).tobytes() == array.tobytes(), name
    assert [part.shape for part in checkpoint.metadata(path).arrays["int8"].parts] == [(3, 6), (3, 6), (2, 6)]


@pytest.mark.parametrize("size", [40, 100, 1 << 20])
def test_chunks_of_orbax_are_files_of_row_major_elements(tmp_path, monkeypatch, size):
    monkeypatch.setattr(orbax_writer, "_CHUNK_BYTES", size)
    tree = {name: value(name, (7, 5)) for name in NUMPY + COMPLEX}
    tree |= {np.dtype(each).name: value(each) for each in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)}
    tree |= {"int4": np.array([1, -8, 7], ml_dtypes.int4), "scalar": np.float32(3)}
    path = converted(tmp_path, tree, "orbax", rules=rules.rename("float64", "x/y.z"))
    tree["x/y.z"] = tree.pop("float64")
    for name, array in tree.items():
        found = zarr_of(path / name)
        assert (found.shape, found.dtype) == (array.shape, array.dtype), name
        assert found.tobytes() == array.tobytes(), name
    entries = json.loads((path / "_METADATA").read_text())["tree_metadata"]
    assert [[key["key"] for key in row["key_metadata"]] for row in entries.values()] == [
        name.split(".") for name in sorted(tree)
    ]


def test_a_chunk_of_orbax_may_have_several_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 64)  # of the source, whose elements are 8 times as large
    monkeypatch.setattr(orbax_writer, "_CHUNK_BYTES", 32)
    tree = {"w": np.arange(77.0).reshape(11, 7), "v": np.arange(64.0)}
    path = converted(tmp_path, tree, "orbax", rules=rules.cast("*", "int8"))
    for name, array in tree.items():
        assert zarr_of(path / name).tolist() == array.tolist()


def test_chunks_of_orbax_are_finished_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(orbax_writer, "_GROUP_CHUNKS", 3)
    tree = {f"w{number}": value("float32") for number in range(8)}
    checkpoint.save(tmp_path / "source", tree)
    target = tmp_path / "target"
    count = 0

    class Failing(writer.Stream):
        def __init__(self, path):
            nonlocal count
            count += 1
            if count > 7:
                raise OSError(errno.EIO, "Input/output error")
            super().__init__(path)

    with monkeypatch.context() as patch:
        patch.setattr(orbax_writer, "Stream", Failing)
        with pytest.raises(OSError, match="has 2 finished files; the same call continues"):
            checkpoint.convert(tmp_path / "source", target, format="orbax")
    files = {name: tmp_path / "target.partial" / "files" / name / "0.0" for name in tree}
    times = {name: files[name].stat().st_mtime_ns for name in list(tree)[:6]}
    content = files["w4"].read_bytes()
    files["w4"].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    done = checkpoint.convert(tmp_path / "source", target, format="orbax")
    assert done.files == tuple(f"{name}/0.0" for name in tree)
    kept = {name for name, time_ns in times.items() if (target / name / "0.0").stat().st_mtime_ns == time_ns}
    assert kept == {"w0", "w1", "w2"}
    for name, array in tree.items():
        assert zarr_of(target / name).tobytes() == array.tobytes()


def test_chunks_of_orbax_are_the_parts_of_future_processes(tmp_path):
    checkpoint.save(tmp_path / "source", {"w": value("float32", (4, 8))})
    with ad.simulate(4, processes=2):
        like = {"w": ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P(None, "x"))}
        checkpoint.convert(tmp_path / "source", tmp_path / "target", format="orbax", like=like)
    assert json.loads((tmp_path / "target" / "w" / ".zarray").read_text())["chunks"] == [4, 4]


def test_numbers_become_scalars_of_orbax(tmp_path):
    path = converted(tmp_path, {"w": np.ones(2), "step": 7, "rate": 0.5, "on": True}, "orbax")
    assert {name: zarr_of(path / name).item() for name in ("step", "rate", "on")} == {
        "step": 7,
        "rate": 0.5,
        "on": True,
    }
    kinds = {
        row["key_metadata"][0]["key"]: row["value_metadata"]["value_type"]
        for row in json.loads((path / "_METADATA").read_text())["tree_metadata"].values()
    }
    assert kinds == {"w": "np.ndarray", "step": "scalar", "rate": "scalar", "on": "scalar"}


@pytest.mark.parametrize(
    ("format", "tree", "message"),
    [
        (
            "npz",
            {"b": np.ones(2, ml_dtypes.bfloat16), "w": np.ones(2)},
            r"\.npy files have no type for bfloat16, .*'b'",
        ),
        ("npz", {"a\0b": np.ones(2)}, r"'a\\x00b' cannot be names in an archive"),
        ("dcp", {"z": np.ones(2, complex)}, "have no type for complex128, the dtype of 'z'"),
        ("dcp", {"i": np.ones(2, ml_dtypes.int4)}, "have no type for int4, the dtype of 'i'"),
        ("orbax", {"e": np.ones((2, 0)), "w": np.ones(2)}, "Orbax cannot store arrays of size 0: 'e'; .*rules.drop"),
        ("orbax", {"name": "run", "w": np.ones(2)}, "Orbax cannot store texts.*: 'name'"),
        ("orbax", {"n": 2**70}, "integers of more than 64 bits.*: 'n'"),
        ("orbax", {"t": np.ones(2, ml_dtypes.int2)}, "arrays of Orbax have no type for int2"),
        ("orbax", {"a": np.ones(2), "a.b": np.ones(2)}, "these are not leaves there: 'a'"),
        ("orbax", {"..": np.ones(2)}, r"these are not leaves there: '\.\.'"),
    ],
)
def test_what_a_format_cannot_store_is_refused_before_a_byte_is_written(tmp_path, format, tree, message):
    checkpoint.save(tmp_path / "source", tree)
    with pytest.raises(ValueError, match=message):
        checkpoint.convert(tmp_path / "source", tmp_path / "target", format=format)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("format", ["npz", "dcp", "orbax"])
def test_a_failed_conversion_continues(tmp_path, monkeypatch, format):
    monkeypatch.setattr(orbax_writer, "_CHUNK_BYTES", 64)
    checkpoint.save(tmp_path / "source", {f"w{number}": value("float32") for number in range(4)})
    calls = []

    def fail(count):
        calls.append(count)
        raise OSError("stop")

    options = {"format": format} if format != "dcp" else {"format": format, "num_files": 4}
    with pytest.raises(OSError, match="stop"):
        checkpoint.convert(tmp_path / "source", tmp_path / "target", progress=fail, **options)
    assert not (tmp_path / "target").exists()
    checkpoint.convert(tmp_path / "source", tmp_path / "target", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]
    if format != "orbax":
        assert checkpoint.compare(tmp_path / "source", tmp_path / "target")
