# SPDX-License-Identifier: Apache-2.0
"""Bad command lines: exit status, nothing on standard output, one line on standard error that names the command."""

import pytest
from artifex_devices.command_line import main

POD = ["--cluster", "tpu v5e 2x2"]

# The words, and what the line must hold.
LINES = [
    (["spam"], "spam"),
    (["--spam"], "--spam"),
    (["info", "more"], "more"),
    (["doctor", "--json", "--schema"], "--schema"),
    (["topology", "--machine", "/no/such.xml"], "/no/such.xml"),
    (["topology", "--machine", "spam"], "spam"),
    (["topology", "--machine", ""], "machine"),
    (["topology", "--machine", "core:-1 pu:1"], "core:-1"),
    (["topology", "--json", "--svg"], "--svg"),
    (["topology", "--svg", "/no/such/folder/a.svg"], "/no/such/folder"),
    (["calibrate", "--rounds", "0"], "0"),
    (["calibrate", "--rounds", "x"], "x"),
    (["calibrate", "--rounds", "99999999999999999999"], "99999999999999999999"),
    (["plan", "spam"], "--cluster"),
    (["plan", "mesh", *POD], "--mesh"),
    (["plan", "mesh", *POD, "--mesh", "a=3"], "3"),
    (["plan", "mesh", *POD, "--mesh", "a=x"], "x"),
    (["plan", "mesh", *POD, "--mesh", "a=-4"], "-4"),
    (["plan", "mesh", *POD, "--mesh", "a=2,a=2"], "a"),
    (["plan", "mesh", *POD, "--mesh", ""], "mesh"),
    (["plan", "mesh", "--cluster", "spam 4", "--mesh", "a=4"], "spam"),
    (["plan", "mesh", "--cluster", "tpu v5e 2x0", "--mesh", "a=4"], "2x0"),
    (["plan", "mesh", "--cluster", "tpu v99 2x2", "--mesh", "a=4"], "v99"),
    (["plan", "mesh", "--cluster", "dgx h100 nodes=x", "--mesh", "a=4"], "nodes"),
    (["plan", "mesh", "--cluster", "/no/such.toml", "--mesh", "a=4"], "/no/such.toml"),
    (["plan", "reshard", "spam", "x", "y", *POD, "--mesh", "x=2,y=2"], "spam"),
    (["plan", "reshard", "float32[8,8]", "z", "_", *POD, "--mesh", "x=2,y=2"], "z"),
    (["plan", "reshard", "float32[7,8]", "x,_", "_,x", *POD, "--mesh", "x=2,y=2"], "7"),
    (["plan", "reshard", "float32[-8,8]", "x,_", "_,x", *POD, "--mesh", "x=2,y=2"], "-8"),
    (["plan", "reshard", "spam[8,8]", "x,_", "_,x", *POD, "--mesh", "x=2,y=2"], "spam"),
    (["plan", "collective", "spam", "1GB", "x", *POD], "spam"),
    (["plan", "collective", "all_reduce", "much", "x", *POD], "much"),
    (["plan", "collective", "all_reduce", "-1", "x", *POD], "-1"),
    (["plan", "collective", "all_reduce", "1GB", "z", *POD], "z"),
    (["plan", "step", "spam", *POD], "--mesh"),
    (["plan", "spam", "--batch", "8", "--sequence", "8", *POD], "spam"),
    (["plan", "llama-2-7b", "--batch", "8", *POD], "--sequence"),
    (["plan", "llama-2-7b", "--batch", "0", "--sequence", "8", *POD], "0"),
    (["plan", "llama-2-7b", "--batch", "x", "--sequence", "8", *POD], "x"),
    (["plan", "suggest", "llama-2-7b"], "plan llama-2-7b"),
    (["plan", "train"], "plan llama-3-70b"),
    (["plan", "llama-2-7b", "--batch", "8", "--sequence", "8"], "--cluster"),
    (["plan", "llama-2-7b", "--batch", "8", "--sequence", "8", "--zero", "x", *POD], "x"),
    (["plan", "llama-2-7b", "--batch", "8", "--sequence", "8", "--tensor", "5", *POD], "tensor 5"),
    (["batch", "spam"], "spam"),
    (["batch", "recommend", "spam"], "spam"),
    (["batch", "measure", "no.such:function"], "'no'"),
    (["batch", "measure", "os:spam"], "spam"),
    (["batch", "measure", "spam"], "spam"),
]


def end_of(words):
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(("words", "message"), LINES, ids=[" ".join(words) for words, _ in LINES])
def test_a_bad_command_line_is_one_line_of_error(words, message, capsys):
    assert end_of(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("artifex_devices")
    assert message in lines[0], lines[0]
    assert "Traceback" not in captured.err
    assert end_of(["info"]) == 0
    assert capsys.readouterr().err == ""
