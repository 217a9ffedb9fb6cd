# SPDX-License-Identifier: Apache-2.0
"""What the fitted models of time and memory give."""

import math

import pytest
from artifex_devices.batch_measurement.memory import fit_memory
from artifex_devices.batch_measurement.throughput import ThroughputModel


@pytest.mark.parametrize(
    ("fixed_s", "floor_s", "throughput", "size"),
    [
        (1.0, 0.0, 5.0, 10.0),
        (1.0, 0.0, 7.5, 30.0),
        (1.0, 0.0, 10.0, math.inf),  # only in the limit
        (1.0, 0.0, 11.0, math.inf),
        (0.0, 0.5, 5.0, 2.5),
        (0.0, 0.5, 10.0, 5.0),  # without a constant part the rate is reached
        (0.0, 0.5, 11.0, math.inf),
        (1.0, 4.0, 5.0, 20.0),
    ],
)
def test_the_smallest_batch_of_a_throughput(fixed_s, floor_s, throughput, size):
    assert ThroughputModel(fixed_s, floor_s, 10.0, 0.0, 0.0).size_reaching(throughput) == size


@pytest.mark.parametrize(("fixed_s", "floor_s", "critical", "seconds"), [(1.0, 0.0, 10.0, 3.0), (0.5, 4.0, 40.0, 4.0)])
def test_the_critical_batch_and_the_seconds_of_20(fixed_s, floor_s, critical, seconds):
    model = ThroughputModel(fixed_s, floor_s, 10.0, 0.0, 0.0)
    assert (model.critical, model.seconds(20)) == (critical, seconds)


@pytest.mark.parametrize(
    ("peaks", "bound", "multiple_of", "largest"),
    [
        ([(1, 10), (2, 20), (4, 40)], 39, 1, 3),
        ([(1, 10), (2, 20), (4, 40)], 40, 1, 4),
        ([(1, 10), (2, 20), (4, 40)], 39, 2, 2),
        ([(1, 10), (2, 20), (4, 40)], 9, 1, 0),
        ([(1, 10), (2, 20), (4, 40)], -5, 1, 0),
        ([(1, 10), (2, 20)], None, 1, None),
        ([(1, 10), (2, 10)], 30, 1, None),  # memory does not grow
    ],
)
def test_the_largest_batch_below_a_bound(peaks, bound, multiple_of, largest):
    assert fit_memory("device", peaks, bound, multiple_of, "a test").max_batch_size == largest


def test_one_size_cannot_be_fitted():
    assert fit_memory("device", [(1, 10)], 100, 1, "a test") is None
