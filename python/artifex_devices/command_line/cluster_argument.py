# SPDX-License-Identifier: Apache-2.0
"""`--cluster`: a preset, a TOML file, an hwloc XML file, or this machine."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean, nearest
from artifex_devices.command_line.console import UsageError, complain, usage_errors

if TYPE_CHECKING:
    from artifex_devices._core import Cluster
    from artifex_devices.roofline.measured import MeasuredRoofline

CLUSTER_FORMS = """\
clusters:
  "tpu v5e 4x4", "tpu v5p 8x8x16 slices=2"          v4, v5e, v5p, v6e or 7x, and the chips along each axis
  "dgx h100 nodes=64", "nvl72 racks=2", "mi300x"    optional: network_bandwidth= (bytes/s of a GPU)
  "gpus h200 nodes=2 chips_per_node=4"              any GPU of the catalogue; all presets take host_memory= (bytes)
  lab.toml                                          cluster file (docs/how_to/describe_a_cluster.md)
  "node.xml nodes=16 bandwidth=4e11"                hwloc file of one node; optional: latency=, network_bandwidth=,
                                                    network_latency=
  here, or no --cluster                             this machine; optional: "here latency=1e-6", and --measured for
                                                    its measured FLOP/s and bytes/s
"""

_COUNT, _RATE = "a whole number", "a number"
# Words after the name, then options with the kind of their values.
_PRESETS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "tpu": (("generation", "shape"), {"slices": _COUNT, "host_memory": _RATE}),
    "dgx": (("gpu",), {"nodes": _COUNT, "network_bandwidth": _RATE, "host_memory": _RATE}),
    "gpus": (("gpu",), {"nodes": _COUNT, "chips_per_node": _COUNT, "network_bandwidth": _RATE, "host_memory": _RATE}),
    "nvl72": ((), {"racks": _COUNT, "network_bandwidth": _RATE, "host_memory": _RATE}),
    "mi300x": ((), {"nodes": _COUNT, "network_bandwidth": _RATE, "host_memory": _RATE}),
    "here": ((), {"latency": _RATE}),
}
_CHIPS = {"v4": 3, "v5e": 2, "v5p": 3, "v6e": 2, "7x": 3, "v100": 0, "a100": 0, "h100": 0, "h200": 0, "b200": 0}
"""Chips with the number of dimensions of their tori; 0 for GPUs, which `dgx` has."""
_XML_RATES = ("bandwidth", "latency", "network_bandwidth", "network_latency", "host_memory")
_XML = {"nodes": _COUNT, **dict.fromkeys(_XML_RATES, _RATE)}
_FORMS = {name: name for name in _PRESETS} | {
    "tpu": "tpu v5e 4x4", "dgx": "dgx h100 nodes=2", "gpus": "gpus h200 nodes=2",
}  # fmt: skip


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds --cluster and --measured."""
    cluster = "cluster such as 'tpu v5e 4x4', or a file; --help-all shows all forms (default: this machine)"
    parser.add_argument("--cluster", metavar="TEXT|FILE", default="here", help=cluster)
    rates = "stored by measure_roofline(), or measured now in a few seconds"
    measured_help = f"use this machine's measured FLOP/s (float32) and bytes/s, {rates}"
    parser.add_argument("--measured", action="store_true", help=measured_help)


def is_here(text: str) -> bool:
    """Returns whether a text means this machine."""
    return text.split(maxsplit=1)[:1] == ["here"]


def read_cluster(text: str, measured: bool = False) -> Cluster:
    """Reads the cluster of a --cluster argument; with --measured, prints the date of measurement to standard error."""
    from artifex_devices import cluster

    if measured and not is_here(text):
        expected = "here or nothing, as only this machine can be measured"
        raise UsageError(f"--measured: --cluster is {text!r}; expected {expected}; leave one out")
    if text and not text.isprintable():
        raise _no_cluster(text, "")
    with usage_errors(OSError, ValueError, option="--cluster: "):
        if text.endswith(".toml") or (not text.endswith(".xml") and _is_file(text)):
            return cluster.from_toml(text)
        words = _words(text)
        if words and words[0].endswith(".xml"):
            return cluster.from_xml(words[0], **_options(words[1:], (), _XML, words[0]))
        name = words[0].lower() if words else ""
        if name not in _PRESETS:
            raise _no_cluster(text, name)
        options = _options(words[1:], *_PRESETS[name], name)
        if name == "here":
            return cluster.this_machine(**options, measured=_measured() if measured else None)
        preset: Callable[..., Cluster] = getattr(cluster, name)
        return preset(**options)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quote that is not closed
        raise failure(
            UsageError,
            "--cluster",
            f"{text!r} cannot be split into words: {error}",
            expected="pairs of quotes",
            fix="close or remove it",
        ) from None


