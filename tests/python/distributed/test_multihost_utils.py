# SPDX-License-Identifier: Apache-2.0
"""multihost_utils in a process alone; with others it is tested in tests/distributed."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import multihost_utils


def test_a_single_process_gathers_what_it_has():
    x = ad.device_put(np.arange(4))
    tree = {"x": x, "n": 3, "m": np.ones((2, 3), np.float16)}
    stacked = multihost_utils.process_allgather(tree)
    assert {key: value.shape for key, value in stacked.items()} == {"x": (1, 4), "n": (1,), "m": (1, 2, 3)}
    tiled = multihost_utils.process_allgather(tree, tiled=True)
    assert {key: value.shape for key, value in tiled.items()} == {"x": (4,), "n": (), "m": (2, 3)}
    assert tiled["x"].tolist() == [0, 1, 2, 3]
    assert tiled["m"].dtype == np.float16


def test_a_single_process_broadcasts_to_itself():
    found = multihost_utils.broadcast_one_to_all([1, np.arange(2)])
    assert [type(leaf) for leaf in found] == [np.ndarray, np.ndarray]
    assert found[1].tolist() == [0, 1]


def test_a_single_process_is_in_step_with_itself():
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal({"a": 1, "b": np.arange(3)})
    with pytest.raises(AssertionError, match=r"^no number\. Expected: \[array\(\[nan\]\)\]; got: \[nan\]\.$"):
        multihost_utils.assert_equal([float("nan")], "no number")
