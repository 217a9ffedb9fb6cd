# SPDX-License-Identifier: Apache-2.0
"""The default of arguments for which None has another meaning."""

from __future__ import annotations

from typing import Any


class _Unspecified:
    def __repr__(self) -> str:
        return "UNSPECIFIED"


# The default of an argument that the caller has not given. Its repr is part of printed signatures.
UNSPECIFIED: Any = _Unspecified()
