# SPDX-License-Identifier: Apache-2.0
"""Texts of the command line: a letter that names an option, and the text of that option."""

from __future__ import annotations

import argparse
import re
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from artifex_devices.command_line.console import UsageError, bytes_of, count_of
from artifex_devices.command_line.plan.mesh_argument import read_array, read_sizes, read_spec
from artifex_devices.command_line.plan.network import _perm, _traffic
from artifex_devices.command_line.plan.step import read_rules
from artifex_devices.sharding import AbstractMesh, P
from oracle import check_pickle, check_refusal, require, text_of

MODULES = (
    "artifex_devices.command_line.plan.mesh_argument",
    "artifex_devices.command_line.console",
    "artifex_devices.command_line.plan.network",
    "artifex_devices.command_line.plan.step",
)
_AXES = ("x", "y", "data", "model")


def _mesh(text: str) -> None:
    sizes = read_sizes("--mesh", text)
    require(all(name.isidentifier() and size >= 1 for name, size in sizes.items()), repr(sizes))
    require(read_sizes("--mesh", ",".join(f"{name}={size}" for name, size in sizes.items())) == sizes, repr(sizes))
    try:
        mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes))
    except ValueError as error:  # more devices than 63 bits count
        check_refusal(error, ValueError)
        return
    require(dict(mesh.shape) == sizes and list(mesh.axis_names) == list(sizes), repr(mesh))
    check_pickle(mesh)


def _spec(text: str) -> None:
    spec = read_spec("FROM", text, _AXES)
    written = repr(spec).replace("PartitionSpec", "P", 1)
    require(read_spec("FROM", written, _AXES) == spec, f"{written} is read as another one")
    require(eval(written, {"P": P}) == spec, f"{written} makes another one")
    named = {name for part in spec for name in ((part,) if isinstance(part, str) else part or ())}
    require(named <= set(_AXES), f"{spec} names other axes than the mesh has")
    check_pickle(spec)


def _array(text: str) -> None:
    shape, dtype = read_array(text)
    require(read_array(f"{dtype}[{','.join(map(str, shape))}]") == (shape, dtype), repr((shape, dtype)))


def _rules(text: str) -> None:
    rules = read_rules(text)
    written = ",".join(f"{logical}={'+'.join(axes)}" for logical, axes in rules.items())
    require(read_rules(written) == rules, f"{written!r} is read as other rules")


def _count(text: str) -> None:
    require(count_of(str(count_of(text))) == count_of(text), text)


def _bytes(text: str) -> None:
    require(bytes_of(str(bytes_of(text))) == bytes_of(text), text)


def _permutation(text: str) -> None:
    pairs = _perm(Namespace(op="permute", perm=text))
    require(bool(pairs) and all(min(pair) >= 0 for pair in pairs or ()), repr(pairs))


def _moved(text: str) -> None:
    traffic = _traffic(text, dict.fromkeys(_AXES, 2))
    require(set(traffic) <= set(_AXES) and all(0 <= each < float("inf") for each in traffic.values()), repr(traffic))


_OPTIONS: dict[str, Callable[[str], Any]] = {
    "m": _mesh,
    "s": _spec,
    "a": _array,
    "r": _rules,
    "c": _count,
    "b": _bytes,
    "p": _permutation,
    "t": _moved,
}


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    text = text_of(data)
    option = _OPTIONS.get(text[:1])
    if option is None:
        return False
    try:
        option(text[1:])
    except UsageError as error:
        return check_refusal(error, UsageError)
    except argparse.ArgumentTypeError as error:  # argparse says which option
        require(re.match("expected ", str(error)) is not None and str(error).isprintable(), str(error))
        return False
    return True
