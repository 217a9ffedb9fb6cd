# SPDX-License-Identifier: Apache-2.0
"""mesh_utils: JAX's recorded meshes and errors, the exact search, and their explanations."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import Mesh, cluster, mesh_utils
from artifex_devices.mesh_utils import create_device_mesh, create_hybrid_device_mesh, explain


class Device(SimpleNamespace):
    def __repr__(self):
        fields = ("id", "platform", "device_kind", "process_index")
        if hasattr(self, "coords"):
            return f"D{self.id}"
        return f"G({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"


def ids_of(mesh):
    return np.array([device.id for device in mesh.ravel()]).reshape(mesh.shape).tolist()


def listed(case):
    """The devices of a recorded case."""
    if "input_ids" in case:
        return [Device(id=i, platform=case["platform"], device_kind="x", process_index=0) for i in case["input_ids"]]
    if "devices" not in case:
        return [Device(id=i, platform="cpu", device_kind="x", process_index=0) for i in range(8)]
    if len(case["devices"][0]) < 7:
        return [Device(id=row[0], platform="gpu", device_kind="x", process_index=row[1]) for row in case["devices"]]
    return [
        Device(
            id=row[0], process_index=row[1], coords=list(row[2:5]), core_on_chip=row[5], slice_index=row[6],
            device_kind=case["device_kind"], platform="tpu",
        )
        for row in case["devices"]
    ]  # fmt: skip


def outcome(case):
    devices = listed(case)
    shape = case.get("mesh_shape", ["a", 4])
    try:
        if case["fn"] == "create_hybrid_device_mesh":
            mesh = create_hybrid_device_mesh(
                tuple(shape), tuple(case["dcn_mesh_shape"]), devices, **case.get("kwargs", {})
            )
        else:
            options = {key: case.get(key, False) for key in ("allow_split_physical_axes", "contiguous_submeshes")}
            mesh = create_device_mesh(tuple(shape), devices, **options)
    except (ValueError, NotImplementedError, AssertionError) as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {"ids": ids_of(mesh)}


def test_every_recorded_mesh_and_error_of_jax(shared_topologies):
    cases = json.loads((shared_topologies / "device_mesh_cases.json").read_text())["cases"]
    assert len(cases) == 71
    wrong = {}
    for case in cases:
        expected = {key: case[key] for key in ("ids", "error", "message") if key in case}
        if outcome(case) != expected:
            wrong[case["case"]] = outcome(case)
    assert wrong == {}


@pytest.mark.parametrize("shape", [(8, 16), (16, 8), (128,), (2, 64), (4, 4, 8)])
def test_stand_ins_are_ordered_as_the_devices_themselves(shape):
    devices = cluster.tpu("v4", (4, 4, 8)).devices()
    fields = ("id", "platform", "device_kind", "process_index", "coords", "core_on_chip", "slice_index")
    stand_ins = [Device(**{name: getattr(device, name) for name in fields}) for device in devices]
    for options in ({}, {"search": "exact"}):
        options["allow_split_physical_axes"] = True
        mesh = create_device_mesh(shape, devices, **options)
        assert ids_of(create_device_mesh(shape, stand_ins, **options)) == ids_of(mesh)
        assert sorted(device.id for device in mesh.ravel()) == list(range(128))
        assert explain(create_device_mesh(shape, stand_ins, **options)).axes == explain(mesh).axes


def test_without_devices_those_of_the_world_are_taken():
    with ad.simulate(cluster.tpu("v4", (2, 2, 1))):
        mesh = Mesh(create_device_mesh((1, 4)), ("x", "y"))
        assert [device.id for device in mesh.devices.ravel()] == [0, 2, 1, 3]
    with ad.simulate(8):
        assert ids_of(create_device_mesh((2, 4))) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_slices_lie_along_the_outer_axes():
    slices = cluster.tpu("v4", (2, 2, 1), slices=4).devices()
    mesh = create_hybrid_device_mesh((2, 2), (2, 2), slices)
    assert ids_of(mesh) == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    nodes = cluster.dgx("h100", nodes=2).devices()
    assert ids_of(create_hybrid_device_mesh((1, 8), (2, 1), nodes)) == [list(range(8)), list(range(8, 16))]


@pytest.mark.parametrize(
    ("shape", "options", "error", "text"),
    [
        ((2, 2, 4), {}, NotImplementedError, r"index 1 of size 2 with remaining assignable mesh \[0, 0, 4\]"),
        (16, {}, TypeError, "expected a sequence of ints; write"),
        ((-4, -4), {}, ValueError, "mesh_shape has sizes below 1"),
        ((3, 5), {}, ValueError, r"Number of devices 16 must equal the product of mesh_shape \(3, 5\)$"),
        ((4, 4), {"search": "best"}, ValueError, "search is 'best'"),
        ((4, 4), {"traffic": (1, 1)}, ValueError, "traffic is given, which JAX's rule does not use"),
        ((4, 4), {"search": "exact", "traffic": (1,)}, ValueError, "expected 2 finite numbers"),
        ((4, 4), {"search": "exact", "contiguous_submeshes": True}, ValueError, "contiguous_submeshes is for JAX's"),
    ],
)
def test_invalid_arguments_are_refused(shape, options, error, text):
    devices = cluster.tpu("v4", (2, 2, 4)).devices()
    with pytest.raises(error, match=text):
        create_device_mesh(shape, devices, **options)


def test_no_devices_and_no_sizes_are_refused():
    with pytest.raises(ValueError, match="Number of devices 0 must equal"):
        create_device_mesh((), [])
    with pytest.raises(TypeError, match="dcn_mesh_shape is"):
        create_hybrid_device_mesh((4, 1), (1.5,), cluster.tpu("v4", (2, 2, 1)).devices())
    for inside, outside in (((1,), (1,)), ((1,), (0,)), ((0,), (0,))):  # JAX: IndexError
        with pytest.raises(ValueError, match="create_hybrid_device_mesh: devices is empty; expected devices of as"):
            create_hybrid_device_mesh(inside, outside, [])


@pytest.mark.parametrize(("kind", "count"), [("TPU7x", 8), ("TPU v5 lite", 4), ("TPU v5p", 8), ("TPU v4", 4)])
def test_stand_ins_without_coords_are_reported(kind, count):
    devices = [Device(id=i, platform="tpu", device_kind=kind, process_index=0) for i in range(count)]
    with pytest.raises(ValueError, match=r"create_device_mesh: G\(id=0, .* has no coords; expected TPU devices with"):
        create_device_mesh((count,), devices)


def test_a_ring_of_eight_needs_no_coords():
    # As in JAX 0.10.2, which asks for them only where the number of devices leaves it open.
    devices = [Device(id=i, platform="tpu", device_kind="TPU v5 lite", process_index=0) for i in range(8)]
    assert ids_of(create_device_mesh((8,), devices)) == [0, 1, 2, 3, 7, 6, 5, 4]


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_stand_ins_without_an_id_are_reported(platform):
    devices = [Device(id=0, platform=platform, device_kind="x"), SimpleNamespace(platform=platform, device_kind="x")]
    with pytest.raises(TypeError, match=r"mesh_utils: namespace\(.* has no id; expected objects with id, platform"):
        create_device_mesh((2,), devices)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda devices: create_device_mesh((2, 2), 3), "devices is 3 .*; expected a sequence of devices"),
        (lambda devices: create_device_mesh((2, 2), [1, 2, 3, 4]), "4 .int. is not a device"),
        (lambda devices: create_hybrid_device_mesh((2, 2), (1,), 3), "devices is 3"),
        (lambda devices: create_device_mesh((2, 2), devices, search="exact", traffic=("a", 1)), "traffic is .'a', 1."),
        (lambda devices: explain(3), "3 .int. is not a device"),
        (lambda devices: explain(np.array(devices), traffic="a"), "traffic is 'a'"),
        (lambda devices: explain(np.array(devices), axis_names=3), "explain: axis_names is 3; expected a sequence"),
    ],
)
def test_arguments_of_other_types_are_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call(cluster.tpu("v4", (2, 2, 1)).devices())


def test_the_exact_search_finds_what_the_greedy_rule_does_not():
    devices = cluster.tpu("v4", (2, 2, 4)).devices()
    mesh = create_device_mesh((2, 2, 4), devices, search="exact")
    assert ids_of(mesh) == [[[0, 4, 8, 12], [1, 5, 9, 13]], [[2, 6, 10, 14], [3, 7, 11, 15]]]
    with pytest.raises(
        NotImplementedError, match=r"no assignment of mesh_shape \(2, 8\) to the torus 4x4x1 by whole axes"
    ):
        create_device_mesh((2, 8), cluster.tpu("v5e", (4, 4)).devices(), search="exact")
    with pytest.raises(ValueError, match="expected TPU devices, got gpu ones"):
        create_device_mesh((8,), cluster.dgx().devices(), search="exact")


def test_the_exact_search_gives_the_links_to_the_traffic():
    devices = cluster.tpu("v4", (2, 2, 4)).devices()
    greedy = create_device_mesh((4, 4), devices)
    assert ids_of(create_device_mesh((4, 4), devices, search="exact")) == ids_of(greedy)
    other = create_device_mesh((4, 4), devices, search="exact", traffic=(10, 1))
    assert [axis.links for axis in explain(other).axes] == ["x: line of 2 and y: line of 2", "z: line of 4"]
    traffic = (10 * 2**30, 2**30)
    # 10 GiB over two links and 1 over one, against the other way round; hops of 1e-6 s.
    assert explain(other, traffic=traffic).seconds == pytest.approx(2**30 * 0.75 * (10 / 9e10 + 1 / 4.5e10) + 5e-6)
    assert explain(greedy, traffic=traffic).seconds == pytest.approx(2**30 * 0.75 * (10 / 4.5e10 + 1 / 9e10) + 5e-6)


@pytest.mark.parametrize(
    ("generation", "dims", "shape"), [("v4", (2, 2, 4), (8, 2)), ("v4", (2, 2, 4), (2, 2, 4)), ("v5e", (4, 8), (8, 4))]
)
def test_without_traffic_all_axes_have_as_much(generation, dims, shape):
    devices = cluster.tpu(generation, dims).devices()

    def ids(**options):
        return ids_of(create_device_mesh(shape, devices, search="exact", allow_split_physical_axes=True, **options))

    assert ids() == ids(traffic=(1,) * len(shape))
    assert ids() != ids(traffic=(0,) * len(shape))


@pytest.mark.parametrize("shape", [(2, 64), (8, 16), (2, 4, 16), (32, 4), (4, 2, 16), (16, 2, 4)])
def test_the_exact_search_is_never_worse(shape):
    devices = cluster.tpu("v4", (4, 4, 8)).devices()
    exact = explain(create_device_mesh(shape, devices, search="exact", allow_split_physical_axes=True))
    greedy = explain(create_device_mesh(shape, devices, allow_split_physical_axes=True))
    assert exact.seconds <= greedy.seconds * (1 + 1e-4)  # hops are not searched over


def test_explain_reports_axes_links_and_the_order_by_id():
    devices = cluster.tpu("v4", (4, 4, 4)).devices()
    found = explain(create_device_mesh((16, 4), devices), axis_names=("data", "model"))
    assert [(axis.name, axis.links, axis.bandwidth, axis.hops) for axis in found.axes] == [
        ("data", "y: ring of 4 and z: ring of 4", 1.8e11, 4),
        ("model", "x: ring of 4", 9e10, 2),
    ]
    assert found.axes[1].seconds == pytest.approx(2**30 * 0.75 / 9e10 + 2e-6)
    text = str(explain(create_device_mesh((8, 8), devices, allow_split_physical_axes=True)))
    assert text.splitlines()[0] == "8x8 on TPU v4 4x4x4 (torus, wraps on x, y, z)"
    assert "in order of id:" in text
    assert text.splitlines()[-3:] == [
        "rates:  [S1 S5]",
        '[S1]    Google Cloud, "TPU v4", https://docs.cloud.google.com/tpu/docs/v4',
        '[S5]    "How to Scale Your Model", chapters Rooflines, TPUs and Sharding, https://jax-ml.github.io/scaling-book',
    ]
    # Rows of 8 in order of id: x, and half of y.
    naive = explain(create_device_mesh((8, 8), devices, allow_split_physical_axes=True)).naive_axes
    assert naive[1].links == "x: ring of 4 and y: line of 2"
    assert naive[0].links == "y: ring of 2, stride 2 and z: ring of 4"


def test_rings_that_are_not_grids_are_counted_by_their_links():
    devices = cluster.tpu("v4", (4, 4, 4)).devices()
    mixed = np.array(devices)[np.random.default_rng(0).permutation(64)].reshape(8, 8)
    good, bad = (explain(mesh) for mesh in (create_device_mesh((8, 8), devices, allow_split_physical_axes=True), mixed))
    assert bad.axes[0].links.startswith("a ring that shares its links ")
    assert bad.seconds > 2 * good.seconds
    assert bad.naive_seconds == good.naive_seconds


def test_slices_and_nodes_are_joined_by_the_network():
    mesh = create_hybrid_device_mesh((2, 2), (2, 1), cluster.tpu("v4", (2, 2, 1), slices=2).devices())
    data, model = explain(mesh, traffic=1e9).axes
    assert (data.links, data.slices) == ("y: line of 2 and 2 slices", 2)
    # Half of it crosses; two chips share that.
    assert data.seconds == pytest.approx(1e9 / 2 / 2 / 6.25e9 + 9.6e-6)
    assert (model.links, model.bandwidth) == ("x: line of 2", 4.5e10)
    nodes = cluster.dgx("h100", nodes=4).devices()
    outer, inner = explain(np.array(nodes).reshape(4, 8), traffic=1e9).axes
    assert (outer.links, outer.bandwidth) == ("4 slices", 5e10)
    assert (inner.links, inner.bandwidth) == ("switch, 8 devices", 4.5e11)
    assert explain(np.array(cluster.mi300x().devices())).axes[0].bandwidth == 7 * 6.4e10


def test_explain_reports_unknown_latencies(tmp_path):
    file = tmp_path / "lab.toml"
    file.write_text(
        'name = "lab"\nslices = 2\n[chip]\nname = "h100"\n[slice]\nchips = 4\nbandwidth = 4e11\n'
        "[network]\nbandwidth = 1e10\n"
    )
    devices = np.array(cluster.from_toml(file).devices())
    left_out = "left out, as not known: a step inside"
    assert explain(devices).source == f"{file}; between slices {file}; {left_out}, a step between slices"
    assert explain(devices[:4]).source == f"{file}; {left_out}"


def test_explain_follows_the_network_of_the_cluster_whatever_its_chips_are(tmp_path):
    file = tmp_path / "lab.toml"
    torus = "dims = [2, 4]\nwraps = [false, true]"
    file.write_text(f'name = "lab"\n[chip]\nname = "h100"\n[slice]\n{torus}\nbandwidth = 4e11\n')
    outer, inner = explain(np.array(cluster.from_toml(file).devices()).reshape(4, 2)).axes
    assert (outer.links, inner.links) == ("y: ring of 4", "x: line of 2")
    file.write_text('name = "lab"\n[chip]\nname = "tpu v4"\n[slice]\nchips = 8\nbandwidth = 4e11\n')
    assert explain(np.array(cluster.from_toml(file).devices())).axes[0].links == "switch, 8 devices"


def test_explain_refuses_unknown_networks():
    with ad.simulate(4), pytest.raises(ValueError, match="the network of cpu devices is not known"):
        explain(ad.make_mesh((2, 2), ("x", "y")))
    devices = np.array(cluster.dgx("v100", nodes=2).devices())
    with pytest.raises(ValueError, match="the bandwidth between slices is not known"):
        explain(devices)
    with pytest.raises(ValueError, match="the mesh has 1 axes and 32 devices, 2 names"):
        explain(devices, axis_names=("x", "y"))
    with pytest.raises(ValueError, match="traffic is -1"):
        explain(devices[:16], traffic=-1)


def test_an_axis_of_one_device_costs_nothing():
    found = explain(create_device_mesh((1, 4), cluster.tpu("v4", (2, 2, 1)).devices()))
    assert (found.axes[0].links, found.axes[0].seconds, math.isinf(found.axes[0].bandwidth)) == (
        "one device",
        0.0,
        True,
    )


def test_the_names_are_those_of_jax():
    from artifex_devices.experimental import mesh_utils as experimental

    assert experimental is mesh_utils
    assert ad.mesh_utils is mesh_utils
