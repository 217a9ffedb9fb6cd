# SPDX-License-Identifier: Apache-2.0
"""Steps of well-known models: published parameter counts, and the operations that they are made of."""

import numpy as np
import pytest
from artifex_devices import models
from artifex_devices.models import TransformerShape


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # The number of elements in the published checkpoints.
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
    ],
)
def test_parameters_are_as_many_as_published(name, parameters):
    assert models.SHAPES[name].parameters.total == parameters
    assert models.transformer(name, batch=8, sequence=512).parameters == parameters


def test_every_shape_has_its_source():
    assert all("config.json of " in shape.source for shape in models.SHAPES.values())


def test_kept_tensors_decide_what_is_recomputed():
    def recomputed(keep):
        model = models.transformer("llama-2-7b", batch=1, sequence=128, keep=keep)
        return [operation.name for operation in model.operations if operation.is_recomputed]

    assert recomputed("all") == ["scores"]  # FlashAttention makes them again
    assert recomputed("products") == ["scores"]
    assert recomputed("layers") == [
        "project q", "project k", "project v", "scores", "attend", "project out", "gate", "up", "logits",
    ]  # fmt: skip
    assert recomputed(("x", "q", "k", "v", "attended", "middle", "up", "logits")) == ["scores", "gate"]


def test_a_forward_step_recomputes_nothing():
    model = models.transformer("llama-2-7b", batch=1, sequence=128, keep="layers", optimizer=None)
    assert not model.is_training
    assert not any(operation.is_recomputed for operation in model.operations)


def test_experts_have_places_for_all_tokens():
    model = models.transformer("mixtral-8x7b", batch=2, sequence=128)
    shapes = {tensor.name: tensor.shape for tensor in model.tensors}
    assert shapes["expert_in"] == (8, 64, 4096)  # 256 tokens, 2 experts each
    assert shapes["w_gate"] == (8, 4096, 14336)
    assert model.batch_axes == ("batch", "expert_batch")
    twice = models.transformer("mixtral-8x7b", batch=2, sequence=128, capacity_factor=2)
    assert {tensor.name: tensor.shape for tensor in twice.tensors}["expert_in"] == (8, 128, 4096)
    with pytest.raises(ValueError, match=r"each of 8 experts has 0\.25 places for 1 tokens"):
        models.transformer("mixtral-8x7b", batch=1, sequence=1)


def test_layers_of_experts_alone_are_those_of_a_transformer():
    alone = models.moe(embed=4096, mlp=14336, experts=8, experts_per_token=2, layers=32, tokens=256)
    whole = models.transformer("mixtral-8x7b", batch=2, sequence=128)
    mine, theirs = ({tensor.name: tensor for tensor in model.tensors} for model in (alone, whole))
    for name in ("w_router", "expert_in", "w_gate", "w_up", "w_down", "gate", "up", "activated", "expert_out"):
        assert mine[name] == theirs[name]
    mine, theirs = ({each.name: each for each in model.operations} for model in (alone, whole))
    assert [mine[name] for name in ("gate", "up", "down")] == [theirs[name] for name in ("gate", "up", "down")]
    # 8 experts of three matrices, and a router
    assert alone.parameters == 32 * (8 * 3 * 4096 * 14336 + 4096 * 8)
    assert alone.batch_axes == ("batch", "expert_batch")


def test_decoding_reads_a_cache():
    model = models.transformer("llama-2-70b", batch=16, sequence=1, cache=4096, optimizer=None)
    shapes = {tensor.name: (tensor.shape, tensor.role, tensor.count) for tensor in model.tensors}
    assert shapes["k_cache"] == ((16, 4096, 8, 128), "given", 80)
    assert shapes["scores"] == ((16, 8, 8, 1, 4096), "activation", 80)
    with pytest.raises(ValueError, match=r"cache is 8 in a training step; expected 0.*give optimizer=None"):
        models.transformer("llama-2-70b", batch=1, sequence=1, cache=8)


def test_custom_shapes():
    shape = TransformerShape("small", 2, 64, 128, 4, 2, 16, 1000)
    model = models.transformer(shape, batch=1, sequence=8)
    layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
    assert model.parameters == 2 * layer + 2 * 1000 * 64 + 64
    with pytest.raises(ValueError, match=r"layers is 0; mlp is 1\.5; expected ints that fit"):
        TransformerShape("bad", 0, 64, 1.5, 4, 2, 16, 1000)
    with pytest.raises(ValueError, match="heads is 4, not a multiple of 3 kv_heads"):
        TransformerShape("bad", 2, 64, 128, 4, 3, 16, 1000)
    with pytest.raises(ValueError, match="each token is routed to 5 of 4 experts"):
        TransformerShape("bad", 2, 64, 128, 4, 2, 16, 1000, experts=4, experts_per_token=5)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"shape 'gpt' is not a published model \(did you mean gpt2\?\)"):
        models.transformer("gpt", batch=1, sequence=1)
    with pytest.raises(TypeError, match=r"shape is 7 \(int\); expected a name, an id on the Hugging Face Hub"):
        models.transformer(7, batch=1, sequence=1)
    with pytest.raises(ValueError, match=r"batch is 0, sequence is 1\.5; expected ints of 1 or more"):
        models.transformer("llama-2-7b", batch=0, sequence=1.5)
    with pytest.raises(ValueError, match="keep is 'most'; expected 'layers', 'products', 'all' or names of tensors"):
        models.transformer("llama-2-7b", batch=1, sequence=1, keep="most")
    with pytest.raises(ValueError, match=r"keep names 'key'; expected activations of the model \(embedded, x, "):
        models.transformer("llama-2-7b", batch=1, sequence=1, keep=("x", "key"))
    with pytest.raises(ValueError, match="tokens is 0; expected ints of 1 or more"):
        models.mlp(embed=1, mlp=1, layers=1, tokens=0)


