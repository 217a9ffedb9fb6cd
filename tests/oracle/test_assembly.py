# SPDX-License-Identifier: Apache-2.0
"""Assembled arrays, scopes of meshes, constraints and shapes without data agree with JAX."""

import importlib

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import MeshLayout, arrays
from both import JAX, OURS, assert_agree, jax, mesh_of, sharded_shapes, sharding_of, shards_of
from hypothesis import assume, given
from hypothesis import strategies as st

GRID = MeshLayout(("x", "y"), (2, 4), (7, 6, 5, 4, 3, 2, 1, 0))
X = np.arange(64, dtype=np.float32).reshape(8, 8)
MODULES = {
    OURS.name: (ad, importlib.import_module("artifex_devices.layout")),
    JAX.name: (jax, importlib.import_module("jax.experimental.layout")),
}


def top(lib):
    return MODULES[lib.name][0]


def facts(array):
    return array.shape, array.dtype.name, array.committed, array.sharding.num_devices, shards_of(array)


def auto_mesh(lib):
    return mesh_of(lib, GRID)


def named(lib, *entries):
    return sharding_of(lib, GRID, entries)


@given(sharded_shapes(), st.randoms(use_true_random=False))
def test_parts_make_equal_arrays(case, random):
    layout, entries, shape = case
    value = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    order = list(range(8))
    random.shuffle(order)

    def ask(lib):
        sharding = sharding_of(lib, layout, entries)
        parts = [lib.device_put(value[index], device) for device, index in sharding.devices_indices_map(shape).items()]
        parts = [parts[i] for i in order if i < len(parts)]
        return facts(top(lib).make_array_from_single_device_arrays(shape, sharding, parts))

    assume(len(shape) >= len(entries))  # JAX: an accident of its own
    assert_agree(ask)


@given(sharded_shapes(), st.data())
def test_callbacks_are_asked_the_same_and_make_equal_arrays(case, data):
    layout, entries, shape = case
    assume(len(shape) >= len(entries))
    value = data.draw(arrays(shape))
    assume(not value.dtype.name.startswith("float6"))

    def ask(lib):
        asked = []

        def block(index):
            asked.append(index)
            return value[index]

        array = top(lib).make_array_from_callback(shape, sharding_of(lib, layout, entries), block)
        return asked, facts(array)

    assert_agree(ask)


def parts_on(lib, devices=range(8), value=X):
    return [lib.device_put(value[i : i + 1], lib.devices[i]) for i in devices]


def line(lib):
    return lib.NamedSharding(lib.Mesh(np.array(lib.devices), ("x",)), lib.P("x"))


ASSEMBLIES = {
    "too few": lambda lib: ((8, 8), line(lib), parts_on(lib)[:7]),
    "too many": lambda lib: ((8, 8), line(lib), [*parts_on(lib), lib.device_put(X[:1], lib.devices[0])]),
    "a device twice": lambda lib: ((8, 8), line(lib), parts_on(lib, [0, 1, 2, 3, 4, 5, 6, 0])),
    "an iterator": lambda lib: ((8, 8), line(lib), iter(parts_on(lib))),
    "a tuple": lambda lib: ((8, 8), line(lib), tuple(parts_on(lib))),
    "another shape": lambda lib: ((16, 8), line(lib), parts_on(lib)),
    "nothing": lambda lib: ((8, 8), line(lib), []),
    "another dtype": lambda lib: (
        (8, 8),
        line(lib),
        [*parts_on(lib)[:7], lib.device_put(X[7:].astype(int), lib.devices[7])],
    ),
    "a part on several devices": lambda lib: ((8, 8), line(lib), [lib.device_put(X, line(lib))]),
}


@pytest.mark.parametrize("name", ASSEMBLIES)
def test_errors_of_assembly_are_of_the_same_class(name):
    assert_agree(lambda lib: facts(top(lib).make_array_from_single_device_arrays(*ASSEMBLIES[name](lib))))


