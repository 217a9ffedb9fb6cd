# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices plan`: the same numbers as from Python, and its errors."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from artifex_devices import cluster, mesh_utils, models, render, roofline
from artifex_devices.command_line import main
from artifex_devices.planner import plan_collective, plan_reshard, plan_step, suggest
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate
from artifex_devices.sharding import Mesh, NamedSharding, P

V5E = ("--cluster", "tpu v5e 4x4")


def output_of(capsys, *words):
    """Exit code, standard output and standard error."""
    code = main(["plan", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def found(capsys, *words):
    """The JSON of a command that succeeds."""
    code, out, err = output_of(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(capsys, *words):
    """What a command that is not understood says."""
    code, out, err = output_of(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("artifex_devices plan: ")
    return err


def test_a_mesh_is_explained_as_in_python(capsys):
    words = ("mesh", "--cluster", "tpu v4 4x4x8", "--mesh", "data=16,model=8")
    ordered = mesh_utils.create_device_mesh((16, 8), cluster.tpu("v4", (4, 4, 8)).devices())
    explanation = mesh_utils.explain(ordered, axis_names=("data", "model"))
    assert output_of(capsys, *words) == (0, f"{explanation}\n", "")
    plan = found(capsys, *words)
    assert plan["device_ids"] == [[device.id for device in row] for row in ordered]
    assert (plan["axis_names"], plan["shape"], plan["order"]) == (["data", "model"], [16, 8], "jax")
    assert plan["seconds"] == explanation.seconds
    assert [axis["links"] for axis in plan["naive_axes"]] == [axis.links for axis in explanation.naive_axes]


def test_the_exact_search_weighs_axes_by_traffic(capsys):
    words = ("mesh", "--cluster", "tpu v4 2x2x4", "--mesh", "a=4,b=4", "--order", "exact")
    first = found(capsys, *words, "--traffic", "a=10GB,b=1GB")
    other = found(capsys, *words, "--traffic", "b=10GB")
    assert [axis["bandwidth"] for axis in first["axes"]] == [9e10, 4.5e10]
    assert [axis["bandwidth"] for axis in other["axes"]] == [4.5e10, 9e10]
    assert (first["traffic"], other["traffic"]) == ([1e10, 1e9], [0.0, 1e10])


def test_an_axis_of_one_device_has_no_bandwidth_in_json(capsys):
    plan = found(capsys, "mesh", *V5E, "--mesh", "a=16,b=1")
    assert [axis["bandwidth"] for axis in plan["axes"]] == [9e10, None]


def test_a_torus_without_such_a_mesh_needs_attention(capsys):
    code, out, err = output_of(capsys, "mesh", "--cluster", "tpu v4 2x2x4", "--mesh", "a=2,b=2,c=4")
    assert (code, out) == (1, "")
    assert "Failed to find assignment for logical_axis_index 1 of size 2" in err
    assert "(Here: --order exact or --split; or other sizes.)" in err
    words = ("mesh", "--cluster", "tpu v4 2x2x4", "--mesh", "a=2,b=2,c=4", "--order", "exact")
    assert [axis["links"] for axis in found(capsys, *words)["axes"]] == [
        "y: line of 2",
        "x: line of 2",
        "z: line of 4",
    ]


def test_slices_are_placed_along_the_named_axes(capsys):
    words = ("mesh", "--cluster", "tpu v5e 4x4 slices=2", "--mesh", "data=8,model=4")
    plan = found(capsys, *words, "--slices", "data=2")
    ordered = mesh_utils.create_hybrid_device_mesh((4, 4), (2, 1), cluster.tpu("v5e", (4, 4), slices=2).devices())
    assert plan["device_ids"] == [[device.id for device in row] for row in ordered]
    assert "expected their axes of the mesh; write --slices data=2" in refused(capsys, *words)
    assert "there are 3 slices along 'data' of size 8" in refused(capsys, *words, "--slices", "data=3")
    assert "makes 4 slices; expected 2" in refused(capsys, *words, "--slices", "data=4")
    assert "no axis 'dat' (did you mean data?)" in refused(capsys, *words, "--slices", "dat=2")
    assert "expected one slice, got 2" in refused(capsys, *words, "--order", "exact")
    assert found(capsys, *words, "--order", "id")["device_ids"][1] == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("before", "after", "specs"),
    [
        ("x,_", "_,x", (P("x", None), P(None, "x"))),
        ("P(x, None)", "P(None, 'x')", (P("x", None), P(None, "x"))),
        ("x+y,_", 'P(None, ("y", x))', (P(("x", "y"), None), P(None, ("y", "x")))),
        ("x", " P( )", (P("x"), P())),
    ],
)
@pytest.mark.parametrize("way", ["copies", "collectives"])
def test_a_reshard_is_planned_as_in_python(before, after, specs, way, capsys):
    mesh = Mesh(mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices()), ("x", "y"))
    plan = plan_reshard((4096, 4096), "bfloat16", *(NamedSharding(mesh, spec) for spec in specs), way=way)
    words = ("reshard", "bfloat16[4096,4096]", before, after, *V5E, "--mesh", "x=4,y=4", "--way", way)
    assert output_of(capsys, *words) == (0, f"{plan}\n", "")
    assert found(capsys, *words) == json.loads(plan.to_json())


def test_a_reshard_uses_the_faster_strategy_by_default(capsys):
    words = ("reshard", "float32[8192,8192]", "x,y", "P()", "--cluster", "dgx h100 nodes=2", "--mesh", "x=2,y=8")
    assert found(capsys, *words)["way"] == "collectives"


def test_more_than_the_memory_limit_needs_attention(capsys):
    words = ("reshard", "float32[1024,1024]", "x,_", "_,_", *V5E, "--mesh", "x=4,y=4")
    code, out, err = output_of(capsys, *words, "--memory-limit", "4MiB", "--json")
    assert code == 1
    assert json.loads(out)["peak_bytes"] == 5 << 20
    assert "does not fit: plan_reshard: memory_limit is 4194304 bytes" in err
    assert found(capsys, *words, "--memory-limit", "5MiB")["peak_bytes"] == 5 << 20


def test_collectives_of_a_cluster_and_of_a_mesh(capsys):
    words = ("collective", "all_gather", "33.6MB", "x", *V5E)
    plan = plan_collective("all_gather", 33_600_000, "x", cluster.tpu("v5e", (4, 4)))
    assert output_of(capsys, *words) == (0, f"{plan}\n", "")
    assert found(capsys, *words)["bound"] == 33.6e6 * 3 / 4 / 45e9 + 3e-6

    torus = cluster.tpu("v4", (4, 4, 8))
    mesh = Mesh(mesh_utils.create_device_mesh((16, 8), torus.devices()), ("data", "model"))
    plan = plan_collective("all_reduce", 1 << 30, ("data", "model"), mesh)
    words = ("collective", "all_reduce", "1GiB", "data,model", "--cluster", "tpu v4 4x4x8", "--mesh", "data=16,model=8")
    assert found(capsys, *words) == json.loads(plan.to_json())


def test_permutes_have_their_pairs(capsys):
    words = ("collective", "permute", "1GB", "x", *V5E)
    plan = plan_collective("permute", 10**9, "x", cluster.tpu("v5e", (4, 4)), perm=[(0, 1), (1, 2)])
    assert output_of(capsys, *words, "--perm", "0:1, 1:2") == (0, f"{plan}\n", "")
    text = refused(capsys, *words)
    assert "expected --perm with permute and with no other op; write permute and --perm 0:1,1:0" in text
    assert "OP is all_gather and --perm is given" in refused(
        capsys, "collective", "all_gather", "1GB", "x", *V5E, "--perm", "0:1"
    )
    for wrong in ("", "0", "0:", "0:1,", "0:-1", "a:b"):
        assert f"--perm: {wrong!r} is not a list of FROM:TO" in refused(capsys, *words, "--perm", wrong)
    assert "plan_collective: " in refused(capsys, *words, "--perm", "0:4")


def test_the_picture_of_a_collective_is_its_mesh(tmp_path, capsys):
    mesh = Mesh(mesh_utils.create_device_mesh((4, 4), cluster.tpu("v5e", (4, 4)).devices()), ("a", "b"))
    path = tmp_path / "mesh.svg"
    words = ("collective", "all_gather", "1GB")
    assert output_of(capsys, *words, "a", *V5E, "--mesh", "a=4,b=4", "--svg", str(path)) == (0, "", "")
    assert path.read_text() == render.placed_mesh_svg(mesh)
    assert "--svg draws a mesh on its network; it needs --mesh" in refused(capsys, *words, "x", *V5E, "--svg")


def test_the_guide_shows_what_is_printed(capsys):
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "command_line.md").read_text(encoding="utf-8")
    code, out, err = output_of(capsys, "collective", "all_reduce", "1GB", "slice,chip", "--cluster", "dgx h100 nodes=4")
    assert (code, err) == (0, "")
    assert f"```text\n{out}```" in page


def test_the_guide_has_all_options(capsys):
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "command_line.md").read_text(encoding="utf-8")
    table = page.partition("| option | value |")[2].partition("\n\n")[0]
    for action in ("MODEL", "models", "clusters", "mesh", "reshard", "collective", "step"):
        with pytest.raises(SystemExit):
            main(["plan", action, "--help-all"])
        for option in set(re.findall(r"--[a-z]+(?:-[a-z]+)*", capsys.readouterr().out.partition("examples:")[0])):
            assert f"`{option}" in table or option in ("--help", "--help-all"), (action, option)


