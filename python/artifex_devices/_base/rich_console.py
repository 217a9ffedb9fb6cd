# SPDX-License-Identifier: Apache-2.0
"""Consoles of rich, which the variable NO_COLOR makes plain: no colour, and no bold and dim letters either."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def rich_console(**options: Any) -> Console:
    """Creates a console; ImportError without rich."""
    from rich.console import Console

    return Console(color_system=None if os.environ.get("NO_COLOR") else "auto", **options)
