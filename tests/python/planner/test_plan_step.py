# SPDX-License-Identifier: Apache-2.0
"""What a step costs: bytes, FLOPs, memory and bounds against counts by hand, and errors."""

import copy
import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from artifex_devices import cluster, mesh_utils, models
from artifex_devices.models import Operation, Optimizer, StepModel, Tensor
from artifex_devices.planner import Efficiency, plan_collective, plan_step
from artifex_devices.sharding import Mesh
from hypothesis import given
from hypothesis import strategies as st
from notebook_pages import Page

MLP = {"embed": 1024, "mlp": 4096, "layers": 3, "tokens": 4096}
MATRIX = 1024 * 4096 * 2
SHARDED = {"batch": "data", "embed": "data", "mlp": "tensor", "activation_embed": "tensor"}


def mesh_of(pod, shape, names=("data", "tensor")):
    return Mesh(np.array(pod.devices()).reshape(shape), names)


@pytest.fixture(scope="module")
def mesh():
    """Axes of 4 on a torus without wraparound: "data" along y, "tensor" along x."""
    return mesh_of(cluster.tpu("v5e", (4, 4)), (4, 4))


def listed(plan):
    return [
        (each.phase, each.op, each.tensor, each.is_gradient, each.axes, each.count, each.nbytes)
        for each in plan.collectives
    ]


def test_an_activation_is_kept_unless_the_model_says_otherwise():
    assert Tensor("x", (8,), ("batch",)) == Tensor("x", (8,), ("batch",), "bfloat16", "activation", 1, True, False)


def test_memory_flops_and_bytes_by_hand(mesh):
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED)
    parameters = 3 * 2 * MATRIX // 16
    memory = plan.memory
    assert (memory.parameters, memory.gradients, memory.optimizer) == (parameters, parameters, 4 * parameters)
    assert memory.activations == 3 * (4096 * 1024 + 4096 * 4096) * 2 // 16  # in and tmp
    # Of the gradient of tmp: that of out as it is cut and as it is gathered, w_out gathered, and the result.
    assert memory.working == 4096 * 1024 * 2 // 16 + 4096 * 1024 * 2 // 4 + MATRIX // 4 + 4096 * 4096 * 2 // 16
    assert memory.total == sum((parameters * 6, memory.activations, memory.working))
    assert memory.available == 16 * 2**30
    assert plan.fits
    assert plan.flops == 6 * 3 * 2 * 1024 * 4096 * 4096 / 16
    assert plan.roofline.compute == pytest.approx(plan.flops / 1.97e14)
    assert plan.update_bytes == parameters * (1 + 2 + 2 * 4)
    # Each of the three products of an operation moves a matrix gathered over data, and rows and columns of tokens.
    each = MATRIX / 4 + (4096 * 1024 / 4 + 4096 * 4096 / 16) * 2
    assert [product.bytes for product in plan.products] == [3 * each] * 6
    assert plan.roofline.memory == pytest.approx((18 * each + plan.update_bytes) / 8.19e11)


def test_flops_are_six_a_parameter_and_token_and_those_of_attention(mesh):
    model = models.transformer("llama-2-7b", batch=16, sequence=512, keep="all")
    rules = {"batch": "data", "embed": "data", "mlp": "tensor", "kv_heads": "tensor", "vocab": "tensor"}
    plan = plan_step(model, mesh, rules)
    scores = 16 * 32 * 512 * 512 * 128  # of each layer and product, half of them masked
    by_kind = {}
    for product in plan.products:
        key = (product.operation in ("scores", "attend"), product.kind == "recomputed")
        by_kind[key] = by_kind.get(key, 0) + product.flops * 16
    unused = 32000 * 4096 + 65 * 4096  # the embedding is looked up, norms are element by element
    assert by_kind == {
        (False, False): 6 * (model.parameters - unused) * 16 * 512,
        (True, False): 3 * 2 * 32 * scores,
        (True, True): 32 * scores,
    }
    full = models.transformer("llama-2-7b", batch=16, sequence=512, keep="all", causal=False)
    masked = [each for each in plan_step(full, mesh, rules).products if each.operation in ("scores", "attend")]
    assert sum(each.flops for each in masked) == 2 * 7 * 32 * scores / 16
    useful = (by_kind[False, False] + by_kind[True, False]) / 16
    assert plan.utilization == pytest.approx(useful / 1.97e14 / plan.seconds)


def test_one_device_has_no_network():
    mesh = mesh_of(cluster.tpu("v5e", (1, 1)), (1, 1))
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED)
    assert plan.collectives == ()
    assert plan.roofline.network == 0
    assert [regime.bound for regime in plan.regimes] == ["memory", "compute"]
    assert [regime.bound for regime in plan.serial_regimes] == ["memory", "compute"]
    assert "collective" not in str(plan)


