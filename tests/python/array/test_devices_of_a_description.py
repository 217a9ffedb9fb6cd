# SPDX-License-Identifier: Apache-2.0
"""The devices that a description of an Array lists."""

import pytest
from artifex_devices._array.describe import devices_text


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([3], "cpu:3"),
        ([2, 3], "2, cpu:2 to cpu:3"),
        ([0, 2], "2, cpu:0, cpu:2"),
        ([0, 2, 4, 6, 8, 10, 12, 14], "8, cpu:0, cpu:2, cpu:4, cpu:6, cpu:8, cpu:10, cpu:12, cpu:14"),
        ([0, 2, 4, 6, 8, 10, 12, 14, 16], "9, cpu:0, cpu:2, cpu:4, cpu:6, cpu:8, cpu:10, cpu:12, cpu:14, ..."),
    ],
)
def test_consecutive_devices_are_a_range_and_others_are_listed(ids, text):
    assert devices_text("cpu", ids) == text
