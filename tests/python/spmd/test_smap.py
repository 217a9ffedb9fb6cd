# SPDX-License-Identifier: Apache-2.0
"""smap; in_specs None, AbstractMesh and check_rep of shard_map; rows that pmap moves."""

import inspect

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P
from artifex_devices.sharding import AbstractMesh

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


@pytest.fixture
def grid():
    return ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))


def line(devices):
    return ad.Mesh(np.array(devices), ("x",))


def test_smap_takes_explicit_arguments_as_they_are_sharded():
    mesh = ad.make_mesh((8,), ("x",))
    rows = ad.device_put(X, ad.NamedSharding(mesh, P("x")))
    with ad.set_mesh(mesh):
        assert ad.smap(lambda a: a + 1, out_axes=0, axis_name="x")(rows).sharding == rows.sharding


def test_smap_without_axis_name_is_shard_map(grid):
    made = ad.smap(lambda a: a, grid, P("x"), P("x"), check_rep=True)(X)
    assert made.sharding == ad.NamedSharding(grid, P("x"))
    assert inspect.signature(ad.shard_map).parameters["check_rep"].default is True
    for check in (ad.shard_map, ad.smap):
        with pytest.raises(ValueError, match="not the same everywhere"):
            check(lambda a: a, mesh=grid, in_specs=P("x"), out_specs=P())(X)
        whole = check(lambda a: a, mesh=grid, in_specs=P("x"), out_specs=P(), check_rep=False)(X)
        np.testing.assert_array_equal(np.asarray(whole), X[:4])


WRONG = {
    "list": ({"in_axes": [0], "out_axes": 0, "axis_name": "x"}, TypeError, r"in_axes is \[0\] \(list\)"),
    "float": ({"in_axes": (0.5,), "out_axes": 0, "axis_name": "x"}, TypeError, r"an entry of in_axes is 0.5 \(float\)"),
    "text": ({"in_axes": 0, "out_axes": "a", "axis_name": "x"}, TypeError, r"an entry of out_axes is 'a' \(str\)"),
    "negative": ({"in_axes": -1, "out_axes": 0, "axis_name": "x"}, ValueError, "count the dimensions from the first"),
    "two names": ({"in_axes": 0, "out_axes": 0, "axis_name": ("x", "y")}, TypeError, "the name of one axis"),
    "no out_axes": ({"in_axes": 0, "axis_name": "x"}, TypeError, "out_axes is missing"),
    "no axis_name": ({"in_axes": 0, "out_axes": 0}, TypeError, "came without axis_name"),
    "specs": ({"in_specs": P(), "out_axes": 0, "axis_name": "x"}, TypeError, "came with axis_name"),
    "unknown": ({"in_axes": 0, "out_axes": 0, "axis_name": "q"}, ValueError, "q"),
    "inferred on Auto": ({"out_axes": 0, "axis_name": "x"}, TypeError, "are Auto"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_smap_refuses(name, grid):
    options, kind, text = WRONG[name]
    with ad.set_mesh(grid), pytest.raises(kind, match=text):
        ad.smap(lambda a: a, **options)(X)


def test_none_passes_any_object_unchanged(grid):
    class Model:
        pass

    model, seen = Model(), []

    def body(a, b):
        seen.append(b)
        return a

    mapped = ad.shard_map(body, mesh=grid, in_specs=(P("x"), None), out_specs=P("x"))
    placed = ad.device_put(X)
    for given in (model, "text", X, placed, ["text", {"k": model}]):
        seen.clear()
        np.testing.assert_array_equal(np.asarray(mapped(X, given)), X)
        assert len(seen) == 8
        assert all(type(each) is type(given) for each in seen)
        if type(given) is not list:
            assert all(each is given for each in seen)
    inner = ad.shard_map(
        lambda tree: tree["j"], mesh=grid, in_specs=({"k": None, "j": P("x")},), out_specs=P("x"), executor="threads"
    )
    np.testing.assert_array_equal(np.asarray(inner({"k": model, "j": X})), X)
    alone = ad.shard_map(lambda m: np.ones(1), mesh=grid, in_specs=None, out_specs=P("x"))
    assert alone(model).shape == (2,)


def test_an_abstract_mesh_takes_arguments_of_one_mesh():
    here, backwards = line(ad.devices()), line(ad.devices()[::-1])
    x, y = (ad.device_put(X, ad.NamedSharding(mesh, P("x"))) for mesh in (here, backwards))
    add = ad.shard_map(lambda a, b: a + b, mesh=AbstractMesh((8,), ("x",)), in_specs=P("x"), out_specs=P("x"))
    assert add(x, X).sharding == x.sharding
    assert add(y, y).sharding == y.sharding
    with pytest.raises(ValueError, match="the arguments are on 2 meshes; expected one"):
        add(x, y)
