# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, of Python and of the bindings, print what they say; a process of their own runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

RUN_ALL = """
import doctest, importlib, inspect, json, pkgutil
import artifex_devices
from hypothesis import HealthCheck, settings

settings.register_profile("examples", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
settings.load_profile("examples")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
parser = doctest.DocTestParser()


seen = set()


def names_of(value):
    # The names of the module that defines a function or class, which may have a public path as __module__.
    parts = [value, *(vars(value).values() if isinstance(value, type) else ())]
    return next((part.__globals__ for part in parts if hasattr(part, "__globals__")), {})


def examples(prefix, holder):
    # doctest's own finder leaves out bound classes, and classes whose __module__ is the public path.
    for name, value in vars(holder).items():
        value = inspect.unwrap(getattr(value, "__func__", value))
        if not (inspect.isroutine(value) or isinstance(value, (property, type))):
            continue
        module = "artifex_devices" if isinstance(value, property) else getattr(value, "__module__", "artifex_devices")
        if not str(module).startswith("artifex_devices") or id(value) in seen:
            continue
        seen.add(id(value))
        test = parser.get_doctest(value.__doc__ or "", dict(names_of(value)), f"{prefix}.{name}", None, 0)
        if test.examples:
            yield test
        if isinstance(value, type):
            yield from examples(f"{prefix}.{name}", value)


names = [m.name for m in pkgutil.walk_packages(artifex_devices.__path__, "artifex_devices.")]
tests = []
for name in ["artifex_devices", *names]:
    if not name.endswith("__main__"):
        module = importlib.import_module(name)
        text = module.__doc__ or ""
        tests += [parser.get_doctest(text, dict(vars(module)), name, None, 0), *examples(name, module)]
tests = [test for test in tests if test.examples]
failures = {}
for test in tests:
    printed = []
    if doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=printed.append).failed:
        failures[test.name] = "".join(printed)
print(json.dumps({"run": len(tests), "failures": failures}))
"""


@pytest.mark.timeout(330)
def test_every_example_in_a_docstring_prints_what_it_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": "8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failures"] == {}, "\n".join(found["failures"].values())
    assert found["run"] > 100
