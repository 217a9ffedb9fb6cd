# SPDX-License-Identifier: Apache-2.0
"""Static data of nodes: compared by ==, hashed or not, and refused where == gives no answer."""

import dataclasses

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, tree, tree_util


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    """A node with static data of any kind."""

    weight: object
    options: object = tree.static(default=None)


class Uncomparable:
    """Data whose == raises an error of its own."""

    def __eq__(self, other):
        raise LookupError("no such table")

    __hash__ = None


class Interrupting:
    def __eq__(self, other):
        raise KeyboardInterrupt

    __hash__ = None


def row_of_devices():
    return ad.Mesh(np.array(ad.devices()), ("x",))


def test_structures_have_a_hash_whatever_their_data_are():
    first, same, other = (tree.structure(Layer(1.0, options)) for options in ([1], [1], [2]))
    assert (first == same, first == other) == (True, False)
    assert hash(first) == hash(same)
    assert {first: "a"}[same] == "a"
    assert {first, same, other} == {first, other}
    sets = [tree.structure(Layer(1.0, options)) for options in ({1}, frozenset({1}))]
    assert sets[0] == sets[1]
    assert hash(sets[0]) == hash(sets[1])
    assert hash(tree.structure([Layer(1.0, {"a": np.ones(2)})])) == hash(tree.structure([Layer(1.0, {})]))


def double(layer):
    factor = sum(layer.options)
    return Layer(layer.weight * factor, layer.options)


@pytest.mark.parametrize("mapped", ["shard_map", "pmap", "jit"])
def test_mapped_functions_take_nodes_with_unhashable_data(mapped):
    with ad.simulate(4):
        x = np.arange(4.0)
        f = {
            "shard_map": lambda: ad.shard_map(double, row_of_devices(), in_specs=P("x"), out_specs=P("x")),
            "pmap": lambda: ad.pmap(double),
            "jit": lambda: ad.jit(double),
        }[mapped]()
        for options in ([2], [3], [2, 3], [2]):  # each has a plan of its own
            result = f(Layer(x, options))
            assert result.options == options
            np.testing.assert_array_equal(np.asarray(result.weight), x * sum(options))
            np.testing.assert_array_equal(np.asarray(f(Layer(x, list(options))).weight), x * sum(options))


def test_specs_may_be_nodes_with_unhashable_data():
    with ad.simulate(4):
        specs = Layer(P("x"), [2])
        f = ad.shard_map(double, row_of_devices(), in_specs=(specs,), out_specs=specs)
        np.testing.assert_array_equal(np.asarray(f(Layer(np.arange(4.0), [2])).weight), np.arange(4.0) * 2)
        with pytest.raises(ValueError, match=r"expected Layer with data \(\[2\],\), got \(\[3\],\)"):
            f(Layer(np.arange(4.0), [3]))


ARRAY_TEXT = (
    r"^tree: the static data of two nodes of type Layer cannot be compared, as == raised ValueError; expected data "
    r"whose == returns True or False, got \(numpy\.ndarray\); register arrays as children \(data_fields\), or store "
    r"tuples or bytes instead$"
)


def comparisons():
    first, second = (Layer(1.0, np.arange(3)) for _ in range(2))
    mesh = ad.Mesh(np.array(ad.devices()[:1]), ("x",))
    return {
        "==": lambda: tree.structure(first) == tree.structure(second),
        "!=": lambda: tree.structure([first]) != tree.structure([second]),
        "map": lambda: tree.map(lambda a, b: a, first, second),
        "flatten_up_to": lambda: tree.structure(first).flatten_up_to(second),
        "broadcast_prefix": lambda: tree_util.broadcast_prefix(first, second),
        "prefix_errors": lambda: tree_util.prefix_errors(first, second),
        "in_specs": lambda: ad.shard_map(lambda a: a, mesh, in_specs=(Layer(P(), first.options),), out_specs=P())(
            second
        ),
        "shard_map": lambda: [
            f(layer) for f in [ad.shard_map(lambda a: a.weight, mesh, P(), P())] for layer in (first, second)
        ],
        "pmap": lambda: [
            f(Layer(np.ones(1), each.options)) for f in [ad.pmap(lambda a: a.weight)] for each in (first, second)
        ],
        "device_put": lambda: ad.device_put(first, Layer(ad.devices()[0], second.options)),
    }


@pytest.mark.parametrize("name", comparisons())
def test_arrays_as_static_data_are_an_error_that_names_the_class_and_the_fix(name):
    with pytest.raises(ValueError, match=ARRAY_TEXT) as caught:
        comparisons()[name]()
    assert "ambiguous" not in str(caught.value)


def test_the_same_array_as_static_data_is_equal_to_itself():
    data = np.arange(3)
    assert tree.structure(Layer(1.0, data)) == tree.structure(Layer(2.0, data))
    assert tree.map(lambda a, b: a + b, Layer(1.0, data), Layer(2.0, data)).weight == 3.0
    assert np.asarray(ad.device_put(Layer(1.0, data)).weight) == 1.0


def test_an_error_of_the_data_is_the_cause():
    with pytest.raises(ValueError, match="as == raised LookupError") as caught:
        tree.map(lambda a, b: a, Layer(1.0, Uncomparable()), Layer(1.0, Uncomparable()))
    assert repr(caught.value.__cause__) == "LookupError('no such table')"
    with pytest.raises(KeyboardInterrupt):
        tree.map(lambda a, b: a, Layer(1.0, Interrupting()), Layer(1.0, Interrupting()))
