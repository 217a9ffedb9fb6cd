# SPDX-License-Identifier: Apache-2.0
"""Shapes from config.json of Hugging Face, compared with published numbers of parameters."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import plan_inference

ROOT = Path(__file__).resolve().parents[3]
DATA = json.loads((ROOT / "tests" / "data" / "hf_configs.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "how_to" / "model_shapes.md").read_text(encoding="utf-8")
BY_NAME = {model["name"]: model for model in DATA["models"]}
LLAMA = BY_NAME["meta-llama/Llama-2-7b-hf"]["config"]


@pytest.mark.parametrize("model", DATA["models"], ids=lambda model: model["name"])
def test_parameters_are_as_many_as_published(model):
    shape = models.from_hf_config(model["config"], name=model["name"])
    assert shape.parameters.total == model["parameters"]
    assert model["source"] in DATA["sources"]


def test_the_page_has_the_table():
    rows = []
    for model in DATA["models"]:
        counts = models.from_hf_config(model["config"]).parameters
        source = list(DATA["sources"]).index(model["source"]) + 1
        kind = model["config"]["model_type"]
        rows.append(f"| {model['name']} | {kind} | {counts.total:,} | {counts.active:,} | {source} |")
    assert len(rows) >= 30
    assert re.findall(r"^\| [\w-]+/.*\|$", PAGE, re.M) == rows
    for number, text in enumerate(DATA["sources"].values(), 1):
        assert f"{number}. {text[0].upper()}{text[1:]}." in PAGE


def test_shapes_of_the_package_equal_their_configs():
    for model in DATA["models"]:
        shape = models.SHAPES[models.HUB_IDS[model["name"]]]
        read = models.from_hf_config(model["config"], name=shape.name)
        assert replace(read, source="", notes=()) == replace(shape, source="", notes=())
        assert shape.source.endswith(f"config.json of {model['name']}") or "arXiv:" in shape.source
    assert {models.HUB_IDS[model["name"]] for model in DATA["models"]} == set(models.SHAPES)
    assert set(models.HUB_IDS.values()) == set(models.SHAPES)


def test_active_parameters_and_prediction_layers_of_deepseek_v3():
    # arXiv:2412.19437: 671B, of which a token uses 37B; the module of multi-token prediction has 11.6B of its own:
    # README_WEIGHTS.md of deepseek-ai/DeepSeek-V3.
    counts = models.from_hf_config(BY_NAME["deepseek-ai/DeepSeek-V3"]["config"]).parameters
    assert (counts.dense_layers, counts.expert_layers) == (3, 58)
    assert counts.active == 37_552_297_472
    assert counts.prediction == 11_610_068_224
    assert counts.embedding == counts.head == 129280 * 7168
    assert counts.total == counts.embedding + counts.layers + counts.final_norm + counts.head


def test_caches_of_windows_and_latent_vectors():
    gemma = models.from_hf_config(BY_NAME["google/gemma-3-1b-pt"]["config"])
    # 26 layers, each 6th of them full: 4 full, 22 with 512 tokens; keys and values of one head of 256.
    assert gemma.cache_bytes(8192, 2) == 2 * 256 * 2 * (4 * 8192 + 22 * 512)
    latent = models.from_hf_config(BY_NAME["deepseek-ai/DeepSeek-V3"]["config"])
    assert latent.cache_bytes(1, 2) == 61 * (512 + 64) * 2
    mistral = models.from_hf_config(BY_NAME["mistralai/Mistral-7B-v0.1"]["config"])
    assert mistral.window == 4096
    assert mistral.cache_bytes(100_000) == mistral.cache_bytes(4096)


def test_paths_and_folders(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA | {"_name_or_path": "my llama"}), encoding="utf-8")
    shape = models.from_hf_config(file)
    assert shape == models.from_hf_config(str(tmp_path))
    assert (shape.name, shape.source) == ("my llama", "config.json of my llama")
    assert models.from_hf_config(LLAMA).name == "llama"


def test_the_text_model_of_gemma_3_with_vision():
    text = BY_NAME["google/gemma-3-1b-pt"]["config"]
    shape = models.from_hf_config({"model_type": "gemma3", "text_config": text, "vision_config": {}})
    assert shape.parameters.total == 999_885_952
    kinds = ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(26)]
    assert models.from_hf_config(text | {"layer_types": kinds}) == models.from_hf_config(text)
    with pytest.raises(ValueError, match="layer_types is not a full_attention at each 6-th layer"):
        models.from_hf_config(text | {"layer_types": kinds[::-1]})
    third = ["full_attention" if i % 3 == 2 else "sliding_attention" for i in range(26)]
    assert models.from_hf_config(text | {"layer_types": third}).full_attention_period == 3
    full = models.from_hf_config(text | {"layer_types": ["full_attention"] * 26})
    assert (full.window, full.full_attention_period) == (0, 0)
    none = models.from_hf_config(text | {"layer_types": ["sliding_attention"] * 26})
    assert (none.window, none.full_attention_period) == (512, 0)


@pytest.mark.parametrize("model", DATA["counted"], ids=lambda model: model["name"])
def test_parameters_are_as_many_as_transformers_counts(model):
    assert "transformers 5.24.0" in DATA["counted_by"]
    assert models.from_hf_config(model["config"]).parameters.total == model["parameters"]


def test_the_published_config_of_gemma_3_4b_has_five_keys():
    text = {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34}
    config = {"model_type": "gemma3", "text_config": text | {"sliding_window": 1024}, "vision_config": {}}
    shape = models.from_hf_config(config)
    assert shape.parameters.total == 3_880_263_168
    assert (shape.heads, shape.kv_heads, shape.head_dim, shape.window, shape.full_attention_period) == (
        8,
        4,
        256,
        1024,
        6,
    )
    assert shape.notes == (
        "the text model of 'gemma3': encoders of images and sound are left out",
        "as usual in transformers: num_attention_heads 8, vocab_size 262208",
    )


def test_text_models_take_ties_and_quantization_of_the_model():
    text = {"model_type": "qwen3_vl_text", **BY_NAME["Qwen/Qwen3-4B"]["config"], "vocab_size": 151936}
    text = {key: value for key, value in text.items() if key != "tie_word_embeddings"} | {"model_type": "qwen3_vl_text"}
    outer = {"model_type": "qwen3_vl", "text_config": text, "tie_word_embeddings": True}
    assert models.from_hf_config(outer).parameters.total == 4_022_468_096
    quantized = models.from_hf_config(outer | {"quantization_config": {"quant_method": "fp8"}})
    assert 1 < quantized.parameter_bytes < 2
    flat = {"model_type": "qwen2_5_vl", **BY_NAME["Qwen/Qwen2.5-7B"]["config"]} | {"model_type": "qwen2_5_vl"}
    assert models.from_hf_config(flat).parameters.total == 7_615_616_512


QUANTIZED = [
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "float8", 1 + 4 / 128**2),
    ({"quant_method": "fbgemm_fp8"}, "float8", 1),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq of 4 bits", (4 + 20 / 128) / 8),
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, "awq of 4 bits", (4 + 20 / 64) / 8),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "gptq of 8 bits", 1),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", 1),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "'nf4' of 4 bits", 0.5625),
    (
        {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
        "compressed-tensors of 8 bits",
        1,
    ),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5625),
]


@pytest.mark.parametrize(("config", "text", "nbytes"), QUANTIZED, ids=lambda value: str(value)[:40])
def test_quantized_weights_have_their_bytes(config, text, nbytes):
    shape = models.from_hf_config(LLAMA | {"quantization_config": config})
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    mean = 2 + (nbytes - 2) * matrices / 6_738_415_616
    assert shape.parameter_bytes == pytest.approx(mean, rel=1e-12)
    assert shape.notes == (f"matrices of layers are stored as {text}: {mean:.3f} bytes per parameter on average",)


def test_bytes_of_gpt_oss_are_those_of_its_files():
    # "total_size" in model.safetensors.index.json of openai/gpt-oss-20b
    config = {"model_type": "gpt_oss", "num_hidden_layers": 24, "num_local_experts": 32}
    shape = models.from_hf_config(config | {"quantization_config": {"quant_method": "mxfp4"}})
    assert round(shape.parameter_bytes * shape.parameters.total) == 13_761_264_768
    assert models.from_hf_config(config).parameter_bytes == 0


def test_unknown_methods_of_quantization_are_a_note():
    shape = models.from_hf_config(LLAMA | {"quantization_config": {"quant_method": "spam"}})
    assert shape.parameter_bytes == 0
    assert shape.notes == ("quantization_config has a method that is not known here: weights count as bfloat16",)


def test_inference_reads_quantized_weights():
    node = cluster.dgx("h100")
    config = {"model_type": "gpt_oss", "use_cache": True}
    arguments = {"batch": 8, "prompt": 1024, "output": 128, "tensor": 8}
    plain = plan_inference(models.from_hf_config(config), node, **arguments)
    shape = models.from_hf_config(config | {"quantization_config": {"quant_method": "mxfp4"}})
    plan = plan_inference(shape, node, **arguments)
    experts = 36 * 128 * 3 * 2880**2 / 8  # on each of 8 devices
    assert (shape.quantized_bytes, shape.quantized_kinds) == (0.53125, ("expert",))
    assert plain.parameters - plan.parameters == pytest.approx(experts * (2 - 0.53125), abs=1)
    assert plan.expected.parts["products"] < 0.5 * plain.expected.parts["products"]
    assert plan.largest_batch > plain.largest_batch
    assert plan_inference(shape, node, **arguments, parameter_dtype="bfloat16").parameters == plain.parameters
    assert shape.notes[-1] in str(plan)
    assert json.loads(plan.to_json())["notes"] == list(shape.notes)
    assert "notes" not in json.loads(plan_inference("llama-3-8b", node, **arguments).to_json())


def test_defaults_of_the_library_transformers():
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert models.from_hf_config(sizes | {"model_type": "mistral", "vocab_size": 10}).window == 4096
    assert models.from_hf_config(sizes | {"model_type": "gemma", "vocab_size": 10}).head_dim == 256
    assert models.from_hf_config(sizes | {"model_type": "gemma", "vocab_size": 10}).tied_embeddings
    assert models.from_hf_config(sizes | {"model_type": "llama", "vocab_size": 10}).kv_heads == 4
    falcon = models.from_hf_config(sizes | {"model_type": "falcon", "vocab_size": 10})
    assert (falcon.kv_heads, falcon.norms_per_layer, falcon.parallel_layers) == (1, 1, True)


@pytest.mark.parametrize(
    ("values", "kv_heads", "norms", "parallel"),
    [
        ({"multi_query": False}, 4, 1, True),
        ({"multi_query": False, "parallel_attn": False}, 4, 2, False),
        ({"num_kv_heads": 2}, 1, 1, True),  # of the new architecture only
        ({"new_decoder_architecture": True}, 4, 2, True),
        ({"new_decoder_architecture": True, "num_kv_heads": 2, "parallel_attn": False}, 2, 2, True),
        ({"new_decoder_architecture": True, "n_head_kv": 2, "num_ln_in_parallel_attn": 1}, 2, 1, True),
    ],
)
def test_both_architectures_of_falcon(values, kv_heads, norms, parallel):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 10}
    falcon = models.from_hf_config(sizes | {"model_type": "falcon"} | values)
    assert (falcon.kv_heads, falcon.norms_per_layer, falcon.parallel_layers) == (kv_heads, norms, parallel)
    assert (falcon.mlp, falcon.head_dim, falcon.tied_embeddings) == (256, 16, True)
    assert (falcon.qkv_bias, falcon.attention_out_bias, falcon.mlp_bias) == (False, False, False)


HOSTILE = [
    ({}, "model_type is None; expected one of llama, mistral"),
    ({"model_type": "lama"}, "model_type is 'lama'; expected one of llama, .*, kimi_k2.*; for other models call"),
    ({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}}, "model_type is 'gemma3n'; expected one"),
    ({"model_type": "llama4_text", "num_hidden_layers": 2**40, "moe_layers": [0]}, "moe_layers is not each 1-th layer"),
    ({"model_type": "llama4_text", "moe_layers": {"0": 1}}, "moe_layers is not each 1-th layer"),
    ({"model_type": "qwen3_next", "num_hidden_layers": 1, "layer_types": ["linear_attention"]}, "no full_attention"),
    ({"model_type": "gpt_oss", "num_hidden_layers": 2**40, "layer_types": "full"}, "layer_types is not a full_att"),
    (LLAMA | {"quantization_config": [8]}, r"quantization_config is \[8\], not an object"),
    (LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": "4"}}, "has '4' bits, not an int from 1 to 16"),
    ({"model_type": ["llama"]}, r"model_type is \['llama'\]; expected one of"),
    ({"model_type": "llama"}, "hidden_size is missing; num_attention_heads is missing; num_hidden_layers is missing"),
    (LLAMA | {"hidden_size": "4096"}, "hidden_size is '4096', not an int of 1 or more"),
    (LLAMA | {"hidden_size": 4096.0}, r"hidden_size is 4096\.0, not an int"),
    (LLAMA | {"hidden_size": True}, "hidden_size is True, not an int"),
    (LLAMA | {"hidden_size": -4}, "hidden_size is -4, not an int of 1 or more"),
    (LLAMA | {"num_attention_heads": 0}, "num_attention_heads is 0, not an int"),
    (LLAMA | {"hidden_size": 10**400}, "hidden_size is 10.*not an int"),
    (LLAMA | {"hidden_size": float("nan")}, "hidden_size is nan, not an int"),
    (LLAMA | {"hidden_size": {"a": [1]}}, r"hidden_size is \{'a': \[1\]\}, not an int"),
    (LLAMA | {"hidden_size": 4097}, "hidden size 4097 is not a multiple of 32 heads, and head_dim is missing"),
    (LLAMA | {"num_key_value_heads": 5}, "heads is 32, not a multiple of 5 kv_heads"),
    (LLAMA | {"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', not true or false"),
    (LLAMA | {"num_hidden_layers": 2**61, "vocab_size": 2**61}, r"there are .* parameters, 2\*\*62 or more"),
    (BY_NAME["mistralai/Mixtral-8x7B-v0.1"]["config"] | {"num_experts_per_tok": 9}, "each token is routed to 9 of 8"),
    (BY_NAME["facebook/opt-125m"]["config"] | {"word_embed_proj_dim": 512},
     "word_embed_proj_dim is 512; a TransformerShape can only express 768"),
    (BY_NAME["facebook/opt-125m"]["config"] | {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
    (BY_NAME["deepseek-ai/DeepSeek-V3"]["config"] | {"moe_layer_freq": 2}, "moe_layer_freq is 2; a TransformerShape"),
    (BY_NAME["deepseek-ai/DeepSeek-V3"]["config"] | {"first_k_dense_replace": 99}, "dense_layers is 99, more than 61"),
    (BY_NAME["deepseek-ai/DeepSeek-V3"]["config"] | {"first_k_dense_replace": -1}, "first_k_dense_replace is -1"),
    (BY_NAME["Qwen/Qwen3-30B-A3B"]["config"] | {"mlp_only_layers": [0]}, r"mlp_only_layers is \[0\]"),
    (BY_NAME["Qwen/Qwen2.5-7B"]["config"] | {"use_sliding_window": True, "max_window_layers": 14},
     "max_window_layers is 14 of 28 layers"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "text"), HOSTILE)
def test_hostile_configs_raise_clear_errors(config, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        models.from_hf_config(config)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=text if "10.*" not in text else "not an int|is not JSON"):
        models.from_hf_config(file)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is not JSON"),
        (b"{'model_type': 'llama'}", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b" " * ((1 << 20) + 1), "has more than 1048576 bytes"),
    ],
    ids=["empty", "quotes", "bytes", "nested", "large"],
)
def test_hostile_files_raise_clear_errors(content, text, tmp_path):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"models.from_hf_config: .*{text}.*; give the path of a config.json"):
        models.from_hf_config(file)


def test_a_file_of_the_greatest_size_is_read(tmp_path):
    file = tmp_path / "config.json"
    config = BY_NAME["Qwen/Qwen2.5-7B"]["config"]
    file.write_bytes(json.dumps(config).encode().ljust(1 << 20))
    assert models.from_hf_config(file) == models.from_hf_config(config)


def test_qwen_counts_28_layers_before_its_window_by_default():
    config = BY_NAME["Qwen/Qwen2.5-7B"]["config"] | {"use_sliding_window": True}
    assert config["num_hidden_layers"] == 28
    assert models.from_hf_config(config).window == 0
    with pytest.raises(ValueError, match="max_window_layers is 28 of 29 layers"):
        models.from_hf_config(config | {"num_hidden_layers": 29})


def test_arguments_of_wrong_types(tmp_path):
    with pytest.raises(TypeError, match=r"source is 3 \(int\); expected a path or a dict"):
        models.from_hf_config(3)
    with pytest.raises(TypeError, match=r"name is 3 \(int\); expected a str or None"):
        models.from_hf_config(LLAMA, name=3)
    with pytest.raises(ValueError, match=r"cannot read '.*missing\.json'.*; give the path of a config\.json"):
        models.from_hf_config(tmp_path / "missing.json")
    with pytest.raises(ValueError, match="cannot read"):
        models.from_hf_config("a\0b")
    file = tmp_path / "list.json"
    file.write_text("[1]", encoding="utf-8")
    with pytest.raises(TypeError, match=r"the config is \[1\] \(list\); expected an object"):
        models.from_hf_config(file)