def test_a_step_takes_the_largest_or_the_sum(mesh):
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED)
    bound = plan.roofline
    assert plan.bound == bound.overlapped == max(bound.compute, bound.memory, bound.network)
    assert plan.limit == "network"
    assert plan.serial_limit == "network"
    products = sum(max(each.bound, each.bytes / 8.19e11) for each in plan.products)
    assert bound.serial == pytest.approx(products + plan.update_bytes / 8.19e11 + bound.network)
    assert plan.utilization == pytest.approx(bound.compute / plan.seconds)


def test_expected_seconds_are_at_the_reached_rates(mesh):
    factors = Efficiency.ideal().replaced(matmul=0.5, memory=0.25, links=0.1, layer_seconds=1e-3, step_seconds=0.5)
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED, efficiency=factors)
    expected = plan.expected
    assert [each.seconds for each in plan.products] == [
        pytest.approx(max(each.bound / 0.5, each.bytes / 8.19e11 / 0.25)) for each in plan.products
    ]
    assert expected.products == pytest.approx(sum(each.seconds for each in plan.products))
    # `in` is a sum that three passes read and write: 4096 x 1024 on 16 devices, two operands and a result.
    assert plan.elementwise_bytes == 3 * 3 * 3 * 4096 * 1024 * 2 / 16
    assert expected.elementwise == pytest.approx(plan.elementwise_bytes / 8.19e11 / 0.25)
    assert expected.update == pytest.approx(plan.update_bytes / 8.19e11 / 0.25)
    assert (expected.attention, expected.layers, expected.once) == (0, 3 * 2 * 1e-3, 0.5)
    for is_parameter, seconds in ((True, expected.weights), (False, expected.activations)):
        found = [each for each in plan.collectives if each.is_parameter == is_parameter]
        assert seconds == pytest.approx(sum(each.seconds for each in found))
    transfers = [each.estimate.transfer for each in plan.collectives]
    ideal = plan_step(models.mlp(**MLP), mesh, SHARDED, efficiency=Efficiency.ideal())
    assert transfers == [pytest.approx(each.estimate.transfer / 0.1) for each in ideal.collectives]
    passes = expected.products + expected.elementwise + expected.layers + expected.activations
    assert expected.hidden == pytest.approx(min(expected.weights, passes - expected.activations))
    assert (
        plan.seconds
        == expected.overlapped
        == pytest.approx(passes + expected.update + expected.once + expected.weights - expected.hidden)
    )
    assert expected.serial == pytest.approx(plan.seconds + expected.hidden)
    assert plan.roofline == ideal.roofline  # factors do not change the bound


def test_the_error_is_that_of_published_dense_training_runs():
    gpus = mesh_of(cluster.dgx("h100"), (8,), ("data",))
    dense = models.transformer("llama-2-7b", batch=8, sequence=128)
    assert "16 published dense runs in bfloat16 on H100, not used to fit the factors" in str(plan_step(dense, gpus, {}))
    unknown = "error        not known"
    forward = models.transformer("llama-2-7b", batch=8, sequence=128, optimizer=None)
    experts = models.moe(embed=64, mlp=64, experts=8, experts_per_token=1, layers=1, tokens=64)
    for model, factors in ((forward, None), (experts, None), (dense, Efficiency.ideal())):
        plan = plan_step(model, gpus, {}, efficiency=factors)
        assert unknown in str(plan)
        assert json.loads(plan.to_json())["error"] is None


def test_a_bound_that_no_batch_crosses():
    mesh = mesh_of(cluster.tpu("v5e", (16, 16)), (16, 16))
    plan = plan_step(models.mlp(**MLP), mesh, {"mlp": "tensor", "activation_embed": "tensor"})
    assert plan.compute_bound_tokens == math.inf
    assert plan.regimes[-1].bound == "network"


def test_a_model_that_never_fits():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (16,), ("data",))
    plan = plan_step(models.transformer("llama-2-70b", batch=16, sequence=128), mesh, {"batch": "data"})
    assert not plan.fits
    assert plan.largest_batch == 0
    assert "does not fit; no batch fits" in str(plan)


def test_the_text_shows_the_largest_batch_in_examples_and_tokens():
    mesh = mesh_of(cluster.tpu("v5e", (16, 16)), (256,), ("data",))
    model = models.transformer("mixtral-8x7b", batch=256, sequence=128)  # its batch axes: batch and expert_batch
    plan = plan_step(model, mesh, {"batch": "data", "expert_batch": "data", "embed": "data"})
    assert plan.largest_batch == 4864
    assert "largest batch that fits: 4864 (622.6k tokens)\n" in str(plan)  # 128 tokens each


