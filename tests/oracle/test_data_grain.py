# SPDX-License-Identifier: Apache-2.0
"""Grain's own MapDataset and DataLoader read the order of a stream, and Grain's sources are sources here."""

import numpy as np
import pytest
from artifex_devices import data

grain = pytest.importorskip("grain", reason="grain is not installed")
import grain.python as pygrain  # noqa: E402

STREAM = data.Stream(np.arange(100, 160), seed=7).shuffle()
EXPECTED = [int(STREAM.at(p)) for p in range(60)]


def test_a_map_dataset_has_the_order_of_the_stream():
    dataset = grain.MapDataset.source(data.GrainSource(STREAM))
    assert [int(x) for x in dataset] == EXPECTED
    batches = list(dataset.batch(8, drop_remainder=True).to_iter_dataset())
    assert np.concatenate(batches).tolist() == EXPECTED[:56]


def test_the_state_of_grain_is_a_position():
    def iterator():
        return iter(grain.MapDataset.source(data.GrainSource(STREAM)).to_iter_dataset())

    first = iterator()
    used = [int(next(first)) for _ in range(13)]
    second = iterator()
    second.set_state(first.get_state())
    assert used + [int(x) for x in second] == EXPECTED


def test_a_data_loader_with_a_sequential_sampler_has_the_order_of_the_stream():
    source = data.GrainSource(STREAM)
    sampler = pygrain.SequentialSampler(num_records=len(source))
    assert [int(x) for x in pygrain.DataLoader(data_source=source, sampler=sampler)] == EXPECTED


def test_a_source_of_grain_is_a_source(tmp_path):
    from array_record.python.array_record_module import ArrayRecordWriter

    path = str(tmp_path / "a.array_record")
    writer = ArrayRecordWriter(path, "group_size:1")
    for number in range(20):
        writer.write(b"%d" % number)
    writer.close()
    theirs = data.Stream(pygrain.ArrayRecordDataSource(path), seed=3).shuffle()
    ours = data.Stream(path, seed=3).shuffle()
    assert [theirs.at(p) for p in range(20)] == [ours.at(p) for p in range(20)]
