# SPDX-License-Identifier: Apache-2.0
"""Signatures of bound functions in the documentation, and how the defaults of public functions are printed."""

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import artifex_devices as ad
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))

from bound_signatures import signature_of


@pytest.mark.parametrize(
    ("path", "arguments", "result"),
    [
        ("Layout.__init__", "(minor_to_major: collections.abc.Sequence[int])", "None"),
        ("PartitionSpec.__init__", "(*args)", "None"),
        ("Sharding.shard_shape", "(global_shape: collections.abc.Sequence[int])", "tuple[int, ...]"),
        ("Client.local_devices", "(process_index: int | None=None)", "list[Device]"),
    ],
)
def test_signatures_of_bound_functions_come_from_the_stub(path, arguments, result):
    assert signature_of(path) == (arguments, result)


def test_a_function_that_the_stub_does_not_have_is_an_error():
    with pytest.raises(KeyError, match="missing"):
        signature_of("Mesh.missing")


def test_defaults_are_printed_as_names():
    assert str(inspect.signature(ad.shard_map).parameters["out_specs"]) == "out_specs: 'SpecTree' = UNSPECIFIED"
    seen = 0
    for found in pkgutil.iter_modules(ad.__path__, "artifex_devices."):
        if found.name.endswith(".libartifex_devices"):  # a shared library
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value) and value.__module__.startswith("artifex_devices"):
                text = str(inspect.signature(value))
                assert " at 0x" not in text, (module, name)
                assert "<class" not in text, (module, name)
                seen += 1
    assert seen > 150
