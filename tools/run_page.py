#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python blocks of a page, in order in one namespace, and compares their output with the page.

    tools/run_page.py [PAGE]       README.md by default

A `text` block right after a Python block is its output. A block whose first line is `# needs torch` runs where this
package is installed.

Prints the number of blocks that ran and those that did not, or the first difference and exits with 1. It needs only the
standard library, so that it tests an installed package in an empty environment.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import io
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

PYTHON_BLOCK = re.compile(r"(?ms)^```python\n(?P<code>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?")
NEEDS_PACKAGE = re.compile(r"# needs (\w+)\n")


class Run(NamedTuple):
    """What the blocks of a page did.

    Attributes:
        blocks: Number of blocks that ran.
        missing: Packages that are not installed, one for each block that did not run.
        difference: First difference between an output and the page, or nothing.
    """

    blocks: int
    missing: list[str]
    difference: str


def run_page(page: Path) -> Run:
    """Runs the blocks of a page until one prints something else than the page shows."""
    text = page.read_text(encoding="utf-8")
    found = list(PYTHON_BLOCK.finditer(text))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    missing = []
    for number, block in enumerate(found, 1):
        package = NEEDS_PACKAGE.match(block["code"])
        if package and importlib.util.find_spec(package[1]) is None:
            missing.append(package[1])
            continue
        first_line = text.count("\n", 0, block.start("code"))
        code = compile("\n" * first_line + block["code"], str(page), "exec")  # errors name the line of the page
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        count += 1
        expected, got = block["output"], printed.getvalue()
        if expected is not None and got != expected:
            lines = (expected.splitlines(keepends=True), got.splitlines(keepends=True))
            return Run(count, missing, "".join(difflib.unified_diff(*lines, page.name, f"output of block {number}")))
    return Run(count, missing, "")


def main() -> int:
    """Runs one page."""
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "README.md"
    blocks, missing, difference = run_page(page)
    if difference:
        print(difference, end="")
        return 1
    if not blocks:
        print(f"run_page: {page} has no Python blocks that can run here; expected at least one")
        return 1
    print(f"{page.name}: {blocks} Python {'block' if blocks == 1 else 'blocks'} ran")
    for package in missing:
        print(f"{page.name}: a block did not run: {package} is not installed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
