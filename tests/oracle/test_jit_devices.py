# SPDX-License-Identifier: Apache-2.0
"""jit's devices, smap, specs of None and AbstractMesh in shard_map, and pmap's moves are JAX's."""

import artifex_devices as ad
import numpy as np
import pytest
from both import OURS, assert_agree, jax, shards_of

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def top(library):
    return ad if library is OURS else jax


def over(library, devices=slice(None), entries=("x",)):
    mesh = library.Mesh(np.array(library.devices[devices]), ("x",))
    return library.NamedSharding(mesh, library.P(*entries))


PLACES = {
    "host": lambda library: X,
    "uncommitted": lambda library: library.device_put(X),
    "third": lambda library: library.device_put(X, library.devices[3]),
    "rows": lambda library: library.device_put(X, over(library)),
    "rows backwards": lambda library: library.device_put(X, over(library, slice(None, None, -1))),
    "rows of half": lambda library: library.device_put(X, over(library, slice(4))),
    "whole": lambda library: library.device_put(X, over(library, entries=())),
}


def facts(library, result):
    leaves = library.tree_util.tree_leaves(result)
    return [(np.asarray(x), x.committed, [device.id for device in x.sharding._device_assignment]) for x in leaves]


@pytest.mark.parametrize("first", PLACES)
@pytest.mark.parametrize("second", PLACES)
def test_devices_of_results(first, second):
    def ask(library):
        made = top(library).jit(lambda a, b: (a, b, 5))(PLACES[first](library), PLACES[second](library))
        return facts(library, made)

    assert_agree(ask)


@pytest.mark.parametrize("place", PLACES)
def test_devices_under_set_mesh(place):
    for devices in (slice(None), slice(4), slice(None, None, -1)):

        def ask(library, devices=devices):
            given = PLACES[place](library)
            with top(library).set_mesh(over(library, devices).mesh):
                return facts(library, top(library).jit(lambda a: (a, 5))(given))

        assert_agree(ask)


SHARDINGS = {
    "in": lambda library: {"in_shardings": over(library)},
    "in half": lambda library: {"in_shardings": over(library, slice(4))},
    "out": lambda library: {"out_shardings": over(library)},
    "one out": lambda library: {"out_shardings": (None, over(library))},
    "in and other out": lambda library: {"in_shardings": over(library), "out_shardings": over(library, slice(4))},
    "device": lambda library: {"device": library.devices[2]},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SHARDINGS)
@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
def test_devices_of_shardings(name, place):
    def ask(library):
        options = SHARDINGS[name](library)
        return facts(library, top(library).jit(lambda a: (a + 1, a), **options)(PLACES[place](library)))

    assert_agree(ask)


GUARDED = {
    "host": lambda library, x: top(library).jit(lambda a: a)(X),
    "in_shardings": lambda library, x: top(library).jit(lambda a: a, in_shardings=over(library))(x),
    "out_shardings": lambda library, x: top(library).jit(lambda a: a, in_shardings=over(library))(X),
    "pmap of the host": lambda library, x: top(library).pmap(lambda a: a)(X),
    "pmap": lambda library, x: top(library).pmap(lambda a: a)(x),
}


@pytest.mark.parametrize("name", GUARDED)
def test_placements_are_guarded(name):
    def ask(library):
        x = library.device_put(X)
        with top(library).transfer_guard("disallow"):
            return facts(library, GUARDED[name](library, x))

    assert assert_agree(ask) is None


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable:UserWarning")
def test_an_array_donated_twice():
    for arguments in ((0,), (0, 1)):

        def ask(library, arguments=arguments):
            x = library.device_put(np.arange(4.0))
            return np.asarray(top(library).jit(lambda a, b: a + b, donate_argnums=arguments)(x, x))

        assert assert_agree(ask) is None


def test_none_passes_anything():
    class Model:
        scale = 3

    for given in (Model(), "text", {"k": Model()}):

        def ask(library, given=given):
            seen = []
            mapped = top(library).shard_map(
                lambda a, b: seen.append(b) or a,
                mesh=over(library).mesh,
                in_specs=(library.P("x"), None),
                out_specs=library.P("x"),
            )
            return facts(library, mapped(X, given)), seen[0] == given

        assert assert_agree(ask) is not None


def test_an_abstract_mesh_and_its_arguments():
    def ask(library, places):
        mesh = over(library).mesh.abstract_mesh
        spec = library.P("x")
        mapped = top(library).shard_map(lambda a, b: a + b, mesh=mesh, in_specs=spec, out_specs=spec)
        return facts(library, mapped(*[PLACES[place](library) for place in places]))

    assert assert_agree(lambda library: ask(library, ("rows", "rows"))) is not None
    assert assert_agree(lambda library: ask(library, ("rows", "host"))) is not None
    assert assert_agree(lambda library: ask(library, ("rows backwards", "rows backwards"))) is not None
    assert assert_agree(lambda library: ask(library, ("rows", "rows backwards"))) is None
    assert assert_agree(lambda library: ask(library, ("host", "host"))) is None


@pytest.mark.parametrize("place", ["rows", "rows backwards", "whole"])
def test_pmap_of_committed_rows(place):
    def ask(library):
        made = top(library).pmap(lambda a: a * 2)(PLACES[place](library))
        return np.asarray(made), shards_of(made)

    assert_agree(ask)


