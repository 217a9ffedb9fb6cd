# SPDX-License-Identifier: Apache-2.0
"""The space that suggest searches, and what it proposes where nothing fits."""

import pytest
from artifex_devices import cluster
from artifex_devices.planner import suggest

NODE = cluster.dgx("h100")
PAIR = cluster.dgx("h100", nodes=2)
POD = cluster.dgx("h100", nodes=4)
CHUNKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
OPEN = {  # of every search
    "context_method": ("ring", "all_to_all", "all_gather"),
    "offload_activations": (False, True),
    "offload_optimizer": (False, True),
    "optimizer": ("adamw-fp32-master",),
}
IN_DEVICES = {"offload_activations": False, "offload_optimizer": False}


def space(shape, machine, **values):
    return suggest(shape, machine, progress=False, **values).space


def test_the_choices_of_a_dense_model_on_four_nodes():
    found = space("llama-2-7b", POD, batch=256, sequence=4096)
    assert dict(found.choices) == {
        "tensor": (1, 2, 4, 8),
        "context": (1, 2, 4),
        "pipeline": (1, 2, 4, 8, 16, 32),
        "chunks": CHUNKS,
        "expert": (1,),
        "microbatch": (1, 2, 4, 8, 16),
        "zero": (0, 1, 2, 3),
        "zero_shards": (0, 8),
        "recompute": ("none", "full"),
        **OPEN,
    }
    assert (found.combinations, found.consistent, found.too_large) == (1344000, 209192, 8592)


def test_the_choices_of_experts_on_two_nodes():
    found = space("mixtral-8x7b", PAIR, batch=6, sequence=1536, flash_attention=False)
    assert dict(found.choices) == {
        "tensor": (1, 2, 4, 8),
        "context": (1,),
        "pipeline": (1, 2, 4, 8, 16),
        "chunks": CHUNKS,
        "expert": (1, 2, 4, 8),
        "microbatch": (1, 2),
        "zero": (0, 1, 2, 3),
        "zero_shards": (0, 8),
        "recompute": ("none", "selective", "full"),
        **OPEN,
    }


@pytest.mark.parametrize(
    ("shape", "key", "values", "choices"),
    [
        ("llama-2-13b", "tensor", {}, (1, 2, 4, 5, 8)),  # divisors of 40 heads
        ("llama-2-13b", "tensor", {"max_tensor": 4}, (1, 2, 4)),
        ("llama-2-7b", "tensor", {"tensor": 2}, (2,)),
        ("llama-2-7b", "zero", {"zero": [3, 1]}, (3, 1)),
        ("llama-2-7b", "zero_shards", {}, (0,)),  # one node has no groups of nodes
        ("llama-2-7b", "zero_shards", {"zero_shards": [None, 4]}, (0, 4)),
        ("llama-2-7b", "context", {"sequence": 1024}, (1,)),
        ("llama-2-7b", "context", {"sequence": 2048}, (1, 2)),
        ("llama-2-7b", "context", {"sequence": 32768}, (1, 2, 4, 8, 16)),
        ("llama-2-7b", "context", {"sequence": 2050}, (1,)),  # context ranks hold two parts of the sequence each
        ("llama-2-7b", "microbatch", {"batch": 1}, (1,)),
        ("llama-2-7b", "microbatch", {"batch": 24}, (1, 2, 4, 8)),
    ],
)
def test_choices_of_a_field(shape, key, values, choices):
    assert space(shape, NODE, **{"batch": 8, "sequence": 4096, **values}).choices[key] == choices


@pytest.mark.parametrize(
    ("machine", "largest"),
    [(cluster.tpu("v5p", (4, 4, 4)), 16), (cluster.tpu("v5e", (2, 4)), 8), (cluster.nvl72(), 8)],
)
def test_tensor_parallelism_ends_at_16_chips_of_a_tpu_and_8_of_a_node(machine, largest):
    found = space("llama-2-7b", machine, batch=64, sequence=4096, pipeline=1, context=1, recompute="full")
    assert max(found.choices["tensor"]) == largest


def test_the_devices_of_a_chip_share_its_memory(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[chip]\nname = "mine"\nplatform = "tpu"\ndevices_per_chip = 2\nmemory_bytes = 64e9\nmemory_bandwidth = 1e12\n'
        "[chip.peak_flops]\nbfloat16 = 1e15\n[slice]\ndims = [2, 2]\nbandwidth = 1e11\nlatency = 1e-6\n"
    )
    found = space("llama-2-7b", cluster.from_toml(path), batch=8, sequence=4096)
    assert found.memory_limit == 32e9


@pytest.mark.parametrize(
    ("machine", "options", "devices"),
    [
        (POD, {}, {32, 16, 8}),
        (PAIR, {}, {16, 8}),  # not a part of a node
        (NODE, {}, {8}),
        (POD, {"device_counts": [32]}, {32}),
        (POD, {"device_counts": [4, 32, 4, 8]}, {32, 8, 4}),
    ],
)
def test_the_front_compares_numbers_of_devices(machine, options, devices):
    found = suggest("llama-2-7b", machine, batch=64, sequence=1024, progress=False, **options)
    assert {choice.plan.devices for choice in found.front} == devices
    assert {choice.plan.devices for choice in found.options} == {max(devices)}


@pytest.mark.parametrize(
    ("shape", "machine", "values", "ways_out"),
    [
        ("llama-2-70b", NODE, {}, ({"offload_optimizer": True}, 32)),
        ("llama-3.1-405b", NODE, {}, (128,)),
        (
            "llama-2-7b",
            NODE,
            {"sequence": 131072, "recompute": "none"},
            ({"offload_activations": True}, {"sequence": 65536}, 16),
        ),
        (
            "llama-2-13b",
            NODE,
            {"sequence": 131072, "recompute": "none"},
            ({"offload_activations": True}, {"sequence": 32768}, 16),
        ),
        (
            "llama-2-70b",
            NODE,
            {"sequence": 32768, "recompute": "none"},
            ({"offload_optimizer": True, "offload_activations": True}, 32),
        ),
        ("llama-3.1-405b", NODE, {"sequence": 32768, "tensor": 1, "pipeline": 1}, (256,)),
        ("deepseek-v3", NODE, {"sequence": 131072, "recompute": "none"}, (512,)),
        ("llama-3.1-405b", PAIR, {"sequence": 65536, "recompute": "none"}, (256,)),
        (
            "mixtral-8x7b",
            PAIR,
            {"sequence": 131072, "recompute": "none"},
            ({"offload_activations": True}, {"sequence": 32768}, 32),
        ),
    ],
)
def test_changes_that_fit_are_proposed_where_nothing_fits(shape, machine, values, ways_out):
    options = {"batch": 8, "sequence": 8192, **IN_DEVICES, **values}
    found = suggest(shape, machine, progress=False, **options)
    assert found.options == ()
    assert found.ways_out == tuple({"devices": each} if isinstance(each, int) else each for each in ways_out)
