# SPDX-License-Identifier: Apache-2.0
"""plan_training and suggest: figures of publications, texts, pictures, code."""

import contextlib
import json
import pickle
from dataclasses import replace

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import (
    Efficiency,
    TrainingConfig,
    plan_training,
    suggest,
)
from artifex_devices.planner.training import space

SMALL = models.TransformerShape("small", 8, 1024, 4096, 16, 16, 64, 32000)
NODES = cluster.dgx("h100", nodes=2)


def plan(**values):
    config = TrainingConfig(**{"batch": 64, "sequence": 2048, **values})
    return plan_training(SMALL, NODES, config)


def test_llama_405b_is_expressed_as_published_and_is_close():
    config = TrainingConfig(batch=2048, sequence=8192, tensor=8, sequence_parallel=True, pipeline=16, zero=1)
    found = plan_training("llama-3.1-405b", cluster.dgx("h100", nodes=2048), config, measured=10.0)
    assert (found.config.data, found.microbatches, found.devices) == (128, 16, 16384)
    assert [stage.layers for stage in found.stages] == [7, *[8] * 14, 7]
    assert found.bubble_fraction == 15 / 16
    assert (found.fits, found.close) == (False, True)
    assert found.roofline.total < found.seconds
    assert found.model_flops == pytest.approx(6 * 403.7e9 * 2**24 + 12 * 126 * 16384 * 8192 * 2**24, rel=1e-3)
    assert "measured" in str(found)
    document = json.loads(found.to_json())
    assert document["kind"] == "training"
    assert sum(document["seconds"]["expected"]["parts"].values()) == pytest.approx(found.seconds)


def test_zero_divides_the_states_that_the_paper_says():
    whole, one, two, three = (plan(zero=zero, gradient_dtype="bfloat16").stages[0] for zero in range(4))
    assert one.optimizer == pytest.approx(whole.optimizer / 16, abs=1)
    assert (one.gradients, one.parameters) == (whole.gradients, whole.parameters)
    assert two.gradients == pytest.approx(whole.gradients / 16, abs=1)
    assert three.parameters == pytest.approx(whole.parameters / 16, abs=1)
    assert whole.optimizer == 6 * whole.parameters == 12 * whole.parameters_held


def test_recomputation_costs_a_forward_pass_and_saves_activations():
    none, full = plan(), plan(recompute="full")
    assert full.expected.parts["recompute"] > 0 == none.expected.parts["recompute"]
    assert full.stages[0].activations < none.stages[0].activations
    assert full.executed_flops == pytest.approx(full.model_flops * 4 / 3)
    half = plan(recompute="full", recompute_layers=4)
    assert full.stages[0].activations < half.stages[0].activations < none.stages[0].activations


def test_interleaving_divides_the_bubble():
    plain = plan(pipeline=4, batch=128)
    chunks = plan(pipeline=4, batch=128, schedule="interleaved", chunks=2)
    assert chunks.bubble_fraction == plain.bubble_fraction / 2
    assert chunks.expected.parts["bubble"] < 0.6 * plain.expected.parts["bubble"]


def test_overlap_hides_communication_of_replicas():
    shown, hidden = plan(zero=3, overlap={"data": 0}), plan(zero=3)
    assert shown.expected.hidden["data"] == 0
    assert hidden.expected.hidden["data"] > 0
    assert hidden.seconds < shown.seconds


def test_offloading_moves_optimizer_state_to_the_host():
    offloaded = plan(zero=1, offload_optimizer=True, overlap={"offload": 0})
    assert offloaded.stages[0].optimizer == 0
    assert offloaded.expected.parts["offload"] > 0


def test_context_methods_have_costs():
    for method in ("ring", "all_to_all", "all_gather"):
        found = plan(context=2, context_method=method, overlap={"context": 0})
        assert found.expected.parts["context"] > 0


def ideal(**values):
    config = TrainingConfig(**{"batch": 16, "sequence": 2048, **values})
    return plan_training(SMALL, NODES, config, efficiency=Efficiency.ideal())


def more_seconds(part, **values):
    """Seconds of a part that 2048 more tokens of each sequence add: those of their bytes alone."""
    few, many = (ideal(sequence=sequence, **values).expected.parts[part] for sequence in (2048, 4096))
    return many - few


