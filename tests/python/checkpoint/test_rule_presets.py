# SPDX-License-Identifier: Apache-2.0
"""Presets of rules, compared with the arithmetic of MaxText's converters and of the models, in NumPy."""

import ml_dtypes
import numpy as np
import pytest
from artifex_devices.checkpoint import rules
from checkpoint.region_oracle import convert, planned

LAYERS, EMBED, HEADS, KV_HEADS, HEAD_DIM, MLP, VOCAB, EXPERTS = 3, 6, 4, 2, 8, 10, 7, 5
SIZES = {"heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
DENSE = (("mlp.gate_proj", (MLP, EMBED)), ("mlp.up_proj", (MLP, EMBED)), ("mlp.down_proj", (EMBED, MLP)))
SPARSE = (
    ("block_sparse_moe.gate", (EXPERTS, EMBED)),
    *((f"block_sparse_moe.experts.{i}.w{n}", (MLP, EMBED)) for i in range(EXPERTS) for n in (1, 3)),
    *((f"block_sparse_moe.experts.{i}.w2", (EMBED, MLP)) for i in range(EXPERTS)),
)


def weights(mlp, dtype=np.float32):
    """Returns a small model as Hugging Face stores it."""
    generator = np.random.default_rng(0)

    def array(*shape):
        return generator.standard_normal(shape).astype(dtype)

    found = {
        "model.embed_tokens.weight": array(VOCAB, EMBED),
        "model.norm.weight": array(EMBED),
        "lm_head.weight": array(VOCAB, EMBED),
    }
    for layer in range(LAYERS):
        found |= {
            f"model.layers.{layer}.{name}.weight": array(*shape)
            for name, shape in (
                ("self_attn.q_proj", (HEADS * HEAD_DIM, EMBED)),
                ("self_attn.k_proj", (KV_HEADS * HEAD_DIM, EMBED)),
                ("self_attn.v_proj", (KV_HEADS * HEAD_DIM, EMBED)),
                ("self_attn.o_proj", (EMBED, HEADS * HEAD_DIM)),
                ("input_layernorm", (EMBED,)),
                ("post_attention_layernorm", (EMBED,)),
                *mlp,
            )
        }
    return found


def scaled(values, factor):
    """Returns what MaxText's scale_query_layer does."""
    return (values.astype(np.float32) * np.float32(factor)).astype(values.dtype)


def kernel(*shape):
    return lambda w: w.T.reshape(shape)


def interleaved(w):
    """Returns what MaxText's adjust_rope does on the way from Hugging Face."""
    halves = w[..., : HEAD_DIM // 2], w[..., HEAD_DIM // 2 :]
    return np.stack(halves, axis=-1).reshape(w.shape)


def of_maxtext(found, model):
    """Returns the arrays as MaxText has them, by the steps of its own converter."""

    def stacked(name, change, axis=1):
        return np.stack([change(found[f"model.layers.{i}.{name}.weight"]) for i in range(LAYERS)], axis=axis)

    def rotary(heads):
        keep = kernel(EMBED, heads, HEAD_DIM)
        return (lambda w: interleaved(keep(w))) if model == "llama" else keep

    def query(w):
        return scaled(rotary(HEADS)(w), 1 / np.sqrt(HEAD_DIM))

    layers = "params.decoder.layers"
    made = {
        "params.token_embedder.embedding": found["model.embed_tokens.weight"],
        "params.decoder.decoder_norm.scale": found["model.norm.weight"],
        "params.decoder.logits_dense.kernel": found["lm_head.weight"].T,
        f"{layers}.self_attention.query.kernel": stacked("self_attn.q_proj", query),
        f"{layers}.self_attention.key.kernel": stacked("self_attn.k_proj", rotary(KV_HEADS)),
        f"{layers}.self_attention.value.kernel": stacked("self_attn.v_proj", kernel(EMBED, KV_HEADS, HEAD_DIM)),
        f"{layers}.self_attention.out.kernel": stacked("self_attn.o_proj", kernel(HEADS, HEAD_DIM, EMBED)),
        f"{layers}.pre_self_attention_layer_norm.scale": stacked("input_layernorm", np.copy),
        f"{layers}.post_self_attention_layer_norm.scale": stacked("post_attention_layernorm", np.copy),
    }
    if model != "mixtral":
        return made | {
            f"{layers}.mlp.wi_0.kernel": stacked("mlp.gate_proj", kernel(EMBED, MLP)),
            f"{layers}.mlp.wi_1.kernel": stacked("mlp.up_proj", kernel(EMBED, MLP)),
            f"{layers}.mlp.wo.kernel": stacked("mlp.down_proj", kernel(MLP, EMBED)),
        }
    made[f"{layers}.MoeBlock_0.gate.kernel"] = stacked("block_sparse_moe.gate", np.transpose)
    for target, letter in (("wi_0", "w1"), ("wi_1", "w3"), ("wo", "w2")):
        experts = [stacked(f"block_sparse_moe.experts.{i}.{letter}", np.transpose, axis=0) for i in range(EXPERTS)]
        made[f"{layers}.MoeBlock_0.{target}"] = np.stack(experts, axis=0)
    return made


def of_hugging_face(made, found, model):
    """Returns Hugging Face's weights of a queries' kernel of MaxText, by the steps of MaxText's converter."""
    kernels = np.moveaxis(made["params.decoder.layers.self_attention.query.kernel"], 1, 0)
    back = {}
    for layer, each in enumerate(kernels):
        each = scaled(each, np.sqrt(HEAD_DIM))
        if model == "llama":
            each = np.concatenate((each[..., ::2], each[..., 1::2]), axis=-1)
        back[f"model.layers.{layer}.self_attn.q_proj.weight"] = each.reshape(EMBED, -1).T
    return found | back


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("model", ["llama", "llama2", "mixtral"])
def test_a_model_has_the_arrays_of_maxtext_and_comes_back(model, dtype):
    found = weights(SPARSE if model == "mixtral" else DENSE, dtype)
    made = rules.preset(f"hf-to-maxtext-{model}", **SIZES)
    expected = of_maxtext(found, model)
    converted = convert(found, made, like=expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(converted[name], array, err_msg=name)
    back = convert(converted, rules.inverse(made), like=found)
    for name, array in of_hugging_face(converted, found, model).items():
        np.testing.assert_array_equal(back[name], array, err_msg=name)


@pytest.mark.parametrize(("model", "mlp"), [("llama", DENSE), ("mixtral", SPARSE)])
def test_a_tree_computes_what_hugging_face_computes(model, mlp):
    """A linear layer of Hugging Face is x @ weight.T."""
    found = {name: np.round(8 * array) for name, array in weights(mlp).items()}
    made = rules.preset(f"hf-to-tree-{model}", **SIZES)
    tree = convert(found, made)
    x = np.arange(2.0 * EMBED, dtype=np.float32).reshape(2, EMBED)
    y = np.arange(2.0 * MLP, dtype=np.float32).reshape(2, MLP)
    for layer in range(LAYERS):

        def linear(x, name, layer=layer):
            return x @ found[f"model.layers.{layer}.{name}.weight"].T

        def einsum(text, x, name, layer=layer):
            return np.einsum(text, x, tree[f"layers.{name}"][layer])

        for name, source in (("query", "q"), ("key", "k"), ("value", "v")):
            heads = linear(x, f"self_attn.{source}_proj").reshape(2, -1, HEAD_DIM)
            np.testing.assert_array_equal(einsum("bi,ihd->bhd", x, name), heads)
        heads = np.arange(2.0 * HEADS * HEAD_DIM, dtype=np.float32).reshape(2, HEADS, HEAD_DIM)
        out = linear(heads.reshape(2, -1), "self_attn.o_proj")
        np.testing.assert_array_equal(einsum("bhd,hdo->bo", heads, "out"), out)
        for name, source in (("attention_norm", "input_layernorm"), ("mlp_norm", "post_attention_layernorm")):
            np.testing.assert_array_equal(tree[f"layers.{name}"][layer], found[f"model.layers.{layer}.{source}.weight"])
        if model == "mixtral":
            np.testing.assert_array_equal(einsum("bi,ie->be", x, "router"), linear(x, "block_sparse_moe.gate"))
            for name, letter, data in (("gate", "w1", x), ("up", "w3", x), ("down", "w2", y)):
                each = [linear(data, f"block_sparse_moe.experts.{i}.{letter}") for i in range(EXPERTS)]
                np.testing.assert_array_equal(einsum("bi,eio->ebo", data, name), np.stack(each))
        else:
            for name, data in (("gate", x), ("up", x), ("down", y)):
                np.testing.assert_array_equal(einsum("bi,io->bo", data, name), linear(data, f"mlp.{name}_proj"))
    np.testing.assert_array_equal(x @ tree["head"], x @ found["lm_head.weight"].T)
    np.testing.assert_array_equal(tree["embedding"], found["model.embed_tokens.weight"])
    np.testing.assert_array_equal(tree["norm"], found["model.norm.weight"])
    assert len(tree) == 3 + (10 if model == "mixtral" else 9)
    back = convert(tree, rules.inverse(made), like=found)
    for name, array in found.items():
        np.testing.assert_array_equal(back[name], array, err_msg=name)


def test_each_array_of_a_layer_is_one_part():
    found = weights(DENSE)
    plan = planned(found, rules.preset("hf-to-maxtext-llama", **SIZES))
    counts = [len(plan.parts(i, (0,) * len(shape), shape)) for i, (_, shape, _) in enumerate(plan.targets())]
    assert counts == [1] + 9 * [LAYERS] + [1, 1]


def test_a_tied_model_has_no_head():
    found = weights(DENSE)
    del found["lm_head.weight"]
    made = rules.preset("hf-to-maxtext-llama", **SIZES, tied=True)
    assert "params.decoder.logits_dense.kernel" not in convert(found, made)


def test_names_begin_with_a_prefix_and_layers_are_at_an_axis():
    made = convert(weights(DENSE), rules.preset("hf-to-tree-llama", **SIZES, prefix="model/", scan_axis=1))
    assert made["model/layers.up"].shape == (EMBED, LAYERS, MLP)


def test_an_odd_head_is_refused():
    with pytest.raises(ValueError, match="head_dim is 7; expected an even number"):
        rules.preset("hf-to-maxtext-llama", heads=1, kv_heads=1, head_dim=7)
    assert rules.preset("hf-to-maxtext-llama2", heads=1, kv_heads=1, head_dim=7)
