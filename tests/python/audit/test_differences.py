# SPDX-License-Identifier: Apache-2.0
"""audit.diff of shardings and of programs."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, audit

MESH = {"data": 4, "model": 2}


def table(mesh=MESH, **leaves):
    tree = {name: (spec, ad.ShapeDtypeStruct(shape, np.float32)) for name, (spec, *shape) in leaves.items()}
    return audit.shardings(tree, mesh=mesh)


def lines(before, after):
    return str(audit.diff(before, after)).splitlines()


def test_equal_trees_do_not_differ():
    before = table(w=(P("data"), 8, 8))
    assert not audit.diff(before, table(w=(P(("data",), None), 8, 8)))
    assert lines(before, before) == ["no difference"]


def test_leaves_that_appeared_vanished_or_changed_come_by_bytes():
    before = table(a=(P("data"), 8, 8), b=(P(), 4), c=(P(), 1024), d=(P(), 4))
    after = table(a=(P(), 8, 8), c=(P(), 1024), d=(P(), 4, 2), e=(P("model"), 8, 256))
    found = audit.diff(before, after)
    assert lines(before, after) == [
        "+ ['e']: float32, (8, 256), P('model'), 4.0 KiB on each device",
        "~ ['a']: P('data') -> P(), 64 bytes -> 256 bytes on each device",
        "~ ['d']: shape (4,) -> (4, 2), 16 bytes -> 32 bytes on each device",
        "- ['b']: float32, (4,), P(), 16 bytes on each device",
    ]
    assert [each.name for each in found.appeared] == ["['e']"]
    assert [each.name for each in found.vanished] == ["['b']"]
    assert [(each.name, each.bytes) for each in found.changed] == [("['a']", 256), ("['d']", 32)]
    assert repr(found) == "<Difference: 1 appeared, 1 vanished, 2 changed>"


def test_another_mesh_changes_every_leaf():
    before, after = table(w=(P("data"), 8)), table({"data": 2, "model": 4}, w=(P("data"), 8))
    assert lines(before, after) == [
        "~ ['w']: mesh data 4, model 2 -> data 2, model 4, 8 bytes -> 16 bytes on each device"
    ]


def test_paths_with_and_without_slashes_are_equal_and_unknown_values_are_not_compared():
    mesh = {"axis_names": ["data"], "shape": {"data": 4}}
    file = {".params/['w']/[0]": {"mesh": mesh, "partition_spec": ["data"], "shape": [8]}}
    leaf = audit.LeafSharding(".params['w'][0]", (8,), "float32", {"data": 4}, P("data"), 8, 32, 1)
    assert not audit.diff(audit.shardings(file), audit.Shardings((leaf,)))


def test_several_leaves_of_one_path_are_paired_equal_ones_first():
    def shapes(*sizes):
        return audit.Shardings(
            tuple(audit.LeafSharding("x", (size,), None, {}, P(), None, None, None) for size in sizes)
        )

    assert lines(shapes(1, 2, 3), shapes(2, 3)) == ["- x: (1,), P()"]
    assert lines(shapes(1, 2), shapes(2, 5)) == ["~ x: shape (1,) -> (5,)"]
    assert audit.diff(shapes(*range(20_000)), shapes(*range(20_000), 7)).changes[0].kind == "appeared"


def test_logical_axes_are_compared():
    def leaf(logical):
        return audit.Shardings((audit.LeafSharding("x", (8,), None, {}, P("data"), None, None, None, logical),))

    assert lines(leaf(P("batch")), leaf(P("length"))) == ["~ x: logical axes P('batch',) -> P('length',)"]


def test_a_long_difference_is_cut():
    before = table(**{f"w{i}": (P(), 8, i + 1) for i in range(30)})
    assert lines(before, audit.Shardings(()))[-1] == "and 10 more"


def collective(kind="all_gather", axes=("data",), size=448, runs=1, line=12, **more):
    return audit.Collective(
        "c.1", kind, ("float32",), ((4,),), size, axes=axes, runs=runs, file="/x/train.py", line=line, **more
    )


def program(*collectives):
    return audit.Program("HLO text", "step", 8, "cpu", True, (("data", 8),), collectives)


def test_names_order_and_lines_of_collectives_do_not_matter():
    first, second = collective(), collective("all_reduce", size=896)
    assert not audit.diff(program(first, second), program(second, collective(line=99)))


def test_numbers_of_collectives_are_compared_with_their_lines():
    one = collective("all_reduce", size=896, runs=32)
    before = program(collective(), collective(), one, collective("all_to_all", None, None, None))
    after = program(collective(), collective("all_reduce", size=1792, runs=32), collective("reduce_scatter", line=7))
    assert lines(before, after) == [
        "~ all_reduce over data: 1 of float32, 896 bytes, 32 times -> 1 of float32, 1.8 KiB, 32 times at train.py:12",
        "~ all_gather over data: 2 of float32, 448 bytes, 1 time -> 1 of float32, 448 bytes, 1 time at train.py:12",
        "+ reduce_scatter over data: 1 of float32, 448 bytes, 1 time at train.py:7",
        "- all_to_all over unknown: 1 of float32, unknown bytes, unknown times at train.py:12",
    ]


def test_a_tree_and_a_program_are_not_compared():
    with pytest.raises(TypeError, match="one is shardings, the other a program; expected two of the same kind"):
        audit.diff(table(w=(P(), 8)), program())


def test_a_difference_is_a_table_in_notebooks():
    html = audit.diff(table(w=(P("data"), 8)), table(w=(P(), 8)))._repr_html_()
    assert "1 difference" in html
    assert "P(&#x27;data&#x27;) -&gt; P()" in html
