# SPDX-License-Identifier: Apache-2.0
"""disable_jit: a scope of JAX that has nothing to disable here."""

from __future__ import annotations

import contextlib

from artifex_devices._base.checks import check_bool
from artifex_devices._base.public_path import public


@public("artifex_devices")
class disable_jit(contextlib.ContextDecorator):  # noqa: N801 - used like a function
    """Does nothing, in a `with` block or as a decorator: `jit` does not compile, so print and pdb work in any function.

    Args:
        disable: As in JAX; without effect.

    Raises:
        TypeError: `disable` is not a bool.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.disable_jit():
        ...     ad.jit(lambda x: x + 1)(1)
        Array(2, dtype=int64)
    """

    def __init__(self, disable: bool = True) -> None:
        self._disable = check_bool("disable_jit", "disable", disable)

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, *_: object) -> None:
        """Does nothing."""

    def __repr__(self) -> str:
        return f"disable_jit({self._disable})"
