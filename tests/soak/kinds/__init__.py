# SPDX-License-Identifier: Apache-2.0
"""The kinds of steps: how each is drawn, written as Python, and what it must do.

A step is plain data, {"kind": ..., names and numbers}. Its text is the same for both libraries: `L` is the library's
top module, `np` its NumPy (jax.numpy for JAX), `onp` NumPy itself.
"""

import importlib
from typing import ClassVar

from soak.model import Outcome


class Kind:
    """One kind of steps; subclasses register themselves by their name."""

    ALL: ClassVar[dict] = {}
    name = ""
    weight = 4  # how often it is drawn, against the others
    jax = True
    nested = True  # whether it may stand inside a thread or a world

    def __init_subclass__(cls):
        if cls.name:
            Kind.ALL[cls.name] = cls()

    def draw(self, dice, state):
        """A step, or None where nothing fits."""
        raise NotImplementedError

    def lines(self, step, library):
        """Its Python text."""
        raise NotImplementedError

    def expect(self, step, state) -> Outcome:
        """What it must do; changes nothing but what deletes."""
        raise NotImplementedError


for module in (
    "sources",
    "placing",
    "elementwise",
    "reductions",
    "mapping",
    "calls",
    "copies",
    "expressions",
    "enclosed",
):
    importlib.import_module(f"soak.kinds.{module}")
