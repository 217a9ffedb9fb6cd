# SPDX-License-Identifier: Apache-2.0
"""Devices, PartitionSpecs, Meshes and NamedShardings of JAX, where ours are expected."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AxisType, Mesh, NamedSharding, P

jax = pytest.importorskip("jax", reason="jax is not installed")

X = np.arange(64.0).reshape(16, 4)


@pytest.fixture(scope="module")
def meshes():
    """JAX's mesh over its eight devices, and ours over the devices of the same ids."""
    theirs = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    with ad.simulate(8):
        ids = [device.id for device in theirs.devices.flat]
        ours = Mesh(np.array(ad.devices())[ids].reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
        yield theirs, ours


PLACED = {
    "device_put": lambda sharding: ad.device_put(X, sharding),
    "device_put of a tree": lambda sharding: ad.device_put({"x": X}, {"x": sharding})["x"],
    "reshard": lambda sharding: ad.reshard(X, sharding),
    "with_sharding_constraint": lambda sharding: ad.with_sharding_constraint(X, sharding),
    "make_array_from_callback": lambda sharding: ad.make_array_from_callback(X.shape, sharding, X.__getitem__),
    "jit": lambda sharding: ad.jit(lambda x: x, out_shardings=sharding)(X),
    "numpy.asarray": lambda sharding: ad.numpy.asarray(X, out_sharding=sharding),
}


@pytest.mark.parametrize("name", PLACED)
@pytest.mark.parametrize("spec", [("data", None), (("data", "model"), None), (None, "model")])
def test_a_sharding_of_jax_places_data_as_ours(name, spec, meshes):
    theirs, ours = meshes
    found = PLACED[name](jax.sharding.NamedSharding(theirs, jax.sharding.PartitionSpec(*spec)))
    assert found.sharding == NamedSharding(ours, P(*spec))
    np.testing.assert_array_equal(np.asarray(found), X)


def test_devices_meshes_and_specs(meshes):
    theirs, ours = meshes
    assert ad.device_put(X, jax.devices()[3]).device == ad.devices()[3]
    spec = jax.sharding.PartitionSpec("data")
    with ad.set_mesh(theirs):
        assert ad.device_put(X, spec).sharding == NamedSharding(ours, P("data"))
    total = ad.shard_map(lambda block: ad.lax.psum(block, "data"), mesh=theirs, in_specs=(spec,), out_specs=P())(X)
    np.testing.assert_array_equal(np.asarray(total), X.reshape(4, 4, 4).sum(axis=0))


def test_specs_and_meshes_of_jax_in_our_shardings(meshes):
    theirs, ours = meshes
    theirs_of = jax.sharding.PartitionSpec
    for entries in (("data",), (("data", "model"), None), (None, "model"), ()):
        assert NamedSharding(ours, theirs_of(*entries)) == NamedSharding(ours, P(*entries))
        assert NamedSharding(theirs, theirs_of(*entries)) == NamedSharding(ours, P(*entries))
        assert NamedSharding(theirs, P(*entries)) == NamedSharding(ours, P(*entries))
    free = NamedSharding(ours, theirs_of("data", theirs_of.UNCONSTRAINED)).spec
    assert free == P("data", P.UNCONSTRAINED)
    abstract = NamedSharding(theirs.abstract_mesh, theirs_of("data"))
    assert abstract == NamedSharding(ours.abstract_mesh, P("data"))
    placed = ad.device_put(X, jax.sharding.NamedSharding(theirs, theirs_of("data")))
    assert placed.sharding.mesh == ours
    with pytest.raises(TypeError, match=r"spec is of type int; expected a PartitionSpec, got 3; write ad\.P\("):
        NamedSharding(ours, 3)


def test_specs_of_jax_in_trees_of_specs(meshes):
    _, ours = meshes
    theirs_of = jax.sharding.PartitionSpec
    specs = ({"a": theirs_of("data"), "b": [theirs_of(None, "model"), None]},)

    def body(tree):
        return {"a": tree["a"] + 1, "b": [tree["b"][0]]}

    outs = {"a": theirs_of("data"), "b": [theirs_of(None, "model")]}
    found = ad.shard_map(body, mesh=ours, in_specs=specs, out_specs=outs)({"a": X, "b": [X, None]})
    assert found["a"].sharding == NamedSharding(ours, P("data"))
    assert found["b"][0].sharding == NamedSharding(ours, P(None, "model"))
    with ad.set_mesh(ours):
        placed = ad.device_put({"a": X, "b": (X, X)}, {"a": theirs_of("data"), "b": theirs_of(("data", "model"))})
        jitted = ad.jit(lambda x, y: (x, {"y": y}), (theirs_of("data"), theirs_of()), (theirs_of(), theirs_of("model")))
        one, two = jitted(X, X)
    assert placed["b"][1].sharding.spec == P(("data", "model"))
    assert (placed["a"].sharding.spec, one.sharding.spec, two["y"].sharding.spec) == (P("data"), P(), P("model"))


def test_a_world_without_the_devices_is_an_error_that_names_the_repair():
    sharding = jax.sharding.NamedSharding(jax.make_mesh((8,), ("x",)), jax.sharding.PartitionSpec("x"))
    with ad.simulate(2), pytest.raises(ValueError, match=r"does not have: 2, 3, .*with ad\.simulate\(8\):"):
        ad.device_put(X, sharding)
