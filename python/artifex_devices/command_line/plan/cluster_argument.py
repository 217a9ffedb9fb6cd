# SPDX-License-Identifier: Apache-2.0
"""`--cluster`: a text such as "64 x h100", a TOML file, an hwloc XML file, or this machine."""

from __future__ import annotations

import argparse
import math
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line.console import UsageError, complain, usage_errors

if TYPE_CHECKING:
    from artifex_devices._core import Cluster
    from artifex_devices.roofline.measured import MeasuredRoofline

CLUSTER_FORMS = """\
clusters:
  "64 x h100", "8x8 h100", "8 x dgx h100"           GPUs of the catalogue, nodes and GPUs of each, or nodes
  "gb200 nvl72", "4 x nvl72", "mi300x nodes=2"      racks, or nodes; any of these takes network_bandwidth= (bytes/s of
                                                    a GPU), chips_per_node= and host_memory= (bytes)
  "v5e-256", "tpu v5p 8x8x16", "2 x v5e 16x16"      v4, v5e, v5p, v6e or 7x, and their chips or the chips along each
                                                    axis; the number in v4-512 and v5p-512 counts TensorCores
  lab.toml                                          cluster file (docs/how_to/describe_a_cluster.md)
  "node.xml nodes=16 bandwidth=4e11"                hwloc file of one node; optional: latency=, network_bandwidth=,
                                                    network_latency=
  here                                              this machine; optional: "here latency=1e-6", and --measured for
                                                    its measured FLOP/s and bytes/s
"""

_COUNT, _RATE = "a whole number", "a number"
_XML_RATES = ("bandwidth", "latency", "network_bandwidth", "network_latency", "host_memory")
_XML = {"nodes": _COUNT, **dict.fromkeys(_XML_RATES, _RATE)}


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Adds --cluster and --measured."""
    cluster = "cluster such as '64 x h100' or 'v5e-256', a file, or here for this machine; --help-all shows all forms"
    parser.add_argument("--cluster", metavar="TEXT", required=True, help=cluster)
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
        expected = "here, as only this machine can be measured"
        raise UsageError(f"--measured: --cluster is {text!r}; expected {expected}; write --cluster here")
    with usage_errors(OSError, ValueError, option="--cluster: "):
        if text.isprintable():
            if text.endswith(".toml") or (not text.endswith(".xml") and _is_file(text)):
                return cluster.from_toml(text)
            first, *words = _words(text) or [""]
            if first.endswith(".xml"):
                return cluster.from_xml(first, **_options(words, _XML, first))
            if first == "here":
                options = _options(words, {"latency": _RATE}, first)
                return cluster.this_machine(**options, measured=_measured() if measured else None)
        return cluster.from_text(text)


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


def _options(words: list[str], known: dict[str, str], name: str) -> dict[str, Any]:
    """Returns values by the names of the arguments."""
    usage = " ".join([name, *(f"[{key}=...]" for key in known)])
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--cluster: {name} has the word {word!r} after it; expected {usage!r}; leave it out")
        if key not in known:
            hint = did_you_mean(key, known)
            raise UsageError(f"--cluster: {name} has no {key!r}{hint}; expected {usage!r}; correct it")
        if key in found:
            raise UsageError(f"--cluster: {key} is given more than once; expected it once; leave one out")
        found[key] = _number(key, value, known[key])
    return found


def _number(key: str, text: str, kind: str) -> int | float:
    try:
        value = int(text) if kind == _COUNT else float(text)
        if not math.isfinite(value):
            raise ValueError
    except ValueError:
        example = "nodes=2" if kind == _COUNT else "network_bandwidth=5e10"
        raise UsageError(f"--cluster: {key} is {text!r}; expected {kind}; write it as in {example}") from None
    return value
