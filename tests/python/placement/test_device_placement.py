# SPDX-License-Identifier: Apache-2.0
"""DevicePlacement, its functions and the batch sizes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import (
    BatchSizeRecommendation,
    DevicePlacement,
    HardwareType,
    NamedSharding,
    P,
)

TABLE = {
    HardwareType.TPU_V5E: (64, 256, 240, "Critical batch size for reaching roofline"),
    HardwareType.TPU_V5P: (128, 512, 480, "Higher throughput, needs larger batches"),
    HardwareType.TPU_V4: (64, 256, 192, "Similar to v5e, slightly lower critical"),
    HardwareType.H100: (64, 320, 298, "Critical batch size for roofline"),
    HardwareType.A100: (32, 256, 240, "For 80GB variant"),
    HardwareType.V100: (16, 128, 96, "Memory-limited on 16GB variant"),
    HardwareType.CPU: (1, 32, 16, "Memory-bandwidth bound"),
    HardwareType.UNKNOWN: (32, 128, 64, "Unknown hardware: cautious values, measure your own"),
}


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


@pytest.fixture
def mesh() -> ad.Mesh:
    return ad.Mesh(np.array(ad.devices()), ("data",))


def devices_of(array: ad.Array) -> set[ad.Device]:
    return set(array.sharding.device_set)


# --- HardwareType and BatchSizeRecommendation


def test_hardware_types_are_the_documents() -> None:
    assert [(member.name, member.value) for member in HardwareType] == [
        ("TPU_V5E", "tpu_v5e"),
        ("TPU_V5P", "tpu_v5p"),
        ("TPU_V4", "tpu_v4"),
        ("H100", "h100"),
        ("A100", "a100"),
        ("V100", "v100"),
        ("CPU", "cpu"),
        ("UNKNOWN", "unknown"),
    ]


def test_a_recommendation_is_a_frozen_value() -> None:
    rec = BatchSizeRecommendation(1, 2, 3)
    assert (rec.max_memory_batch_size, rec.notes) == (None, "")
    assert rec == BatchSizeRecommendation(1, 2, 3)
    assert hash(rec) == hash(BatchSizeRecommendation(1, 2, 3))
    assert dataclasses.replace(rec, notes="n").notes == "n"
    assert "critical_batch_size=3" in repr(rec)
    with pytest.raises(dataclasses.FrozenInstanceError):
        rec.notes = "changed"  # type: ignore[misc]


@pytest.mark.parametrize("hardware", list(HardwareType), ids=lambda member: member.value)
def test_the_table_has_the_documents_values(hardware: HardwareType) -> None:
    least, optimal, critical, notes = TABLE[hardware]
    rec = ad.get_batch_size_recommendation(hardware)
    assert rec == BatchSizeRecommendation(least, optimal, critical, None, notes)
    assert ad.get_batch_size_recommendation(hardware.value) is rec
    assert DevicePlacement().get_batch_size_recommendation(hardware) is rec


@pytest.mark.parametrize("falsy", [None, "", 0])
def test_no_hardware_means_the_detected_one(falsy: Any) -> None:
    assert ad.get_batch_size_recommendation(falsy).optimal_batch_size == 32
    assert DevicePlacement().get_batch_size_recommendation(falsy).optimal_batch_size == 32


@pytest.mark.parametrize("wrong", ["H100x", "gpu", 7, object(), ["h100"]])
def test_a_hardware_that_is_none_is_an_error_that_names_the_members(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"HardwareType\.TPU_V5E \('tpu_v5e'\).*HardwareType\.UNKNOWN"):
        ad.get_batch_size_recommendation(wrong)


def test_the_memory_estimate_is_of_the_devices_free_bytes() -> None:
    with ad.simulate(2, bytes_limit=1000):
        first, second = ad.devices()
        held = ad.device_put(np.zeros(200, np.uint8), first)
        placement = DevicePlacement(second)

        def examples(source: Any, **arguments: Any) -> int | None:
            rec = source.get_batch_size_recommendation(bytes_per_example=100, **arguments)
            assert rec.optimal_batch_size == 32
            return rec.max_memory_batch_size

        assert examples(ad) == 8
        assert examples(ad, model_state_bytes=301) == 4
        assert examples(ad, device=second) == 10
        assert examples(placement) == 10
        assert examples(placement, device=first) == 8
        assert examples(placement, model_state_bytes=2000) == 0
        assert examples(ad, hardware_type="cpu") == 8
        held.delete()
        assert examples(ad) == 10


def test_the_memory_estimate_for_hardware_one_does_not_own_needs_its_bytes() -> None:
    rec = ad.get_batch_size_recommendation(
        "a100", bytes_per_example=10**9, model_state_bytes=16 * 10**9, free_bytes=80 * 10**9
    )
    assert (rec.max_memory_batch_size, rec.critical_batch_size) == (64, 240)
    most = 2**63 - 1
    assert ad.get_batch_size_recommendation("a100", bytes_per_example=1, free_bytes=most).max_memory_batch_size == most
    for source in (ad, DevicePlacement()):
        with pytest.raises(ValueError, match="free memory of a h100 is not known, cpu:0 is a cpu; expected free_bytes"):
            source.get_batch_size_recommendation(HardwareType.H100, bytes_per_example=1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"bytes_per_example": 0}, ValueError, "bytes_per_example=0"),
        ({"bytes_per_example": -1}, ValueError, "bytes_per_example=-1"),
        ({"bytes_per_example": 1.5}, TypeError, "bytes_per_example is 1.5"),
        ({"bytes_per_example": 1, "model_state_bytes": -5}, ValueError, "model_state_bytes=-5"),
        ({"bytes_per_example": 1, "free_bytes": "80GB"}, TypeError, "free_bytes is '80GB'"),
        ({"bytes_per_example": 2**63}, ValueError, "below 2\\*\\*63"),
        ({"device": "cpu"}, TypeError, "device is 'cpu'"),
    ],
)
def test_bad_numbers_of_bytes_are_errors(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ad.get_batch_size_recommendation(**arguments)


# --- DevicePlacement itself


def test_the_default_device_is_the_first() -> None:
    placement = DevicePlacement()
    assert placement.default_device == ad.devices()[0]
    assert placement.num_devices == 8
    assert placement.hardware_type is HardwareType.CPU
    for name in ("hardware_type", "num_devices"):
        with pytest.raises(AttributeError):
            setattr(placement, name, 1)


def test_the_default_device_can_be_given_and_assigned() -> None:
    placement = DevicePlacement(ad.devices()[3])
    assert devices_of(placement.place_on_device(np.ones(3))) == {ad.devices()[3]}
    placement.default_device = ad.devices()[5]
    assert devices_of(placement.place_on_device(np.ones(3))) == {ad.devices()[5]}
    assert placement.num_devices == 8


@pytest.mark.parametrize("wrong", [3, 0, "cpu", object()])
def test_a_default_device_that_is_none_is_an_error_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"default_device is .* expected a Device; take one from"):
        DevicePlacement(wrong)
    placement = DevicePlacement()
    with pytest.raises(TypeError, match="default_device"):
        placement.default_device = wrong
    assert placement.default_device == ad.devices()[0]


def test_assigned_hardware_is_what_batch_sizes_are_checked_against() -> None:
    placement = DevicePlacement()
    placement._hardware_type = HardwareType.H100
    assert placement.hardware_type is HardwareType.H100
    assert placement.get_batch_size_recommendation().critical_batch_size == 298
    assert placement.get_device_info()["hardware_type"] == "h100"
    numbers = "(minimum 64, critical 298, optimum 320)"
    assert placement.validate_batch_size(32) == (
        False,
        f"Batch size 32 is below minimum 64 for h100: use at least 64 {numbers}",
    )
    assert placement.validate_batch_size(100) == (
        True,
        f"Batch size 100 is below critical 298 for h100: it works, but does not reach the roofline {numbers}",
    )
    assert placement.validate_batch_size(100, warn_suboptimal=False) == (
        True,
        f"Batch size 100 is acceptable for h100 {numbers}",
    )
    assert placement.validate_batch_size(298) == (True, f"Batch size 298 is acceptable for h100 {numbers}")
    assert placement.validate_batch_size(320) == (True, f"Batch size 320 is optimal for h100 {numbers}")


def test_validate_takes_every_integer() -> None:
    placement = DevicePlacement()
    assert placement.validate_batch_size(0)[0] is False
    assert placement.validate_batch_size(-7)[1].startswith("Batch size -7 is below minimum 1 for cpu")
    assert placement.validate_batch_size(np.int32(32))[0] is True  # type: ignore[arg-type]
    assert placement.validate_batch_size(2**63 - 1)[0] is True
    with pytest.raises(ValueError, match="below 2\\*\\*63"):
        placement.validate_batch_size(2**63)


@pytest.mark.parametrize("wrong", [32.0, "32", None, [32]])
def test_validate_refuses_what_is_not_an_integer(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"batch_size is .* expected an integer"):
        DevicePlacement().validate_batch_size(wrong)


def test_device_info_is_the_documents_and_json() -> None:
    info = DevicePlacement().get_device_info()
    assert info == {
        "num_devices": 8,
        "hardware_type": "cpu",
        "platforms": ["cpu"],
        "device_kinds": ["cpu"],
        "devices": [{"id": i, "platform": "cpu", "device_kind": "cpu"} for i in range(8)],
    }
    assert json.loads(json.dumps(info)) == info


# --- placing


def test_place_keeps_the_tree_and_the_values() -> None:
    data = {"b": np.arange(6).reshape(2, 3), "a": [1.5, None, (np.float32(2), True)]}
    for place in (DevicePlacement().place_on_device, ad.place_on_device):
        placed = place(data, ad.devices()[2])
        assert sorted(placed) == ["a", "b"]
        assert placed["a"][1] is None
        assert isinstance(placed["a"][2], tuple)
        leaves = [placed["b"], placed["a"][0], *placed["a"][2]]
        assert all(devices_of(leaf) == {ad.devices()[2]} for leaf in leaves)
        np.testing.assert_array_equal(np.asarray(placed["b"]), data["b"])
        assert placed["b"].dtype == np.int64
        assert [float(leaf) for leaf in leaves[1:]] == [1.5, 2.0, 1.0]


def test_place_copies() -> None:
    source = np.ones((64, 64), np.float32)
    placed = ad.place_on_device(source)
    source[:] = 7
    assert float(np.asarray(placed).max()) == 1.0


def test_place_takes_a_sharding(mesh: ad.Mesh) -> None:
    sharding = NamedSharding(mesh, P("data"))
    assert ad.place_on_device(np.ones(8), sharding).sharding == sharding
    assert DevicePlacement().place_on_device(np.ones(8), sharding).sharding == sharding


@pytest.mark.parametrize("wrong", ["gpu", 0, 3, object(), ["gpu"]])
def test_place_on_what_is_not_place_is_an_error(wrong: Any) -> None:
    for place in (DevicePlacement().place_on_device, ad.place_on_device):
        with pytest.raises(TypeError, match=r"the target is .*; (write ad\.|expected None, a Device, .*; take)"):
            place(np.ones(3), wrong)


@pytest.mark.parametrize("leaf", ["text", b"bytes", np.array(["a"]), np.array([object()]), object()])
def test_leaves_that_are_not_numbers_are_errors_that_name_them(leaf: Any, mesh: ad.Mesh) -> None:
    data = {"good": np.ones(8), "names": [leaf]}
    with pytest.raises(TypeError, match="names"):
        ad.place_on_device(data)
    with pytest.raises(TypeError, match="names"):
        ad.distribute_batch(data, NamedSharding(mesh, P("data")))


def test_distribute_places_each_leaf_with_the_sharding(mesh: ad.Mesh) -> None:
    sharding = NamedSharding(mesh, P("data"))
    batch = {"images": np.arange(16 * 3 * 2).reshape(16, 3, 2), "labels": np.arange(16)}
    for distribute in (DevicePlacement().distribute_batch, ad.distribute_batch):
        placed = distribute(batch, sharding)
        for name, source in batch.items():
            assert placed[name].sharding == sharding
            for i, shard in enumerate(placed[name].addressable_shards):
                assert shard.device == ad.devices()[i]
                np.testing.assert_array_equal(np.asarray(shard.data), source[2 * i : 2 * i + 2])


def test_distribute_takes_devices_and_trees_of_places(mesh: ad.Mesh) -> None:
    sharding = NamedSharding(mesh, P("data"))
    placed = ad.distribute_batch({"x": np.ones(8), "y": {"z": 3}}, {"x": sharding, "y": ad.devices()[1]})
    assert placed["x"].sharding == sharding
    assert devices_of(placed["y"]["z"]) == {ad.devices()[1]}
    assert devices_of(ad.distribute_batch(np.ones(2), ad.devices()[4])) == {ad.devices()[4]}
    assert devices_of(ad.distribute_batch(np.ones(2), None)) == {ad.devices()[0]}
    with pytest.raises(TypeError, match="distribute_batch: the target is 'data'"):
        ad.distribute_batch(np.ones(8), "data")


def test_distribute_refuses_a_spec_of_too_many_dimensions(mesh: ad.Mesh) -> None:
    with pytest.raises(ValueError, match="labels"):
        ad.distribute_batch({"images": np.ones((8, 2)), "labels": np.ones(8)}, NamedSharding(mesh, P("data", None)))


# --- replicating


@pytest.mark.parametrize("count", [None, 1, 3])
def test_replicate_puts_all_data_on_each_device(count: int | None) -> None:
    devices = None if count is None else ad.devices()[:count]
    data = {"w": np.arange(6.0).reshape(2, 3), "rate": 0.125, "step": np.int64(7)}
    placed = DevicePlacement().replicate_across_devices(data, devices)
    for name, source in data.items():
        assert placed[name].is_fully_replicated
        assert devices_of(placed[name]) == set(ad.devices()[:count])
        for shard in placed[name].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), source)


@pytest.mark.parametrize("kind", [tuple, iter, np.array], ids=["tuple", "iterator", "ndarray"])
def test_replicate_takes_any_sequence_of_devices(kind: Any) -> None:
    placed = DevicePlacement().replicate_across_devices(np.ones(2), kind(ad.devices()[2:4]))
    assert devices_of(placed) == set(ad.devices()[2:4])


def test_replicate_refuses_bad_devices() -> None:
    placement = DevicePlacement()
    first = ad.devices()[0]
    with pytest.raises(ValueError, match="devices is empty"):
        placement.replicate_across_devices(np.ones(2), [])
    with pytest.raises(ValueError, match="cpu:0 named more than once"):
        placement.replicate_across_devices(np.ones(2), [first, ad.devices()[1], first])
    with pytest.raises(TypeError, match=r"devices\[1\] is 'gpu' \(str\), devices\[2\] is 3"):
        placement.replicate_across_devices(np.ones(2), [first, "gpu", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected several Devices"):
        placement.replicate_across_devices(np.ones(2), first)  # type: ignore[arg-type]


# --- sharding the batch dimension


def test_shard_cuts_numpy_leaves_and_arrays_alike(mesh: ad.Mesh) -> None:
    images = np.arange(16 * 4).reshape(16, 4)
    labels = np.arange(16, dtype=np.int32)
    placed = DevicePlacement().shard_batch_dim({"images": images, "labels": ad.device_put(labels)}, mesh)
    assert placed["images"].sharding == NamedSharding(mesh, P("data", None))
    assert placed["labels"].sharding == NamedSharding(mesh, P("data"))
    assert placed["images"].sharding.spec == P("data", None)
    for i in range(8):
        np.testing.assert_array_equal(
            np.asarray(placed["images"].addressable_shards[i].data), images[2 * i : 2 * i + 2]
        )
        np.testing.assert_array_equal(
            np.asarray(placed["labels"].addressable_shards[i].data), labels[2 * i : 2 * i + 2]
        )


def test_shard_lets_other_leaves_through_and_replicates_scalars(mesh: ad.Mesh) -> None:
    data = {"x": np.ones(8), "name": "train", "step": 3, "none": None, "loss": np.array(0.5)}
    placed = DevicePlacement().shard_batch_dim(data, mesh)
    assert placed["name"] is data["name"]
    assert placed["step"] == 3
    assert type(placed["step"]) is int
    assert placed["none"] is None
    assert placed["loss"].is_fully_replicated
    assert float(placed["loss"]) == 0.5
    assert DevicePlacement().shard_batch_dim({"only": "text"}, mesh) == {"only": "text"}
    assert DevicePlacement().shard_batch_dim([], mesh) == []


@pytest.mark.parametrize(
    ("batch_axis", "spec_of_rank_3", "spec_of_rank_1"),
    [
        (0, P("data", None, None), P("data")),
        (1, P(None, "data", None), P()),
        (-1, P(None, None, "data"), P("data")),
        (7, P(), P()),
    ],
)
def test_shard_cuts_the_named_dimension(
    mesh: ad.Mesh, batch_axis: int, spec_of_rank_3: ad.PartitionSpec, spec_of_rank_1: ad.PartitionSpec
) -> None:
    placed = DevicePlacement().shard_batch_dim([np.ones((8, 16, 24)), np.ones(8)], mesh, batch_axis)
    assert placed[0].sharding == NamedSharding(mesh, spec_of_rank_3)
    assert placed[1].sharding == NamedSharding(mesh, spec_of_rank_1)


def test_shard_names_the_array_that_has_no_such_negative_dimension(mesh: ad.Mesh) -> None:
    with pytest.raises(
        IndexError, match=r"leaf \['labels'\] of shape \(8,\) has no dimension -2; expected a batch_axis of -1"
    ):
        DevicePlacement().shard_batch_dim({"images": np.ones((8, 8)), "labels": np.ones(8)}, mesh, -2)


def test_shard_takes_other_axes_and_several() -> None:
    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
    placement = DevicePlacement()
    assert placement.shard_batch_dim(np.ones(8), mesh, mesh_axis="y").addressable_shards[0].data.shape == (2,)
    both = placement.shard_batch_dim(np.arange(8), mesh, mesh_axis=("x", "y"))
    assert [int(np.asarray(shard.data)[0]) for shard in both.addressable_shards] == list(range(8))


def test_shard_names_all_leaves_that_cannot_be_cut(mesh: ad.Mesh) -> None:
    with pytest.raises(ad.errors.IndivisibleError) as caught:
        DevicePlacement().shard_batch_dim({"x": np.ones((9, 2)), "y": [np.ones(8), np.ones(12)]}, mesh)
    text = str(caught.value)
    assert "dimension 0 of leaf ['x'], shape (9, 2), is 9" in text
    assert "dimension 0 of leaf ['y'][1], shape (12,), is 12" in text
    assert "expected a multiple of 8, the parts of mesh axis 'data'" in text


def test_shard_refuses_bad_arguments(mesh: ad.Mesh) -> None:
    placement = DevicePlacement()
    with pytest.raises(ValueError, match="the mesh has no axis 'batch'; expected one of 'data'"):
        placement.shard_batch_dim(np.ones(8), mesh, mesh_axis="batch")
    with pytest.raises(TypeError, match="mesh is 'data'"):
        placement.shard_batch_dim(np.ones(8), "data")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"batch_axis is 0.5"):
        placement.shard_batch_dim(np.ones(8), mesh, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="names"):
        placement.shard_batch_dim({"x": np.ones(8), "names": np.array(["a"] * 8)}, mesh)


# --- prefetching (more in test_prefetch.py)


def test_prefetch_places_on_the_default_device_and_elsewhere(mesh: ad.Mesh) -> None:
    placement = DevicePlacement(ad.devices()[6])
    sharding = NamedSharding(mesh, P("data"))
    for place, expected in (
        (None, {ad.devices()[6]}),
        (ad.devices()[1], {ad.devices()[1]}),
        (sharding, set(ad.devices())),
    ):
        batches = list(placement.prefetch_to_device((np.full(8, i) for i in range(5)), place, buffer_size=3))
        assert [int(np.asarray(batch)[0]) for batch in batches] == list(range(5))
        assert all(devices_of(batch) == expected for batch in batches)
