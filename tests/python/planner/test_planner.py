# SPDX-License-Identifier: Apache-2.0
"""Plans of reshards and collectives: bytes that the execution counts, prices, limits, and how they are shown."""

import dataclasses
import json
import re

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _planner, cluster
from artifex_devices._core import internal
from artifex_devices.planner import Copy, Efficiency, plan_collective, plan_reshard
from artifex_devices.sharding import AbstractMesh, Mesh, NamedSharding, P, SingleDeviceSharding
from hypothesis import given
from hypothesis import strategies as st
from notebook_pages import Page, titles_of

AXES = {"x": 2, "y": 2, "z": 2}
IDEAL = Efficiency.ideal()


pytestmark = pytest.mark.usefixtures("settled_module")


@pytest.fixture(scope="module")
def pod():
    """A v5e slice of 4 x 4, as a mesh of x = 4 (its y axis) and y = 4 (its x axis)."""
    return cluster.tpu("v5e", (4, 4))


@pytest.fixture(scope="module")
def pod_mesh(pod):
    return Mesh(np.array(pod.devices()).reshape(4, 4), ("x", "y"))


def moved(source, destination):
    """Bytes that the execution counts."""
    with ad.transfers.record() as report:
        ad.device_put(source, destination).block_until_ready()
    return report.bytes("device-to-device")


@st.composite
def specs(draw):
    """Up to three mesh axes on two dimensions, in any order."""
    axes = draw(st.permutations(list(AXES)))
    ends = sorted(draw(st.lists(st.integers(0, 3), min_size=2, max_size=2)))
    return P(tuple(axes[: ends[0]]) or None, tuple(axes[ends[0] : ends[1]]) or None)


@given(specs(), specs(), st.sampled_from([(8, 8), (16, 8), (8, 24), (512, 1024)]), st.sampled_from(["int8", "float32"]))
def test_planned_bytes_are_the_bytes_that_the_execution_counts(before, after, shape, dtype):
    mesh = Mesh(np.array(ad.devices()).reshape(2, 2, 2), tuple(AXES))
    source, destination = NamedSharding(mesh, before), NamedSharding(mesh, after)
    value = ad.device_put(np.ones(shape, dtype), source)
    plan = plan_reshard(shape, dtype, source, destination)
    assert plan.way == "copies"
    assert moved(value, destination) == plan.bytes_copied == sum(plan.bytes_by_link.values())
    assert sum(copy.bytes for copy in plan.copies) == plan.bytes_copied
    assert plan.bytes_received + plan.bytes_by_link["same device"] == plan.bytes_copied


@pytest.mark.parametrize(
    ("devices", "before", "after"),
    [
        (("node:2 pu:4", 4), P("x"), P(None, "x")),
        (("node:2 pu:4", 4), P(), P("x")),
        (("node:4 pu:1", 4), P("x"), P()),
        (("node:4 pu:2", 4), P(None, "x"), P("x")),
    ],
)
def test_planned_bytes_are_those_of_several_memories(devices, before, after):
    text, count = devices
    with ad.simulate(text):
        mesh = Mesh(np.array(ad.devices()[:count]), ("x",))
        source, destination = NamedSharding(mesh, before), NamedSharding(mesh, after)
        value = ad.device_put(np.ones((64, 64), np.float32), source)
        plan = plan_reshard((64, 64), np.float32, source, destination)
        assert moved(value, destination) == plan.bytes_copied


def test_one_device_to_another_and_uneven_shards(devices):
    value = ad.device_put(np.ones((5, 3)), devices[0])
    target = SingleDeviceSharding(devices[1])
    plan = plan_reshard((5, 3), float, value.sharding, target)
    assert moved(value, target) == plan.bytes_copied
    assert plan.other is None
    assert plan.why_no_other.startswith("plan_reshard: SingleDeviceSharding")
    mesh = Mesh(np.array(devices), ("x",))
    uneven = NamedSharding(mesh, P("x"), uneven="last-short")
    value = ad.device_put(np.ones((5, 3)), uneven)
    target = NamedSharding(mesh, P())
    plan = plan_reshard((5, 3), float, uneven, target)
    assert moved(value, target) == plan.bytes_copied
    assert "uneven" in plan.why_no_other
    with pytest.raises(RuntimeError, match="whether XLA gathers everything is not known: shards are uneven"):
        _ = plan.xla_gathers_everything
    content = json.loads(plan.to_json())
    assert content["xla_gathers_everything"] is None
    assert content["why_xla_is_not_known"] == plan.why_xla_is_not_known


