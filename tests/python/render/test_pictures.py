# SPDX-License-Identifier: Apache-2.0
"""Pictures of plans, of meshes on their network, of rooflines: well-formed, with the figures of what they picture."""

import re
import sys
import xml.etree.ElementTree as ET

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster, mesh_utils, models, render
from artifex_devices.command_line import main
from artifex_devices.planner import plan_reshard, plan_step
from artifex_devices.roofline import RooflinePoint, roofline
from artifex_devices.sharding import AbstractMesh, Mesh, NamedSharding, P
from matplotlib.text import Annotation
from notebook_pages import Page

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(picture):
    """The texts of a picture, in order; that it is XML is asserted on the way."""
    return [each.text for each in ET.fromstring(picture).iter(f"{SVG}text")]


def titles_of(picture):
    """What stands under the pointer, after the picture's own title."""
    return [each.text for each in ET.fromstring(picture).iter(f"{SVG}title")][1:]


def mesh_of(pod, sizes, names):
    return Mesh(np.array(pod.devices()).reshape(sizes), names)


def ends_of(mesh, *specs):
    return [NamedSharding(mesh, P(*spec)) for spec in specs]


# Meshes


def test_a_mesh_is_drawn_where_its_devices_are():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (2, 8), ("data", "model"))
    picture = render.placed_mesh_svg(mesh)
    words = texts_of(picture)
    assert words[:2] == ["Mesh('data': 2, 'model': 8) on TPU v5e 4x4", "data: 8 groups of 2"]
    assert words[2:18] == ["0"] * 8 + ["1"] * 8  # rows of 4 chips
    assert words[18:35] == ["model: 2 groups of 8", *(str(i) for i in (*range(8), *range(8)))]
    assert "tpu:13 at (1,3,0): data 1, model 5" in titles_of(picture)
    with pytest.raises(ValueError, match=r"placed_mesh_svg: .* network is not known; expected a mesh of a cluster's"):
        render.placed_mesh_svg(Mesh(np.array(ad.devices()[:1]), ("x",)))


def test_an_explanation_is_drawn_with_its_words():
    devices = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v4", (2, 2, 4)).devices())
    explanation = mesh_utils.explain(devices, axis_names=("data", "model"))
    words = texts_of(explanation.to_svg())
    assert words[0] == explanation.title
    assert [word for word in words if "groups" in word] == [
        f"{axis.name}: 4 groups of 4, {axis.links}" for axis in explanation.axes
    ]
    drawn = [int(re.match(r"tpu:(\d+) ", title)[1]) for title in titles_of(explanation.to_svg())]
    assert sorted(drawn) == sorted([*range(16), *range(16)])
    assert texts_of(explanation.to_svg(max_cells=8))[-1] == "shown: 1 of 4 layers along z: 4 of 16 devices"
    page = Page(explanation._repr_html_())
    assert page.pictures == [explanation.to_svg()]
    assert "in order of id:" in page.letters


def test_nodes_of_gpus_count_their_devices_from_zero():
    devices = mesh_utils.create_device_mesh((2, 8), cluster.dgx("h100", nodes=2).devices())
    picture = mesh_utils.explain(devices, axis_names=("data", "model")).to_svg()
    assert [word for word in texts_of(picture) if word.startswith("node")] == ["node 0", "node 1"] * 2
    assert titles_of(picture)[-1] == "gpu:15 of node 1: data 1, model 7"


def test_devices_of_others_are_drawn_too():
    class Chip:
        platform, device_kind, core_on_chip, process_index, slice_index = "tpu", "TPU v5 lite", 0, 0, 0

        def __init__(self, number):
            self.id, self.coords = 10 + number, (number % 2, number // 2, 0)

    chips = np.array([Chip(number) for number in range(4)], dtype=object).reshape(2, 2)
    assert "tpu:13 at (1,1,0): 0 1, 1 1" in titles_of(mesh_utils.explain(chips).to_svg())


@pytest.mark.parametrize(
    ("pod", "sizes", "note"),
    [
        (("v5e", (16, 16)), (16, 16), "x to the right (ends joined), y down (ends joined)"),
        (("v5p", (16, 20, 28)), (28, 320), "shown: 3 of 28 layers along z: 960 of 8960 devices"),
        (("v4", (8, 16, 16)), (16, 128), "shown: 8 of 16 layers along z: 1024 of 2048 devices"),
    ],
    ids=["256", "8960", "2048"],
)
def test_big_meshes_stay_small_and_say_what_is_left_out(pod, sizes, note):
    devices = mesh_utils.create_device_mesh(sizes, cluster.tpu(*pod).devices())
    picture = mesh_utils.explain(devices, axis_names=("data", "model")).to_svg()
    assert texts_of(picture)[-1] == note
    assert len(picture) < 100_000
    root = ET.fromstring(picture)
    assert max(float(root.get("width")), float(root.get("height"))) < 1300


def test_notebooks_show_a_clusters_mesh_on_its_network():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (4, 4), ("data", "model"))
    page = Page(mesh._repr_html_())
    assert page.pictures == [render.placed_mesh_svg(mesh), render.mesh_svg(mesh, 128)]
    assert "data: 4 groups of 4" in texts_of(page.pictures[0])
    assert "device ids" in page.letters


