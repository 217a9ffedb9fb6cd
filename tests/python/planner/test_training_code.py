# SPDX-License-Identifier: Apache-2.0
"""Plans as Python code: meshes, trees of shapes and specs that run here."""

import math
import re

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, cluster, models
from artifex_devices.planner import TrainingChoice, TrainingConfig, plan_training
from artifex_devices.planner.training.mesh_axes import mesh_axes

EVERYTHING = {
    "tensor": 2, "sequence_parallel": True, "pipeline": 2, "schedule": "interleaved", "chunks": 2, "context": 2,
    "context_method": "all_to_all", "zero": 2, "recompute": "full", "dtype": "float8",
}  # fmt: skip
SMALL = models.TransformerShape("small", 4, 64, 256, 8, 4, 16, 1024)
SPARSE = models.TransformerShape(
    "sparse", 4, 64, 128, 8, 4, 16, 1024, 8, 2, shared_experts=2, shared_mlp=32, dense_layers=2, dense_mlp=256,
    router_bias=True, shared_gate=True, query_key_norm=True,
)  # fmt: skip
LATENT = models.TransformerShape(
    "latent", 4, 64, 128, 8, 8, 24, 1024, q_lora_rank=32, kv_lora_rank=16, rope_head_dim=8, nope_head_dim=16,
    value_head_dim=16, tied_embeddings=True,
)  # fmt: skip
BIASED = models.TransformerShape(
    "biased", 4, 64, 256, 8, 8, 8, 1024, positions=128, norm="layer", gated_mlp=False, qkv_bias=True,
    attention_out_bias=True, mlp_bias=True, head_bias=True, embedding_norm=True, norms_per_layer=4,
    attention_sinks=True,
)  # fmt: skip