def test_the_guides_layer_of_experts():
    layer = models.moe(embed=4096, mlp=14336, experts=8, experts_per_token=2, layers=1, tokens=2**18)
    devices = cluster.tpu("v5p", (4, 4, 4)).devices()
    order = mesh_utils.create_device_mesh((8, 8), devices, allow_split_physical_axes=True)
    rules = {"batch": ("data", "expert"), "expert_batch": "data", "experts": "expert", "embed": "data"}
    plan = plan_step(layer, Mesh(order, ("data", "expert")), rules)
    exchanged = [each for each in plan.collectives if each.op == "all_to_all"]
    assert [(each.phase, each.tensor, each.is_gradient) for each in exchanged] == [
        ("forward", "expert_in", False),
        ("forward", "out", False),
        ("backward", "expert_out", True),
        ("backward", "in", True),
    ]
    assert {(each.axes, each.devices, each.count) for each in exchanged} == {(("expert",), 8, 1)}
    assert {each.nbytes for each in exchanged} == {2**18 // 8 * 2 * 4096 * 2} == {512 * 2**20}
    assert {each.bytes_received for each in exchanged} == {512 * 2**20 / 8 * 7 / 8}
    matrices = [each for each in plan.collectives if each.tensor in ("w_gate", "w_up", "w_down")]
    assert [(each.op, each.phase) for each in matrices].count(("reduce_scatter", "backward")) == 3
    assert {(each.axes, each.nbytes) for each in matrices} == {(("data",), 4096 * 14336 * 2)}
    assert layer.parameters == 3 * 8 * 4096 * 14336 + 4096 * 8 == 1_409_318_912
    assert plan.memory.parameters == 3 * 8 * 4096 * 14336 * 2 // 64 + 4096 * 8 * 2 // 8 == 44_048_384
    assert plan.flops == 6 * 3 * 2 * 2**18 * 4096 * 14336 / 64 + 6 * 2**18 * 4096 * 8 / 64
    assert plan.limit == "compute"
    assert plan.compute_bound_tokens == pytest.approx(52_687, abs=1)
    page = (Path(__file__).resolve().parents[3] / "docs" / "how_to" / "plan_a_step.md").read_text(encoding="utf-8")
    for figure in ("512 MiB", "1.409e9 parameters", "44,048,384", "52.69 thousand tokens on (823 per chip)"):
        assert figure in page


def test_a_decoding_step_reads_weights_and_cache(mesh):
    model = models.transformer("llama-2-7b", batch=16, sequence=1, cache=1024, optimizer=None)
    plan = plan_step(model, mesh, {"batch": "data", "kv_heads": "tensor", "mlp": "tensor", "vocab": "tensor"})
    assert plan.limit == "memory"
    assert plan.memory.given == 2 * 32 * 16 * 1024 * 4096 * 2 // 16
    assert (plan.memory.gradients, plan.memory.optimizer, plan.memory.activations) == (0, 0, 0)
    assert {each.phase for each in plan.collectives} == {"forward"}
    assert {(each.tensor, each.op) for each in plan.collectives} == {
        ("embedded", "all_reduce"), ("attention_out", "all_reduce"), ("mlp_out", "all_reduce"),
    }  # fmt: skip


def test_slices_of_a_cluster_and_gpus():
    pods = cluster.tpu("v5e", (4, 4), slices=2)
    plan = plan_step(models.mlp(**MLP), mesh_of(pods, (2, 16), ("slice", "data")), {"batch": ("slice", "data")})
    assert {each.axes for each in plan.collectives} == {("slice", "data")}
    gpus = cluster.dgx("h100", nodes=4)
    mesh = mesh_of(gpus, (4, 8))
    plan = plan_step(models.mlp(**MLP), mesh, {"batch": "data", "mlp": "tensor"})
    alone = plan_collective("all_reduce", MATRIX / 8, "data", mesh, efficiency=plan.efficiency)
    assert plan.collectives[-1].estimate.seconds == alone.seconds
    assert "network 50 GB/s a chip" in plan.seconds_from.text


def test_formats_of_products():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (16,), ("data",))
    model = models.transformer("llama-2-7b", batch=16, sequence=8, optimizer=None, dtype="int8")
    plan = plan_step(model, mesh, {"batch": "data"})
    assert {product.format for product in plan.products} == {"int8"}
    assert plan.roofline.compute == pytest.approx(plan.flops / 3.94e14)
    with pytest.raises(RuntimeError, match=r"no source publishes FLOP/s of float16 for this chip; expected a format"):
        plan_step(models.mlp(**MLP, dtype="float16"), mesh, {"batch": "data"})
    with pytest.raises(RuntimeError, match=r"no source publishes FLOP/s for products of float64 \(in \* w_in\)"):
        plan_step(models.mlp(**MLP, dtype="float64"), mesh, {"batch": "data"})


