# SPDX-License-Identifier: Apache-2.0
"""Texts of seconds and of the rates that they come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artifex_devices._base.text import rate_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.training import FACTORS, Efficiency, factor_facts
from artifex_devices.roofline import Provenance

SUMS_IN_SWITCH = "sums in the switch"  # the algorithm of the factor nvls
_LINK_FACTORS = ("links", "links_half_bytes", "nvls", "network", "network_half_bytes", "host")


def time_facts(
    seconds: float, bound: float, least: float | None, efficiency: Efficiency, source: Provenance, names: Sequence[str]
) -> list[tuple[str, str]]:
    """Formats expected seconds, the bound at published rates, the named factors and the source of the rates.

    `least` are the seconds of the lower bound for every strategy, if they are known.
    """
    fastest = "" if least is None else f"; at least {seconds_text(least)} for any messages between devices"
    return [
        ("expected", f"{seconds_text(seconds)} (model; the factors below)"),
        ("error", "not known: no published measurements were compared with these factors"),
        ("bound", f"{seconds_text(bound)} at published rates{fastest}"),
        *factor_facts(efficiency, [name for name in FACTORS if name not in names]),
        ("rates", source.text),
    ]


def link_factors(cluster: Cluster, *, sums: bool = False, host: bool = False) -> tuple[str, ...]:
    """Returns the names of the factors of a cluster's links that act; `sums`: of switches that add; `host`: too."""
    network = cluster.slices > 1
    acts = {"nvls": sums, "network": network, "network_half_bytes": network, "host": host}
    return tuple(name for name in _LINK_FACTORS if acts.get(name, True))


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
