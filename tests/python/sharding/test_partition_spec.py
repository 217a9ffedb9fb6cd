# SPDX-License-Identifier: Apache-2.0
"""PartitionSpec: what it keeps, how it shows itself, when two are equal."""

import copy
import pickle

import artifex_devices as ad
import pytest
from artifex_devices.sharding import P, PartitionSpec
from artifex_devices.testing import spec_entries
from hypothesis import given

NAMES = ("x", "y", "z", 1, 2.5, "it's", "π")
SPECS = spec_entries(NAMES)


def test_p_is_partition_spec():
    assert P is PartitionSpec is ad.PartitionSpec is ad.P


@given(SPECS)
def test_copies_and_pickles_are_equal(entries):
    spec = P(*entries)
    for twin in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert twin == spec
        assert repr(twin) == repr(spec)


def test_unconstrained_is_one_object_that_survives_pickling():
    assert pickle.loads(pickle.dumps(P.UNCONSTRAINED)) is P.UNCONSTRAINED
    assert P(P.UNCONSTRAINED) == P(P.UNCONSTRAINED)
    assert P(P.UNCONSTRAINED) != P(None)


def test_index_count_and_membership():
    spec = P("x", None, ("y", "z"), "x")
    assert spec.index("x") == 0
    assert spec.index(("y", "z")) == 2
    assert spec.count("x") == 2
    assert None in spec
    assert "y" not in spec
    with pytest.raises(ValueError, match="not in tuple"):
        spec.index("w")


def test_it_cannot_be_changed_or_subclassed():
    spec = P("x")
    with pytest.raises(AttributeError):
        spec.axes = "y"
    with pytest.raises(TypeError):
        spec[0] = "y"
    with pytest.raises(TypeError):
        type("Sub", (P,), {})
    assert spec == P("x")


def test_it_is_a_leaf_of_trees():
    spec = P("x", None)
    assert ad.tree_util.tree_leaves({"a": [spec]}) == [spec]


@pytest.mark.parametrize("other", ["y", ["y"], None, 3], ids=repr)
def test_adding_something_else_is_a_type_error(other):
    with pytest.raises(TypeError):
        P("x") + other
    with pytest.raises(TypeError):
        other + P("x")
