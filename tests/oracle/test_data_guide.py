# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/how_to/torch_and_grain.md run with torch and Grain."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "torch_and_grain.md"


def test_the_blocks_of_the_guide_run_in_order():
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("grain", reason="grain is not installed")
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    # In a process of its own: torch's workers are forks, and JAX of other tests has threads in this one.
    program = "\n".join([*blocks, "assert used == 10 * 32 + 64"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
