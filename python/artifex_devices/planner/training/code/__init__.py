# SPDX-License-Identifier: Apache-2.0
"""Plans of training runs as code for this library and JAX, and as settings of other programs."""

from artifex_devices.planner.training.code.programs import PROGRAMS, fields_of_search, problem_in, settings_for
from artifex_devices.planner.training.code.python_code import jax_code, mesh_code

__all__ = ["PROGRAMS", "fields_of_search", "jax_code", "mesh_code", "problem_in", "settings_for"]
