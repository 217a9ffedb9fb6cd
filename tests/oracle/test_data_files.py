# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord, Parquet and Arrow files, written by their own packages."""

import os
import pickle

import numpy as np
import pytest
from artifex_devices import data

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402

module = pytest.importorskip("array_record.python.array_record_module", reason="array-record is not installed")

N = 100


@pytest.fixture
def table():
    columns = {
        "tokens": [list(range(k % 7)) for k in range(N)],
        "name": [f"n{k}" for k in range(N)],
        "sparse": [k if k != 3 else None for k in range(N)],
        "score": np.arange(N) / 2,
        "pair": pa.FixedSizeListArray.from_arrays(pa.array(range(2 * N)), 2),
    }
    return pa.table(columns)


def write(path, table):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=30)
    else:
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table, max_chunksize=30)


def write_records(path, records):
    writer = module.ArrayRecordWriter(str(path), "group_size:1")
    for record in records:
        writer.write(record)
    writer.close()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_rows_of_tables(tmp_path, table, suffix):
    write(tmp_path / f"a{suffix}", table)
    source = data.source(tmp_path / f"a{suffix}")
    assert source.shards.tolist() == [0, 30, 60, 90]
    rows = source.read(np.array([99, 3, 31, 3]))
    assert [row["name"] for row in rows] == ["n99", "n3", "n31", "n3"]
    assert [row["sparse"] for row in rows] == [99, None, 31, None]
    assert [row["tokens"].tolist() for row in rows] == [[0], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    assert [row["pair"].tolist() for row in rows] == [[198, 199], [6, 7], [62, 63], [6, 7]]
    assert [row["score"] for row in rows] == [49.5, 1.5, 15.5, 1.5]
    rows[0]["tokens"][:] = 5  # a sample may be changed
    assert source[99]["tokens"].tolist() == [0]
    assert pickle.loads(pickle.dumps(source))[4]["name"] == "n4"


def test_row_groups_are_shards(tmp_path, table):
    for name in "ab":
        write(tmp_path / f"{name}.parquet", table)
    stream = data.Stream(tmp_path / "*.parquet", seed=1).shuffle(shards=True)
    found = stream.indices(0, 2 * N)
    assert sorted(found.tolist()) == list(range(2 * N))
    assert np.count_nonzero(np.diff(np.searchsorted([0, 30, 60, 90, 100, 130, 160, 190], found, side="right"))) == 7


def test_records_of_array_record_files(tmp_path):
    for number in range(2):
        write_records(tmp_path / f"{number}.array_record", [b"%d" % (50 * number + k) for k in range(50)])
    source = data.source(f"{tmp_path}/*.array_record")
    assert len(source) == N
    assert source.read(np.array([99, 0, 51, 0])) == [b"99", b"0", b"51", b"0"]
    assert source.describe(51) == f"record 1 of '{tmp_path}/1.array_record'"
    assert pickle.loads(pickle.dumps(source))[4] == b"4"


def test_truncated_files_are_refused(tmp_path, table):
    write(tmp_path / "a.parquet", table)
    write(tmp_path / "a.arrow", table)
    write_records(tmp_path / "a.array_record", [b"x"] * 10)
    for name in ("a.parquet", "a.arrow", "a.array_record"):
        path = tmp_path / name
        os.truncate(path, path.stat().st_size - 100)
        with pytest.raises(ValueError, match=f"data.source: '{path}' is .*expected a complete file"):
            data.source(path)


def test_tables_with_other_columns_are_refused(tmp_path, table):
    write(tmp_path / "a.parquet", table)
    write(tmp_path / "b.parquet", table.drop_columns("name"))
    with pytest.raises(ValueError, match="expected files with the same columns"):
        data.source(tmp_path)


def test_a_damaged_record_is_an_error_of_its_sample(tmp_path):
    path = tmp_path / "a.array_record"
    write_records(path, [os.urandom(1000) for _ in range(200)])
    content = bytearray(path.read_bytes())
    content[100_000:100_050] = b"x" * 50
    path.write_bytes(content)
    stream = data.Stream(path)
    positions = []
    for position in range(200):
        try:
            found = len(stream.at(position))
        except data.SampleError as error:
            positions.append(error.position == position)
        else:
            assert found == 1000
    assert 1 <= len(positions) <= 3
    assert all(positions)
