# SPDX-License-Identifier: Apache-2.0
"""Clusters described in a TOML file."""

from __future__ import annotations

import os
import re
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.toml import all_mistakes, key_text, line_text, read_toml, unprintable
from artifex_devices._core import Cluster, internal
from artifex_devices._hardware.detection import path_text
from artifex_devices._hardware.rate_limits import RANGE_TEXT, is_sane
from artifex_devices.accelerators import accelerators

_NUMBER, _TEXT, _COUNT, _TABLE = "a number", "a text", "an integer", "a table"
_SIZES, _FLAGS = "a list of integers", "a list of booleans"
_KEYS: dict[str, dict[str, str]] = {
    "": {"name": _TEXT, "slices": _COUNT, "chip": _TABLE, "slice": _TABLE, "host": _TABLE, "network": _TABLE},
    "chip": {
        "name": _TEXT, "platform": _TEXT, "device_kind": _TEXT, "devices_per_chip": _COUNT, "peak_flops": _TABLE,
        "memory_bytes": _NUMBER, "memory_bandwidth": _NUMBER,
    },
    "slice": {
        "kind": _TEXT, "chips": _COUNT, "dims": _SIZES, "wraps": _FLAGS, "bandwidth": _NUMBER, "latency": _NUMBER,
        "link_kind": _TEXT,
    },
    "host": {
        "chips": _COUNT, "shape": _SIZES, "bandwidth": _NUMBER, "nics": _COUNT, "nic_bandwidth": _NUMBER,
        "memory_bytes": _NUMBER,
    },
    "network": {"bandwidth": _NUMBER, "latency": _NUMBER},
}  # fmt: skip


def from_toml(path: str | os.PathLike[str]) -> Cluster:
    """Reads a cluster from a TOML file; for a chip of the catalogue, missing keys have the catalogue's values.

    Keys (bytes/s are of one direction; docs/how_to/describe_a_cluster.md has whole files):

    - `name`, `slices` (1);
    - `[chip]`: `name` (in the catalogue, or another), `platform`, `device_kind`, `devices_per_chip`, `memory_bytes`,
      `memory_bandwidth`, and `[chip.peak_flops]` with FLOP/s by format;
    - `[slice]`: `kind` ("torus", "switch" or "full mesh"), `dims` and `wraps` of a torus, `chips` of other kinds,
      `bandwidth` (of a link; of a chip behind a switch; of a pair's link), `latency` (seconds), `link_kind`;
    - `[host]`: `shape` or `chips`, `bandwidth` (to a chip), `nics` and `nic_bandwidth`, which the chips share,
      `memory_bytes` of a host;
    - `[network]`: `bandwidth` (per chip; instead of NICs), `latency`.

    Args:
        path: Path of the file.

    Raises:
        FileNotFoundError: The file does not exist; another OSError if it cannot be read.
        ValueError: The file is not TOML, has unknown keys, values of the wrong type, names with control characters,
            rates or latencies outside of 1e-30 to 1e30, or contradicts itself; all mistakes at once, with their lines.
    """
    name = path_text("from_toml", "path", path)
    content, text = read_toml("cluster.from_toml", name)
    wrong = _wrong_keys(content, text)
    if wrong:
        raise ValueError(f"cluster.from_toml: in {name} {all_mistakes(wrong)}; correct the file")
    try:
        return internal.cluster_from_tables(content, name)
    except ValueError as error:
        raise ValueError(f"cluster.from_toml: in {name}: {_with_lines(str(error), text)}; correct the file") from None