@pytest.mark.parametrize(
    ("method", "moved"),
    [
        # Of two ranks with 1024 more tokens each, in units of a key or value of all heads, 1024 x 1024 x 2 bytes:
        ("ring", 2 + 4),  # keys and values to the next rank, backward with their gradients
        ("all_gather", 2 + 2 + 2),  # gathered forward and backward, and their gradients reduced
        ("all_to_all", 2 * (2 + 2) / 2),  # queries, keys, values and results; half of them to the other rank
    ],
)
def test_bytes_of_context_parallelism(method, moved):
    seconds = more_seconds("context", context=2, context_method=method, overlap={"context": 0})
    assert seconds == pytest.approx(8 * 2 * moved * 2 * 2**20 / 450e9)  # 8 layers, 2 microbatches


def test_bytes_between_stages():
    # 16 devices, 2 stages: each microbatch of 2048 x 1024 values goes to the other node and its gradient comes back.
    assert more_seconds("pipeline", pipeline=2) == pytest.approx(2 * 2 * 2048 * 1024 * 2 / 50e9)
    with_chunks = {"pipeline": 2, "schedule": "interleaved", "chunks": 2, "overlap": {"pipeline": 0}}
    assert more_seconds("pipeline", **with_chunks) == pytest.approx(2 * 2 * 2 * 2048 * 1024 * 2 / 50e9)


def test_bytes_of_tensor_parallelism():
    # Two regions of a layer: an all-reduce forward and backward each, and of the embedding and the output one each.
    plain = more_seconds("tensor", tensor=2, batch=8)
    assert plain == pytest.approx((8 * 4 + 2) * 2048 * 1024 * 2 / 450e9)
    sharded = more_seconds("tensor", tensor=2, batch=8, sequence_parallel=True)
    # Gathers and reduce-scatters of as many bytes; the backward gather of a region's input is beside its product.
    assert sharded == pytest.approx((8 * 4 + 2) * 2048 * 1024 * 2 / 450e9)


def test_bytes_of_offloaded_states():
    held = SMALL.parameters.total / 16
    plan = ideal(zero=1, offload_optimizer=True, overlap={"offload": 0})
    assert plan.expected.parts["offload"] == pytest.approx(held * (4 + 2) / 64e9)  # gradients out, parameters in
    assert plan.expected.parts["update"] == 0


@pytest.mark.parametrize("microbatches", [1, 4])
def test_gradients_that_leave_after_each_microbatch_come_back_for_the_next(microbatches):
    held, batch = SMALL.parameters.total / 16, 16 * microbatches
    for zero in (2, 3):
        found = ideal(zero=zero, batch=batch, offload_optimizer=True, overlap={"offload": 0})
        moved = held * (4 * (2 * microbatches - 1) + 2)
        assert found.expected.parts["offload"] == pytest.approx(moved / 64e9)
        behind = ideal(zero=zero, batch=batch, offload_optimizer=True)
        assert behind.expected.hidden["offload"] == pytest.approx(
            min(moved / 64e9, microbatches * behind.stages[0].backward)
        )


def test_the_host_updates_what_is_offloaded():
    # Gradient, optimizer state twice and parameter are 30 bytes; 8 devices share a host of 1.09e11 bytes/s.
    held = SMALL.parameters.total / 16
    plan = ideal(zero=1, offload_optimizer=True)
    factors = plan.efficiency.replaced(host_memory=1.09e11)
    found = plan_training(SMALL, NODES, plan.config, efficiency=factors)
    assert found.expected.parts["update"] == pytest.approx(30 * held * 8 / 1.09e11)
    assert Efficiency.of(NODES).host_memory == 1.09e11
    assert "10e9 parameters of 28 bytes in 2.57 s" in Efficiency.of(NODES).sources["host_memory"]


def test_states_in_shards_of_a_node():
    whole, sharded = ideal(zero=1).stages[0], ideal(zero=1, zero_shards=8).stages[0]
    assert whole.optimizer == 12 * SMALL.parameters.total / 16
    assert sharded.optimizer == 12 * SMALL.parameters.total / 8


