# SPDX-License-Identifier: Apache-2.0
"""Trees of many levels on a thread with a small stack, and registered types whose functions call themselves."""

import itertools
import pickle
import subprocess
import sys

import pytest
from artifex_devices import tree, tree_util

LEVELS = 1000  # the limit of the library

SMALL_STACK = f"""
import pickle, sys, threading
from artifex_devices import tree, tree_util

class Box:
    def __init__(self, value):
        self.value = value

tree_util.register_pytree_node(Box, lambda box: ((box.value,), None), lambda _, values: Box(*values))

def work():
    wide = dict.fromkeys(range(20), 0)
    kinds = (lambda x: {{"a": x}}, lambda x: [x], lambda x: (x, 1), Box, lambda x: wide | {{0: x}})
    for wrap in kinds:
        value = 7
        for _ in range({LEVELS}):
            value = wrap(value)
        leaves, structure = tree.flatten(value)
        other = tree.flatten(value, is_leaf=lambda node: False)[1]
        assert structure == other and hash(structure) == hash(other)
        assert pickle.loads(pickle.dumps(structure)) == structure if wrap is not Box else True
        assert structure.flatten_up_to(tree.unflatten(structure, leaves)) == leaves
        assert structure.num_leaves == len(leaves) == len(structure.paths()) and structure.num_nodes > {LEVELS}
        assert len(str(structure)) > {LEVELS}
        assert structure.compose(tree.structure(0)) == structure
        tree.flatten_with_path(value, is_leaf=lambda path, node: False, is_leaf_takes_path=True)
    ended.append(True)

ended = []
threading.stack_size(int(sys.argv[1]) << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert ended == [True]
"""


@pytest.mark.parametrize("kib", [256, 1024])
def test_trees_of_all_levels_fit_the_stack_of_any_thread(kib):
    done = subprocess.run(
        [sys.executable, "-c", SMALL_STACK, str(kib)], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


class Recursive:
    """A node whose function flattens the node below it, which has no end."""

    calls = 0

    def __init__(self, value=None):
        self.value = self if value is None else value


def flatten_recursively(node):
    Recursive.calls += 1
    return tree.flatten(node.value)[0], None


tree_util.register_pytree_node(Recursive, flatten_recursively, lambda _, values: Recursive(values))


def test_a_flatten_function_without_end_is_called_once_for_each_level():
    Recursive.calls = 0
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        tree.flatten(Recursive())
    assert Recursive.calls < sys.getrecursionlimit()


@pytest.mark.parametrize("takes_path", [False, True])
def test_an_is_leaf_without_end_is_called_once_for_each_level(takes_path):
    calls = itertools.count()

    def is_leaf(*arguments):
        next(calls)
        return bool(tree.flatten_with_path([arguments[-1]], is_leaf=is_leaf, is_leaf_takes_path=takes_path))

    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        tree.flatten_with_path([1], is_leaf=is_leaf, is_leaf_takes_path=takes_path)
    assert next(calls) < sys.getrecursionlimit()


def test_a_recursion_error_of_a_registered_type_is_passed_on():
    class Own:
        pass

    error = RecursionError("of the type")

    def fail(node):
        raise error

    tree_util.register_pytree_node(Own, fail, lambda _, values: Own())
    with pytest.raises(RecursionError) as raised:
        tree.flatten([Own()])
    assert raised.value is error


def test_structures_hash_as_they_compare():
    trees = [1, [1], (1,), [[1]], {"a": 1}, {"a": [1, None]}, None, [], Recursive([1, 2])]
    structures = [tree.structure(each) for each in trees]
    assert len({hash(each) for each in structures}) == len(set(structures)) == len(trees)
    assert [hash(tree.structure(each)) for each in trees] == [hash(each) for each in structures]
    assert {pickle.loads(pickle.dumps(each)) for each in structures} == set(structures)


def test_a_list_that_shrinks_while_it_is_flattened_has_the_children_that_are_left():
    values = [None, 1, 2]

    def is_leaf(node):
        if node == 1:
            values.pop()
        return False

    leaves, structure = tree.flatten(values, is_leaf=is_leaf)
    assert leaves == [1]
    assert structure.num_leaves == 1
