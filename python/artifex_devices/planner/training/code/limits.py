# SPDX-License-Identifier: Apache-2.0
"""What another program cannot run, as one sentence with the nearest value that it can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields

from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.plan import TrainingPlan

#: Whether the value is beyond the program, the field of the TrainingConfig, the nearest value, and the reason.
Limit = tuple[bool, str, object, str]


def first_problem(program: str, plan: TrainingPlan, shape_fields: Sequence[str], limits: Iterable[Limit]) -> str | None:
    """Returns why a program cannot run a plan, or None.

    Args:
        program: Name and version of the program.
        plan: The plan.
        shape_fields: Fields of the model for which the program has no setting, so that they must be the defaults.
        limits: Limits in the order in which they are checked.
    """
    defaults = {each.name: each.default for each in fields(TransformerShape) if each.default is not MISSING}
    shape = plan.model
    for name in shape_fields:
        if (value := getattr(shape, name)) != defaults[name]:
            return (
                f"{program} cannot run {shape.name}, because it has no setting for {name}={value!r}; "
                f"plan a model with {name}={defaults[name]!r}"
            )
    for is_beyond, name, nearest, reason in limits:
        if is_beyond:
            value = getattr(plan.config, name)
            return (
                f"{program} cannot run {name}={_shown(value)}, because {reason}; plan it with {name}={_shown(nearest)}"
            )
    return None


def stage_limits(plan: TrainingPlan, most_missing: int) -> Iterator[Limit]:
    """Yields the limits of a program whose stages are equal, except for the first and the last.

    Args:
        plan: The plan.
        most_missing: Number of layers by which the first and the last stage together may be shorter than the others.
    """
    config, layers = plan.config, plan.model.layers
    most = "" if most_missing == 0 else ", even if the first and the last stage have a layer less"
    reason = f"it cannot divide {layers} layers equally{most}"

    def fits(stages: int, chunks: int) -> bool:
        return -layers % (stages * chunks) <= most_missing and stages * chunks <= layers

    if not fits(config.pipeline, 1):
        ranks = plan.devices // (config.tensor * config.context)
        possible = [
            stages
            for stages in range(1, layers + 1)
            if ranks % stages == 0
            and config.batch % (ranks // stages * config.microbatch) == 0
            and fits(stages, config.chunks)
        ]
        yield True, "pipeline", min(possible, key=lambda each: (abs(each - config.pipeline), each), default=1), reason
    possible = [chunks for chunks in range(2, layers + 1) if fits(config.pipeline, chunks)]
    nearest = min(possible, key=lambda each: (abs(each - config.chunks), each), default=1)
    yield not fits(config.pipeline, config.chunks), "chunks", nearest, reason


def _shown(value: object) -> str:
    """Formats a value as code."""
    if isinstance(value, Mapping):
        return repr({name: str(each) for name, each in value.items()})
    return repr(value if isinstance(value, (bool, int, float, str, type(None))) else str(value))
