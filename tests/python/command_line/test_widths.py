# SPDX-License-Identifier: Apache-2.0
"""What the commands write fits the terminal: lines that are wider are one word, such as a path, or an example."""

import pytest
from artifex_devices.command_line import COMMANDS, main

SLICE = ("--cluster", "tpu v5e 4x4", "--mesh", "row=4,column=4")
PLANS = [
    ("mesh", *SLICE),
    ("reshard", "float32[4096,4096]", "row,_", "_,row", *SLICE),
    ("collective", "all_gather", "1GB", "row", *SLICE),
    ("step", "llama-2-7b", "--batch", "64", "--sequence", "4096", *SLICE, "--rules", "batch=row,mlp=column"),
]
RUN = ("llama-2-7b", "--batch", "64", "--sequence", "2048", "--cluster", "tpu v5e 4x4")
TRAINING = [
    (*RUN, "--zero", "3"),
    (*RUN, "--tensor", "1"),  # does not fit
    RUN,
    (*RUN, "--zero", "3", "--failures", "--mtbf-hours", "3", "--save-seconds", "30", "--restart-seconds", "600"),
    ("llama-3.1-405b", *RUN[1:]),  # nothing fits
]
WORDS = [
    ("info",),
    ("topology",),
    ("doctor", "--no-measure"),
    ("batch", "recommend"),
    *(("plan", *plan) for plan in (*PLANS, *TRAINING, ("models",), ("clusters",))),
]


def too_wide(text, width):
    """Lines that are wider although they could be broken; the first word is the name of a row."""
    wide = [line for line in text.splitlines() if len(line) > width]
    return [line for line in wide if len(line.split()) > 1 and len(line.split()[-1]) < width // 2]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_lines_fit_the_terminal(words, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(words) in (0, 1)
    assert too_wide(capsys.readouterr().out, width) == []


PARTS = (*(plan[0] for plan in PLANS), "MODEL", "models", "clusters")
HELPED = [(name,) for name in COMMANDS] + [("plan", part) for part in PARTS]


@pytest.mark.parametrize("words", [(), *HELPED], ids=" ".join)
def test_help_fits_the_terminal(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    lines = capsys.readouterr().out.splitlines()
    wide = [line for line in lines if len(line) > 80 and "artifex_devices" not in line and len(line.split()) > 1]
    assert [line for line in wide if "import json" not in line] == []
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize("words", [(), *HELPED], ids=" ".join)
def test_help_fits_a_screen_and_help_all_has_every_option(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    texts = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as end:
            main([*words, option])
        assert end.value.code == 0
        texts[option] = capsys.readouterr().out
    short, complete = texts["--help"], texts["--help-all"]
    assert short.count("\n") <= 40
    assert short == complete or f"{' '.join(('artifex_devices', *words))} --help-all" in short
    for line in complete.splitlines():
        name = line.split()[0] if line.startswith("  --") else ""
        title = line.removesuffix(":") if line.endswith(":") and line[:1].isalpha() else ""
        assert name in short or "  step  " in short, line
        assert title in short or title in ("models", "clusters", "exit codes"), line


def test_the_short_help_of_a_training_plan_names_groups_of_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["plan", "MODEL", "--help"])
    text = capsys.readouterr().out
    assert "usage: artifex_devices plan MODEL --cluster TEXT --batch N --sequence N [options]\n" in text
    assert "  search                --search, --top, --max-tensor, --device-counts, ...\n" in text
    assert "--zero-shards" not in text
    with pytest.raises(SystemExit):
        main(["plan", "MODEL", "--help-all"])
    text = capsys.readouterr().out
    assert "--zero-shards N" in text
    assert "\nclusters:\n" in text


def test_a_second_column_goes_on_below_itself_or_below_an_example(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["batch", "--help"])
    text = capsys.readouterr().out
    assert "from a built-in table or published\n           numbers, limited by memory\n" in text
    assert '--hardware "NVIDIA H200"\n      for a chip that only the catalogue has\n' in text
    assert "exit codes: 0 success; 1 the size is not good" in text
    assert "\n            low (measure); 2 usage error, or the function was not found" in text
