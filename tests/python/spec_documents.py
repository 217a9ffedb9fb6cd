# SPDX-License-Identifier: Apache-2.0
"""The Python examples of the documents that the library implements, read from the documents."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SPEC = Path(__file__).resolve().parents[3] / "shared" / "spec"
DOCUMENTS = {number: next(iter(sorted(SPEC.glob(f"{number}_*"))), None) for number in ("000", "001", "002")}

needs_documents = pytest.mark.skipif(
    None in DOCUMENTS.values(), reason="the documents are not beside the checkout (../shared/spec)"
)

# The documents' imports and ours; nothing else of an example is changed.
IMPORTS = {
    "from artifex.generative_models.training.distributed import": "from artifex_devices import",
    "from artifex.generative_models.core.device_manager import": "from artifex_devices.device_manager import",
    "from jax.sharding import": "from artifex_devices.sharding import",
    "import jax.numpy as jnp": "import numpy as jnp",
    "import jax\n": "import artifex_devices as jax\n",
}


def blocks_of(number: str) -> list[tuple[str, str]]:
    """(heading, code) of each Python block, in order."""
    path = DOCUMENTS[number]
    assert path is not None
    heading = ""
    found = []
    for part in re.split(r"(?ms)(^#+ .*?$|^```python\n.*?^```$)", path.read_text(encoding="utf-8")):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        elif part.startswith("```python"):
            found.append((heading, part.removeprefix("```python\n").removesuffix("```")))
    return found


def example(number: str, heading: str) -> tuple[str, dict[str, Any]]:
    """The code of an example under our imports, and a namespace with the imports of the examples before it."""
    namespace: dict[str, Any] = {}
    for title, code in blocks_of(number):
        for theirs, ours in IMPORTS.items():
            code = code.replace(theirs, ours)
        if title == heading:
            return code, namespace
        if "import" in code:
            lines = [node for node in ast.parse(code).body if isinstance(node, (ast.Import, ast.ImportFrom))]
            exec(compile(ast.Module(lines, []), title, "exec"), namespace)
    raise AssertionError(f"no example {heading!r} in document {number}")


def run(number: str, heading: str) -> dict[str, Any]:
    code, namespace = example(number, heading)
    exec(compile(code, heading, "exec"), namespace)
    return namespace


def run_all(number: str, namespace: dict[str, Any]) -> tuple[dict[Any, str], dict[Any, Exception]]:
    """Runs all examples one after the other: what each printed, and what each raised, by (heading, number there)."""
    printed: dict[Any, str] = {}
    raised: dict[Any, Exception] = {}
    seen: dict[str, int] = {}
    for heading, code in blocks_of(number):
        block = (heading, seen.get(heading, 0))
        seen[heading] = block[1] + 1
        for theirs, ours in IMPORTS.items():
            code = code.replace(theirs, ours)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                exec(compile(code, str(block), "exec"), namespace)
            except Exception as error:
                raised[block] = error
        printed[block] = output.getvalue()
    return printed, raised


def stand_ins_of_001(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples of 001 use without being ours: jnp before its import, flax, a model, a training loop."""
    flax = types.ModuleType("flax")
    flax.nnx = types.SimpleNamespace(jit=lambda function: function)  # type: ignore[attr-defined]
    base = types.ModuleType("artifex.generative_models.core.base")
    base.MLP = lambda **settings: settings  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flax", flax)
    for name in ("artifex", "artifex.generative_models", "artifex.generative_models.core"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    return {
        "jnp": np,
        "training_successful": True,
        "rngs": None,
        "model": lambda x: x + 1,
        "training_data": [1, 2],
        "train_step": lambda model, batch: batch,
    }
