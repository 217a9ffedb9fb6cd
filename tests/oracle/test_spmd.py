# SPDX-License-Identifier: Apache-2.0
"""shard_map, pmap and jit's placement give what JAX gives: values, result shardings, classes of errors."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import MeshLayout
from both import JAX, OURS, assert_agree, jax, mesh_of, sharded_shapes, shards_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

EIGHT = MeshLayout(("x",), (8,), tuple(range(8)))
GRID = MeshLayout(("x", "y"), (2, 4), (7, 6, 5, 4, 3, 2, 1, 0))
X = np.arange(32, dtype=np.float32).reshape(8, 4)


def top(library):
    return ad if library is OURS else jax


def facts(library, result):
    """Values, shards and sharding of every Array of a result."""
    leaves = library.tree_util.tree_leaves(result)
    return [
        (np.asarray(leaf), leaf.sharding.spec, leaf.sharding.mesh.axis_names, leaf.committed, shards_of(leaf))
        for leaf in leaves
    ]


def shard_map_agrees(body, args=(X,), layout=GRID, explicit=False, place=None, **specs):
    """`specs` are functions of P; `body` is a function of the library's top module."""

    def ask(library):
        mesh = mesh_of(library, layout)
        if explicit:
            mesh = library.make_mesh(layout.axis_sizes, layout.axis_names)
        options = {name: make(library.P) if callable(make) else make for name, make in specs.items()}
        given = args
        if place is not None:
            given = [library.device_put(x, library.NamedSharding(mesh, place(library.P))) for x in args]
        return facts(library, top(library).shard_map(body(top(library)), mesh=mesh, **options)(*given))

    return assert_agree(ask)


@settings(max_examples=20)
@given(sharded_shapes(even=True))
def test_blocks_go_in_and_come_out(case):
    layout, entries, shape = case
    assume(all(shape))  # JAX cannot read such results
    source = np.arange(np.prod(shape)).astype(np.int32).reshape(shape)

    def ask(library):
        mesh, spec = mesh_of(library, layout), library.P(*entries)
        placed = library.device_put(source, library.NamedSharding(mesh, spec))
        mapped = top(library).shard_map(lambda a: a + 1, mesh=mesh, in_specs=spec, out_specs=spec)
        return facts(library, mapped(placed))

    assert assert_agree(ask) is not None


@settings(max_examples=20)
@given(sharded_shapes(even=True), st.data())
def test_sums_over_the_axes_that_cut(case, data):
    layout, entries, shape = case
    assume(all(shape))
    names = sorted({axis for entry in entries for axis in (entry if isinstance(entry, tuple) else (entry,))} - {None})
    source = np.arange(np.prod(shape)).astype(np.int32).reshape(shape)
    over = tuple(data.draw(st.permutations(names))) if names else ()

    def ask(library):
        mesh, spec = mesh_of(library, layout), library.P(*entries)
        lax = top(library).lax
        body = (lambda a: lax.psum(a, over)) if over else (lambda a: a)
        return facts(library, top(library).shard_map(body, mesh=mesh, in_specs=spec, out_specs=library.P())(source))

    assert assert_agree(ask) is not None


BODIES = {
    "psum": (lambda m: lambda a: m.lax.psum(a, "x"), lambda p: p("x", "y"), lambda p: p(None, "y")),
    "pmean": (lambda m: lambda a: m.lax.pmean(a, ("x", "y")), lambda p: p("x", "y"), lambda p: p()),
    "pmax": (lambda m: lambda a: m.lax.pmax(a, "y"), lambda p: p("x", "y"), lambda p: p("x")),
    "all_gather": (lambda m: lambda a: m.lax.all_gather(a, "y"), lambda p: p("x", "y"), lambda p: p("x", "y")),
    "gather tiled": (
        lambda m: lambda a: m.lax.all_gather(a, ("y", "x"), axis=1, tiled=True),
        lambda p: p("x", "y"),
        lambda p: p(("x", "y")),
    ),
    "scatter": (
        lambda m: lambda a: m.lax.psum_scatter(a, "y", tiled=True),
        lambda p: p("x"),
        lambda p: p(("x", "y")),
    ),
    "all_to_all": (
        lambda m: lambda a: m.lax.all_to_all(a, "y", 0, 1, tiled=True),
        lambda p: p("x"),
        lambda p: p("x", "y"),
    ),
    "ppermute": (
        lambda m: lambda a: m.lax.ppermute(a, "x", [(0, 1)]),
        lambda p: p("x", "y"),
        lambda p: p("x", "y"),
    ),
    "index": (
        lambda m: lambda a: a * m.lax.axis_index("y").astype(np.float32) + m.lax.axis_size(("x", "y")),
        lambda p: p("x", "y"),
        lambda p: p("x", "y"),
    ),
    "tree": (
        lambda m: lambda a: {"a": a, "b": (m.lax.psum(a, ("x", "y")), None)},
        lambda p: p("x", "y"),
        lambda p: {"a": p("x", "y"), "b": p()},
    ),
    "grow": (lambda m: lambda a: a, lambda p: p(), lambda p: p("x")),
    "stack": (lambda m: lambda a: a.sum()[None], lambda p: p(("y", "x")), lambda p: p(("y", "x"))),
    "trailing": (lambda m: lambda a: a, lambda p: p("x", None), lambda p: p("x", None)),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name):
    body, in_specs, out_specs = BODIES[name]
    assert shard_map_agrees(body, in_specs=in_specs, out_specs=out_specs) is not None


