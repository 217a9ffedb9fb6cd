# SPDX-License-Identifier: Apache-2.0
"""Printed plans of training runs: the answer first, advice that can be pasted, and the cost of a run."""

import json
import shlex
from types import MappingProxyType

import pytest
from artifex_devices import cluster
from artifex_devices.command_line import main
from artifex_devices.planner import (
    Efficiency,
    RunCost,
    TrainingConfig,
    plan_inference,
    plan_training,
    suggest,
)
from artifex_devices.planner.training.faster import faster_changes, faster_text, limits_text
from artifex_devices.planner.training.run_cost import tokens_text
from artifex_devices.planner.training.spelling import arguments_text, options_text, settings
from artifex_devices.planner.training.table import settings_text
from artifex_devices.planner.training.values import TIME_PARTS, TrainingSeconds

NODE = cluster.dgx("h100")
POD = cluster.dgx("h100", nodes=4)
CONFIG = TrainingConfig(batch=256, sequence=4096, zero=3)
PLAN = plan_training("llama-2-7b", POD, CONFIG)


def output_of(capsys, *words):
    """Standard output of a command that succeeds."""
    assert main(["plan", *words]) == 0
    return capsys.readouterr().out


# --- What limits a step, and what would help ---


def seconds(**parts):
    """A step of these parts."""
    every = {**dict.fromkeys(TIME_PARTS, 0.0), **parts}
    return TrainingSeconds(parts=every, hidden={}, total=sum(every.values()))


def test_the_two_largest_parts_limit_a_step():
    found = seconds(products=2.0, bubble=6.0, tensor=1.0, fixed=1.0)
    assert limits_text(found) == "waiting for other stages, 6 s of 10 s (60.0%); then matrix products, 2 s (20.0%)"
    assert limits_text(seconds(products=2.0)) == "matrix products, 2 s of 2 s (100.0%)"


def test_the_limit_is_in_the_text_and_in_json():
    parts = PLAN.expected.parts
    part = max(parts, key=parts.get)
    assert part == "products"
    assert f"limited by  {limits_text(PLAN.expected)}\n" in f"{PLAN}\n"
    assert json.loads(PLAN.to_json())["limited_by"] == {"part": part, "seconds": parts[part]}


@pytest.mark.parametrize(
    ("values", "change"),
    [
        ({"dtype": "bfloat16"}, {"dtype": "float8"}),
        ({"flash_attention": False}, {"flash_attention": True}),
        ({"recompute": "full"}, {"recompute": "none"}),
        ({"tensor": 8, "sequence_parallel": True, "zero": 1}, {"tensor": 4}),
        ({"tensor": 2, "zero": 1, "microbatch": 2, "dtype": "float8"}, {"sequence_parallel": True}),
        ({}, {"attention_kernel": "native"}),
        ({"pipeline": 8, "zero": 1, "microbatch": 4, "dtype": "float8"}, {"microbatch": 2}),
        (
            {"pipeline": 8, "zero": 1, "microbatch": 2, "recompute": "full"},
            {"schedule": "interleaved", "chunks": 4},
        ),
        ({"offload_activations": True, "overlap": {"offload": 0}}, {"offload_activations": False}),
    ],
)
def test_changes_of_one_setting_are_priced(values, change):
    plan = plan_training("llama-2-7b", POD, CONFIG.replaced(**values))
    found = {str(each.changes): each for each in faster_changes(plan)}
    each = found[str(change)]
    changed = plan_training("llama-2-7b", POD, plan.config.replaced(data=None, **change))
    assert (each.seconds, each.memory) == (changed.seconds, changed.memory)
    assert each.saved == plan.seconds - changed.seconds >= 0.01 * plan.seconds
    assert changed.fits


def test_the_changes_that_save_most_are_first_and_at_most_three():
    plan = plan_training("llama-2-7b", POD, CONFIG.replaced(tensor=8, recompute="full", flash_attention=False))
    found = faster_changes(plan)
    assert len(found) == 3
    assert [each.saved for each in found] == sorted((each.saved for each in found), reverse=True)
    text = faster_text(found, plan.seconds, options_text)
    assert text.count("; ") == 2
    assert f" saves {found[0].saved:.3g} s ({found[0].saved / plan.seconds:.1%}); " in text