def test_collectives_and_copies_of_a_swap(pod_mesh, pod):
    rows, columns = NamedSharding(pod_mesh, P("x", None)), NamedSharding(pod_mesh, P(None, "x"))
    plan = plan_reshard((4096, 4096), "bfloat16", rows, columns, way="collectives")
    shard = 4096 * 4096 * 2 // 4
    (step,) = plan.steps
    assert (step.move, step.text, step.devices) == ("all_to_all", "all-to-all over x: dimension 0 to 1", 4)
    assert step.shard_bytes == (shard, shard)
    assert plan.busiest_bytes == step.busiest_bytes == shard * 3 // 4
    assert plan.lower_bound.busiest_bytes == shard * 3 // 4
    assert plan.bytes_by_device == dict.fromkeys(range(16), shard * 3 // 4)
    assert plan.peak_bytes == 2 * shard
    assert plan.is_cheapest
    assert plan.cluster is pod
    # A line of 4 without wrap: V / (4 W), and three hops.
    assert step.estimate.algorithm == "line, both directions"
    assert plan.bound == pytest.approx(4 * shard / (4 * 4.5e10) + 3e-6, rel=1e-12)
    assert plan.bound >= plan.lower_bound.estimate_seconds > 0
    # Messages of 32 MiB reach most of the rate.
    message = 4 * shard
    reached = message / (message + 2e6 * (2 * message / (message + 2e6)) ** 0.5)
    assert plan.seconds == pytest.approx(4 * shard / (4 * 4.5e10) / reached + 3e-6, rel=1e-12)
    assert plan.efficiency == Efficiency.published(pod)
    assert plan.other.way == "copies"
    assert plan.other.bytes_received == plan.bytes_received == plan.lower_bound.total_bytes
    assert plan.seconds_from.kind == "model"
    assert "45 GB/s [S2 S5]" in plan.seconds_from.text


def test_the_faster_strategy_is_chosen(pod_mesh):
    rows, columns = NamedSharding(pod_mesh, P("x", None)), NamedSharding(pod_mesh, P(None, "x"))
    plan = plan_reshard((4096, 4096), "bfloat16", rows, columns)
    assert plan.seconds <= plan.other.seconds


def test_seconds_need_a_cluster(named):
    plan = plan_reshard((8, 8), "float32", named("x"), named(None, "x"))
    with pytest.raises(RuntimeError, match=r"plan_reshard: seconds are not known without a network; .* give cluster="):
        _ = plan.seconds
    with pytest.raises(RuntimeError, match="give cluster="):
        _ = plan.steps[0].seconds
    assert plan.seconds_from is None
    assert plan.lower_bound.estimate_seconds is None


def test_real_devices_are_priced_as_if_on_a_cluster(named):
    plan = plan_reshard((8, 8), "float32", named("x"), named(None, "x"), cluster=cluster.dgx("h100"))
    assert plan.seconds > 0
    assert plan.cluster.name == cluster.dgx("h100").name


def test_nothing_to_do_takes_no_time(named):
    plan = plan_reshard((8, 8), "float32", named("x"), named("x"))
    assert plan.steps == ()
    assert (plan.seconds, plan.bytes_copied, plan.busiest_bytes) == (0, 0, 0)
    assert "nothing to do" in str(plan)


def test_abstract_meshes_need_a_cluster_that_is_large_enough():
    mesh = AbstractMesh((4, 4), ("x", "y"))
    before, after = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(("x", "y")))
    plan = plan_reshard((64,), "float32", before, after, cluster=cluster.tpu("v5e", (4, 4)))
    assert plan.busiest_bytes == 0
    with pytest.raises(ValueError, match=r"a mesh without devices has no network; .* give cluster="):
        plan_reshard((64,), "float32", before, after)
    with pytest.raises(ValueError, match=r"the mesh has 16 devices, the cluster TPU v5e 2x2 has 4; expected at most"):
        plan_reshard((64,), "float32", before, after, cluster=cluster.tpu("v5e", (2, 2)))
    huge = NamedSharding(AbstractMesh((1 << 31, 1 << 31), ("x", "y")), P("x"))
    with pytest.raises(ValueError, match="the mesh has 4611686018427387904 devices"):
        plan_reshard((1 << 40,), "float32", huge, huge, cluster=cluster.tpu("v5e", (2, 2)))


def test_devices_that_a_given_cluster_does_not_have(pod):
    last = NamedSharding(Mesh(np.array(pod.devices()[4:8]), ("x",)), P("x"))
    with pytest.raises(ValueError, match=r"device 4, but the cluster .* has ids 0 to 3"):
        plan_reshard((64,), "float32", last, last, cluster=cluster.tpu("v5e", (2, 2)))


