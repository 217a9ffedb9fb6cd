# SPDX-License-Identifier: Apache-2.0
"""Members of meshes, shardings and specs that JAX has: types of axes, update, the empty mesh, checks of shapes."""

import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P, make_single_device_sharding

AUTO, EXPLICIT, MANUAL = AxisType.Auto, AxisType.Explicit, AxisType.Manual


@pytest.fixture
def mixed(devices):
    return Mesh(np.array(devices).reshape(2, 4), ("x", "y"), axis_types=(EXPLICIT, AUTO))


def test_updates_of_a_mesh(mixed, devices):
    assert mixed.update() is mixed
    assert mixed.update(axis_names=("a", "b")) == Mesh(mixed.devices, ("a", "b"), (EXPLICIT, AUTO))
    assert mixed.update(axis_types=AUTO).auto_axes == ("x", "y")
    assert mixed.update(devices=np.array(devices).reshape(4, 2)).axis_sizes == (4, 2)
    with pytest.raises(ValueError, match="devices and axis_names do not fit"):
        mixed.update(devices=np.array(devices))


def test_updates_of_an_abstract_mesh():
    mesh = AbstractMesh((2, 4), ("x", "y"))
    assert mesh.abstract_mesh is mesh
    assert mesh.update(axis_sizes=(4, 4)) == AbstractMesh((4, 4), ("x", "y"))
    assert mesh.update_axis_types({"y": EXPLICIT, "q": MANUAL}) == AbstractMesh((2, 4), ("x", "y"), (AUTO, EXPLICIT))
    assert mesh.update_axis_types({"x": "explicit"}).axis_types == (EXPLICIT, AUTO)
    with pytest.raises(TypeError, match="'Explizit' is not an axis type; write \"auto\""):
        mesh.update_axis_types({"x": "Explizit"})
    with pytest.raises(TypeError, match="expected a dict of axis name to AxisType"):
        mesh.update_axis_types([("x", EXPLICIT)])


def test_the_empty_mesh():
    mesh = Mesh(np.empty((), object), ())
    assert (mesh.empty, mesh.size, mesh.axis_names, mesh.axis_sizes, mesh.axis_types) == (True, 0, (), (), ())
    assert (mesh.devices.shape, mesh.devices.item(), mesh.local_devices) == ((), None, [])
    assert repr(mesh) == "Mesh(axis_sizes=(), axis_names=())"
    assert mesh.abstract_mesh == AbstractMesh((), ())
    assert mesh == ad.sharding.get_mesh() == mesh.update()
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    with pytest.raises(TypeError, match=r"devices\[0\] is of type NoneType"):
        Mesh(np.empty((1,), object), ("x",))


def test_shapes_that_a_sharding_takes(mixed, devices):
    sharding = NamedSharding(mixed, P("x", "y"))
    for shape in ((2, 4), (3, 3), (1, 2, 3)):
        sharding.check_compatible_aval(shape)
    with pytest.raises(ValueError, match="expected 2 at least, got 1; leave entries of the spec out"):
        sharding.check_compatible_aval((8,))
    with pytest.raises(ValueError, match=r"got 0; write P\(\) for a number"):
        sharding.check_compatible_aval(())
    NamedSharding(mixed, P()).check_compatible_aval(())
    ad.SingleDeviceSharding(devices[0]).check_compatible_aval(())


def test_updates_of_a_sharding(mixed):
    sharding = NamedSharding(mixed, P("x"), uneven="last-short")
    assert sharding.update() == sharding
    assert sharding.update(spec=P("y")) == NamedSharding(mixed, P("y"), uneven="last-short")
    assert sharding.update(spec=("y", None)).spec == P("y", None)
    assert sharding.update(memory_kind="pinned_host").memory_kind == "pinned_host"
    other = mixed.update(axis_names=("x", "z"))
    assert sharding.update(mesh=other, uneven=None) == NamedSharding(other, P("x"))
    abstract = NamedSharding(mixed.abstract_mesh, P("x"))
    assert abstract.update(spec=P("y")) == NamedSharding(mixed.abstract_mesh, P("y"))
    with pytest.raises(TypeError, match="unknown arguments sepc"):
        sharding.update(sepc=P())


def test_updates_of_a_spec():
    spec = P("x", None, ("y", "z"))
    assert spec.update() is spec
    assert spec.update(partitions=("y", None)) == P("y", None)
    assert spec.update(partitions=P("y")) == P("y")
    for wrong in ("y", 3):
        with pytest.raises(TypeError, match="expected a tuple of entries"):
            spec.update(partitions=wrong)


def test_the_sharding_of_one_device(devices):
    assert make_single_device_sharding(devices[1]) == ad.SingleDeviceSharding(devices[1])
    assert make_single_device_sharding(devices[1], memory_kind="pinned_host").memory_kind == "pinned_host"
    with pytest.raises(TypeError, match="expected a Device"):
        make_single_device_sharding("cpu:0")


@pytest.mark.parametrize("shape", [("a", 4), (2.0, 4), ((2,), 4), (None, 4)])
def test_sizes_of_make_mesh_are_integers(shape):
    with pytest.raises(ValueError, match=r"make_mesh: axis_shapes.[01]. is .* \(.*\); expected an int"):
        ad.make_mesh(shape, ("x", "y"))
