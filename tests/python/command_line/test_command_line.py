# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command prints, and how it ends."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import artifex_devices as ad
import pytest
from artifex_devices.command_line import COMMANDS, main, make_parser, topology


def run(
    *words: str, environment: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, on 8 devices; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "artifex_devices", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        stdin=stdin,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(environment or {})},
        check=False,
    )


# --- Help, version, wrong words ---


def test_version_and_cmake_dir_stay_what_builds_read() -> None:
    version = run("--version")
    assert (version.returncode, version.stdout, version.stderr) == (0, f"{ad.__version__}\n", "")
    folder = run("--cmake-dir")
    assert (folder.returncode, folder.stdout) == (0, f"{resources.files('artifex_devices') / 'cmake'}\n")


def test_help_names_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help-all"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert re.findall(r"(?m)^    ([\w-]+)(?: |$)", text) == list(COMMANDS)
    assert re.findall(r"(?m)^  (\d+) ", text) == ["0", "1", "2", "3", "130", "141"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_teaches_by_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    examples = text.partition("examples:\n")[2].partition("exit codes:")[0]
    assert f"artifex_devices {command}" in examples
    assert "exit codes: 0 " in text


def test_without_a_command_the_help_is_on_stderr() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: artifex_devices ")


@pytest.mark.parametrize("words", [["spam"], ["info", "--spam"], ["--spam"]], ids=" ".join)
def test_what_is_not_understood_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "spam" in captured.err


def test_the_package_does_not_import_the_command_line() -> None:
    script = "import sys, artifex_devices; print([n for n in sys.modules if 'command_line' in n or n == 'argparse'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- info ---

INFO = """\
Backend: cpu
Device Type: cpu
Device Count: 8
GPU Count: 0
Memory Strategy: balanced
Memory Fraction: 0.75
Default Device: cpu:0
"""


def test_info_prints_the_documented_text_and_the_devices_of_topology() -> None:
    done = run("info")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(INFO)
    assert run("topology").stdout.count(done.stdout.removeprefix(INFO)) == 1
    assert (
        json.loads(run("info", "--json").stdout)["devices"] == json.loads(run("topology", "--json").stdout)["devices"]
    )


def test_info_without_utf8_has_no_sign_in_its_title() -> None:
    done = run("info", environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(INFO.replace("🔍 ", ""))


# --- Ends ---


def test_a_reader_that_has_gone_is_not_an_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "artifex_devices", "info"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_cannot_be_written_is_reported() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "artifex_devices", "info"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "artifex_devices info: [Errno 28] No space left on device\n"


def test_closed_output_is_reported() -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -m artifex_devices info >&-"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr == "artifex_devices info: standard output is closed\n"


def test_ctrl_c_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("artifex_devices.device_manager.manager.fact_lines", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_mistake_of_the_package_is_not_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr("artifex_devices.device_manager.manager.fact_lines", broken)
    monkeypatch.setattr("artifex_devices.command_line._close_stdout", lambda: None)
    assert main(["info"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("KeyError: 'a mistake'\n")


def test_complaints_never_go_to_standard_output() -> None:
    command = f"exec '{sys.executable}' -m artifex_devices topology --machine spam:2 2>&-"
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


# --- topology ---

TREE = """\
Machine: 4 CPU domains, 16 PUs, 4.0 GiB (pack:2 numa:2 core:2 pu:2)
├─ Package 0
│  ├─ Group 0
│  │  ├─ memory node 0: 1.0 GiB, CPUs 0-3
│  │  └─ 2 x (Core with 2 PUs): CPUs 0-3
│  └─ Group 1
│     ├─ memory node 1: 1.0 GiB, CPUs 4-7
│     └─ 2 x (Core with 2 PUs): CPUs 4-7
└─ Package 1
   ├─ Group 2
   │  ├─ memory node 2: 1.0 GiB, CPUs 8-11
   │  └─ 2 x (Core with 2 PUs): CPUs 8-11
   └─ Group 3
      ├─ memory node 3: 1.0 GiB, CPUs 12-15
      └─ 2 x (Core with 2 PUs): CPUs 12-15

4 devices:
cpu:0: CPUs 0-3, memory node 0, 1.0 GiB
cpu:1: CPUs 4-7, memory node 1, 1.0 GiB
cpu:2: CPUs 8-11, memory node 2, 1.0 GiB
cpu:3: CPUs 12-15, memory node 3, 1.0 GiB
"""


def test_topology_of_a_machine_that_one_describes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "--machine", "pack:2 numa:2 core:2 pu:2"]) == 0
    assert capsys.readouterr().out == TREE


def test_topology_shows_each_part_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "--machine", "numa:1 l2:2(size=1048576) core:1 pu:1", "--every"]) == 0
    assert capsys.readouterr().out.splitlines()[1:8] == [
        "├─ memory node 0: 1.0 GiB, CPUs 0-1",
        "├─ L2 1.0 MiB",
        "│  └─ Core 0",
        "│     └─ PU 0",
        "└─ L2 1.0 MiB",
        "   └─ Core 1",
        "      └─ PU 1",
    ]


def test_topology_of_this_machine_lists_its_devices() -> None:
    done = run("topology")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Machine: ")
    assert "\n8 devices:\ncpu:0" in done.stdout
    assert f"keep {ad.Machine.live().usable_cpus} CPU" in done.stdout


def test_topology_without_utf8_is_ascii() -> None:
    done = run("topology", "--machine", "numa:1 pack:2 pu:2", environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:3] == [
        "|- memory node 0: 1.0 GiB, CPUs 0-3",
        "`- 2 x (Package with 2 PUs): CPUs 0-3",
    ]
    assert done.stdout.isascii()


def test_topology_as_json_is_what_the_machine_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "--machine", "numa:2 pu:2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    machine = ad.Machine.from_synthetic("numa:2 pu:2")
    assert document["format"] == "artifex_devices/topology/1"
    assert document["source"] == "numa:2 pu:2"
    assert document["counts"] == machine.counts
    assert document["objects"] == machine.objects
    assert [device["cpus"] for device in document["devices"]] == ["0-1", "2-3"]
    assert document["missing_facts"] == []


def test_topology_writes_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "machine.svg"
    assert main(["topology", "--machine", "numa:2 pu:2", "--svg", str(path)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["topology", "--machine", "numa:2 pu:2", "--svg"]) == 0
    drawn = ad.render.machine_svg(ad.Machine.from_synthetic("numa:2 pu:2"))
    assert capsys.readouterr().out == path.read_text() == drawn
    root = ElementTree.fromstring(path.read_text())
    assert [tile.text for tile in root.iter("{http://www.w3.org/2000/svg}text")][2:5] == [
        "Group 0",
        "memory 0: 1.0 GiB",
        "0",
    ]


def test_recorded_machines_have_a_tree_and_a_picture(
    shared_topologies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted(shared_topologies.glob("*.xml")):
        machine = ad.Machine.from_xml(str(path))
        assert main(["topology", "--machine", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert sum(line.lstrip("│├└─ ").startswith("memory node ") for line in lines) == machine.counts["numanodes"]
        assert main(["topology", "--machine", str(path), "--every"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert sum(re.match(r"[│├└─ ]*PU \d+", line) is not None for line in lines) == machine.counts["pus"]
        assert main(["topology", "--machine", str(path), "--svg"]) == 0
        ElementTree.fromstring(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--machine", "spam:2"], "from_synthetic: "),
        (["--machine", "not_there.xml"], 'there is no file "not_there.xml"'),
        (["--machine", "node\udcff.xml"], "'node\\udcff.xml' is not text in UTF-8"),
        (["--machine", "pu:2", "--svg", "/nowhere/x.svg"], "'/nowhere/x.svg' cannot be written (No such file"),
    ],
)
def test_what_cannot_be_read_or_written_is_a_usage_error(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topology", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("artifex_devices topology: ")
    assert text in captured.err


def test_svg_and_json_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["topology", "--svg", "--json"])
    assert end.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "memory node 1 HBM: 1.0 GiB, CPUs 0-3"),
        ({"cpus": ""}, "memory node 1 HBM: 1.0 GiB, no CPUs"),
        ({"bytes": 0, "subtype": ""}, "memory node 1: 0 bytes, CPUs 0-3"),
        ({"logical": -1}, "memory node HBM: 1.0 GiB, CPUs 0-3"),
        ({"logical": 0}, "memory node 0 HBM: 1.0 GiB, CPUs 0-3"),
    ],
)
def test_a_memory_node_may_have_no_cpus_and_no_memory(changes, text):
    row = {"type": "NUMANode", "bytes": 1 << 30, "model": "", "logical": 1, "subtype": "HBM", "cpus": "0-3", **changes}
    assert topology._words(SimpleNamespace(row=row), with_numbers=True) == text


def options(parser):
    """The options of a parser and of its commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options(each)
        else:
            yield action


def test_helps_name_the_defaults():
    found = [
        (each.option_strings, match[1], f"{each.default:g}" if isinstance(each.default, float) else str(each.default))
        for each in options(make_parser())
        if (match := re.search(r"\(default: (\S+)\)", each.help or "")) and each.default is not None
    ]
    assert len(found) > 9
    assert [text for _, text, _ in found] == [default for _, _, default in found], found
