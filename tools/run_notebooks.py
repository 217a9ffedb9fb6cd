#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks or rewrites the outputs of the notebooks: examples/notebooks/*.ipynb.

    tools/run_notebooks.py             runs them, and prints how the committed outputs differ; exits with 1 then
    tools/run_notebooks.py --write     rewrites them
    tools/run_notebooks.py one.ipynb   that one only

Each notebook runs in a fresh process, cell after cell, with what Jupyter shows: text that is printed, and the value of
a last expression as text, HTML and SVG. Nothing of Jupyter is needed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from artifex_devices._base.charts import svg_text
from artifex_devices._base.svg import Picture

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"


def run_cell(source: str, name: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell, in the format of notebooks."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if source.rstrip().endswith(";") and last is not None:  # Jupyter hides this value
        tree.body.append(last)
        last = None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines_of(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines_of(plain_text(value))}
        for kind, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
            if hasattr(value, method):
                data = {kind: lines_of(getattr(value, method)()), **data}
        outputs.append({"data": data, "execution_count": 0, "metadata": {}, "output_type": "execute_result"})
    for svg in figures():
        # JupyterLab fits an image of HTML to a narrow window, but not a bare SVG.
        picture = Picture(" ".join(svg.split()))
        data = {"text/html": [picture._repr_html_()], "image/svg+xml": [str(picture)], "text/plain": ["<Figure>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def figures() -> list[str]:
    """The figures that matplotlib has open, which are closed then."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    found = [svg_text(pyplot.figure(number).axes[0]) for number in pyplot.get_fignums()]
    pyplot.close("all")
    return found


def plain_text(value: Any) -> str:
    """The text of a value, as IPython prints it."""
    if not hasattr(value, "_repr_pretty_"):
        return repr(value)
    parts: list[str] = []
    value._repr_pretty_(SimpleNamespace(text=parts.append), False)
    return "".join(parts)


def lines_of(text: str) -> list[str]:
    """Text in the format of notebooks: lines with their ends."""
    return text.splitlines(keepends=True)


def run_notebook(path: Path) -> str:
    """The text of a notebook with current outputs."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        count += 1
        cell["execution_count"] = count
        cell["outputs"] = run_cell("".join(cell["source"]), f"{path.name}, cell {number}", namespace)
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = count
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Runs each notebook in a separate process; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="rewrite the outputs")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args()
    if arguments.inside:
        sys.stdout.write(run_notebook(arguments.notebooks[0]))
        return 0
    code = 0
    for path in arguments.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        # A run must not depend on earlier notebooks. As in Jupyter, the current folder is the notebook's.
        command = [sys.executable, str(Path(__file__).resolve()), "--inside", str(path.resolve())]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.resolve().parent)
        if done.returncode != 0:
            print(f"{path}: {done.stderr}", file=sys.stderr)
            code = 1
            continue
        before = path.read_text(encoding="utf-8")
        if arguments.write:
            path.write_text(done.stdout, encoding="utf-8")
        elif before != done.stdout:
            changes = difflib.unified_diff(
                before.splitlines(), done.stdout.splitlines(), str(path), "as it runs", n=1, lineterm=""
            )
            print("\n".join(line[:200] for line in changes))
            print(f"{path}: its outputs are not what runs; tools/run_notebooks.py --write rewrites them")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
