# SPDX-License-Identifier: Apache-2.0
"""Whole texts, pages and pictures of Arrays, shardings, meshes, clusters, models and plans."""

import base64
import contextlib
import io
import re
import textwrap

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster, debug, mesh_utils, models, planner, render
from artifex_devices.roofline import accelerator, roofline
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P
from recorded_texts import check_recorded


def readable(page):
    """The page without the styles that all share, and with the titles of its pictures."""
    page = re.sub(
        r'<img alt="([^"]*)"[^>]*base64,([^"]*)"/>',
        lambda found: f"[picture {found[1]}, {len(base64.b64decode(found[2]))} bytes]",
        page,
    )
    return re.sub(r' style="[^"]*"', "", page).replace("<tr>", "\n<tr>")


@contextlib.contextmanager
def eight():
    with ad.simulate(8):
        yield ad.make_mesh((2, 4), ("x", "y"))


def values():
    """Arrays with every kind of placement, by name."""
    with eight() as mesh:
        line = ad.make_mesh((8,), ("line",))
        block = np.arange(64.0).reshape(8, 8)
        some = Mesh(np.array(ad.devices())[[0, 2, 3, 5]], ("x",))
        even = Mesh(np.array(ad.devices())[[1, 2, 3]], ("x",))
        yield "one number", ad.device_put(1.5)
        yield "one device", ad.device_put(np.arange(3), ad.devices()[5])
        yield "no elements", ad.device_put(np.zeros((0, 3)), NamedSharding(mesh, P(None, None)))
        yield "rows and columns", ad.device_put(block, NamedSharding(mesh, P("x", "y")))
        yield "rows over both axes", ad.device_put(block, NamedSharding(mesh, P(("x", "y"))))
        yield "columns, replicas", ad.device_put(block.astype("float16"), NamedSharding(mesh, P(None, "y")))
        yield "replicated", ad.device_put(block, NamedSharding(mesh, P()))
        yield "uneven", ad.device_put(np.arange(11), NamedSharding(line, P("line"), uneven="last-short"))
        yield "some devices", ad.device_put(np.arange(8), NamedSharding(some, P("x")))
        yield "devices in a row", ad.device_put(np.arange(6), NamedSharding(even, P("x")))
        yield "pinned", ad.device_put(np.arange(8), NamedSharding(line, P("line"), memory_kind="pinned_host"))
        yield "another layout", ad.device_put(block, NamedSharding(mesh, P("x"))).T
        deleted = ad.device_put(block, NamedSharding(mesh, P("x")))
        deleted.delete()
        yield "deleted", deleted
        yield "a shard", ad.device_put(block, NamedSharding(mesh, P("x", "y"))).addressable_data(3)


def test_recorded_descriptions_of_arrays():
    found = {}
    for name, x in values():
        text = "" if x.is_deleted() else f"{x!r}\n{x}\n"
        text += re.sub(r"locked in RAM|not locked: .*", "PAGES", x.describe())
        page = re.sub(r"locked in RAM|not locked: [^<]*", "PAGES", x._repr_html_())
        found[name] = f"{text}\n{readable(page)}"
    check_recorded("arrays", found)


def test_recorded_pages_of_shardings_and_meshes():
    with eight() as mesh:
        explicit = ad.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Explicit,) * 3)
        many = Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
        abstract = AbstractMesh((2, 4), ("x", "y"))
        pages = {
            "mesh": mesh,
            "three axes": explicit,
            "mixed axes": many,
            "no axes": Mesh(np.array(ad.devices()[0]), ()),
            "sharding": NamedSharding(mesh, P("x", None)),
            "pinned": NamedSharding(mesh, P(("x", "y")), memory_kind="pinned_host"),
            "one device": ad.SingleDeviceSharding(ad.devices()[3]),
            "of no mesh": ad.PositionalSharding(ad.devices()) if hasattr(ad, "PositionalSharding") else mesh,
            "abstract": NamedSharding(abstract, P("x")),
            "struct": ad.ShapeDtypeStruct((8, 8), "float32"),
            "sharded struct": ad.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P("x", "y"))),
            "struct that does not fit": ad.ShapeDtypeStruct((3, 8), "int8", sharding=NamedSharding(mesh, P("x", "y"))),
            "abstract struct": ad.ShapeDtypeStruct((8, 8), "int8", sharding=NamedSharding(abstract, P("x"))),
            "shard": ad.device_put(np.arange(8), NamedSharding(mesh, P("y"))).addressable_shards[3],
            "cluster": cluster.dgx("h100", nodes=2),
            "chip": accelerator("tpu_v5e"),
            "slice": Mesh(np.array(cluster.tpu("v5e", (4, 4)).devices()).reshape(4, 4), ("x", "y")),
        }
        check_recorded("shardings_and_meshes", {name: readable(each._repr_html_()) for name, each in pages.items()})