def test_both_ends_are_on_one_cluster(pod, pod_mesh):
    here, there = (NamedSharding(pod_mesh, P("x")), SingleDeviceSharding(cluster.tpu("v5p", (2, 2, 2)).devices()[1]))
    with pytest.raises(
        ValueError, match="the ends are on TPU v5e 4x4 and TPU v5p 2x2x2; expected devices of one cluster"
    ):
        plan_reshard((64,), "float32", here, there)
    with pytest.raises(ValueError, match="the ends are on TPU v5e 4x4 and devices of this process"):
        plan_reshard((64,), "float32", here, SingleDeviceSharding(ad.devices()[0]))


@pytest.mark.parametrize("kinds", [("device", "pinned_host"), ("unpinned_host", "device")])
@pytest.mark.parametrize(("before", "after"), [(P("x"), P("x")), (P("x"), P()), (P(), P(None, "x")), (P(), P())])
def test_planned_bytes_are_those_between_kinds_of_memory(devices, kinds, before, after):
    mesh = Mesh(np.array(devices), ("x",))
    source, destination = (
        NamedSharding(mesh, spec, memory_kind=kind) for spec, kind in zip((before, after), kinds, strict=True)
    )
    value = ad.device_put(np.ones((64, 32), np.float32), source)
    plan = plan_reshard((64, 32), np.float32, source, destination)
    assert moved(value, destination) == plan.bytes_copied == sum(plan.bytes_by_link.values())
    assert plan.bytes_copied >= 64 * 32 * 4  # nothing is in place
    assert sum(copy.bytes for copy in plan.copies) == plan.bytes_copied
    assert f"memory of two kinds, {kinds[0]} and {kinds[1]}" in plan.why_no_other
    with pytest.raises(RuntimeError, match="two kinds"):
        _ = plan.xla_gathers_everything


def test_between_kinds_of_memory_all_bytes_cross_the_link_of_the_host(pod_mesh):
    chips, hosts = (NamedSharding(pod_mesh, P("x"), memory_kind=kind) for kind in ("device", "pinned_host"))
    for source, destination in ((chips, hosts), (hosts, chips)):
        plan = plan_reshard((1 << 20, 64), "float32", source, destination)
        shard = (1 << 20) * 64 * 4 // 4
        assert plan.bytes_copied == 16 * shard
        assert plan.peak_bytes == 2 * shard
        assert plan.bound == pytest.approx(shard / 1.6e10, rel=1e-12)
        assert plan.seconds == pytest.approx(shard / 1.6e10 / plan.efficiency.host, rel=1e-12)
        assert "host 0.8" in str(plan)
        assert plan.steps[0].estimate.limit == "host"
        assert plan.bytes_received == 0


def test_slices_meet_over_the_network():
    pod = cluster.tpu("v5e", (2, 2), slices=2)
    mesh = Mesh(np.array(pod.devices()).reshape(2, 4), ("slice", "chip"))
    plan = plan_reshard((1024,), "float32", NamedSharding(mesh, P("slice")), NamedSharding(mesh, P()), way="copies")
    assert plan.bytes_by_link == {"same device": 8 * 2048, "same chip": 0, "same slice": 0, "network": 8 * 2048}
    assert plan.lower_bound.bytes_by_host == (2048, 2048)
    assert plan.steps[0].estimate.limit == "network"
    gathered = plan_reshard(
        (1024,), "float32", NamedSharding(mesh, P("slice")), NamedSharding(mesh, P()), way="collectives"
    )
    assert gathered.bytes_by_link == {"same slice": 0, "network": 8 * 2048}


def test_unknown_rates_are_named():
    pod = cluster.dgx("v100", nodes=2)  # nobody publishes its network
    mesh = Mesh(np.array(pod.devices()).reshape(2, 16), ("node", "gpu"))
    plan = plan_reshard((1024,), "float32", NamedSharding(mesh, P("node")), NamedSharding(mesh, P()))
    assert plan.bytes_by_link == {"same device": 32 * 2048, "same chip": 0, "same slice": 0, "network": 32 * 2048}
    with pytest.raises(RuntimeError, match="network"):
        _ = plan.seconds
    assert "not known" in str(plan)
    assert json.loads(plan.to_json())["seconds"] is None
    inside = plan_reshard((1024,), "float32", NamedSharding(mesh, P("gpu")), NamedSharding(mesh, P()))
    assert inside.seconds > 0
    with pytest.raises(RuntimeError, match="network"):
        plan_collective("all_gather", 1e6, ("slice", "chip"), pod)


