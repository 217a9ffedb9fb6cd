# SPDX-License-Identifier: Apache-2.0
"""Files of shardings: MaxText's three, the JSON of this package, and what is refused."""

import gzip
import json
import os

import pytest
from artifex_devices import P, audit

AXES = {"stage": 1, "fsdp": 4, "tensor": 2}
MAXTEXT_MESH = {"axis_names": list(AXES), "shape": AXES}


def written(folder, content, name="shardings.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def named(spec, shape, mesh=None):
    return {"mesh": mesh or MAXTEXT_MESH, "partition_spec": spec, "shape": shape}


NAMED = {
    ".step": named([], []),
    ".params/['params']/['w']": named([["fsdp", ["tensor"]], None], [16, 3]),
    ".params/['params']/['norm']": named(["stage"], [8]),
    ".unknown": named(None, None),
}


def test_named_shardings_have_mesh_spec_and_shape_and_no_bytes(tmp_path):
    found = audit.shardings(written(tmp_path, NAMED))
    assert [(leaf.path, leaf.shape, leaf.spec, leaf.replicas) for leaf in found.leaves] == [
        (".step", (), P(), 8),
        (".params/['params']/['w']", (16, 3), P(("fsdp", "tensor"), None), 1),
        (".params/['params']/['norm']", (8,), P("stage"), 8),
        (".unknown", None, None, None),
    ]
    assert {(leaf.dtype, leaf.device_bytes, leaf.total_bytes) for leaf in found.leaves} == {(None, None, None)}
    assert [leaf.mesh for leaf in found.leaves] == [AXES] * 4
    assert found == audit.load(tmp_path / "shardings.json") == audit.shardings(NAMED)


def test_sizes_of_axes_may_be_a_list_in_the_order_of_their_names(tmp_path):
    mesh = {"axis_names": ["fsdp", "tensor"], "shape": [4, 2]}
    (leaf,) = audit.shardings(written(tmp_path, {"w": {**named(["fsdp"], [8], mesh), "dtype": "bfloat16"}})).leaves
    assert (list(leaf.mesh.items()), leaf.device_bytes) == ([("fsdp", 4), ("tensor", 2)], 4)


def test_logical_shardings_have_names_in_place_of_axes(tmp_path):
    rows = {
        "w": {"partition_spec": ["embed", "mlp", None], "shape": [8, 4, 2]},
        "s": {"partition_spec": ["embed", "embed"], "shape": [8, 8]},
    }
    first, second = audit.shardings(written(tmp_path, rows)).leaves
    assert (first.spec, first.mesh, first.device_bytes, first.replicas) == (P("embed", "mlp", None), {}, None, None)
    assert second.spec == P("embed", "embed")
    assert audit.shardings(written(tmp_path, rows)).notes == ()


def activation(text, spec, logical="Unknown"):
    return {text: {"logic_axes": logical, "PartitionSpec": spec}}


def test_input_shardings_have_dtypes_and_both_kinds_of_axes(tmp_path):
    rows = [
        activation("decoder/inputs: bfloat16[8,2048]", "P(('fsdp', 'tensor'), None)", "('batch', None)"),
        activation("attention_op/arr: int8[1,4,4]", "P(None, None)"),
        activation("attention_op/arr: bool[]", "P()", "None"),
        activation("moe/x: bf16[8@(fsdp, tensor),b]{V:fsdp}", "PartitionSpec('fsdp', unreduced={'tensor'})"),
        activation("logits: float32<host>[4]", "P(UNCONSTRAINED,)", "('a', ('b', 'c'))"),
        activation("keys", "Unknown"),
    ]
    path = written(tmp_path, {"Activation Sharding Dump": rows})
    found = [(leaf.path, leaf.dtype, leaf.shape, leaf.spec, leaf.logical) for leaf in audit.shardings(path).leaves]
    assert found == [
        ("decoder/inputs", "bfloat16", (8, 2048), P(("fsdp", "tensor"), None), P("batch", None)),
        ("attention_op/arr", "int8", (1, 4, 4), P(None, None), None),
        ("attention_op/arr", "bool", (), P(), None),
        ("moe/x", "bfloat16", None, P("fsdp"), None),
        ("logits", "float32", (4,), P(P.UNCONSTRAINED), P("a", ("b", "c"))),
        ("keys", None, None, None, None),
    ]
    first, second = audit.shardings(path).leaves[:2]
    assert (first.device_bytes, first.total_bytes, second.device_bytes) == (None, 8 * 2048 * 2, 16)
    assert audit.shardings(path, mesh=AXES).leaves[0].device_bytes == 2048 * 2
    assert audit.shardings(written(tmp_path, rows)).leaves == audit.shardings(path).leaves


def test_the_json_of_this_package_has_a_line_for_each_leaf_sorted_by_path(tmp_path):
    mesh = {"data": 4}
    tree = {"w10": (P("data", None), (8, 3)), "w9": (P(("data",)), (4,)), "b": (P(P.UNCONSTRAINED), (4,))}
    found = audit.shardings(tree, mesh=mesh)
    audit.save(found, tmp_path / "w.json")
    assert (tmp_path / "w.json").read_text() == (
        '{\n"format": "artifex_devices/shardings/1",\n"meshes": [{"data": 4}],\n"leaves": [\n'
        '{"path": "[\'b\']", "shape": [4], "spec": ["UNCONSTRAINED"], "mesh": 0},\n'
        '{"path": "[\'w9\']", "shape": [4], "spec": ["data"], "mesh": 0},\n'
        '{"path": "[\'w10\']", "shape": [8, 3], "spec": ["data", null], "mesh": 0}\n]\n}\n'
    )
    assert sorted(audit.load(tmp_path / "w.json").leaves, key=repr) == sorted(found.leaves, key=repr)
    (tmp_path / "w.json.gz").write_bytes(gzip.compress((tmp_path / "w.json").read_bytes()))
    assert audit.load(tmp_path / "w.json.gz") == audit.load(tmp_path / "w.json")


def test_an_empty_tree_is_stored_too(tmp_path):
    audit.save(audit.Shardings(()), tmp_path / "w.json")
    assert audit.load(tmp_path / "w.json").leaves == ()


DEEP = '{"a":' * 100_000
OWN = '{"format": "artifex_devices/shardings/1", "meshes": [{"x": 2}], "leaves": [%s]}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "is not JSON"),
        (json.dumps(NAMED)[:-40], "is not JSON"),
        (DEEP, "nested too deep"),
        ('{"dump": [{"x: float32[8]": {"PartitionSpec": "P()"}}], "other": "text"}', "'other' is 'text'"),
        ('{"dump": [{"x: float32[8]": {"PartitionSpec": "P()"}}], "other": [1]}', "'other' is [1]"),
        (
            '{"dump": [{"x: float32[8]": {"PartitionSpec": "P()"}}], "other": {"shape": [8]}}',
            "'other' is {'shape': [8]}",
        ),
        ("[" * 200_000, "nested too deep"),
        ('{"a": ' + "9" * 10_000 + "}", "is not JSON"),
        ("\x00\x01\x02", "is not JSON"),
        ("3", "it has a int in place of an object"),
        ("{}", "it has the keys []"),
        ('{"a": {"shape": [3]}}', "it has the keys ['a']"),
        ('{"format": "artifex_devices/plan/1"}', "the format 'artifex_devices/plan/1'"),
        (json.dumps({"w": named([], [float("nan")])}), "'w' has the shape [nan]"),
        (json.dumps({"w": named([], [-1])}), "'w' has the shape [-1]"),
        (json.dumps({"w": named([], [2**63])}), "'w' has the shape [9223372036854775808]"),
        (json.dumps({"w": named([], [True])}), "'w' has the shape [True]"),
        (json.dumps({"w": named([], ["b"])}), "'w' has the shape ['b']"),
        (json.dumps({"w": named([], [1] * 65)}), "'w' has the shape"),
        (json.dumps({"w": named([3], [4])}), "'w' has the spec [3]"),
        (json.dumps({"w": named("3 + 4", [4])}), "'w' has the spec '3 + 4'"),
        (json.dumps({"w": named("P(" + "(" * 3000, [4])}), "'w' has the spec 'P((("),
        (json.dumps({"w": named(["tensro"], [4])}), "axis 'tensro' (did you mean tensor?)"),
        (json.dumps({"\x1b[2Jw": named(["\x1b]0;"], [4])}), r"of '\x1b[2Jw' has the axis '\x1b]0;'"),
        (json.dumps({"w": named([], [], {"axis_names": ["x"], "shape": {"x": 0}})}), "'w' has the mesh"),
        (json.dumps({"w": named([], [], {"axis_names": ["x"], "shape": {"x": float("nan")}})}), "'w' has the mesh"),
        (json.dumps({"w": named([], [], {"axis_names": ["x", "y"], "shape": [2]})}), "'w' has the mesh"),
        (json.dumps({"w": named([], [], {"x": 2**40, "y": 2**40})}), "'w' has the mesh"),
        (json.dumps({"w": {**named([], []), "dtype": 3}}), "'w' has the dtype 3"),
        (OWN % '{"path": 3}', "a leaf is {'path': 3}"),
        (OWN % '{"path": "w", "mesh": 1}', "'w' has the mesh 1"),
        (OWN % '{"path": "w", "replicas": "many"}', "'w' has the replicas 'many'"),
        ('{"format": "artifex_devices/shardings/1"}', "no lists of meshes and leaves"),
    ],
)
def test_other_files_are_refused_with_what_is_expected(tmp_path, content, problem):
    with pytest.raises(ValueError, match="; expected ") as caught:
        audit.shardings(written(tmp_path, content))
    text = str(caught.value)
    assert problem in text
    assert text.startswith("audit.shardings: ")
    assert text.isprintable()
    assert len(text) < 1000


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot be read \(No such file or directory\); expected a JSON file"):
        audit.load(tmp_path / "none.json")
    with pytest.raises(IsADirectoryError, match="expected a JSON file"):
        audit.load(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ValueError, match="is not a regular file; expected"):
        audit.load(tmp_path / "pipe.json")
    written(tmp_path, "").write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(ValueError, match="ended before"):
        audit.load(tmp_path / "shardings.json")
