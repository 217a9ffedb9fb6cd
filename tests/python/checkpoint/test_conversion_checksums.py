# SPDX-License-Identifier: Apache-2.0
"""convert compares every checksum of what it reads, in whatever boxes it reads it."""

import errno

import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import pieces, rules
from artifex_devices.checkpoint.writers import artifex_writer, writer

ARRAY = np.arange(1_000 * 200.0).reshape(1_000, 200)
CHANGES = {
    "rows": [],
    "columns": rules.split("w", ["a", "b"], 1, (100, 100)),
    "transposed": rules.transpose("w", (1, 0)),
    "layers": rules.unstack("w", "w{layer}", axis="layer", position=1),
}


def damage(path, place):
    """Changes a bit of a byte at a place from the end."""
    content = bytearray(path.read_bytes())
    content[-place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", [1_000, 100_000, 1_200_000])
@pytest.mark.parametrize("source", ["artifex", "npz"])
def test_a_changed_byte_is_an_error(tmp_path, monkeypatch, source, place, change):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 300_000)  # they end within the 1 MiB that has a checksum
    if source == "artifex":
        checkpoint.save(tmp_path / "a", {"w": ARRAY})
        path = tmp_path / "a"
        (file,) = path.glob("shard-*")
    else:
        file = path = tmp_path / "a.npz"
        np.savez(path, w=ARRAY)
    checkpoint.convert(path, tmp_path / "b", rules=CHANGES[change])
    damage(file, place)
    with pytest.raises(ValueError, match=r"the checksum of .* of w is|'w' is damaged: BadZipFile\(\"Bad CRC-32"):
        checkpoint.convert(path, tmp_path / "c", rules=CHANGES[change])
    assert {each.name for each in tmp_path.iterdir()} == {path.name, "b"}


def test_checksums_of_what_an_interrupted_call_read_are_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 300_000)
    checkpoint.save(tmp_path / "a", {"v": np.ones(9), "w": ARRAY})
    (file,) = (tmp_path / "a").glob("shard-*")
    damage(file, 1_000)
    options = {"rules": CHANGES["columns"], "num_files": 3}
    count = 0

    class Failing(writer.Stream):
        def __init__(self, path, **more):
            nonlocal count
            count += 1
            if count == 3:
                raise OSError(errno.EIO, "Input/output error")
            super().__init__(path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(artifex_writer, "Stream", Failing)
        with pytest.raises(OSError, match="has 2 finished files"):
            checkpoint.convert(tmp_path / "a", tmp_path / "b", **options)
    with pytest.raises(ValueError, match=r"the checksum of .* of w is"):
        checkpoint.convert(tmp_path / "a", tmp_path / "b", **options)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