def test_large_clusters_are_planned_without_every_copy():
    pod = cluster.tpu("v5p", (16, 16, 16), slices=8)
    mesh = AbstractMesh((8, 64, 64), ("slice", "a", "b"))
    source = NamedSharding(mesh, P(("slice", "a"), "b"))
    plan = plan_reshard((2**15, 2**15), "bfloat16", source, NamedSharding(mesh, P()), cluster=pod)
    assert plan.way == "collectives"
    assert plan.busiest_bytes == plan.lower_bound.busiest_bytes == 2**31 - 2**16
    assert plan.why_no_other.startswith("plan_reshard: there are about 1.07e+09 direct copies; expected at most 65536")
    with pytest.raises(
        ValueError, match=r"about 1\.07e\+09 direct copies; expected at most 4194304 to plan one by one"
    ):
        plan_reshard((2**15, 2**15), "bfloat16", source, NamedSharding(mesh, P()), cluster=pod, way="copies")
    with pytest.raises(ValueError, match="direct copies; expected at most"):
        _ = plan.copies


def test_many_copies_are_planned_on_request():
    pod = cluster.tpu("v5p", (16, 16, 16), slices=32)  # 131,072 devices
    mesh = AbstractMesh((32, 4096), ("slice", "chip"))
    source, destination = NamedSharding(mesh, P(("slice", "chip"))), NamedSharding(mesh, P(("chip", "slice")))
    plan = plan_reshard((1 << 20,), "int8", source, destination, cluster=pod)
    assert plan.way == "collectives"
    assert plan.why_no_other.endswith('ask for them by way="copies", which takes seconds')
    asked = plan_reshard((1 << 20,), "int8", source, destination, cluster=pod, way="copies")
    assert asked.bytes_received == plan.bytes_received == asked.lower_bound.total_bytes
    assert asked.bytes_by_device == plan.bytes_by_device == asked.lower_bound.bytes_by_device
    assert asked.busiest_bytes == 8


def test_many_copies_are_planned_if_nothing_else_works():
    pod = cluster.tpu("v5e", (16, 16), slices=2)
    mesh = AbstractMesh((512,), ("chip",))
    source, destination = (NamedSharding(mesh, spec, uneven="last-short") for spec in (P("chip"), P()))
    plan = plan_reshard((1000,), "int8", source, destination, cluster=pod)
    assert plan.way == "copies"
    assert "uneven" in plan.why_no_other
    assert plan.bytes_received == plan.lower_bound.total_bytes == 512 * 1000 - 1000


def test_memory_limit_is_respected_or_raises(named):
    before, after = named("x"), named(None, "x")
    need = 2 * 8 * 8 * 4 // 2
    assert plan_reshard((8, 8), "float32", before, after, memory_limit=need).peak_bytes == need
    with pytest.raises(
        ValueError, match=rf"limit is {need - 1} bytes; expected at least {need} bytes for direct copies"
    ):
        plan_reshard((8, 8), "float32", before, after, memory_limit=need - 1)
    plan = plan_reshard((8, 8), "float32", named("x", "y"), named("y", "x"), memory_limit=64)
    assert plan.peak_bytes <= 64


def test_xla_is_not_predicted_where_the_rule_was_wrong():
    mesh = AbstractMesh((3, 4), ("x", "y"))
    pod = cluster.tpu("v4", (4, 4, 4))
    swap = plan_reshard(
        (12, 12), "int8", NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y", "x")), cluster=pod
    )
    with pytest.raises(RuntimeError, match="from one number of parts to another, and neither divides the other"):
        _ = swap.xla_gathers_everything
    move = plan_reshard((12, 12), "int8", NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x")), cluster=pod)
    assert move.xla_gathers_everything is False


def test_empty_arrays_have_the_same_steps(pod_mesh):
    source, destination = NamedSharding(pod_mesh, P("x")), NamedSharding(pod_mesh, P(None, "x"))
    plan = plan_reshard((0, 16), "int8", source, destination, way="collectives")
    assert [step.text for step in plan.steps] == ["all-to-all over x: dimension 0 to 1"]
    assert (plan.busiest_bytes, plan.steps[0].estimate.transfer) == (0, 0)


def test_copies_are_boxes_of_the_global_array(pod_mesh):
    source, destination = NamedSharding(pod_mesh, P("x")), NamedSharding(pod_mesh, P(None, "x"))
    plan = plan_reshard((4, 4), "int8", source, destination)
    first = [copy for copy in plan.copies if copy.destination == 0]
    assert first[0] == Copy(0, 0, ((0, 1), (0, 1)), 1)
    assert [copy.box for copy in first] == [((i, i + 1), (0, 1)) for i in range(4)]


def test_bars_show_what_each_device_receives_and_must_receive():
    mesh = Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()).reshape(2, 2), ("x", "y"))
    ends = NamedSharding(mesh, P(("x", "y"))), NamedSharding(mesh, P("y", "x"))

    def bars(way):
        plan = plan_reshard((8, 4), "int8", *ends, way=way)
        picture = Page(plan._repr_html_()).pictures[1]
        assert 'width="48" height="62"' in picture
        found = re.findall(r'<rect x="(\d+)" y="(\d+)" width="9" height="(\d+)".*<path d="M(\d+),(\d+)h9"', picture)
        assert [each[0] for each in found] == [each[3] for each in found] == ["0", "12", "24", "36"]
        return [tuple(map(int, (top, height, least))) for _, top, height, _, least in found]

    # Of 60: 4 and 8 bytes of 8, of which all must be received; 10 bytes, of which 4 and 8 must.
    assert bars("copies") == [(31, 30, 31), (1, 60, 1), (1, 60, 1), (31, 30, 31)]
    assert bars("collectives") == [(1, 60, 37), (1, 60, 13), (1, 60, 13), (1, 60, 37)]