def test_optimizers():
    mesh = mesh_of(cluster.tpu("v5e", (4, 4)), (16,), ("data",))
    model = models.mlp(**MLP, optimizer=Optimizer(12, gradient_dtype="float32", holds_gradients=False))
    plan = plan_step(model, mesh, {"batch": "data"})
    assert (plan.memory.gradients, plan.memory.optimizer) == (0, 12 * model.parameters)
    assert [each.nbytes for each in plan.collectives] == [2 * MATRIX, 2 * MATRIX]


def test_text_html_and_json(mesh):
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED)
    lines = str(plan).splitlines()
    assert lines[0] == ("3 layers of 1024 x 4096, training step of 4096 tokens on data 4 x tensor 4 of TPU v5e 4x4")
    assert lines[1] == "  sharded      batch: data, activation_embed: tensor, embed: data, mlp: tensor"
    assert any(line.startswith("  reduce-scatter  gradient of w_in ") for line in lines)
    page = Page(plan._repr_html_())
    assert page.tags.count("th") == 9
    assert page.letters.count("reduce-scatter") == sum(each.op == "reduce_scatter" for each in plan.collectives)
    assert page.pictures == []
    content = json.loads(plan.to_json())
    assert content["kind"] == "step"
    assert content["memory"]["total"] == plan.memory.total
    assert content["compute_bound_tokens"] is None  # 4 ways of "tensor" are too many for 4,096 inside
    assert content["regimes"][-1]["tokens_to"] is None
    assert [each["nbytes"] for each in content["collectives"]] == [each.nbytes for each in plan.collectives]


def test_rules_that_do_not_fit(mesh):
    model = models.mlp(**MLP)
    with pytest.raises(ValueError, match="plan_step") as caught:
        plan_step(model, mesh, {"batches": "data", "mlp": ("model", "data"), "embed": ("data", "data")})
    assert str(caught.value) == (
        "plan_step: 'batches' is not a logical axis of the model (batch, activation_embed, embed, mlp) (did you mean "
        "batch?); 'mlp' is sharded over 'model', which the mesh does not have (data, tensor); 'embed' names an axis "
        "twice: "
        "('data', 'data'); "
        "expected logical axes of the model to axes of the mesh; correct the rules"
    )
    with pytest.raises(ValueError, match="plan_step") as caught:
        plan_step(models.mlp(embed=1024, mlp=10, layers=1, tokens=30), mesh, {"batch": "data", "mlp": "tensor"})
    assert str(caught.value) == (
        "plan_step: the rules do not fit the model: batch (30 in in and 2 other tensors) is sharded 4 ways over data; "
        "nearest 28 or 32; mlp (10 in w_in and 2 other tensors) is sharded 4 ways over tensor; nearest 8 or 12; "
        "expected dimensions that divide evenly, and each axis of the mesh in one dimension of a tensor; change the "
        "rules, the mesh or the shapes"
    )
    with pytest.raises(ValueError, match=r"data shards both embed and mlp of w_in and 1 other tensor;"):
        plan_step(model, mesh, {"embed": "data", "mlp": "data"})


def test_arguments_of_the_wrong_type(mesh):
    model = models.mlp(**MLP)
    with pytest.raises(TypeError, match="plan_step: batch and sequence are missing; expected"):
        plan_step("llama-2-7b", mesh, {})
    with pytest.raises(TypeError, match=r"mesh is <Cluster .*> \(Cluster\); expected a Mesh of a cluster's devices"):
        plan_step(model, cluster.tpu("v5e", (4, 4)), {})
    empty = Mesh(np.empty((0,), dtype=object), ("data",))
    with pytest.raises(TypeError, match=r"mesh is Mesh.* \(Mesh\); expected a Mesh of a cluster's devices"):
        plan_step(model, empty, {})
    with pytest.raises(TypeError, match=r"rules is \['batch'\] \(list\); expected a mapping"):
        plan_step(model, mesh, ["batch"])
    with pytest.raises(TypeError, match=r"the rule of 'batch' is 1 \(int\); expected an axis of the mesh"):
        plan_step(model, mesh, {"batch": 1})


