# SPDX-License-Identifier: Apache-2.0
"""Looking at how data lies: the names of `jax.debug`."""

from __future__ import annotations

from collections.abc import Sequence

from artifex_devices._core import Array, Sharding, sharding_text

__all__ = ["visualize_array_sharding", "visualize_sharding"]


def visualize_sharding(shape: Sequence[int], sharding: Sharding) -> None:
    """Prints which devices hold which part of an array of `shape`.

    Args:
        shape: Sizes, one int a dimension.
        sharding: How the array would lie.

    Raises:
        ValueError: The sharding does not fit the shape.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     mesh = ad.make_mesh((2,), ("x",))
        ...     ad.debug.visualize_sharding((4,), ad.NamedSharding(mesh, ad.P("x")))  # doctest: +SKIP
    """
    print(sharding_text(sharding, shape))


def visualize_array_sharding(array: Array) -> None:
    """Prints which devices hold which part of `array`.

    Args:
        array: An Array of any rank.
    """
    visualize_sharding(array.shape, array.sharding)