def test_text_html_and_json_agree(pod_mesh):
    source, destination = NamedSharding(pod_mesh, P("x", "y")), NamedSharding(pod_mesh, P(None, ("y", "x")))
    plan = plan_reshard((1024, 1024), "float32", source, destination, way="collectives")
    text = str(plan)
    assert text.splitlines()[0] == ("reshard of (1024, 1024) float32: P('x', 'y') -> P(None, ('y', 'x')), 16 devices")
    assert "all-to-all over x: dimension 0 to 1" in text
    page = Page(plan._repr_html_())
    assert "all-to-all over x: dimension 0 to 1" in page.letters
    assert page.pictures[0] == plan.to_svg()
    assert [picture.count("<rect") for picture in page.pictures] == [32, 16]  # parts before and afterwards; bars
    assert titles_of(page.pictures[1]) == [
        f"device {device}: {count / 1024:.1f} KiB" for device, count in plan.bytes_by_device.items()
    ]
    content = json.loads(plan.to_json())
    assert content["seconds"] == plan.seconds
    assert content["bytes_by_device"] == {str(device): count for device, count in plan.bytes_by_device.items()}
    assert content["steps"][0]["seconds"] == plan.steps[0].seconds
    assert content["other"]["way"] == "copies"
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.way = "copies"
    with pytest.raises(TypeError):
        plan.bytes_by_device[0] = 1


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"dtype": None}, ValueError, "dtype is None"),
        (
            {"dtype": "float23"},
            TypeError,
            r"dtype is 'float23' \(str\); expected a dtype or its name; did you mean float32\?",
        ),
        ({"dtype": object}, TypeError, "dtype is object; expected a dtype of numbers"),
        ({"dtype": "U3"}, TypeError, "dtype is <U3; expected a dtype of numbers"),
        ({"dtype": "V0"}, TypeError, "expected a dtype of numbers"),
        ({"dtype": [("a", "i4")]}, TypeError, "expected a dtype of numbers"),
        ({"shape": (1 << 62, 8), "dtype": "float64"}, ValueError, "plan_reshard: "),
        (
            {"shape": (1 << 57, 8), "dtype": "float64"},
            ValueError,
            "plan_reshard: .* 9223372036854775808 bytes; expected f",
        ),
        ({"shape": 3}, TypeError, "shape is 3 .int.; expected a sequence of ints"),
        ({"shape": (8, -8)}, ValueError, "-8"),
        ({"shape": (7, 8)}, ValueError, "does not divide"),
        ({"src": P("x")}, TypeError, "src is P.* expected a Sharding"),
        ({"cluster": 4}, TypeError, "cluster is 4 .* expected a Cluster or None"),
        ({"memory_limit": 1.5}, TypeError, "memory_limit is 1.5"),
        ({"memory_limit": -1}, ValueError, "memory_limit is -1"),
        ({"memory_limit": True}, TypeError, "memory_limit is True"),
        ({"way": "quick"}, ValueError, "way is 'quick'"),
    ],
)
def test_bad_arguments_of_plan_reshard(named, arguments, error, text):
    good = {"shape": (8, 8), "dtype": "float32", "src": named("x"), "dst": named(None, "x")}
    with pytest.raises(error, match=f"(?s){text}"):
        plan_reshard(**good | arguments)


def test_unconstrained_dimensions_raise(named):
    with pytest.raises(ValueError, match="leaves a dimension UNCONSTRAINED"):
        plan_reshard((8, 8), "float32", named("x"), named(P.UNCONSTRAINED))