SMAPS = {
    "rows": ({"in_axes": 0, "out_axes": 0, "axis_name": "x"}, lambda m: lambda a: a + 1),
    "columns": ({"in_axes": 1, "out_axes": 1, "axis_name": "y"}, lambda m: lambda a: a + 1),
    "sum": ({"in_axes": 0, "out_axes": None, "axis_name": "x"}, lambda m: lambda a: m.lax.psum(a, "x")),
    "whole": ({"in_axes": None, "out_axes": 0, "axis_name": "y"}, lambda m: lambda a: a),
    "tuple": ({"in_axes": (0,), "out_axes": 0, "axis_name": "x"}, lambda m: lambda a: a),
    "tree": ({"in_axes": 0, "out_axes": {"k": 0, "j": 1}, "axis_name": "x"}, lambda m: lambda a: {"k": a, "j": a}),
    "list": ({"in_axes": [0], "out_axes": 0, "axis_name": "x"}, lambda m: lambda a: a),
    "float": ({"in_axes": 0.5, "out_axes": 0, "axis_name": "x"}, lambda m: lambda a: a),
    "text": ({"in_axes": 0, "out_axes": "a", "axis_name": "x"}, lambda m: lambda a: a),
    "two names": ({"in_axes": 0, "out_axes": 0, "axis_name": ("x", "y")}, lambda m: lambda a: a),
    "unknown": ({"in_axes": 0, "out_axes": 0, "axis_name": "q"}, lambda m: lambda a: a),
    "inferred on Auto": ({"out_axes": 0, "axis_name": "x"}, lambda m: lambda a: a),
    "no out_axes": ({"in_axes": 0, "axis_name": "x"}, lambda m: lambda a: a),
}


@pytest.mark.parametrize("name", SMAPS)
def test_smap(name):
    options, body = SMAPS[name]

    def ask(library):
        mesh = library.Mesh(np.array(library.devices).reshape(2, 4), ("x", "y"))
        with top(library).set_mesh(mesh):
            made = top(library).smap(body(top(library)), **options)(X)
        leaves = library.tree_util.tree_leaves(made)
        return [(np.asarray(leaf), leaf.sharding.spec, shards_of(leaf)) for leaf in leaves]

    assert_agree(ask)


def test_smap_without_a_mesh():
    def ask(library):
        return np.asarray(top(library).smap(lambda a: a, in_axes=0, out_axes=0, axis_name="x")(X))

    assert assert_agree(ask) is None


CONTEXTS = {
    "same": lambda library: over(library, slice(4)).mesh,
    "other devices": lambda library: over(library, slice(4, 8)).mesh,
    "more devices": lambda library: over(library).mesh,
    "backwards": lambda library: library.Mesh(np.array(library.devices[3::-1]), ("x",)),
    "other names": lambda library: library.Mesh(np.array(library.devices[:4]), ("q",)),
    "another axis": lambda library: library.Mesh(np.array(library.devices[:4]).reshape(4, 1), ("x", "y")),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("place", ["host", "uncommitted", "rows of half"])
def test_the_mesh_of_shard_map_beside_that_of_its_context(context, place):
    for given in ("mesh", "abstract mesh"):
        for enter in ("set_mesh", "use_abstract_mesh"):

            def ask(library, given=given, enter=enter):
                mesh, other = over(library, slice(4)).mesh, CONTEXTS[context](library)
                x, spec = PLACES[place](library), library.P("x")
                passed = mesh if given == "mesh" else mesh.abstract_mesh
                mapped = top(library).shard_map(lambda a: a + 1, mesh=passed, in_specs=spec, out_specs=spec)
                if enter == "set_mesh":
                    with top(library).set_mesh(other):
                        return facts(library, mapped(x))
                with top(library).sharding.use_abstract_mesh(other.abstract_mesh):
                    return facts(library, mapped(x))

            assert_agree(ask)


def test_an_empty_mesh():
    def ask(library):
        mesh, spec = library.Mesh(np.empty((), object), ()), library.P()
        return facts(library, top(library).shard_map(lambda a: a, mesh=mesh, in_specs=spec, out_specs=spec)(X))

    assert assert_agree(ask) is None


TARGETS = {
    "same": lambda library: over(library, slice(4)),
    "columns": lambda library: over(library, slice(4), (None, "x")),
    "other devices": lambda library: over(library, slice(4, 8)),
    "more devices": lambda library: over(library),
    "one device": lambda library: library.SingleDeviceSharding(library.devices[5]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("place", ["rows of half", "third"])
def test_placements_that_a_function_chooses(target, place):
    for name in ("device_put", "with_sharding_constraint"):

        def ask(library, name=name):
            put = library.device_put if name == "device_put" else top(library).lax.with_sharding_constraint
            made = top(library).jit(lambda a: {"a": a, "b": put(a, TARGETS[target](library))})(PLACES[place](library))
            return facts(library, made)

        assert_agree(ask)


def test_a_list_of_in_shardings():
    for shardings in (lambda lib: [over(lib), over(lib)], lambda lib: [over(lib)], lambda lib: [None, [over(lib)] * 2]):

        def ask(library, shardings=shardings):
            return facts(library, top(library).jit(lambda a, b: (a, b), in_shardings=shardings(library))(X, [X, X]))

        assert_agree(ask)
