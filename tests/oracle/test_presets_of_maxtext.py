# SPDX-License-Identifier: Apache-2.0
"""rules.preset and its inverse have the bits of MaxText's own converter, in both directions.

MaxText needs Python 3.12 and many packages, but the file with its converter does not:
`pip download --no-deps --python-version 3.12 --only-binary=:all: maxtext`, unpack the wheel, and add it to PYTHONPATH.
"""

import importlib.util
import types

import ml_dtypes
import numpy as np
import pytest
from artifex_devices import checkpoint
from artifex_devices.checkpoint import rules

pytestmark = pytest.mark.skipif(importlib.util.find_spec("maxtext") is None, reason="MaxText is not in PYTHONPATH")

LAYERS, EMBED, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB, EXPERTS = 3, 32, 4, 2, 8, 40, 50, 5
# MaxText writes o_proj of Mixtral right only if heads * head_dim is the hidden size.
CONFIG = {"num_hidden_layers": LAYERS, "hidden_size": EMBED, "head_dim": HEAD_DIM}
ATTENTION = {
    "query": (EMBED, HEADS, HEAD_DIM),
    "key": (EMBED, KV_HEADS, HEAD_DIM),
    "value": (EMBED, KV_HEADS, HEAD_DIM),
    "out": (HEADS, HEAD_DIM, EMBED),
}


@pytest.fixture(scope="module")
def maxtext():
    """Returns MaxText's module of names and hooks, without the rest of the package."""
    folder = importlib.util.find_spec("maxtext").submodule_search_locations[0]
    path = f"{folder}/checkpoint_conversion/utils/param_mapping.py"
    spec = importlib.util.spec_from_file_location("param_mapping_of_maxtext", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hugging_face(model, dtype):
    """Returns weights of a small model, by Hugging Face's names and in its shapes."""
    shapes = {"model.embed_tokens": (VOCAB, EMBED), "model.norm": (EMBED,), "lm_head": (VOCAB, EMBED)}
    for layer in range(LAYERS):
        for name, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            shapes[f"model.layers.{layer}.self_attn.{name}_proj"] = heads * HEAD_DIM, EMBED
        shapes[f"model.layers.{layer}.self_attn.o_proj"] = EMBED, HEADS * HEAD_DIM
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"model.layers.{layer}.{name}"] = (EMBED,)
        if model == "llama":
            mlp = {"mlp.gate_proj": (MLP, EMBED), "mlp.up_proj": (MLP, EMBED), "mlp.down_proj": (EMBED, MLP)}
        else:
            mlp = {"block_sparse_moe.gate": (EXPERTS, EMBED)}
            for expert in range(EXPERTS):
                for name, shape in (("w1", (MLP, EMBED)), ("w3", (MLP, EMBED)), ("w2", (EMBED, MLP))):
                    mlp[f"block_sparse_moe.experts.{expert}.{name}"] = shape
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in mlp.items()}
    random = np.random.default_rng(0)
    return {f"{name}.weight": random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def converter(maxtext, model, saving_to_hf):
    """Returns MaxText's names with Hugging Face's, and a function that applies its hooks to an array."""
    start = {"llama": "LLAMA31", "mixtral": "MIXTRAL"}[model]
    config = types.SimpleNamespace(num_experts=EXPERTS, head_dim=HEAD_DIM)
    names = getattr(maxtext, f"{start}_MAXTEXT_TO_HF_PARAM_MAPPING")(CONFIG, config, True)
    hooks = getattr(maxtext, f"{start}_MAXTEXT_TO_HF_PARAM_HOOK_FN")(CONFIG, config, True, saving_to_hf)

    def change(name, array, shape):
        each = hooks.get(name, [])
        for hook in each if isinstance(each, list) else [each]:
            array = np.asarray(hook(array, shape))
        return array

    return names, change


def to_maxtext(maxtext, model, weights):
    names, change = converter(maxtext, model, saving_to_hf=False)

    def array_of(name, sources):
        if not isinstance(sources, list):
            return change(name, weights[sources], weights[sources].shape[::-1])
        if isinstance(sources[0], list):  # experts are the first axis, layers the second
            return np.stack([array_of(name, layers) for layers in sources])
        shape = next((ATTENTION[part] for part in name.split("-") if part in ATTENTION), None)
        arrays = [change(name, weights[each], shape or weights[each].shape[::-1]) for each in sources]
        return np.stack(arrays, axis=0 if "MoeBlock_0-w" in name else 1)

    return {name.replace("-", "."): array_of(name, sources) for name, sources in names.items()}


def to_hugging_face(maxtext, model, arrays, weights):
    names, change = converter(maxtext, model, saving_to_hf=True)
    found = {}

    def unstack(name, array, sources, axis):
        if not isinstance(sources, list):
            found[sources] = change(name, array, weights[sources].shape)
            return
        for number, each in enumerate(sources):
            unstack(name, np.take(array, number, axis), each, 0)

    for name, sources in names.items():
        unstack(name, arrays[name.replace("-", ".")], sources, 0 if "MoeBlock_0-w" in name else 1)
    return found


def check(folder, expected):
    with checkpoint.open(folder) as reader:
        assert sorted(reader.names()) == sorted(expected)
        for name, array in expected.items():
            assert reader.shape(name) == array.shape, name
            assert reader.dtype(name) == array.dtype, name
            assert reader.read(name).tobytes() == array.tobytes(), name


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("model", ["llama", "mixtral"])
def test_conversions_have_the_bits_of_maxtexts_converter(maxtext, model, dtype, tmp_path):
    weights = hugging_face(model, dtype)
    checkpoint.save(tmp_path / "hf", weights)
    preset = rules.preset(f"hf-to-maxtext-{model}", heads=HEADS, kv_heads=KV_HEADS, head_dim=HEAD_DIM)
    checkpoint.convert(tmp_path / "hf", tmp_path / "maxtext", rules=preset, format="safetensors")
    arrays = to_maxtext(maxtext, model, weights)
    check(tmp_path / "maxtext", arrays)
    checkpoint.convert(tmp_path / "maxtext", tmp_path / "back", rules=rules.inverse(preset), format="safetensors")
    check(tmp_path / "back", to_hugging_face(maxtext, model, arrays, weights))
