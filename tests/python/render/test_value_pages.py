# SPDX-License-Identifier: Apache-2.0
"""Pages of clusters, accelerators, models and recommendations in notebooks."""

import html
import re
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
from artifex_devices import cluster, mesh_utils, models, planner
from artifex_devices.models import Operation, Optimizer, StepModel, Tensor
from artifex_devices.roofline import accelerator
from notebook_pages import Page


def cells_of(value):
    """The texts of the cells of a page, row by row."""
    page = value._repr_html_()
    Page(page)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def plain_text(value):
    """The text that IPython prints."""
    parts = []
    value._repr_pretty_(SimpleNamespace(text=parts.append), False)
    return "".join(parts)


def test_plans_print_as_tables_where_html_is_not_shown():
    mesh = ad.Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()), ("x",))
    ends = [ad.NamedSharding(mesh, ad.P("x")), ad.NamedSharding(mesh, ad.P())]
    for value in (
        planner.plan_reshard((8,), "int8", *ends),
        planner.plan_collective("all_gather", 1024, "x", mesh),
        planner.plan_step(models.mlp(embed=512, mlp=1024, layers=1, tokens=1024), mesh, {"batch": "x"}),
        planner.suggest(models.mlp(embed=512, mlp=1024, layers=1, tokens=1024), cluster.tpu("v5e", (2, 2)), top=1),
        mesh_utils.explain(mesh),
    ):
        assert plain_text(value) == str(value)


def test_a_cluster_shows_its_description():
    pod = cluster.tpu("v5e", (4, 4))
    assert "Cluster TPU v5e 4x4" in Page(pod._repr_html_()).letters
    rows = cells_of(pod)
    assert rows[1:3] == [["bfloat16", "197 TFLOP/s [S2 S5 S7]"], ["int8", "394 TFLOP/s [S2 S5 S7]"]]
    lines = pod.describe().splitlines()[1:]
    shown = [" ".join(row).replace("<wbr/>", "") for row in rows]  # long addresses may break
    assert shown == [html.escape(" ".join(line.split()), quote=True) for line in lines]


def test_the_longest_name_of_a_cluster_is_one_cell():
    assert ["tensorfloat32", "494.7 TFLOP/s [S8 S10 S12]"] in cells_of(cluster.dgx("h100"))


def test_an_accelerator_shows_its_numbers_and_sources():
    h100 = accelerator("h100")
    rows = dict(cells_of(h100))
    assert "NVIDIA H100 SXM" in Page(h100._repr_html_()).letters
    assert rows["peak bfloat16"] == "989 TFLOP/s"
    assert rows["memory"] == "80.0 GiB, 3350 GB/s"
    assert rows["links"] == "18 x NVLink 4, 25 GB/s each, one way"
    for source in h100.sources:
        assert rows[html.escape(source.title)].replace("<wbr/>", "") == html.escape(source.address)


def test_a_recommendation_shows_its_sizes():
    assert cells_of(ad.BatchSizeRecommendation(64, 128, 1298, None, "a < b")) == [
        ["minimum", "64"],
        ["optimal", "128"],
        ["critical", "1,298"],
        ["largest in memory", "not estimated"],
    ]
    page = Page(ad.BatchSizeRecommendation(64, 128, 298, 18000, "a < b")._repr_html_())
    assert "largest in memory18,000" in page.letters
    assert "a < b" in page.letters


def test_a_model_shows_its_tensors_and_operations():
    model = StepModel(
        "one layer",
        tensors=(
            Tensor("x", (1024, 512), ("batch", "embed")),
            Tensor("w", (512, 2048), ("embed_in", "mlp"), role="parameter"),
            Tensor("y", (1024, 2048), ("batch", "mlp"), "float32"),
        ),
        operations=(Operation("up", "bd,df->bf", ("x", "w"), "y"),),
        tokens=1024,
        optimizer=Optimizer(8),
    )
    assert cells_of(model) == [
        ["step", "training, 8 bytes of optimizer state per parameter"],
        ["parameters", "1,048,576"],
        ["tokens", "1,024"],
        ["batch", "1,024 over batch"],
        ["logical axes", "batch, embed, embed_in, mlp"],
        ["tensor", "role", "sizes", "dtype", "count"],
        ["x", "activation", "batch 1,024, embed 512", "bfloat16", "1"],
        ["w", "parameter", "embed_in 512, mlp 2,048", "bfloat16", "1"],
        ["y", "activation", "batch 1,024, mlp 2,048", "float32", "1"],
        ["operation", "kind", "einsum", "inputs", "output", "count"],
        ["up", "matmul", "bd,df-&gt;bf", "x, w", "y", "1"],
    ]
    assert plain_text(model).splitlines() == [
        "one layer",
        "  step          training, 8 bytes of optimizer state per parameter",
        "  parameters    1,048,576",
        "  tokens        1,024",
        "  batch         1,024 over batch",
        "  logical axes  batch, embed, embed_in, mlp",
    ]
    page = Page(models.mlp(embed=512, mlp=1024, layers=1, tokens=1024, optimizer=None)._repr_html_())
    assert "stepforward" in page.letters
    assert page.tags.count("details") == 2
