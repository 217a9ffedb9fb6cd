# SPDX-License-Identifier: Apache-2.0
"""checkpoint.open: checkpoints that Orbax writes, in each of its storages."""

import json
import os
import sys

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices._base.text import bytes_text
from artifex_devices.checkpoint.readers import orbax_reader

ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
pytest.importorskip("tensorstore", reason="tensorstore is not installed")

STORAGES = [(True, True), (True, False), (False, True), (False, False)]
BOXES = [(), (slice(2, 5),), (slice(None), slice(1, 4)), (slice(3, 3),), (slice(-3, None), slice(-1, None))]


def value(dtype, shape=(8, 6)):
    """An array of random bits."""
    dtype = np.dtype(dtype)
    most = 2 if dtype == np.bool_ else 256
    return np.random.default_rng(2).integers(0, most, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]


ARRAYS = {
    name: value(name)
    for name in ("float32", "float64", "float16", "int8", "int64", "uint16", "bool", "bfloat16", "float8_e4m3fn")
} | {"zeros": np.zeros((4, 3), np.float32), "small": np.int32(7)}


def save(path, tree, ocdbt=True, zarr3=False):
    with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt, use_zarr3=zarr3)) as saver:
        saver.save(path, tree)
    return path


@pytest.mark.parametrize(("ocdbt", "zarr3"), STORAGES)
def test_boxes_have_the_bits_that_orbax_saved(tmp_path, ocdbt, zarr3):
    tree = {"params": {"layers": [ARRAYS]}, "step": 7, "name": "run", "none": None}
    path = save(tmp_path / "c", tree, ocdbt, zarr3)
    with checkpoint.open(path) as reader:
        assert reader.format == "orbax"
        assert dict(reader.values) == {"name": "run"}
        assert int(reader.read("step")) == 7
        assert "Left out, because they are None or empty: 'none'." in reader.notes
        for name, array in ARRAYS.items():
            full = f"params.layers.0.{name}"
            assert (reader.shape(full), reader.dtype(full)) == (array.shape, array.dtype)
            for box in BOXES if np.ndim(array) == 2 else [()]:
                found = reader.read(full, box)
                expected = np.asarray(array)[box] if box else np.asarray(array)
                assert (found.shape, found.dtype) == (expected.shape, expected.dtype), (name, box)
                assert found.tobytes() == expected.tobytes(), (name, box)
                assert found.flags.c_contiguous


@pytest.mark.parametrize(("ocdbt", "zarr3"), STORAGES)
def test_arrays_are_restored_under_any_sharding(tmp_path, ocdbt, zarr3):
    path = save(
        tmp_path / "c", {"params": {"w": value("bfloat16"), "b": value("float32")}, "name": "run"}, ocdbt, zarr3
    )
    with ad.simulate(8):
        grid = ad.NamedSharding(ad.make_mesh((4, 2), ("x", "y")), ad.P("x", "y"))
        found = checkpoint.restore(path, {"params": {"w": grid, "b": np.zeros((8, 6), np.float32)}, "name": ""})
        assert found["params"]["w"].sharding == grid
        for name, dtype in [("w", "bfloat16"), ("b", "float32")]:
            assert np.asarray(found["params"][name]).tobytes() == value(dtype).tobytes()
        assert found["name"] == "run"


@pytest.mark.parametrize(("ocdbt", "zarr3"), STORAGES)
def test_a_chunk_that_is_larger_than_the_cache_is_decoded_once(tmp_path, monkeypatch, ocdbt, zarr3):
    arrays = {name: np.random.default_rng(0).standard_normal((256, 300)) for name in ("v", "w")}
    path = save(tmp_path / "c", arrays, ocdbt, zarr3)
    monkeypatch.setattr(orbax_reader, "_CACHE", 1 << 19)  # of 600 kB
    opened = []
    original = orbax_reader.OrbaxReader._opened

    def counted(reader, name, context):
        opened.append(name)
        return original(reader, name, context)

    monkeypatch.setattr(orbax_reader.OrbaxReader, "_opened", counted)
    with checkpoint.open(path) as reader:
        for name, array in arrays.items():
            store = None
            for begin in range(0, 256, 32):
                assert (reader.read(name, (slice(begin, begin + 32),)) == array[begin : begin + 32]).all()
                assert store in (None, reader._large[1])
                store = reader._large[1]
    assert opened == ["v", "w", "v", "w"]  # the headers, then each array with its cache
    planned = checkpoint.convert(path, tmp_path / "d", dry_run=True)
    kept = bytes_text((1 << 19) + 2 * 256 * 300 * 8)  # the cache, and a chunk before and after its decoding
    assert f"; the reader of orbax needs at most {kept} more\n" in str(planned)


@pytest.mark.parametrize("item", ["default", "items"])
def test_a_step_may_be_named_by_its_folder(tmp_path, item):
    save(tmp_path / "1000" / item, {"w": value("float32")})
    for path in (tmp_path / "1000", tmp_path / "1000" / item):
        assert checkpoint.open(path).read("w").tobytes() == value("float32").tobytes()


