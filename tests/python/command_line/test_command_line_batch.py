# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices batch`: recommend, validate, measure, and how each ends."""

import json
import os
import subprocess
import sys

import pytest
from artifex_devices.command_line import main

TRAIN = """
import numpy as np
import neighbour

print("loaded")

def make_batch(size):
    return np.ones((size, 64), np.float32)

def step(batch):
    print("stepping")
    return batch @ neighbour.weights

def broken(batch):
    return batch.spam

def refuses(batch):
    raise ValueError("no size suits me")

def leaves(batch):
    raise SystemExit

class Odd(BaseException):
    pass

def odd(batch):
    raise Odd("one of a kind")

class Model:
    @staticmethod
    def step(batch):
        return batch * 2

weights = 3
"""
QUICK = ("--max", "4", "--max-seconds", "20", "--quiet")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "neighbour.py").write_text("import numpy as np\nweights = np.ones((64, 8), np.float32)\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "wrong.py").write_text("import no_such_module_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("train", "neighbour", "script", "wrong"):
            del sys.modules[name]
    from artifex_devices.command_line import user_function

    user_function._run_file.cache_clear()


def test_recommend_says_the_table_and_its_source(capsys):
    assert main(["batch", "recommend", "--hardware", "h100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Batch sizes for h100 (built-in table)"
    assert [line.split()[:2] for line in lines[1:4]] == [["minimum", "64"], ["critical", "298"], ["optimal", "320"]]


@pytest.mark.parametrize("name", ["H200", "h200", "NVIDIA H200", "NVIDIA H200 SXM"])
def test_chips_of_the_catalogue_that_the_table_does_not_have(name, capsys):
    assert main(["batch", "recommend", "--hardware", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["hardware"], found["critical_batch_size"], found["min_batch_size"]) == ("NVIDIA H200 SXM", 206, 52)
    assert found["source"] == "derived from published FLOP/s and memory bandwidth"
    assert found["notes"].startswith("Derived for 16-bit weights, not from the built-in table and not measured")
    assert found["roofline"] is None
    assert main(["batch", "recommend", "--hardware", name]) == 0
    assert "4.8e+12 bytes/s" in " ".join(capsys.readouterr().out.split())
    assert main(["batch", "validate", "51", "--hardware", name]) == 1
    assert "51 is below minimum 52 for NVIDIA H200 SXM" in capsys.readouterr().out
    assert main(["batch", "validate", "206", "--hardware", name]) == 0
    assert "206 is acceptable for NVIDIA H200 SXM" in capsys.readouterr().out


def test_types_are_taken_in_any_case_and_chips_that_the_table_has_are_its_rows(capsys):
    for name in ("H100", "h100", "NVIDIA H100 80GB HBM3"):
        assert main(["batch", "recommend", "--hardware", name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["hardware"], found["critical_batch_size"]) == ("h100", 298)
        assert found["source"] == "built-in table"


@pytest.mark.parametrize("name", ["spam", "", " ", "h\udcff", "\n"])
def test_unknown_hardware_is_reported_with_the_known_names(name, capsys):
    assert main(["batch", "validate", "3", "--hardware", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"artifex_devices batch: --hardware: {name!r} is not known; expected one of tpu_v5e")
    assert "NVIDIA H200 SXM" in captured.err


def test_recommend_for_this_hardware(capsys):
    assert main(["batch", "recommend", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["hardware"], found["optimal_batch_size"], found["max_memory_batch_size"]) == ("cpu", 32, None)


@pytest.mark.parametrize(
    ("each", "free", "most"), [("4MB", "80GB", 20_000), ("4MiB", "8 gib", 2048), ("1.5kb", "3000", 2), ("7", "80", 11)]
)
def test_memory_takes_units(each, free, most, capsys):
    words = ["--hardware", "h100", "--bytes-per-example", each, "--free-bytes", free, "--json"]
    assert main(["batch", "recommend", *words]) == 0
    assert json.loads(capsys.readouterr().out)["max_memory_batch_size"] == most


def test_state_is_taken_off(capsys):
    words = ["--hardware", "h100", "--bytes-per-example", "4MB", "--free-bytes", "80GB", "--state-bytes", "8GB"]
    assert main(["batch", "recommend", *words]) == 0
    assert "memory          18,000  fits, by the bytes that you gave" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["320", "--hardware", "h100"], 0, "optimal"),
        (["300", "--hardware", "h100"], 0, "acceptable"),
        (["100", "--hardware", "h100"], 0, "below critical"),
        (["100", "--hardware", "h100", "--strict"], 1, "below critical"),
        (["8", "--hardware", "h100"], 1, "below minimum"),
        (["1,024", "--hardware", "cpu"], 0, "optimal"),
        (
            ["320", "--hardware", "h100", "--bytes-per-example", "1GB", "--free-bytes", "80GB"],
            1,
            "At most 80 examples fit",
        ),
    ],
)
def test_validate(words, code, text, capsys):
    assert main(["batch", "validate", *words]) == code
    assert text in capsys.readouterr().out
    assert main(["batch", "validate", *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["is_good"] == (code == 0)
    assert text in found["message"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "arguments are required: <what>"),
        (
            ["recommend", "--bytes-per-example", "4 apples"],
            "expected bytes such as 4000000, 4MB or 4MiB, got '4 apples'",
        ),
        (["validate", "0"], "expected a whole number from 1 on, got '0'"),
        (["validate", "1.5"], "expected a whole number from 1 on, got '1.5'"),
        (["measure"], "required: STEP"),
    ],
)
def test_words_that_are_not_understood(words, text, capsys):
    with pytest.raises(SystemExit) as end:
        main(["batch", *words])
    assert end.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["recommend", "--free-bytes", "8GB"], "only with --bytes-per-example"),
        (["recommend", "--hardware", "h100", "--bytes-per-example", "4MB"], "write --free-bytes 80GB"),
        (["recommend", "--bytes-per-example", "0"], "bytes_per_example"),
        (["validate", str(2**63)], "2**63"),
        (["measure", "train"], "'train' names no function; write module:function"),
        (["measure", "train.py:"], "names no function"),
        (["measure", "nowhere.py:step"], "there is no file 'nowhere.py'"),
        (
            ["measure", "train.py:spam"],
            "has no 'spam'; it has Model, Odd, broken, leaves, make_batch, odd, refuses, step",
        ),
        (["measure", "train.py:weights"], "is of type int and cannot be called"),
        (["measure", "train:step"], "there is no module 'train' where Python looks"),
        (["measure", "..:step"], "is not a module's name"),
        (["measure", "script.py:step"], "ended the program while it was imported"),
        (["measure", "train.py:step", "json:dumps_", *QUICK], "'json' has no 'dumps_'"),
        (["measure", "train.py:step", "--target", "1.5"], "target is 1.5; expected more than 0 and less than 1"),
        (["measure", "train.py:step", "--min", "9", "--max", "4"], "the range of batch sizes is empty"),
    ],
)
def test_what_cannot_be_done_says_why(folder, words, text, capsys):
    sys.path[:] = [each for each in sys.path if each not in ("", str(folder))]
    assert main(["batch", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1].startswith("artifex_devices batch: ")
    assert text in captured.err


def test_measure_a_function_of_a_file(folder, capsys):
    assert main(["batch", "measure", "train.py:step", "--json", *QUICK]) in (0, 1)
    captured = capsys.readouterr()
    found = json.loads(captured.out)  # what the file prints is on standard error
    assert captured.err.startswith("loaded\nstepping\n")
    assert [probe["batch_size"] for probe in found["evidence"]][:3] == [1, 2, 4]
    assert found["measured_on"]["function"] == "train.step"


def test_measure_shows_the_table_and_its_probes(folder, capsys):
    code = main(["batch", "measure", "train.py:Model.step", "train.py:make_batch", "--max", "2", "--min", "2"])
    captured = capsys.readouterr()
    assert code == 1  # one size: the confidence is low
    assert captured.out.startswith("Recommended batch size 2 ")
    assert "measure_batch_size: batch 2: " in captured.err


@pytest.mark.parametrize("name", ["broken", "refuses", "leaves", "odd"])
def test_a_function_that_fails(folder, name, capsys):
    assert main(["batch", "measure", f"train.py:{name}", *QUICK]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    texts = {"broken": "has no attribute 'spam'", "refuses": "1: ValueError: no size suits me"}
    assert {**texts, "leaves": "raise SystemExit", "odd": "Odd: one of a kind"}[name] in captured.err
    assert ("Traceback" in captured.err) == (name != "refuses")


def test_a_file_that_misses_a_module(folder, capsys):
    assert main(["batch", "measure", "wrong.py:step"]) == 3
    assert "No module named 'no_such_module_at_all'" in capsys.readouterr().err


def test_the_current_folder_is_searched_only_as_python_does(folder):
    script = "import sys; from artifex_devices.command_line import main; sys.exit(main(sys.argv[1:]))"
    paths = os.pathsep.join(path for path in sys.path if path and path != str(folder))
    words = ["batch", "measure", "train:step", *QUICK]
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert done.returncode == 2
    allowed = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([paths, str(folder)])},
        check=False,
    )
    assert allowed.returncode in (0, 1), allowed.stderr
    assert allowed.stdout.startswith("Recommended batch size")


def test_recommend_adds_what_follows_from_published_numbers(capsys):
    assert main(["batch", "recommend", "--hardware", "h100"]) == 0
    assert (
        "By the roofline of the NVIDIA H100 SXM the critical batch is 295\n(model: 989 TFLOP/s bfloat16 over"
        in capsys.readouterr().out
    )
    assert main(["batch", "recommend", "--hardware", "v100", "--json"]) == 0
    derived = json.loads(capsys.readouterr().out)["roofline"]
    assert (derived["dtype"], derived["critical_batch_size"]) == ("float16", 139)
    assert derived["sources"]
    assert main(["batch", "recommend", "--hardware", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["roofline"] is None


def test_a_module_that_the_users_module_misses_is_an_error_of_that_one(tmp_path, monkeypatch):
    from artifex_devices.command_line import user_function

    (tmp_path / "has_a_mistake.py").write_text("import a_module_that_is_missing")
    (tmp_path / "a_package").mkdir()
    (tmp_path / "a_package" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
        user_function._import_module("has_a_mistake")
    for name, missing in (
        ("no_such_module", "no_such_module"),
        ("no_such.sub", "no_such"),
        ("a_package.b", "a_package.b"),
    ):
        with pytest.raises(user_function.UsageError, match=f"there is no module '{missing}' where Python looks"):
            user_function._import_module(name)
    for name in ("", ".relative"):
        with pytest.raises(user_function.UsageError, match="is not a module's name"):
            user_function._import_module(name)
