# SPDX-License-Identifier: Apache-2.0
"""Clusters described in a TOML file."""

from __future__ import annotations

import math
import os
import re
from typing import Any

from artifex_devices import _core
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.toml import all_mistakes, key_text, line_text, read_toml, unprintable
from artifex_devices._core import Cluster
from artifex_devices._hardware.detection import path_text
from artifex_devices._hardware.rate_limits import RANGE_TEXT, is_sane
from artifex_devices.accelerators import Accelerator, accelerator, accelerators

__all__ = ["from_toml"]

_NUMBER, _TEXT, _COUNT, _SIZES, _FLAGS, _TABLE = (
    "a number",
    "a text",
    "an integer",
    "a list of integers",
    "a list of booleans",
    "a table",
)
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
    "host": {"chips": _COUNT, "shape": _SIZES, "bandwidth": _NUMBER, "nics": _COUNT, "nic_bandwidth": _NUMBER},
    "network": {"bandwidth": _NUMBER, "latency": _NUMBER},
}  # fmt: skip


def from_toml(path: str | os.PathLike[str]) -> Cluster:
    """Reads a cluster from a TOML file; for a chip of the catalogue, missing keys have the catalogue's values.

    Keys (bytes/s are of one direction; docs/guide/clusters.md has whole files):

    - `name`, `slices` (1);
    - `[chip]`: `name` (in the catalogue, or another), `platform`, `device_kind`, `devices_per_chip`, `memory_bytes`,
      `memory_bandwidth`, and `[chip.peak_flops]` with FLOP/s by format;
    - `[slice]`: `kind` ("torus", "switch" or "full mesh"), `dims` and `wraps` of a torus, `chips` of the others,
      `bandwidth` (of a link; of a chip behind a switch; of a pair's link), `latency` (seconds), `link_kind`;
    - `[host]`: `shape` or `chips`, `bandwidth` (to a chip), `nics` and `nic_bandwidth`, which the chips share;
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
        return _core._make_cluster(_parts(content, name))
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
# Names in a file of what the core calls otherwise, and their known values.
_CHOICES = {
    "the chip's platform": ("platform of [chip]", ("tpu", "gpu", "cpu")),
    "network": ("kind of [slice]", ("torus", "switch", "full mesh")),
}
_CHOICE = re.compile(rf'({"|".join(_CHOICES)}) is ("[^"]*")')


def _with_lines(error: str, text: str) -> str:
    """An error with the line of the key that each of its clauses concerns."""

    def with_line(match: re.Match[str]) -> str:
        lines = (line_text(text, *keys) for keys in _KEYS_OF_CLAUSES[match[2]])
        return match[1] + next(filter(None, lines), "") + match[2]

    def with_nearest(match: re.Match[str]) -> str:
        key, known = _CHOICES[match[1]]
        return f"{key} is {match[2]}{did_you_mean(match[2], known)}"

    return _CHOICE.sub(with_nearest, _CLAUSE.sub(with_line, error))


def _wrong_keys(content: dict[str, Any], text: str) -> list[str]:
    wrong = []
    for table, keys in _KEYS.items():
        values = content if table == "" else content.get(table, {})
        if not isinstance(values, dict):
            continue  # reported as a value of the wrong type
        where = f" of [{table}]" if table else ""
        for key, value in values.items():
            line = (*((table,) if table else ()), key)
            if key not in keys:
                wrong.append(
                    f"{line_text(text, *line)}{key_text(key)}{where} is not a key{did_you_mean(key, keys)}; expected "
                    f"{', '.join(keys)}"
                )
            elif not _is(value, keys[key]):
                wrong.append(f"{line_text(text, *line)}{key}{where} is {value!r}; expected {keys[key]}")
            elif keys[key] == _NUMBER and not is_sane(value):
                wrong.append(f"{line_text(text, *line)}{key}{where} is {value!r}; expected {RANGE_TEXT}")
            wrong += unprintable(value, text, *line) if key in keys else []
    chip = content.get("chip")
    flops = chip.get("peak_flops") if isinstance(chip, dict) else None
    if isinstance(flops, dict):
        wrong += [
            f"{line_text(text, 'chip', 'peak_flops', key)}{key_text(key)} of [chip.peak_flops] is {value!r}; expected "
            f"{RANGE_TEXT if _is(value, _NUMBER) else _NUMBER}"
            for key, value in flops.items()
            if not _is(value, _NUMBER) or not is_sane(value)
        ]
    missing = [f"[{table}]" for table in ("chip", "slice") if table not in content]
    if missing:
        verb = "are missing; expected these tables" if missing[1:] else "is missing; expected this table"
        wrong.append(f"{' and '.join(missing)} {verb}")
    return wrong


def _is(value: Any, kind: str) -> bool:
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


def _parts(content: dict[str, Any], source: str) -> dict[str, Any]:
    chip, inside, host, network = (dict(content.get(table, {})) for table in ("chip", "slice", "host", "network"))
    parts = _chip(chip, source)
    kind = inside.get("kind", "torus" if "dims" in inside else "switch")
    dims = inside.get("dims")
    if dims is None:
        if "chips" not in inside:
            raise ValueError("[slice] has no size; expected dims (of a torus) or chips")
        dims = [inside["chips"]]
    elif "chips" in inside:
        raise ValueError("[slice] has dims and chips; expected one of them")
    if kind in ("torus", "switch", "full mesh") and (kind == "torus") != ("dims" in inside):
        raise ValueError(
            f"[slice] has the kind {kind!r} and {'dims' if 'dims' in inside else 'chips'}; expected dims with a torus, "
            "chips with the other kinds"
        )
    shape = host.get("shape")
    if shape is not None and "chips" in host:
        raise ValueError("[host] has shape and chips; expected one of them")
    if shape is None:
        if "chips" in host and len(dims) > 1:
            raise ValueError("[host] has chips; expected shape, chips along each axis of the torus")
        shape = [host["chips"]] if "chips" in host else dims
    between = network.get("bandwidth")
    if "nics" in host or "nic_bandwidth" in host:
        if between is not None:
            raise ValueError("[network] has a bandwidth and [host] has NICs; expected one of them")
        if "nic_bandwidth" not in host:
            raise ValueError("[host] has nics; expected nic_bandwidth too, bytes/s of one")
        if host.get("nics", 1) < 1 or host["nic_bandwidth"] <= 0:
            raise ValueError("[host] has nics or a nic_bandwidth of 0 or less; expected 1 or more, above 0 bytes/s")
        chips = math.prod(max(size, 1) for size in shape)
        between = host.get("nics", 1) * host["nic_bandwidth"] / chips
    parts.update(
        name=content.get("name", os.path.basename(source)),
        slices=content.get("slices", 1),
        network=kind,
        link_kind=inside.get("link_kind", ""),
        dims=dims,
        wraps=inside.get("wraps", [False] * len(dims) if kind == "torus" else []),
        bandwidth=_figure(inside.get("bandwidth"), source),
        latency=_figure(inside.get("latency"), source),
        host_shape=shape,
        host_source=source,
        network_bandwidth=_figure(between, source),
        network_latency=_figure(network.get("latency"), source),
        notes=(),
    )
    if "bandwidth" in host:
        parts["host_bandwidth"] = _figure(host["bandwidth"], source)
    return parts


def _chip(table: dict[str, Any], source: str) -> dict[str, Any]:
    name = table.get("name")
    if name is None:
        raise ValueError("[chip] has no name; expected one of the catalogue, or another with platform")
    row = _catalogue_row(name)
    if row is None and "platform" not in table:
        raise ValueError(
            f"[chip] has the name {name!r}, which the catalogue does not have"
            f"{did_you_mean(name, [row.name for row in accelerators()])}, and no platform; expected "
            '"tpu", "gpu" or "cpu"'
        )
    parts: dict[str, Any] = {
        "chip_name": name, "platform": "", "device_kind": name, "devices_per_chip": 1, "peak_flops": {},
        "memory_bytes": None, "memory_bandwidth": None, "host_bandwidth": None,
    }  # fmt: skip
    if row is not None:
        parts = {key: value for key, value in _core._chip_parts(row.name).items() if key in parts}
        _check_agreement(row, table)
    for key in ("platform", "device_kind", "devices_per_chip"):
        if key in table:
            parts[key] = table[key]
    for key in ("memory_bytes", "memory_bandwidth"):
        if key in table:
            parts[key] = _figure(table[key], source)
    flops = {key: _figure(value, source) for key, value in table.get("peak_flops", {}).items()}
    parts["peak_flops"] = {**parts["peak_flops"], **flops}
    return parts


def _catalogue_row(name: str) -> Accelerator | None:
    try:
        return accelerator(name)
    except ValueError:
        return None


def _check_agreement(row: Accelerator, table: dict[str, Any]) -> None:
    """Raises ValueError if a chip of the catalogue has the platform or device kind of another."""
    if table.get("platform", row.platform) != row.platform:
        raise ValueError(
            f"[chip] has the name {row.name!r} and the platform {table['platform']!r}; expected {row.platform!r}, "
            "which the catalogue has; leave platform out or rename the chip"
        )
    kind = table.get("device_kind", row.name)
    other = _catalogue_row(kind)
    if other is not None and other.name != row.name:
        raise ValueError(
            f"[chip] has the name {row.name!r} and the device_kind {kind!r}, which is that of {other.name!r}; expected "
            "one chip; leave device_kind out or rename the chip"
        )


def _figure(value: float | None, source: str) -> tuple[float, str] | None:
    return None if value is None else (float(value), source)