# --- Clusters ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tpu v5p 8x8x16 slices=2", cluster.tpu("v5p", (8, 8, 16), slices=2).name),
        ("TPU v5e 4x4", "TPU v5e 4x4"),
        ("dgx h100 nodes=3", cluster.dgx("h100", nodes=3).name),
        ("gpus h200 nodes=2 chips_per_node=4", cluster.gpus("h200", nodes=2, chips_per_node=4).name),
        ("nvl72 racks=2", cluster.nvl72(racks=2).name),
        ("mi300x", cluster.mi300x().name),
    ],
)
def test_presets(text, name, capsys):
    assert found(capsys, "collective", "all_gather", "1GB", "slice", "--cluster", text)["cluster"] == name


def test_network_bandwidth_of_a_preset_is_used(capsys):
    words = ("collective", "all_gather", "1GB", "slice", "--cluster", "dgx v100 nodes=2 network_bandwidth=1e9")
    assert found(capsys, *words)["bound"] == pytest.approx(1e9 / 2 / 1e9, rel=1e-4)  # and the latency
    code, out, err = output_of(capsys, *words[:-1], "dgx v100 nodes=2")
    assert (code, out) == (3, "")
    assert "give `network_bandwidth`" in err


LAB = """[chip]
name = "h100"

[slice]
chips = 4
bandwidth = 4.0e11
latency = 2e-6
"""


