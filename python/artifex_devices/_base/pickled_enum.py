# SPDX-License-Identifier: Apache-2.0
"""The base class of enums: every supported Python pickles their members alike."""

from __future__ import annotations

import enum
from typing import Any


class PickledEnum(enum.Enum):
    """An Enum whose members are pickled as their class and value.

    Python 3.11.0 to 3.11.3 pickle members of other enums by `getattr`, which unpicklers with a list of allowed names
    refuse.
    """

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return type(self), (self.value,)
