#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks of a page, in order in one namespace, and compares their output with the page.

    tools/run_readme.py [PAGE]       README.md by default

A `text` block right after a Python block is its output. Prints the number of blocks, or the first difference and exits
with 1. It needs only the standard library, so that it tests an installed package in an empty environment.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import sys
from pathlib import Path
from typing import Any

PYTHON_BLOCK = re.compile(r"(?ms)^```python\n(?P<code>.*?)^```\n(?:\n*^```text\n(?P<output>.*?)^```$)?")


def run_page(page: Path) -> tuple[int, str]:
    """Runs the blocks of a page; returns their number and the first difference, or nothing."""
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for number, block in enumerate(PYTHON_BLOCK.finditer(text), 1):
        first_line = text.count("\n", 0, block.start("code"))
        code = compile("\n" * first_line + block["code"], str(page), "exec")  # errors name the line of the page
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        expected, got = block["output"], printed.getvalue()
        if expected is not None and got != expected:
            lines = (expected.splitlines(keepends=True), got.splitlines(keepends=True))
            return number, "".join(difflib.unified_diff(*lines, page.name, f"output of block {number}"))
    return number, ""


def main() -> int:
    """Runs one page."""
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "README.md"
    blocks, difference = run_page(page)
    if difference:
        print(difference, end="")
        return 1
    if not blocks:
        print(f"run_readme: {page} has no Python blocks; expected at least one")
        return 1
    print(f"{page.name}: {blocks} Python {'block' if blocks == 1 else 'blocks'} ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
