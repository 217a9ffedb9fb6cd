# SPDX-License-Identifier: Apache-2.0
"""The programs whose settings a plan can be written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType

from artifex_devices.planner.training.code import deepspeed, maxtext, megatron, torchtitan
from artifex_devices.planner.training.plan import TrainingPlan

#: Modules by the name of their program.
PROGRAMS: Mapping[str, ModuleType] = MappingProxyType(
    {"megatron": megatron, "maxtext": maxtext, "torchtitan": torchtitan, "deepspeed": deepspeed}
)


def fields_of_search(program: str) -> Mapping[str, object]:
    """Returns fields that a search for a program pins, so that the program can run what is found."""
    fields: Mapping[str, object] = PROGRAMS[program].SEARCH
    return fields


def problem_in(program: str, plan: TrainingPlan) -> str | None:
    """Returns why a program cannot run a plan, as a sentence, or None if it can."""
    find: Callable[[TrainingPlan], str | None] = PROGRAMS[program].problem
    return find(plan)


def settings_for(operation: str, program: str, plan: TrainingPlan) -> str:
    """Returns the settings of a program that run a plan; raises ValueError if it cannot run it."""
    problem = problem_in(program, plan)
    if problem is not None:
        raise ValueError(f"{operation}: {problem}")
    write: Callable[[TrainingPlan], str] = PROGRAMS[program].settings
    return write(plan)
