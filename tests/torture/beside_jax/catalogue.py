# SPDX-License-Identifier: Apache-2.0
"""All scenarios, by name, in the order of the page."""

import inputs  # noqa: F401
import life  # noqa: F401
import memory  # noqa: F401
import participants  # noqa: F401
import values  # noqa: F401
from scenario import SCENARIOS, Scenario

GROUPS = ("participants", "values", "the life of a process", "memory and sizes", "bad input")

__all__ = ["GROUPS", "SCENARIOS", "Scenario"]
