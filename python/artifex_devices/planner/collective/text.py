# SPDX-License-Identifier: Apache-2.0
"""Texts of seconds and of the rates that they come from."""

from __future__ import annotations

from collections.abc import Iterable

from artifex_devices._base.text import rate_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.roofline import Provenance


def time_text(seconds: float, bound: float | None, source: Provenance) -> str:
    """Formats "560 us, at least 280 us (source)"."""
    least = "" if bound is None else f", at least {seconds_text(bound)}"
    return f"{seconds_text(seconds)}{least} ({source.text})"


def rates_of(cluster: Cluster, formats: Iterable[str] | None = None) -> Provenance:
    """Returns the rates of the network. For a step, pass `formats` of products to get the chip's rates too."""
    parts = cluster.parts
    rates = [("link", parts["bandwidth"], "B/s"), ("hop", parts["latency"], "s")]
    if formats is not None:
        peaks = [(name, parts["peak_flops"].get(name), "FLOP/s a chip") for name in sorted(formats)]
        rates = [*peaks, ("memory", parts["memory_bandwidth"], "B/s"), *rates]
    if cluster.slices > 1:
        rates.append(("network", parts["network_bandwidth"], "B/s a chip"))
        if formats is None:
            rates.append(("network step", parts["network_latency"], "s"))
    texts = [f"{name} {rate_text(rate[0], unit)} [{rate[1]}]" for name, rate, unit in rates if rate is not None]
    return Provenance("model", "model; " + ", ".join(texts))
