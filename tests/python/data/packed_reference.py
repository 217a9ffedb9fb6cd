# SPDX-License-Identifier: Apache-2.0
"""Packed rows by plain NumPy, from all samples at once: the oracle of data.pack."""

import numpy as np


def packed(samples, length):
    """The rows of samples (dicts of arrays, in the order of the stream) as one dict of arrays with a row each."""
    counts = [len(next(iter(sample.values()))) for sample in samples]
    total = sum(counts)
    rows = -(-total // length)
    whole = {name: np.zeros(rows * length, column.dtype) for name, column in samples[0].items()} if samples else {}
    for name in whole:
        whole[name][:total] = np.concatenate([sample[name] for sample in samples])
    starts = np.cumsum([0, *counts])
    segments = np.zeros(rows * length, np.int32)
    positions = np.zeros(rows * length, np.int32)
    for row in range(rows):
        begin = row * length
        end = min(begin + length, total)
        number = 0
        for start, count in zip(starts[:-1], counts, strict=True):
            first, last = max(begin, start), min(end, start + count)
            if first < last:
                number += 1
                segments[first:last] = number
                positions[first:last] = np.arange(first - start, last - start)
    whole |= {"segment_ids": segments, "positions": positions}
    return {name: column.reshape(rows, length) for name, column in whole.items()}


def rows_of(stream, count=None):
    """The rows of a packed stream as `packed` returns them."""
    rows = [stream.at(position) for position in range(len(stream) if count is None else count)]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]} if rows else {}


def assert_equal_rows(found, expected):
    """Columns, dtypes and values are equal."""
    assert list(found) == list(expected)
    for name, column in expected.items():
        assert found[name].dtype == column.dtype, name
        np.testing.assert_array_equal(found[name], column, err_msg=name)