def plan(model, devices=16, **values):
    pod = cluster.dgx("h100", nodes=devices // 8)
    return plan_training(model, pod, TrainingConfig(**{"batch": 64, "sequence": 4096, **values}))


def run(found):
    """Executes the code in a world of 16 devices; returns its names."""
    made = {}
    exec(TrainingChoice(found).to_mesh_code(), made)
    return made


def arrays(tree, leaf):
    """Returns the leaves of nested dicts by path, and checks that each has the type of a leaf."""
    if isinstance(tree, dict):
        return {f"{key}.{path}".rstrip("."): each for key in tree for path, each in arrays(tree[key], leaf).items()}
    assert type(tree) is leaf
    return {"": tree}


@pytest.mark.parametrize(
    ("model", "values", "axes", "specs"),
    [
        (
            "llama-3-8b",
            EVERYTHING,
            {"pipeline": 2, "data": 2, "context": 2, "tensor": 2},
            {
                "embedding.tokens": P("tensor"),
                "layers.attention.w_q": P("pipeline", None, "tensor"),
                "layers.attention.w_k": P("pipeline", None, "tensor"),
                "layers.attention.w_v": P("pipeline", None, "tensor"),
                "layers.attention.w_o": P("pipeline", "tensor"),
                "layers.attention_norm.scale": P("pipeline"),
                "layers.mlp_norm.scale": P("pipeline"),
                "layers.mlp.w_gate": P("pipeline", None, "tensor"),
                "layers.mlp.w_up": P("pipeline", None, "tensor"),
                "layers.mlp.w_down": P("pipeline", "tensor"),
                "final_norm.scale": P(),
                "head.w": P(None, "tensor"),
            },
        ),
        (
            "llama-3-8b",
            {"zero": 3, "zero_shards": 8},
            {"replica": 2, "data": 8},
            {
                "embedding.tokens": P(None, "data"),
                "layers.attention.w_q": P(None, "data"),
                "layers.attention.w_k": P(None, "data"),
                "layers.attention.w_v": P(None, "data"),
                "layers.attention.w_o": P(None, None, "data"),
                "layers.attention_norm.scale": P(),
                "layers.mlp_norm.scale": P(),
                "layers.mlp.w_gate": P(None, "data"),
                "layers.mlp.w_up": P(None, "data"),
                "layers.mlp.w_down": P(None, None, "data"),
                "final_norm.scale": P(),
                "head.w": P("data"),
            },
        ),
        (
            "mixtral-8x7b",
            {"zero": 3, "tensor": 2, "expert": 4, "context": 2},
            {"data": 4, "context": 2, "tensor": 2},
            {
                "embedding.tokens": P("tensor", ("data", "context")),
                "layers.attention.w_q": P(None, ("data", "context"), "tensor"),
                "layers.attention.w_k": P(None, ("data", "context"), "tensor"),
                "layers.attention.w_v": P(None, ("data", "context"), "tensor"),
                "layers.attention.w_o": P(None, "tensor", ("data", "context")),
                "layers.attention_norm.scale": P(),
                "layers.mlp_norm.scale": P(),
                "layers.router.w": P(None, ("data", "context")),
                "layers.experts.w_gate": P(None, ("context", "tensor"), "data"),
                "layers.experts.w_up": P(None, ("context", "tensor"), "data"),
                "layers.experts.w_down": P(None, ("context", "tensor"), None, "data"),
                "final_norm.scale": P(),
                "head.w": P(("data", "context"), "tensor"),
            },
        ),
    ],
)
def test_specs_are_a_tree_with_an_entry_for_each_parameter(model, values, axes, specs):
    found = plan(model, **values)
    with ad.simulate(16):
        made = run(found)
        assert dict(made["mesh"].shape) == axes
        assert list(made["mesh"].devices.flat) == ad.devices()
    assert arrays(made["specs"], P) == specs
    shapes = arrays(made["shapes"], tuple)
    assert shapes.keys() == specs.keys()
    assert sum(map(math.prod, shapes.values())) == found.model.parameters.total


def test_activations_and_optimizer_state_have_specs():
    with ad.simulate(16):
        made = run(plan("llama-3-8b", **EVERYTHING))
        whole = run(plan("llama-3-8b", zero=3))
    assert made["activation_specs"] == {
        "tokens": P("data", "context"),
        "between_layers": P("data", ("context", "tensor")),
        "inside_layers": P("data", "context", "tensor"),
    }
    assert made["state_specs"]["layers"]["attention"]["w_q"] == P("pipeline", ("data", "context"), "tensor")
    assert made["state_specs"]["embedding"]["tokens"] == P("tensor", ("data", "context"))
    assert "state_specs" not in whole


@pytest.mark.parametrize("model", [SMALL, SPARSE, LATENT, BIASED], ids=lambda model: model.name)
def test_parameters_of_any_architecture_are_placed(model):
    values = {"tensor": 2, "pipeline": 2, "zero": 3, "sequence": 128, "expert": 2 if model.experts else 1}
    found = plan(model, **values)
    with ad.simulate(16):
        made = run(found)
        sizes = arrays(made["shapes"], tuple)
        total = 0
        for path, sharding in arrays(made["shardings"], ad.NamedSharding).items():
            placed = ad.device_put(np.zeros(sizes[path], np.float32), sharding)
            total += placed.size
            assert len(placed.addressable_shards) == 16
    assert total == model.parameters.total


def test_a_dimension_that_the_axes_do_not_divide_is_whole():
    odd = models.TransformerShape("odd", 4, 96, 128, 8, 4, 16, 1001)
    with ad.simulate(16):
        specs = run(plan(odd, tensor=2, sequence=128, zero=3, zero_shards=8))["specs"]
    assert specs["embedding"]["tokens"] == P(None, "data")
    assert specs["head"]["w"] == P("data")


def test_layers_that_stages_do_not_divide_are_padded():
    found = plan("llama-3.1-405b", devices=128, tensor=8, pipeline=16, zero=1)
    code = TrainingChoice(found).to_mesh_code()
    assert "# 126 layers do not divide into 16 stages: they are padded to 128.\n" in code
    with ad.simulate(128):
        made = run(found)
    assert made["shapes"]["layers"]["attention"]["w_q"] == (128, 16384, 16384)
    assert made["specs"]["layers"]["attention"]["w_q"] == P("pipeline", None, "tensor")


@pytest.mark.parametrize(
    ("values", "axes", "expert", "zero"),
    [
        ({"expert": 2, "zero": 3}, {"data": 8, "expert": 2}, ("expert",), ("data", "expert")),
        ({"expert": 8, "tensor": 2}, {"data": 2, "expert": 4, "tensor": 2}, ("expert", "tensor"), ()),
        ({"expert": 4, "tensor": 2, "expert_tensor": 2}, {"data": 2, "expert": 4, "tensor": 2}, ("expert",), ()),
        (
            {"expert": 2, "zero": 3, "zero_shards": 8},
            {"replica": 2, "data": 4, "expert": 2},
            ("expert",),
            ("data", "expert"),
        ),
        (
            {"expert": 4, "zero": 3, "zero_shards": 2},
            {"replica": 4, "expert_replica": 2, "expert": 2},
            ("expert_replica", "expert"),
            ("expert",),
        ),
        ({"expert": 2, "context": 4}, {"data": 4, "context": 2, "context_expert": 2}, ("context_expert",), ()),
    ],
)
def test_axes_are_cut_where_experts_or_zero_use_some_of_their_ranks(values, axes, expert, zero):
    planned = plan("mixtral-8x7b", **values)
    found = mesh_axes(planned.model, planned.config)
    assert (found.sizes, found.expert, found.zero) == (axes, expert, zero)


def test_experts_and_zero_that_do_not_nest_are_refused():
    twelve = models.TransformerShape("twelve", 4, 96, 128, 8, 4, 16, 1024, 6, 2)
    config = TrainingConfig(batch=48, sequence=128, expert=6, zero=3, zero_shards=4)
    found = plan_training(twelve, cluster.gpus("h100", chips_per_node=12), config)
    with pytest.raises(ValueError, match="ZeRO over 4 and experts over 6 ranks of data do not nest"):
        mesh_axes(found.model, found.config)


def test_code_for_jax_differs_by_the_library_only():
    choice = TrainingChoice(plan("llama-3-8b", **EVERYTHING))
    ours, theirs = choice.to_mesh_code(), choice.to_jax_code()
    assert ours.startswith("# llama-3-8b on 16 devices: microbatches of 1 sequences, 32 per step, ZeRO 2, 2 stages, ")
    assert "import artifex_devices as ad\n" in ours
    ours = ours.replace("import artifex_devices as ad", "import jax").replace(
        "artifex_devices.sharding", "jax.sharding"
    )
    assert re.sub(r"\bad\.", "jax.", ours) == theirs


def test_a_plan_for_one_device_has_an_axis():
    one = plan_training("llama-2-7b", cluster.gpus("h100", chips_per_node=1), TrainingConfig(batch=1, sequence=64))
    assert mesh_axes(one.model, one.config).sizes == {"data": 1}


@pytest.mark.parametrize("operation", ["to_mesh_code", "to_jax_code"])
def test_parameters_that_sizes_do_not_describe_are_refused(operation):
    other = models.TransformerShape("other", 4, 64, 256, 8, 4, 16, 1024, other_parameters=7)
    choice = TrainingChoice(plan(other, sequence=128))
    with pytest.raises(ValueError, match=f"TrainingChoice.{operation}: other has other_parameters=7, parameters whose"):
        getattr(choice, operation)()