def test_formats_that_the_chip_lacks_are_not_proposed():
    a100 = plan_training("llama-2-7b", cluster.dgx("a100", nodes=4), CONFIG)
    assert not any("dtype" in each.changes for each in faster_changes(a100))
    assert any("dtype" in each.changes for each in faster_changes(PLAN))


def test_float8_is_also_tried_with_the_settings_of_other_configurations():
    (own,) = (each for each in faster_changes(PLAN) if "dtype" in each.changes)
    other = CONFIG.replaced(microbatch=2)
    (found,) = (each for each in faster_changes(PLAN, others=[other]) if "dtype" in each.changes)
    assert (own.changes, found.changes) == ({"dtype": "float8"}, {"microbatch": 2, "dtype": "float8"})
    assert found.seconds == plan_training("llama-2-7b", POD, other.replaced(dtype="float8")).seconds < own.seconds


def test_advice_fits_in_memory():
    wide = CONFIG.replaced(recompute="full", microbatch=8)
    plan = plan_training("llama-2-7b", POD, wide)
    assert (plan.fits, plan_training("llama-2-7b", POD, wide.replaced(recompute="none")).fits) == (True, False)
    found = faster_changes(plan)
    assert found
    assert all(each.changes.get("recompute") != "none" and each.needed <= plan.available for each in found)
    too_large = plan_training("llama-2-7b", POD, CONFIG.replaced(zero=0))
    assert (too_large.fits, faster_changes(too_large)) == (False, ())
    assert "would help" not in str(too_large)


def test_a_text_without_a_change_that_helps_states_it():
    best = plan_training("llama-2-7b", POD, CONFIG.replaced(microbatch=2, dtype="float8", attention_kernel="native"))
    assert faster_changes(best) == ()
    assert "would help  none of the changes that were tried saves 1% or more\n" in f"{best}\n"


# --- Advice that can be pasted ---


def test_changes_are_options_and_arguments():
    values = {"recompute": "full", "zero": 3, "sequence_parallel": True, "offload_optimizer": False}
    assert options_text(values) == "--recompute full --zero 3 --sequence-parallel --no-offload-optimizer"
    assert arguments_text(values) == "recompute='full', zero=3, sequence_parallel=True, offload_optimizer=False"
    unset = {"tensor": 1, "sequence_parallel": False, "recompute_layers": None}
    assert options_text(unset) == "--tensor 1, without --sequence-parallel, without --recompute-layers"
    kinds = {"gradient_dtype": "bfloat16", "parameter_dtypes": MappingProxyType({"norm": "float32", "head": "float32"})}
    assert options_text(kinds) == "--gradient-dtype bfloat16 --parameter-dtypes norm=float32,head=float32"
    assert options_text({"overlap": {"data": 0.5, "tensor": 1}}) == "--overlap data=0.5,tensor=1"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"tensor": 2, "sequence_parallel": True, "pipeline": 2, "schedule": "interleaved", "chunks": 2, "zero": 1},
        {"flash_attention": False, "causal": False, "dropout": True, "recompute": "selective"},
        {"overlap": {"data": 0.5}, "gradient_dtypes": {"norm": "bfloat16"}, "offload_optimizer": True, "sharp": True},
        {"zero_shards": 8, "recompute": "full", "recompute_layers": 4, "parameter_scale": 0.25, "optimizer": "adam"},
    ],
)
def test_the_settings_of_a_configuration_are_read_back(values, capsys):
    plan = plan_training("llama-2-7b", POD, CONFIG.replaced(**values))
    words = shlex.split(options_text(settings(plan.config)))
    run = ("llama-2-7b", "--batch", "256", "--sequence", "4096", "--cluster", "dgx h100 nodes=4", "--json")
    main(["plan", *run, *words])
    assert json.loads(capsys.readouterr().out)["config"] == json.loads(plan.to_json())["config"]
    again = eval(f"dict({arguments_text(settings(plan.config))})")
    assert TrainingConfig(batch=256, sequence=4096, **again).replaced(data=plan.config.data) == plan.config


