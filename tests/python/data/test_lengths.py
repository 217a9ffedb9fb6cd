# SPDX-License-Identifier: Apache-2.0
"""The lengths of samples that data.pack measures: the file beside the source, and when it is built again."""

import hashlib
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from artifex_devices import data
from hypothesis import given
from hypothesis import strategies as st
from packed_reference import rows_of

LENGTHS = [3, 5, 2, 4, 6, 1]
measured = []  # samples that went through `trimmed`


class Rows(data.Source):
    """The rows of a .npy file."""

    def __init__(self, path):
        self.path = Path(path)
        self.rows = np.load(path)

    def __len__(self):
        return len(self.rows)

    def read(self, indices):
        return list(self.rows[indices])

    def digest(self):
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def trimmed(row):
    """The tokens of a row, without the zeros that follow them."""
    measured.append(1)
    return row[row > 0]


def also_trimmed(row):
    return trimmed(row)


def write_source(path, lengths=LENGTHS):
    rows = np.zeros((len(lengths), 8), np.int32)
    for number, length in enumerate(lengths):
        rows[number, :length] = number + 1
    np.save(path, rows)


def pack(path, function=trimmed, **options):
    """Packs the source, and returns the tokens of its rows and the number of samples that were measured."""
    measured.clear()
    rows = data.pack(data.Stream(Rows(path)).map(function), 7, **options)
    count = len(measured)
    found = rows_of(rows)
    return found["tokens"][found["segment_ids"] > 0].tolist(), count


def expected(lengths=LENGTHS):
    return np.repeat(np.arange(1, len(lengths) + 1), lengths).tolist()


@pytest.fixture
def path(tmp_path):
    write_source(tmp_path / "x.npy")
    return tmp_path / "x.npy"


def table(path):
    [found] = path.parent.glob("artifex-*.lengths")
    return found


def test_lengths_are_measured_once_and_stored_beside_the_source(path):
    assert pack(path) == (expected(), 6)
    assert table(path).stat().st_size == 256 + 8 * 6
    assert np.fromfile(table(path), np.int64, offset=256).tolist() == LENGTHS
    assert pack(path) == (expected(), 0)
    assert sorted(each.name for each in path.parent.iterdir()) == [table(path).name, "x.npy"]


def test_a_copied_folder_uses_the_copied_file(path, tmp_path):
    pack(path)
    (tmp_path / "other").mkdir()
    for each in (path, table(path)):
        shutil.copy(each, tmp_path / "other")
    assert pack(tmp_path / "other" / "x.npy") == (expected(), 0)


def test_a_source_that_changed_is_measured_again(path):
    pack(path)
    write_source(path, [1, 2, 3, 4, 5, 6])
    assert pack(path) == (expected([1, 2, 3, 4, 5, 6]), 6)
    write_source(path, [8, 8])
    assert pack(path) == (expected([8, 8]), 2)


def test_another_function_has_another_file(path):
    pack(path)
    assert pack(path, also_trimmed) == (expected(), 6)
    assert len(list(path.parent.glob("artifex-*.lengths"))) == 2


def test_functions_without_a_name_of_their_own_keep_lengths_in_memory(path):
    assert pack(path, lambda row: trimmed(row)) == (expected(), 6)
    assert pack(path, lambda row: trimmed(row)[:1]) == ([1, 2, 3, 4, 5, 6], 6)
    assert list(path.parent.glob("artifex-*.lengths")) == []


def damage(content):
    """Contents that are not the file: shorter, longer, other bytes, another version, other tokens."""
    changed = bytearray(content)
    changed[-3] ^= 1
    return {
        "empty": b"",
        "cut": content[:-1],
        "longer": content + b"\0" * 8,
        "changed length": bytes(changed),
        "old version": content.replace(b"lengths 1", b"lengths 0"),
        "foreign": b"\x93NUMPY" + content[6:],
        "other head": content[:40] + b"x" + content[41:],
    }


@pytest.mark.parametrize("kind", list(damage(b"lengths 1" * 100)))
def test_a_damaged_foreign_or_old_file_is_built_again(path, kind):
    pack(path)
    file = table(path)
    good = file.read_bytes()
    file.write_bytes(damage(good)[kind])
    assert pack(path) == (expected(), 6)
    assert file.read_bytes() == good


@given(st.integers(0, 256 + 48 - 1), st.integers(1, 255))
def test_every_changed_byte_is_noticed(tmp_path_factory, place, change):
    path = tmp_path_factory.getbasetemp() / "changed" / "x.npy"
    if not path.exists():
        path.parent.mkdir()
        write_source(path)
    pack(path)
    content = bytearray(table(path).read_bytes())
    content[place] ^= change
    table(path).write_bytes(content)
    assert pack(path) == (expected(), 6)


def test_a_file_of_another_source_is_not_used(path, tmp_path):
    pack(path)
    file = table(path)
    (tmp_path / "other").mkdir()
    write_source(tmp_path / "other" / "x.npy", [1, 2, 3, 4, 5, 6])
    pack(tmp_path / "other" / "x.npy")
    shutil.copy(table(tmp_path / "other" / "x.npy"), file)
    assert pack(path) == (expected(), 6)