# Reshards


def test_arrows_have_the_bytes_that_the_copies_have():
    mesh = mesh_of(cluster.tpu("v5e", (2, 2)), (4,), ("x",))
    plan = plan_reshard((64, 96), "float32", *ends_of(mesh, ("x", None), (None, "x")), way="copies")
    words = texts_of(plan.to_svg())
    assert words[0] == "reshard of (64, 96) float32: P('x', None) -> P(None, 'x'), 4 devices"
    sent = [copy for copy in plan.copies if copy.source != copy.destination]
    assert len(sent) == 12
    assert {copy.bytes for copy in plan.copies} == {1536}
    assert words.count("1.5 KiB") == 12
    assert words.count("1.5 KiB stay") == 4
    assert "16 direct copies" in words
    assert f"{plan.busiest_bytes / 1024} KiB into the busiest, " in "".join(words)
    assert [word for word in words if re.fullmatch(r"TPU \d", word)] == [f"TPU {i}" for i in range(4)] * 4


def test_many_pairs_are_summed_by_host():
    pod = cluster.dgx("h100", nodes=2)
    mesh = mesh_of(pod, (16,), ("x",))
    plan = plan_reshard((1024, 1024), "int8", *ends_of(mesh, ("x", None), (None, "x")), way="copies")
    words = texts_of(plan.to_svg())
    between = sum(copy.bytes for copy in plan.copies if copy.source < 8 <= copy.destination)
    assert words.count(f"{between / 1024} KiB") == 2
    assert words.count("host 0: GPU 0-7") == 2
    assert words[-1].startswith("arrows: between hosts, which stand for 240 pairs of devices; in all ")
    assert f"{plan.bytes_by_link['network'] / 1024} KiB network" in words[-1]


def test_a_slice_of_many_hosts_shows_the_busiest_device():
    mesh = mesh_of(cluster.tpu("v5e", (16, 16)), (16, 16), ("x", "y"))
    plan = plan_reshard((4096, 4096), "int8", *ends_of(mesh, ("x", "y"), ("y", "x")), way="copies")
    words = texts_of(plan.to_svg())
    assert words[-1] == (
        "arrows: what the busiest device receives, 1 of 240 pairs of devices; in all 15.0 MiB same slice"
    )
    assert words.count("64.0 KiB") == 1


def test_collectives_are_steps_over_the_arrow():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (4, 4), ("x", "y"))
    plan = plan_reshard((1024, 1024), "float32", *ends_of(mesh, ("x", "y"), (None, "x")), way="collectives")
    words = texts_of(plan.to_svg())
    for step in plan.steps:
        assert step.text in words
    assert words[-1] == "collectives: their algorithms decide which device sends to which, so no arrows are drawn"


def test_an_empty_plan_is_reported():
    mesh = mesh_of(cluster.tpu("v5e", (2, 2)), (4,), ("x",))
    words = texts_of(plan_reshard((8, 8), "int8", *ends_of(mesh, ("x", None), ("x", None)), way="copies").to_svg())
    assert words[-1] == "nothing to do"


def test_abstract_meshes_have_no_devices_to_draw():
    pod = cluster.tpu("v5e", (2, 2))
    plan = plan_reshard((8, 8), "int8", *ends_of(AbstractMesh((4,), ("x",)), ("x", None), (None, "x")), cluster=pod)
    assert "no picture: an AbstractMesh has no devices to draw" in plan._repr_html_()
    with pytest.raises(ValueError, match="reshard_svg"):
        plan.to_svg()


# Arrays


def test_an_array_that_is_not_there_is_drawn_with_its_sharding():
    pod = cluster.tpu("v5e", (2, 2))
    mesh = mesh_of(pod, (2, 2), ("x", "y"))
    page = Page(ad.ShapeDtypeStruct((8, 6), "float32", sharding=NamedSharding(mesh, P("x", "y")))._repr_html_())
    assert "float32(8, 6), 192 bytes" in page.letters
    assert "per device(4, 3), 48 bytes" in page.letters
    assert titles_of(page.pictures[0])[-1] == "[4:8, 3:6] TPU 3"
    assert Page(ad.ShapeDtypeStruct((8,), "int8")._repr_html_()).pictures == []
    abstract = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    assert Page(ad.ShapeDtypeStruct((8,), "int8", sharding=abstract)._repr_html_()).pictures == []
    assert "does not fit" in ad.ShapeDtypeStruct((7, 2), "int8", sharding=NamedSharding(mesh, P("x")))._repr_html_()


