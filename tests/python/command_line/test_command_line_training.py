# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices plan MODEL`: the same numbers as from Python, each option, its pictures and its errors."""

import dataclasses
import json
import re
import shlex
from pathlib import Path

import pytest
from artifex_devices import cluster
from artifex_devices.command_line import main
from artifex_devices.planner import (
    Efficiency,
    TrainingChoice,
    TrainingConfig,
    plan_failures,
    plan_training,
    suggest,
)
from artifex_devices.planner.training import config

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "how_to" / "plan_a_training_run.md").read_text(encoding="utf-8")
NODES = cluster.dgx("h100", nodes=4)
RUN = ("llama-2-7b", "--batch", "256", "--sequence", "4096", "--cluster", "dgx h100 nodes=4")
FITS = (*RUN, "--zero", "3")
DEFAULTS = (*RUN, "--tensor", "1")  # one configuration, all others as by default
CONFIG = TrainingConfig(batch=256, sequence=4096)
TOO_LARGE = ("llama-3.1-405b", "--batch", "8", "--sequence", "8192", "--cluster", "dgx h100")


def output_of(capsys, *words):
    """Exit code, standard output and standard error."""
    try:
        code = main(["plan", *words])
    except SystemExit as end:
        code = end.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def document_of(capsys, *words, code=0):
    """The JSON of a command that ends with a code."""
    found, out, err = output_of(capsys, *words, "--json")
    assert (found, err) == (code, "")
    return json.loads(out)


def refused(capsys, *words):
    """The error of a command that is not understood."""
    code, out, err = output_of(capsys, *words)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    return line


def test_a_plan_is_that_of_python(capsys):
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    text = (
        str(plan)
        .replace("attention_kernel='native'", "--attention-kernel native")
        .replace("dtype='float8'", "--dtype float8")
    )
    assert output_of(capsys, *FITS) == (0, f"{text}\n", "")
    assert document_of(capsys, *FITS) == json.loads(plan.to_json())