def test_the_nearest_configurations_are_options_on_the_command_line(capsys):
    run = ("llama-2-7b", "--batch", "256", "--sequence", "4096", "--cluster", "dgx h100 nodes=4")
    assert main(["plan", *run, "--zero", "0"]) == 1
    printed = capsys.readouterr().out
    plan = plan_training("llama-2-7b", POD, CONFIG.replaced(zero=0))
    assert "  fits with   --zero 1: " in printed
    assert "  fits with   zero=1: " in str(plan)


# --- Searches ---


def test_configurations_that_differ_by_nothing_that_matters_are_one_row():
    pod = cluster.from_text("64 x h100")
    found = suggest("llama-2-70b", pod, batch=256, sequence=4096, progress=False)
    assert len(found.options) == 5
    assert sum(len(each.same) for each in found.options) > 5
    for choice in found.options:
        for config in choice.same:
            other = plan_training("llama-2-70b", pod, config)
            assert other.seconds == pytest.approx(choice.plan.seconds, rel=0.01)
            assert other.memory == pytest.approx(choice.plan.memory, rel=0.021)
    plans = [each.plan for each in found.options]
    for i, plan in enumerate(plans):
        for other in plans[:i]:
            assert plan.seconds > 1.01 * other.seconds or abs(plan.memory / other.memory - 1) > 0.019


def test_a_row_names_the_settings_of_its_equals():
    found = suggest(
        "llama-2-7b", NODE, batch=64, sequence=4096, tensor=1, pipeline=1, zero=3, recompute="none", context=[1, 2],
        microbatch=1, context_method=["ring", "all_to_all"], progress=False,
    )  # fmt: skip
    rows = [[(config.context, config.context_method) for config in (each.config, *each.same)] for each in found.options]
    assert rows == [[(1, "ring")], [(2, "ring"), (2, "all_to_all")]]
    lines = str(found).splitlines()
    assert lines[1].split() == ["memory", "expected", "bound", "MFU", "settings"]
    assert [line.split("%  ")[-1] for line in lines[2:5]] == [
        "ZeRO 3", "CP 2 ring, ZeRO 3", "     the same with context_method='all_to_all'",
    ]  # fmt: skip
    assert "the same with --context-method all_to_all\n" in found._command_summary().text()
    same = [each["same"] for each in json.loads(found.to_json())["options"]]
    assert same == [[], [{"context_method": "all_to_all"}]]


def test_options_that_need_as_much_memory_as_a_faster_one_have_no_row():
    found = suggest(
        "llama-2-7b", POD, batch=256, sequence=4096, tensor=[1, 2], context=1, pipeline=1, zero=3, microbatch=1,
        recompute="none", zero_shards=[None, 8], device_counts=[32], progress=False,
    )  # fmt: skip
    options = [(each.config.tensor, each.config.zero_shards) for each in found.options]
    assert options == [(1, None), (1, 8), (2, 8), (2, None)]
    assert [line.split("%  ")[-1] for line in str(found).splitlines()[2:6]] == [
        "ZeRO 3",
        "TP 2, ZeRO 3 of 8",
        "TP 2, ZeRO 3",
        "  best        zero=3, attention_kernel='native'",
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "data parallelism alone"),
        (
            {"tensor": 2, "context": 4, "context_method": "all_to_all", "pipeline": 2, "zero": 1, "zero_shards": 8},
            "TP 2, CP 4 all-to-all, PP 2, ZeRO 1 of 8",
        ),
        (
            {"pipeline": 4, "schedule": "interleaved", "chunks": 5, "expert": 8, "microbatch": 2},
            "PP 4 x 5, EP 8, micro 2",
        ),
        ({"recompute": "full", "recompute_layers": 4, "optimizer": "adam"}, "recompute 4 layers, adam"),
        ({"recompute": "full", "offload_optimizer": True}, "recompute full, offload optimizer"),
    ],
)
def test_settings_of_a_row(values, text):
    assert settings_text(TrainingConfig(batch=64, sequence=4096, **values)) == text


