# SPDX-License-Identifier: Apache-2.0
"""Sources: rows of .npy files, arrays and objects; what is read, what is refused, and digests."""

import os
import shutil
import time

import numpy as np
import pytest
from artifex_devices import data

ROWS = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "a.npy", ROWS[:400])
    np.save(tmp_path / "b.npy", ROWS[400:])
    return tmp_path


def test_files_are_numbered_through_in_the_order_of_their_names(folder):
    for named in (folder, f"{folder}/*.npy", [folder / "a.npy", str(folder / "b.npy")]):
        source = data.source(named)
        indices = np.array([5, 999, 400, 5, 399, 0, 401])
        np.testing.assert_array_equal(source.read(indices), ROWS[indices])
    assert len(source) == 1000
    assert source.shards.tolist() == [0, 400]
    assert source.describe(401) == f"record 1 of '{folder}/b.npy'"
    np.testing.assert_array_equal(source[-1], ROWS[-1])


def test_rows_far_apart_and_large_rows_are_right(tmp_path):
    rows = np.arange(300 * 5000, dtype=np.int64).reshape(300, 5000)
    np.save(tmp_path / "a.npy", rows)
    source = data.source(tmp_path / "a.npy")
    indices = np.array([299, 0, 1, 3, 150, 3])
    np.testing.assert_array_equal(source.read(indices), rows[indices])


def test_a_sample_may_be_changed(folder):
    source = data.source(folder)
    first, again = source.read(np.array([7, 7]))
    first[:] = 0
    np.testing.assert_array_equal(source[7], ROWS[7])
    np.testing.assert_array_equal(again, ROWS[7])


def test_a_copied_folder_has_the_same_digest_and_a_rewritten_one_another(folder, tmp_path_factory):
    digest = data.source(folder).digest()
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "x")
    assert data.source(copy).digest() == digest
    rows = np.load(copy / "b.npy")
    rows[300] += 1
    np.save(copy / "b.npy", rows)
    assert data.source(copy).digest() != digest
    os.rename(copy / "b.npy", copy / "c.npy")
    assert len({digest, data.source(copy).digest()}) == 2


def test_a_digest_reads_little_of_large_files(tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 30,)})
        file.truncate(file.tell() + (4 << 30))  # 4 GiB that take no space
    began = time.perf_counter()
    digest = data.source(tmp_path / "a.npy").digest()
    assert time.perf_counter() - began < 5
    with open(tmp_path / "a.npy", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    assert data.source(tmp_path / "a.npy").digest() != digest


def test_digests_of_values_in_memory_are_of_their_content():
    assert data.source(ROWS).digest() == data.source(ROWS.copy()).digest() != data.source(ROWS + 1).digest()
    assert data.source([1, 2]).digest() == data.source([1, 2]).digest() != data.source([1, 3]).digest()

    class Own:
        def __len__(self):
            return 2

        def read(self, indices):
            return [str(index) for index in indices]

        def digest(self):
            return "version 5"

    assert data.source(Own()).digest() == "version 5"
    assert data.source(Own())[1] == "1"


def test_a_digest_of_a_dataset_of_another_library_reads_no_sample():
    class Dataset:
        def __init__(self, count):
            self.count = count

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            raise AssertionError("samples may be random or slow")

    assert data.source(Dataset(5)).digest() == data.source(Dataset(5)).digest() != data.source(Dataset(6)).digest()


def test_objects_that_read_several_samples_at_once_are_asked_once():
    calls = []

    class Dataset(list):
        def __getitems__(self, indices):
            calls.append(indices)
            return [self[index] for index in indices]

    assert data.source(Dataset("abcd")).read(np.array([3, 0])) == ["d", "a"]
    assert calls == [[3, 0]]


def damaged(folder, name):
    path = folder / f"{name}.npy"
    if name == "objects":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    elif name == "number":
        np.save(path, np.float32(1))
    elif name == "columns":
        np.save(path, np.asfortranarray(ROWS))
    elif name == "short":
        path.write_bytes((folder / "a.npy").read_bytes()[:-5])
    elif name == "empty":
        path.touch()
    elif name == "header":
        path.write_bytes(b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535)
    else:
        os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("objects", "has Python objects; .*as objects would run code"),
        ("number", "has no rows"),
        ("columns", r"is in column order.*np.ascontiguousarray"),
        ("short", "ends after 4923 bytes; expected 4928"),
        ("empty", "cannot|is not an .npy file"),
        ("header", "is not an .npy file"),
        ("fifo", "is not a regular file"),
    ],
)
def test_files_that_cannot_be_read_are_refused(folder, name, text):
    with pytest.raises(ValueError, match=text):
        data.source(damaged(folder, name))


def test_files_of_several_kinds_are_refused(folder):
    np.save(folder / "c.npy", np.arange(5))
    with pytest.raises(ValueError, match=r"rows of int64\[\], and the file before it float32\[3\]"):
        data.source(folder)
    (folder / "d.parquet").touch()
    with pytest.raises(ValueError, match="has files of several kinds"):
        data.source(folder)
    with pytest.raises(ValueError, match="a file is named twice"):
        data.source([folder / "a.npy", folder / "a.npy"])


def test_a_file_that_changes_while_it_is_read_is_an_error(folder):
    source = data.source(folder)
    os.truncate(folder / "b.npy", 200)
    with pytest.raises(RuntimeError, match=r"b\.npy' was changed while it is read, from 7328 to 200 bytes"):
        source[500]
    np.testing.assert_array_equal(source[3], ROWS[3])


def test_indices_outside_are_errors(folder):
    source = data.source(folder)
    for index in (1000, -1001):
        with pytest.raises(IndexError, match="expected"):
            source[index]
    with pytest.raises(IndexError, match="has no sample -1"):
        source.read(np.array([-1]))
