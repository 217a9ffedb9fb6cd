# SPDX-License-Identifier: Apache-2.0
"""Rates of a cluster that seconds of the planner are computed from, with their sources."""

from __future__ import annotations

from collections.abc import Iterable

from artifex_devices._core import Cluster
from artifex_devices.roofline import Provenance


def rates_of(cluster: Cluster, formats: Iterable[str] | None = None) -> Provenance:
    """Returns the rates of the network; with `formats` (of products) also those of a chip, as a step needs them."""
    parts = cluster.parts
    rates = [("link", parts["bandwidth"], "B/s"), ("hop", parts["latency"], "s")]
    if formats is not None:
        peaks = [(name, parts["peak_flops"].get(name), "FLOP/s a chip") for name in sorted(formats)]
        rates = [*peaks, ("memory", parts["memory_bandwidth"], "B/s"), *rates]
    if cluster.slices > 1:
        rates.append(("network", parts["network_bandwidth"], "B/s a chip"))
        if formats is None:
            rates.append(("network step", parts["network_latency"], "s"))
    texts = [f"{name} {rate[0]:.4g} {unit} [{rate[1]}]" for name, rate, unit in rates if rate is not None]
    return Provenance("model", "model; " + ", ".join(texts))