def test_the_table_has_bound_expected_seconds_error_memory_and_numbered_sources(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = output_of(capsys, *FITS, "--details")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    first_words = [line[2:].split("  ")[0] for line in lines]
    for row in ("step", "memory", "limited by", "bound", "expected", "error", "factors", "[1]", "[2]", "[S8]"):
        assert first_words.count(row) == 1, row
    text = " ".join(out.split())
    assert re.search(r"parameters [\d.]+ MiB, gradients [\d.]+ MiB, optimizer [\d.]+ GiB, activations [\d.]+ GiB", text)
    assert re.search(r"error median [\d.]+%, nine of ten within [\d.]+%: \d+ published dense runs in bfloat16", text)
    factors = re.search(r"factors (.*?) \[1\] fit of", text)[1]
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    sources = {source for name, source in plan.efficiency.sources.items() if f"{name} " in factors}
    assert {int(number) for number in re.findall(r"\[(\d+)\]", factors)} == set(range(1, len(sources) + 1))


OPTIONS = [
    ("--tensor 2 --sequence-parallel", {"tensor": 2, "sequence_parallel": True}),
    ("--context 2 --context-method all_to_all", {"context": 2, "context_method": "all_to_all"}),
    ("--pipeline 4 --schedule gpipe", {"pipeline": 4, "schedule": "gpipe"}),
    ("--pipeline 4 --chunks 2", {"pipeline": 4, "chunks": 2, "schedule": "interleaved"}),
    ("--data 32", {"data": 32}),
    ("--zero 3 --zero-shards 8", {"zero": 3, "zero_shards": 8}),
    ("--microbatch 2", {"microbatch": 2}),
    ("--recompute full --recompute-layers 16", {"recompute": "full", "recompute_layers": 16}),
    ("--optimizer adam --dtype float8", {"optimizer": "adam", "dtype": "float8"}),
    (
        "--parameter-dtype float16 --gradient-dtype float16 --activation-dtype float32",
        {"parameter_dtype": "float16", "gradient_dtype": "float16", "activation_dtype": "float32"},
    ),
    ("--no-flash-attention --recompute selective", {"flash_attention": False, "recompute": "selective"}),
    ("--no-causal --dropout", {"causal": False, "dropout": True}),
    ("--offload-optimizer --offload-activations", {"offload_optimizer": True, "offload_activations": True}),
    ("--overlap data=0.5,tensor=0.25", {"overlap": {"data": 0.5, "tensor": 0.25}}),
    ("--parameter-dtypes norm=float32,head=float32", {"parameter_dtypes": {"norm": "float32", "head": "float32"}}),
    ("--gradient-dtypes attention=bfloat16", {"gradient_dtypes": {"attention": "bfloat16"}}),
]


@pytest.mark.parametrize(("words", "values"), OPTIONS, ids=[words for words, _ in OPTIONS])
def test_each_option_is_a_field_of_the_configuration(words, values, capsys):
    plan = plan_training("llama-2-7b", NODES, TrainingConfig(batch=256, sequence=4096, **values))
    code, out, err = output_of(capsys, *DEFAULTS, *words.split(), "--json")
    assert (code, err) == (0 if plan.fits else 1, "")
    assert json.loads(out) == json.loads(plan.to_json())


def test_experts_have_options(capsys):
    words = ("mixtral-8x7b", "--batch", "64", "--sequence", "2048", "--cluster", "dgx h100 nodes=4")
    more = "--expert 8 --expert-tensor 1 --expert-imbalance 1.5 --zero 1"
    values = {"expert": 8, "expert_tensor": 1, "expert_imbalance": 1.5, "zero": 1}
    plan = plan_training("mixtral-8x7b", NODES, TrainingConfig(batch=64, sequence=2048, **values))
    assert document_of(capsys, *words, *more.split(), code=not plan.fits) == json.loads(plan.to_json())


def test_every_field_has_an_option(capsys):
    _, text, _ = output_of(capsys, "MODEL", "--help-all")
    options = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", text))
    for field in dataclasses.fields(TrainingConfig):
        name = field.name.replace("_", "-")
        assert options & {f"--{name}", f"--no-{name}"}, name


@pytest.mark.parametrize(
    ("option", "choices"),
    [
        ("--context-method", config.CONTEXT_METHODS),
        ("--schedule", config.SCHEDULES),
        ("--recompute", config.RECOMPUTES),
        ("--optimizer", config.OPTIMIZERS),
        ("--dtype", config.FORMATS),
    ],
)
def test_choices_of_options_are_those_of_the_configuration(option, choices, capsys):
    """The command lists them itself, so that its --help need not import the planner."""
    code, _, error = output_of(capsys, *RUN, option, "other")
    assert code == 2
    listed = re.search(r"expected one of (.*?)$", " ".join(error.split()))[1]
    assert listed.partition(";")[0].split(", ") == list(choices)


def test_measured_seconds_and_factors(capsys):
    document = document_of(capsys, *FITS, "--measured-step", "3.3")
    assert document["measured"] == 3.3
    assert document["error"] is not None
    changed = document_of(capsys, *FITS, "--factor", "matmul=0.5,step_seconds=1")
    assert changed["efficiency"]["matmul"] == {"value": 0.5, "source": "given"}
    assert changed["seconds"]["expected"]["total"] > document["seconds"]["expected"]["total"] + 0.9
    assert changed["error"] is None  # these factors were not compared with published runs
    ideal = document_of(capsys, *FITS, "--efficiency", "ideal")
    assert ideal["seconds"]["expected"] == ideal["seconds"]["roofline"]
    published = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3), efficiency=Efficiency.published(NODES))
    assert document_of(capsys, *FITS, "--efficiency", "published") == json.loads(published.to_json())
    assert document_of(capsys, *FITS, "--efficiency", "fitted") == document_of(capsys, *FITS)


# --- What does not fit ---


def test_a_plan_that_does_not_fit_names_single_changes_that_do(capsys):
    document = document_of(capsys, *DEFAULTS, code=1)
    assert document["memory"]["fits"] is False
    assert document["ways_out"] == []
    assert {"zero": 1} in [each["changes"] for each in document["fits_with"]]
    for each in document["fits_with"]:
        changed = plan_training("llama-2-7b", NODES, CONFIG.replaced(**each["changes"]))
        assert (changed.fits, changed.memory, changed.seconds) == (True, each["memory"], each["seconds"])
    seconds = [each["seconds"] for each in document["fits_with"]]
    assert seconds == sorted(seconds)
    code, out, err = output_of(capsys, *DEFAULTS)
    assert (code, err) == (1, "")
    assert "does not fit" in out
    assert re.search(r"^  fits with  .*GiB.*\(model\)$", out, re.MULTILINE)
    assert re.search(r"--zero 1: [\d.]+ GiB", out)