def test_int4_is_half_a_byte_on_a_cluster_and_a_byte_here(pod, pod_mesh):
    rows, columns = NamedSharding(pod_mesh, P("x", None)), NamedSharding(pod_mesh, P(None, "x"))
    for way in ("copies", "collectives"):
        packed = plan_reshard((4096, 4096), "int4", rows, columns, way=way, efficiency=IDEAL)
        whole = plan_reshard((4096, 4096), "int8", rows, columns, way=way, efficiency=IDEAL)
        assert packed.dtype.name == "int4"
        assert packed.bytes_received == whole.bytes_received // 2 == 16 * 4096 * 4096 // 4 * 3 // 4 // 2
        assert packed.busiest_bytes == packed.lower_bound.busiest_bytes == whole.busiest_bytes // 2
        assert packed.bytes_by_device[3] == whole.bytes_by_device[3] // 2
        assert packed.peak_bytes == whole.peak_bytes // 2
        assert packed.steps[0].shard_bytes == (4096 * 4096 // 8,) * 2
        transfers = [plan.steps[0].estimate.transfer for plan in (packed, whole)]
        assert transfers[0] == pytest.approx(transfers[1] / 2, rel=1e-12)
        assert packed.lower_bound.estimate_seconds == pytest.approx(whole.lower_bound.estimate_seconds / 2, rel=1e-12)
    moved = {copy[:3]: copy.bytes for copy in whole.copies}
    assert {copy[:3]: 2 * copy.bytes for copy in packed.copies} == moved  # boxes are of elements
    assert plan_reshard((4096, 4096), "int2", rows, columns).bytes_received == whole.bytes_received // 4
    # No dimension has shards of whole bytes: an element a byte.
    odd = plan_reshard((4, 4), "int4", rows, columns)
    assert odd.bytes_received == plan_reshard((4, 4), "int8", rows, columns).bytes_received
    with ad.simulate(2):
        mesh = ad.make_mesh((2,), ("x",))
        here = plan_reshard((8, 8), "int4", NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x")))
        assert here.bytes_received == 2 * 16


def test_permutes(pod, pod_mesh):
    ring = [(i, (i + 1) % 4) for i in range(4)]
    plan = plan_collective("permute", 4e6, "x", pod, perm=ring, efficiency=IDEAL)
    # On a line the last block comes back over every link, against the others.
    assert plan.steps[0].estimate.transfer == pytest.approx(1e6 / 4.5e10, rel=1e-12)
    assert plan.steps[0].estimate.latency == pytest.approx(3e-6, rel=1e-12)
    assert (plan.bytes_by_device, plan.peak_bytes, plan.devices, plan.groups) == (1e6, 2e6, 4, 4)
    assert plan.lower_bound.seconds == pytest.approx(1e6 / (2 * 4.5e10), rel=1e-12)  # a corner has two links
    # The mesh's y is the pod's x; both orders of axes are the same devices in other places.
    assert plan_collective("permute", 4e6, "y", pod_mesh, perm=ring, efficiency=IDEAL).seconds == plan.seconds
    expected = plan_collective("permute", 4e6, "x", pod, perm=ring)
    assert expected.bound == plan.seconds
    lost = 2e6 * (2 * 1e6 / (1e6 + 2e6)) ** 0.5
    assert expected.steps[0].estimate.transfer == pytest.approx(1e6 / 4.5e10 * (1e6 + lost) / 1e6, rel=1e-12)
    far = plan_collective("permute", 16e6, ("y", "x"), pod, perm=[(0, 3)])
    assert far.steps[0].estimate.latency == pytest.approx(3e-6, rel=1e-12)
    assert plan_collective("permute", 16e6, ("y", "x"), pod, perm=[]).seconds == 0
    assert "by the busiest device" in str(far)


@pytest.mark.parametrize(
    ("op", "perm", "error", "text"),
    [
        ("permute", None, ValueError, "perm is None; expected pairs of positions"),
        ("all_gather", [(0, 1)], ValueError, "expected pairs of positions with 'permute' and with no other op"),
        ("permute", [(0, 4)], ValueError, r"the pair \(0, 4\); expected positions 0 to 3"),
        ("permute", [(0, 1), (0, 2)], ValueError, "sends from position 0 twice"),
        ("permute", [(1, 0), (2, 0)], ValueError, "sends to position 0 twice"),
        ("permute", [(0, 1, 2)], TypeError, "expected pairs"),
        ("permute", [0, 1], TypeError, "expected pairs"),
        ("permute", [(0, 1.5)], TypeError, "expected pairs"),
        ("permute", [(0, 2**70)], TypeError, "expected pairs"),
    ],
)
def test_bad_permutes(pod, op, perm, error, text):
    with pytest.raises(error, match=text):
        plan_collective(op, 4e6, "x", pod, perm=perm)


def test_axes_of_a_mesh(pod_mesh, pod):
    named = plan_collective("all_to_all", 1e6, ("x", "y"), pod_mesh)
    assert (named.devices, named.groups) == (16, 1)
    assert named.seconds == plan_collective("all_to_all", 1e6, ("x", "y"), pod).seconds
    assert plan_collective("all_gather", 1e6, "y", pod_mesh).groups == 4
    shuffled = Mesh(np.array(pod.devices())[[0, 5, 1, 2]], ("x",))
    with pytest.raises(ValueError, match=r"are not a box of the cluster .* mesh_utils\.create_device_mesh"):
        plan_collective("all_gather", 1e6, "x", shuffled)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("psum", 1, "x"), ValueError, r"'psum' is not a collective \(did you mean all_reduce\?\)"),
        (("all_gathr", 1, "x"), ValueError, r"'all_gathr' is not a collective \(did you mean all_gather\?\)"),
        (("spam", 1, "x"), ValueError, "'spam' is not a collective; expected all_gather, reduce_scatter, all_reduce, "),
        ((3, 1, "x"), TypeError, "op is 3"),
        (("all_gather", -1, "x"), ValueError, "nbytes is -1"),
        (("all_gather", float("nan"), "x"), ValueError, "nbytes is nan"),
        (("all_gather", 10**400, "x"), ValueError, "nbytes is more than 1e30; expected 0 to"),
        (("all_gather", 1e308, "x"), ValueError, "nbytes is more than 1e30; expected 0 to"),
        (("all_gather", float("-inf"), "x"), ValueError, "nbytes is -inf; expected 0 to"),
        (("all_gather", "1", "x"), TypeError, "nbytes is '1'"),
        (("all_gather", 1, "z"), ValueError, '"z" is not an axis of the cluster'),
        (("all_gather", 1, ("x", "chip")), ValueError, '"chip" is not an axis'),
        (("all_gather", 1, ("x", "x")), ValueError, '"x" is named twice'),
        (("all_gather", 1, 3), TypeError, "axes is 3"),
    ],
)
def test_bad_arguments_of_plan_collective(pod, arguments, error, text):
    with pytest.raises(error, match=text):
        plan_collective(*arguments, pod)