def test_files(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "my lab").write_text('name = "mine"\n' + LAB)
    words = ("collective", "all_gather", "1GB", "chip", "--cluster")
    assert found(capsys, *words, "lab.toml")["cluster"] == "lab.toml"
    assert found(capsys, *words, "my lab")["cluster"] == "mine"
    (tmp_path / "bad.toml").write_text(LAB + "latancy = 1e-6\n")
    assert "in bad.toml line 8: latancy of [slice] is not a key (did you mean latency?)" in refused(
        capsys, *words, "bad.toml"
    )
    assert "No such file" in refused(capsys, *words, "none.toml")
    assert "none.xml" in refused(capsys, *words, "none.xml nodes=2")


def test_a_recorded_machine_becomes_nodes(shared_topologies, capsys):
    path = shared_topologies / "xeon-2s-2xP100.xml"
    words = (
        "collective",
        "all_gather",
        "1GB",
        "slice",
        "--cluster",
        f"'{path}' nodes=4 network_bandwidth=1e10 network_latency=0",
    )
    nodes = cluster.from_xml(path, nodes=4, network_bandwidth=1e10, network_latency=0.0)
    plan = plan_collective("all_gather", 10**9, "slice", nodes)
    assert found(capsys, *words)["seconds"] == plan.seconds


