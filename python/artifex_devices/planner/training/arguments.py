# SPDX-License-Identifier: Apache-2.0
"""Arguments that the functions of training runs share."""

from __future__ import annotations

from artifex_devices._base.checks import check_type, failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Cluster
from artifex_devices.planner.shape import SHAPES, TransformerShape
from artifex_devices.planner.training.efficiency import Efficiency


def checked_shape(operation: str, shape: object) -> TransformerShape:
    """Returns a shape for a name of `models.SHAPES`, in any case, or a shape."""
    if isinstance(shape, str):
        if shape.lower() not in SHAPES:
            raise failure(
                ValueError,
                operation,
                f"shape is {safe_repr(shape)}{did_you_mean(shape, SHAPES)}",
                expected=f"one of {', '.join(SHAPES)}",
                fix="or give a TransformerShape",
            )
        return SHAPES[shape.lower()]
    if not isinstance(shape, TransformerShape):
        raise wrong_type(operation, "shape", shape, "a name or a TransformerShape", "write 'llama-2-7b'")
    return shape


def checked_efficiency(operation: str, efficiency: Efficiency | None, cluster: Cluster) -> Efficiency:
    """Returns the factors, or the published ones of the cluster for None."""
    if efficiency is None:
        return Efficiency.of(cluster)
    check_type(operation, "efficiency", efficiency, Efficiency, "an Efficiency or None", "write Efficiency.of(cluster)")
    checked: Efficiency = efficiency
    return checked
