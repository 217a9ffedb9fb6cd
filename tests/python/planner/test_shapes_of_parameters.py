# SPDX-License-Identifier: Apache-2.0
"""Shapes of any architecture, from names and shapes of parameters that transformers or safetensors files list."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import TrainingConfig, plan_training

RECORDED = json.loads((Path(__file__).resolve().parents[2] / "data" / "hf_parameters.json").read_text("utf-8"))
BY_NAME = {model["name"]: model for model in RECORDED["models"]}


def arrays_of(model: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    found = {}
    for array in model["arrays"]:
        first, end = array.get("layers", (0, 1))
        found |= {array["name"].replace("*", str(layer)): tuple(array["shape"]) for layer in range(first, end)}
    return found


class Config(SimpleNamespace):
    """A config of transformers."""

    attribute_map: dict[str, str] = {}  # noqa: RUF012

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    def get_text_config(self, *, decoder: bool) -> Config:
        assert decoder
        return getattr(self, "text_config", self)


@pytest.fixture
def transformers(monkeypatch):
    """Stand-ins of the libraries, which build the recorded models."""

    def from_config(config: Config) -> Any:
        names = {model["config"]["model_type"]: model for model in RECORDED["models"]}
        shapes = arrays_of(names[config.model_type])
        return SimpleNamespace(
            named_parameters=lambda: ((key, SimpleNamespace(shape=shape)) for key, shape in shapes.items())
        )

    def for_model(kind: str, **values: Any) -> Config:
        return Config(model_type=kind, **values)

    library = SimpleNamespace(
        __version__="5.24.0",
        AutoConfig=SimpleNamespace(
            for_model=for_model,
            from_pretrained=lambda name: Config(**BY_NAME[name]["config"], _name_or_path=name),
        ),
        AutoModelForCausalLM=SimpleNamespace(from_config=from_config),
    )
    monkeypatch.setitem(sys.modules, "transformers", library)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(device=lambda name: nullcontext(name)))
    return library


@pytest.mark.parametrize("name", BY_NAME)
def test_all_parameters_are_counted(name, transformers):
    model = BY_NAME[name]
    shape = models.from_transformers(name)
    assert shape.name == name
    assert shape.parameters.total == model["parameters"] == sum(map(prod, arrays_of(model).values()))
    assert models.from_transformers(model["config"], name=name) == shape
    assert models.from_transformers(Config(**model["config"]), name=name) == shape


def test_sizes_of_gpt_j(transformers):
    shape = models.from_transformers("EleutherAI/gpt-j-6b")
    assert (shape.layers, shape.embed, shape.mlp, shape.heads, shape.head_dim) == (28, 4096, 16384, 16, 256)
    assert (shape.vocab, shape.gated_mlp, shape.tied_embeddings) == (50400, False, False)
    # Biases of the MLP and the output, and of the norms; each layer has one norm where a shape has two.
    assert shape.other_parameters == 28 * (16384 + 4096 + 4096 - 4096) + 4096 + 50400
    assert shape.notes == (
        "parameters of transformers 5.24.0 on the meta device",
        "0.01% of 6050882784 parameters are not described by sizes",
    )
    plan = plan_training(shape, cluster.dgx("h100"), TrainingConfig(batch=64, sequence=2048, zero=3))
    assert plan.expected.total > 0
    assert "not described by sizes" in str(plan)


def test_sizes_of_experts(transformers):
    granite = models.from_transformers("ibm-granite/granite-3.0-1b-a400m-base")
    assert (granite.experts, granite.experts_per_token, granite.mlp, granite.other_parameters) == (32, 8, 512, 0)
    ernie = models.from_transformers("baidu/ERNIE-4.5-21B-A3B-PT")
    assert (ernie.experts, ernie.experts_per_token, ernie.mlp) == (64, 6, 1536)
    assert (ernie.dense_layers, ernie.dense_mlp, ernie.shared_experts, ernie.shared_mlp) == (1, 12288, 1, 3072)
    assert ernie.parameters.active == 3_352_150_208  # published: 3B


def test_the_text_model_is_built(transformers):
    text = Config(**BY_NAME["EleutherAI/gpt-j-6b"]["config"])
    shape = models.from_transformers(Config(model_type="spam", text_config=text))
    assert shape.parameters.total == 6_050_882_784
    assert shape.name == "spam"
    assert shape.notes[1] == "the text model of 'spam': encoders of images and sound are left out"


def test_what_transformers_cannot_build(transformers):
    with pytest.raises(ValueError, match=r"transformers cannot build 'no/such': .*; expected a model of AutoModelFor"):
        models.from_transformers("no/such")


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_libraries_that_are_not_installed(missing, transformers, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"from_transformers: {missing} cannot be .*'artifex-devices\[hf\]'"):
        models.from_transformers("EleutherAI/gpt-j-6b")


def test_wrong_types():
    for wrong in (3, None, dict):
        with pytest.raises(TypeError, match=r"models\.from_transformers: name_or_config is"):
            models.from_transformers(wrong)
    with pytest.raises(TypeError, match=r"name is 3 \(int\); expected a str or None"):
        models.from_transformers("gpt2", name=3)


def write_safetensors(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    header: dict[str, Any] = {}
    at = 0
    for key, shape in shapes.items():
        header[key] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * prod(shape)]}
        at += 2 * prod(shape)
    text = json.dumps(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))


SMALL = {
    "model.embed_tokens.weight": (100, 16),
    "model.layers.0.self_attn.qkv.weight": (48, 16),
    "model.layers.0.self_attn.o.weight": (16, 16),
    "model.layers.0.mlp.gate_up_proj.weight": (128, 16),
    "model.layers.0.mlp.down_proj.weight": (16, 64),
    "model.layers.0.norm.weight": (16,),
    "lm_head.weight": (100, 16),
}


def test_a_folder_of_safetensors_has_the_parameters_of_its_headers(tmp_path):
    config = {"model_type": "spam", "hidden_size": 16, "num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(ValueError, match=r"model_type is 'spam'; expected one of .* that has safetensors files too"):
        models.from_hf_config(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", SMALL)
    shape = models.from_hf_config(tmp_path, name="spam")
    assert shape.parameters.total == sum(map(prod, SMALL.values())) == 8 * 16 * 16 + 3 * 16 * 64 + 16 * (200 + 1) - 1024
    assert (shape.layers, shape.mlp, shape.gated_mlp, shape.vocab) == (1, 64, True, 100)
    assert shape.other_parameters == -2 * 16  # two of the three norms of a Llama are missing


def test_empty_arrays(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "a", "hidden_size": 16, "n_head": 4}), "utf-8")
    write_safetensors(tmp_path / "model.safetensors", {key: (0, *shape[1:]) for key, shape in SMALL.items()})
    with pytest.raises(ValueError, match="TransformerShape: vocab is 0"):
        models.from_hf_config(tmp_path)


def test_names_that_show_no_layer(tmp_path):
    config = {"model_type": "spam", "hidden_size": 16}
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    write_safetensors(tmp_path / "model.safetensors", {"weight": (4, 4)})
    text = "the sizes of 'spam' cannot be read: heads is missing; no parameter is named as one of a layer"
    with pytest.raises(ValueError, match=text):
        models.from_hf_config(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_experts_per_tok": "x"}), "utf-8")
    text = "heads is missing; experts_per_token is 'x', not an int of 1 or more; no parameter"
    with pytest.raises(ValueError, match=text):
        models.from_hf_config(tmp_path)
