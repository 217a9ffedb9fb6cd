# SPDX-License-Identifier: Apache-2.0
"""Shapes without data: ShapeDtypeStruct, and NamedShardings without devices."""

import copy
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from notebook_pages import Page

MESH = ad.AbstractMesh((2, 4), ("x", "y"))
SHARDING = ad.NamedSharding(MESH, ad.P("x", "y"))


def test_its_text():
    assert repr(ad.ShapeDtypeStruct((2, 3), np.float32)) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    weak = ad.ShapeDtypeStruct((8,), "bool", weak_type=True)
    assert str(weak) == "ShapeDtypeStruct(shape=(8,), dtype=bool, weak_type=True)"
    assert repr(ad.ShapeDtypeStruct((8, 8), int, sharding=SHARDING)) == (
        "ShapeDtypeStruct(shape=(8, 8), dtype=int64, sharding=NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4, "
        "axis_types=(Auto, Auto)), spec=P('x', 'y')))"
    )


def test_it_does_not_change():
    struct = ad.ShapeDtypeStruct((8,), int)
    with pytest.raises(RuntimeError, match="immutable"):
        struct.shape = (3,)
    with pytest.raises(RuntimeError, match="immutable"):
        del struct.dtype
    with pytest.raises(RuntimeError, match="immutable"):
        struct.other = 1
    assert struct.update(shape=(3,)) == ad.ShapeDtypeStruct((3,), int)
    assert struct.update(sharding=SHARDING, shape=(8, 8)).sharding == SHARDING
    with pytest.raises(TypeError, match="other"):
        struct.update(other=1)


def test_copies_and_trees():
    struct = ad.ShapeDtypeStruct((8, 8), "float16", sharding=SHARDING)
    assert pickle.loads(pickle.dumps(struct)) == struct
    assert copy.deepcopy(struct) == struct
    assert ad.tree_util.tree_leaves({"a": [struct]}) == [struct]


def test_a_spec_takes_the_mesh_that_is_set(grid, named):
    with ad.set_mesh(grid):
        assert ad.ShapeDtypeStruct((8, 8), int, sharding=ad.P("x")).sharding == named("x")


# --- Shardings on an AbstractMesh ---


@pytest.mark.parametrize(
    "question",
    [
        lambda: SHARDING.device_set,
        lambda: SHARDING.addressable_devices,
        lambda: SHARDING.devices_indices_map((8, 8)),
        lambda: SHARDING.addressable_devices_indices_map((8, 8)),
        lambda: SHARDING.is_fully_addressable,
        lambda: ad.device_put(np.zeros((8, 8)), SHARDING),
        lambda: ad.device_put(ad.device_put(np.zeros((8, 8))), SHARDING),
        lambda: ad.make_array_from_callback((8, 8), SHARDING, lambda index: np.zeros((4, 2))),
        lambda: ad.render.sharding_svg(SHARDING, (8, 8)),
        lambda: ad.debug.visualize_sharding((8, 8), SHARDING),
        lambda: ad.DevicePlacement().distribute_batch(np.zeros((8, 8)), SHARDING),
    ],
)
def test_questions_that_need_devices_are_errors(question):
    with pytest.raises(ValueError, match="no devices"):
        question()


def test_a_notebook_shows_it_without_a_picture():
    page = Page(SHARDING._repr_html_())
    assert "AbstractMesh" in page.letters
    assert page.pictures == []