def test_a_step_of_a_manager_is_read(tmp_path):
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(3, args=ocp.args.StandardSave({"w": value("float32")}))
        manager.wait_until_finished()
    with checkpoint.open(tmp_path / "run" / "3") as reader:
        assert reader.read("w").tobytes() == value("float32").tobytes()


@pytest.mark.parametrize(("ocdbt", "zarr3"), STORAGES)
def test_without_metadata_the_arrays_that_are_there_are_listed(tmp_path, ocdbt, zarr3):
    path = save(tmp_path / "c", {"a": {"w": value("float32")}, "b": value("int8")}, ocdbt, zarr3)
    os.remove(path / "_METADATA")
    with checkpoint.open(path) as reader:
        assert reader.names() == ("a.w", "b")
        assert reader.read("a.w").tobytes() == value("float32").tobytes()
        assert any("a missing array cannot be noticed" in note for note in reader.notes)


@pytest.mark.parametrize("zarr3", [True, False])
def test_a_lost_chunk_and_a_lost_array_are_errors(tmp_path, zarr3):
    path = save(tmp_path / "c", {"w": value("float32"), "v": value("int8")}, False, zarr3)
    chunk = path / "w" / ("c/0/0" if zarr3 else "0.0")
    chunk.unlink()
    with checkpoint.open(path) as reader, pytest.raises(ValueError, match=r"Reader\.read: 'w' of .* cannot be read: "):
        reader.read("w")
    (path / "v" / ("zarr.json" if zarr3 else ".zarray")).unlink()
    with pytest.raises(ValueError, match=r"checkpoint\.open: 'v' of .* cannot be read: "):
        checkpoint.open(path)


def test_names_do_not_lead_out_of_the_folder(tmp_path):
    path = save(tmp_path / "c", {"w": value("float32")}, False)
    document = json.loads((path / "_METADATA").read_text())
    for name in ("../c/w", "/etc", "w\0", ""):
        entry = document["tree_metadata"]["('w',)"]
        entry["key_metadata"][0]["key"] = name
        (path / "_METADATA").write_text(json.dumps(document))
        with pytest.raises(ValueError, match="occurs twice or leaves the folder"):
            checkpoint.open(path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"tree_metadata": 3}', "[" * 100_000, '{"tree_metadata": {"x": {}}}']
)
def test_other_metadata_is_refused(tmp_path, content):
    path = save(tmp_path / "c", {"w": value("float32")})
    (path / "_METADATA").write_text(content)
    with pytest.raises(ValueError, match=r"checkpoint\.open: .*_METADATA' is not metadata of Orbax"):
        checkpoint.open(path)


def test_links_that_leave_the_folder_are_refused(tmp_path):
    path = save(tmp_path / "c", {"w": value("float32")}, False)
    (path / "w").rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path / "w")
    for call in (checkpoint.open, checkpoint.restore):
        with pytest.raises(ValueError, match="outside the folder"):
            call(path)
        call(path, follow_links=True)
    (tmp_path / "run").mkdir()
    os.symlink(path, tmp_path / "run" / "default")
    with pytest.raises(ValueError, match=r"default' is a link to .*, outside the folder"):
        checkpoint.open(tmp_path / "run")


def test_a_save_that_was_interrupted_is_refused(tmp_path):
    path = save(tmp_path / "c", {"w": value("float32")})
    path.rename(tmp_path / "c.orbax-checkpoint-tmp")
    with pytest.raises(ValueError, match="was not committed"):
        checkpoint.open(tmp_path / "c.orbax-checkpoint-tmp")


def test_without_tensorstore_the_install_line_is_shown(tmp_path, monkeypatch):
    path = save(tmp_path / "c", {"w": np.ones(2, ml_dtypes.bfloat16)})
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(ModuleNotFoundError, match=r"tensorstore is not installed.*`pip install tensorstore`"):
        checkpoint.open(path)


@pytest.mark.parametrize(("ocdbt", "zarr3"), STORAGES)
def test_damaged_files_are_refused_or_read(tmp_path, ocdbt, zarr3):
    """Changed bits and truncation, of each file in turn: no error of another class, and no wrong shape."""
    path = save(tmp_path / "c", {"w": value("float32"), "s": np.int32(7)}, ocdbt, zarr3)
    random = np.random.default_rng(0)
    outcomes = set()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        content = file.read_bytes()
        for turn in range(30):
            changed = bytearray(content)
            changed[random.integers(len(changed))] ^= 1 << random.integers(8)
            file.write_bytes(changed[: random.integers(len(changed))] if turn % 10 == 0 else changed)
            try:
                with checkpoint.open(path) as reader:
                    for name in reader.names():
                        assert reader.read(name).shape == reader.shape(name)
                outcomes.add("read")
            except (ValueError, OSError):
                outcomes.add("refused")
        file.write_bytes(content)
    assert outcomes == {"read", "refused"}
