# SPDX-License-Identifier: Apache-2.0
"""runner.py MODULE FUNCTION SECONDS WORD...: runs one function of a test module; shows all stacks when time is over."""

import faulthandler
import importlib.util
import signal
import sys
from pathlib import Path

path, name, seconds, *words = sys.argv[1:]
faulthandler.dump_traceback_later(float(seconds), exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs in the background
sys.path[:0] = [str(Path(path).parent), str(Path(path).parents[1])]
from pytest_when_used import PytestWhenUsed  # noqa: E402

sys.modules["pytest"] = PytestWhenUsed("pytest")
spec = importlib.util.spec_from_file_location(Path(path).stem, path)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
getattr(module, name)(*words)
