# SPDX-License-Identifier: Apache-2.0
"""Models and clusters as arguments: names, ids of the hub, files, texts, and what belongs to which kind of model."""

import json
from dataclasses import fields, replace

import pytest
from artifex_devices import cluster, mesh_utils, models
from artifex_devices.planner import TrainingConfig, plan_inference, plan_step, plan_training, suggest
from artifex_devices.planner.shape import shape_of
from artifex_devices.sharding import Mesh

NODE = cluster.gpus("h100")
RUN = {"batch": 64, "sequence": 4096}
STEP = models.mlp(embed=1024, mlp=4096, layers=4, tokens=2**16)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("llama-3-70b", "llama-3-70b"),
        ("Llama-3-70B", "llama-3-70b"),
        ("meta-llama/Meta-Llama-3-70B", "llama-3-70b"),
        ("meta-llama/meta-llama-3-70b", "llama-3-70b"),
        ("Meta-Llama-3-70B", "llama-3-70b"),  # without the organisation
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3-70b"),  # the same sizes
        ("Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("gpt2", "gpt2"),
    ],
)
def test_names_and_ids_of_models(text, name):
    assert plan_training(text, NODE, **RUN).model == models.SHAPES[name]


def test_files_of_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpt2").mkdir()
    config = {"model_type": "llama", "num_hidden_layers": 2}
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shape = models.from_hf_config(config)
    for path in ("./gpt2", "gpt2/config.json", tmp_path / "gpt2"):
        assert plan_training(path, NODE, **RUN).model == shape
    assert plan_training("gpt2", NODE, **RUN).model == models.SHAPES["gpt2"]  # a name is not a path
    (tmp_path / "mine.toml").write_text(
        "layers = 2\nembed = 64\nmlp = 128\nheads = 4\nkv_heads = 2\nhead_dim = 16\nvocab = 1000\nqkv_bias = true\n"
        'norm = "layer"\n'
    )
    mine = models.TransformerShape("mine", 2, 64, 128, 4, 2, 16, 1000, qkv_bias=True, norm="layer", source="mine.toml")
    assert plan_training("mine.toml", NODE, **RUN).model == mine


def test_a_file_may_set_each_field(tmp_path):
    path = tmp_path / "mine.toml"
    shape = replace(models.SHAPES["mixtral-8x7b"], source=str(path), notes=())
    shape = replace(shape, quantized_bytes=0.53125, quantized_kinds=("expert", "mlp"))
    given = {field.name: getattr(shape, field.name) for field in fields(shape) if field.name not in ("source", "notes")}
    given["quantized_kinds"] = list(shape.quantized_kinds)
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
    assert shape_of("plan", path) == shape
    path.write_text("".join(f"{name} = {{}}\n" for name in given))
    with pytest.raises(ValueError, match=r"line 1: name is \{\}; expected a string; ") as refusal:
        shape_of("plan", path)
    assert refusal.value.args[0].count(" is {}; expected ") == len(given)
    assert "quantized_bytes is {}; expected a number; " in refusal.value.args[0]
    assert "quantized_kinds is {}; expected an array of strings; " in refusal.value.args[0]


def test_a_kind_of_tensors_is_quantized_once():
    with pytest.raises(ValueError, match=r"quantized_kinds is \('mlp', 'mlp'\); expected"):
        replace(models.SHAPES["llama-2-7b"], quantized_bytes=1, quantized_kinds=("mlp", "mlp"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lama-3-70b", r"plan_training: model 'lama-3-70b' is not a published model \(did you mean llama-3-70b\?\); "),
        ("meta-llama/Llama-3-70B", r"an id that is not known here \(did you mean meta-llama/.*Llama-3.*-70B"),
        ("spam/eggs", r"an id that is not known here; expected an id that `artifex_devices plan models` lists; read "),
        ("spam/eggs", r"models\.from_hf_config\('config\.json'\) or models\.from_transformers\('spam/eggs'\)$"),
        ("none.toml", r"'none\.toml' cannot be read"),
        ("none.json", r"cannot read 'none\.json'"),
        ("a\0b", "is not a published model"),
    ],
)
def test_unknown_models(text, says):
    with pytest.raises((ValueError, OSError), match=says):
        plan_training(text, NODE, **RUN)


def test_clusters_are_texts_everywhere():
    plan = plan_training("llama-3-8b", "64xH100", **RUN, zero=3)
    assert (plan.cluster, plan.devices) == (cluster.from_text("64 x h100"), 64)
    assert plan_inference("llama-3-8b", "8 x h100", batch=8, prompt=128, output=64).cluster == NODE
    found = suggest("llama-3-8b", "8 x h100", **RUN, progress=False)
    assert str(found) == str(suggest("llama-3-8b", NODE, **RUN, progress=False))
    assert str(suggest(STEP, "v5e-16", top=1)) == str(suggest(STEP, cluster.tpu("v5e", (4, 4)), top=1))
    with pytest.raises(ValueError, match=r"^suggest: cluster: 'h100' has no size; .* write '1 x h100' or '8 x h100'$"):
        suggest("llama-3-8b", "h100", **RUN)
    with pytest.raises(ValueError, match=r"the name of a file; .* write cluster\.from_toml\('lab\.toml'\)$"):
        plan_training("llama-3-8b", "lab.toml", **RUN)
    with pytest.raises(TypeError, match=r"cluster is 8 \(int\); expected a Cluster or a text that describes one"):
        plan_training("llama-3-8b", 8, **RUN)


def test_fields_are_a_configuration():
    config = TrainingConfig(**RUN, tensor=8, zero=1)
    assert plan_training("llama-3-8b", NODE, **RUN, tensor=8, zero=1).to_json() == (
        plan_training("llama-3-8b", NODE, config).to_json()
    )
    chunked = plan_training("llama-3-8b", NODE, **RUN, pipeline=4, chunks=2).config
    assert (chunked.schedule, chunked.overlap["pipeline"]) == ("interleaved", 1)
    assert plan_training("llama-3-8b", NODE, **RUN, pipeline=4, chunks=1).config.schedule == "1f1b"


def test_a_step_of_a_name_is_that_of_transformer():
    pod = cluster.tpu("v5p", (4, 4, 4))
    mesh = Mesh(mesh_utils.create_device_mesh((16, 4), pod.devices()), ("data", "tensor"))
    rules = {"batch": "data", "mlp": "tensor"}
    plan = plan_step("llama-2-7b", mesh, rules, **RUN)
    assert plan.to_json() == plan_step(models.transformer("llama-2-7b", **RUN), mesh, rules).to_json()
    with pytest.raises(TypeError, match=r"^plan_step: batch, sequence do not belong to a StepModel; "):
        plan_step(STEP, mesh, {}, **RUN)
    with pytest.raises(TypeError, match=r"^plan_step: sequence is missing; .* write batch=512, sequence=8192$"):
        plan_step("llama-2-7b", mesh, rules, batch=64)


def test_the_model_decides_what_is_searched():
    shape = replace(models.SHAPES["llama-2-7b"], name="mine")
    assert suggest(shape, NODE, **RUN, progress=False).model is shape
    assert suggest(STEP, NODE, top=1).model is STEP
    with pytest.raises(TypeError, match=r"tensor does not belong to the search for a StepModel; expected max_axes"):
        suggest(STEP, NODE, tensor=8)
    with pytest.raises(TypeError, match=r"axes does not belong to the search for a training run; expected fields"):
        suggest("llama-2-7b", NODE, **RUN, axes=["mlp"])