def _measured() -> MeasuredRoofline:
    from artifex_devices.roofline import measure_roofline

    found = measure_roofline()
    when = "read from the cache" if found.from_cache else "measured now"
    complain(f"artifex_devices plan: rates of this machine: {when}, {found.conditions.date}")
    return found


def _is_file(text: str) -> bool:
    with suppress(OSError, ValueError):  # too long, or with a null character
        return Path(text).is_file()
    return False


def _meant(text: str) -> str:
    """Suggests the preset that a text without one names by its chip and shape: " (did you mean 'tpu v5e 16x16'?)"."""
    named = " ".join(word for word in text.lower().split() if "=" not in word)
    words = re.findall(r"[a-z]+[0-9]+[a-z]*|[0-9]+(?:x[0-9]+)+|[0-9]+[a-z]?|[a-z]+", named)
    chip = next((word for word in words if word in _CHIPS), None)
    if chip is None:
        return ""
    if _CHIPS[chip] == 0:
        meant = ["gpus" if nearest(words[0], _PRESETS) == "gpus" else "dgx", chip]
    else:
        meant = ["tpu", chip, _meant_shape(words, chip)]
    known = _PRESETS[meant[0]][1]
    meant += [word for word in text.split() if word.partition("=")[0] in known and word.isprintable()]
    return f" (did you mean '{' '.join(meant)}'?)"


def _meant_shape(words: list[str], chip: str) -> str:
    """Returns the shape among the words, else a shape with their number of chips, else 4 chips along each axis."""
    dims = _CHIPS[chip]
    shape = next(
        (word for word in words if re.fullmatch(r"[0-9]+(x[0-9]+)*", word) and word.count("x") == dims - 1), ""
    )
    if shape:
        return shape
    count = next((int(word) for word in words if word.isdigit()), 4**dims)
    side = round(count ** (1 / dims))
    return "x".join(map(str, [side if side**dims == count else 4] * dims))


def _no_cluster(text: str, name: str) -> UsageError:
    return failure(
        UsageError,
        "--cluster",
        f"{text!r} is neither a preset nor a file{_meant(text) or did_you_mean(name, _PRESETS)}",
        expected=f"{', '.join(repr(form) for form in _FORMS.values())}, a .toml or an .xml file",
        fix="see the end of --help",
    )


def _options(words: list[str], positional: tuple[str, ...], known: dict[str, str], name: str) -> dict[str, Any]:
    """Returns values by the names of the preset's arguments."""
    plain = [word for word in words if "=" not in word]
    usage = " ".join([name, *map(str.upper, positional), *(f"[{key}=...]" for key in known)])
    if len(plain) != len(positional):
        raise failure(
            UsageError,
            "--cluster",
            (
                f"{name} has {len(plain)} word{'s' * (len(plain) != 1)} after it, {' '.join(plain)!r}"
                f"{_meant(' '.join(plain))}"
            ),
            expected=f"{usage!r}",
            fix=f"write {_FORMS.get(name, 'node.xml nodes=16')!r}",
        )
    found: dict[str, Any] = dict(zip(positional, plain, strict=True))
    if "shape" in found:
        found["shape"] = _shape(found["shape"])
    for word in (word for word in words if "=" in word):
        key, _, value = word.partition("=")
        if key not in known:
            hint = did_you_mean(key, known)
            raise UsageError(f"--cluster: {name} has no {key!r}{hint}; expected {usage!r}; correct it")
        if key in found:
            raise UsageError(f"--cluster: {key} is given more than once; expected it once; leave one out")
        found[key] = _number(key, value, known[key])
    return found


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text):
        raise UsageError(f"--cluster: {text!r} is not a shape of a slice; expected chips along each axis; write 4x4")
    return tuple(int(size) for size in text.split("x"))


def _number(key: str, text: str, kind: str) -> int | float:
    try:
        value = int(text) if kind == _COUNT else float(text)
        if not math.isfinite(value):
            raise ValueError
    except ValueError:
        example = "nodes=2" if kind == _COUNT else "network_bandwidth=5e10"
        raise UsageError(f"--cluster: {key} is {text!r}; expected {kind}; write it as in {example}") from None
    return value