def test_arrays_of_rank_3_are_slices(devices):
    mesh = ad.make_mesh((2, 2, 2), ("x", "y", "z"))
    array = ad.device_put(np.zeros((4, 6, 8), np.int8), NamedSharding(mesh, P("x", "y", "z")))
    (picture,) = Page(array._repr_html_()).pictures
    for shard in array.addressable_shards:
        rows, columns, depth = ((part.start, part.stop) for part in shard.index)
        place = f"[{rows[0]}:{rows[1]}, {columns[0]}:{columns[1]}] dimension 2: {depth[0]}:{depth[1]}"
        assert f"<title>{place}: CPU {shard.device.id}</title>" in picture


# Rooflines


def test_a_roofline_has_its_limits_and_batches():
    v5e = roofline("tpu_v5e")
    ax = v5e.plot([1, 64, 512], network_bandwidth=4.5e10)
    assert ax.get_title() == "roofline of TPU v5e, bfloat16"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "bfloat16: 197 TFLOP/s",
        "memory: 819 GB/s, ridge point at 240.5 FLOP per byte",
        "network, for each byte that crosses it: 45 GB/s, ridge point at 4378 FLOP per byte",
    ]
    assert points_of(ax) == [("batch 1", 1, 8.19e11), ("batch 64", 64, 64 * 8.19e11), ("batch 512", 512, 1.97e14)]
    memory = ax.get_lines()[1]
    assert (memory.get_xdata()[1], memory.get_ydata()[1]) == (v5e.ridge_point, v5e.peak_flops)
    layered = v5e.plot([64], layer=(4096, 4096), points=[RooflinePoint("mine", 60, 4e13)], ax=ax.figure.subplots())
    (_, intensity, _), mine = points_of(layered)
    assert (round(intensity, 2), mine) == (62.06, ("mine", 60, 4e13))
    fills = [line.get_markerfacecolor() for line in layered.get_lines() if line.get_marker() == "o"]
    assert fills[0] == "none" != fills[1]
    assert layered is not ax
    assert layered.figure is ax.figure
    assert "240.5 FLOP per byte" in Page(v5e._repr_html_()).letters
    assert h100_without_batches() == [1, 8, 64, 512]


def h100_without_batches():
    return [intensity for _, intensity, _ in points_of(roofline("h100").plot())]


def points_of(ax):
    """(label, x, y) of each point, in the order of drawing."""
    points = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    labels = [text.get_text() for text in ax.texts if isinstance(text, Annotation)]
    return [(label, *map(float, point)) for label, point in zip(labels, points, strict=True)]


def test_charts_need_matplotlib_and_its_axes(monkeypatch):
    with pytest.raises(TypeError, match=r"^Roofline.plot: ax is 3 \(int\); expected an Axes of matplotlib"):
        roofline("h100").plot(ax=3)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"^Roofline.plot: matplotlib .* pip install 'artifex_devices\[plots\]'"):
        roofline("h100").plot()
    assert "FLOP per byte" in roofline("h100")._repr_html_()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batches": [0]}, ValueError, "a value of batches is 0; expected 1 to"),
        ({"batches": [1.5]}, TypeError, r"a value of batches is 1.5 \(float\); expected a whole number"),
        ({"layer": (4,)}, ValueError, r"layer is \(4,\); expected two sizes"),
        ({"network_bandwidth": -1}, ValueError, "network_bandwidth is -1; expected a finite number above 0"),
        ({"network_bandwidth": "fast"}, TypeError, r"network_bandwidth is 'fast' \(str\)"),
        (
            {"points": [RooflinePoint("a", 0.0)]},
            ValueError,
            "flops_per_byte of a is 0.0; expected a finite number above 0",
        ),
    ],
)
def test_points_that_cannot_be_drawn(options, error, text):
    with pytest.raises(error, match=text):
        roofline("h100").plot(**options)


def test_a_step_is_a_point_for_each_batch():
    pod = cluster.tpu("v5e", (4, 4))
    mesh = mesh_of(pod, (4, 4), ("data", "tensor"))
    rules = {"batch": "data", "mlp": "tensor"}
    small, large = (
        plan_step(models.transformer("llama-2-7b", batch=batch, sequence=2048), mesh, rules) for batch in (4, 64)
    )
    ax = small.plot([large])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[:2] == [
        "bfloat16: 197 TFLOP/s",
        f"memory: 819 GB/s, ridge point at {roofline('tpu_v5e').ridge_point:.4g} FLOP per byte",
    ]
    expected = []
    for plan in (small, large):
        moved = sum(product.bytes for product in plan.products) + plan.update_bytes
        received = sum(each.bytes_received * each.count for each in plan.collectives)
        rate = plan.flops / plan.seconds
        sides = {"memory": moved, "network": received}
        expected += [(f"batch {plan.model.batch}, {of}", plan.flops / each, rate) for of, each in sides.items()]
    assert points_of(ax) == expected
    other = plan_step(models.transformer("llama-2-7b", batch=4, sequence=2048), mesh, {"batch": "data"})
    with pytest.raises(ValueError, match=r"StepPlan.plot: .* other rules"):
        small.plot([other])