def test_where_one_change_is_not_enough_a_search_finds_some(capsys):
    words = ("llama-3.1-405b", "--batch", "512", "--sequence", "8192", "--cluster", "dgx h100 nodes=64")
    document = document_of(capsys, *words, "--optimizer", "adam", "--tensor", "1", code=1)
    assert 1 <= len(document["fits_with"]) <= 3
    base = TrainingConfig(batch=512, sequence=8192, optimizer="adam")
    for each in document["fits_with"]:
        assert len(each["changes"]) > 1
        changed = plan_training("llama-3.1-405b", cluster.dgx("h100", nodes=64), base.replaced(**each["changes"]))
        assert (changed.fits, changed.memory, changed.config.optimizer) == (True, each["memory"], "adam")


def test_where_nothing_fits_the_cluster_that_would_is_named(capsys):
    document = document_of(capsys, *TOO_LARGE, "--tensor", "1", code=1)
    assert document["fits_with"] == []
    assert {"devices": 32} in document["ways_out"]
    assert re.search(r"^ +(fits with  +)?32 devices$", output_of(capsys, *TOO_LARGE, "--tensor", "1")[1], re.MULTILINE)


# --- The search ---


def test_a_search_is_that_of_python(capsys):
    found = suggest("llama-2-7b", NODES, batch=256, sequence=4096, progress=False)
    assert output_of(capsys, *RUN) == (0, f"{found._command_summary().text()}\n", "")
    assert output_of(capsys, *RUN, "--details")[1].count("1,344,000 combinations") == 1
    assert document_of(capsys, *RUN, "--quiet") == json.loads(found.to_json())


def test_options_pin_fields_or_give_their_choices(capsys):
    words = "--tensor 2,4 --zero 1 --recompute none,full --top 2 --max-tensor 4 --framework torch"
    document = document_of(capsys, *RUN, *words.split(), "--device-counts", "32,16", "--optimizer", "adam")
    found = suggest(
        "llama-2-7b", NODES, batch=256, sequence=4096, tensor=[2, 4], zero=1, recompute=["none", "full"], top=2,
        max_tensor=4, framework="torch", device_counts=[32, 16], optimizer="adam", progress=False,
    )  # fmt: skip
    assert document == json.loads(found.to_json())
    assert document["space"]["choices"]["tensor"] == [2, 4]
    assert len(document["options"]) == 2
    assert {each["devices"] for each in document["front"]} == {16, 32}


def test_the_table_of_a_search_has_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = output_of(capsys, *RUN, "--device-counts", "32")
    assert code == 0
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split() == ["memory", "expected", "bound", "MFU", "settings"]
    assert re.fullmatch(r"  1  [\d.]+ GiB  [\d.]+ s +[\d.]+ s +[\d.]+%  ZeRO 3, micro 2", lines[2])


def test_a_search_in_which_nothing_fits_needs_attention(capsys):
    document = document_of(capsys, *TOO_LARGE, code=1)
    assert (document["options"], document["front"]) == ([], [])
    assert document["nearest"]
    assert document["ways_out"]
    code, out, err = output_of(capsys, *TOO_LARGE)
    assert (code, err) == (1, "")
    assert "nothing fits; the nearest, least memory first" in out
    assert "fits with" in out


def test_a_search_without_consistent_combinations_reports_it(capsys):
    words = ("--batch", "7", "--search", "--tensor", "1", "--pipeline", "1", "--context", "1")
    code, out, err = output_of(capsys, *RUN, *words)
    assert (code, err) == (1, "")
    assert "no combination divides the batch, the layers and the cluster" in out
    assert "no combination divides the batch" in refused(capsys, *RUN, *words, "--code", "jax")
    assert "no combination divides the batch" in refused(capsys, *RUN, *words, "--svg")


# --- One configuration, or a search ---