def test_this_machine_is_a_cluster(capsys):
    assert (
        found(capsys, "collective", "broadcast", "1GB", "slice", "--cluster", "here")["cluster"]
        == cluster.this_machine().name
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tpy v4 2x2x4", "'tpy v4 2x2x4' names 'tpy v4', which is not a chip of the catalogue; expected a text"),
        ("v4 4x4", "has a shape of 2 sizes; expected 3, as slices of v4 have; write '16 v4' or '32 v4'"),
        ("h100", "'h100' has no size; expected a number of GPUs; write '1 x h100' or '8 x h100'"),
        ("", "'' names no chip; expected a text such as '64 x h100'"),
        ("tpu v4", "has no size; expected a shape or a number of chips; write '16 v4' or 'tpu v4 2x2x4'"),
        ("tpu v4 4x4x9", "TPU v4 has no slices of 4x4x9; expected one of 2x2x1"),
        ("tpu v9 4x4", "names 'v9', which is not a chip of the catalogue"),
        ("dgx h100 node=3", "has the option 'node'; expected nodes=, racks="),
        ("dgx h100 nodes=2.5", "has '2.5' for nodes; expected a whole number; write it as in nodes=2"),
        ("dgx h1000", "names 'h1000', which is not a chip of the catalogue (did you mean h100?); expected"),
        ("here nodes=2", "here has no 'nodes'; expected 'here [latency=...]'"),
        ("here latency=nan", "latency is 'nan'; expected a number"),
        ("here latency=1 latency=1", "latency is given more than once"),
        ("here you", "here has the word 'you' after it; expected 'here [latency=...]'; leave it out"),
        ("/nowhere/lab.toml", "--cluster: cluster.from_toml: '/nowhere/lab.toml' cannot be read: No such file"),
        ("dgx 'h100", "No closing quotation"),
        ("a" * 5000, "the text has 5000 characters; expected 200 at most"),
        ("a\0b", "expected characters that can be printed"),
    ],
    ids=lambda text: text[:30],
)
def test_invalid_clusters(text, says, capsys):
    assert says in refused(capsys, "collective", "all_gather", "1GB", "slice", "--cluster", text)


# --- Meshes, specs, arrays ---


@pytest.mark.parametrize(
    ("mesh", "says"),
    [
        ("data=4,model=5", "data=4,model=5 has 20 devices; expected 16, all of TPU v5e 4x4; write data=4,model=4"),
        ("data=3,model=5", "write data=16"),
        ("data=4,data=4", "axis 'data' is given twice"),
        ("data", "'data' is not an axis and its size"),
        ("data=-4", "'data=-4' is not an axis and its size"),
        ("data=16,", "'' is not an axis and its size"),
        ("_=16", "'_=16' is not an axis and its size"),
    ],
)
def test_invalid_meshes(mesh, says, capsys):
    assert says in refused(capsys, "mesh", *V5E, "--mesh", mesh)


