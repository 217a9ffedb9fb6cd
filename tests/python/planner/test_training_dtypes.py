# SPDX-License-Identifier: Apache-2.0
"""Dtypes of parameters and gradients by kind of tensor: bytes held, sent and updated."""

import json
import pickle
from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import Efficiency, TrainingConfig, plan_training, suggest
from artifex_devices.planner.training.tensor_dtypes import TENSOR_KINDS

# Layer 0 has an MLP, layer 1 eight routed experts and a shared one.
SHAPE = models.TransformerShape(
    "sparse", 2, 1024, 2048, 16, 8, 64, 16000, experts=8, experts_per_token=2, shared_experts=1, shared_mlp=512,
    dense_layers=1, dense_mlp=4096,
)  # fmt: skip
COUNTS = {
    "embedding": 16000 * 1024,
    "head": 16000 * 1024,
    "norm": (2 + 2 + 1) * 1024,
    "attention": 2 * (1024 * 1024 + 2 * 8 * 64 * 1024 + 1024 * 1024),  # queries, keys and values of 8 heads, output
    "mlp": 3 * 1024 * 4096 + 3 * 1024 * 512,
    "router": 1024 * 8,
    "expert": 8 * 3 * 1024 * 2048,
}
NODE = cluster.dgx("h100")  # 8 GPUs, 450e9 bytes/s one way
MEMORY = 3.35e12  # bytes/s


def plan(shape=SHAPE, **values):
    config = TrainingConfig(**{"batch": 16, "sequence": 256, "overlap": {"data": 0, "offload": 0}, **values})
    return plan_training(shape, NODE, config, efficiency=Efficiency.ideal())


def test_the_kinds_are_all_parameters():
    assert tuple(COUNTS) == TENSOR_KINDS
    assert sum(COUNTS.values()) == SHAPE.parameters.total == plan().stages[0].parameters_held


@pytest.mark.parametrize("kind", TENSOR_KINDS)
def test_each_kind_has_its_bytes_of_parameters_and_gradients(kind):
    usual = plan().stages[0]
    wide = plan(parameter_dtypes={kind: "float32"}).stages[0]
    narrow = plan(gradient_dtypes={kind: "bfloat16"}).stages[0]
    assert usual.parameters == 2 * sum(COUNTS.values())
    assert usual.gradients == 4 * sum(COUNTS.values())
    assert wide.parameters == usual.parameters + 2 * COUNTS[kind]
    assert narrow.gradients == usual.gradients - 2 * COUNTS[kind]
    assert (wide.gradients, narrow.parameters) == (usual.gradients, usual.parameters)
    assert wide.optimizer == narrow.optimizer == usual.optimizer


def test_scales_are_bytes_of_parameters_of_8_bits():
    kept = {"norm": "bfloat16", "embedding": "float32"}
    mixed = {"parameter_dtype": "float8_e4m3fn", "parameter_dtypes": kept}
    plain, scaled = (plan(**mixed, parameter_scale=scale).stages[0] for scale in (0, 1 / 32))
    narrow = sum(COUNTS.values()) - COUNTS["norm"] - COUNTS["embedding"]
    assert scaled.parameters == plain.parameters + narrow / 32
    assert (scaled.gradients, scaled.optimizer) == (plain.gradients, plain.optimizer)
    half = plan(parameter_dtype="int4", parameter_scale=0.125).stages[0]
    assert half.parameters == 0.625 * sum(COUNTS.values())
    assert plan(parameter_scale=1).stages[0].parameters == plan().stages[0].parameters  # of 16 bits
    gathered = [plan(zero=1, **mixed, parameter_scale=scale).expected.parts["data"] for scale in (0, 1 / 32)]
    assert gathered[1] > gathered[0]
    text = plan(**mixed, parameter_scale=1 / 32).details()
    assert "0.0312 bytes of scales for each of 8 bits or fewer" in text


