# SPDX-License-Identifier: Apache-2.0
"""Signatures of bound functions in the documentation, and how the defaults of public functions are printed."""

import builtins
import collections.abc
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))

from bound_signatures import signature_of
from type_names import ALIASES, definition_of, linked

AXES = "~collections.abc.Hashable | ~collections.abc.Sequence[~collections.abc.Hashable]"


@pytest.mark.parametrize(
    ("path", "arguments", "result"),
    [
        ("Layout.__init__", "(minor_to_major: ~collections.abc.Sequence[int])", "None"),
        (
            "PartitionSpec.__init__",
            f"(*args: {AXES})",
            "None",
        ),
        ("Sharding.shard_shape", "(global_shape: ~collections.abc.Sequence[int])", "tuple[int, ...]"),
        ("Client.local_devices", "(process_index: int | None=None)", "list[~artifex_devices.Device]"),
    ],
)
def test_signatures_of_bound_functions_come_from_the_stub(path, arguments, result):
    assert signature_of(path) == (arguments, result)


def test_a_function_that_the_stub_does_not_have_is_an_error():
    with pytest.raises(KeyError, match="missing"):
        signature_of("Mesh.missing")


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        ("Tree", "~Tree"),
        ("TargetTree | None", "~TargetTree | None"),
        ("NDArray[Any] | Any", "~numpy.typing.NDArray"),
        ("numpy.typing.DTypeLike", "~numpy.typing.DTypeLike"),
        ("dict[str, Array]", "dict[str, ~artifex_devices.Array]"),
        ("Callable[..., Any]", "~collections.abc.Callable"),
        ("Callable[[np.ndarray[Any, Any]], bool]", "~collections.abc.Callable[[~numpy.ndarray], bool]"),
        ("Literal['jax', 'exact']", "Literal['jax', 'exact']"),
        ("'Mesh'", "~artifex_devices.sharding.Mesh"),
        ("Unknown", "Unknown"),
    ],
)
def test_annotations_have_names_that_sphinx_links(annotation, shown):
    assert linked(annotation, {"np": np, "Callable": collections.abc.Callable, **vars(builtins)}) == shown


def test_every_alias_of_the_reference_is_one_of_the_source():
    assert definition_of("AxisNames") == AXES
    for name in ALIASES:
        assert definition_of(name), name


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
