# SPDX-License-Identifier: Apache-2.0
"""Mesh, AbstractMesh and make_mesh behave as JAX's."""

import math

import numpy as np
import pytest
from artifex_devices.testing import MeshLayout, mesh_layouts
from both import LIBRARIES, assert_agree, equality_of, mesh_of, near_layouts
from hypothesis import given
from hypothesis import strategies as st

LAYOUTS = st.one_of(mesh_layouts(), mesh_layouts(axis_names=("x", 1, ("a", 0), "long name", 2.5)))
TYPES = st.lists(st.sampled_from(["Auto", "Explicit", "Manual"]), min_size=3, max_size=3)


ONE = MeshLayout(("x",), (1,), (0,))


def facts(lib, mesh):
    return (
        repr(mesh),
        str(mesh),
        mesh.axis_names,
        mesh.axis_sizes,
        mesh.axis_types,
        dict(mesh.shape),
        type(mesh.shape).__name__,
        mesh.size,
        mesh.empty,
        mesh.devices,
        mesh.device_ids,
        mesh.is_multi_process,
        list(mesh.local_devices),
        mesh.devices.flags.writeable,
    )


@given(LAYOUTS)
def test_facts_of_a_mesh_are_equal(layout):
    assert_agree(lambda lib: facts(lib, mesh_of(lib, layout)))
    assert_agree(lambda lib: mesh_of(lib, layout).local_mesh is mesh_of(lib, layout))


@given(LAYOUTS, TYPES)
def test_axis_types_are_kept_and_shown_alike(layout, types):
    def ask(lib):
        kinds = tuple(lib.AxisType[name] for name in types[: len(layout.axis_names)])
        return facts(lib, lib.Mesh(layout.arrange(lib.devices), layout.axis_names, axis_types=kinds))

    assert_agree(ask)


@given(st.data(), mesh_layouts(axis_names=("x", "y", "z")), TYPES)
def test_equality_and_hash_are_equal(data, left, types):
    right = data.draw(near_layouts(left))

    def ask(lib):
        kinds = tuple(lib.AxisType[name] for name in types[: len(right.axis_names)])
        typed = lib.Mesh(right.arrange(lib.devices), right.axis_names, axis_types=kinds)
        mesh, other = mesh_of(lib, left), mesh_of(lib, right)
        assert (mesh is other) is (mesh == other), "equal meshes are one object"
        return equality_of([(mesh, other), (mesh, typed), (mesh.abstract_mesh, other.abstract_mesh)])

    assert_agree(ask)


@given(st.lists(st.integers(1, 4), max_size=4), st.integers(1, 8), st.booleans())
def test_make_mesh_is_equal(sizes, count, given_devices):
    names = tuple(f"a{axis}" for axis in range(len(sizes)))

    def ask(lib):
        options = {"devices": lib.devices[:count]} if given_devices else {}
        return facts(lib, lib.make_mesh(tuple(sizes), names, **options))

    answer = assert_agree(ask)
    assert (answer is None) is (math.prod(sizes) > (count if given_devices else 8))


@given(st.permutations(range(8)), st.sampled_from([(2, 4), (8,), (2, 2, 2), (2, 2), (1, 3)]))
def test_make_mesh_takes_the_first_devices_in_their_order(order, sizes):
    names = ("x", "y", "z")[: len(sizes)]
    assert_agree(lambda lib: lib.make_mesh(sizes, names, devices=[lib.devices[i] for i in order]).devices)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), TYPES, st.booleans())
def test_abstract_meshes_are_equal(sizes, types, typed):
    sizes = sizes[:3]
    names = ("x", "y", "z")[: len(sizes)]

    def ask(lib):
        options = {"axis_types": tuple(lib.AxisType[name] for name in types[: len(sizes)])} if typed else {}
        mesh = lib.AbstractMesh(tuple(sizes), names, **options)
        assert equality_of([(mesh, lib.AbstractMesh(tuple(sizes), names, **options))]) == [True]
        return repr(mesh), mesh.axis_names, mesh.axis_sizes, mesh.axis_types, dict(mesh.shape), mesh.size, mesh.empty

    assert_agree(ask)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.Mesh(np.array(lib.devices).reshape(2, 4), ("x",)),
        lambda lib: lib.Mesh(np.array(lib.devices).reshape(2, 4), "x"),
        lambda lib: lib.Mesh(np.array(lib.devices).reshape(2, 4), ("x", "y", "z")),
        lambda lib: lib.Mesh(np.array(lib.devices), (None,)),
        lambda lib: lib.Mesh(np.array(lib.devices), ("x",), axis_types=(lib.AxisType.Auto,) * 2),
        lambda lib: lib.Mesh(np.array(lib.devices), ("x",), axis_types=("Atuo",)),
        lambda lib: lib.make_mesh((3, 3), ("x", "y")),
        lambda lib: lib.make_mesh((16,), ("x",)),
        lambda lib: lib.make_mesh((2, 2), ("x",)),
        lambda lib: lib.make_mesh((2, -2), ("x", "y")),
        lambda lib: lib.make_mesh((2, 2), ("x", "y"), axis_types=("Atuo", "Atuo")),
        lambda lib: setattr(mesh_of(lib, ONE), "spam", 1),
        lambda lib: mesh_of(lib, ONE).devices.__setitem__(0, None),
    ],
)
def test_wrong_meshes_raise_alike(wrong):
    assert assert_agree(wrong) is None


@pytest.mark.parametrize("shape", [(), (0,)], ids=repr)
def test_meshes_of_no_axes_or_no_devices_are_shown_alike(shape):
    def ask(lib):
        devices = np.empty(shape, object)
        if shape == ():
            devices[()] = lib.devices[0]
        mesh = lib.Mesh(devices, ("x", "y")[: len(shape)])
        return repr(mesh), mesh.size, mesh.empty

    assert_agree(ask)


def test_lists_and_a_single_name_are_taken_alike():
    assert_agree(lambda lib: facts(lib, lib.Mesh(list(lib.devices), "x")))
    assert_agree(lambda lib: facts(lib, lib.Mesh(tuple(lib.devices), ["x"])))
    assert_agree(lambda lib: facts(lib, lib.Mesh(lib.devices[0], ())))


def test_axis_types_have_the_same_members():
    assert_agree(lambda lib: [(member.name, str(member), repr(member)) for member in lib.AxisType])


def test_a_mesh_can_be_hashed_with_others():
    for lib in LIBRARIES:
        grid = np.array(lib.devices)
        kinds = {
            lib.Mesh(grid, "x"),
            lib.Mesh(grid, "y"),
            lib.Mesh(grid.reshape(2, 4), ("x", "y")),
            lib.Mesh(grid, "x"),
        }
        assert len(kinds) == 3
