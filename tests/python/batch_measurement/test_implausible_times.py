# SPDX-License-Identifier: Apache-2.0
"""Pairs of neighbouring batch sizes whose times cannot both be right."""

from types import SimpleNamespace

import pytest
from artifex_devices.batch_measurement.result import _implausible_times


def probes(*rows):
    return [SimpleNamespace(batch_size=size, best_s=best, median_s=median) for size, best, median in rows]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([(8, 1.0, 1.0)], ""),
        ([(8, 1.0, 1.0), (16, 10.0, 10.0)], ""),
        ([(8, 1.0, 1.0), (16, 10.5, 10.5)], "the best time of 16 is 10.5 times that of 8"),
        ([(8, 1.0, 1.0), (16, 10.0, 10.5)], "the median time of 16 is 10.5 times that of 8"),
        ([(8, 1.0, 1.0), (64, 16.0, 16.0)], ""),  # twice as long as in proportion
        ([(8, 1.0, 1.0), (64, 16.5, 16.0)], "the best time of 64 is 16.5 times that of 8"),
        ([(8, 1.0, 1.0), (16, 0.9, 0.5)], ""),  # a median may fall
        ([(8, 1.0, 1.0), (16, 0.85, 1.0)], "the best time of 16 is 0.85 times that of 8"),
        ([(8, 1.0, 1.0), (16, 1.0, 1.0), (32, 12.0, 1.0)], "the best time of 32 is 12 times that of 16"),
    ],
)
def test_the_first_implausible_pair_is_named(rows, text):
    assert _implausible_times(probes(*rows)) == text
