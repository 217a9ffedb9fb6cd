# SPDX-License-Identifier: Apache-2.0
"""Runs a fuzz target of this folder.

python run.py TARGET [libFuzzer's options and folders]: under atheris, for coverage.
python run.py --replay TARGET FOLDER: its files, whole, cut off and with single bits changed, without atheris.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TARGETS = tuple(sorted(each.stem for each in Path(__file__).parent.glob("*.py") if each.stem not in ("oracle", "run")))
_PACKAGES = Path(__file__).resolve().parents[3] / "python"
_CUTS, _CHANGES = 4, 12
_SECONDS = 60  # for one input on a busy machine


def replay(target: str, folder: Path) -> tuple[int, int]:
    """How many files there are, and how many of them are accepted."""
    one_input = importlib.import_module(target).one_input
    paths = sorted(each for each in folder.iterdir() if each.is_file())
    accepted = 0
    for path in paths:
        whole = path.read_bytes()
        inputs = [whole, *(whole[: len(whole) * i // _CUTS] for i in range(_CUTS))]
        for i in range(_CHANGES if whole else 0):
            changed = bytearray(whole)
            changed[min(len(whole) * i // _CHANGES, len(whole) - 1)] ^= 1 << i % 8
            inputs.append(bytes(changed))
        for place, data in enumerate(inputs):
            signal.alarm(_SECONDS)
            try:
                found = one_input(data)
            except BaseException:
                print(f"{path}, variant {place}: {data!r}", file=sys.stderr, flush=True)
                raise
            signal.alarm(0)
            accepted += place == 0 and found
    return len(paths), accepted


class Sources:
    """Finds the package's Python files by themselves: atheris leaves those alone that an editable install loads."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> object:
        if name.partition(".")[0] != "artifex_devices" or name == "artifex_devices._core":
            return None
        return importlib.machinery.PathFinder.find_spec(name, path or [str(_PACKAGES)])


def fuzz(target: str, options: list[str]) -> None:
    """Ends the process."""
    import atheris

    sys.meta_path.insert(0, Sources)
    modules = _modules(target)
    packages = {name.partition(".")[0] for name in modules}
    for name in [each for each in sys.modules if each.partition(".")[0] in packages]:
        del sys.modules[name]  # what was imported already would stay without its counters
    with atheris.instrument_imports(include=modules, enable_loader_override=False):
        for name in modules:  # functions import some of them at their first call
            importlib.import_module(name)
        module = importlib.import_module(target)

    def one_input(data: bytes) -> None:
        module.one_input(data)

    again = shlex.join([sys.executable, os.path.abspath(__file__), target])  # what -merge runs in a shell
    atheris.Setup([again, *options], one_input)
    atheris.Fuzz()


def _modules(target: str) -> list[str]:
    """The target's `MODULES`, read without importing them."""
    import ast

    tree = ast.parse((Path(__file__).parent / f"{target}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MODULES":
            return list(ast.literal_eval(node.value))
    raise SystemExit(f"run.py: {target} has no MODULES")


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments[:1] == ["--replay"] and len(arguments) == 3 and arguments[1] in TARGETS:
        start = time.monotonic()
        files, accepted = replay(arguments[1], Path(arguments[2]))
        print(f"{arguments[1]}: {files} files, {accepted} accepted, {time.monotonic() - start:.1f} s")
        return 0 if files else 1
    if arguments[:1] and arguments[0] in TARGETS:
        fuzz(arguments[0], arguments[1:])
        return 0
    print(f"{__doc__}\ntargets: {', '.join(TARGETS)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