@pytest.mark.parametrize(
    ("dtype", "block"),
    [
        (np.float32, lambda index: X[index].astype(np.int32)),
        (np.int32, lambda index: X[index]),
        (None, lambda index: X),
        (None, lambda index: None),
        (None, lambda index: X[index].astype(np.int32 if index[0].start == 3 else np.float32)),
        (None, lambda index: 1 // 0),
        ("float32", lambda index: X[index]),
    ],
)
def test_errors_of_callbacks_are_of_the_same_class(dtype, block):
    assert_agree(lambda lib: facts(top(lib).make_array_from_callback((8, 8), line(lib), block, dtype)))


@pytest.mark.parametrize("level", ["allow", "disallow", "disallow_explicit"])
def test_guards_of_assembly(level):
    def ask(lib):
        parts = parts_on(lib)
        answers = []
        with top(lib).transfer_guard(level):
            for call in (
                lambda: top(lib).make_array_from_single_device_arrays((8, 8), line(lib), parts),
                lambda: top(lib).make_array_from_callback((8, 8), line(lib), lambda index: X[index]),
                lambda: top(lib).make_array_from_process_local_data(line(lib), X),
            ):
                try:
                    call()
                    answers.append("done")
                except RuntimeError:
                    answers.append("refused")
        return answers

    assert_agree(ask)


@pytest.mark.parametrize("shape", [None, (8, 8), (16, 8), (None, 8), (8,)], ids=repr)
def test_local_data(shape):
    assert_agree(lambda lib: facts(top(lib).make_array_from_process_local_data(line(lib), X, shape)))


# --- Shapes without data ---


def struct(lib, *args, **options):
    return top(lib).ShapeDtypeStruct(*args, **options)


STRUCTS = {
    "plain": lambda lib: struct(lib, (2, 3), np.float32),
    "list": lambda lib: struct(lib, [8], int),
    "weak": lambda lib: struct(lib, (), bool, weak_type=True),
    "sharded": lambda lib: struct(lib, (8, 8), "int8", sharding=named(lib, "x")),
    "indivisible": lambda lib: struct(lib, (7, 8), "int8", sharding=named(lib, "x")),
    "rank too low": lambda lib: struct(lib, (8,), "int8", sharding=named(lib, "x", "y")),
    "no dtype": lambda lib: struct(lib, (8,), None),
    "no shape": lambda lib: struct(lib, None, int),
    "int as shape": lambda lib: struct(lib, 8, int),
    "wrong dtype": lambda lib: struct(lib, (8,), "foo"),
    "wrong sharding": lambda lib: struct(lib, (8, 8), int, sharding=3),
    "device": lambda lib: struct(lib, (8, 8), int, sharding=lib.devices[0]),
    "abstract": lambda lib: struct(
        lib, (8, 8), int, sharding=lib.NamedSharding(lib.AbstractMesh((2,), ("x",)), lib.P("x"))
    ),
}


@pytest.mark.parametrize("name", STRUCTS)
def test_shape_dtype_structs(name):
    def ask(lib):
        made = STRUCTS[name](lib)
        parts = (made.shape, made.dtype, made.ndim, made.size, made.weak_type, made.sharding is None)
        return repr(made), str(made), parts

    assert_agree(ask)


def test_shape_dtype_structs_compare_and_stay():
    def ask(lib):
        one, same = struct(lib, (8, 8), int), struct(lib, (8, 8), "int64")
        others = [
            struct(lib, (8,), int),
            struct(lib, (8, 8), bool),
            struct(lib, (8, 8), int, sharding=named(lib, "x")),
            struct(lib, (8, 8), int, weak_type=True),
        ]
        return one == same, hash(one) == hash(same), [one == other for other in others], repr(one.update(shape=(3,)))

    assert_agree(ask)
    assert_agree(lambda lib: setattr(struct(lib, (8,), int), "shape", (3,)))
    assert_agree(lambda lib: len(struct(lib, (), int)))


@given(sharded_shapes())
def test_shard_shapes_on_abstract_meshes(case):
    layout, entries, shape = case
    assume(len(shape) >= len(entries))

    def ask(lib):
        mesh = lib.AbstractMesh(layout.axis_sizes, layout.axis_names)
        sharding = lib.NamedSharding(mesh, lib.P(*entries))
        return sharding.shard_shape(shape), sharding.num_devices, sharding.is_fully_replicated, repr(sharding)

    assert_agree(ask)


@pytest.mark.parametrize(
    "question",
    [
        lambda s, lib: s.device_set,
        lambda s, lib: s.is_fully_addressable,
        lambda s, lib: s.devices_indices_map((8, 8)),
        lambda s, lib: s.addressable_devices,
        lambda s, lib: s.memory_kind,
        lambda s, lib: lib.device_put(X, s),
        lambda s, lib: s == named(lib, "x"),
        lambda s, lib: s.is_equivalent_to(named(lib, "x"), 2),
        lambda s, lib: s.is_equivalent_to(s, 2),
        lambda s, lib: repr(s.mesh),
        lambda s, lib: repr(s.with_memory_kind("pinned_host")),
    ],
)
def test_questions_to_abstract_shardings(question):
    assert_agree(lambda lib: question(lib.NamedSharding(lib.AbstractMesh((2, 4), ("x", "y")), lib.P("x")), lib))


# --- Meshes in scope, constraints ---


def text(sharding):
    return repr(getattr(sharding, "spec", sharding))


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_specs_under_set_mesh(kind):
    def ask(lib):
        sharding = lib.make_mesh((2, 4), ("x", "y"), axis_types=(lib.AxisType[kind],) * 2)
        with top(lib).set_mesh(sharding) as nothing:
            placed = top(lib).device_put({"a": X, "b": [X]}, {"a": lib.P("x"), "b": lib.P(None, "y")})
            inside = repr(top(lib).sharding.get_mesh())
        return (
            nothing,
            inside,
            repr(top(lib).sharding.get_mesh()),
            repr(top(lib).sharding.get_abstract_mesh()),
            text(placed["a"].sharding),
            text(placed["b"][0].sharding),
            shards_of(placed["a"]),
        )

    assert_agree(ask)


def test_specs_without_a_mesh():
    assert_agree(lambda lib: top(lib).device_put(X, lib.P("x")))
    assert_agree(lambda lib: top(lib).lax.with_sharding_constraint(X, lib.P("x")))
    assert_agree(lambda lib: top(lib).sharding.reshard(X, lib.P("x")))
    for mesh in (3, "mesh"):
        assert_agree(lambda lib, mesh=mesh: top(lib).set_mesh(mesh))
        assert_agree(lambda lib, mesh=mesh: top(lib).sharding.use_abstract_mesh(mesh).__enter__())


@pytest.mark.parametrize("now", [(), ("y",), ("x", "y"), (("x", "y"),)], ids=repr)
@pytest.mark.parametrize("asked", [("x",), (None, "y"), ("*", "x"), ("x", "*"), ("*",), ("*", "*")], ids=repr)
def test_constraints(now, asked):
    def ask(lib):
        entries = [lib.P.UNCONSTRAINED if entry == "*" else entry for entry in asked]
        array = lib.device_put(X, named(lib, *now))
        moved = top(lib).lax.with_sharding_constraint(array, named(lib, *entries))
        return moved.committed, [shard[:2] for shard in shards_of(moved)], np.asarray(moved)

    assert_agree(ask)


@pytest.mark.parametrize(
    "question",
    [
        lambda lib, wsc: text(wsc([X], named(lib, "x"))[0].sharding),
        lambda lib, wsc: wsc(X, None),
        lambda lib, wsc: wsc([X, X], [named(lib, "x"), None]),
        lambda lib, wsc: wsc([X, X], [named(lib, "x")]),
        lambda lib, wsc: wsc(X, lib.devices[0]),
        lambda lib, wsc: wsc("text", named(lib, "x")),
        lambda lib, wsc: wsc(X, named(lib, "x", None, None)),
        lambda lib, wsc: wsc(X, lib.SingleDeviceSharding(lib.devices[1])).devices(),
    ],
)
def test_forms_and_errors_of_constraints(question):
    assert_agree(lambda lib: question(lib, top(lib).lax.with_sharding_constraint))


def explicit(lib, *entries):
    return lib.NamedSharding(lib.make_mesh((2, 4), ("x", "y")), lib.P(*entries))


@pytest.mark.parametrize(
    "question",
    [
        lambda lib, reshard: text(reshard(X, explicit(lib, "x")).sharding),
        lambda lib, reshard: shards_of(reshard(lib.device_put(X, explicit(lib, "y")), explicit(lib, None, "x"))),
        lambda lib, reshard: text(reshard({"a": X}, {"a": explicit(lib, "y")})["a"].sharding),
        lambda lib, reshard: reshard(X, None),
        lambda lib, reshard: reshard(X, lib.devices[0]),
        lambda lib, reshard: reshard(X, lib.SingleDeviceSharding(lib.devices[0])),
        lambda lib, reshard: reshard("text", explicit(lib)),
        lambda lib, reshard: reshard([X], [explicit(lib), explicit(lib)]),
    ],
)
def test_reshard(question):
    assert_agree(lambda lib: question(lib, top(lib).sharding.reshard))


# --- Discovery, formats ---


COUNTED = ["device_count", "local_device_count", "process_count", "process_index", "process_indices", "host_count"]


@pytest.mark.parametrize("name", ["devices", "local_devices", "host_id", *COUNTED])
@pytest.mark.parametrize("backend", [None, "cpu", "gpu", "tpu", "nothing", "CPU"])
@pytest.mark.filterwarnings("ignore:jax.process_.* has been renamed")
def test_discovery(name, backend):
    assert_agree(lambda lib: getattr(top(lib), name)(backend=backend))


@pytest.mark.parametrize("index", [0, 1, -1, "0", None])
def test_devices_of_a_process(index):
    assert_agree(lambda lib: top(lib).local_devices(process_index=index))


@pytest.mark.parametrize("platform", [None, "cpu", "gpu", "nothing"])
def test_live_arrays_by_platform(platform):
    assert_agree(lambda lib: isinstance(top(lib).live_arrays(platform), list))


@pytest.mark.parametrize(
    "question",
    [
        lambda lib, m: facts(lib.device_put(X, m.Format(m.Layout((0, 1)), named(lib, "x")))),
        lambda lib, m: lib.device_put(X, m.Format(None, named(lib, "x"))).committed,
        lambda lib, m: lib.device_put(X, m.Format()).committed,
        lambda lib, m: lib.device_put(X, m.Format(m.Layout((0,)), named(lib, "x"))),
        lambda lib, m: lib.device_put(X, m.Format(m.Layout.AUTO, named(lib, "x"))),
        lambda lib, m: lib.device_put(X, m.Layout((0, 1))),
        lambda lib, m: m.Format(m.Layout((0, 1))),
        lambda lib, m: m.Format(None, 3),
        lambda lib, m: m.Layout(3),
        lambda lib, m: m.Layout([0, 1]).major_to_minor,
        lambda lib, m: repr(m.Format(m.Layout.AUTO, named(lib, "x"))),
        lambda lib, m: m.Layout((0, 1)) == m.Layout([0, 1]),
        lambda lib, m: top(lib).device_put(X, lib.devices[0], donate=True, may_alias=True),
    ],
)
def test_formats(question):
    assert_agree(lambda lib: question(lib, MODULES[lib.name][1]))