@pytest.mark.parametrize("words", ["--zero 3", "--zero=3 --tp 1", "--dp 32 --zero 3", "--zero 3 --pp 1 --cp 1 --ep 1"])
def test_a_searched_field_with_one_value_describes_one_configuration(words, capsys):
    plan = plan_training("llama-2-7b", NODES, batch=256, sequence=4096, zero=3)
    assert document_of(capsys, *RUN, *words.split()) == json.loads(plan.to_json())


@pytest.mark.parametrize(
    ("words", "pinned"),
    [
        ("--tensor 2,4 --zero 1", {"tensor": [2, 4], "zero": 1}),
        ("--tensor 4 --search", {"tensor": 4}),
        ("--dtype float8", {"dtype": "float8"}),  # which a search does not choose
        ("--optimizer adam,sgd --zero 1", {"optimizer": ["adam", "sgd"], "zero": 1}),
    ],
)
def test_a_list_or_a_choice_that_is_left_is_searched(words, pinned, capsys):
    found = suggest("llama-2-7b", NODES, batch=256, sequence=4096, progress=False, **pinned)
    assert document_of(capsys, *RUN, *words.split()) == json.loads(found.to_json())


def test_options_may_stand_before_the_model(capsys):
    assert output_of(capsys, *FITS[1:], FITS[0]) == output_of(capsys, *FITS)


def test_models_are_known_by_their_id_on_the_hub(capsys):
    by_id = document_of(capsys, "meta-llama/Llama-2-7b-hf", *FITS[1:])
    assert by_id == document_of(capsys, *FITS)
    text = refused(capsys, "meta-llama/Llama-9-7b", *FITS[1:])
    assert "is an id that is not known here" in text
    assert "models.from_transformers('meta-llama/Llama-9-7b')" in text


def test_a_file_with_the_name_of_a_command_is_given_by_its_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").write_text(json.dumps({"model_type": "llama", "num_hidden_layers": 2}), encoding="utf-8")
    assert document_of(capsys, "./models", *FITS[1:])["model"] == "llama"


def test_failures_are_planned_below_the_plan(capsys):
    words = ("--failures", "--mtbf-hours", "100", "--save-seconds", "30", "--restart-seconds", "600", "--runs", "20")
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    drill = plan_failures(plan, mtbf_hours=100, save_seconds=30, restart_seconds=600, runs=20)
    assert output_of(capsys, *FITS, *words) == (0, f"{plan._command_summary().text()}\n\n{drill}\n", "")
    document, own = document_of(capsys, *FITS, *words), json.loads(drill.to_json())
    failures = document.pop("failures")
    assert document == json.loads(plan.to_json())
    assert failures == {name: own[name] for name in failures}
    assert set(own) - set(failures) == {"format", "kind", "model", "cluster", "devices", "sources"}
    best = suggest("llama-2-7b", NODES, batch=256, sequence=4096, progress=False).best.plan
    drill = plan_failures(best, mtbf_hours=100, save_seconds=30, restart_seconds=600, runs=20)
    assert document_of(capsys, *RUN, *words)["failures"]["useful"] == drill.useful


# --- Code and pictures ---


@pytest.mark.parametrize("kind", ["mesh", "jax", "megatron", "maxtext", "deepspeed"])
def test_code_is_that_of_the_choice(kind, capsys):
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    names = {
        "mesh": "to_mesh_code",
        "jax": "to_jax_code",
        "megatron": "to_megatron_flags",
        "maxtext": "to_maxtext_flags",
        "deepspeed": "to_deepspeed_json",
    }
    assert output_of(capsys, *FITS, "--code", kind) == (0, getattr(TrainingChoice(plan), names[kind])(), "")
    best = suggest("llama-2-7b", NODES, batch=256, sequence=4096, progress=False).best
    assert output_of(capsys, *RUN, "--code", kind) == (0, getattr(best, names[kind])(), "")


def test_code_for_a_program_that_cannot_run_the_plan_is_refused(capsys):
    error = refused(capsys, *RUN, "--pipeline", "2", "--zero", "1", "--code", "deepspeed")
    assert "TrainingChoice.to_deepspeed_json: DeepSpeed 0.19.6 cannot run pipeline=2, because" in error
    assert "plan it with pipeline=1" in error