def test_collectives_need_a_cluster(grid, pod_mesh):
    with pytest.raises(TypeError, match="expected a Cluster, or a Mesh of a cluster's devices"):
        plan_collective("all_gather", 1, "x", grid)
    with pytest.raises(ValueError, match=r"no axes \['q'\]; expected some of \['x', 'y'\]"):
        plan_collective("all_gather", 1, "q", pod_mesh)


def test_text_html_and_json_of_collectives(pod):
    plan = plan_collective("all_gather", 4 * 8.4e6, "x", pod)
    assert "line, both directions  608.8 us" in str(plan)
    assert "line, both directions608.8 us" in Page(plan._repr_html_()).letters
    lines = str(plan).splitlines()
    assert lines[4] == "  expected        608.8 us (model; the factors below)"
    assert lines[6] == "  bound           563 us at published rates; at least 280 us for any messages between devices"
    content = json.loads(plan.to_json())
    assert json.loads(plan_collective("all_gather", np.float32(4 * 8.4e6), "x", pod).to_json()) == content
    assert content["algorithms"][0]["seconds"] == content["seconds"] == plan.seconds
    assert (
        content["bound"] == plan.bound == plan_collective("all_gather", 4 * 8.4e6, "x", pod, efficiency=IDEAL).seconds
    )
    assert content["efficiency"]["links_half_bytes"]["value"] == 2e6
    assert content["axes"] == ["x"]


def test_all_reduces_of_a_node_use_its_switch():
    """NVLink SHARP: 482e9 of 700e9 bytes/s of bus bandwidth on 8 H200 [S12]; no other factor acts."""
    plan = plan_collective("all_reduce", 16e9, "chip", cluster.dgx("h200"))
    assert plan.algorithm == "sums in the switch"
    assert 2 * 16e9 * 7 / 8 / plan.seconds == pytest.approx(482e9, rel=0.01)
    assert plan.efficiency.sources["nvls"] == "S12, network chapter: 482e9 of 700e9 bytes/s of bus bandwidth on 8 H200"
    assert plan.efficiency.sources["nvls"].removeprefix("S12") in str(plan)


def test_factors_of_links_are_those_of_collectives_alone():
    pod = cluster.dgx("h100")
    plan = plan_collective("all_gather", 1e9, "chip", pod)
    assert plan.efficiency == Efficiency.published(pod)
    step = plan_collective("all_gather", 1e9, "chip", pod, efficiency=Efficiency.of(pod))
    assert step.bound == plan.bound < plan.seconds < step.seconds
    with pytest.raises(TypeError, match=r"efficiency is 0.8 \(float\); expected an Efficiency or None"):
        plan_collective("all_gather", 1e9, "chip", pod, efficiency=0.8)


