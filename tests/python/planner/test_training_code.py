# SPDX-License-Identifier: Apache-2.0
"""Choices of suggest as code: meshes and specs that run here, and the options of other programs."""

import artifex_devices as ad
import pytest
from artifex_devices import P, cluster, models
from artifex_devices.planner import TrainingConfig, plan_training
from artifex_devices.planner.training import code as training_code

DENSE = "--num-layers 32 --hidden-size 4096 --ffn-hidden-size {mlp} --num-attention-heads 32 --seq-length 4096"
SIZES = "--micro-batch-size {micro} --global-batch-size 64 --tensor-model-parallel-size {tensor}"


def plan(model, **values):
    return plan_training(
        model, cluster.dgx("h100", nodes=2), TrainingConfig(**{"batch": 64, "sequence": 4096, **values})
    )


def words(text):
    """The options in a command of several lines."""
    assert text.endswith("\n")
    return " ".join(line.removesuffix(" \\") for line in text.splitlines())


EVERYTHING = {
    "tensor": 2, "sequence_parallel": True, "pipeline": 2, "schedule": "interleaved", "chunks": 2, "context": 2,
    "context_method": "all_to_all", "zero": 2, "recompute": "full", "recompute_layers": 3, "offload_optimizer": True,
    "dtype": "float8", "overlap": {"data": 0},
}  # fmt: skip


def test_megatron_flags_of_a_dense_model():
    found = words(training_code.megatron_flags(plan("llama-3-8b", **EVERYTHING)))
    assert found == " ".join(
        [
            DENSE.format(mlp=14336),
            SIZES.format(micro=1, tensor=2),
            "--pipeline-model-parallel-size 2 --context-parallel-size 2 --group-query-attention --num-query-groups 8",
            "--sequence-parallel --num-virtual-stages-per-pipeline-rank 2 --cp-comm-type a2a --use-custom-fsdp",
            "--data-parallel-sharding-strategy optim_grads --recompute-granularity full --recompute-method block",
            "--recompute-num-layers 2 --optimizer-cpu-offload --bf16 --fp8-format hybrid",
        ]
    )
    plain = words(training_code.megatron_flags(plan("llama-2-7b", microbatch=2, zero=3)))
    assert plain == " ".join(
        [
            DENSE.format(mlp=11008),
            SIZES.format(micro=2, tensor=1),
            "--pipeline-model-parallel-size 1 --context-parallel-size 1 --use-custom-fsdp",
            "--data-parallel-sharding-strategy optim_grads_params --overlap-grad-reduce --overlap-param-gather --bf16",
        ]
    )
    assert "--recompute-num-layers 16 " in words(
        training_code.megatron_flags(plan("llama-2-7b", pipeline=2, recompute="full"))
    )


def test_megatron_flags_of_experts():
    found = words(
        training_code.megatron_flags(
            plan("mixtral-8x7b", expert=4, zero=1, tensor=2, recompute="selective", dtype="float16")
        )
    )
    assert found == " ".join(
        [
            DENSE.format(mlp=14336),
            SIZES.format(micro=1, tensor=2),
            "--pipeline-model-parallel-size 1 --context-parallel-size 1 --group-query-attention --num-query-groups 8",
            "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 14336 --expert-model-parallel-size 4",
            "--expert-tensor-parallel-size 1 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
            "--recompute-granularity selective --fp16",
        ]
    )
    mixed = models.TransformerShape(
        "mixed", 8, 1024, 512, 16, 16, 64, 32000, experts=4, experts_per_token=1, dense_mlp=4096, dense_layers=1
    )
    assert "--ffn-hidden-size 4096 " in words(training_code.megatron_flags(plan(mixed)))
    assert "--moe-ffn-hidden-size 512 " in words(training_code.megatron_flags(plan(mixed)))


