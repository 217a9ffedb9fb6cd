# SPDX-License-Identifier: Apache-2.0
"""Where dicts are whose keys cannot be sorted."""

from collections import defaultdict

import pytest
from artifex_devices import tree_util

UNSORTABLE = {1: 0, "a": 0}
REASON = "cannot be sorted; expected keys that compare with each other"


def test_a_leaf_is_not_searched_for_the_dict():
    tree = [UNSORTABLE, [{2: 0, "b": 0}]]
    with pytest.raises(ValueError, match=rf"^tree_flatten: the keys of the dict at \[0\] {REASON}, got \[1, "):
        tree_util.tree_flatten(tree)
    with pytest.raises(ValueError, match=rf"^tree_flatten: the keys of the dict at \[1\]\[0\] {REASON}, got \[2, "):
        tree_util.tree_flatten(tree, is_leaf=lambda value: value is UNSORTABLE)


@pytest.mark.parametrize("value", [UNSORTABLE, defaultdict(int, UNSORTABLE)])
def test_the_topmost_dict_has_no_path(value):
    with pytest.raises(ValueError, match=rf"^tree_flatten: the keys of the (default)?dict {REASON}"):
        tree_util.tree_flatten(value)


@pytest.mark.parametrize("name", ["flatten_one_level", "flatten_one_level_with_keys"])
@pytest.mark.parametrize("kind", [dict, lambda items: defaultdict(int, items)])
def test_one_level(name, kind):
    node = kind(UNSORTABLE)
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared
        getattr(tree_util, name)(node)
    assert str(raised.value).startswith(
        f"{name}: the keys of the {type(node).__name__} cannot be sorted, got [1, 'a'] ('<' not supported between"
    )


def test_a_structure_without_leaves_has_no_inner_tree():
    outer = tree_util.tree_structure([])
    with pytest.raises(ValueError, match=r"^tree_transpose: the outer structure has no leaf to take the inner one"):
        tree_util.tree_transpose(outer, None, [])
    assert tree_util.tree_transpose(outer, tree_util.tree_structure({"a": 0}), []) == {"a": []}
