# SPDX-License-Identifier: Apache-2.0
"""Pickles of Arrays, which multiprocessing loads on the devices of the worker process."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from artifex_devices._base.caller import warn_user
from artifex_devices._core import Array, internal
from artifex_devices._placement.device_put import device_put

_reduced = Array.__reduce__


def reduce_array(self: Array, /) -> tuple[Any, ...]:
    """Returns the value, the sharding and whether it is committed."""
    build, (value, sharding, committed, layout) = _reduced(self)
    # A pool waits forever for a task that its worker cannot unpickle. ForkingPickler.register would do the same, but it
    # needs multiprocessing.reduction, whose import takes 6 ms.
    if sys._getframe(1).f_globals.get("__name__") == "multiprocessing.reduction":
        return from_process, (value, pickle.dumps(sharding), committed, layout)
    return build, (value, sharding, committed, layout)


def from_process(value: Any, sharding: bytes, committed: bool, layout: str | None) -> Array:
    """Returns the Array that another process sent, on its devices, or on the default device if they are missing.

    Args:
        value: Full value.
        sharding: Pickle of its sharding.
        committed: Whether it was committed.
        layout: Text of its layout, or None.

    Returns:
        The Array. A RuntimeWarning names the devices that are missing.
    """
    try:
        placement = pickle.loads(sharding)
    except ValueError as error:
        text = (
            f"multiprocessing: an Array of shape {value.shape} is placed on the default device, because the devices "
            f"that it was sent from are not in this process ({error}); for workers that have them set the environment "
            "variable JAX_NUM_CPU_DEVICES before the pool is created"
        )
        try:
            warn_user(text, RuntimeWarning)
        except RuntimeWarning as warning:  # a filter turns it into an error, which would end the worker
            print(f"RuntimeWarning: {warning}", file=sys.stderr)
        array: Array = device_put(value)
        return array
    received: Array = internal.array_from_pickle(value, placement, committed, layout)
    return received