def test_a_search_writes_the_fastest_option_that_the_program_runs(capsys):
    words = ("llama-3-70b", "--batch", "512", "--sequence", "8192", "--cluster", "dgx h100 nodes=8", "--search")
    found = suggest(
        "llama-3-70b", cluster.dgx("h100", nodes=8), batch=512, sequence=8192, offload_activations=False, top=1000,
        progress=False,
    )  # fmt: skip
    assert not found.best.runs_in("megatron")
    plans = [p for option in found.options for p in (option.plan, *map(option.plan._with_config, option.same))]
    best = next(choice for choice in map(TrainingChoice, plans) if choice.runs_in("megatron"))
    assert output_of(capsys, *words, "--code", "megatron") == (0, best.to_megatron_flags(), "")


def test_code_of_a_plan_that_does_not_fit_is_written_with_a_warning(capsys):
    code, out, err = output_of(capsys, *DEFAULTS, "--code", "megatron")
    assert code == 1
    assert out.startswith("--num-layers 32")
    assert err == "artifex_devices plan: it does not fit in memory; omit --code to see what fits\n"


def test_pictures_of_a_plan(tmp_path, capsys):
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    assert output_of(capsys, *FITS, "--svg") == (0, plan.to_svg(), "")
    for kind in ("waterfall", "memory", "schedule"):
        path = tmp_path / f"one_{kind}.svg"
        assert output_of(capsys, *FITS, "--svg", str(path), "--picture", kind) == (0, "", "")
        assert path.read_text(encoding="utf-8") == plan.to_svg(kind)


def test_a_folder_gets_all_pictures(tmp_path, capsys):
    plan = plan_training("llama-2-7b", NODES, CONFIG.replaced(zero=3))
    for folder in (f"{tmp_path}/new/", str(tmp_path / "new")):  # created, then it exists
        assert output_of(capsys, *FITS, "--svg", folder) == (0, "", "")
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
            "memory.svg", "schedule.svg", "waterfall.svg",
        ]  # fmt: skip
        for path in (tmp_path / "new").iterdir():
            assert path.read_text(encoding="utf-8") == plan.to_svg(path.stem)
            path.unlink()


def test_pictures_of_a_search_are_the_front_and_those_of_the_best(tmp_path, capsys):
    found = suggest("llama-2-7b", NODES, batch=256, sequence=4096, progress=False)
    code, front, problems = output_of(capsys, *RUN, "--svg")
    assert (code, problems) == (0, "")
    axes = found.plot()
    assert front.startswith("<?xml")
    assert all(f">{label}</text>" in front for label in (axes.get_xlabel(), axes.get_ylabel()))
    assert output_of(capsys, *RUN, "--svg", str(tmp_path)) == (0, "", "")
    assert (tmp_path / "front.svg").read_text(encoding="utf-8") == front
    assert (tmp_path / "memory.svg").read_text(encoding="utf-8") == found.best.plan.to_svg("memory")
    assert len(list(tmp_path.iterdir())) == 4


def test_a_picture_of_what_does_not_fit_is_written_with_a_warning(tmp_path, capsys):
    path = tmp_path / "memory.svg"
    code, out, err = output_of(capsys, *DEFAULTS, "--svg", str(path), "--picture", "memory")
    assert (code, out) == (1, "")
    assert err == "artifex_devices plan: it does not fit in memory; omit --svg to see what fits\n"
    assert "memory of a device" in path.read_text(encoding="utf-8")


# --- Models ---


def test_a_config_of_hugging_face_is_a_model(tmp_path, capsys):
    data = json.loads((ROOT / "tests" / "data" / "hf_configs.json").read_text(encoding="utf-8"))
    config = next(each["config"] for each in data["models"] if each["name"] == "meta-llama/Llama-2-7b-hf")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    expected = document_of(capsys, *FITS)
    for model in (str(tmp_path / "config.json"), str(tmp_path)):  # the file, or the folder that has it
        found = document_of(capsys, model, *FITS[1:])
        assert {**found, "model": expected["model"]} == expected
    (tmp_path / "config.json").write_text('{"model_type": "lama"}', encoding="utf-8")
    assert "model_type is 'lama'; expected one of llama, mistral" in refused(capsys, str(tmp_path), *FITS[1:])
    assert "cannot read" in refused(capsys, str(tmp_path / "none.json"), *FITS[1:])