@pytest.mark.parametrize(
    ("array", "before", "after", "says"),
    [
        ("4096,4096", "x", "_", "'4096,4096' is not a dtype with a shape"),
        ("bfloat16[4096,]", "x", "_", "is not a dtype with a shape"),
        (
            "bfloat17[4096]",
            "row",
            "_",
            "dtype is 'bfloat17' (str); expected a dtype or its name; did you mean bfloat16?",
        ),
        (
            "float32[4096]",
            "rows",
            "_",
            "FROM: the mesh has no axis 'rows' (did you mean row?); expected some of row, column",
        ),
        ("float32[4096]", "_", "rows", "TO: the mesh has no axis 'rows' (did you mean row?)"),
        ("float32[4096]", "P(row", "_", "FROM: 'P(row' is not a spec"),
        ("float32[4096]", "P(*row)", "_", "FROM: 'P(*row)' is not a spec"),
        ("float32[4096]", "P(3)", "_", "FROM: 'P(3)' is not a spec"),
        ("float32[4096]", "row+", "_", "FROM: 'row+' is not a spec"),
        ("float32[4096]", "", "_", "FROM: '' is not a spec"),
        ("float32[4096,4096]", "row,row", "_", "mesh axis 'row' is used in dimensions 0 and 1"),
        ("float32[4096]", "row,column", "_", "P('row', 'column')"),
        ("float32[6]", "row", "_", "dimension 0 of size 6 is split into 4 parts"),
    ],
)
def test_invalid_reshards(array, before, after, says, capsys):
    words = ("reshard", array, before, after, *V5E, "--mesh", "row=4,column=4")
    assert says in refused(capsys, *words)


def test_invalid_collectives_and_options(capsys):
    said = refused(capsys, "collective", "gather", "1GB", "x", *V5E)
    assert "'gather' is not a collective (did you mean all_gather?)" in said
    assert '"q" is not an axis of the cluster' in refused(capsys, "collective", "all_gather", "1GB", "q", *V5E)
    assert "they need --mesh; add it" in refused(capsys, "collective", "all_gather", "1GB", "x", *V5E, "--split")
    assert "--slices: expected several TPU slices" in refused(capsys, "mesh", *V5E, "--mesh", "a=16", "--slices", "a=2")
    traffic = ("mesh", *V5E, "--mesh", "data=16", "--traffic")
    assert "not an axis of the mesh with its bytes (did you mean data?)" in refused(capsys, *traffic, "dat=1GB")
    assert "data: expected bytes such as 4000000" in refused(capsys, *traffic, "data=many")
    with pytest.raises(SystemExit) as end:
        main(["plan", "reshard", "float32[3]", "_", "_", *V5E, "--mesh", "x=1", "--memory-limit", "lots"])
    assert end.value.code == 2
    assert "expected bytes such as 4000000" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["mesh", "reshard", "collective", "step"])
