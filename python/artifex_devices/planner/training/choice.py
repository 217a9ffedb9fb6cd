# SPDX-License-Identifier: Apache-2.0
"""One configuration that a search finds, and its code."""

from __future__ import annotations

from dataclasses import dataclass

from artifex_devices._base.checks import check_choice
from artifex_devices._base.public_path import public
from artifex_devices.planner.training.code import PROGRAMS, jax_code, mesh_code, problem_in, settings_for
from artifex_devices.planner.training.config import TrainingConfig
from artifex_devices.planner.training.plan import TrainingPlan


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingChoice:
    """One configuration of a search.

    Attributes:
        plan: Its plan.
        same: Configurations that take as long within 1 % and as much memory within 2 %, with the same optimizer.
    """

    plan: TrainingPlan
    same: tuple[TrainingConfig, ...] = ()

    @property
    def config(self) -> TrainingConfig:
        """The configuration."""
        return self.plan.config

    def runs_in(self, program: str) -> bool:
        """Returns whether a program has settings that run this configuration.

        Args:
            program: "megatron", "maxtext", "torchtitan" or "deepspeed".

        Raises:
            ValueError: `program` is another text.

        Example:
            >>> from artifex_devices import cluster, planner
            >>> config = planner.TrainingConfig(batch=8, sequence=4096, pipeline=4, zero=1)
            >>> choice = planner.TrainingChoice(planner.plan_training("llama-3-8b", cluster.dgx("h100"), config))
            >>> choice.runs_in("megatron"), choice.runs_in("deepspeed")
            (True, False)
        """
        check_choice("TrainingChoice.runs_in", "program", program, tuple(PROGRAMS))
        return problem_in(program, self.plan) is None

    def to_mesh_code(self) -> str:
        """Returns Python code of a mesh, the shapes of the parameters and their PartitionSpecs for this library.

        Raises:
            ValueError: The model has parameters that its sizes do not describe.
        """
        return mesh_code(self.plan)

    def to_jax_code(self) -> str:
        """Returns Python code of a mesh, the shapes of the parameters and their PartitionSpecs for JAX.

        Raises:
            ValueError: The model has parameters that its sizes do not describe.
        """
        return jax_code(self.plan)

    def to_megatron_flags(self) -> str:
        """Returns command-line options of Megatron-LM.

        Raises:
            ValueError: Megatron-LM cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_megatron_flags", "megatron", self.plan)

    def to_maxtext_flags(self) -> str:
        """Returns command-line settings of MaxText.

        Raises:
            ValueError: MaxText cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_maxtext_flags", "maxtext", self.plan)

    def to_torchtitan_toml(self) -> str:
        """Returns a configuration file of torchtitan.

        Raises:
            ValueError: torchtitan cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_torchtitan_toml", "torchtitan", self.plan)

    def to_deepspeed_json(self) -> str:
        """Returns a configuration file of DeepSpeed. The model's code decides where it recomputes activations.

        Raises:
            ValueError: DeepSpeed cannot run the configuration; the message has the nearest value that it can.
        """
        return settings_for("TrainingChoice.to_deepspeed_json", "deepspeed", self.plan)
