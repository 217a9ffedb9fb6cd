# SPDX-License-Identifier: Apache-2.0
"""Which devices there are."""

from __future__ import annotations

import operator

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Client, Device

__all__ = [
    "check_backend",
    "client_of",
    "default_backend",
    "device_count",
    "devices",
    "host_count",
    "host_id",
    "host_ids",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]

_ABSENT = frozenset({"gpu", "cuda", "rocm", "tpu", "metal", "oneapi"})


def devices(backend: str | Client | None = None) -> list[Device]:
    """All devices of the current world, in order of id: those of all processes.

    Args:
        backend: None or "cpu"; or a Client, for the devices of that world.

    Returns:
        A new list of Device.

    Raises:
        RuntimeError: There is no such backend; the text says which there are, and why not this one.
        TypeError: `backend` is no text.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    return client_of("devices", backend).devices()


def local_devices(process_index: int | None = None, backend: str | Client | None = None) -> list[Device]:
    """The devices of one process.

    Args:
        process_index: None for this process.
        backend: As for `devices`.

    Raises:
        ValueError: There is no such process.
        TypeError: process_index is no integer.
        RuntimeError: There is no such backend.
    """
    client = client_of("local_devices", backend)
    if process_index is None:
        return client.local_devices()
    try:
        number = operator.index(process_index)
    except TypeError:
        raise TypeError(
            f"local_devices: process_index is of type {type(process_index).__name__}; expected an int or None, got "
            f"{shown(process_index)}; name a backend by local_devices(backend='cpu')"
        ) from None
    if not 0 <= number < client.process_count():
        expected = "0, the only one" if client.process_count() == 1 else f"0 to {client.process_count() - 1}"
        raise ValueError(
            f"local_devices: process_index names no process; expected {expected}, got {process_index}; leave it out "
            "for this process"
        )
    return client.local_devices(number)


def device_count(backend: str | Client | None = None) -> int:
    """Number of all devices, in all processes; RuntimeError for a backend that is not there."""
    return client_of("device_count", backend).device_count()


def local_device_count(backend: str | Client | None = None) -> int:
    """Number of devices of this process; RuntimeError for a backend that is not there."""
    return client_of("local_device_count", backend).local_device_count()


def process_count(backend: str | Client | None = None) -> int:
    """Number of processes that share the world; RuntimeError for a backend that is not there."""
    return client_of("process_count", backend).process_count()


def process_index(backend: str | Client | None = None) -> int:
    """Number of this process, from 0; RuntimeError for a backend that is not there."""
    return client_of("process_index", backend).process_index()


def process_indices(backend: str | Client | None = None) -> list[int]:
    """Numbers of all processes; RuntimeError for a backend that is not there."""
    return list(range(client_of("process_indices", backend).process_count()))


def host_count(backend: str | Client | None = None) -> int:
    """The older name of process_count."""
    return client_of("host_count", backend).process_count()


def host_id(backend: str | Client | None = None) -> int:
    """The older name of process_index."""
    return client_of("host_id", backend).process_index()


def host_ids(backend: str | Client | None = None) -> list[int]:
    """The older name of process_indices."""
    return list(range(client_of("host_ids", backend).process_count()))


def default_backend() -> str:
    """Name of the backend that is used when none is named: "cpu".

    Example:
        >>> import artifex_devices as ad
        >>> ad.default_backend()
        'cpu'
    """
    return _core._current_client().platform


def check_backend(operation: str, backend: str | None) -> None:
    """Raises RuntimeError for a backend that is not there, TypeError for what is no text."""
    if backend is None:
        return
    if not isinstance(backend, str):
        raise TypeError(
            f"{operation}: backend is of type {type(backend).__name__}; expected the name of a backend, "
            f"got {shown(backend)}; write 'cpu' or leave it out"
        )
    client = _core._client_of_named_platform()
    if backend == client.platform:
        return
    if backend in _ABSENT:
        why = f"no {backend} backend is built into this package"
    elif backend.lower() == "cpu":
        why = "names are written in lower case"
    else:
        why = "no backend has this name"
    there = f"{client.platform} ({client.device_count()} devices)"
    raise RuntimeError(
        f"{operation}: unknown or absent backend {shown(backend)}: {why}; expected one of: {there}; leave it out to "
        f"use {client.platform}"
    )


def client_of(operation: str, backend: str | Client | None) -> Client:
    """The client of a backend; of the calling context without one. RuntimeError for a backend that is not there."""
    if isinstance(backend, Client):
        return backend
    if backend is None:
        return _core._current_client()
    check_backend(operation, backend)
    return _core._client_of_named_platform()
