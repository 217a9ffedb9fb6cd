# SPDX-License-Identifier: Apache-2.0
"""The nearest configurations that fit."""

import json
import re

import pytest
from artifex_devices import cluster, models
from artifex_devices.planner import Efficiency, TrainingConfig, plan_training, suggest
from artifex_devices.planner.training.nearest import nearest_fits
from artifex_devices.planner.training.spelling import changes
from matplotlib.text import Annotation

MOE = models.TransformerShape("moe", 24, 2048, 8192, 16, 16, 128, 32000, experts=8, experts_per_token=2)


def too_large(shape="llama-2-7b", nodes=4, **values):
    """A plan that does not fit."""
    config = TrainingConfig(**{"batch": 256, "sequence": 4096, **values})
    plan = plan_training(shape, cluster.dgx("h100", nodes=nodes), config)
    assert not plan.fits
    return plan


# --- Texts ---


def test_each_source_of_factors_is_one_numbered_note():
    plan = plan_training("llama-2-7b", cluster.dgx("h100"), TrainingConfig(batch=64, sequence=4096, zero=3))
    text = plan.details()
    assert text.count("fit of") == 1
    assert '"Machine Learning Engineering"' in text  # the title of S12, which a source names
    ideal = plan_training("llama-2-7b", plan.cluster, plan.config, efficiency=Efficiency.ideal())
    assert "none (model): the expected seconds are the bound" in ideal.details()


def test_one_microbatch_is_not_written_in_the_plural():
    nodes = cluster.dgx("h100")
    one, two = (TrainingConfig(batch=batch, sequence=4096, zero=3) for batch in (8, 16))
    assert ", 1 microbatch of 1\n" in str(plan_training("llama-2-7b", nodes, one))
    assert ", 2 microbatches of 1\n" in str(plan_training("llama-2-7b", nodes, two))


def test_rates_of_the_roofline_have_sources():
    plan = plan_training("llama-2-7b", cluster.dgx("h100", nodes=2), TrainingConfig(batch=64, sequence=4096, zero=3))
    assert "989 TFLOP/s bfloat16 [S8 S10 S12], memory 3.35 TB/s [S8 S10 S12], link 450 GB/s [S8]" in plan.details()
    assert "network 50 GB/s a chip [S8]" in plan.details()
    one = plan_training("llama-2-7b", cluster.dgx("h100"), TrainingConfig(batch=64, sequence=4096, zero=3))
    assert "network 50 GB/s" not in one.details()  # one node uses none


# --- Nearest configurations ---