def test_help_has_examples_and_forms_of_clusters(action, capsys):
    with pytest.raises(SystemExit) as end:
        main(["plan", action, "--help-all"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert f"artifex_devices plan {action}" in text.partition("examples:")[2]
    assert "exit codes: 0 success" in text
    assert '"64 x h100"' in text


def test_large_clusters_are_ordered_by_id(capsys):
    words = ("mesh", "--cluster", "tpu v5p 16x16x24", "--mesh", "data=24,model=256", "--order", "id", "--json")
    code, out, _ = output_of(capsys, *words)
    assert code == 0
    assert np.array_equal(json.loads(out)["device_ids"], np.arange(6144).reshape(24, 256))


# --- Models ---

STEP = ("llama-2-7b", "--batch", "64", "--sequence", "4096", "--cluster", "tpu v5p 4x4x4")
RULES = ("--mesh", "data=16,model=4", "--rules", "batch=data,embed=data,mlp=model,kv_heads=model")


def test_a_step_is_planned_as_in_python(capsys):
    mesh = Mesh(mesh_utils.create_device_mesh((16, 4), cluster.tpu("v5p", (4, 4, 4)).devices()), ("data", "model"))
    model = models.transformer("llama-2-7b", batch=64, sequence=4096)
    plan = plan_step(model, mesh, {"batch": "data", "embed": "data", "mlp": "model", "kv_heads": "model"})
    assert output_of(capsys, "step", *STEP, *RULES) == (0, f"{plan}\n", "")
    assert found(capsys, "step", *STEP, *RULES) == json.loads(plan.to_json())


def test_decoding_is_a_forward_step_with_a_cache(capsys):
    words = ("llama-3-8b", "--batch", "16", "--sequence", "1", "--forward", "--cache", "8192", "--cluster", "dgx h100")
    plan = found(capsys, "step", *words, "--mesh", "model=8", "--rules", "kv_heads=model,mlp=model,vocab=model")
    assert (plan["training"], plan["limit"], plan["memory"]["given"]) == (False, "memory", 2 << 30)


def test_several_mesh_axes_shard_one_logical_axis(capsys):
    plan = found(capsys, "step", *STEP, "--mesh", "a=16,b=4", "--rules", "batch=a+b,embed=b")
    assert (plan["rules"]["batch"], plan["rules"]["embed"]) == (["a", "b"], ["b"])


def test_a_step_that_does_not_fit_needs_attention(capsys):
    words = ("llama-2-70b", *STEP[1:], "--mesh", "data=64", "--rules", "batch=data", "--json")
    code, out, err = output_of(capsys, "step", *words)
    assert (code, err) == (1, "")
    assert not json.loads(out)["fits"]


# --- Lists ---


def test_models_are_listed_with_their_ids(capsys):
    rows = found(capsys, "models")["models"]
    assert [row["name"] for row in rows] == list(models.SHAPES)
    row = next(row for row in rows if row["name"] == "mixtral-8x7b")
    shape = models.SHAPES["mixtral-8x7b"]
    assert row == {
        "name": "mixtral-8x7b",
        "ids": ["mistralai/Mixtral-8x7B-v0.1"],
        "parameters": 46_702_792_704,
        "active_parameters": shape.parameters.active,
        "source": shape.source,
    }
    code, out, err = output_of(capsys, "models")
    assert (code, err) == (0, "")
    assert re.search(r"^mixtral-8x7b +46,702,792,704 +12,879,925,248 +mistralai/Mixtral-8x7B-v0.1$", out, re.MULTILINE)
    assert re.search(r"^llama-3-70b +70,553,706,496 +70,553,706,496 +meta-llama/Meta-Llama-3-70B$", out, re.MULTILINE)


def test_chips_are_listed_with_a_cluster_that_has_them(capsys):
    document = found(capsys, "clusters")
    for row in document["clusters"]:
        parts = cluster.from_text(row["text"]).parts
        assert row["memory_bytes"] == parts["memory_bytes"][0]
        assert row["peak_flops"] == {name: figure[0] for name, figure in parts["peak_flops"].items()}
        assert set(row["sources"]) <= set(document["sources"])
    assert {"8 x h100", "tpu v5e 4x4", "72 x gb200"} <= {row["text"] for row in document["clusters"]}
    code, out, err = output_of(capsys, "clusters")
    assert (code, err) == (0, "")
    assert re.search(r"^8 x h100 .* 80.0 GiB +989 TFLOP/s bfloat16 ", out, re.MULTILINE)


# --- This machine ---


@pytest.fixture
def measured(monkeypatch):
    """A measurement of this machine that takes no time."""
    rate = Rate(4e10, 4e10, 0.0, 0.05, 9, "loops")
    conditions = Conditions(
        "2026-11-22T16:00:00+00:00", "a processor", "avx2", 2, 2, 1, True, None, None, None, 1, None, "2.0", "0.1.0"
    )
    rates = {"float32": rate, "float64": rate}
    found = MeasuredRoofline("all CPU devices", rates, {}, rate, (), conditions, from_cache=True)
    monkeypatch.setattr(roofline, "measure_roofline", lambda: found)
    return found


def test_measured_rates_of_this_machine(measured, capsys):
    here = cluster.this_machine(measured=measured)
    chips = here.device_count
    model = models.transformer("llama-2-7b", batch=chips, sequence=8, optimizer=None, dtype="float32")
    plan = plan_step(model, Mesh(np.array(here.devices()), ("x",)), {"batch": "x"})
    words = ("llama-2-7b", "--batch", str(chips), "--sequence", "8", "--forward", "--measured", "--rules", "batch=x")
    words = (*words, "--cluster", "here")
    code, out, err = output_of(capsys, "step", *words, "--dtype", "float32", "--mesh", f"x={chips}", "--json")
    assert json.loads(out) == json.loads(plan.to_json())
    assert err == "artifex_devices plan: rates of this machine: read from the cache, 2026-11-22T16:00:00+00:00\n"
    code, out, err = output_of(capsys, "step", *words, "--mesh", f"x={chips}")
    assert (code, out) == (3, "")
    assert "only FLOP/s of float32 are measured: add --dtype float32" in err
    words = ("step", *STEP, *RULES, "--measured")
    assert "--measured: --cluster is 'tpu v5p 4x4x4'; expected here, as only this machine" in refused(capsys, *words)


# --- Models of files ---

MINE = """layers = 4
embed = 1024
mlp = 4096
heads = 8
kv_heads = 8
head_dim = 128
vocab = 32000
"""


def test_models_from_files(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    words = ("--batch", "64", "--sequence", "512", "--cluster", "tpu v5e 4x4")
    shape = models.TransformerShape("mine", 4, 1024, 4096, 8, 8, 128, 32000)
    expected = suggest(shape, "tpu v5e 4x4", batch=64, sequence=512)
    assert found(capsys, str(path), *words) == json.loads(expected.to_json())
    path.write_text(MINE.replace("embed", "embd").replace("mlp = 4096", 'mlp = "wide"'))
    text = refused(capsys, str(path), *words)
    assert "line 2: embd is not a key (did you mean embed?); line 3: mlp is 'wide'; expected an integer" in text
    assert "embed is missing" in text
    path.write_text(f"{MINE}tied_embeddings = true\n")
    tied = suggest(replace(shape, tied_embeddings=True), "tpu v5e 4x4", batch=64, sequence=512)
    assert found(capsys, str(path), *words) == json.loads(tied.to_json())
    path.write_text(f'{MINE}\nsource = "a page"\n')
    assert "source is not a key" in refused(capsys, str(path), *words)
    path.write_text(MINE.replace("kv_heads = 8", "kv_heads = 3"))
    assert "heads is 8, not a multiple of 3 kv_heads" in refused(capsys, str(path), *words)
    assert "cannot be read: No such file or directory; expected a TOML file; correct the path" in refused(
        capsys, str(tmp_path / "none.toml"), *words
    )
    path.write_text(MINE + 'name = "a\\u001b[31mb"\n', encoding="utf-8-sig")
    text = refused(capsys, str(path), *words)
    assert r"line 8: name is 'a\x1b[31mb'; expected characters that can be printed" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("lama-2-7b", *STEP[1:], *RULES),
            "not a published model (did you mean llama-2-7b?); expected a name that `artifex_devices",
        ),
        (("llam", *STEP[1:], *RULES), "'llam' is not a published model (did you mean llama-2-7b?); expected a name"),
        ((*STEP, *RULES, "--cache", "8"), "cache is 8 in a training step"),
        ((*STEP, *RULES[:3], "batch=dat"), "'batch' is sharded over 'dat' (did you mean data?), which the mesh"),
        ((*STEP, *RULES[:3], "bach=data"), "'bach' is not a logical axis of the model"),
        ((*STEP, *RULES[:3], "batch"), "--rules: 'batch' is not a rule"),
        ((*STEP, *RULES[:3], "batch=data,batch=model"), "--rules: 'batch=model' is not a rule"),
        ((*STEP, *RULES[:3], "batch=data+"), "--rules: 'batch=data+' is not a rule"),
        ((*STEP, *RULES[:3], "mlp=data,embed=data"), "data shards both"),
    ],
)
def test_invalid_steps(words, says, capsys):
    assert says in refused(capsys, "step", *words)
