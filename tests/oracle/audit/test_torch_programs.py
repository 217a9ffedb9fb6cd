# SPDX-License-Identifier: Apache-2.0
"""DTensor programs of PyTorch in four processes: our counts of CommDebugMode and of FX graphs, against CommDebugMode.

PyTorch is not in the environment of the other oracles: `.venv-oracle/bin/python -m pip install torch` adds it.
"""

import collections
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from artifex_devices import audit

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
    pytest.mark.timeout(300),
]

SCRIPT = Path(__file__).resolve().parent / "torch_programs.py"
KINDS = {
    "all_gather_into_tensor": "all_gather",
    "all_reduce": "all_reduce",
    "all_to_all_single": "all_to_all",
    "reduce_scatter_tensor": "reduce_scatter",
}
# From the placements: what each program must send. PyTorch exchanges by a gather where the backend has no all-to-all.
EXPECTED = {
    "gathered": {"all_gather": 1},
    "summed": {"all_reduce": 1},
    "scattered": {"reduce_scatter": 1},
    "exchanged": {"all_gather": 1},
    "two axes": {"all_gather": 1, "reduce_scatter": 1},
    "perceptron": {"all_reduce": 2 + 2},  # after each layer forward, before each layer backward
    "data parallel": {"all_reduce": 1},
    "fully sharded": {"all_gather": 1, "reduce_scatter": 1},
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """What rank 0 printed, by the name of the program."""
    meeting = tmp_path_factory.mktemp("ranks") / "meeting"
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), "4", str(meeting)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]
    try:
        outputs = [rank.communicate(timeout=240) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * 4, outputs
    return json.loads(outputs[0][0].splitlines()[-1])


def counted(program):
    counts = collections.Counter()
    for each in program.collectives:
        counts[each.kind] += each.runs
    return dict(counts)


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_equal_comm_debug_mode(rows, name):
    counts = {KINDS[op.rpartition(".")[2]]: number for op, number in rows[name]["counts"].items()}
    assert counts == EXPECTED[name]
    assert rows[name]["object"] == counts
    assert counted(audit.program(rows[name]["counts"])) == counts
    for text in rows[name].get("graphs", []):
        program = audit.program(text)
        assert program.source == "FX graph"
        assert counted(program) == counts


def test_graphs_with_shapes_have_bytes(rows):
    """print_readable writes shapes: the bytes follow from them and the size of the group."""
    whole = 32 * 8 * 4
    (gather,) = audit.program(rows["gathered"]["graphs"][2]).collectives
    assert (gather.shapes, gather.dtypes, gather.bytes) == (((8, 8),), ("float32",), whole * 3 // 4)
    (scatter,) = audit.program(rows["scattered"]["graphs"][2]).collectives
    assert (scatter.shapes, scatter.bytes) == (((8, 8),), 8 * 8 * 4 * 3 // 4)
