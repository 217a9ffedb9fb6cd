# SPDX-License-Identifier: Apache-2.0
"""The import in a sub-interpreter is refused, and the main interpreter is not affected.

Python 3.13 itself refuses it in isolated interpreters, the default there, so these tests create legacy ones. A
free-threaded build refuses it in legacy ones too, with a text of its own.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from many_threads import IS_FREE_THREADED

PRELUDE = """
import warnings
warnings.simplefilter("ignore")
try:
    import _interpreters as interpreters  # Python 3.13
except ImportError:
    import _xxsubinterpreters as interpreters
import os, sys
read, write = os.pipe()

def try_there(name):
    program = f'''
import os, warnings
warnings.simplefilter("ignore")
try:
    import {name}
    text = "imported"
except ImportError as error:
    text = "ImportError: " + str(error)
os.write({write}, text.encode())
'''
    own = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create()
    interpreters.run_string(own, program)
    interpreters.destroy(own)
    return os.read(read, 1000).decode()
"""
TEXT = (
    "ImportError: artifex_devices: the import is in a sub-interpreter; expected the main interpreter, as a process has "
    'one set of devices and workers; import it there, or start a process by multiprocessing\'s "spawn"'
)
if IS_FREE_THREADED:
    TEXT = "ImportError: module artifex_devices._core does not support loading in subinterpreters"


def run(body: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + body], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", ["artifex_devices", "artifex_devices._core", "artifex_devices.lax"])
def test_a_first_import_in_a_sub_interpreter_is_refused_and_one_in_the_main_interpreter_works(name: str) -> None:
    body = f"""
print(try_there("{name}"))
print(try_there("{name}"))
import artifex_devices as ad, numpy as np
with ad.simulate(2):
    print(np.asarray(ad.Mesh(ad.devices(), (0,)).device_ids).tolist())
"""
    assert run(body) == [TEXT, TEXT, "[0, 1]"]


def test_an_import_in_a_sub_interpreter_after_one_in_the_main_interpreter_is_refused() -> None:
    body = """
import artifex_devices as ad
print(try_there("artifex_devices"))
print(len(ad.devices()) > 0)
"""
    assert run(body) == [TEXT, "True"]
