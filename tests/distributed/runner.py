# SPDX-License-Identifier: Apache-2.0
"""One process of a job of tests: runs the body that conftest.py has noted, and notes what becomes of it."""

import faulthandler
import importlib.util
import os
import pickle
import sys
import traceback
import warnings
from pathlib import Path

folder = Path(sys.argv[1])
call = pickle.loads((folder / "call").read_bytes())
number = next((os.environ[key] for key in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK") if key in os.environ), "0")


def dump_stacks():
    """On a hang: where every thread stands, and the end."""
    file = open(folder / f"stack.{number}", "w")  # noqa: SIM115 - open until the end
    faulthandler.dump_traceback_later(call["timeout"], exit=True, file=file)
    return file


def note(state, value, trace=""):
    whole = folder / f"outcome.{number}"
    part = whole.with_suffix(f".{number}.part")
    part.write_bytes(pickle.dumps((state, value, trace)))
    part.rename(whole)


stacks = dump_stacks()
warnings.filterwarnings("ignore", message=".*processes share the CPUs")  # few cores; more processes than those
try:
    found = importlib.util.find_spec("artifex_devices")
    if found is None or found.origin != call["package"]:
        raise ImportError(
            f"artifex_devices is {found and found.origin} in this process; expected that of the tests, "
            f"{call['package']}; take it off PYTHONPATH, or install one only"
        )
    path = Path(call["path"])
    sys.path[:0] = [str(path.parent), str(path.parents[1])]
    from pytest_when_used import PytestWhenUsed

    sys.modules["pytest"] = PytestWhenUsed("pytest")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if call["initialize"]:
        from artifex_devices import distributed

        distributed.initialize()
    note("returned", getattr(module, call["body"])(*call["arguments"]))
except BaseException as error:
    note("raised", (type(error).__name__, str(error)), traceback.format_exc())
    raise