def test_meshes_and_clusters_that_cannot_be_priced():
    pod = cluster.tpu("v5e", (4, 4))
    order = np.array(pod.devices())[[0, 5, 2, 3, 4, 1, *range(6, 16)]]
    with pytest.raises(ValueError, match=r"a group of the mesh, .* are not a box of the cluster TPU v5e 4x4"):
        plan_step(models.mlp(**MLP), Mesh(order.reshape(4, 4), ("data", "tensor")), {"mlp": "tensor"})
    here = cluster.this_machine()
    with pytest.raises(
        RuntimeError, match="the memory bandwidth of CPU domain in the cluster this machine is not known"
    ):
        plan_step(models.mlp(**MLP), Mesh(np.array(here.devices()), ("data",)), {})


def test_models_report_every_inconsistency():
    with pytest.raises(ValueError, match="StepModel") as caught:
        StepModel(
            "bad",
            (Tensor("x", (8, 4), ("batch", "embed")), Tensor("w", (5, 6), ("in", "out"), role="parameter"),
             Tensor("y", (8, 6), ("batch", "out")), Tensor("v", (3,), ("in",), role="parameter")),
            (Operation("product", "bd,df->bf", ("x", "w"), "y"), Operation("other", "bd->bfg", ("x", "z"), "y"),
             Operation("third", "bd,de->bef", ("x", "w"), "y"), Operation("fourth", "bd->bd", ("x",), "y", "sum")),
            tokens=8,
            optimizer=Optimizer(-1),
        )  # fmt: skip
    assert str(caught.value) == (
        "StepModel: 'bad' is inconsistent: operation 'product': 'd' has unequal sizes: 4 in 'x', 5 in 'w'; operation "
        "'other': it uses 'z', expected names of tensors (x, w, y, v); operation 'third': 'bef' for 'y' has 3 letters, "
        "expected one for each dimension of (8, 6); operation 'third': 'd' has unequal sizes: 4 in 'x', 5 in 'w'; "
        "operation 'third': 'f' is in the output only; operation 'fourth': kind is 'sum', expected one of matmul, "
        "elementwise, lookup, route; bytes_per_parameter is -1, expected a number of 0 to 1048576; no operation uses "
        "parameter 'v', expected an operation that defines its gradient; expected fields as the docstrings of "
        "StepModel, "
        "Tensor, Operation and Optimizer describe them; correct each"
    )
    with pytest.raises(ValueError, match="StepModel") as caught:
        StepModel(
            "worse",
            (
                Tensor("x", (0, 4), ("batch",), role="weight", count=0),
                Tensor("x", (2**61, 4), ("a", "b")),
            ),
            (Operation("product", "bd,df->bf", ("x", "w"), "y"),),
            tokens=0,
        )
    assert str(caught.value) == (
        "StepModel: 'worse' is inconsistent: tokens is 0, expected an int of 1 or more, below 2**62; two tensors are "
        "named 'x'; tensor 'x': it has 2 dimensions and 1 axes; tensor 'x': shape is (0, 4), expected ints of 1 or "
        "more, and fewer than 2**62 elements; tensor 'x': role is 'weight', expected one of parameter, activation, "
        "given; tensor 'x': count is 0, expected an int of 1 or more, below 2**62; tensor 'x': shape is "
        "(2305843009213693952, 4), expected ints of 1 or more, and fewer than 2**62 elements; expected fields as the "
        "docstrings of StepModel, Tensor, Operation and Optimizer describe them; correct each"
    )
    with pytest.raises(ValueError, match="StepModel") as caught:
        one_product(tensors=(Tensor("x", (8, 4.5), (3,), dtype="float7"),), tokens=0.5)
    assert str(caught.value) == (
        "StepModel: 'one' is inconsistent: tokens is 0.5, expected an int of 1 or more, below 2**62; tensor 'x': shape "
        "is (8, 4.5), expected ints of 1 or more, and fewer than 2**62 elements; tensor 'x': axes is (3,), expected "
        "names; tensor 'x': dtype is 'float7' (did you mean float64?), expected a dtype of numbers or booleans, such "
        "as 'bfloat16'; expected fields as the docstrings of StepModel, Tensor, Operation and Optimizer describe them; "
        "correct each"
    )


def one_product(**fields):
    """x w -> y, with `fields` replaced."""
    parts = {
        "name": "one",
        "tensors": (
            Tensor("x", (8, 4), ("batch", "in")),
            Tensor("w", (4, 2), ("in2", "out"), role="parameter"),
            Tensor("y", (8, 2), ("batch", "out")),
        ),
        "operations": (Operation("product", "bd,df->bf", ("x", "w"), "y"),),
        "tokens": 8,
        "optimizer": Optimizer(8),
    }
    return StepModel(**parts | fields)


