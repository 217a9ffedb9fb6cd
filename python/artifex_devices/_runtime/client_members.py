# SPDX-License-Identifier: Apache-2.0
"""Methods of Client that work on Arrays: heap_profile and buffer_from_pyval, with its HostBufferSemantics."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from artifex_devices._base.checks import check_types, failure, wrong_type
from artifex_devices._base.pickled_enum import PickledEnum
from artifex_devices._base.public_path import public
from artifex_devices._base.raised_exceptions import set_attribute
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array, Client, Device
from artifex_devices._core.internal import creation_line, put_leaf
from artifex_devices._core.internal import heap_profile as _heap_profile


def heap_profile(client: Client) -> bytes:
    """Implements `Client.heap_profile`."""
    samples = []
    for array in client.live_arrays():
        file, line = creation_line(array) or ("", 0)
        samples += [(device, held, 1, file, line, "") for device, held in _bytes_by_device(array)]
    return _heap_profile(samples, time.time_ns())


def _bytes_by_device(array: Array) -> Iterator[tuple[str, int]]:
    """Yields devices and logical bytes, as `Memory.stats()` of the Array's kind counts them."""
    for device, index in array.sharding.addressable_devices_indices_map(array.shape).items():
        sizes = [len(range(*part.indices(size))) for part, size in zip(index, array.shape, strict=True)]
        yield str(device), math.prod(sizes) * array.itemsize


@public("artifex_devices.xla_client")
class HostBufferSemantics(PickledEnum):
    """Semantics of a host array's memory: how, and for how long, the library may read or use it."""

    IMMUTABLE_ONLY_DURING_CALL = 0
    """It is read before the call returns."""
    IMMUTABLE_UNTIL_TRANSFER_COMPLETES = 1
    """It may be read until the Array is ready. Here, too, it is read before the call returns."""
    ZERO_COPY = 2
    """The Array uses the memory of a dense ndarray, which becomes read-only and stays alive with the Array."""


def buffer_from_pyval(
    client: Client,
    argument: object,
    device: Any = None,
    force_copy: object = False,
    host_buffer_semantics: object = None,
) -> Array:
    """Implements `Client.buffer_from_pyval`."""
    operation = "buffer_from_pyval"
    semantics = host_buffer_semantics
    optional, expected = (HostBufferSemantics, type(None)), "a HostBufferSemantics or None"
    rows = (
        ("device", device, (Device, type(None)), "a Device or None"),
        ("force_copy", force_copy, (bool, np.bool_), "True or False"),
        ("host_buffer_semantics", semantics, optional, expected),
    )
    check_types(operation, rows, "leave out unneeded arguments")
    if argument is None or isinstance(argument, (list, tuple, dict)):
        fix = "place trees by device_put, or write np.asarray(...)"
        raise wrong_type(operation, "argument", argument, "one array or number", fix)
    if device is not None and device.client is not client:
        raise failure(
            ValueError,
            operation,
            "device belongs to another client",
            expected=f"one of {client.devices()!r}",
            got=f"{safe_repr(device)} of {device.client!r}",
            fix="take it from client.devices()",
        )
    aliases = semantics is HostBufferSemantics.ZERO_COPY and not force_copy
    may_alias = True if aliases else False if force_copy else None
    try:
        placed: Array = put_leaf(argument, client.devices()[0] if device is None else device, False, may_alias)
    except Exception as error:  # the same object, with the name of this operation
        if error.args and isinstance(error.args[0], str):
            text = error.args[0].replace("device_put:", f"{operation}:", 1)
            set_attribute(error, "args", (text, *error.args[1:]))
        raise
    return placed