@pytest.mark.parametrize(
    ("model", "values", "expected"),
    [
        ("llama-3-8b", EVERYTHING, {"tensor": 2, "context": 2, "pipeline": 2, "dcn": 2, "remat": "full"}),
        ("mixtral-8x7b", {"expert": 4, "zero": 1, "tensor": 2}, {"tensor": 2, "expert": 4, "dcn": 2}),
        ("mixtral-8x7b", {"expert": 2, "zero": 1, "tensor": 2}, {"tensor": 2, "expert": 2, "data": 2, "dcn": 2}),
        ("llama-2-7b", {"zero": 3, "zero_shards": 8}, {"fsdp": 8, "dcn": 2}),
        ("llama-2-7b", {"zero": 3}, {"fsdp": 16}),
        ("llama-2-7b", {"zero": 1}, {"data": 8, "dcn": 2}),
    ],
)
def test_maxtext_flags(model, values, expected):
    found = plan(model, **values)
    kinds = ("tensor", "context", "pipeline", "expert", "fsdp", "data")
    settings = {
        "per_device_batch_size": "4.0",
        "max_target_length": "4096",
        **{f"ici_{kind}_parallelism": str(expected.get(kind, 1)) for kind in kinds},
        "dcn_data_parallelism": str(expected.get("dcn", 1)),
        "remat_policy": expected.get("remat", "minimal"),
        "dtype": "bfloat16",
    }
    if "pipeline" in expected:
        settings |= {"num_pipeline_microbatches": "32", "num_layers_per_pipeline_stage": "8"}
    text = training_code.maxtext_flags(found)
    assert dict(line.split("=") for line in text.splitlines()) == settings


WEIGHTS = ("embedding", "w_q, w_k, w_v, w_gate, w_up", "w_o, w_down")


@pytest.mark.parametrize(
    ("values", "axes", "specs"),
    [
        (
            EVERYTHING,
            {"pipeline": 2, "data": 2, "context": 2, "tensor": 2},
            [P("tensor", None), P(None, "tensor"), P("tensor", None), P("data", "context"),
             P("data", ("context", "tensor"), None), P("data", "context", "tensor")],
        ),
        (
            {"zero": 3, "zero_shards": 8},
            {"replica": 2, "data": 8},
            [P(None, "data"), P("data", None), P(None, "data"), P(("replica", "data"), None),
             P(("replica", "data"), None, None), P(("replica", "data"), None, None)],
        ),
        (
            {"tensor": 8, "pipeline": 2, "sequence_parallel": True},
            {"pipeline": 2, "tensor": 8},
            [P("tensor", None), P(None, "tensor"), P("tensor", None), P(None, None), P(None, "tensor", None),
             P(None, None, "tensor")],
        ),
        (
            {"zero": 3, "zero_shards": 16, "tensor": 1},
            {"data": 16},
            [P(None, "data"), P("data", None), P(None, "data"), P("data", None), P("data", None, None),
             P("data", None, None)],
        ),
    ],
)  # fmt: skip
def test_meshes_and_specs_run(values, axes, specs):
    found = plan("llama-3-8b", **values)
    code = training_code.mesh_code(found)
    assert code.startswith("# llama-3-8b on 16 devices: microbatches of 1 sequences, ")
    assert (", 2 stages, " in code) == (found.config.pipeline == 2)
    made = {}
    with ad.simulate(16):
        exec(code, made)
        assert dict(made["mesh"].shape) == axes
        assert list(made["mesh"].devices.flat) == ad.devices()
    names = ("tokens", "activations between layers", "activations inside")
    assert made["specs"] == dict(zip((*WEIGHTS, *names), specs, strict=True))
    assert training_code.jax_code(found).split("devices = ")[1].split("\n", 1)[1] == code.split("\n", 6)[6]


def test_a_plan_for_one_device_has_an_axis():
    one = plan_training("llama-2-7b", cluster.gpus("h100", chips_per_node=1), TrainingConfig(batch=1, sequence=64))
    assert training_code.mesh_axes(one) == {"data": 1}
    assert "P(None, None)" in training_code.mesh_code(one)
