# SPDX-License-Identifier: Apache-2.0
"""Factors that say how far hardware stays below its published rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_number, check_str, check_type, failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary


@public("artifex_devices.planner")
@dataclass(frozen=True, repr=False)
class Efficiency(Report):
    """Factors of a chip and its network, with their sources; `print` shows them as a table.

    Fractions are above 0 and at most 1. `Efficiency.of(cluster)` returns factors that were fitted to published training
    runs, `Efficiency.published(cluster)` returns factors of the best kernels; `replaced` changes some factors.

    Attributes:
        matmul: Fraction of the peak that large 16-bit products reach.
        matmul_float8: Fraction of the 8-bit peak that large products reach.
        tile_rows: Rows of a result that one processor computes at once; 1 turns off tile quantisation.
        tile_columns: Columns of it.
        processors: Processors of a device that compute tiles at once; 0 turns off wave quantisation.
        attention_forward: Fraction of the peak that the forward pass of attention reaches.
        attention_backward: Fraction that its backward pass reaches.
        memory: Fraction of the memory's bandwidth that element-wise kernels and the update reach.
        links: Fraction of the bandwidth of links inside a node or slice that large messages reach.
        links_half_bytes: Bytes of a message that reaches half of that; a message of n bytes reaches n / (n + lost),
            where lost = half * sqrt(2 * n / (n + half)).
        nvls: Fraction of the links' bandwidth that all-reduces reach whose sums the switch computes (NVLink SHARP);
            used behind the switches of NVLink 4 and 5.
        network: Fraction of the bandwidth between nodes or slices that large messages reach.
        network_half_bytes: Bytes of a message that reaches half of that.
        host: Fraction of the bandwidth between host and chip.
        host_memory: Bytes/s of a host's memory that updates of offloaded optimizer state reach; 0: unlimited.
        layer_seconds: Seconds of launches and gaps for each layer and microbatch, once forward and once backward.
        step_seconds: Seconds of each step for all else.
        sources: Source of each factor by name.
        sharp: Fraction of the bandwidth between nodes that all-reduces reach whose sums the switches compute (SHARP of
            InfiniBand); used where a configuration has `sharp=True`.
        stream: Fraction of the memory's bandwidth at which decoding reads weights and the KV cache.
        decode_layer_seconds: Seconds of each layer of a decoding step in which its kernels start and end.
        decode_expert_seconds: Seconds of each layer with experts in which its additional kernels start and end.
        flash2: Fraction of the rates of attention that FlashAttention-2 reaches on chips after the A100; used where
            a configuration has `attention_kernel="flash2"`.
        grouped: Fraction of the rate of products that the products of routed experts reach.
        dispatch: Fraction of the bandwidth of links and network that the exchange of tokens between experts reaches.
        expert_seconds: Seconds of launches and gaps for the routed experts of a layer and microbatch, once forward and
            once backward, beside `layer_seconds`.

    Raises:
        ValueError: A factor is out of its range.
        TypeError: A factor is not a number.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import Efficiency
        >>> h100 = Efficiency.published(cluster.dgx("h100"))
        >>> h100.matmul, h100.sources["matmul"]
        (0.801, 'S12, MAMF table: 792.1 of 989 TFLOP/s')
        >>> h100.replaced(matmul=0.7).sources["matmul"]
        'given'
    """

    matmul: float
    matmul_float8: float
    tile_rows: float
    tile_columns: float
    processors: float
    attention_forward: float
    attention_backward: float
    memory: float
    links: float
    links_half_bytes: float
    nvls: float
    network: float
    network_half_bytes: float
    host: float
    host_memory: float
    layer_seconds: float
    step_seconds: float
    sources: Mapping[str, str]
    sharp: float = 1.0
    stream: float = 1.0
    decode_layer_seconds: float = 0.0
    decode_expert_seconds: float = 0.0
    flash2: float = 1.0
    grouped: float = 1.0
    dispatch: float = 1.0
    expert_seconds: float = 0.0

    def __post_init__(self) -> None:
        check_type("Efficiency", "sources", self.sources, Mapping, "a mapping of names to texts")
        for name in FACTORS:
            object.__setattr__(self, name, float(check_number("Efficiency", name, getattr(self, name))))
        sources = {
            name: check_str("Efficiency", f"sources[{name!r}]", self.sources.get(name, "given"), "name the source")
            for name in FACTORS
        }
        object.__setattr__(self, "sources", MappingProxyType(sources))
        wrong = _planner.efficiency_mistakes(self._described())
        if wrong:
            raise ValueError(f"Efficiency: {wrong}; correct each")

    @classmethod
    def of(cls, cluster: Cluster) -> Efficiency:
        """Returns the factors of a cluster's chip that were fitted to published training runs, or the published ones.

        docs/planner_accuracy.md has the runs, the factors and the errors.

        Args:
            cluster: The cluster.

        Raises:
            TypeError: `cluster` is not a Cluster.
        """
        check_type("Efficiency.of", "cluster", cluster, Cluster, "a Cluster", "write cluster.tpu('v5e', (16, 16))")
        return cls._from(_planner.default_efficiency(cluster))

    @classmethod
    def published(cls, cluster: Cluster) -> Efficiency:
        """Returns the published factors of a cluster's chip, and "model" for factors without a publication.

        They were measured with the best kernels alone; whole training steps reach less.

        Args:
            cluster: The cluster.

        Raises:
            TypeError: `cluster` is not a Cluster.
        """
        operation = "Efficiency.published"
        check_type(operation, "cluster", cluster, Cluster, "a Cluster", "write cluster.tpu('v5e', (16, 16))")
        return cls._from(_planner.published_efficiency(cluster))

    @classmethod
    def ideal(cls) -> Efficiency:
        """Returns factors without losses: plans with them are roofline bounds."""
        return cls._from(_planner.ideal_efficiency())

    @classmethod
    def _from(cls, numbers: Mapping[str, tuple[float, str]]) -> Efficiency:
        values = {name: value for name, (value, _) in numbers.items()}
        return cls(**values, sources={name: source for name, (_, source) in numbers.items()})

    def replaced(self, *, source: str = "given", **factors: float) -> Efficiency:
        """Returns the same with some factors changed.

        Args:
            source: Source of the new factors.
            **factors: New values by name.

        Raises:
            ValueError: A name is unknown, or a factor is out of its range.
            TypeError: A factor is not a number, or the source is not a str.
        """
        check_str("Efficiency.replaced", "source", source, "name where the numbers are from")
        unknown = [f"{safe_repr(name)}{did_you_mean(name, FACTORS)}" for name in factors if name not in FACTORS]
        if unknown:
            raise failure(
                ValueError,
                "Efficiency.replaced",
                f"unknown factors {', '.join(unknown)}",
                expected=f"some of {', '.join(FACTORS)}",
                fix="correct the names",
            )
        values = {name: getattr(self, name) for name in FACTORS}
        return Efficiency(**{**values, **factors}, sources={**self.sources, **dict.fromkeys(factors, source)})

    def _fitted(self, found: Mapping[str, tuple[float, str]], names: Iterable[str]) -> Efficiency:
        """Returns the same with the named factors of a fit, which have its source."""
        return Efficiency._from(self._described() | {name: found[name] for name in names})

    def _described(self) -> dict[str, tuple[float, str]]:
        return {name: (getattr(self, name), self.sources[name]) for name in FACTORS}

    def _summary(self) -> Summary:
        rows = [(name, f"{getattr(self, name):.4g}", self.sources[name]) for name in FACTORS]
        return Summary("efficiency", (), ("factor", "value", "source"), rows)

    def _content(self) -> dict[str, object]:
        return {
            "kind": "efficiency",
            "factors": {
                name: {"value": value, "source": source} for name, (value, source) in self._described().items()
            },
        }

    def __repr__(self) -> str:
        return f"<Efficiency: matmul {self.matmul:.3g}, links {self.links:.3g}, network {self.network:.3g}>"

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "sources": dict(self.sources)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The first pickles of version 0.1.0 lack the newest factors: they get the bounds.
        sources = {**dict.fromkeys(_LATER, "model"), **state["sources"]}
        ordered = MappingProxyType({name: sources[name] for name in FACTORS})
        vars(self).update({**_LATER, **state, "sources": ordered})

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in FACTORS))


FACTORS: tuple[str, ...] = tuple(field.name for field in fields(Efficiency) if field.name != "sources")
_LATER = {
    "sharp": 1.0,
    "stream": 1.0,
    "decode_layer_seconds": 0.0,
    "decode_expert_seconds": 0.0,
    "flash2": 1.0,
    "grouped": 1.0,
    "dispatch": 1.0,
    "expert_seconds": 0.0,
}