def test_a_screen_holds_the_answer(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run = ("llama-3-70b", "--batch", "512", "--sequence", "8192", "--cluster", "dgx h100 nodes=8")
    lines = output_of(capsys, *run, "--quiet").splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    names = [line[2:].split("  ")[0] for line in lines]
    assert lines[0] == "training llama-3-70b on 8 nodes x 8 h100: 512 x 8192 tokens"
    assert lines[1].split() == ["memory", "expected", "bound", "MFU", "settings"]
    assert names.index("best") < names.index("limited by") < names.index("would help") < names.index("error")


# --- Details ---


@pytest.mark.parametrize("name", ["factors  ", "searched  ", "[S8]", "989 TFLOP/s"])
def test_sources_rates_and_factors_are_details(name):
    found = suggest("llama-2-7b", POD, batch=256, sequence=4096, zero=3, recompute="none", progress=False)
    serving = plan_inference("llama-3-8b", NODE, batch=8, prompt=128, output=64)
    assert not any(name in str(each) for each in (PLAN, found, serving))
    assert any(name in each.details() for each in (PLAN, found, serving))


def test_details_follow_the_answer():
    lines = str(PLAN).splitlines()
    assert PLAN.details().splitlines()[: len(lines) - 1][:3] == lines[:3]
    assert lines[-1].split("  ")[1] == "details"
    folded = PLAN._repr_html_().partition("<details>")
    assert "limited by" in folded[0]
    assert "links_half_bytes" not in folded[0]
    assert "links_half_bytes" in folded[2]


def test_details_are_an_option(capsys):
    words = ("llama-2-7b", "--batch", "256", "--sequence", "4096", "--cluster", "dgx h100 nodes=4", "--zero", "3")
    assert output_of(capsys, *words, "--details") == f"{PLAN._command_summary().text(is_detailed=True)}\n"


# --- Days and cost of a run ---


def ideal_plan():
    """A plan without losses."""
    return plan_training("llama-2-7b", POD, CONFIG, efficiency=Efficiency.ideal())


def test_a_run_takes_whole_steps():
    plan = ideal_plan()
    run = plan.cost_of_run("2T", 2.5)
    assert run.steps == 1907349  # 2e12 / 2**20 is 1907348.6
    hours = 1907349 * plan.seconds / 3600
    assert run.days == pytest.approx(hours / 24)
    assert run.device_hours == pytest.approx(32 * hours)
    assert run.cost == pytest.approx(2.5 * 32 * hours)
    assert plan.cost_of_run(2**20).steps == 1
    assert (plan.cost_of_run(1).cost, plan.cost_of_run(1).price_per_device_hour) == (None, None)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("15T", 15e12), ("300B", 300e9), ("1.5t", 1.5e12), ("20 M", 20e6), ("4k", 4e3), ("4096", 4096), (3e11, 3e11)],
)
def test_tokens_are_numbers_or_texts(text, tokens):
    assert ideal_plan().cost_of_run(text).tokens == tokens


@pytest.mark.parametrize(
    ("tokens", "text"), [(15e12, "15T"), (300e9, "300B"), (1.5e12, "1.5T"), (2e7, "20M"), (4000, "4k"), (12, "12")]
)
def test_tokens_are_written_as_publications_do(tokens, text):
    assert tokens_text(tokens) == text


def test_a_run_is_one_line():
    run = RunCost(15e12, 894070, 70.25, 27624123.4, 2.5, 69060308.5)
    text = "15T tokens: 894,070 steps, 70.2 days, 27,624,123 device-hours"
    assert str(run) == f"{text}, cost 69,060,308 at 2.5 per device-hour"
    assert str(RunCost(15e12, 894070, 70.25, 27624123.4, None, None)) == text


def test_the_command_prints_the_cost_of_a_run(capsys):
    words = ("llama-2-7b", "--batch", "256", "--sequence", "4096", "--cluster", "dgx h100 nodes=4", "--zero", "3")
    run = PLAN.cost_of_run("2T", 2.5)
    priced = ("--tokens", "2T", "--price-per-device-hour", "2.5")
    assert f"  run         {run}\n" in output_of(capsys, *words, *priced)
    assert json.loads(output_of(capsys, *words, *priced, "--json"))["run"] == vars(run)
    assert json.loads(output_of(capsys, *words, "--json"))["run"] is None
