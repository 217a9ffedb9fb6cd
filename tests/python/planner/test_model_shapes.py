# SPDX-License-Identifier: Apache-2.0
"""Sizes of decoders: what `models.transformer` describes exactly, what it refuses, and counts by part."""

from dataclasses import replace

import numpy as np
import pytest
from artifex_devices import cluster, models
from artifex_devices.models import TransformerShape
from artifex_devices.planner import plan_step
from artifex_devices.sharding import Mesh


def test_tied_embeddings_have_one_matrix():
    untied = models.SHAPES["llama-2-7b"]
    tied = replace(untied, tied_embeddings=True)
    model = models.transformer(tied, batch=1, sequence=8)
    assert model.parameters == untied.parameters.total - 32000 * 4096 == tied.parameters.total
    logits = next(each for each in model.operations if each.name == "logits")
    assert (logits.einsum, logits.inputs) == ("bsd,vd->bsv", ("final_in", "embedding"))
    # The gradients of both uses are summed before they are reduced over the devices.
    mesh = Mesh(np.array(cluster.tpu("v5e", (2, 2)).devices()), ("data",))
    plan = plan_step(models.transformer(tied, batch=4, sequence=8), mesh, {"batch": "data"})
    reduced = [(each.op, each.count) for each in plan.collectives if each.tensor == "embedding"]
    assert reduced == [("all_reduce", 1)]


def test_mlps_without_a_gate_have_two_matrices():
    shape = replace(models.SHAPES["llama-2-7b"], gated_mlp=False)
    model = models.transformer(shape, batch=1, sequence=8)
    assert model.parameters == shape.parameters.total == 6_738_415_616 - 32 * 4096 * 11008
    assert "gate" not in {tensor.name for tensor in model.tensors}


def test_shared_experts_are_one_mlp_beside_the_routed_ones():
    shape = replace(models.SHAPES["mixtral-8x7b"], shared_experts=2, shared_mlp=1024)
    model = models.transformer(shape, batch=1, sequence=8)
    assert model.parameters == shape.parameters.total == 46_702_792_704 + 32 * 3 * 4096 * 2048
    shapes = {tensor.name: tensor.shape for tensor in model.tensors}
    assert shapes["w_shared_up"] == (4096, 2048)
    assert shapes["shared_activated"] == (1, 8, 2048)


def test_windows_as_long_as_the_sequence_are_exact():
    shape = replace(models.SHAPES["llama-2-7b"], window=4096)
    assert models.transformer(shape, batch=1, sequence=4096).parameters == 6_738_415_616
    with pytest.raises(ValueError, match=r"a window of 4096 of 4097 tokens; expected .*planner\.plan_training"):
        models.transformer(shape, batch=1, sequence=4097)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"qkv_bias": True}, "biases"),
        ({"norm": "layer", "mlp_bias": True}, "norms with biases, biases"),
        ({"positions": 2048}, "learned positions"),
        ({"norms_per_layer": 4}, "4 norms in each layer"),
        ({"query_key_norm": True}, "norms of query and key heads"),
        ({"embedding_norm": True}, "a norm of the embedding"),
        ({"parallel_layers": True}, "attention and MLP side by side"),
        ({"kv_lora_rank": 512, "rope_head_dim": 64, "nope_head_dim": 64}, "multi-head latent attention"),
        ({"experts": 8, "experts_per_token": 2, "dense_layers": 1, "dense_mlp": 64}, "layers with and without experts"),
    ],
)
def test_parts_without_an_exact_einsum_are_refused(fields, text):
    shape = replace(models.SHAPES["llama-2-7b"], **fields)
    assert shape.parameters.total > 0
    with pytest.raises(ValueError, match=f"llama-2-7b has {text}; expected .*; estimate it with planner.plan_training"):
        models.transformer(shape, batch=1, sequence=8)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"norm": "batch"}, "norm is 'batch'; expected .* a norm of 'rms', 'layer', 'layer without bias'"),
        ({"tied_embeddings": 1}, "tied_embeddings is 1; expected"),
        ({"window": -1}, "window is -1"),
        ({"expert_period": 0}, "expert_period is 0"),
        ({"shared_experts": 1}, "1 shared_experts have a shared_mlp of 0; set both to 0, or neither"),
        ({"router_bias": True}, "router_bias without experts"),
        ({"experts": 4, "experts_per_token": 1, "dense_layers": 1}, "dense_mlp is 0 with dense_layers 1"),
        ({"kv_lora_rank": 8, "rope_head_dim": 8, "nope_head_dim": 8}, "head_dim 128 with nope_head_dim 8 and rope_h"),
        ({"q_lora_rank": 8}, "q_lora_rank, rope_head_dim, nope_head_dim or value_head_dim without kv_lora_rank"),
        ({"full_attention_period": 2}, "full_attention_period is 2 without a window"),
        ({"embed": 2**40, "mlp": 2**40}, r"parameters, 2\*\*62 or more"),
    ],
)
def test_shapes_that_do_not_fit_raise_clear_errors(fields, text):
    with pytest.raises(ValueError, match=f"TransformerShape: .*{text}"):
        replace(models.SHAPES["llama-2-7b"], **fields)


def test_parameters_by_part():
    shape = TransformerShape(
        "small", 4, 64, 32, 4, 2, 16, 1000, 8, 2, shared_experts=1, shared_mlp=48, dense_layers=1, dense_mlp=128,
        router_bias=True, tied_embeddings=True, positions=10,
    )  # fmt: skip
    counts = shape.parameters
    attention = 64 * 64 * 2 + 64 * 32 * 2 + 2 * 64
    router = 8 * 64 + 8 + 3 * 64 * 48
    assert counts.dense_layer == attention + 3 * 64 * 128
    assert counts.expert_layer == attention + router + 8 * 3 * 64 * 32
    assert (counts.dense_layers, counts.expert_layers) == (1, 3)
    assert (counts.embedding, counts.head, counts.final_norm) == (1010 * 64, 0, 64)
    assert counts.total - counts.active == 3 * 6 * 3 * 64 * 32
    assert counts.prediction == 0


def test_bytes_of_a_cache():
    shape = models.SHAPES["llama-3-8b"]
    assert shape.cache_bytes(1) == 32 * 8 * 128 * 2 * 2
    assert shape.cache_bytes(8192, 1) == 8192 * shape.cache_bytes(1) // 2
    with pytest.raises(ValueError, match=r"TransformerShape.cache_bytes: tokens is 0"):
        shape.cache_bytes(0)
    with pytest.raises(TypeError, match=r"tokens is 1\.5"):
        shape.cache_bytes(1.5)
    with pytest.raises(ValueError, match="itemsize is 0"):
        shape.cache_bytes(1, 0)