LLAMA = {"shape": "llama-2-7b", "batch": 1, "sequence": 8}
MIXTRAL = {"shape": "mixtral-8x7b", "batch": 1, "sequence": 8}
MOE = {"embed": 8, "mlp": 8, "experts": 4, "experts_per_token": 2, "layers": 1, "tokens": 8}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: models.transformer(**LLAMA, optimizer="adam"), TypeError, "optimizer is 'adam'.*Optimizer or None"),
        (lambda: models.transformer(**LLAMA, keep=None), TypeError,
         r"keep is None \(NoneType\); expected 'layers', 'pro"),
        (lambda: models.transformer(**LLAMA, keep=["x", 3]), TypeError, r"keep is \['x', 3\] \(list\); expected"),
        (lambda: models.transformer(**LLAMA, keep=[["x"]]), TypeError, r"keep is \[\['x'\]\] \(list\); expected"),
        (lambda: models.transformer(**LLAMA, cache=-1, optimizer=None), ValueError,
         "transformer: cache is -1; expected a cache of 0 or more tokens, below 2"),
        (lambda: models.transformer(**LLAMA | {"batch": 10**30}), ValueError,
         r"expected ints of 1 or more, below 2\*\*62"),
        (lambda: models.transformer(**LLAMA, capacity_factor=2), ValueError,
         "capacity_factor is 2 and llama-2-7b has no experts; expected 1; leave it out"),
        (lambda: models.transformer(**LLAMA, capacity_factor=True), TypeError, r"capacity_factor is True \(bool\)"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor=True), TypeError, r"capacity_factor is True \(bool\)"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor="1"), TypeError, r"capacity_factor is '1' \(str\)"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor=None), TypeError, "expected a number above 0; write 1"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor=float("nan")), ValueError,
         "capacity_factor is nan; expected a finite number above 0"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor=float("inf")), ValueError, "capacity_factor is inf"),
        (lambda: models.transformer(**MIXTRAL, capacity_factor=10**400), ValueError, "capacity_factor is 10"),
        (lambda: models.transformer(**LLAMA | {"shape": "lama-2-7b"}), ValueError,
         r"shape 'lama-2-7b' is not a published model \(did you mean llama-2-7b\?\); .* write 'llama-2-7b'$"),
        (lambda: models.mlp(embed=1, mlp=1, layers=1, tokens=2**62), ValueError,
         r"ints of 1 or more, below 2\*\*62; co"),
        (lambda: models.moe(**MOE | {"experts": 0}), ValueError,
         "models.moe: experts is 0; expected ints of 1 or more"),
        (lambda: models.moe(**MOE | {"experts_per_token": 5}), ValueError,
         "each token is routed to 5 of 4 experts; expected"),
        (lambda: models.moe(**MOE | {"tokens": 7}), ValueError,
         r"models.moe: each of 4 experts has 3\.5 places for 7"),
        (lambda: models.moe(**MOE, capacity_factor="2"), TypeError, "models.moe: capacity_factor is '2'"),
        (lambda: TransformerShape(None, 1, 1, 1, 4, 4, 1, 1), ValueError, "name is None; expected ints that fit"),
        (lambda: TransformerShape("big", 2**62, 1, 1, 4, 4, 1, 1), ValueError, "layers is 4611686018427387904"),
    ],
)  # fmt: skip
def test_wrong_models_raise_clear_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_upper_case_names_and_numpy_scalars():
    model = models.transformer("LLAMA-2-7B", batch=np.int32(2), sequence=np.int64(8))
    assert model == models.transformer("llama-2-7b", batch=2, sequence=8)
    numbers = {name: np.int64(number) for name, number in MOE.items()}
    assert models.moe(**numbers, capacity_factor=np.float32(1)) == models.moe(**MOE)
    shape = TransformerShape("small", *(np.int64(number) for number in (2, 64, 128, 4, 2, 16, 1000)))
    assert shape == TransformerShape("small", 2, 64, 128, 4, 2, 16, 1000)
