# SPDX-License-Identifier: Apache-2.0
"""artifex_devices audit program, shardings and diff."""

import json

import pytest
from artifex_devices import audit
from artifex_devices.command_line import main

STEP = """HloModule step, is_scheduled=true, num_partitions=8

ENTRY %main (x: f32[16,4]) -> f32[64,4] {
  %x = f32[16,4]{1,0} parameter(0)
  ROOT %gather = f32[64,4]{1,0} all-gather(%x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}, \
use_global_device_ids=true, metadata={op_name="jit(step)/gather" source_file="/home/me/train.py" source_line=12}
}
"""
NAMED = {
    "w": {"mesh": {"axis_names": ["fsdp"], "shape": {"fsdp": 4}}, "partition_spec": ["fsdp"], "shape": [8]},
    "b": {"mesh": {"axis_names": ["fsdp"], "shape": {"fsdp": 4}}, "partition_spec": [], "shape": [4]},
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.hlo").write_text(STEP)
    (tmp_path / "named.json").write_text(json.dumps(NAMED))


def printed(capsys, line, code=0):
    assert main(["audit", *line.split()]) == code
    return capsys.readouterr().out


def test_a_program_is_listed_with_the_axes_of_the_mesh(capsys):
    text = printed(capsys, "program step.hlo --mesh data=4,model=2")
    row = next(line.split() for line in text.splitlines() if "train.py:12" in line)
    assert row[:5] == ["all_gather", "data", "float32", "1", "1"]
    found = json.loads(printed(capsys, "program step.hlo --mesh data=4,model=2 --json"))
    assert (found["mesh"], found["devices"]) == ({"data": 4, "model": 2}, 8)
    (gather,) = found["collectives"]
    assert (gather["axes"], gather["bytes"], gather["where"]) == (["data"], 3 * 16 * 4 * 4, "train.py:12")


def test_a_broken_rule_is_printed_and_the_exit_code_is_1(capsys):
    rules = "--max all_gather=0,all_to_all=0"
    lines = printed(capsys, f"program step.hlo --mesh data=4,model=2 {rules}", code=1).splitlines()
    assert lines[-2:] == [
        "step has 1 all_gather, expected at most 0",
        "  all_gather at train.py:12 over data, 768 bytes, 1 run",
    ]
    assert len(json.loads(printed(capsys, f"program step.hlo {rules} --json", code=1))["broken"]) == 1
    printed(capsys, "program step.hlo --max all_gather=1 --max all_to_all=0 --runs")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("program step.hlo --max gather=2", "--max gather=2: 'gather' is not a kind of collectives"),
        ("program none.hlo", "none.hlo"),
        ("program step.hlo --mesh data=3", "3 devices"),
        ("shardings step.hlo", "is not JSON"),
        ("shardings named.json --at-least", "expected one argument"),
        ("shardings named.json --at-least much", "expected bytes such as"),
        ("shardings named.json --mesh data", "expected axes and sizes such as data=4,model=2, got 'data'"),
        ("shardings named.json --mesh data=0", "'data' is 0"),
        ("diff named.json step.hlo", "one is shardings, the other a program"),
        ("diff named.json none.json", "No such file or directory"),
    ],
)
def test_invalid_arguments(capsys, line, text):
    try:
        code = main(["audit", *line.split()])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert text in capsys.readouterr().err


def test_shardings_are_listed(capsys):
    assert printed(capsys, "shardings named.json").splitlines() == [
        "2 leaves, bytes unknown",
        "mesh fsdp 4",
        "  replicas  shape  spec       leaf",
        "  1         (8)    P('fsdp')  w",
        "  4         (4)    P()        b",
    ]
    found = json.loads(printed(capsys, "shardings named.json --at-least 4 --json"))
    sizes = {"device_bytes": None, "total_bytes": None}
    assert found["leaves"] == [
        {"path": "b", "shape": [4], "spec": [], "mesh": 0, **sizes, "replicas": 4},
        {"path": "w", "shape": [8], "spec": ["fsdp"], "mesh": 0, **sizes, "replicas": 1},
    ]
    assert [(note["kind"], note["path"]) for note in found["notes"]] == [("replicated", "b")]


def test_a_difference_is_printed_and_the_exit_code_is_1(capsys, tmp_path):
    now = {**NAMED, "w": {**NAMED["w"], "partition_spec": [None]}}
    (tmp_path / "now.json").write_text(json.dumps(now))
    assert printed(capsys, "diff named.json now.json", code=1) == "~ w: P('fsdp') -> P(None)\n"
    found = json.loads(printed(capsys, "diff named.json now.json --json", code=1))
    assert found["changes"] == [{"kind": "changed", "name": "w", "bytes": None, "text": "P('fsdp') -> P(None)"}]
    assert printed(capsys, "diff named.json named.json") == "no difference\n"


def test_a_golden_file_and_a_program_are_compared(capsys, tmp_path):
    audit.save(audit.program(STEP, {"data": 4, "model": 2}), "golden.json")
    assert printed(capsys, "diff golden.json step.hlo --mesh data=4,model=2") == "no difference\n"
    (tmp_path / "step.hlo").write_text(STEP.replace("[16,4]", "[32,4]").replace("[64,4]", "[128,4]"))
    assert printed(capsys, "diff golden.json step.hlo --mesh data=4,model=2", code=1) == (
        "~ all_gather over data: 1 of float32, 768 bytes, 1 time -> 1 of float32, 1.5 KiB, 1 time at train.py:12\n"
    )