def test_a_pipe_or_a_folder_in_its_place_does_not_hang(path):
    pack(path)
    file = table(path)
    file.unlink()
    os.mkfifo(file)
    assert pack(path) == (expected(), 6)
    file.unlink()
    file.mkdir()
    with pytest.warns(UserWarning, match="cannot be stored"):
        assert pack(path) == (expected(), 6)


def refuse(*arguments, **options):
    raise PermissionError(13, "Permission denied", "x")


def test_a_folder_that_cannot_be_written_keeps_lengths_in_memory_with_a_warning(path, monkeypatch):
    monkeypatch.setattr("artifex_devices.data.length_file.os.replace", refuse)  # root may write everywhere
    with pytest.warns(UserWarning, match="cannot be stored .*Permission denied.* make the folder writable, or give"):
        assert pack(path) == (expected(), 6)
    assert [each.name for each in path.parent.iterdir()] == ["x.npy"]


def test_a_stale_file_is_named_where_a_sample_has_another_length(path, monkeypatch):
    pack(path)
    monkeypatch.setattr(sys.modules[__name__], "measured", [])
    monkeypatch.setattr(trimmed, "__code__", (lambda row: row[row > 1]).__code__)
    rows = data.pack(data.Stream(Rows(path)).map(trimmed), 7)
    with pytest.raises(data.SampleError, match=f"has the length 0; expected 3, .* remove '{table(path)}' and create"):
        rows.at(0)


def test_processes_that_measure_at_once_all_succeed(path):
    code = """
        import sys
        sys.path[:0] = [sys.argv[2]]
        from test_lengths import expected, pack
        sys.stdin.readline()
        assert pack(sys.argv[1])[0] == expected()
        """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path), os.path.dirname(__file__)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        process.stdin.close()
    assert [process.wait(120) for process in processes] == [0, 0, 0]
    assert pack(path) == (expected(), 0)
    assert len(list(path.parent.iterdir())) == 2


def test_a_source_without_a_path_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(data.pack(data.Stream([np.ones(3), np.ones(4)]), 7)) == 1


def test_given_lengths_are_used_without_reading(path):
    measured.clear()
    rows = data.pack(data.Stream(Rows(path)).map(trimmed), 7, lengths=LENGTHS)
    assert len(rows) == 3
    assert measured == []
    assert list(path.parent.glob("artifex-*")) == []


def test_a_sample_that_cannot_be_read_is_named(path):
    def fail(row):
        if row[0] == 4:
            raise OSError("bad block")
        return row

    with pytest.raises(data.SampleError, match=r"index 3 of the source .*OSError: bad block"):
        pack(path, fail)


def sums_of(path):
    return sorted(path.parent.glob("artifex-*.sums"))


@pytest.fixture
def long_path(tmp_path, monkeypatch):
    """A source of 5,000 samples whose running sums are always worth a file."""
    monkeypatch.setattr("artifex_devices.data.running_sums._LEAST", 1)
    np.save(tmp_path / "x.npy", np.arange(5000, dtype=np.int32).reshape(-1, 1))
    return tmp_path / "x.npy"


def long_rows(path, epochs=2, **options):
    samples = data.Stream(path, seed=3).shuffle().repeat(epochs)
    return data.pack(samples, 9, lengths=np.ones(5000, np.int64), **options)


def test_running_sums_are_stored_and_used_again(long_path, monkeypatch):
    rows = long_rows(long_path)
    [file] = sums_of(long_path)
    assert np.fromfile(file, np.int64, offset=256).tolist() == [*range(0, 10_000, 512), 10_000]
    expected = rows_of(rows)
    again = long_rows(long_path)
    assert again._leaves[0].source.rows.sum_count() == 21
    np.testing.assert_array_equal(rows_of(again)["tokens"], expected["tokens"])
    assert sums_of(long_path) == [file]


def test_running_sums_of_an_endless_stream_are_stored_as_far_as_rows_were_read(long_path):
    rows = long_rows(long_path, None)
    rows.at(3000)  # tokens 27,000 to 27,009
    again = long_rows(long_path, None)
    assert again._leaves[0].source.rows.sum_count() == 27_000 // 512 + 2
    np.testing.assert_array_equal(again.at(3000)["tokens"], rows.at(3000)["tokens"])
    np.testing.assert_array_equal(again.at(9000)["tokens"], rows.at(9000)["tokens"])


def test_other_orders_have_running_sums_of_their_own(long_path):
    long_rows(long_path)
    long_rows(long_path, 3)
    long_rows(long_path, too_long="error")
    assert len(sums_of(long_path)) == 3


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 424])
def test_damaged_running_sums_are_added_up_again(long_path, content):
    expected = rows_of(long_rows(long_path))
    [file] = sums_of(long_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:300] + content)
    np.testing.assert_array_equal(rows_of(long_rows(long_path))["tokens"], expected["tokens"])
    assert file.read_bytes() == whole


def test_running_sums_that_cannot_be_written_stay_in_memory(long_path, monkeypatch):
    monkeypatch.setattr("artifex_devices.data.length_file.os.replace", refuse)
    assert len(long_rows(long_path)) == 1112
    assert sums_of(long_path) == []