# Beginnings of clauses in the core's errors, and the keys of the file that they concern.
_KEYS_OF_CLAUSES: dict[str, tuple[tuple[str, ...], ...]] = {
    "the chip's platform": (("chip", "platform"),),
    "devices_per_chip": (("chip", "devices_per_chip"),),
    "memory_bytes": (("chip", "memory_bytes"),),
    "memory_bandwidth": (("chip", "memory_bandwidth"),),
    "peak_flops": (("chip", "peak_flops"),),
    "network": (("slice", "kind"),),
    "dims": (("slice", "dims"), ("slice", "chips")),
    "wraps": (("slice", "wraps"),),
    "the slice's bandwidth": (("slice", "bandwidth"),),
    "the slice's latency": (("slice", "latency"),),
    "host_shape": (("host", "shape"), ("host", "chips")),
    "host_bandwidth": (("host", "bandwidth"),),
    "host_memory_bytes": (("host", "memory_bytes"),),
    "the bandwidth between slices": (("network", "bandwidth"), ("host", "nic_bandwidth")),
    "the latency between slices": (("network", "latency"),),
    "slices": (("slices",),),
    "[chip]": (("chip", "name"), ("chip",)),
    "[slice]": (("slice",),),
    "[host]": (("host",),),
    "[network]": (("network",),),
}
_CLAUSE = re.compile(
    rf"(^|; |: )({'|'.join(sorted(map(re.escape, _KEYS_OF_CLAUSES), key=len, reverse=True))})(?=\[\d+\] | )"
)
# Names in a file whose names in the core differ, and their known values.
_CHOICES = {
    "the chip's platform": ("platform of [chip]", ("tpu", "gpu", "cpu")),
    "network": ("kind of [slice]", ("torus", "switch", "full mesh")),
}
_UNKNOWN_CHIP = re.compile(r"has the name '(.*?)', which is not in the catalogue")
_CHOICE = re.compile(rf'({"|".join(_CHOICES)}) is ("[^"]*")')


def _with_lines(error: str, text: str) -> str:
    """Returns an error whose clauses name the lines of the keys that they concern."""

    def with_line(match: re.Match[str]) -> str:
        lines = (line_text(text, *keys) for keys in _KEYS_OF_CLAUSES[match[2]])
        return match[1] + next(filter(None, lines), "") + match[2]

    def with_nearest(match: re.Match[str]) -> str:
        key, known = _CHOICES[match[1]]
        return f"{key} is {match[2]}{did_you_mean(match[2], known)}"

    def with_nearest_chip(match: re.Match[str]) -> str:
        return match[0] + did_you_mean(match[1], [row.name for row in accelerators()])

    error = _UNKNOWN_CHIP.sub(with_nearest_chip, error)
    return _CHOICE.sub(with_nearest, _CLAUSE.sub(with_line, error))


def _wrong_keys(content: dict[str, Any], text: str) -> list[str]:
    wrong = []
    chip = content.get("chip")
    flops = chip.get("peak_flops") if isinstance(chip, dict) else None
    tables: dict[tuple[str, ...], tuple[Any, dict[str, str]]] = {
        (): (content, _KEYS[""]),
        **{(name,): (content.get(name), keys) for name, keys in _KEYS.items() if name},
    }
    if isinstance(flops, dict):
        tables["chip", "peak_flops"] = (flops, dict.fromkeys(flops, _NUMBER))
    for path, (values, keys) in tables.items():
        where = f" of [{'.'.join(path)}]" if path else ""
        for key, value in values.items() if isinstance(values, dict) else ():  # others: a mistake of the outer table
            if key not in keys:
                problem = f" is not a key{did_you_mean(key, keys)}; expected {', '.join(keys)}"
            elif not _is(value, keys[key]):
                problem = f" is {value!r}; expected {keys[key]}"
            elif keys[key] == _NUMBER and not is_sane(value):
                problem = f" is {value!r}; expected {RANGE_TEXT}"
            else:
                wrong += unprintable(value, text, *path, key)
                continue
            wrong.append(f"{line_text(text, *path, key)}{key_text(key)}{where}{problem}")
    missing = [f"[{table}]" for table in ("chip", "slice") if table not in content]
    if missing:
        verb = "are missing; expected these tables" if missing[1:] else "is missing; expected this table"
        wrong.append(f"{' and '.join(missing)} {verb}")
    return wrong


def _is(value: object, kind: str) -> bool:
    if kind in (_SIZES, _FLAGS):
        return isinstance(value, list) and all(
            _is(each, _COUNT) if kind == _SIZES else isinstance(each, bool) for each in value
        )
    if isinstance(value, bool):
        return False
    if kind == _COUNT:
        return isinstance(value, int) and abs(value) < 2**31
    if kind == _NUMBER:
        return isinstance(value, (int, float)) and abs(value) < 2**1023
    return isinstance(value, str if kind == _TEXT else dict)