def test_a_toml_file_is_a_model(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    fields = ("layers", "embed", "mlp", "heads", "kv_heads", "head_dim", "vocab")
    values = (32, 4096, 11008, 32, 32, 128, 32000)
    path.write_text("".join(f"{name} = {value}\n" for name, value in zip(fields, values, strict=True)))
    assert document_of(capsys, str(path), *FITS[1:])["model"] == "mine"


# --- Errors ---


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--tensor 3", "tensor 3 x context 1 x pipeline 1 = 3 does not divide 32 devices"),
        ("--tensor 64 --cluster 'dgx h100 nodes=8'", "tensor is 64, expected a divisor of the number of heads, 32"),
        ("--tensor 0", "--tensor/--tp: expected a whole number from 1 on, got '0'"),
        ("--tensor 1,x", "--tensor/--tp: expected a whole number from 1 on, got 'x'"),
        (
            "--recompute ful",
            "--recompute: 'ful' is not one of them (did you mean full?); expected one of none, selective",
        ),
        ("--schedule 1f2b", "--schedule: '1f2b' is not one of them (did you mean 1f1b?)"),
        ("--context-method rings", "'rings' is not one of them (did you mean ring?)"),
        ("--optimizer adamm", "'adamm' is not one of them (did you mean adam?)"),
        ("--dtype bfloat61", "'bfloat61' is not one of them (did you mean bfloat16?)"),
        ("--zero 4", "--zero: expected a stage of ZeRO, 0 to 3, got '4'"),
        ("--recompute-layers -1", "--recompute-layers"),
        ("--recompute full --recompute-layers x", "expected a whole number from 0 on, got 'x'"),
        ("--gradient-dtype spam", "gradient_dtype is 'spam'; expected a dtype of numbers"),
        ("--expert-imbalance 0.5", "expert_imbalance is 0.5"),
        ("--expert-imbalance much", "--expert-imbalance: expected a number, got 'much'"),
        ("--overlap dat=1", "overlap names 'dat' (did you mean data?)"),
        ("--overlap data=2", "overlap['data'] is 2"),
        ("--gradient-dtypes hed=int8", "gradient_dtypes names 'hed' (did you mean head?)"),
        ("--parameter-dtypes head", "--parameter-dtypes: expected each name once, = and a dtype, got 'head'"),
        ("--overlap data", "--overlap: expected each name once, = and a number, got 'data'"),
        ("--overlap data=1,data=1", "--overlap: expected each name once"),
        ("--factor matmull=0.5", "unknown factors 'matmull' (did you mean matmul?)"),
        ("--factor matmul=2", "matmul"),
        ("--factor matmul=x", "--factor: expected a number, got 'x'"),
        ("--efficiency fited", "'fited' is not one of them (did you mean fitted?)"),
        ("--tensor 1 --measured-step 0", "measured is 0.0; expected a finite number above 0"),
        ("--tensor 1 --measured-step nan", "measured is nan"),
        ("--batch 7 --tensor 1", "data x microbatch is 32, expected a divisor of the batch, 7"),
        ("--tensro 2", "unrecognized arguments: --tensro 2 (did you mean --tensor?)"),
        ("--tensor 1 --top 3", "--top needs a search; the options describe one configuration; add --search"),
        ("--zero 1 --max-tensor 3", "--max-tensor needs a search"),
        ("--zero 1 --device-counts 8", "--device-counts needs a search"),
        ("--search --data 4", "--data is for one configuration, and the options leave a choice; leave out --search"),
        (
            "--measured-step 1",
            "--measured-step is for one configuration, and the options leave a choice; describe it",
        ),
        ("--loss fuse", "'fuse' is not one of them (did you mean fused?)"),
        ("--device-counts 64", "device_counts is 64"),
        ("--top 1001", "top is 1001"),
        ("--picture memory", "--picture chooses the picture of one configuration; it needs --svg FILE"),
        ("--svg --picture memory", "--picture chooses the picture of one configuration"),
        ("--svg --picture memry", "'memry' is not one of them (did you mean memory?)"),
        ("--code megatorn", "'megatorn' is not one of them (did you mean megatron?)"),
        ("--code jax --json", "not allowed with argument"),
        ("--details --json", "not allowed with argument"),
        (
            "--tokens 15X",
            "--tokens: tokens is '15X'; expected a number above 0 with k, M, B or T; write 15e12 or '15T'",
        ),
        ("--price-per-device-hour 2.5", "--price-per-device-hour needs the tokens of the run; add --tokens 15T"),
        (
            "--zero 3 --tokens 15T --price-per-device-hour 0",
            "price_per_device_hour is 0.0; expected a finite number above",
        ),
        ("--svg --json", "not allowed with argument"),
        ("--svg /no/such/folder/a.svg", "'/no/such/folder/a.svg' cannot be written"),
        ("--svg /no/such/folder/", "--svg: '/no/such/folder/' cannot be created"),
        ("--measured", "--measured: --cluster is 'dgx h100 nodes=4'; expected here, as only this machine"),
        ("--spares 2", "--spares needs --failures; add it"),
        ("--failures", "--failures needs the seconds of a restart; add --restart-seconds 600"),
        ("--failures --restart-seconds 600", "neither of mtbf_hours and failure_rate given"),
        ("--failures --restart-seconds 600 --code jax", "--failures prints a table; it cannot be used with --code"),
    ],
)
def test_wrong_options_are_one_error(words, says, capsys):
    assert says in refused(capsys, *RUN, *shlex.split(words))


