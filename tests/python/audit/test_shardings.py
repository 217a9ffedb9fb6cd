# SPDX-License-Identifier: Apache-2.0
"""audit.shardings of trees: what is read of arrays, shardings, specs and stand-ins for values of JAX and torch."""

import dataclasses
import pickle
from collections import OrderedDict
from types import SimpleNamespace

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import P, audit

MESH = {"data": 4, "model": 2}


def mesh():
    return ad.make_mesh((4, 2), ("data", "model"), axis_types="auto")


def only(tree, *shapes, **options):
    (leaf,) = audit.shardings(tree, *shapes, **options).leaves
    return leaf


def test_an_array_is_read_with_its_bytes_on_each_device():
    x = ad.device_put(np.zeros((8, 6), np.float32), ad.NamedSharding(mesh(), P("data", "model")))
    assert only({"w": x}) == audit.LeafSharding(
        "['w']", (8, 6), "float32", MESH, P("data", "model"), 2 * 3 * 4, 8 * 6 * 4, 1
    )


def test_an_array_of_one_device_has_one_replica_and_no_mesh():
    assert only(ad.device_put(np.zeros(3))) == audit.LeafSharding("", (3,), "float64", {}, P(), 24, 24, 1)


@pytest.mark.parametrize(
    ("spec", "device_bytes", "replicas"),
    [
        (P(), 160, 8),
        (P("model"), 80, 4),
        (P(None, "data"), 2 * 8 * 3, 2),  # 10 columns in shards of 3
        (P(("data", "model")), 20, 1),
        (P(("model", "data"), None), 20, 1),
        (P(P.UNCONSTRAINED), None, None),
    ],
)
def test_bytes_and_replicas_follow_from_the_spec(spec, device_bytes, replicas):
    leaf = only((spec, ad.ShapeDtypeStruct((8, 10), ml_dtypes.bfloat16)), mesh=MESH)
    assert (leaf.device_bytes, leaf.total_bytes, leaf.replicas) == (device_bytes, 160, replicas)


def test_a_pair_of_a_sharding_and_a_shape_is_one_leaf_in_either_order():
    sharding = ad.NamedSharding(mesh(), P("data"))
    for pair in ((sharding, (8, 2)), ((8, 2), sharding), [sharding, [8, 2]]):
        leaf = only([pair])
        assert (leaf.path, leaf.shape, leaf.spec, leaf.dtype, leaf.replicas) == ("[0]", (8, 2), P("data"), None, 2)
    assert [each.path for each in audit.shardings([sharding, sharding]).leaves] == ["[0]", "[1]"]


def test_shapes_may_be_a_second_tree():
    sharding = ad.NamedSharding(mesh(), P("data"))
    leaf = only({"w": sharding}, {"w": ad.ShapeDtypeStruct((8, 2), np.int8)})
    assert (leaf.shape, leaf.device_bytes) == ((8, 2), 4)
    assert only({"w": sharding}, {"w": (8, 2)}).shape == (8, 2)
    with pytest.raises(ValueError, match=r"shapes has no shape at \"\['w'\]\"; expected a tree of the same structure"):
        audit.shardings({"w": sharding}, {"v": (8, 2)})


def test_packed_dtypes_and_keys_have_bytes_and_foreign_types_do_not():
    def bytes_of(name):
        return only((P(), SimpleNamespace(shape=(3,), dtype=name)), mesh={"x": 1}).total_bytes

    assert [bytes_of(name) for name in ("int4", "float8_e4m3fn", "bool", "key<fry>", "bf16")] == [2, 3, 3, 24, 6]
    assert [bytes_of(name) for name in ("float7", "S10", "object", "V4", "str_", "datetime64")] == [None] * 6


@dataclasses.dataclass
class Foreign:
    """A container that no registry knows."""

    params: dict
    note: object = None


def test_containers_are_opened_by_their_attributes():
    w = (P("data"), (8,))
    module = SimpleNamespace(named_parameters=lambda: iter([("layers.0.w", tensor((8,)))]))
    optimizer = SimpleNamespace(state_dict=lambda: {"state": {0: {"m": tensor((8,))}, "x": 3}})
    tree = Foreign({"b": w, "a": [w]}, OrderedDict(z=w, y={"module": module, "optimizer": optimizer, 0: w}))
    assert [leaf.path for leaf in audit.shardings(tree, mesh=MESH).leaves] == [
        ".params['a'][0]",
        ".params['b']",
        ".note['z']",
        ".note['y']['module']['layers.0.w']",
        ".note['y']['optimizer']['state'][0]['m']",
        ".note['y'][0]",
    ]


def tensor(shape, placements=(), names=("dp", "tp"), sizes=(2, 2), dtype="torch.float32"):
    mesh = SimpleNamespace(shape=sizes, mesh_dim_names=names)
    return SimpleNamespace(
        shape=shape, dtype=dtype, device_mesh=mesh, placements=placements or (Replicate(), Replicate())
    )


