# SPDX-License-Identifier: Apache-2.0
"""checkpoint.open: links within a folder and within the cache of a hub are read, others are refused."""

import json
import os

import numpy as np
import pytest
from artifex_devices import checkpoint

W = np.arange(6, dtype=np.float32)


def write(path):
    header = {"w": {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]}}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + W.tobytes())


@pytest.fixture
def cache(tmp_path):
    """A snapshot in the cache of a hub, as huggingface_hub lays it out."""
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a--b" / "blobs").mkdir()
    write(tmp_path / "models--a--b" / "blobs" / "feed")
    os.symlink("../../blobs/feed", snapshot / "model.safetensors")
    return snapshot


def test_links_of_a_hub_cache_are_read(cache, tmp_path):
    for path in (cache, cache / "model.safetensors"):
        assert checkpoint.open(path).read("w").tolist() == W.tolist()
    os.symlink(cache, tmp_path / "model")
    assert checkpoint.open(tmp_path / "model").read("w").tolist() == W.tolist()


def test_folders_below_a_snapshot_are_read(cache):
    (cache / "vae").mkdir()
    os.symlink("../../../blobs/feed", cache / "vae" / "model.safetensors")
    assert checkpoint.open(cache / "vae").names() == ("w",)


@pytest.mark.parametrize("place", ["outside", "models--a--b/refs", "models--c--d/blobs"])
def test_other_links_need_a_flag(cache, tmp_path, place):
    (tmp_path / place).mkdir(parents=True)
    write(tmp_path / place / "feed")
    os.remove(cache / "model.safetensors")
    os.symlink(tmp_path / place / "feed", cache / "model.safetensors")
    text = (
        r"model\.safetensors' is a link to '.*feed', outside the folder; .*; copy the file, or pass follow_links=True"
    )
    with pytest.raises(ValueError, match=text):
        checkpoint.open(cache)
    assert checkpoint.open(cache, follow_links=True).names() == ("w",)


def test_blobs_beside_other_folders_are_not_a_cache(cache):
    other = cache.parent.parent / "other" / "0123"
    other.mkdir(parents=True)
    os.symlink("../../blobs/feed", other / "model.safetensors")
    with pytest.raises(ValueError, match="outside the folder"):
        checkpoint.open(other)


def test_blobs_that_are_a_link_are_not_a_cache(cache, tmp_path):
    blobs = cache.parent.parent / "blobs"
    blobs.rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", blobs)
    with pytest.raises(ValueError, match="outside the folder"):
        checkpoint.open(cache)


def test_links_within_the_folder_and_files_that_are_not_read_are_allowed(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "data").mkdir()
    write(folder / "data" / "a")
    os.symlink("data/a", folder / "model.safetensors")
    os.symlink("/etc/hostname", folder / "README.md")
    assert checkpoint.open(folder).names() == ("w",)


def test_an_index_does_not_lead_out_of_the_folder(tmp_path):
    (tmp_path / "m").mkdir()
    write(tmp_path / "a.safetensors")
    os.symlink("../a.safetensors", tmp_path / "m" / "a.safetensors")
    index = tmp_path / "m" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "a.safetensors"}}))
    for path in (tmp_path / "m", index):
        with pytest.raises(ValueError, match="outside the folder"):
            checkpoint.open(path)
