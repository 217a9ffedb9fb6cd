# SPDX-License-Identifier: Apache-2.0
"""artifex_devices data inspect."""

import json

import numpy as np
import pytest
from artifex_devices import data
from artifex_devices.command_line import main


class Documents:
    """Samples of different lengths, as a source."""

    def __init__(self, lengths):
        self.lengths = lengths

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        tokens = np.zeros(self.lengths[index], np.int32)
        return {"id": index, "text": "x" * self.lengths[index], "tokens": tokens, "vectors": np.zeros((4, 3))}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((2000, 4, 3), np.float32))
    return "x.npy"


def use_documents(monkeypatch, lengths):
    found = data.source(Documents(lengths))
    monkeypatch.setattr("artifex_devices.command_line.samples.source", lambda path: found)


def printed(capsys, *words):
    assert main(["data", "inspect", *words]) == 0
    return capsys.readouterr().out


def test_samples_of_one_shape_have_no_histogram(rows, capsys):
    assert printed(capsys, rows).splitlines() == [
        "x.npy: 2,000 samples in 1 file, 93.9 KiB",
        f"digest {data.source(rows).digest()}",
        "",
        "column    type           length",
        "(sample)  float32[n, 3]  4",
        "read 1,000 of 2,000 samples, spread evenly",
    ]


def test_the_histogram_is_of_the_first_column_whose_lengths_differ(capsys, monkeypatch):
    use_documents(monkeypatch, [1, 2, 2, 3, 3, 3])
    assert printed(capsys, "documents").splitlines()[3:] == [
        "column   type           length",
        "id       int64",
        "text     text           1 to 3",
        "tokens   int32[n]       1 to 3",
        "vectors  float64[n, 3]  4",
        "read 6 of 6 samples",
        "",
        "lengths of text: median 2.5, mean 2.3",
        "1  1  ##############",
        "2  2  ###########################",
        "3  3  ########################################",
    ]


def test_many_lengths_share_bars_between_powers_of_two(capsys, monkeypatch):
    use_documents(monkeypatch, [3, 4, 7, 8, 20, 31, 32])
    assert printed(capsys, "documents").splitlines()[-5:] == [
        "  2 to 3  1  ####################",
        "  4 to 7  2  ########################################",
        " 8 to 15  1  ####################",
        "16 to 31  2  ########################################",
        "32 to 63  1  ####################",
    ]


def test_by_reads_all_lengths_and_stores_them_for_pack(rows, capsys, tmp_path):
    assert printed(capsys, rows, "--by", "tokens", "--samples", "1").splitlines()[-3:] == [
        "",
        "lengths of tokens: median 4, mean 4.0",
        "4  2,000  ########################################",
    ]
    assert len(list(tmp_path.glob("artifex-*.lengths"))) == 1


def test_everything_as_json(capsys, monkeypatch):
    use_documents(monkeypatch, [5, 5])
    [found] = json.loads(printed(capsys, "documents", "--json"))["sources"]
    assert found["samples"] == found["examined"] == 2
    assert found["files"] == found["bytes"] == 0
    assert found["columns"][2] == {"name": "tokens", "type": "int32[n]", "least": 5, "most": 5}
    assert found["histogram"] == []


def test_an_empty_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((0, 4)))
    assert printed(capsys, "x.npy").splitlines()[0] == "x.npy: 0 samples in 1 file, 128 bytes"
    assert printed(capsys, "x.npy", "--by", "tokens").splitlines()[0] == "x.npy: 0 samples in 1 file, 128 bytes"


def test_several_files_and_a_pattern(rows, capsys):
    np.save("y.npy", np.zeros((3, 4, 3), np.float32))
    np.save("z.npy", np.zeros(5))
    first = [line for line in printed(capsys, "[xy].npy", "z.npy").splitlines() if "samples in" in line]
    assert first == ["[xy].npy: 2,003 samples in 2 files, 94.1 KiB", "z.npy: 5 samples in 1 file, 168 bytes"]


def test_files_that_cannot_be_read_and_columns_that_are_missing_are_invalid_arguments(rows, capsys, monkeypatch):
    assert main(["data", "inspect", "none.npy"]) == 2
    assert "none.npy" in capsys.readouterr().err
    use_documents(monkeypatch, [1])
    assert main(["data", "inspect", "documents", "--by", "word"]) == 2
    assert "has no column 'word'; expected one of its columns, 'id', 'text', 'tokens'" in capsys.readouterr().err
