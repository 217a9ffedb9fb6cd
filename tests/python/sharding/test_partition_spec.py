# SPDX-License-Identifier: Apache-2.0
"""PartitionSpec: what it keeps, how it shows itself, when two are equal."""

import copy
import pickle

import artifex_devices as ad
import pytest
from artifex_devices.sharding import P, PartitionSpec
from artifex_devices.testing import spec_entries
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("x", "y", "z", 1, 2.5, "it's", "π")
SPECS = spec_entries(NAMES)


def normal(entry):
    """An entry as the spec keeps it: () is None, one axis stands alone."""
    if entry == ():
        return None
    return entry[0] if isinstance(entry, tuple) and len(entry) == 1 and not isinstance(entry[0], tuple) else entry


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ((), "P()"),
        (("x",), "P('x',)"),
        (("x", None), "P('x', None)"),
        ((None,), "P(None,)"),
        (((),), "P(None,)"),
        ((("x", "y"), None), "P(('x', 'y'), None)"),
        ((["x", "y"],), "P(('x', 'y'),)"),
        ((("x",),), "P('x',)"),
        ((1, 2.5), "P(1, 2.5)"),
        (("it's",), 'P("it\'s",)'),
        (("a\nb",), "P('a\\nb',)"),
        (("π",), "P('π',)"),
        ((P.UNCONSTRAINED, "x"), "P(UNCONSTRAINED, 'x')"),
    ],
    ids=str,
)
def test_repr_is_jax_text(entries, text):
    assert repr(P(*entries)) == text
    assert str(P(*entries)) == text


def test_p_is_partition_spec():
    assert P is PartitionSpec is ad.PartitionSpec is ad.P


@given(spec_entries(("x", "y", "z")))
def test_entries_come_back_in_order(entries):
    spec = P(*entries)
    assert len(spec) == len(entries)
    assert list(spec) == [normal(entry) for entry in entries]
    assert tuple(spec[i] for i in range(len(spec))) == tuple(spec)
    assert bool(spec) is bool(entries)


@given(spec_entries(("x", "y", "z")), st.slices(5))
def test_a_slice_is_a_tuple(entries, part):
    assert P(*entries)[part] == tuple(normal(entry) for entry in entries)[part]
    assert type(P(*entries)[part]) is tuple


@given(spec_entries(("x", "y")), spec_entries(("z", "w")))
def test_concatenation_works_with_specs_and_tuples_on_either_side(left, right):
    whole = P(*left, *right)
    assert P(*left) + P(*right) == whole
    assert P(*left) + tuple(right) == whole
    assert tuple(left) + P(*right) == whole


@given(SPECS, SPECS)
def test_equality_is_that_of_the_entries(left, right):
    same = [normal(entry) for entry in left] == [normal(entry) for entry in right]
    assert (P(*left) == P(*right)) is same
    assert (P(*left) != P(*right)) is not same
    assert not same or hash(P(*left)) == hash(P(*right))


@given(SPECS)
def test_copies_and_pickles_are_equal(entries):
    spec = P(*entries)
    for twin in (copy.copy(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert twin == spec
        assert repr(twin) == repr(spec)


def test_trailing_none_counts():
    assert P("x") != P("x", None)
    assert {P("x"): 1, P("x", None): 2} == {P("x", None): 2, P("x"): 1}


def test_order_inside_a_tuple_counts():
    assert P(("x", "y")) != P(("y", "x"))


def test_a_spec_is_not_a_tuple():
    assert P("x") != ("x",)
    assert P("x") != ("x",)
    assert not isinstance(P("x"), tuple)
    assert P() != ()
    assert P() is not None


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


def test_out_of_range_is_an_index_error():
    with pytest.raises(IndexError):
        P("x")[1]
    assert P("x")[-1] == "x"


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