class Replicate:
    """As torch's: it has no dim."""


def shard(dim):
    return SimpleNamespace(dim=dim)


def test_placements_of_a_tensor_become_a_spec():
    leaf = only(tensor((8, 6), (shard(0), shard(0))))
    assert (leaf.dtype, leaf.mesh, leaf.spec, leaf.device_bytes) == ("float32", {"dp": 2, "tp": 2}, P(("dp", "tp")), 48)
    assert only(tensor((8, 6), (Replicate(), shard(1)))).spec == P(None, "tp")
    assert only(tensor((8, 6), (shard(1), shard(0)))).spec == P("tp", "dp")
    assert only(tensor((8, 6), names=None)).mesh == {"dim_0": 2, "dim_1": 2}


def test_a_strided_shard_lies_inside_the_shards_of_later_axes():
    strided = SimpleNamespace(dim=0, split_factor=2)
    assert only(tensor((8, 6), (strided, shard(0)))).spec == P(("tp", "dp"))


class Box:
    """As a variable of Flax: it passes on the attributes of its value."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        return getattr(self.value, name)


def test_a_box_of_an_array_is_the_array():
    x = ad.device_put(np.zeros((8, 6), np.float32), ad.NamedSharding(mesh(), P("data")))
    assert only({"w": Box(x)}).spec == P("data")


class Halved:
    """A sharding that has shard shapes only."""

    device_set = frozenset(range(4))
    is_fully_replicated = False

    @staticmethod
    def shard_shape(shape):
        return shape[0] // 2, *shape[1:]


def test_a_sharding_without_a_mesh_is_read_by_its_shard_shape():
    leaf = only((Halved(), ad.ShapeDtypeStruct((8, 2), np.float32)))
    assert (leaf.spec, leaf.device_bytes, leaf.total_bytes, leaf.replicas) == (None, 32, 64, 2)
    again = audit.Shardings.from_json(audit.Shardings((leaf,)).to_json())
    assert again.leaves == (leaf,)


def test_numbers_are_skipped_and_other_values_named():
    found = audit.shardings({"a": np.zeros(3), "lr": 0.1, "f": len, "name": "adam", "none": None})
    assert [leaf.path for leaf in found.leaves] == ["['a']"]
    assert found.leaves[0].spec is None
    assert found.skipped == ("['f'] (builtin_function_or_method)",)


def test_totals_and_the_largest_leaf():
    tree = {"a": (P("data"), ad.ShapeDtypeStruct((8,), np.float32)), "b": (P(), ad.ShapeDtypeStruct((4,), np.float32))}
    found = audit.shardings(tree, mesh=MESH)
    assert (found.total_bytes, found.device_bytes, found.largest.path) == (48, 8 + 16, "['b']")


def test_a_spec_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"spec P\('date',\) .* axis 'date' \(did you mean data\?\); expected axes"):
        audit.shardings((P("date"), (8,)), mesh=MESH)
    with pytest.raises(ValueError, match=r"has 2 entries; expected at most 1, for \(8,\)"):
        audit.shardings((P("data", "model"), (8,)), mesh=MESH)
    with pytest.raises(ValueError, match="has the axis 'data' twice; expected each axis once"):
        audit.shardings((P("data", "data"), (8, 8)), mesh=MESH)


def test_a_tree_that_contains_itself_is_refused():
    tree = []
    tree.append(tree)
    with pytest.raises(RecursionError, match="expected at most 1000 levels"):
        audit.shardings(tree)


def test_the_text_has_the_largest_leaves_first_and_no_control_characters():
    tree = {f"w{i}": (P("data"), ad.ShapeDtypeStruct((8, i + 1), np.float32)) for i in range(40)}
    tree["\x1b[2J"] = (P(), ad.ShapeDtypeStruct((2,), np.float32))
    text = str(audit.shardings(tree, mesh=MESH))
    lines = text.splitlines()
    assert lines[0] == "41 leaves, 6.4 KiB on each device of 25.6 KiB in all"
    assert lines[1] == "mesh data 4, model 2"
    assert lines[3].split() == ["320", "bytes", "2", "(8,40)", "float32", "P('data')", "['w39']"]
    assert "  and 11 smaller leaves" in lines
    assert "\x1b" not in text + audit.shardings(tree, mesh=MESH)._repr_html_()
    assert all(len(line) <= 60 for line in f"{audit.shardings(tree, mesh=MESH):60}".splitlines())


def test_shardings_and_their_parts_can_be_pickled():
    found = audit.shardings({"w": (P("data"), (8, 2))}, mesh=MESH)
    assert pickle.loads(pickle.dumps(found)) == found