def with_tensor(**fields):
    given = {"name": "z", "shape": (8, 2), "axes": ("batch", "out")} | fields
    return one_product(tensors=(*one_product().tensors, Tensor(**given)))


def with_operation(**fields):
    given = {"name": "product", "einsum": "bd,df->bf", "inputs": ("x", "w"), "output": "y"} | fields
    return one_product(operations=(Operation(**given),))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: one_product(optimizer="adam"), TypeError,
         r"^StepModel: optimizer is 'adam' \(str\); expected .*such as Op"),
        (lambda: one_product(optimizer=8), TypeError, r"^StepModel: optimizer is 8 \(int\); expected"),
        (lambda: models.mlp(**MLP, optimizer="adam"), TypeError, r"^StepModel: optimizer is 'adam'"),
        (lambda: one_product(optimizer=Optimizer(10**400)), ValueError,
         "bytes_per_parameter is 10.*a number of 0 to 10"),
        (lambda: one_product(optimizer=Optimizer("8")), ValueError, "bytes_per_parameter is '8', expected a number"),
        (lambda: one_product(optimizer=Optimizer(8, holds_gradients="no")), ValueError,
         "holds_gradients is 'no', expected True or False; expected fields as the docstrings"),
        (lambda: one_product(optimizer=Optimizer(8, "float31")), ValueError,
         "gradient_dtype is 'float31' \\(did you mean float32\\?\\), expected a dtype"),
        (lambda: with_tensor(is_kept="no"), ValueError, "tensor 'z': is_kept is 'no', expected True or False"),
        (lambda: with_tensor(is_on_chip=2), ValueError, "tensor 'z': is_on_chip is 2, expected True or False"),
        (lambda: with_tensor(shape=5), TypeError,
         r"^Tensor 'z': shape is 5 \(int\); expected a sequence of sizes; put"),
        (lambda: with_tensor(shape=None), TypeError, r"^Tensor 'z': shape is None"),
        (lambda: with_tensor(axes=None), TypeError, r"^Tensor 'z': axes is None"),
        (lambda: with_tensor(axes="bo"), TypeError, r"^Tensor 'z': axes is 'bo' \(str\)"),
        (lambda: with_tensor(name=["z"]), ValueError, r"name is \['z'\], expected a str"),
        (lambda: with_tensor(dtype=None), ValueError,
         "tensor 'z': dtype is None, expected a dtype of numbers or booleans, such as 'bfloat16'; expected fields as"),
        (lambda: with_tensor(dtype=object), ValueError, "expected a dtype of numbers or booleans"),
        (lambda: with_tensor(count=2**62), ValueError,
         r"count is 4611686018427387904, expected an int of 1 or more, below 2\*\*62"),
        (lambda: with_tensor(shape=(2**62, 2)), ValueError, r"and fewer than 2\*\*62 elements"),
        (lambda: with_operation(inputs=None), TypeError,
         r"^Operation 'product': inputs is None \(NoneType\); expected"),
        (lambda: with_operation(inputs="xw"), TypeError, r"^Operation 'product': inputs is 'xw'"),
        (lambda: with_operation(inputs=([], "w")), ValueError,
         r"inputs is \(\[\], 'w'\), expected names of tensors"),
        (lambda: with_operation(output=None), ValueError, "output is None, expected the name of a tensor"),
        (lambda: with_operation(kind=[]), ValueError, r"kind is \[\], expected one of matmul"),
        (lambda: with_operation(dtype=["a"]), ValueError, r"dtype is \['a'\], expected a dtype"),
        (lambda: with_operation(is_recomputed=1), ValueError, "is_recomputed is 1, expected True or False"),
        (lambda: one_product(tensors=None), TypeError,
         r"^StepModel: tensors is None \(NoneType\); expected a sequence of"),
        (lambda: one_product(operations=None), TypeError, "^StepModel: operations is None"),
        (lambda: one_product(batch_axes=None), TypeError, "^StepModel: batch_axes is None"),
        (lambda: one_product(batch_axes="batch"), TypeError, "^StepModel: batch_axes is 'batch'"),
        (lambda: one_product(batch_axes=([],)), ValueError, r"batch_axes is \(\[\],\), expected names"),
        (lambda: one_product(tensors=("a",), operations=("b",)), TypeError,
         r"^StepModel: tensors has 'a' \(str\); operations has 'b' \(str\); expected Tensors, Operations, and"),
        (lambda: one_product(name=None), ValueError, "name is None, expected a str"),
        (lambda: one_product(tokens=8 * 10**30), ValueError,
         r"tokens is 80*, expected an int of 1 or more, below 2\*\*62"),
        (lambda: one_product(tokens=7), ValueError,
         "tokens is 7, expected a multiple of 8, the size of 'batch' in the shapes; expected fields as"),
        (lambda: one_product(tokens=4), ValueError, "tokens is 4, expected a multiple of 8"),
        (lambda: one_product(tokens=True), ValueError, "tokens is True, expected an int of 1 or more"),
    ],
)  # fmt: skip
def test_parts_of_a_wrong_type_raise_clear_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_numpy_scalars_are_numbers(mesh):
    plain = plan_step(models.mlp(**MLP, optimizer=Optimizer(8.0)), mesh, SHARDED)
    numpy = {name: np.int64(size) for name, size in MLP.items()}
    model = models.mlp(**numpy, optimizer=Optimizer(np.float32(8), holds_gradients=np.bool_(True)))
    assert plan_step(model, mesh, SHARDED).to_json() == plain.to_json()
    tensor = Tensor("x", np.array([8, 4]), ("a", "b"), count=np.uint8(3))
    assert (tensor.shape, tensor.count, [type(size) for size in tensor.shape]) == ((8, 4), 3, [int, int])


