# SPDX-License-Identifier: Apache-2.0
"""multihost_utils in a process alone, beside JAX's."""

import jax
import numpy as np
import pytest
from artifex_devices import multihost_utils as ours
from jax.experimental import multihost_utils as theirs

TREES = [
    3,
    2.5,
    np.arange(6, dtype=np.int32).reshape(2, 3),
    {"b": np.float32(1), "a": [np.zeros((0, 4), np.float32), None]},
    (np.array(True), np.ones((1, 1), np.uint8)),
]


def assert_alike(mine, jaxs):
    assert jax.tree.structure(mine) == jax.tree.structure(jaxs)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(jaxs), strict=True):
        assert type(a) is type(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("tiled", [False, True])
def test_process_allgather(tree, tiled):
    assert_alike(ours.process_allgather(tree, tiled), theirs.process_allgather(tree, tiled))


@pytest.mark.parametrize("tree", TREES)
def test_broadcast_one_to_all(tree):
    assert_alike(ours.broadcast_one_to_all(tree), theirs.broadcast_one_to_all(tree))


@pytest.mark.parametrize("tree", TREES)
def test_equal_trees(tree):
    ours.assert_equal(tree)
    theirs.assert_equal(tree)
    ours.sync_global_devices("x")
    theirs.sync_global_devices("x")


def test_nan_equals_nothing():
    messages = []
    for module in (ours, theirs):
        with pytest.raises(AssertionError) as caught:
            module.assert_equal(np.float64("nan"), "it differs")
        messages.append(str(caught.value))
    assert all(message.startswith("it differs. Expected: ") for message in messages)