def test_tied_embeddings_have_a_copy_in_the_last_stage():
    shape = replace(SMALL, tied_embeddings=True)
    config = TrainingConfig(batch=16, sequence=2048, pipeline=2)
    first, last = plan_training(shape, NODES, config).stages
    assert first.parameters_held + 1024 == last.parameters_held  # the last norm
    assert first.parameters_held + last.parameters_held == shape.parameters.total + 32000 * 1024


def test_all_mistakes_are_in_one_text():
    with pytest.raises(
        ValueError, match=r"plan_training: .*tensor is 3, expected a divisor of the number of heads, 16"
    ) as error:
        plan(tensor=3, data=5, microbatch=7)
    assert "data x microbatch" in str(error.value)


def test_pictures_show_every_stage():
    found = plan(pipeline=4, schedule="interleaved", chunks=2)
    assert "bubble" in found.to_svg()
    assert "stage 3" in found.to_svg("memory")
    assert "idle" in found.to_svg("schedule")


def test_replaced_factors_are_given_and_change_the_plan():
    factors = Efficiency.of(NODES)
    slow = plan_training(SMALL, NODES, TrainingConfig(batch=64, sequence=2048), efficiency=factors.replaced(matmul=0.1))
    assert slow.efficiency.sources["matmul"] == "given"
    assert slow.seconds > plan().seconds
    ideal = plan_training(SMALL, NODES, TrainingConfig(batch=64, sequence=2048), efficiency=Efficiency.ideal())
    assert ideal.seconds == ideal.roofline.total


def test_suggestions_fit_and_are_fastest_first():
    found = suggest("llama-2-7b", NODES, batch=64, sequence=4096, progress=False)
    seconds = [choice.plan.seconds for choice in found.options]
    assert seconds == sorted(seconds)
    assert all(choice.plan.memory <= found.space.memory_limit for choice in found.options)
    assert found.front[0].plan.seconds <= seconds[0] * (1 + 1e-12)
    assert found.space.consistent == found.space.too_large + found.space.skipped + found.space.priced
    assert json.loads(found.to_json())["kind"] == "training suggestions"
    assert str(found).splitlines()[0].startswith("training llama-2-7b on 2 nodes x 8 h100")
    assert found.plot().get_xscale() == "log"


def test_progress_of_a_search_counts_each_number_of_devices(monkeypatch):
    bars = []

    @contextlib.contextmanager
    def bar(what, total, *, is_wanted):
        reports = []
        bars.append((what, total, is_wanted, reports))
        yield reports.append

    monkeypatch.setattr(space, "progress_bar", bar)
    suggest("llama-2-7b", NODES, batch=64, sequence=4096, zero=1, recompute="none", device_counts=[16, 8, 4])
    ((what, total, is_wanted, reports),) = bars
    assert (what, is_wanted) == ("suggest", True)
    assert reports == sorted(reports)
    assert 0 <= reports[0] < total // 3
    assert 2 * total // 3 <= reports[-1] <= total


def test_pinned_fields_are_kept():
    found = suggest("llama-2-7b", NODES, batch=64, sequence=4096, tensor=4, zero=[0, 1], optimizer="adam")
    assert all(choice.config.tensor == 4 and choice.config.zero < 2 for choice in found.options)
    assert found.best.config.optimizer == "adam"


def test_nothing_fits_and_the_text_says_what_would():
    found = suggest("llama-3.1-405b", cluster.dgx("h100"), batch=8, sequence=8192, progress=False)
    assert found.options == ()
    assert found.nearest
    assert any("devices" in way for way in found.ways_out)
    assert "nothing fits" in str(found)


def test_choices_are_code():
    best = suggest("llama-2-7b", NODES, batch=64, sequence=4096, tensor=2, pipeline=2, progress=False).best
    compile(best.to_jax_code(), "jax", "exec")
    code = best.to_mesh_code().replace(
        "import artifex_devices as ad", "import artifex_devices as ad; world = ad.simulate(16)"
    )
    assert "Mesh(" in code
    assert "--tensor-model-parallel-size 2" in best.to_megatron_flags()


def test_values_can_be_pickled():
    found = plan(pipeline=2)
    assert pickle.loads(pickle.dumps(found.config)) == found.config
    assert pickle.loads(pickle.dumps(found)).seconds == found.seconds
