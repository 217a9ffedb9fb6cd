#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs data-apis/array-api-tests, the conformance suite of the Array API, on Arrays and on NumPy.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    pip install hypothesis ndindex pytest pytest-json-report
    tools/array_api_suite.py array-api-tests                        one device, 8 devices evenly, 8 devices unevenly
    tools/array_api_suite.py array-api-tests --placements one       one device only
    tools/array_api_suite.py array-api-tests -- -k fft --max-examples 200

Every test that NumPy passes must pass here, except those in KNOWN below; exits with 1 otherwise. Tests that NumPy fails
are left out. Arguments after `--` are passed to pytest.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

PLACEMENTS = ("one", "even", "uneven")
# Tests that NumPy passes, with the reason why they cannot pass here.
KNOWN = {
    "array_api_tests/test_array_object.py::test_setitem": "Arrays do not change",
    "array_api_tests/test_array_object.py::test_setitem_masking": "Arrays do not change",
    "array_api_tests/test_creation_functions.py::test_asarray_arrays": "Arrays do not change: it writes to a copy",
}
KNOWN_ON_SEVERAL_DEVICES = {
    f"array_api_tests/{test}": "DLPack shows the memory of one device"
    for test in (
        "test_dlpack.py::test_dlpack_device",
        "test_dlpack.py::test_dunder_dlpack",
        "test_signatures.py::test_array_method_signature[__dlpack__]",
        "test_signatures.py::test_array_method_signature[__dlpack_device__]",
    )
}
_CREATE = ("arange", "asarray", "empty", "eye", "from_dlpack", "full", "linspace", "ones", "zeros")
_OUTCOMES = "ARTIFEX_SUITE_OUTCOMES"  # the file that the plugin writes


def namespace(placement: str) -> Any:
    """The Array API of Arrays whose creation functions shard the new Arrays over 8 devices.

    Args:
        placement: "even" shards the dimensions that 2, 4 or 8 divide; "uneven" shards dimension 0 over all devices,
            with short and empty shards; "one" is the namespace itself.
    """
    import artifex_devices as ad
    import numpy as np

    real: Any = ad.array_api
    if placement == "one":
        return real
    devices = np.array(ad.devices("cpu"))
    assert devices.size == 8, devices.size
    cube = ad.Mesh(devices.reshape(2, 2, 2), ("a", "b", "c"))
    line = ad.Mesh(devices, ("a",))

    def sharding(shape: tuple[int, ...]) -> Any:
        if placement == "uneven":
            return ad.NamedSharding(line, ad.P(*["a"][: len(shape)]), uneven="last-short")
        free = ["a", "b", "c"]
        entries = []
        for size in shape:
            names = []
            while free and size and size % 2 == 0:
                names.append(free.pop(0))
                size //= 2
            entries.append(tuple(names) or None)
        return ad.NamedSharding(cube, ad.P(*entries))

    def spreading(name: str) -> Any:
        function = getattr(real, name)

        @functools.wraps(function)
        def create(*args: Any, **kwargs: Any) -> Any:
            x = function(*args, **kwargs)
            placed = kwargs.get("device") is not None or any(isinstance(each, ad.Array) for each in args)
            return x if placed else ad.device_put(x, sharding(x.shape))

        return create

    wrapped: Any = ModuleType(f"array_api_{placement}")
    wrapped.__getattr__ = lambda name: getattr(real, name)
    for name in ("__array_api_version__", "__array_namespace_info__"):
        setattr(wrapped, name, getattr(real, name))
    for name in _CREATE:
        setattr(wrapped, name, spreading(name))
    return wrapped


def pytest_runtest_logreport(report: Any) -> None:
    """A hook of pytest, for which this file is a plugin: writes the outcome of each test."""
    if report.when != "call" and report.outcome == "passed":
        return
    with open(os.environ[_OUTCOMES], "a", encoding="utf-8") as file:
        file.write(json.dumps([report.nodeid, report.outcome]) + "\n")


def run(suite: Path, placement: str, arguments: list[str]) -> dict[str, str]:
    """The outcome of each test: passed, failed or skipped."""
    here = Path(__file__).resolve()
    module = "numpy"
    if placement != "numpy":
        module = f"exec('from {here.stem} import namespace; xp = namespace(\"{placement}\")')"
    with tempfile.NamedTemporaryFile() as outcomes:
        environment = {
            **os.environ,
            _OUTCOMES: outcomes.name,
            "ARRAY_API_TESTS_MODULE": module,
            "ARRAY_API_TESTS_VERSION": "2024.12",
            "JAX_NUM_CPU_DEVICES": "1" if placement == "one" else "8",
            "PYTHONPATH": os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        }
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", here.stem]
        command += ["-p", "no:cacheprovider", "--hypothesis-derandomize", "--hypothesis-disable-deadline"]
        log = Path(tempfile.gettempdir()) / f"array_api_{placement}.log"
        with open(log, "w", encoding="utf-8") as file:
            subprocess.run([*command, *arguments], cwd=suite, env=environment, stdout=file, stderr=subprocess.STDOUT)
        lines = Path(outcomes.name).read_text(encoding="utf-8").splitlines()
    if not lines:
        sys.exit(f"array_api_suite: pytest ran no test on {placement}; its output is in {log}")
    print(f"{placement:8}{text_of(found := dict(json.loads(line) for line in lines))}  ({log})", flush=True)
    return found


def text_of(found: dict[str, str]) -> str:
    """The number of tests for each outcome."""
    return ", ".join(f"{count:5} {outcome}" for outcome, count in sorted(Counter(found.values()).items()))


def main() -> int:
    """Runs the suite with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path, help="a checkout of data-apis/array-api-tests with its submodule")
    parser.add_argument("--placements", nargs="+", choices=PLACEMENTS, default=PLACEMENTS)
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = parser.parse_args(sys.argv[1:end])
    arguments = sys.argv[end + 1 :] or ["--max-examples", "50"]
    if not (given.suite / "array-api" / "spec").is_dir():
        parser.error(f"{given.suite} has no folder array-api/spec: git submodule update --init")
    expected = run(given.suite, "numpy", arguments)
    # Hypothesis shrinks each failure, which can take minutes.
    arguments += [f"--deselect={test}" for test, outcome in expected.items() if outcome == "failed"]
    wrong = 0
    for placement in given.placements:
        known = KNOWN if placement == "one" else {**KNOWN, **KNOWN_ON_SEVERAL_DEVICES}
        found = run(given.suite, placement, arguments)
        for test, outcome in found.items():
            if expected.get(test) != "passed" or outcome == "passed" or test in known:
                continue
            wrong += 1
            print(f"  {test}: passes in NumPy, here {outcome}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
