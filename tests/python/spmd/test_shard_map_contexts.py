# SPDX-License-Identifier: Apache-2.0
"""The mesh of shard_map: mesh= must agree with the mesh of set_mesh and use_abstract_mesh, and must have an axis."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import AxisType, P
from artifex_devices.sharding import AbstractMesh, use_abstract_mesh

X = np.arange(16.0)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def mesh_of(start=0, stop=4, step=1, names=("b",), **options):
    devices = np.array(ad.devices())[start:stop][::step]
    return ad.Mesh(devices.reshape(-1, *(1,) * (len(names) - 1)), names, **options)


def plus_one(mesh):
    return ad.shard_map(lambda block: block + 1, mesh=mesh, in_specs=P("b"), out_specs=P("b"))


def ids_of(result):
    return [device.id for device in result.sharding.mesh.devices.flat]


@pytest.mark.parametrize("argument", ["host", "placed"])
def test_a_mesh_that_differs_from_that_of_the_context_is_refused(argument):
    mesh = mesh_of()
    x = X if argument == "host" else ad.device_put(X, ad.NamedSharding(mesh, P("b")))
    others = (
        mesh_of(names=("q",)),
        mesh_of(stop=8),
        mesh_of(names=("b", "c")),
        mesh_of(axis_types=(AxisType.Explicit,)),
    )
    for other in others:
        for given in (mesh, mesh.abstract_mesh):
            for context in (
                lambda other=other: ad.set_mesh(other),
                lambda other=other: use_abstract_mesh(other.abstract_mesh),
            ):
                with (
                    context(),
                    pytest.raises(ValueError, match="mesh differs from the mesh of the context; expected Ab"),
                ):
                    plus_one(given)(x)
    assert ids_of(plus_one(mesh)(x)) == [0, 1, 2, 3]


def test_devices_that_differ_from_those_of_set_mesh_are_refused():
    for other in (mesh_of(4, 8), mesh_of(step=-1)):
        with ad.set_mesh(other), pytest.raises(ValueError, match=r"expected .* on devices \[.*, got .* \[0, 1, 2, 3\]"):
            plus_one(mesh_of())(X)
    with use_abstract_mesh(mesh_of(4, 8).abstract_mesh):
        assert ids_of(plus_one(mesh_of())(X)) == [0, 1, 2, 3]
    with mesh_of(4, 8):  # as in JAX, only the mesh of calls without mesh=
        assert ids_of(plus_one(mesh_of())(X)) == [0, 1, 2, 3]
        assert ids_of(plus_one(None)(X)) == [4, 5, 6, 7]


def test_each_call_is_checked_and_uses_the_mesh_of_its_context():
    mapped = plus_one(mesh_of())
    assert ids_of(mapped(X)) == [0, 1, 2, 3]
    with ad.set_mesh(mesh_of(names=("q",))), pytest.raises(ValueError, match="differs from the mesh of the context"):
        mapped(X)
    abstract = plus_one(mesh_of().abstract_mesh)
    for mesh, ids in ((mesh_of(), [0, 1, 2, 3]), (mesh_of(4, 8), [4, 5, 6, 7])):
        with ad.set_mesh(mesh):
            assert ids_of(abstract(X)) == ids
            assert ids_of(plus_one(None)(X)) == ids


def test_arguments_have_the_devices_of_use_abstract_mesh():
    x = ad.device_put(X, ad.NamedSharding(mesh_of(4, 8), P("b")))
    with use_abstract_mesh(mesh_of().abstract_mesh):
        assert ids_of(plus_one(None)(x)) == [4, 5, 6, 7]
        with pytest.raises(ValueError, match="mesh is an AbstractMesh, which has no devices"):
            plus_one(None)(X)


@pytest.mark.parametrize("abstract", [False, True])
def test_an_empty_mesh_is_refused(abstract):
    mesh = AbstractMesh((), ()) if abstract else ad.sharding.get_mesh()
    mapped = ad.shard_map(lambda block: block, mesh=mesh, in_specs=P(), out_specs=P())
    with pytest.raises(
        ValueError, match=r"shard_map\(<lambda>\): mesh has no axes and no devices; expected a mesh with"
    ):
        mapped(X)
