# SPDX-License-Identifier: Apache-2.0
"""mesh_utils orders stand-in devices as JAX's does, and refuses with its words."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from artifex_devices import mesh_utils as ours
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("jax", reason="jax is not installed: nothing to compare with")
from jax.experimental import mesh_utils as theirs

KINDS = (
    "TPU v2", "TPU v3", "TPU v4", "TPU v4 lite", "TPU v5", "TPU v5e", "TPU v5 lite", "TPU v5p", "TPU v6 lite",
    "TPU v6e", "TPU7", "TPU7x", "TPU8i", "TPU8t",
)  # fmt: skip
SIZES = (1, 1, 2, 2, 3, 4, 4, 6, 8)


@dataclass(frozen=True)
class Chip:
    id: int
    coords: tuple[int, int, int]
    core_on_chip: int = 0
    device_kind: str = "TPU v4"
    platform: str = "tpu"
    process_index: int = 0
    slice_index: int = 0

    def __repr__(self):
        return f"D{self.id}"


def torus(sizes, kind="TPU v4", cores=1, first=0, slice_index=0):
    places = [
        (x, y, z, core)
        for z in range(sizes[2])
        for y in range(sizes[1])
        for x in range(sizes[0])
        for core in range(cores)
    ]
    return [
        Chip(first + i, place[:3], place[3], kind, process_index=slice_index, slice_index=slice_index)
        for i, place in enumerate(places)
    ]


def outcome(function, *args, **options):
    """Ids in the shape of the mesh, or class and text of the error."""
    try:
        mesh = function(*args, **options)
    except Exception as error:
        return type(error).__name__, str(error)
    return np.array([device.id for device in mesh.ravel()]).reshape(mesh.shape).tolist()


def shapes_of(draw, count):
    """Sizes that multiply to `count`, some of them 1."""
    shape = []
    while count > 1 and len(shape) < 4:
        size = draw(st.sampled_from([d for d in range(1, count + 1) if count % d == 0]))
        shape.append(size)
        count //= size
    return draw(st.permutations([*shape, count])) if shape or count == 1 else [count]


@st.composite
def questions(draw):
    kind = draw(st.sampled_from(KINDS))
    sizes = draw(st.tuples(*[st.sampled_from(SIZES)] * 3))
    cores = draw(st.sampled_from((1, 1, 2))) if kind != "TPU v3" else 2
    assume(math.prod(sizes) * cores <= 512)
    devices = torus(sizes, kind, cores)
    order = draw(st.sampled_from(("as it is", "reversed", "mixed", "one missing")))
    if order == "reversed":
        devices.reverse()
    elif order == "mixed":
        devices = draw(st.permutations(devices)) if len(devices) <= 64 else devices
    elif order == "one missing" and len(devices) > 1:
        devices = devices[:-1]
    return devices, draw(st.composite(lambda d: shapes_of(d, len(devices)))())


@given(questions(), st.booleans(), st.booleans())
def test_devices_of_tpu_slices_are_ordered_alike(question, split, contiguous):
    devices, shape = question
    options = {"allow_split_physical_axes": split, "contiguous_submeshes": contiguous}
    assert outcome(ours.create_device_mesh, shape, devices, **options) == outcome(
        theirs.create_device_mesh, shape, devices, **options
    )


@given(st.data(), st.booleans(), st.booleans())
def test_several_slices_are_joined_alike(data, split, by_process):
    sizes = data.draw(st.tuples(*[st.sampled_from((1, 2, 4))] * 3))
    slices = data.draw(st.sampled_from((1, 2, 3, 4, 6)))
    count = math.prod(sizes)
    devices = [chip for i in range(slices) for chip in torus(sizes, first=i * count, slice_index=i)]
    if data.draw(st.booleans()):
        devices.reverse()
    inside = tuple(data.draw(st.composite(lambda d: shapes_of(d, count))()))
    outside = tuple(data.draw(st.composite(lambda d: shapes_of(d, slices))()))
    if data.draw(st.booleans()):
        outside = (*outside, 2)
    options = {
        "process_is_granule": by_process,
        "should_sort_granules_by_key": data.draw(st.booleans()),
        "allow_split_physical_axes": split,
    }
    assert outcome(ours.create_hybrid_device_mesh, inside, outside, devices, **options) == outcome(
        theirs.create_hybrid_device_mesh, inside, outside, devices, **options
    )


@pytest.mark.parametrize("platform", ["gpu", "cpu"])
@pytest.mark.parametrize("shape", [(8,), (2, 4), (2, 3), ("a", 8), [4, "2"], (2.0, 4.9)])
def test_other_platforms_and_shapes_are_taken_alike(platform, shape):
    devices = [
        replace(chip, platform=platform, id=i)
        for chip, i in zip(torus((8, 1, 1)), (5, 1, 4, 0, 3, 2, 7, 6), strict=True)
    ]
    assert outcome(ours.create_device_mesh, shape, devices) == outcome(theirs.create_device_mesh, shape, devices)


@pytest.mark.parametrize(
    "chips",
    [
        pytest.param(
            [replace(chip, coords=(chip.coords[0] + 4, 0, 0)) for chip in torus((4, 1, 1))], id="not at the origin"
        ),
        pytest.param([replace(chip, core_on_chip=1) for chip in torus((4, 1, 1), "TPU7x")], id="second cores only"),
        pytest.param([replace(chip, coords=(0, 0, 0)) for chip in torus((4, 1, 1))], id="all in one place"),
        pytest.param(
            [*torus((3, 1, 1)), replace(torus((4, 1, 1))[3], device_kind="TPU v5 lite")], id="last of another kind"
        ),
        pytest.param(torus((2, 1, 1), cores=2), id="two devices a chip"),
    ],
)
def test_odd_lists_are_taken_alike(chips):
    assert outcome(ours.create_device_mesh, (2, 2), chips) == outcome(theirs.create_device_mesh, (2, 2), chips)
    assert outcome(ours.create_device_mesh, (4,), chips) == outcome(theirs.create_device_mesh, (4,), chips)


def test_devices_without_slices_are_refused_alike():
    @dataclass(frozen=True)
    class Gpu:
        id: int
        platform: str = "gpu"
        device_kind: str = "x"

    devices = [Gpu(i) for i in range(4)]
    for options in ({}, {"process_is_granule": True}):
        assert outcome(ours.create_hybrid_device_mesh, (2, 2), (1, 1), devices, **options) == outcome(
            theirs.create_hybrid_device_mesh, (2, 2), (1, 1), devices, **options
        )