@pytest.mark.parametrize("names", [(1, "1"), (0, 1), ("a", ("b", "c"))])
def test_mesh_axis_names_keep_their_type(names):
    pod = cluster.tpu("v5e", (4, 4))
    model = models.mlp(**MLP)
    plan = plan_step(model, mesh_of(pod, (4, 4), names), {"batch": names[0], "embed": [names[0]], "mlp": names[1]})
    texts = plan_step(model, mesh_of(pod, (4, 4)), {"batch": "data", "embed": "data", "mlp": "tensor"})
    assert dict(plan.mesh_shape) == {names[0]: 4, names[1]: 4}
    assert (plan.rules["batch"], plan.rules["mlp"]) == ((names[0],), (names[1],))
    assert plan.seconds == texts.seconds
    as_texts = dict(zip(names, ("data", "tensor"), strict=True))
    assert [tuple(as_texts[axis] for axis in each.axes) for each in plan.collectives] == [
        each.axes for each in texts.collectives
    ]


def test_axis_names_with_equal_texts_are_distinguished():
    plan = plan_step(models.mlp(**MLP), mesh_of(cluster.tpu("v5e", (4, 4)), (4, 4), (1, "1")), {"batch": 1, "mlp": "1"})
    content = json.loads(plan.to_json())
    assert (content["mesh"], content["rules"]["mlp"]) == ({"1": 4, "'1'": 4}, ["'1'"])
    assert "sharded      batch: 1, mlp: '1'" in str(plan)
    numbers = mesh_of(cluster.tpu("v5e", (4, 4)), (4, 4), (0, 1))
    with pytest.raises(ValueError, match=r"'batch' is sharded over '0', which the mesh does not have \(0, 1\)"):
        plan_step(models.mlp(**MLP), numbers, {"batch": "0"})
    with pytest.raises(TypeError, match="the rule of 'batch' is True"):
        plan_step(models.mlp(**MLP), numbers, {"batch": True})


@pytest.mark.parametrize(
    ("tensors", "operation"),
    [
        (
            (Tensor("w", (4, 8), ("vocab", "a"), role="parameter"), Tensor("y", (8, 8), ("batch", "a"))),
            Operation("rows", "vd->bd", ("w",), "y", kind="lookup"),
        ),
        (
            (Tensor("w", (8,), ("a",), role="parameter"), Tensor("x", (8, 8), ("batch", "a")),
             Tensor("y", (8, 8), ("batch", "a"))),
            Operation("scale", "bd,d->bd", ("x", "w"), "y", kind="elementwise"),
        ),
    ],
)  # fmt: skip
def test_steps_without_products_have_no_picture(mesh, tensors, operation):
    plan = plan_step(one_product(tensors=tensors, operations=(operation,), optimizer=None), mesh, {})
    assert (plan.flops, plan.utilization, plan.roofline.compute) == (0, 0, 0)
    assert "FLOPs        0 on a device" in str(plan)
    assert Page(plan._repr_html_()).pictures == []
    assert json.loads(plan.to_json())["utilization"] == 0
    with pytest.raises(ValueError, match=r"^StepPlan.plot: 'one' has no FLOPs; expected a step with a product"):
        plan.plot()


