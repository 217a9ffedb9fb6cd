# SPDX-License-Identifier: Apache-2.0
"""Shapes without data: ShapeDtypeStruct, and NamedShardings without devices."""

import copy
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.errors import IndivisibleError
from artifex_devices.layout import Format, Layout
from artifex_devices.testing import placements
from hypothesis import given
from notebook_pages import Page

MESH = ad.AbstractMesh((2, 4), ("x", "y"))
SHARDING = ad.NamedSharding(MESH, ad.P("x", "y"))


def test_attributes():
    struct = ad.ShapeDtypeStruct([8, 4], "float32", sharding=SHARDING)
    assert (struct.shape, struct.dtype, struct.sharding) == ((8, 4), np.dtype("float32"), SHARDING)
    assert (struct.ndim, struct.size, len(struct), struct.weak_type) == (2, 32, 8, False)
    assert struct.format == Format(None, SHARDING)
    assert ad.ShapeDtypeStruct((), int).size == 1


def test_its_text():
    assert repr(ad.ShapeDtypeStruct((2, 3), np.float32)) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    weak = ad.ShapeDtypeStruct((8,), "bool", weak_type=True)
    assert str(weak) == "ShapeDtypeStruct(shape=(8,), dtype=bool, weak_type=True)"
    assert repr(ad.ShapeDtypeStruct((8, 8), int, sharding=SHARDING)) == (
        "ShapeDtypeStruct(shape=(8, 8), dtype=int64, sharding=NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4, "
        "axis_types=(Auto, Auto)), spec=P('x', 'y')))"
    )


def test_equality_and_hash():
    one = ad.ShapeDtypeStruct((8, 8), int, sharding=SHARDING)
    assert one == ad.ShapeDtypeStruct((8, 8), "int64", sharding=SHARDING)
    assert len({one, ad.ShapeDtypeStruct((8, 8), "int64", sharding=SHARDING)}) == 1
    for other in (
        ad.ShapeDtypeStruct((8, 8), int),
        ad.ShapeDtypeStruct((8, 4), int, sharding=SHARDING),
        ad.ShapeDtypeStruct((8, 8), bool, sharding=SHARDING),
        one.update(weak_type=True),
        3,
    ):
        assert one != other


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


@pytest.mark.parametrize(
    ("shape", "dtype", "options", "kind"),
    [
        ((8,), None, {}, ValueError),
        ((8,), "foo", {}, TypeError),
        (None, int, {}, TypeError),
        (8, int, {}, TypeError),
        ((2.5,), int, {}, TypeError),
        ((-1,), int, {}, ValueError),
        ((8, 8), int, {"sharding": 3}, ValueError),
        ((8,), int, {"sharding": SHARDING}, ValueError),
        ((8, 8), int, {"sharding": ad.P("x")}, ValueError),
        ((8, 8), int, {"sharding": Format(Layout((1, 0)), SHARDING)}, ValueError),
        ((8,), int, {"sharding": Format(Layout((0, 1)), SHARDING)}, ValueError),
    ],
    ids=repr,
)
def test_wrong_arguments(shape, dtype, options, kind):
    with pytest.raises(kind):
        ad.ShapeDtypeStruct(shape, dtype, **options)


def test_a_spec_takes_the_mesh_that_is_set(grid, named):
    with ad.set_mesh(grid):
        assert ad.ShapeDtypeStruct((8, 8), int, sharding=ad.P("x")).sharding == named("x")


# --- Shardings on an AbstractMesh ---


@given(placements())
def test_shape_arithmetic_works_without_devices(placement):
    real = placement.sharding
    if not isinstance(real, ad.NamedSharding):
        return
    abstract = ad.NamedSharding(real.mesh.abstract_mesh, real.spec, uneven=real.uneven)
    assert abstract.shard_shape(placement.value.shape) == real.shard_shape(placement.value.shape)
    assert abstract.num_devices == real.num_devices
    assert abstract.is_fully_replicated == real.is_fully_replicated
    assert abstract != real
    assert not abstract.is_equivalent_to(real, placement.value.ndim)
    assert abstract.is_equivalent_to(abstract, placement.value.ndim)


def test_an_abstract_sharding_is_a_value():
    again = ad.NamedSharding(ad.AbstractMesh((2, 4), ("x", "y")), ad.P("x", "y"))
    assert again == SHARDING
    assert hash(again) == hash(SHARDING)
    assert again != ad.NamedSharding(ad.AbstractMesh((4, 2), ("x", "y")), ad.P("x", "y"))
    assert SHARDING.mesh == MESH
    assert SHARDING.memory_kind is None
    pinned = SHARDING.with_memory_kind("pinned_host")
    assert pinned.memory_kind == "pinned_host"
    assert repr(pinned).endswith("spec=P('x', 'y'), memory_kind=pinned_host)")
    assert pickle.loads(pickle.dumps(SHARDING)) == SHARDING
    with pytest.raises(IndivisibleError):
        SHARDING.shard_shape((7, 8))
    with pytest.raises(ValueError, match="q"):
        ad.NamedSharding(MESH, ad.P("q"))
    with pytest.raises(ValueError, match="no axes"):
        ad.NamedSharding(ad.AbstractMesh((), ()), ad.P())


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