def test_unchecked_replicas_are_the_first_devices():
    # Only as a whole: in JAX each device keeps its own value in its shard, ours all have the first one's.
    for entries in ((), ("x",), (None, "y")):

        def ask(library, entries=entries):
            mesh = mesh_of(library, GRID)
            cut, out = library.P("x", "y"), library.P(*entries)
            mapped = top(library).shard_map(lambda a: a, mesh=mesh, in_specs=cut, out_specs=out, check_vma=False)
            return np.asarray(mapped(X))

        assert assert_agree(ask) is not None


def test_arguments_of_an_explicit_mesh():
    def keep(m):
        return lambda a: a

    spec = lambda p: p("x", "y")  # noqa: E731
    assert shard_map_agrees(keep, explicit=True, place=spec, in_specs=spec, out_specs=spec) is not None
    assert shard_map_agrees(keep, explicit=True, place=spec, out_specs=spec) is not None
    assert shard_map_agrees(keep, explicit=True, in_specs=lambda p: p(), out_specs=lambda p: p()) is not None
    assert shard_map_agrees(keep, explicit=True, out_specs=lambda p: p("x")) is not None
    rows = lambda p: p("x", None)  # noqa: E731
    assert shard_map_agrees(keep, explicit=True, place=lambda p: p("x"), in_specs=rows, out_specs=rows) is not None


REFUSED = {
    "unknown axis": {"in_specs": lambda p: p("z"), "out_specs": lambda p: p()},
    "unknown axis out": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("z")},
    "too long": {"in_specs": lambda p: p("x", "y", None), "out_specs": lambda p: p("x")},
    "in_specs no prefix": {"in_specs": lambda p: (p("x"), p("y")), "out_specs": lambda p: p("x")},
    "list for a tuple": {"in_specs": lambda p: [p("x")], "out_specs": lambda p: p("x")},
    "no spec": {"in_specs": "x", "out_specs": lambda p: p("x")},
    "no out spec": {"in_specs": lambda p: p("x"), "out_specs": "x"},
    "out_specs no prefix": {"in_specs": lambda p: p("x"), "out_specs": lambda p: (p("x"), p("x"))},
    "none out": {"in_specs": lambda p: p("x"), "out_specs": None},
    "out spec twice": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x", "x")},
    "not replicated": {"in_specs": lambda p: p("x", "y"), "out_specs": lambda p: p()},
    "out rank": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x", None, None)},
    "axis_names list": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x"), "axis_names": ["x"]},
    "axis_names unknown": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x"), "axis_names": {"q"}},
    "not manual": {"in_specs": lambda p: p("y"), "out_specs": lambda p: p(), "axis_names": {"x"}},
    "infer on auto": {"out_specs": lambda p: p()},
    "other on explicit": {
        "in_specs": lambda p: p("x"),
        "out_specs": lambda p: p("x"),
        "explicit": True,
        "place": lambda p: p("y"),
    },
    "indivisible": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x"), "args": (X[:3],)},
    "text": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x"), "args": ("text",)},
    "objects": {"in_specs": lambda p: p("x"), "out_specs": lambda p: p("x"), "args": (np.array([None] * 8),)},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_shard_map_refuses(name):
    assert shard_map_agrees(lambda m: lambda *a: a[0], **REFUSED[name]) is None