def test_errors_suggest_similar_names(mesh):
    with pytest.raises(ValueError, match=r"mean batch\?\).*'mlp' is sharded over 'tenser' \(did you mean tensor\?\)"):
        plan_step(models.mlp(**MLP), mesh, {"bacth": "data", "mlp": "tenser"})


def test_plans_are_pickled_and_copied(mesh):
    plan = plan_step(models.mlp(**MLP), mesh, SHARDED)
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert again.to_json() == plan.to_json()
        assert (again.model, again.cluster, again.rules) == (plan.model, plan.cluster, plan.rules)
        with pytest.raises(TypeError):
            again.rules["batch"] = ()


@pytest.mark.parametrize(
    ("einsum", "text"),
    [
        ("bd,df", "einsum is 'bd,df', expected one such as 'bd,df->bf'"),
        ("bd->bf", "einsum is 'bd->bf', expected letters for 2 inputs"),
        ("b1,1f->bf", "einsum is 'b1,1f->bf', expected letters for 2 inputs"),
        ("bb,bf->bf", "'bb' for 'x' has a letter twice"),
        ("bd,df->bg", "'g' is in the output only"),
    ],
)
def test_invalid_einsums(einsum, text):
    tensors = (
        Tensor("x", (4, 4), ("batch", "embed")),
        Tensor("w", (4, 4), ("in", "out")),
        Tensor("y", (4, 4), ("batch", "out")),
    )
    with pytest.raises(ValueError, match="StepModel") as caught:
        StepModel("bad", tensors, (Operation("product", einsum, ("x", "w"), "y"),), tokens=4)
    assert text in str(caught.value)


def test_products_of_two_formats_need_a_dtype():
    def model(dtype):
        return StepModel(
            "mixed",
            (Tensor("x", (4, 4), ("batch", "embed"), "float16"), Tensor("w", (4, 4), ("in", "out")),
             Tensor("y", (4, 4), ("batch", "out"))),
            (Operation("product", "bd,df->bf", ("x", "w"), "y", dtype=dtype),),
            tokens=4,
        )  # fmt: skip

    with pytest.raises(ValueError, match="it multiplies bfloat16 by float16, expected a dtype for the product"):
        model(None)
    mesh = mesh_of(cluster.dgx("h100"), (8,), ("data",))
    assert plan_step(model("tensorfloat32"), mesh, {}).products[0].format == "tensorfloat32"


AXES = st.sampled_from([(), ("data",), ("tensor",), ("data", "tensor")])


@given(
    rules=st.fixed_dictionaries(dict.fromkeys(("batch", "embed", "mlp", "activation_embed", "vocab"), AXES)),
    sequence=st.sampled_from([1, 16, 1024]),
    keep=st.sampled_from(["layers", "products", "all"]),
    gpus=st.booleans(),
)
def test_regimes_agree_with_plans_of_their_batches(rules, sequence, keep, gpus):
    pod = cluster.dgx("h100", nodes=2) if gpus else cluster.tpu("v5e", (4, 4))
    mesh = mesh_of(pod, (2, 8)) if gpus else mesh_of(pod, (4, 4))
    shape = models.TransformerShape("small", 2, 256, 512, 8, 8, 32, 1024)

    def plan_of(batch):
        return plan_step(models.transformer(shape, batch=batch, sequence=sequence, keep=keep), mesh, rules)

    try:
        plan = plan_of(16)
    except ValueError as error:
        assert "shards both" in str(error)  # noqa: PT017 - which rules fit is not what this is about
        return
    for regimes in (plan.regimes, plan.serial_regimes):
        assert regimes[0].tokens_from == 0
        assert regimes[-1].tokens_to == math.inf
        assert all(a.tokens_to == b.tokens_from and a.bound != b.bound for a, b in itertools.pairwise(regimes))
    for batch in (16, 64, 1024, 2**20):
        other = plan_of(batch)
        if [each[:6] for each in listed(other)] != [each[:6] for each in listed(plan)]:
            continue  # which of two arrays is smaller depends on the batch, and regimes are of the same collectives
        tokens = other.model.tokens
        assert other.regimes[0].tokens_to == pytest.approx(plan.regimes[0].tokens_to, rel=1e-9)
        for regimes, bound in ((plan.regimes, other.limit), (plan.serial_regimes, other.serial_limit)):
            at = next(each for each in regimes if tokens < each.tokens_to)
            near = min(abs(tokens / each.tokens_from - 1) for each in regimes if each.tokens_from) if regimes[1:] else 1
            assert at.bound == bound or near < 1e-9
        assert other.roofline.serial >= other.roofline.overlapped * (1 - 1e-12)
        assert other.expected.serial >= other.seconds >= other.bound