# The command line


def test_plans_are_written_as_pictures(capsys, tmp_path):
    words = ["--cluster", "tpu v5e 4x4", "--mesh", "x=4,y=4", "--svg"]
    path = tmp_path / "mesh.svg"
    assert main(["plan", "mesh", *words, str(path)]) == 0
    devices = mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices())
    assert path.read_text(encoding="utf-8") == mesh_utils.explain(Mesh(devices, ("x", "y"))).to_svg()
    assert main(["plan", "reshard", "int8[64,64]", "x,_", "_,x", *words]) == 0
    assert texts_of(capsys.readouterr().out)[0].startswith("reshard of (64, 64) int8: P('x', None) -> P(None, 'x')")
    step = ["step", "llama-2-7b", "--batch", "16", "--sequence", "2048", "--rules", "batch=x,mlp=y,embed=x,vocab=y"]
    assert main(["plan", *step, *words]) == 1  # it does not fit, and is drawn all the same
    drawn = texts_of(capsys.readouterr().out)
    assert any(text.startswith("llama-2-7b (16 x 2048 tokens), training step of ") for text in drawn)
    assert [drawn.count(f"batch 16, {of}") for of in ("memory", "network")] == [1, 1]
    assert main(["plan", "mesh", *words, "/nowhere/x.svg"]) == 2
    assert "cannot be written" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", "mesh", *words, "-", "--json"])
    assert "not allowed with" in capsys.readouterr().err


def test_functions_return_pictures_that_notebooks_draw():
    mesh = ad.make_mesh((1,), ("x",))
    pictures = [
        render.mesh_svg(mesh),
        render.sharding_svg(NamedSharding(mesh, P("x")), (4, 4)),
        render.machine_svg(ad.Machine.live()),
        render.placed_mesh_svg(mesh_of(cluster.tpu("v5e", (4, 4)), (16,), ("x",))),
    ]
    assert repr(pictures[0]) == "<Picture 202 x 114: Mesh('x': 1): 1 cpu device>"
    for picture in pictures:
        assert Page(picture._repr_html_()).pictures == [picture]


def test_what_cannot_be_drawn_is_named():
    for name, argument, kind in (
        ("machine_svg", "machine", "Machine"),
        ("mesh_svg", "mesh", "Mesh"),
        ("mesh_text", "mesh", "Mesh"),
        ("placed_mesh_svg", "mesh", "Mesh"),
    ):
        with pytest.raises(TypeError, match=rf"^{name}: {argument} is None \(NoneType\); expected a {kind}; "):
            getattr(render, name)(None)
    for name in ("sharding_svg", "sharding_text"):
        with pytest.raises(
            TypeError, match=rf"^{name}: sharding is None \(NoneType\); expected a Sharding; write Named"
        ):
            getattr(render, name)(None, (4, 4))
    mesh = ad.make_mesh((1,), ("x",))
    with pytest.raises(TypeError, match=r"^mesh_svg: max_cells is 'a' \(str\); expected an int; leave it out"):
        render.mesh_svg(mesh, max_cells="a")
    assert render.mesh_svg(mesh, 2**70) == render.mesh_svg(mesh)


@pytest.mark.parametrize("others", [5, None, [5], "ab"])
def test_what_is_not_a_plan_is_not_drawn_into_a_roofline(others):
    mesh = Mesh(np.array(cluster.tpu("v5e", (4, 4)).devices()), ("x",))
    plan = plan_step(models.mlp(embed=512, mlp=1024, layers=1, tokens=1024), mesh, {"batch": "x"})
    with pytest.raises(
        TypeError, match=r"^StepPlan.plot: others is .*; expected StepPlans of other batches; write plan"
    ):
        plan.plot(others)


def test_a_device_that_is_there_twice_has_no_explanation():
    devices = cluster.tpu("v5e", (4, 4)).devices()
    with pytest.raises(
        ValueError, match=r"^explain: TpuDevice\(id=3, .*\) is in the mesh 4 times; expected each device onc"
    ):
        mesh_utils.explain(np.array([devices[3]] * 4))
    nodes = cluster.dgx("h100", nodes=2).devices()
    with pytest.raises(ValueError, match=r"is in the mesh 2 times; expected each device once; remove the duplicates"):
        mesh_utils.explain(np.array([*nodes[1:], nodes[1]]))