def test_measured_rates_need_no_factors():
    rates = {"bandwidth": (1e9, "measured"), "memory_bandwidth": (1e10, "measured")}
    here = internal.make_cluster(cluster.dgx("h100").parts | rates)
    assert Efficiency.of(here).links == Efficiency.published(here).matmul == 1
    plan = plan_collective("all_gather", 1e9, "chip", here)
    assert plan.seconds == plan.bound
    assert "none (the rates are measured): the expected seconds are the bound" in str(plan)


def test_errors_name_arguments_of_any_type():
    pod = cluster.tpu("v5e", (4, 4))
    mesh = Mesh(np.array(pod.devices()).reshape(4, 4), ("x", "y"))
    rows = NamedSharding(mesh, P("x"))
    for way in (np.array([1, 2]), 3, "fast"):
        with pytest.raises(
            ValueError, match=r"^plan_reshard: way is .*; expected None, 'copies' or 'collectives'; leave"
        ):
            plan_reshard((4, 4), np.float32, rows, rows, way=way)
    with pytest.raises(ValueError, match=r"^plan_collective: nbytes is more than 1e30; expected 0 to 2\*\*63; give"):
        plan_collective("all_gather", 10**500, "x", pod)


def test_errors_about_unknown_rates_name_the_operation(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text("[chip]\nname = 'TPU v5p'\n[slice]\ndims = [4, 4, 4]\n")
    with pytest.raises(
        RuntimeError, match=r'^plan_collective: cluster "lab.toml": its bandwidth inside a slice is not kn'
    ):
        plan_collective("all_reduce", 1e9, "x", cluster.from_toml(path))


def test_a_reshard_of_which_some_steps_have_no_rate_has_their_seconds_only():
    pod = cluster.dgx("v100", nodes=2)  # the network between the nodes is not known
    mesh = Mesh(np.array(pod.devices()).reshape(2, 16), ("node", "gpu"))
    ends = ((1024, 64), "float32", NamedSharding(mesh, P("node", "gpu")), NamedSharding(mesh, P()))
    plan = plan_reshard(*ends, way="collectives", efficiency=IDEAL)
    between, inside = plan.steps
    assert (between.text, inside.text) == ("all-gather dimension 0 over node", "all-gather dimension 1 over gpu")
    # Of 16 parts each device receives 15 by 4 exchanges.
    assert inside.estimate.transfer == pytest.approx(15 * 16384 / 150e9, rel=1e-12)
    assert inside.estimate.latency == pytest.approx(4 * 3.4e-6, rel=1e-12)
    assert (between.estimate, inside.why_no_estimate) == (None, "")
    reason = r'cluster "2 nodes x 16 v100": its bandwidth between slices is not known; .* give `network_bandwidth`'
    for seconds_of in (between, plan):
        with pytest.raises(RuntimeError, match=f"^{reason}"):
            _ = seconds_of.seconds
    content = json.loads(plan.to_json())
    assert content["seconds"] is None
    assert [step["seconds"] for step in content["steps"]] == [None, inside.seconds]
    assert [step["algorithm"] for step in content["steps"]] == [None, "recursive doubling"]
    assert [step["limit"] for step in content["steps"]] == [None, "egress"]
    lines = str(plan).splitlines()
    assert lines[-2].endswith("not known")
    assert lines[-1].endswith("15.24 us   recursive doubling")
    (time,) = [line for line in lines if line.startswith("  time ")]
    assert re.match(rf"  time +not known \({reason}", time)
    # Neither way can be called the faster one: copies, as without a network.
    default = plan_reshard(*ends)
    assert (default.way, default.other.way) == ("copies", "collectives")
    assert "(the other: collectives, 248.0 KiB by the busiest device)" in str(default)
    # The other way round the step without a rate is the last one.
    turned = (NamedSharding(mesh, P(None, ("node", "gpu"))), NamedSharding(mesh, P("gpu")))
    back = plan_reshard(*ends[:2], *turned, way="collectives")
    assert [step.estimate is None for step in back.steps] == [False, True]
    assert json.loads(back.to_json())["seconds"] is None
    with pytest.raises(RuntimeError, match=f"^{reason}"):
        _ = back.seconds


def test_the_core_refuses_shardings_and_clusters_that_are_none():
    """As a forged pickle of a plan would pass them."""
    devices = cluster.tpu("v5e", (2, 2)).devices()
    placed = ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), ad.P("x"))
    for source, destination in ((None, placed), (placed, None)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            _planner.reshard_ingress([8], 4, source, destination)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _planner.default_efficiency(None)