WIDER = {"sequence_parallel": True}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [{"zero": 1}, {"pipeline": 4}, {"offload_optimizer": True}, {"tensor": 2, **WIDER}]),
        (
            {"zero": 1, "microbatch": 2, "flash_attention": False},
            [{"context": 4}, {"tensor": 2, **WIDER}, {"recompute": "full"}, {"offload_activations": True}],
        ),
        (
            {"zero": 1, "microbatch": 8, "flash_attention": False},
            [{"context": 16}, {"recompute": "full"}, {"tensor": 8, **WIDER}],  # 2 TiB of a host do not hold activations
        ),
        (
            {"pipeline": 4, "schedule": "gpipe"},
            [{"schedule": "1f1b"}, {"offload_activations": True}],
        ),
    ],
)
def test_the_smallest_change_of_each_field_that_fits_is_found(values, expected):
    plan = too_large(**values)
    found = nearest_fits(plan)
    by_text = {str(changes(plan.config, each.config)): each for each in found.plans}
    assert sorted(by_text) == sorted(map(str, expected))
    assert found.ways_out == ()
    for change in expected:
        changed = plan_training("llama-2-7b", plan.cluster, plan.config.replaced(data=None, **change))
        assert (changed.fits, changed.memory) == (True, by_text[str(change)].memory)
        smaller = {name: value // 2 for name, value in change.items() if type(value) is int and value > 1}
        if smaller:  # half of the change is not enough, or is the plan itself
            half = plan.config.replaced(data=None, **smaller)
            assert not plan_training("llama-2-7b", plan.cluster, half).fits
    assert [each.seconds for each in found.plans] == sorted(each.seconds for each in found.plans)


def test_at_most_five_changes_are_named():
    plan = too_large(zero=1, microbatch=8, recompute="full", recompute_layers=2)
    found = nearest_fits(plan).plans
    assert len(found) == 5
    assert len({str(changes(plan.config, each.config)) for each in found}) == 5


CONFIG = TrainingConfig(batch=256, sequence=4096)


def test_experts_are_spread():
    plan = too_large(MOE, nodes=1, batch=64)
    found = [changes(plan.config, each.config) for each in nearest_fits(plan).plans]
    assert any("expert" in change for change in found), found


def test_fields_that_a_search_does_not_change_stay():
    plan = too_large("llama-3.1-405b", nodes=64, batch=512, sequence=8192, optimizer="adam", gradient_dtype="bfloat16")
    found = nearest_fits(plan).plans
    assert found
    for each in found:
        assert each.fits
        assert (each.config.optimizer, str(each.config.gradient_dtype)) == ("adam", "bfloat16")
        assert len(changes(plan.config, each.config)) > 1
        assert "expert_tensor" not in changes(plan.config, each.config)  # 1 is what None means


def test_a_plan_that_fits_has_no_nearest_configurations():
    plan = plan_training("llama-2-7b", cluster.dgx("h100", nodes=4), CONFIG.replaced(zero=3))
    document = json.loads(plan.to_json())
    assert (document["fits_with"], document["ways_out"]) == ([], [])
    assert "fits with" not in str(plan)


def test_what_the_search_decides_cannot_be_pinned_to_something_else():
    nodes = cluster.dgx("h100")
    arguments = {"batch": 64, "sequence": 4096, "progress": False}
    with pytest.raises(ValueError, match=r"suggest: sequence_parallel=False cannot be pinned; .* leave it out"):
        suggest("llama-2-7b", nodes, sequence_parallel=False, **arguments)
    assert suggest("llama-2-7b", nodes, sequence_parallel=True, tensor=2, **arguments).options


@pytest.mark.parametrize(
    ("pinned", "error", "text"),
    [
        ({"tensor": [2, 0]}, ValueError, r"^TrainingConfig: tensor is 0; expected 1 to 2147483648"),
        ({"zero": [1, 4]}, ValueError, r"^TrainingConfig: zero is 4; expected 0 to 3"),
        ({"recompute": ("full", "ful")}, ValueError, r"^TrainingConfig: recompute is 'ful'; expected 'none', 'select"),
        ({"microbatch": [1, "x"]}, TypeError, r"^TrainingConfig: microbatch is 'x' \(str\); expected an int"),
        ({"chunks": [2, -1]}, ValueError, r"^TrainingConfig: chunks is -1; expected 1 to 2147483648"),
        (
            {"optimizer": "sdg"},
            ValueError,
            r"^TrainingConfig: optimizer is 'sdg'; expected 'adamw-fp32-master'",
        ),
        ({"pipeline": []}, ValueError, r"^suggest: pipeline has no choices; expected one or more; leave it"),
        (
            {"tensor": 1.5},
            TypeError,
            r"^suggest: tensor is 1.5 \(float\); expected a number, a text",
        ),
        (
            {"tensr": 1},
            ValueError,
            r"^suggest: unknown fields 'tensr' \(did you mean tensor\?\)",
        ),
    ],
)
def test_wrong_choices_of_a_search_are_refused(pinned, error, text):
    with pytest.raises(error, match=text):
        suggest("llama-2-7b", cluster.dgx("h100"), batch=8, sequence=1024, progress=False, **pinned)


def test_chosen_chunks_need_no_schedule():
    found = suggest(
        "llama-2-7b",
        cluster.dgx("h100"),
        batch=64,
        sequence=1024,
        progress=False,
        top=1,
        pipeline=4,
        chunks=2,
        tensor=1,
    )
    assert {(each.config.chunks, each.config.schedule) for each in found.options} == {(2, "interleaved")}


@pytest.mark.parametrize(("sequence", "tensor", "is_shared"), [(1024, 2, True), (1023, 2, False), (1024, 1, False)])
def test_options_say_whether_sequences_are_sharded_over_tensor_ranks_too(sequence, tensor, is_shared):
    found = suggest(
        "llama-2-7b", cluster.dgx("h100"), batch=64, sequence=sequence, tensor=tensor, context=1, progress=False
    )
    assert found.options
    assert {option.config.sequence_parallel for option in found.options} == {is_shared}
    assert ("sequence_parallel=True" in str(found)) == is_shared


# --- Pictures ---


def test_a_waterfall_has_a_colour_for_each_kind_of_time():
    config = TrainingConfig(batch=256, sequence=4096, tensor=2, sequence_parallel=True, pipeline=4, zero=1)
    plan = plan_training("llama-2-7b", cluster.dgx("h100", nodes=4), config)
    picture = plan.to_svg()
    bars = re.findall(r'<rect x="[\d.]+" y="([\d.]+)" width="([\d.]+)" height="20.0" fill="(#\w+|none)"', picture)
    names = re.findall(r'text-anchor="end" dy="0.35em">([\w ]+)<', picture)
    colours = dict(zip(names, (fill for _, _, fill in bars), strict=True))
    assert colours["products"] == colours["update"]
    assert colours["tensor"] == colours["pipeline"]
    assert colours["bubble"] == colours["fixed"]
    assert len({colours["products"], colours["tensor"], colours["bubble"]}) == 3
    hidden = [name for name in names if name.startswith("hidden ")]
    assert hidden == [f"hidden {name}" for name, value in plan.expected.hidden.items() if value > 0] != []
    assert {colours[name] for name in hidden} == {"none"}  # hollow: they are not in the sum
    widths = [float(width) for _, width, fill in bars if fill != "none"]
    assert sum(widths) == pytest.approx(560, abs=0.6 * len(widths))


def test_stages_that_are_equal_have_their_own_numbers():
    config = TrainingConfig(batch=64, sequence=2048, pipeline=4, schedule="gpipe")
    plan = plan_training("llama-2-7b", cluster.dgx("h100", nodes=4), config)
    assert plan.stages[1] == plan.stages[2]
    names = re.findall(r'text-anchor="end" dy="0.35em">([\w ]+)<', plan.to_svg("memory"))
    assert names == ["stage 0", "stage 1", "stage 2", "stage 3"]


def pipeline_plan(stages, **values):
    """A plan of a narrow model with two layers for each of the stages, on as many devices."""
    shape = models.TransformerShape("narrow", 16 * stages, 64, 128, 4, 4, 16, 1000)
    pod = cluster.gpus("h100", nodes=stages, chips_per_node=1)
    config = TrainingConfig(**{"batch": 960, "sequence": 128, "pipeline": stages, **values})
    return plan_training(shape, pod, config)


@pytest.mark.parametrize(
    ("stages", "values", "shown"),
    [
        (2, {}, "8 of 960"),
        (2, {"batch": 6}, "6 of 6"),
        (4, {}, "8 of 960"),
        (5, {}, "10 of 960"),
        (3, {"schedule": "interleaved", "chunks": 2}, "6 of 960"),  # a multiple of the stages
        (3, {"schedule": "gpipe"}, "8 of 960"),
        (12, {"schedule": "interleaved", "chunks": 16}, "24 of 960"),
        (64, {}, "128 of 960"),
        (80, {}, "102 of 960"),  # 2**14 passes at most
        (96, {}, "85 of 960"),
        (64, {"schedule": "interleaved", "chunks": 2}, "64 of 960"),
    ],
)
def test_a_schedule_shows_the_first_microbatches(stages, values, shown):
    plan = pipeline_plan(stages, **values)
    picture = plan.to_svg("schedule")
    assert f">{shown} microbatches; idle " in picture
    count, chunks = int(shown.partition(" ")[0]), values.get("chunks", 1)
    assert len(re.findall(r"<title>", picture)) >= 2 * count * stages * chunks
    rows = re.findall(r">(stage \d+)<", picture)
    assert list(dict.fromkeys(rows)) == [f"stage {i}" for i in range(stages)]


@pytest.mark.parametrize(("chunks", "named"), [(1, 0), (2, 2), (4, 4), (8, 4)])
def test_a_schedule_names_passes_and_up_to_four_chunks(chunks, named):
    values = {"schedule": "interleaved", "chunks": chunks} if chunks > 1 else {}
    picture = pipeline_plan(2, **values).to_svg("schedule")
    names = [f"{word}, chunk {i}" for i in range(1, named + 1) for word in ("forward", "backward")]
    assert re.findall(r">((?:forward|backward)[^<:]*)<", picture) == (names or ["forward", "backward"])


def test_a_schedule_has_a_colour_for_each_pass_of_a_chunk():
    picture = pipeline_plan(2, schedule="interleaved", chunks=6, batch=4).to_svg("schedule")
    legend = re.findall(r'height="12.0" fill="(#\w+)".*\n<text.*>(forward|backward), chunk (\d)<', picture)
    colours = {(word, int(chunk)): fill for fill, word, chunk in legend}
    assert len(legend) == len(set(colours.values())) == 8
    tiles = re.findall(r'<title>1: .*?<rect x="([\d.]+)" y="44.0".*? fill="(#\w+)"', picture)
    passes = [fill for _, fill in sorted((float(x), fill) for x, fill in tiles)]
    chunks = [1, 2, 3, 4, 1, 2]  # a fifth chunk has the colour of the first
    assert passes[:6] == [colours["forward", chunk] for chunk in chunks]
    assert passes[6:] == [colours["backward", chunk] for chunk in reversed(chunks)]


def test_the_idle_part_of_a_schedule_is_that_of_its_stages():
    plan = pipeline_plan(4, schedule="gpipe")
    passes = [stage.forward + stage.backward for stage in plan.stages]
    idle = float(re.search(r"8 of 960 microbatches; idle ([\d.]+)% of the time shown", plan.to_svg("schedule"))[1])
    # The slowest stage works without a pause between its first and its last forward, and backward, pass.
    assert 1 - 8 * sum(passes) / 4 / (8 * max(passes)) <= idle / 100 < 0.5
    assert idle == pytest.approx(100 * (1 - 8 / 11), abs=8)  # that of equal stages: 3 passes of 11 wait


@pytest.mark.parametrize(("stages", "left_out"), [(64, 0), (65, 1), (80, 16)])
def test_memory_of_many_stages_is_that_of_the_first_and_the_last_ones(stages, left_out):
    picture = pipeline_plan(stages).to_svg("memory")
    names = re.findall(r'text-anchor="end" dy="0.35em">stage (\d+)<', picture)
    numbers = list(range(stages))
    assert list(map(int, names)) == (numbers[:32] + numbers[-32:] if left_out else numbers)
    assert (f">{left_out} stages in the middle are left out<" in picture) == (left_out > 0)
    assert ("are left out" in picture) == (left_out > 0)


def test_a_front_has_a_colour_for_each_number_of_devices():
    nodes = cluster.dgx("h100", nodes=2)
    both = suggest("llama-2-7b", nodes, batch=64, sequence=4096, device_counts=[16, 8], progress=False)
    ax = both.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["16 devices", "8 devices"]
    points = [tuple(point) for line in ax.get_lines() for point in line.get_xydata()]
    assert sorted(points) == sorted((each.plan.memory / 1e9, each.plan.seconds) for each in both.front)
    ax.figure.canvas.draw()
    inside = ax.get_window_extent()
    texts = [text.get_window_extent() for text in ax.texts if isinstance(text, Annotation)]
    assert len(texts) == 4  # the fastest option of each number of devices, and the one with the least memory
    assert all(inside.x0 <= text.x0 and text.x1 <= inside.x1 for text in texts)
    one = suggest("llama-2-7b", nodes, batch=64, sequence=4096, device_counts=[16], progress=False)
    (line,) = one.plot().get_lines()
    assert len(line.get_xdata()) == len(one.front)
