# SPDX-License-Identifier: Apache-2.0
"""What audit.shardings finds notable, and what it does not."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, audit

MESH = {"data": 4, "model": 2}


def leaf(spec, *shape, dtype=np.float32):
    return spec, ad.ShapeDtypeStruct(shape, dtype)


def notes(tree, mesh=MESH, **options):
    return [(each.kind, each.path, each.text) for each in audit.shardings(tree, mesh=mesh, **options).notes]


USED = leaf(P("data", "model"), 8, 8)  # uses both axes


def test_large_replicated_leaves_are_notable_and_small_ones_are_not():
    tree = {"used": USED, "big": leaf(P(), 512, 512), "small": leaf(P(), 511, 512), "half": leaf(P("model"), 1024, 512)}
    text = "each of 8 devices holds all of its 1.0 MiB"
    assert notes(tree) == [("replicated", "['big']", text)]
    assert [path for _, path, _ in notes(tree, at_least=511 * 512 * 4)] == ["['big']", "['small']"]
    (notice,) = audit.shardings(tree, mesh=MESH).notes
    assert notice.bytes == 1 << 20


def test_an_axis_of_one_device_shards_nothing():
    mesh = {"data": 4, "model": 1}
    tree = {"used": leaf(P("data"), 8), "big": leaf(P("model"), 1024, 1024)}
    assert [kind for kind, _, _ in notes(tree, mesh)] == ["replicated"]


def test_a_leaf_without_a_dtype_counts_a_byte_for_each_element():
    tree = {"used": USED, "big": (P(), (1024, 1024)), "small": (P(), (1024, 1023))}
    assert notes(tree) == [("replicated", "['big']", "each of 8 devices holds all of its 1,048,576 elements")]


def test_one_device_is_not_a_replica():
    assert notes(leaf(P(), 1024, 1024), {"data": 1}) == []
    assert audit.shardings(ad.device_put(np.zeros((512, 512)))).notes == ()


def test_a_dimension_that_does_not_divide_is_notable():
    tree = {"used": USED, "w": leaf(P(None, ("data", "model")), 3, 12)}
    text = "its dimension 1 of 12 does not divide by 8 (data, model)"
    assert notes(tree) == [("does not divide", "['w']", text)]


def test_an_axis_that_no_leaf_uses_is_notable():
    assert notes(leaf(P("data"), 8)) == [("unused axis", "model", "no leaf is sharded over this axis of 2 devices")]
    assert notes(leaf(P("data"), 8), {"data": 4, "model": 1}) == []
    assert notes({"a": leaf(P("data"), 8), "b": leaf(P(P.UNCONSTRAINED), 8)}) == []


@pytest.mark.parametrize(
    "place",
    [
        lambda states: {"params": PARAMS, "opt_state": states},
        lambda states: (PARAMS, {"opt_state": ({"mu": states, "count": leaf(P())},)}),
        lambda states: {"model": PARAMS, "optimizer": {"state": {"exp_avg": states}}},
        lambda states: {"model": PARAMS, "optim": {"state": slots(states)}},
    ],
)
def test_an_optimizer_state_is_compared_with_its_parameter(place):
    states = {"dense": {"kernel": leaf(P("model", "data"), 8, 8), "bias": leaf(P(), 8)}, "out": leaf(P("data"), 8, 8)}
    found = notes(place(states))
    assert [(kind, path.count("kernel")) for kind, path, _ in found] == [("optimizer state", 1)]
    assert "it is sharded P('model', 'data'), its parameter" in found[0][2]


PARAMS = {"dense": {"kernel": leaf(P("data", "model"), 8, 8), "bias": leaf(P(), 8)}, "out": leaf(P("data"), 8, 8)}


def slots(states):
    """The state as torch has it: slots below each parameter."""
    dense = {f"dense.{name}": {"exp_avg": value} for name, value in states["dense"].items()}
    return {**dense, "out": {"exp_avg": states["out"]}}


def test_equal_names_at_other_places_are_not_confused():
    tree = {
        "params": {"w": leaf(P("data"), 8, 8), "layer": {"w": leaf(P(None, "model"), 8, 8)}},
        "opt_state": {"mu": {"w": leaf(P("data"), 8, 8), "layer": {"w": leaf(P(None, "model"), 8, 8)}}},
    }
    assert notes(tree) == []


def test_a_state_of_another_shape_is_not_compared():
    tree = {"params": {"w": leaf(P("data", "model"), 8, 8)}, "opt_state": {"v_row": {"w": leaf(P(), 8)}}}
    assert notes(tree) == []
    tree = {
        "params": {"w": leaf(P("data", "model"), 8, 8)},
        "opt_state": {"nu": {"w": leaf(P("data", "model", None), 8, 8, 1)}},
    }
    assert notes(tree) == []


def test_a_state_on_one_device_differs_from_a_sharded_parameter():
    mesh = ad.make_mesh((4, 2), ("data", "model"), axis_types="auto")
    w = ad.device_put(np.zeros((8, 8)), ad.NamedSharding(mesh, P("data", "model")))
    found = audit.shardings({"params": {"w": w}, "opt_state": {"mu": {"w": ad.device_put(np.zeros((8, 8)))}}})
    assert [each.kind for each in found.notes] == ["optimizer state"]
