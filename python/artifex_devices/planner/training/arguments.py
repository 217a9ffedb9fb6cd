# SPDX-License-Identifier: Apache-2.0
"""Arguments that the functions of training runs and of inference share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from artifex_devices._base.checks import check_type, failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import check_given
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency


def checked_efficiency(operation: str, efficiency: Efficiency | None, cluster: Cluster) -> Efficiency:
    """Returns the factors, or those of the cluster for None."""
    if efficiency is None:
        return Efficiency.of(cluster)
    check_type(operation, "efficiency", efficiency, Efficiency, "an Efficiency or None", "write Efficiency.of(cluster)")
    checked: Efficiency = efficiency
    return checked


def check_fields(operation: str, given: Mapping[str, object], *without: str) -> None:
    """Raises ValueError for names that are not fields of a TrainingConfig, apart from the fields `without`."""
    known = [field.name for field in fields(TrainingConfig) if field.name not in ("batch", "sequence", *without)]
    unknown = [f"{safe_repr(name)}{did_you_mean(name, known)}" for name in given if name not in known]
    if unknown:
        raise failure(
            ValueError,
            operation,
            f"unknown fields {', '.join(unknown)}",
            expected=f"some of {', '.join(known)}",
            fix="correct them",
        )


def config_of(
    operation: str,
    config: TrainingConfig | None,
    batch: int | None,
    sequence: int | None,
    given: Mapping[str, Any],
) -> TrainingConfig:
    """Returns the configuration of a run, from a TrainingConfig or from its fields.

    Several chunks without a schedule mean the interleaved one.
    """
    if config is None:
        check_given(operation, batch, sequence)
        check_fields(operation, given)
        chunks = given.get("chunks", 1)
        is_interleaved = isinstance(chunks, int) and chunks > 1
        usual = {"schedule": "interleaved"} if is_interleaved else {}
        values: dict[str, Any] = {"batch": batch, "sequence": sequence, **usual, **given}
        return TrainingConfig(**values)
    check_type(operation, "config", config, TrainingConfig, "a TrainingConfig", "write batch=512, sequence=8192")
    both = [name for name, value in (("batch", batch), ("sequence", sequence)) if value is not None]
    if both or given:
        raise failure(
            TypeError,
            operation,
            f"config and {', '.join([*both, *given])} are given",
            expected="a TrainingConfig or its fields",
            fix="write config.replaced(...), or leave config out",
        )
    return config
