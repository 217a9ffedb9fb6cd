# SPDX-License-Identifier: Apache-2.0
"""A process that runs programs: one of JSON a line comes in, one answer a line goes out.

It may die or hang; who started it knows which program it was at.
"""

import faulthandler
import gc
import importlib
import json
import os
import sys
import threading
import traceback
import warnings
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from soak import checking, script

# Threads of mapped functions are kept for the next call.
KEPT = ("MainThread", "artifex-participant", "artifex-watchdog")


def namespace(library):
    """The names that programs use."""
    names = {}
    exec(script.PRELUDE[library], names)
    names["devices"] = names["L"].devices()
    for name in ("numbers", "check", "same", "Raises", "accounts", "together"):
        names[name] = getattr(checking, name)
    return names


def clean(library):
    """No Array, no byte, no thread more than before."""
    gc.collect()
    if library["L"].__name__ != script.OURS:
        return
    checking.accounts(library["L"], library["devices"], [])
    for thread in threading.enumerate():
        if thread.name not in KEPT:
            thread.join(30)
    left = [thread.name for thread in threading.enumerate() if thread.name not in KEPT]
    assert not left, f"threads left: {left}"


def run(program, library, names):
    """None, or what failed: the step's number and kind, the class and text of the error."""
    text = script.Text(library)
    script.write(program, text)
    scope = {**names, **text.expected}
    at = len(program) - 1
    code = "\n".join(text.lines)
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(compile(code, "<program>", "exec"), scope)
        scope.clear()
        clean(names)
    except BaseException as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<program>"]
        number, kind = text.steps[lines[0] - 1] if lines else (at, "end")
        line = text.lines[lines[0] - 1].strip() if lines else "after the program"
        return {
            "library": library,
            "step": number,
            "kind": kind,
            "class": type(error).__name__,
            "text": f"{line}\n{type(error).__name__}: {error}",
        }
    return None


def main():
    """Answers programs until the input ends."""
    words = sys.argv[1:]
    libraries = [script.OURS, *([script.JAX] if "--jax" in words else [])]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for word in words:
        if word.startswith("--inject="):
            importlib.import_module(word.partition("=")[2])
    names = {library: namespace(library) for library in libraries}
    gc.collect()
    gc.freeze()
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        faulthandler.dump_traceback_later(question["seconds"], exit=True)
        failure = None
        for library in libraries:
            failure = failure or run(question["program"], library, names[library])
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps({"failure": failure}), file=answers, flush=True)


if __name__ == "__main__":
    main()
