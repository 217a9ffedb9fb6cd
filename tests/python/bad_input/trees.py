# SPDX-License-Identifier: Apache-2.0
"""Bad calls: trees."""

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "tree.map",
        "tree.map(lambda x: x + 1, {'a': 1})",
        [
            bad("tree.map(3, {'a': 1})", TypeError, "tree_map:", "3"),
            bad("tree.map(None, {'a': 1})", TypeError, "tree_map:", "None"),
            bad("tree.map(lambda x, y: x, {'a': 1}, {'b': 1})", ValueError, "tree_map:", "rest", "'a'"),
            bad("tree.map(lambda x, y: x, {'a': 1}, 3)", ValueError, "tree_map:", "rest", "'a'"),
            bad("tree.map(lambda x, y: x, [1], (1,))", ValueError, "tree_map:", "rest"),
            bad("tree.map(lambda x, y: x, [1], [1, 2])", ValueError, "tree_map:", "rest"),
            bad("tree.map(lambda x: 1 / 0, [1])", ZeroDivisionError, "division by zero"),
            bad("tree.map(lambda x: x, [1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.map(lambda x: x, {1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
        ],
    ),
    Calls(
        "tree.map_with_path",
        "tree.map_with_path(lambda p, x: x, {'a': 1})",
        [
            bad("tree.map_with_path(3, {'a': 1})", TypeError, "tree_map_with_path:", "f is 3 (int)"),
            bad("tree.map_with_path(lambda p, x, y: x, {'a': 1}, {'b': 1})", ValueError, "tree_map_with_path:", "rest", "'a'"),
            bad("tree.map_with_path(lambda p, x: x, [1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
        ],
    ),
    Calls(
        "tree.flatten",
        "tree.flatten({'a': 1})",
        [
            bad("tree.flatten({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.flatten([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.flatten(functools.reduce(lambda t, _: [t], range(20000), 1))", RecursionError, "tree_flatten:", "expected"),
        ],
    ),
    Calls(
        "tree.flatten_with_path",
        "tree.flatten_with_path({'a': 1})",
        [
            bad("tree.flatten_with_path({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.flatten_with_path([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.flatten_with_path(functools.reduce(lambda t, _: [t], range(20000), 1))", RecursionError, "tree_flatten:", "expected"),
        ],
    ),
    Calls(
        "tree.leaves",
        "tree.leaves({'a': 1})",
        [
            bad("tree.leaves({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.leaves([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.leaves(functools.reduce(lambda t, _: [t], range(20000), 1))", RecursionError, "tree_flatten:", "expected"),
        ],
    ),
    Calls(
        "tree.leaves_with_path",
        "tree.leaves_with_path({'a': 1})",
        [
            bad("tree.leaves_with_path({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.leaves_with_path([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.leaves_with_path()", TypeError, "positional"),
            bad("tree.leaves_with_path([1], is_leaf=lambda x: 'x')", ValueError, "tree_flatten:", "is_leaf", "'x'"),
            bad("tree.leaves_with_path([1], is_leaf=lambda: True)", TypeError, "lambda"),
        ],
    ),
    Calls(
        "tree.structure",
        "tree.structure({'a': 1})",
        [
            bad("tree.structure({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.structure([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.structure(functools.reduce(lambda t, _: [t], range(20000), 1))", RecursionError, "tree_flatten:", "expected"),
        ],
    ),
    Calls(
        "tree.all",
        "tree.all([True])",
        [
            bad("tree.all({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("tree.all([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree.all([np.ones(2)])", ValueError, "ambiguous", "element"),
        ],
    ),
    Calls(
        "tree.broadcast",
        "tree.broadcast(1, [1, 2])",
        [
            bad("tree.broadcast([1], [1, 2])", ValueError, "broadcast_prefix:", "1", "2"),
            bad("tree.broadcast({'a': 1}, {'b': 1})", ValueError, "broadcast_prefix:", "'a'", "'b'"),
            bad("tree.broadcast([1], (1,))", ValueError, "broadcast_prefix:", "1"),
            bad("tree.broadcast([1], [1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
        ],
    ),
    Calls(
        "tree.reduce",
        "tree.reduce(operator.add, [1, 2])",
        [
            bad("tree.reduce(3, [1, 2])", TypeError, "tree_reduce:", "function is 3 (int)"),
            bad("tree.reduce(operator.add, [])", TypeError, "tree_reduce:", "initializer"),
            bad("tree.reduce(operator.add, [1, 'a'])", TypeError, "unsupported", "operand"),
        ],
    ),
    Calls(
        "tree.reduce_associative",
        "tree.reduce_associative(operator.add, [1, 2])",
        [
            bad("tree.reduce_associative(3, [1, 2])", TypeError, "tree_reduce_associative:", "operation is 3 (int)"),
            bad("tree.reduce_associative(operator.add, [])", TypeError, "tree_reduce_associative:", "identity"),
            bad("tree.reduce_associative(operator.add, [1, 'a'])", TypeError, "unsupported", "operand"),
        ],
    ),
    Calls(
        "tree.static",
        "tree.static(default=1)",
        [
            bad("tree.static(spam=1)", TypeError, "unexpected", "argument"),
            bad("tree.static(3)", TypeError, "positional", "arguments"),
            bad("tree.static(metadata=3)", TypeError, "static:", "metadata", "3"),
            bad("tree.static(default=1, default_factory=list)", ValueError, "default_factory"),
        ],
    ),
    Calls(
        "tree.transpose",
        "tree.transpose(tree.structure([0, 0]), tree.structure({'a': 0}), [{'a': 1}, {'a': 2}])",
        [
            bad("tree.transpose(3, 3, [1])", TypeError, "tree_transpose:", "3", repair="take (tree\\.structure\\(x\\))", given="x = [1]"),
            bad("tree.transpose(tree.structure([0]), tree.structure([0]), [1, 2])", TypeError, "tree_transpose:", "1", "2"),
            bad("tree.transpose('x', None, [1])", TypeError, "tree_transpose:", "'x'", repair="take (tree\\.structure\\(x\\))", given="x = X"),
            bad("tree.transpose(tree.structure([0, 0]), None, 3)", ValueError, "flatten_up_to:", "list of 2"),
        ],
    ),
    Calls(
        "tree.unflatten",
        "tree.unflatten(tree.structure([0]), [1])",
        [
            bad("tree.unflatten(3, [1])", TypeError, "tree_unflatten:", "3"),
            bad("tree.unflatten(tree.structure([0]), [1, 2])", ValueError, "tree_unflatten:", "leaves"),
            bad("tree.unflatten(tree.structure([0]), [])", ValueError, "tree_unflatten:", "leaves"),
            bad("tree.unflatten(tree.structure([0]), 3)", TypeError, "tree_unflatten:", "leaves"),
            bad("tree.unflatten(tree.structure([0]), BAD_ITER)", ZeroDivisionError, "no more"),
        ],
    ),
    Calls(
        "tree_util.all_leaves",
        "tree_util.all_leaves([1, 2])",
        [
            bad("tree_util.all_leaves(3)", TypeError, "all_leaves:", "iterable"),
            bad("tree_util.all_leaves([1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree_util.all_leaves(BAD_ITER)", ZeroDivisionError, "no more"),
        ],
    ),
    Calls(
        "tree_util.broadcast_prefix",
        "tree_util.broadcast_prefix(1, [1, 2])",
        [
            bad("tree_util.broadcast_prefix([1], [1, 2])", ValueError, "broadcast_prefix:", "1", "2"),
            bad("tree_util.broadcast_prefix({'a': 1}, {'b': 1})", ValueError, "broadcast_prefix:", "'a'", "'b'"),
            bad("tree_util.broadcast_prefix([1], [1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
        ],
    ),
    Calls(
        "tree_util.flatten_one_level",
        "tree_util.flatten_one_level([1])",
        [
            bad("tree_util.flatten_one_level(3)", ValueError, "flatten_one_level:", "expected"),
            bad("tree_util.flatten_one_level('text')", ValueError, "flatten_one_level:", "expected"),
            bad("tree_util.flatten_one_level(NO_REPR)", ValueError, "flatten_one_level:", "expected"),
        ],
    ),
    Calls(
        "tree_util.flatten_one_level_with_keys",
        "tree_util.flatten_one_level_with_keys([1])",
        [
            bad("tree_util.flatten_one_level_with_keys(3)", ValueError, "flatten_one_level_with_keys:", "expected"),
            bad("tree_util.flatten_one_level_with_keys('text')", ValueError, "flatten_one_level_with_keys:", "expected"),
            bad("tree_util.flatten_one_level_with_keys(NO_REPR)", ValueError, "flatten_one_level_with_keys:", "expected"),
        ],
    ),
    Calls(
        "tree_util.is_tree_node",
        "tree_util.is_tree_node(list)",
        [
            bad("tree_util.is_tree_node()", TypeError, "is_tree_node", "positional"),
            bad("tree_util.is_tree_node(list, list)", TypeError, "is_tree_node", "positional"),
            bad("tree_util.is_tree_node(spam=1)", TypeError, "'spam'"),
        ],
    ),
    Calls(
        "tree_util.keystr",
        "tree_util.keystr((tree_util.SequenceKey(0),))",
        [
            bad("tree_util.keystr(3)", TypeError, "keystr:", "keys is 3 (int)"),
            bad("tree_util.keystr((tree_util.SequenceKey(0),), separator=3)", TypeError, "keystr:", "separator"),
            bad("tree_util.keystr(None)", TypeError, "keystr:", "NoneType"),
            bad("tree_util.keystr(BAD_ITER)", ZeroDivisionError, "no more"),
            bad("tree_util.keystr()", TypeError, "positional"),
        ],
    ),
    Calls(
        "tree_util.prefix_errors",
        "tree_util.prefix_errors([1], [1])",
        [
            bad("tree_util.prefix_errors([1], [1], is_leaf=3)", TypeError, "tree_flatten:", "is_leaf"),
            bad("tree_util.prefix_errors({1: 1, 'a': 2}, [1])", ValueError, "tree_flatten:", "'a'"),
            bad("tree_util.prefix_errors([1])", TypeError, "full_tree"),
            bad("tree_util.prefix_errors([1], [1], is_leaf=lambda x: 'x')", ValueError, "tree_flatten:", "is_leaf"),
        ],
    ),
    Calls(
        "tree_util.register_pytree_node",
        "tree_util.register_pytree_node(type('A', (), {}), lambda a: ((), None), lambda m, c: None)",
        [
            bad("tree_util.register_pytree_node(3, lambda a: ((), None), lambda m, c: None)", TypeError, "register_pytree_node:", "3"),
            bad("tree_util.register_pytree_node(list, lambda a: ((), None), lambda m, c: None)", ValueError, "register_pytree_node:", "expected"),
            bad("tree_util.register_pytree_node(type('A', (), {}), 3, 3)", TypeError, "register_pytree_node:", "flatten_func"),
            bad("tree_util.register_pytree_node(type('A', (), {}), None, lambda m, c: None)", TypeError, "register_pytree_node:", "None"),
        ],
    ),
    Calls(
        "tree_util.register_pytree_node_class",
        "tree_util.register_pytree_node_class(type('A', (), {'tree_flatten': lambda s: ((), None), 'tree_flatten_with_keys': lambda s: ((), None), 'tree_unflatten': classmethod(lambda c, m, k: c())}))",
        [
            bad("tree_util.register_pytree_node_class(3)", AttributeError, "register_pytree_node_class:", "tree_unflatten"),
            bad("tree_util.register_pytree_node_class(type('A', (), {}))", AttributeError, "'A'", "tree_unflatten"),
            bad("tree_util.register_pytree_node_class(list)", AttributeError, "register_pytree_node_class:", "tree_unflatten"),
        ],
    ),
    Calls(
        "tree_util.register_pytree_with_keys",
        "tree_util.register_pytree_with_keys(type('A', (), {}), lambda a: ((), None), lambda m, c: None)",
        [
            bad("tree_util.register_pytree_with_keys(3, lambda a: ((), None), lambda m, c: None)", TypeError, "register_pytree_with_keys:", "3"),
            bad("tree_util.register_pytree_with_keys(dict, lambda a: ((), None), lambda m, c: None)", ValueError, "register_pytree_with_keys:", "expected"),
            bad("tree_util.register_pytree_with_keys(type('A', (), {}), 3, 3)", TypeError, "register_pytree_with_keys:", "unflatten_func"),
        ],
    ),
    Calls(
        "tree_util.register_pytree_with_keys_class",
        "tree_util.register_pytree_with_keys_class(type('A', (), {'tree_flatten': lambda s: ((), None), 'tree_flatten_with_keys': lambda s: ((), None), 'tree_unflatten': classmethod(lambda c, m, k: c())}))",
        [
            bad("tree_util.register_pytree_with_keys_class(3)", AttributeError, "register_pytree_with_keys_class:", "tree_unflatten"),
            bad("tree_util.register_pytree_with_keys_class(type('A', (), {}))", AttributeError, "'A'", "tree_unflatten"),
            bad("tree_util.register_pytree_with_keys_class(list)", AttributeError, "register_pytree_with_keys_class:", "<class 'list'>"),
        ],
    ),
    Calls(
        "tree_util.register_static",
        "tree_util.register_static(type('A', (), {}))",
        [
            bad("tree_util.register_static(3)", TypeError, "register_static:", "3"),
            bad("tree_util.register_static(list)", ValueError, "register_static:", "expected"),
            bad("tree_util.register_static(None)", TypeError, "register_static:", "None"),
        ],
    ),
    Calls(
        "tree_util.register_dataclass",
        "tree_util.register_dataclass(type('A', (), {}), ['a'], [])",
        [
            bad("tree_util.register_dataclass(3, ['a'], [])", TypeError, "register_dataclass:", "3"),
            bad("tree_util.register_dataclass(type('A', (), {}))", TypeError, "register_dataclass:", "data_fields", "meta_fields"),
            bad("tree_util.register_dataclass(type('A', (), {}), 3, [])", TypeError, "register_dataclass:", "data_fields is 3 (int)"),
            bad("tree_util.register_dataclass(type('A', (), {}), ['a'], ['a'])", ValueError, "register_dataclass:", "data_fields", "meta_fields"),
            bad("tree_util.register_dataclass(list, ['a'], [])", ValueError, "register_dataclass:", "expected"),
        ],
    ),
    Calls(
        "tree_util.treedef_children",
        "tree_util.treedef_children(tree.structure([0]))",
        [
            bad("tree_util.treedef_children(3)", TypeError, "treedef_children:", "3"),
            bad("tree_util.treedef_children(None)", TypeError, "treedef_children:", "None"),
            bad("tree_util.treedef_children(NO_REPR)", TypeError, "treedef_children:", "<NoRepr, whose repr raised ZeroDivisionError>"),
            bad("tree_util.treedef_children([0])", TypeError, "treedef_children:", "[0]", repair="take (tree\\.structure\\(x\\))", given="x = [0]", then="tree_util.treedef_children({})"),
        ],
    ),
    Calls(
        "tree_util.treedef_is_leaf",
        "tree_util.treedef_is_leaf(tree.structure([0]))",
        [
            bad("tree_util.treedef_is_leaf(3)", TypeError, "treedef_is_leaf:", "3"),
            bad("tree_util.treedef_is_leaf(None)", TypeError, "treedef_is_leaf:", "None"),
            bad("tree_util.treedef_is_leaf(NO_REPR)", TypeError, "treedef_is_leaf:", "<NoRepr, whose repr raised ZeroDivisionError>"),
            bad("tree_util.treedef_is_leaf('x')", TypeError, "treedef_is_leaf:", "'x'", repair="take (tree\\.structure\\(x\\))", given="x = 'x'", then="tree_util.treedef_is_leaf({})"),
        ],
    ),
    Calls(
        "tree_util.treedef_tuple",
        "tree_util.treedef_tuple([tree.structure([0])])",
        [
            bad("tree_util.treedef_tuple(3)", TypeError, "treedef_tuple:", "treedefs"),
            bad("tree_util.treedef_tuple([3])", TypeError, "treedef_tuple:", "3"),
            bad("tree_util.treedef_tuple(None)", TypeError, "treedef_tuple:", "treedefs"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef.unflatten",
        "tree.structure([0]).unflatten([1])",
        [
            bad("tree.structure([0]).unflatten([1, 2])", ValueError, "tree_unflatten:", "leaves"),
            bad("tree.structure([0]).unflatten(3)", TypeError, "tree_unflatten:", "leaves"),
            bad("tree.structure([0]).unflatten(BAD_ITER)", ZeroDivisionError, "no more"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef.compose",
        "tree.structure([0]).compose(tree.structure([0]))",
        [
            bad("tree.structure([0]).compose(3)", TypeError, "compose:", "3"),
            bad("tree.structure([0]).compose(None)", TypeError, "compose:", "None"),
            bad("tree.structure([0]).compose([0])", TypeError, "compose:", "[0]", repair="take (tree\\.structure\\(x\\))", given="x = [0]", then="tree.structure([0]).compose({})"),
            bad("tree.structure([0]).compose()", TypeError, "inner"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef.flatten_up_to",
        "tree.structure([0]).flatten_up_to([1])",
        [
            bad("tree.structure([0]).flatten_up_to(3)", ValueError, "flatten_up_to:", "tree"),
            bad("tree.structure([0]).flatten_up_to([1, 2])", ValueError, "flatten_up_to:", "tree"),
            bad("tree.structure([0]).flatten_up_to({'a': 1})", ValueError, "flatten_up_to:", "tree", "'a'"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef.walk",
        "tree.structure([0]).walk(lambda *a: 1, lambda x: x, [1])",
        [
            bad("tree.structure([0]).walk(3, lambda x: x, [1])", TypeError, "walk:", "f_node is 3 (int)"),
            bad("tree.structure([0]).walk(lambda *a: 1, lambda x: x, [])", ValueError, "walk:", "leaves"),
            bad("tree.structure([0]).walk(lambda *a: 1, lambda x: x, 3)", TypeError, "walk:", "leaves is 3 (int)"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef.from_node_data_and_children",
        "tree_util.PyTreeDef.from_node_data_and_children(tree_util.default_registry, (list, None), [tree.structure(0)])",
        [
            bad("tree_util.PyTreeDef.from_node_data_and_children(tree_util.default_registry, 3, [tree.structure(0)])", TypeError, "from_node_data_and_children:", "node_data is 3"),
            bad("tree_util.PyTreeDef.from_node_data_and_children(tree_util.default_registry, (list, None), 3)", TypeError, "from_node_data_and_children:", "children is 3 (int)"),
            bad("tree_util.PyTreeDef.from_node_data_and_children(tree_util.default_registry, (list, None), [3])", TypeError, "from_node_data_and_children:", "3"),
        ],
    ),
    Calls(
        "tree_util.Partial",
        "tree_util.Partial(lambda x: x, 1)()",
        [
            bad("tree_util.Partial(3)", TypeError, "argument", "callable"),
            bad("tree_util.Partial()", TypeError, "positional", "argument"),
            bad("tree_util.Partial(None)", TypeError, "callable"),
            bad("tree_util.Partial(lambda x: x, 1)(2)", TypeError, "lambda", "positional"),
        ],
    ),
    Calls(
        "tree_util.PyTreeDef",
        "tree.structure([0]).num_leaves",
        [
            bad("tree_util.PyTreeDef()", TypeError, "PyTreeDef:", "objects of this class are not made by calling it"),
            bad("tree_util.PyTreeDef([0])", TypeError, "PyTreeDef:", "objects of this class are not made by calling it", repair="use (tree\\.structure\\(x\\))", given="x = [0]"),
            bad("tree_util.PyTreeDef(None, 'x')", TypeError, "PyTreeDef:", "objects of this class are not made by calling it"),
            bad("tree_util.PyTreeDef(spam=1)", TypeError, "'spam'"),
        ],
    ),
]
