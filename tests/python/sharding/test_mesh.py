# SPDX-License-Identifier: Apache-2.0
"""Mesh, AbstractMesh and make_mesh."""

import copy
import gc
import math
import pickle
import threading
from collections import OrderedDict

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, make_mesh
from artifex_devices.testing import mesh_layouts, meshes
from hypothesis import given
from hypothesis import strategies as st


@given(mesh_layouts())
def test_a_mesh_keeps_devices_names_and_sizes(layout):
    devices = ad.devices()
    mesh = layout.mesh(devices)
    assert mesh.axis_names == layout.axis_names
    assert mesh.axis_sizes == layout.axis_sizes
    assert mesh.size == math.prod(layout.axis_sizes) == len(layout.device_ids)
    assert mesh.devices.shape == mesh.device_ids.shape == layout.axis_sizes
    assert [device.id for device in mesh.devices.flat] == list(layout.device_ids)
    assert mesh.device_ids.ravel().tolist() == list(layout.device_ids)
    assert mesh.shape == OrderedDict(zip(layout.axis_names, layout.axis_sizes, strict=True))
    assert list(mesh.shape) == list(layout.axis_names)
    assert mesh.shape_tuple == tuple(zip(layout.axis_names, layout.axis_sizes, strict=True))
    assert mesh.axis_types == (AxisType.Auto,) * len(layout.axis_names)
    assert mesh.local_devices == [devices[i] for i in layout.device_ids]
    assert mesh.local_mesh is mesh
    assert not mesh.empty
    assert not mesh.is_multi_process
    assert mesh.abstract_mesh == AbstractMesh(layout.axis_sizes, layout.axis_names)


@given(mesh_layouts(), mesh_layouts())
def test_meshes_are_equal_when_devices_order_names_and_sizes_are(left, right):
    same = left == right
    one, other = left.mesh(), right.mesh()
    assert (one == other) is same
    assert (one is other) is same
    assert not same or hash(one) == hash(other)


@given(meshes())
def test_copies_and_pickles_are_the_same_object(mesh):
    assert pickle.loads(pickle.dumps(mesh)) is mesh
    assert copy.copy(mesh) is mesh
    assert copy.deepcopy(mesh) is mesh


def test_repr_and_str(devices, grid):
    assert repr(grid) == "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(grid) == "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    assert repr(make_mesh((8,), ("x",))) == "Mesh(axis_sizes=(8,), axis_names=('x',), axis_types=(Explicit,))"
    assert repr(Mesh(devices[0], ())) == "Mesh(axis_sizes=(), axis_names=(), axis_types=())"


def test_axis_types_count_in_equality(devices, grid):
    explicit = Mesh(np.array(devices).reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    assert explicit != grid
    assert explicit.axis_types == (AxisType.Explicit, AxisType.Explicit)
    assert make_mesh((2, 4), ("x", "y")) is explicit


def test_axis_types_are_three():
    assert [kind.name for kind in AxisType] == ["Auto", "Explicit", "Manual"]


def test_a_single_name_and_lists_are_taken(devices):
    assert Mesh(devices, "x").axis_names == ("x",)
    assert Mesh(tuple(devices), ["x"]) is Mesh(np.array(devices), ("x",))
    assert Mesh([devices[:4], devices[4:]], ("x", "y")).axis_sizes == (2, 4)


def test_any_hashable_but_none_is_an_axis_name(devices):
    names = ("x", 1, ("a", 0))
    mesh = Mesh(np.array(devices).reshape(2, 2, 2), names)
    assert mesh.axis_names == names
    assert mesh.shape[("a", 0)] == 2
    assert ad.NamedSharding(mesh, ad.P(1)).shard_shape((4,)) == (2,)


def test_a_mesh_without_axes_has_one_device(devices):
    mesh = Mesh(devices[3], ())
    assert (mesh.size, mesh.axis_names, mesh.empty, mesh.devices.shape) == (1, (), False, ())
    assert ad.NamedSharding(mesh, ad.P()).device_set == {devices[3]}


def test_a_mesh_without_devices_is_empty():
    mesh = Mesh(np.empty((0,), object), ("x",))
    assert mesh.empty
    assert mesh.size == 0
    assert mesh.axis_names == ()
    with pytest.raises(ValueError, match="no devices"):
        ad.NamedSharding(mesh, ad.P())


def test_devices_cannot_be_changed(grid):
    with pytest.raises(ValueError, match="read-only"):
        grid.devices[0, 0] = None
    with pytest.raises(AttributeError):
        grid.size = 3


def test_a_mesh_does_not_follow_the_array_it_was_made_of(devices):
    source = np.array(devices)
    mesh = Mesh(source, ("x",))
    source[0] = devices[7]
    assert mesh.devices[0] == devices[0]


def test_make_mesh_takes_the_first_devices(devices):
    mesh = make_mesh((2, 3), ("x", "y"))
    assert mesh.device_ids.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert mesh.axis_types == (AxisType.Explicit, AxisType.Explicit)
    backwards = make_mesh((2,), ("x",), devices=devices[::-1])
    assert backwards.device_ids.tolist() == [7, 6]
    assert make_mesh(mesh_shape=(4,), axis_names=("x",), axis_types=AxisType.Auto) is Mesh(devices[:4], "x")


def test_make_mesh_of_no_axes_is_one_device():
    assert make_mesh((), ()).device_ids.tolist() == 0


def test_as_a_context_a_mesh_can_be_nested_and_is_thread_local(grid, line):
    with grid as entered:
        assert entered is grid
        with line, grid:
            pass
    with pytest.raises(RuntimeError, match="innermost"):
        grid.__exit__(None, None, None)
    errors = []

    def leave():
        try:
            grid.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(str(error))

    with grid:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_equal_meshes_from_many_threads_are_one_object(devices):
    made = [None] * 8
    barrier = threading.Barrier(8)

    def make(slot):
        barrier.wait()
        made[slot] = Mesh(np.array(devices).reshape(4, 2), ("threads", slot // 8))

    threads = [threading.Thread(target=make, args=(slot,)) for slot in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(mesh) for mesh in made}) == 1


def test_a_mesh_of_another_world_is_another_mesh(grid):
    with ad.simulate(8):
        inner = Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
        assert inner != grid
        assert repr(inner) == repr(grid)
        assert inner.abstract_mesh == grid.abstract_mesh


def test_meshes_that_nobody_holds_are_freed(devices):
    for number in range(200):
        Mesh(np.array(devices), (("freed", number),))
    gc.collect()
    again = Mesh(np.array(devices), (("freed", 3),))
    assert again.axis_names == (("freed", 3),)


@given(st.lists(st.integers(1, 2**10), min_size=1, max_size=6), st.permutations("abcdef"))
def test_abstract_meshes_are_values(sizes, letters):
    names = tuple(letters[: len(sizes)])
    mesh = AbstractMesh(tuple(sizes), names)
    assert mesh.size == math.prod(sizes)
    assert mesh.axis_sizes == tuple(sizes)
    assert mesh.shape == dict(zip(names, sizes, strict=True))
    assert mesh == AbstractMesh(tuple(sizes), names)
    assert hash(mesh) == hash(AbstractMesh(tuple(sizes), names))
    assert mesh != AbstractMesh(tuple(sizes), names, axis_types=(AxisType.Manual,) * len(sizes))
    assert pickle.loads(pickle.dumps(mesh)) == mesh


def test_repr_of_an_abstract_mesh():
    assert repr(AbstractMesh((2, 4), ("x", "y"))) == "AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
    typed = AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    assert repr(typed) == "AbstractMesh('x': 2, axis_types=(Explicit,))"