BAD_BODIES = {
    "text": lambda m: lambda a: "text",
    "objects": lambda m: lambda a: np.array([None]),
    "rank": lambda m: lambda a: a.sum(),
    "unbound index": lambda m: lambda a: m.lax.axis_index("q"),
    "number": lambda m: lambda a: 3,
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bodies_that_are_refused(name):
    assert shard_map_agrees(BAD_BODIES[name], in_specs=lambda p: p("x"), out_specs=lambda p: p("x")) is None


def test_committed_to_other_devices():
    def ask(library, index):
        mesh = mesh_of(library, MeshLayout(("x",), (4,), (0, 1, 2, 3)))
        mapped = top(library).shard_map(lambda a: a, mesh=mesh, in_specs=library.P("x"), out_specs=library.P("x"))
        return facts(library, mapped(library.device_put(X, library.devices[index])))

    for index in (1, 5):
        assert assert_agree(lambda library, index=index: ask(library, index)) is None


@pytest.mark.parametrize("entries", [(), ("x",)])
@pytest.mark.parametrize("committed", [True, False])
def test_devices_in_another_order(entries, committed):
    def ask(library):
        meshes = [mesh_of(library, MeshLayout(("x",), (4,), ids)) for ids in ((0, 1, 2, 3), (3, 1, 2, 0))]
        spec = library.P(*entries)
        mapped = top(library).shard_map(lambda a: a, mesh=meshes[1], in_specs=spec, out_specs=spec)
        place = [library.NamedSharding(meshes[0], spec)] if committed else []
        return facts(library, mapped(library.device_put(X, *place)))

    assert (assert_agree(ask) is None) == committed


def pmap_agrees(body, args=(X,), kwargs=None, **options):
    def ask(library):
        result = top(library).pmap(body(top(library)), **options)(*args, **(kwargs or {}))
        return facts(library, result)

    return assert_agree(ask)


PMAPS = {
    "rows": ({}, (X,), {}),
    "fewer": ({"axis_name": "i"}, (X[:3],), {}),
    "in 1": ({"axis_name": "i", "in_axes": 1}, (X,), {}),
    "out 1": ({"axis_name": "i", "out_axes": 1}, (X,), {}),
    "in none": ({"axis_name": "i", "in_axes": (0, None)}, (X, 1.5), {}),
    "dict": ({"axis_name": "i", "in_axes": ({"a": 0, "b": None},)}, ({"a": X, "b": X[0]},), {}),
    "static": ({"axis_name": "i", "static_broadcasted_argnums": 1, "in_axes": (0, None)}, (X, 3), {}),
    "named": ({"axis_name": "i"}, (X,), {"b": X}),
    "backend": ({"axis_name": "i", "backend": "cpu"}, (X,), {}),
    "axis_size": ({"axis_name": "i", "axis_size": 8}, (X,), {}),
}


@pytest.mark.parametrize("name", PMAPS)
def test_pmap(name):
    options, args, kwargs = PMAPS[name]

    def body(m):
        return lambda a, b=None: (a, b) if isinstance(b, np.ndarray | jax.Array) else a

    assert pmap_agrees(body, args, kwargs, **options) is not None


def test_pmap_takes_the_first_devices_result_for_out_axes_none():
    for body in (lambda m: lambda a: m.lax.psum(a, "i"), lambda m: lambda a: a):

        def ask(library, body=body):
            made = top(library).pmap(body(top(library)), axis_name="i", out_axes=None)(X)
            return np.asarray(made), made.sharding.spec

        assert assert_agree(ask) is not None


def test_collectives_under_pmap():
    def body(m):
        lax = m.lax
        return lambda a: {
            "psum": lax.psum(a, "i"),
            "gather": lax.all_gather(a, "i", axis=1),
            "index": lax.axis_index("i"),
            "shuffle": lax.ppermute(a, "i", [(i, (i + 1) % 8) for i in range(8)]),
            "groups": lax.psum(a, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]),
        }

    assert pmap_agrees(body, axis_name="i") is not None


BAD_PMAPS = {
    "too many": ({}, (np.zeros((9, 2)),)),
    "unequal": ({}, (X, X[:4])),
    "number": ({}, (3.0,)),
    "nothing mapped": ({"in_axes": None}, (X,)),
    "no arguments": ({}, ()),
    "length": ({"in_axes": (0,)}, (X, X)),
    "list": ({"in_axes": [0, 0]}, (X, X)),
    "no dimension": ({"in_axes": 3}, (X,)),
    "out dimension": ({"out_axes": 3}, (X,)),
    "float": ({"in_axes": 0.5}, (X,)),
    "text": ({"out_axes": "a"}, (X,)),
    "out prefix": ({"out_axes": (0, 0)}, (X,)),
    "axis_size": ({"axis_size": 4}, (X,)),
    "static number": ({"static_broadcasted_argnums": 5}, (X,)),
    "unhashable": ({"static_broadcasted_argnums": 1}, (X, [3])),
    "no rows": ({}, (np.zeros((0, 3)),)),
    "backend": ({"backend": "gpu"}, (X,)),
    "devices": ({"devices": []}, (X,)),
}


