# SPDX-License-Identifier: Apache-2.0
"""Clusters described in a TOML file."""

from __future__ import annotations

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
    """Reads a cluster from a TOML file; what the file does not say of a chip of the catalogue is the catalogue's.

    Keys (bytes/s are of one direction; docs/guide/clusters.md has whole files):

    - `name`, `slices` (1);
    - `[chip]`: `name` (of the catalogue, or another), `platform`, `device_kind`, `devices_per_chip`, `memory_bytes`,
      `memory_bandwidth`, and `[chip.peak_flops]` with FLOP/s by format;
    - `[slice]`: `kind` ("torus", "switch" or "full mesh"), `dims` and `wraps` of a torus, `chips` of the others,
      `bandwidth` (of a link; of a chip behind a switch; of a pair's link), `latency` (seconds), `link_kind`;
    - `[host]`: `shape` or `chips`, `bandwidth` (to a chip), `nics` and `nic_bandwidth`, which the chips share;
    - `[network]`: `bandwidth` (of a chip; in place of NICs), `latency`.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: There is no such file; another OSError where it cannot be read.
        ValueError: It is no TOML, has other keys, values of the wrong type, names with control characters, rates or
            latencies outside of 1e-30 to 1e30, or says what cannot be; all such at once, with their lines.
    """
    name = path_text("from_toml", "path", path)
    told, text = read_toml("cluster.from_toml", name)
    wrong = _wrong_keys(told, text)
    if wrong:
        raise ValueError(f"cluster.from_toml: in {name} {all_mistakes(wrong)}; correct the file")
    try:
        return _core._make_cluster(_parts(told, name))
    except ValueError as error:
        raise ValueError(f"cluster.from_toml: in {name}: {_with_lines(str(error), text)}; correct the file") from None


# How clauses of the core's errors begin, and the keys of a file that they are about.
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
# What a file calls it that the core calls otherwise, and the words that there are for it.
_CHOICES = {
    "the chip's platform": ("platform of [chip]", ("tpu", "gpu", "cpu")),
    "network": ("kind of [slice]", ("torus", "switch", "full mesh")),
}
_CHOICE = re.compile(rf'({"|".join(_CHOICES)}) is ("[^"]*")')


def _with_lines(error: str, text: str) -> str:
    """An error with the line of what each of its clauses is about."""

    def told(match: re.Match[str]) -> str:
        lines = (line_text(text, *keys) for keys in _KEYS_OF_CLAUSES[match[2]])
        return match[1] + next(filter(None, lines), "") + match[2]

    def named(match: re.Match[str]) -> str:
        key, known = _CHOICES[match[1]]
        return f"{key} is {match[2]}{did_you_mean(match[2], known)}"

    return _CHOICE.sub(named, _CLAUSE.sub(told, error))


def _wrong_keys(told: dict[str, Any], text: str) -> list[str]:
    wrong = []
    for table, keys in _KEYS.items():
        values = told if table == "" else told.get(table, {})
        if not isinstance(values, dict):
            continue  # said of the file as a whole
        where = f" of [{table}]" if table else ""
        for key, value in values.items():
            line = (*((table,) if table else ()), key)
            if key not in keys:
                wrong.append(
                    f"{line_text(text, *line)}{key_text(key)}{where} is no key{did_you_mean(key, keys)}; expected "
                    f"{', '.join(keys)}"
                )
            elif not _is(value, keys[key]):
                wrong.append(f"{line_text(text, *line)}{key}{where} is {value!r}; expected {keys[key]}")
            elif keys[key] == _NUMBER and not is_sane(value):
                wrong.append(f"{line_text(text, *line)}{key}{where} is {value!r}; expected {RANGE_TEXT}")
            wrong += unprintable(value, text, *line) if key in keys else []
    chip = told.get("chip")
    flops = chip.get("peak_flops") if isinstance(chip, dict) else None
    if isinstance(flops, dict):
        wrong += [
            f"{line_text(text, 'chip', 'peak_flops', key)}{key_text(key)} of [chip.peak_flops] is {value!r}; expected "
            f"{RANGE_TEXT if _is(value, _NUMBER) else _NUMBER}"
            for key, value in flops.items()
            if not _is(value, _NUMBER) or not is_sane(value)
        ]
    missing = [f"[{table}]" for table in ("chip", "slice") if table not in told]
    if missing:
        said = "are missing; expected these tables" if missing[1:] else "is missing; expected this table"
        wrong.append(f"{' and '.join(missing)} {said}")
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


def _parts(told: dict[str, Any], source: str) -> dict[str, Any]:
    chip, inside, host, network = (dict(told.get(table, {})) for table in ("chip", "slice", "host", "network"))
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
        chips = 1
        for size in shape:
            chips *= max(size, 1)
        between = host.get("nics", 1) * host["nic_bandwidth"] / chips
    parts.update(
        name=told.get("name", os.path.basename(source)),
        slices=told.get("slices", 1),
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


def _chip(told: dict[str, Any], source: str) -> dict[str, Any]:
    name = told.get("name")
    if name is None:
        raise ValueError("[chip] has no name; expected one of the catalogue, or another with platform")
    try:
        row = accelerator(name)
    except ValueError:
        if "platform" not in told:
            raise ValueError(
                f"[chip] has the name {name!r}, which the catalogue does not have"
                f"{did_you_mean(name, [row.name for row in accelerators()])}, and no platform; expected "
                '"tpu", "gpu" or "cpu"'
            ) from None
        row = None
    parts: dict[str, Any] = {
        "chip_name": name, "platform": "", "device_kind": name, "devices_per_chip": 1, "peak_flops": {},
        "memory_bytes": None, "memory_bandwidth": None, "host_bandwidth": None,
    }  # fmt: skip
    if row is not None:
        parts = {key: value for key, value in _core._chip_parts(row.name).items() if key in parts}
        _check_agreement(row, told)
    for key in ("platform", "device_kind", "devices_per_chip"):
        if key in told:
            parts[key] = told[key]
    for key in ("memory_bytes", "memory_bandwidth"):
        if key in told:
            parts[key] = _figure(told[key], source)
    flops = {key: _figure(value, source) for key, value in told.get("peak_flops", {}).items()}
    parts["peak_flops"] = {**parts["peak_flops"], **flops}
    return parts


def _check_agreement(row: Accelerator, told: dict[str, Any]) -> None:
    """Raises ValueError if a file gives a chip of the catalogue the platform or device kind of another."""
    if told.get("platform", row.platform) != row.platform:
        raise ValueError(
            f"[chip] has the name {row.name!r} and the platform {told['platform']!r}; expected {row.platform!r}, which "
            "the catalogue has; leave platform out or rename the chip"
        )
    kind = told.get("device_kind", row.name)
    try:
        other = accelerator(kind)
    except ValueError:
        return  # a kind that the catalogue does not have
    if other.name != row.name:
        raise ValueError(
            f"[chip] has the name {row.name!r} and the device_kind {kind!r}, which is that of {other.name!r}; expected "
            "one chip; leave device_kind out or rename the chip"
        )


def _figure(value: float | None, source: str) -> tuple[float, str] | None:
    return None if value is None else (float(value), source)
