# SPDX-License-Identifier: Apache-2.0
"""Transposes of large arrays: they are read in tiles, once, whatever the order of the target."""

import os
import random
from contextlib import suppress

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, planned_reader, rules
from artifex_devices.checkpoint.writers import artifex_writer, writer

LAYERS = [rules.transpose("layers.*.w", (1, 0)), rules.stack("layers.{layer}.w", "w", axis="layer", position=1)]


def bytes_read(work):
    def count():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])  # of all read calls

    before = count()
    work()
    return count() - before


@pytest.fixture
def layers(tmp_path, monkeypatch):
    """Returns 8 layers of 4 MiB in a checkpoint, and sets pieces of 2 MiB."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", 2 << 20)
    values = np.random.default_rng(0).random((8, 2048, 512), np.float32)
    checkpoint.save(tmp_path / "a", {f"layers.{number}.w": each for number, each in enumerate(values)})
    return values


def test_layers_stacked_along_an_inner_axis_are_read_once(layers, tmp_path):
    done = []
    nbytes = bytes_read(lambda: done.append(checkpoint.convert(tmp_path / "a", tmp_path / "b", rules=LAYERS)))
    assert nbytes < 2.3 * layers.nbytes  # once the source, once the scratch file; 16 times as slabs
    assert "32.0 MiB of disk beside the target" in done[0].table
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    with checkpoint.open(tmp_path / "b") as reader:
        assert reader.read("w").tobytes() == layers.transpose(2, 0, 1).tobytes()
    assert not any("scratch" in name for name in os.listdir(tmp_path / "b"))


def test_layers_stacked_along_an_inner_axis_are_compared_once(layers, tmp_path):
    checkpoint.convert(tmp_path / "a", tmp_path / "b", rules=LAYERS)
    equal = []
    nbytes = bytes_read(lambda: equal.append(checkpoint.compare(tmp_path / "a", tmp_path / "b", rules=LAYERS)))
    assert equal[0]
    assert nbytes < 2.3 * layers.nbytes  # once each side


def test_a_rename_needs_no_disk_beside_the_target(layers, tmp_path):
    done = checkpoint.convert(tmp_path / "a", tmp_path / "b", rules=rules.rename("layers.{n}.w", "l.{n}"))
    assert "beside the target" not in done.table


def scratch_files():
    """Open files of this process that are scratch files."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # of the list itself
            names.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in names if name.endswith("scratch (deleted)")]


def test_the_disk_of_a_scratch_file_is_free_after_its_array_and_after_an_error(layers, tmp_path, monkeypatch):
    checkpoint.save(tmp_path / "c", {f"{part}.{n}.w": each for part in "ab" for n, each in enumerate(layers)})
    changes = [rules.transpose("*.*.w", (1, 0)), rules.stack("{part}.{n}.w", "{part}", axis="n", position=1)]
    opened = []

    class Failing(writer.Stream):
        def write(self, data):
            super().write(data)
            opened.append(len(scratch_files()))
            if len(opened) == 20:  # of 32 slabs
                raise ValueError("damaged")

    monkeypatch.setattr(artifex_writer, "Stream", Failing)
    with pytest.raises(ValueError, match="damaged") as error:
        checkpoint.convert(tmp_path / "c", tmp_path / "d", rules=changes)
    assert max(opened) == 1
    assert error.value.__traceback__  # which keeps what the call used
    assert scratch_files() == []


def test_the_name_of_a_scratch_file_that_a_kill_left_is_taken_again(layers, tmp_path, monkeypatch):
    def stop(self, slab):
        raise KeyboardInterrupt

    arguments = {"rules": LAYERS, "format": "safetensors", "max_shard_size": 1}
    with monkeypatch.context() as patch:
        patch.setattr("artifex_devices.checkpoint.scratch.Scratch.read", stop)
        checkpoint.save(tmp_path / "c", {"a": np.ones(3), **{f"layers.{n}.w": e for n, e in enumerate(layers)}})
        with pytest.raises(KeyboardInterrupt, match="1 finished file"):
            checkpoint.convert(tmp_path / "c", tmp_path / "d", **arguments)
    (tmp_path / "d.partial" / "scratch").write_bytes(b"of a killed conversion")
    checkpoint.convert(tmp_path / "c", tmp_path / "d", **arguments)
    assert not (tmp_path / "d.partial").exists()
    with checkpoint.open(tmp_path / "d") as reader:
        assert reader.read("w").tobytes() == layers.transpose(2, 0, 1).tobytes()


@pytest.mark.parametrize("seed", range(12))
def test_tiles_of_any_box_have_the_values_of_numpy(seed, tmp_path, monkeypatch):
    choose = random.Random(seed)
    monkeypatch.setattr(pieces, "PIECE_BYTES", choose.choice([1 << 10, 1 << 13]))
    rank = choose.randint(2, 4)

    def tile_of_any_shape(reader, name, box, slab):  # of small arrays, slabs would be as good
        chooses = random.Random(str(box))  # the same tiles at each call
        return None if slab == box else tuple(chooses.randint(1, size) for size in box[1])

    monkeypatch.setattr(planned_reader.PlannedReader, "tile", tile_of_any_shape)
    shape = tuple(choose.randint(1, round(3 * 4000 ** (1 / rank))) for _ in range(rank))
    axes = choose.sample(range(rank), rank)
    values = np.random.default_rng(seed).integers(0, 1 << 16, (2, *shape), np.uint16)
    checkpoint.save(tmp_path / "a", {f"w.{number}": each for number, each in enumerate(values)})
    position = choose.randint(0, rank)
    changes = [rules.transpose("w.*", axes), rules.stack("w.{n}", "w", axis="n", position=position)]
    expected = np.stack([each.transpose(axes) for each in values], position)
    checkpoint.convert(tmp_path / "a", tmp_path / "b", rules=changes, num_files=choose.choice([1, 3]))
    with checkpoint.open(tmp_path / "b") as reader:
        assert reader.read("w").tobytes() == expected.tobytes()
    assert checkpoint.compare(tmp_path / "a", tmp_path / "b", rules=changes)