@pytest.mark.parametrize("name", BAD_PMAPS)
def test_what_pmap_refuses(name):
    options, args = BAD_PMAPS[name]
    assert pmap_agrees(lambda m: lambda *a: a[0] if a else 0, args, **options) is None


def test_arrays_committed_to_another_placement():
    for entries in ((), (None, "x")):

        def ask(library, entries=entries):
            mesh = mesh_of(library, EIGHT)
            source = np.zeros((8, 8), np.float32)
            placed = library.device_put(source, library.NamedSharding(mesh, library.P(*entries)))
            return facts(library, top(library).pmap(lambda a: a)(placed))

        assert assert_agree(ask) is None


def jit_agrees(f, args=(X,), kwargs=None, place=None, **options):
    def ask(library):
        mesh = mesh_of(library, GRID)
        made = {
            name: library.tree_util.tree_map(
                lambda entries: library.NamedSharding(mesh, library.P(*entries)), value, is_leaf=is_entries
            )
            if name.endswith("shardings")
            else value
            for name, value in options.items()
        }
        given = args
        if place is not None:
            given = [library.device_put(x, library.NamedSharding(mesh, library.P(*place))) for x in args]
        result = top(library).jit(f, **made)(*given, **(kwargs or {}))
        leaves = library.tree_util.tree_leaves(result)
        return [(np.asarray(x), x.committed, x.devices(), shards_of(x)) for x in leaves]

    return assert_agree(ask)


class Entries(tuple):
    __slots__ = ()


def is_entries(node):
    return isinstance(node, Entries)


ROWS = Entries(("x",))
COLUMNS = Entries((None, "y"))


def test_jit_places():
    assert jit_agrees(lambda a: a, in_shardings=ROWS) is not None
    assert jit_agrees(lambda a: a, out_shardings=ROWS) is not None
    assert jit_agrees(lambda a, b: (b, a), (X, X + 1), in_shardings=(ROWS, COLUMNS)) is not None
    assert jit_agrees(lambda a: {"k": [a, a]}, out_shardings={"k": [ROWS, COLUMNS]}) is not None
    assert jit_agrees(lambda a, n: a * n, (X, 3), static_argnums=1, in_shardings=(ROWS,), out_shardings=COLUMNS)
    assert jit_agrees(lambda a, n: a * n, (X,), {"n": 3}, static_argnames="n", out_shardings=ROWS) is not None
    assert jit_agrees(lambda a: a, place=ROWS, in_shardings=Entries(("x", None)), out_shardings=COLUMNS) is not None


BAD_JITS = {
    "in length": ({"in_shardings": (ROWS, ROWS)}, (X,), None),
    "out structure": ({"out_shardings": (ROWS, ROWS)}, (X,), None),
    "no sharding": ({"in_shardings": "x"}, (X,), None),
    "committed": ({"in_shardings": ROWS}, (X,), COLUMNS),
    "indivisible": ({"in_shardings": ROWS}, (X[:3],), None),
    "indivisible out": ({"out_shardings": ROWS}, (X[:3],), None),
    "number": ({"in_shardings": ROWS}, (3.0,), None),
    "static number": ({"static_argnums": 7}, (X,), None),
    "static name": ({"static_argnames": "q"}, (X,), None),
    "donated number": ({"donate_argnums": 3}, (X,), None),
    "donated name": ({"donate_argnames": "q"}, (X,), None),
    "unhashable": ({"static_argnums": 0}, ([1],), None),
    "text": ({}, ("text",), None),
    "backend": ({"backend": "gpu"}, (X,), None),
}


@pytest.mark.parametrize("name", BAD_JITS)
@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_what_jit_refuses(name):
    options, args, place = BAD_JITS[name]
    if "no sharding" in name:

        def ask(library):
            return top(library).jit(lambda a: a, **options)(*args)

        assert assert_agree(ask) is None
    else:
        assert jit_agrees(lambda a: a, args, place=place, **options) is None


def test_jit_results_that_are_not_arrays():
    for library in (OURS, JAX):
        with pytest.raises(TypeError):
            top(library).jit(lambda a: "text")(X)
        with pytest.raises(TypeError):
            top(library).jit(3)
        sharding = library.SingleDeviceSharding(library.devices[0])
        with pytest.raises(ValueError, match="in_shardings"):
            top(library).jit(lambda a: a, in_shardings=sharding)(a=X)