def test_older_pickles_have_no_scales():
    config = TrainingConfig(batch=16, sequence=256, parameter_scale=0.5)
    older = {name: value for name, value in config.__getstate__().items() if name != "parameter_scale"}
    again = TrainingConfig.__new__(TrainingConfig)
    again.__setstate__(older)
    assert again == config.replaced(parameter_scale=0)


@pytest.mark.parametrize(
    ("scale", "error"), [(-1, ValueError), ("x", TypeError), (float("nan"), ValueError), (True, TypeError)]
)
def test_a_scale_is_a_number_of_bytes(scale, error):
    with pytest.raises(error, match="TrainingConfig: parameter_scale is"):
        TrainingConfig(batch=16, sequence=256, parameter_scale=scale)


def test_parameters_of_deepseek_v3_in_8_bits_except_those_that_stay_in_16():
    shape = models.SHAPES["deepseek-v3"]
    kept = dict.fromkeys(("embedding", "head", "norm", "router"), "bfloat16")
    config = TrainingConfig(batch=2048, sequence=256, parameter_dtype="float8_e4m3fn", parameter_dtypes=kept)
    stage = plan_training(shape, cluster.gpus("h800", nodes=256), config).stages[0]
    norms = 7168 * (2 * 61 + 1) + 61 * (1536 + 512) + 58 * 256  # and the biases of the routers
    assert stage.parameters == shape.parameters.total + 2 * 129280 * 7168 + norms + 58 * 256 * 7168


@pytest.mark.parametrize("kind", TENSOR_KINDS)
def test_gradients_are_reduced_in_their_dtypes(kind):
    def data(**values):
        return plan(**values).expected.parts["data"]

    narrow = {"gradient_dtypes": {kind: "bfloat16"}}
    saved = 2 * COUNTS[kind]
    scattered = data(zero=1) - data(zero=1, **narrow)
    assert scattered == pytest.approx(saved * 7 / 8 / 450e9, rel=1e-6)
    repeated = data(zero=2) - data(zero=2, **narrow)  # after each of two microbatches
    assert repeated == pytest.approx(2 * saved * 7 / 8 / 450e9, rel=1e-6)
    # An all-reduce in the switch: the array and an eighth of it.
    reduced = data() - data(**narrow)
    assert reduced == pytest.approx(saved * 9 / 8 / 450e9, rel=1e-6)


@pytest.mark.parametrize("kind", TENSOR_KINDS)
def test_parameters_are_gathered_in_their_dtypes(kind):
    def data(**values):
        return plan(**values).expected.parts["data"]

    wide = {"parameter_dtypes": {kind: "float32"}}
    more = 2 * COUNTS[kind]
    assert data(zero=1, **wide) - data(zero=1) == pytest.approx(more * 7 / 8 / 450e9, rel=1e-6)
    # ZeRO-3 gathers for the forward and the backward pass of two microbatches, in the dtype of activations or less.
    assert data(zero=3, **wide) == data(zero=3)
    narrow = {"parameter_dtypes": {kind: "float8_e4m3fn"}}
    assert data(zero=3) - data(zero=3, **narrow) == pytest.approx(4 * COUNTS[kind] * 7 / 8 / 450e9, rel=1e-6)
    assert data(**wide) == data()


