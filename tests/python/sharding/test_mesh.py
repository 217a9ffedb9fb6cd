# SPDX-License-Identifier: Apache-2.0
"""Mesh, AbstractMesh and make_mesh."""

import copy
import gc
import pickle
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import Mesh
from artifex_devices.testing import meshes
from hypothesis import given


@given(meshes())
def test_copies_and_pickles_are_the_same_object(mesh):
    assert pickle.loads(pickle.dumps(mesh)) is mesh
    assert copy.copy(mesh) is mesh
    assert copy.deepcopy(mesh) is mesh


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


def test_as_a_context_a_mesh_can_be_nested_and_is_thread_local(grid, line):
    with grid as entered:
        assert entered is grid
        with line, grid:
            pass
    with pytest.raises(RuntimeError, match="is not the mesh that was entered last"):
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
