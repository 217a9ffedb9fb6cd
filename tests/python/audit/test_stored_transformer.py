# SPDX-License-Identifier: Apache-2.0
"""The stored texts beside the notebook find_a_sharding_mistake are of the program that is stored there."""

from pathlib import Path

import pytest
from artifex_devices import audit

FOLDER = Path(__file__).parents[3] / "examples" / "notebooks" / "transformer"
LINES = (FOLDER / "transformer.py").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", ["step", "repaired"])
def test_collectives_are_at_lines_of_the_program(name):
    program = audit.program(FOLDER / f"{name}.hlo.txt.gz", mesh={"data": 4, "model": 2})
    assert {each.file for each in program.collectives} == {"transformer.py"}
    sums = [each for each in program.collectives if each.op_name.startswith("jit(step)/jvp(jit(log_softmax))")]
    assert sums
    assert all("log_softmax" in LINES[each.line - 1] for each in sums)