def test_recorded_pictures():
    pod = cluster.tpu("v5e", (4, 4))
    mesh = mesh_utils.create_device_mesh((4, 4), pod.devices())
    placed = Mesh(mesh, ("x", "y"))
    ends = [NamedSharding(placed, P("x", None)), NamedSharding(placed, P(None, "x"))]
    with eight() as small:
        pictures = {
            "mesh": render.mesh_svg(small),
            "sharding": render.sharding_svg(NamedSharding(small, P("x", "y")), (8, 8)),
            "reshard": planner.plan_reshard((64, 64), "float32", *ends).to_svg(),
        }
    check_recorded("pictures", pictures)


def test_recorded_texts_of_values():
    with eight() as mesh:
        model = models.mlp(embed=512, mlp=1024, layers=2, tokens=1024)
        texts = {
            "model": model,
            "transformer": models.transformer("llama-3-8b", batch=4, sequence=128),
            "decoding": models.transformer("mixtral-8x7b", batch=4, sequence=1, cache=64, optimizer=None),
            "cluster": cluster.tpu("7x", (2, 2, 2), slices=2).describe(),
            "gpus": cluster.dgx("h100", nodes=3).describe(),
            "racks": cluster.nvl72(racks=2).describe(),
            "full mesh": cluster.mi300x(nodes=2).describe(),
            "chip": accelerator("h200"),
            "explanation": mesh_utils.explain(Mesh(np.array(cluster.tpu("v4", (2, 2, 4)).devices()), ("x",))),
            "roofline": roofline("tpu_v5e"),
            "roofline of a format": roofline("b200", "float8_e4m3fn"),
            "plan": planner.plan_step(model, mesh_of(cluster.tpu("v5e", (2, 2))), {"batch": "x"}),
            "pages of a model": readable(model._repr_html_()),
            "pages of a plan": readable(
                planner.plan_step(model, mesh_of(cluster.tpu("v5e", (2, 2))), {"batch": "x"})._repr_html_()
            ),
            "small mesh": mesh,
        }
        check_recorded("texts_of_values", {name: str(each) for name, each in texts.items()})


def test_recorded_pages_of_training_and_inference():
    nodes = cluster.dgx("h100", nodes=4)
    config = planner.TrainingConfig(batch=256, sequence=4096, tensor=8, pipeline=4, schedule="interleaved", chunks=2)
    run = planner.plan_training("llama-2-7b", nodes, config, measured=9.5)
    large = planner.plan_training("llama-3-70b", cluster.dgx("h100"), planner.TrainingConfig(batch=8, sequence=4096))
    found = planner.suggest(
        "llama-2-7b", nodes, batch=256, sequence=4096, zero=[1, 3], context=1, device_counts=[32, 16], progress=False
    )
    pinned = {"zero": 3, "offload_optimizer": False}
    nothing = planner.suggest("llama-3.1-405b", nodes, batch=32, sequence=8192, progress=False, **pinned)
    pod = cluster.tpu("v5p", (4, 4, 4))
    served = planner.plan_inference("mixtral-8x7b", pod, batch=32, prompt=1024, output=512, tensor=8, expert=8)
    many = planner.plan_inference("llama-3-70b", cluster.dgx("h100"), batch=4096, prompt=8192, output=512, tensor=4)
    pages = {
        "a run": readable(run._repr_html_()),
        "a narrow run": f"{run:60}",
        "a run that does not fit": f"{large}\n{readable(large._repr_html_())}",
        "options": readable(found._repr_html_()),
        "no options": f"{nothing}\n{readable(nothing._repr_html_())}",
        "serving": f"{served}\n{readable(served._repr_html_())}\n{textwrap.fill(served.to_json(), 120)}",
        "serving that does not fit": f"{many}",
        "the schedule": run.to_svg("schedule").count("<rect"),
        "factors": f"{planner.Efficiency.of(pod)}\n{planner.Efficiency.of(nodes).replaced(matmul=0.5, network=0.25)}",
    }
    check_recorded("training_and_inference", {name: str(each) for name, each in pages.items()})


def mesh_of(pod):
    return Mesh(np.array(pod.devices()), ("x",))


@pytest.mark.parametrize(("sizes", "spec"), [((2, 4), P("x", "y")), ((8,), P("x")), ((2, 2, 2), P("x", None, "z"))])
def test_recorded_pictures_in_colour(sizes, spec, monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    with ad.simulate(8):
        sharding = NamedSharding(ad.make_mesh(sizes, tuple("xyz"[: len(sizes)])), spec)
        shape = (8,) * max(len(spec), len(sizes))
        debug.visualize_sharding(shape, sharding)
        debug.visualize_sharding(shape, sharding, color_map=lambda place: (place, 0.5, 1 - place, 1.0))
        debug.visualize_sharding(shape, sharding, use_color=False, scale=2, min_width=12, max_width=60)
        debug.visualize_array_sharding(ad.device_put(np.zeros(shape), sharding), use_color=False)
    check_recorded(f"colours_{len(sizes)}", {"pictures": stream.getvalue().replace("\x1b", "ESC")})
