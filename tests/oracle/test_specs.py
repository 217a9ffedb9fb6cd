# SPDX-License-Identifier: Apache-2.0
"""PartitionSpec behaves as JAX's: text, sequence manners, equality, errors."""

import pytest
from artifex_devices.testing import spec_entries
from both import BY_NAME, JAX, OURS, assert_agree, equality_of, near_entries, plain
from hypothesis import given
from hypothesis import strategies as st

NAMES = ("x", "y", "z", "data", 1)  # falsy names are a documented deviation
ANY_NAME = st.one_of(
    st.sampled_from(NAMES),
    st.text(st.characters(max_codepoint=0x17F), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from([0.5, frozenset("b"), b"bytes", -1e300]),
)
ANY_ENTRY = st.one_of(st.none(), ANY_NAME, st.lists(ANY_NAME, max_size=3), st.lists(ANY_NAME, max_size=3).map(tuple))
ENTRIES = st.one_of(spec_entries(NAMES), st.lists(ANY_ENTRY, max_size=4).map(tuple))
WRONG = [(("x", ("y",)),), ({"x"},), ([["x"]],), ({"a": 1},), (("x", ["y"]),), (("x", {"y"}),)]


@given(ENTRIES)
def test_text_and_contents_are_equal(entries):
    assert_agree(lambda lib: (repr(lib.P(*entries)), str(lib.P(*entries)), len(lib.P(*entries)), list(lib.P(*entries))))


@given(ENTRIES, st.slices(5), st.integers(-6, 6))
def test_indexing_and_slicing_are_equal(entries, part, position):
    assert_agree(lambda lib: lib.P(*entries)[part])
    assert_agree(lambda lib: lib.P(*entries)[position])


@given(ENTRIES, ENTRIES)
def test_concatenation_is_equal(left, right):
    assert_agree(lambda lib: lib.P(*left) + lib.P(*right))
    assert_agree(lambda lib: repr(lib.P(*left) + tuple(right)))
    assert_agree(lambda lib: repr(tuple(left) + lib.P(*right)))


@given(st.data(), ENTRIES)
def test_equality_and_hash_are_equal(data, left):
    right = data.draw(st.one_of(ENTRIES, near_entries(left, NAMES)))
    assert_agree(lambda lib: equality_of([(lib.P(*left), lib.P(*right))]))


@given(ENTRIES)
def test_a_spec_is_not_a_tuple_and_can_be_a_key(entries):
    for lib in (OURS, JAX):
        spec = lib.P(*entries)
        assert spec != tuple(entries)
        assert tuple(entries) != spec
        assert {spec: "found"}[lib.P(*entries)] == "found"
        assert bool(spec) is (len(entries) > 0)


@given(ENTRIES, ANY_NAME)
def test_membership_is_equal(entries, name):
    assert_agree(lambda lib: (name in lib.P(*entries), name in list(lib.P(*entries))))


@pytest.mark.parametrize("entries", WRONG, ids=repr)
def test_wrong_entries_raise_alike(entries):
    assert assert_agree(lambda lib: lib.P(*entries)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: type("Sub", (lib.P,), {}),
        lambda lib: setattr(lib.P("x"), "spam", 1),
        lambda lib: lib.P("x")[3],
        lambda lib: lib.P("x") < lib.P("y"),
    ],
    ids=["subclass", "assignment", "index", "order"],
)
def test_misuse_raises_alike(wrong):
    assert assert_agree(wrong) is None


def test_unconstrained_is_shown_alike():
    assert_agree(lambda lib: repr(lib.P(lib.P.UNCONSTRAINED, "x", None)))
    assert_agree(lambda lib: lib.P(lib.P.UNCONSTRAINED) == lib.P(lib.P.UNCONSTRAINED))
    assert_agree(lambda lib: lib.P(lib.P.UNCONSTRAINED) == lib.P(None))


def test_the_harness_sees_differences():
    assert plain(OURS.P("x")) == plain(JAX.P("x")) != plain(JAX.P("x", None))
    assert set(BY_NAME) == {"IndivisibleError", "DuplicateSpecError"}
    with pytest.raises(AssertionError, match="JAX gives 'jax', ours raises"):
        assert_agree(lambda lib: "jax" if lib is JAX else [][0])
    with pytest.raises(AssertionError, match="JAX raises"):
        assert_agree(lambda lib: {}["key"] if lib is JAX else 1)
    with pytest.raises(AssertionError, match="JAX raises KeyError"):
        assert_agree(lambda lib: {}["key"] if lib is JAX else [][0])
