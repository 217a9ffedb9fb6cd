# SPDX-License-Identifier: Apache-2.0
"""restore: checkpoints of other programs, from their paths and from readers. oracle/ has those of torch and Orbax."""

import os

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint.readers import npz_reader
from artifex_devices.testing import run_processes

W = np.arange(13 * 6, dtype=np.float32).reshape(13, 6)


@pytest.fixture(params=[np.savez, np.savez_compressed])
def path(tmp_path, request):
    request.param(tmp_path / "a.npz", **{"layers.w": W, "b": np.asfortranarray(W.astype(np.int16))})
    return tmp_path / "a.npz"


@pytest.mark.parametrize("spec", [(), ("x",), (None, "y"), ("y", "x"), (("x", "y"),)])
def test_arrays_have_the_sharding_of_like(path, spec):
    with ad.simulate(8):
        sharding = ad.NamedSharding(ad.make_mesh((4, 2), ("x", "y")), ad.P(*spec), uneven="last-short")
        like = {"layers": {"w": sharding}, "b": ad.ShapeDtypeStruct((13, 6), np.int16)}
        found = checkpoint.restore(path, like)
        assert found["layers"]["w"].sharding == sharding
        assert np.asarray(found["layers"]["w"]).tobytes() == W.tobytes()
        assert isinstance(found["b"], np.ndarray)
        assert found["b"].tolist() == W.tolist()


def test_each_box_is_read_once(path, monkeypatch):
    read = []
    inner = npz_reader.NpzReader._read

    def noted(self, operation, name, dtype, box, verify):
        read.append((operation, box))
        return inner(self, operation, name, dtype, box, verify)

    monkeypatch.setattr(npz_reader.NpzReader, "_read", noted)
    counts = []
    with ad.simulate(8):
        sharding = ad.NamedSharding(ad.make_mesh((4, 2), ("x", "y")), ad.P(None, "y"))
        checkpoint.restore(path, {"layers": {"w": sharding}}, strict=False, progress=counts.append)
    assert read == [("checkpoint.restore", ((0, begin), (13, 3))) for begin in (0, 3)]
    assert counts[-1] == W.nbytes


def test_each_process_reads_the_boxes_of_its_devices(path, monkeypatch):
    read = set()
    inner = npz_reader.NpzReader._read

    def noted(self, operation, name, dtype, box, verify):
        read.add((ad.process_index(), box))
        return inner(self, operation, name, dtype, box, verify)

    monkeypatch.setattr(npz_reader.NpzReader, "_read", noted)

    def restore():
        sharding = ad.NamedSharding(ad.make_mesh((4,), ("x",)), ad.P(None, "x"), uneven="last-short")
        found = checkpoint.restore(path, {"b": sharding}, strict=False)["b"]
        return [(shard.index[1].start, np.asarray(shard.data).tolist()) for shard in found.addressable_shards]

    for results in run_processes(restore, 2, devices=2).results:
        for start, rows in results:
            assert rows == W[:, start : start + 2].tolist()
    boxes = [(0, 0, 2), (0, 2, 2), (1, 4, 2), (1, 6, 0)]  # process, first column, columns
    assert read == {(process, ((0, begin), (13, size))) for process, begin, size in boxes}


def test_without_like_it_is_a_dict_by_name(path):
    found = checkpoint.restore(path)
    assert list(found) == ["layers.w", "b"]
    assert found["layers.w"].tolist() == W.tolist()


def test_an_open_reader_is_restored_and_stays_open(path, tmp_path):
    checkpoint.save(tmp_path / "ours", {"layers": [{"w": W}], "step": 3})
    with checkpoint.open(path) as npz, checkpoint.open(tmp_path / "ours") as ours:
        for _ in range(2):
            assert checkpoint.restore(npz, {"b": W.astype(np.int16)}, strict=False)["b"].tolist() == W.tolist()
            found = checkpoint.restore(ours)
            assert found["layers"][0]["w"].tolist() == W.tolist()
            assert found["step"] == 3
    for reader in (npz, ours):
        with pytest.raises(ValueError, match=r"checkpoint\.restore: the reader is closed"):
            checkpoint.restore(reader)


def test_differences_name_restore_and_the_file(path):
    with pytest.raises(ValueError, match=r"checkpoint\.restore: 'b' is int16 of shape \(13, 6\) in the checkpoint"):
        checkpoint.restore(path, {"b": W}, strict=False)
    os.truncate(path, 60)
    with pytest.raises(ValueError, match=r"checkpoint\.restore: .*a\.npz"):
        checkpoint.restore(path)


def test_safetensors_come_before_other_files_of_a_folder(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": W})
    os.remove(tmp_path / "c" / "checkpoint.json")
    (tmp_path / "c" / "pytorch_model.bin").write_bytes(b"")
    assert checkpoint.restore(tmp_path / "c")["w"].tolist() == W.tolist()
    os.remove(tmp_path / "c" / "shard-00001-model-00001-of-00001.safetensors")
    (tmp_path / "c" / "manifest.ocdbt").write_bytes(b"")
    text = r"checkpoint\.restore: .* several formats .*; pass checkpoint\.open\('.*', format='torch'\)"
    with pytest.raises(ValueError, match=text):
        checkpoint.restore(tmp_path / "c")


def test_links_that_leave_the_folder_are_refused(tmp_path):
    checkpoint.save(tmp_path / "c", {"w": W})
    name = "shard-00001-model-00001-of-00001.safetensors"
    (tmp_path / "c" / name).rename(tmp_path / name)
    os.symlink(tmp_path / name, tmp_path / "c" / name)
    for call in (checkpoint.restore, checkpoint.metadata, checkpoint.open):
        with pytest.raises(ValueError, match=rf"checkpoint\.{call.__name__}: .* is a link to .*, outside the folder"):
            call(tmp_path / "c")
        call(tmp_path / "c", follow_links=True)