@pytest.mark.parametrize(("text", "tokens"), [("4k", "4096"), ("4K", "4096"), ("4,096", "4096"), ("1m", "1048576")])
def test_sequences_may_be_in_units_of_1024_tokens(text, tokens, capsys):
    code, out, _ = output_of(capsys, *RUN[:4], text, *RUN[5:])
    assert code in (0, 1)  # a sequence of 1m does not fit
    assert output_of(capsys, *RUN[:4], tokens, *RUN[5:]) == (code, out, "")


@pytest.mark.parametrize("text", ["k", "4kb", "4.5k", "-4k"])
def test_other_units_of_sequences_are_refused(text, capsys):
    says = f"expected a whole number from 1 on, got {text!r}"
    assert says in refused(capsys, *RUN[:3], f"--sequence={text}", *RUN[5:])


def test_wrong_models_and_clusters_are_one_error(capsys):
    assert "'lama-2-7b' is not a published model (did you mean llama-2-7b?)" in refused(capsys, "lama-2-7b", *RUN[1:])
    assert "write '1 x h100' or '8 x h100'" in refused(capsys, *RUN[:-1], "h100")


def test_a_cluster_without_rates_fails(capsys):
    code, out, err = output_of(capsys, *RUN[:-1], "here", "--zero", "3")  # whose rates are not measured
    assert (code, out) == (3, "")
    assert "is not known" in err
    assert "for this machine add --measured" in err


def test_the_readme_shows_lines_of_the_output(capsys):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command, shown = re.search(
        r"```sh\nartifex_devices plan (.*?)\n```\n\n```text\n(.*?)```", readme, re.DOTALL
    ).groups()
    lines = iter(output_of(capsys, *shlex.split(command))[1].splitlines())
    assert all(line in lines for line in shown.splitlines())  # in this order


def test_a_missing_cluster_is_asked_for(capsys):
    text = refused(capsys, *RUN[:-2])
    assert 'required: --cluster; write artifex_devices plan llama-3-70b --cluster "64 x h100" --batch' in text


@pytest.mark.parametrize("former", ["suggest", "train"])
def test_former_commands_name_the_new_spelling(former, capsys):
    text = refused(capsys, former, *FITS)
    assert f"{former} was removed; leave it out: artifex_devices plan llama-2-7b --batch" in text


def test_mistyped_commands_are_not_models(capsys):
    assert "'colective' is not a command (did you mean collective?)" in refused(capsys, "colective", "--json")


# --- The guide ---


def test_the_commands_of_the_guide_run(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    codes = []
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "artifex_devices"
        codes.append(main(words))
        captured = capsys.readouterr()
        assert captured.err == "", line
        assert captured.out or "--svg" in words, line
    assert codes == [0, 0, 1, *[0] * (len(lines) - 3)]  # the third one does not fit, as the guide says
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == [
        "memory.svg", "schedule.svg", "waterfall.svg",
    ]  # fmt: skip
