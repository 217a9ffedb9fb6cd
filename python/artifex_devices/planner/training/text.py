# SPDX-License-Identifier: Apache-2.0
"""Texts of configurations, rates, factors and errors of training runs."""

from __future__ import annotations

import re
from collections.abc import Collection

from artifex_devices._base.text import bytes_text, count_text, rate_text
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import FACTORS, Efficiency
from artifex_devices.planner.training.published import PublishedError, RunKind
from artifex_devices.planner.training.tensor_dtypes import dtypes_text

_RATES = (  # of a cluster
    ("memory_bandwidth", "memory", "B/s"),
    ("bandwidth", "link", "B/s"),
    ("network_bandwidth", "network", "B/s a chip"),
)


def ways_text(config: TrainingConfig) -> str:
    """Formats the axes of a configuration: "tensor 8 (sequences too) x pipeline 16 (1f1b) x data 128 (ZeRO 1)"."""
    parts = []
    if config.tensor > 1:
        parts.append(f"tensor {config.tensor}{' (sequences too)' if config.sequence_parallel else ''}")
    if config.context > 1:
        parts.append(f"context {config.context} ({config.context_method.replace('_', '-')})")
    if config.pipeline > 1:
        chunks = f", {config.chunks} chunks" if config.chunks > 1 else ""
        parts.append(f"pipeline {config.pipeline} ({config.schedule}{chunks})")
    zero = f"ZeRO {config.zero}" if config.zero else "no ZeRO"
    shards = f" over {config.zero_shards}" if config.zero and config.zero_shards else ""
    parts.append(f"data {config.data} ({zero}{shards})")
    if config.expert > 1:
        parts.append(f"experts over {config.expert}")
    if config.expert_capacity is not None:
        parts[-1] += f", capacity {config.expert_capacity:g}{' padded' if config.expert_padding else ''}"
    offloaded = offloaded_text(config)
    more = "" if offloaded == "nothing" else f", {_OFFLOADED[offloaded]} in host memory"
    return " x ".join(parts) + more + (", sums in switches between nodes (SHARP)" if config.sharp else "")


def rates_text(cluster: Cluster, config: TrainingConfig) -> str:
    """Formats the published rates of a roofline with their sources: "989 TFLOP/s bfloat16 [S8], memory ..."."""
    parts = cluster.parts
    texts = []
    flops = parts["peak_flops"].get(config.dtype)
    if flops is not None:
        texts.append(
            f"{rate_text(flops[0] / int(parts['devices_per_chip']), 'FLOP/s')} {config.dtype}{_from(flops[1])}"
        )
    for key, name, unit in _RATES:
        found = parts[key]
        if found is not None and (key != "network_bandwidth" or parts["slices"] > 1):
            texts.append(f"{name} {rate_text(found[0], unit)}{_from(found[1])}")
    return ", ".join(texts)


def _from(source: str) -> str:
    return f" [{source}]" if source else ""


def error_text(error: PublishedError | None, kind: RunKind) -> str:
    """Formats how far expected seconds were from published runs of the same kind."""
    if error is None:
        return f"not known: no published run of this kind ({kind}) was compared with these factors"
    where = f"on {error.chip}" if error.chip else f"on all chips, because none is on {kind.chip}"
    held_out = f"in {error.precision} {where}, not used to fit the factors [{error.source}]"
    if error.runs == 1:
        return f"{error.median:.1%} on the only published {error.kind} run {held_out}"
    sizes = f"median {error.median:.1%}, nine of ten within {error.tail:.1%}"
    return f"{sizes}: {error.runs} published {error.kind} runs {held_out}"


_OF_DECODING = ("stream", "decode_layer_seconds", "decode_expert_seconds")


def idle_factors(shape: TransformerShape, config: TrainingConfig) -> set[str]:
    """Returns the factors that do not act on a training run."""
    acts = {
        "sharp": config.sharp,
        "flash2": config._attention_kernel == "flash2",
        **dict.fromkeys(("grouped", "expert_seconds"), shape.experts > 0),
        "dispatch": config.expert > 1,
    }
    return {*_OF_DECODING, *(name for name, does in acts.items() if not does)}


def factor_facts(efficiency: Efficiency, idle: Collection[str] = ()) -> list[tuple[str, str]]:
    """Formats the factors that act, numbered by source, and the sources as footnotes."""
    numbers: dict[str, int] = {}
    texts = []
    acting = [name for name in FACTORS if name not in idle]
    for name in acting:
        value, source = getattr(efficiency, name), efficiency.sources[name]
        if value not in (0, 1):
            texts.append(f"{name} {value:.4g} [{numbers.setdefault(source, len(numbers) + 1)}]")
    if not texts:
        return [("factors", f"none ({efficiency.sources[acting[0]]}): the expected seconds are the bound")]
    coded = {source: re.sub(r"^(S[0-9]+)\b", r"[\1]", source) for source in numbers}
    return [("factors", ", ".join(texts)), *((f"[{number}]", coded[source]) for source, number in numbers.items())]


def dtypes_facts(config: TrainingConfig) -> list[tuple[str, str]]:
    """Formats the dtypes where tensors have several."""
    if not config.parameter_dtypes and not config.gradient_dtypes and not config.parameter_scale:
        return []
    parameters = dtypes_text(config.parameter_dtype, config.parameter_dtypes)
    if config.parameter_scale:
        parameters += f", {config.parameter_scale:.3g} bytes of scales for each of 8 bits or fewer"
    return [
        ("dtypes", f"parameters {parameters}; gradients {dtypes_text(config.gradient_dtype, config.gradient_dtypes)}")
    ]


def batch_text(config: TrainingConfig, microbatches: int) -> str:
    """Formats a batch: "256 x 4096 = 1.049M tokens, 8 microbatches of 1"."""
    recompute = "" if config.recompute == "none" else f", recomputes {recomputed_text(config)}"
    return (
        f"{config.batch} x {config.sequence} = {count_text(config.tokens)} tokens, {microbatches} "
        f"microbatch{'' if microbatches == 1 else 'es'} of {config.microbatch}{recompute}"
    )


def host_facts(used: int, available: int | None) -> list[tuple[str, str]]:
    """Formats the bytes on the fullest host, where something is offloaded."""
    if not used:
        return []
    if available is None:
        return [("host", f"{bytes_text(used)} on the fullest host, whose memory is not known")]
    fits = "fits" if used <= available else "does not fit"
    return [("host", f"{bytes_text(used)} of {bytes_text(available)} on the fullest host: {fits}")]


def recomputed_text(config: TrainingConfig) -> str:
    """Formats the recomputation: "full, 4 layers"."""
    if config.recompute != "full" or config.recompute_layers is None:
        return config.recompute
    if config.recompute_method == "uniform":
        return f"full, units of {config.recompute_layers}"
    return f"full, {config.recompute_layers} layer{'' if config.recompute_layers == 1 else 's'}"


def offloaded_text(config: TrainingConfig) -> str:
    """Formats the contents of host memory: "nothing", "optimizer", "activations" or "both"."""
    kinds = [kind for kind in ("optimizer", "activations") if getattr(config, f"offload_{kind}")]
    return "both" if len(kinds) == 2 else "".join(kinds) or "nothing"


_OFFLOADED = {"optimizer": "optimizer state", "activations": "activations", "both": "optimizer state and activations"}
