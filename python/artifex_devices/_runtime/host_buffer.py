# SPDX-License-Identifier: Apache-2.0
"""Arrays of a client from host memory: HostBufferSemantics, and what Client.buffer_from_pyval does."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, Client, Device, _put_leaf

__all__ = ["HostBufferSemantics", "buffer_from_pyval"]


@public("artifex_devices.xla_client")
class HostBufferSemantics(PickledEnum):
    """What the library may do with the memory of a host array that it is given, and for how long."""

    IMMUTABLE_ONLY_DURING_CALL = 0
    """It is read before the call returns."""
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    """It may be read until the Array is ready. Here it is read before the call returns, too."""
    ZERO_COPY = 2
    """A dense ndarray is shown as it is: it becomes read-only and stays alive with the Array."""


def buffer_from_pyval(
    client: Client,
    argument: Any,
    device: Any = None,
    force_copy: Any = False,
    host_buffer_semantics: Any = None,
) -> Array:
    """`client.buffer_from_pyval`, where it is documented."""
    operation = "buffer_from_pyval"
    wrong = []
    if device is not None and not isinstance(device, Device):
        wrong.append(f"device is of type {type(device).__name__}, expected a Device or None, got {shown(device)}")
    if not isinstance(force_copy, (bool, np.bool_)):
        wrong.append(f"force_copy is of type {type(force_copy).__name__}, expected a bool, got {shown(force_copy)}")
    if host_buffer_semantics is not None and not isinstance(host_buffer_semantics, HostBufferSemantics):
        wrong.append(
            f"host_buffer_semantics is of type {type(host_buffer_semantics).__name__}, expected a HostBufferSemantics "
            f"or None, got {shown(host_buffer_semantics)}"
        )
    if wrong:
        raise TypeError(f"{operation}: {'; '.join(wrong)}; leave out what is not needed")
    if argument is None or isinstance(argument, (list, tuple, dict)):
        raise TypeError(
            f"{operation}: argument is of type {type(argument).__name__}; expected one array or number, got "
            f"{shown(argument)}; place trees by device_put, or write np.asarray(...)"
        )
    if device is not None and device.client is not client:
        raise ValueError(
            f"{operation}: device belongs to another client; expected one of {client.devices()!r}, got {shown(device)} "
            f"of {device.client!r}; take it from client.devices()"
        )
    aliases = host_buffer_semantics is HostBufferSemantics.ZERO_COPY and not force_copy
    may_alias = True if aliases else False if force_copy else None
    try:
        placed: Array = _put_leaf(argument, client.devices()[0] if device is None else device, False, may_alias)
    except Exception as error:  # the same object, by the name of the call that was made
        if error.args and isinstance(error.args[0], str):
            error.args = (error.args[0].replace("device_put:", f"{operation}:", 1), *error.args[1:])
        raise
    return placed
