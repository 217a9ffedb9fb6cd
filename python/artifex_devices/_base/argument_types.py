# SPDX-License-Identifier: Apache-2.0
"""Types of the arguments that NumPy's functions share, for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._core import Array

Axes: TypeAlias = int | Sequence[int] | None
Shape: TypeAlias = int | Sequence[int]
Out: TypeAlias = NDArray[Any] | tuple[NDArray[Any]] | None
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
FourierNorm: TypeAlias = Literal["backward", "ortho", "forward"] | None

# An operand that functions have converted: the two have most attributes in common.
Operand: TypeAlias = Array | np.ndarray[Any, Any]

# A part of an index of an array, and an index.
Selection: TypeAlias = SupportsIndex | slice | EllipsisType | ArrayLike | None
Index: TypeAlias = Selection | tuple[Selection, ...]


class SupportsDLPack(Protocol):
    """An array of any library with DLPack."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...