def test_zero_3_gathers_two_layers_in_their_dtypes():
    layer = {"norm": 2 * 1024, "attention": COUNTS["attention"] // 2, "mlp": 3 * 1024 * 512, "router": 1024 * 8}
    layer["expert"] = COUNTS["expert"]
    xla = {"zero": 3, "framework": "maxtext", "parameter_dtype": "bfloat16"}
    usual = plan(**xla).stages[0].working
    assert usual == 2 * 2 * sum(layer.values())
    for kind in TENSOR_KINDS:
        wide = plan(**xla, parameter_dtypes={kind: "float32"}).stages[0]
        assert wide.working == usual
        narrow = plan(**xla, parameter_dtypes={kind: "float8_e4m3fn"}).stages[0]
        assert narrow.working == usual - 2 * layer.get(kind, 0)
        assert wide.parameters == (2 * sum(COUNTS.values()) + 2 * COUNTS[kind]) / 8


def test_experts_that_are_not_replicated_send_no_gradients():
    spread = plan(expert=8, zero=1)
    narrow = plan(expert=8, zero=1, gradient_dtypes={"expert": "bfloat16"})
    assert narrow.expected.parts["data"] == spread.expected.parts["data"]
    assert spread.stages[0].gradients - narrow.stages[0].gradients == 2 * COUNTS["expert"] / 8


def test_the_update_and_the_host_move_each_dtype():
    usual, narrow = (plan(zero=1, gradient_dtypes=each) for each in ({}, {"mlp": "bfloat16"}))
    saved = 2 * COUNTS["mlp"] / 8
    assert usual.expected.parts["update"] - narrow.expected.parts["update"] == pytest.approx(saved / MEMORY, rel=1e-6)
    usual, narrow = (plan(zero=1, offload_optimizer=True, gradient_dtypes=each) for each in ({}, {"mlp": "bfloat16"}))
    assert usual.expected.parts["offload"] - narrow.expected.parts["offload"] == pytest.approx(saved / 64e9, rel=1e-6)


def test_tied_embeddings_have_no_head():
    shape = replace(SHAPE, tied_embeddings=True)
    usual = plan(shape)
    assert plan(shape, parameter_dtypes={"head": "float32"}).stages == usual.stages
    last = plan(shape, pipeline=2, parameter_dtypes={"embedding": "float32"}).stages[1]
    assert last.parameters - plan(shape, pipeline=2).stages[1].parameters == 2 * COUNTS["embedding"]  # its copy


@pytest.mark.parametrize(
    ("optimizer", "size", "others"),
    [
        ("sgd", 0, {}),
        ("adam", 8, {}),
        ("adamw-fp32-master", 12, {}),
        ("adafactor", 4, {"norm": 8}),  # moments of vectors are not factored
        ("muon", 8, {"embedding": 12, "head": 12, "norm": 12}),  # updated by AdamW
    ],
)
def test_optimizers_have_their_states(optimizer, size, others):
    found = plan(optimizer=optimizer).stages[0].optimizer
    assert found == sum(others.get(kind, size) * count for kind, count in COUNTS.items())


def test_texts_and_json_have_the_dtypes():
    found = plan(gradient_dtypes={"expert": "bfloat16"}, parameter_dtypes={"norm": "float32", "embedding": "float32"})
    line = "parameters bfloat16 (embedding float32, norm float32); gradients float32 (expert bfloat16)"
    assert line in " ".join(found.details().split())
    content = json.loads(found.to_json())["config"]
    assert content["parameter_dtypes"] == {"embedding": "float32", "norm": "float32"}
    assert content["gradient_dtypes"] == {"expert": "bfloat16"}
    assert "dtypes" not in plan().details()


def test_searches_and_nearest_fits_keep_the_dtypes():
    dtypes = {"gradient_dtypes": {"expert": "bfloat16"}}
    found = suggest(SHAPE, NODE, batch=16, sequence=256, progress=False, zero=[0, 1], **dtypes)
    assert {dict(choice.config.gradient_dtypes)["expert"] for choice in found.options} == {"bfloat16"}
    assert found.best.plan.stages == plan_training(SHAPE, NODE, found.best.config).stages


def test_configurations_of_dtypes_are_values():
    config = TrainingConfig(batch=16, sequence=256, parameter_dtypes={"head": "float32"})
    assert pickle.loads(pickle.dumps(config)) == config != TrainingConfig(batch=16, sequence=256)
    assert hash(pickle.loads(pickle.dumps(config))) == hash(config)
    assert config.replaced(zero=1).parameter_dtypes == {"head": "float32"}
    with pytest.raises(TypeError):
        config.parameter_dtypes["head"] = "int8"
    with pytest.raises(TypeError, match=r"TrainingConfig: gradient_dtypes is 3 \(int\); expected a mapping"):
        config.replaced(gradient_dtypes=3)
