# SPDX-License-Identifier: Apache-2.0
"""Devices and processes of the current world."""

from __future__ import annotations

from artifex_devices._base.checks import check_int, check_str, failure, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Client, Device, internal

_CUDA = ("gpu", "cuda")
_ABSENT = frozenset({"rocm", "tpu", "metal", "oneapi"})


def devices(backend: str | Client | None = None) -> list[Device]:
    """Returns all devices of the current world, in all processes, ordered by id.

    Args:
        backend: None for the world's own platform; "cpu", which exists in worlds of emulated GPUs too; "gpu" in a world
            of GPUs, or, outside of `simulate`, for this machine's GPUs through CUDA ("cuda" too); or a Client, for the
            devices of that world.

    Returns:
        A new list of Device.

    Raises:
        RuntimeError: The backend is not available; the text says why, and lists the available ones.
        TypeError: `backend` is not a str.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    return client_of("devices", backend).devices()


def local_devices(process_index: int | None = None, backend: str | Client | None = None) -> list[Device]:
    """Returns the devices of one process.

    Args:
        process_index: None for this process.
        backend: As for `devices`.

    Raises:
        ValueError: process_index is not the number of a process.
        TypeError: process_index is not an integer.
        RuntimeError: The backend is not available.
    """
    client = client_of("local_devices", backend)
    if process_index is None:
        return client.local_devices()
    fix = "name a backend by local_devices(backend='cpu')"
    number = check_int("local_devices", "process_index", process_index, fix, expected="an int or None")
    if not 0 <= number < client.process_count():
        expected = "0, the only one" if client.process_count() == 1 else f"0 to {client.process_count() - 1}"
        raise wrong_value("local_devices", "process_index", number, expected, "leave it out for this process")
    return client.local_devices(number)


def device_count(backend: str | Client | None = None) -> int:
    """Returns the number of devices of all processes.

    Raises:
        RuntimeError: The backend is not available.
    """
    return client_of("device_count", backend).device_count()


def local_device_count(backend: str | Client | None = None) -> int:
    """Returns the number of devices of this process.

    Raises:
        RuntimeError: The backend is not available.
    """
    return client_of("local_device_count", backend).local_device_count()


def process_count(backend: str | Client | None = None) -> int:
    """Returns the number of processes of the world.

    Raises:
        RuntimeError: The backend is not available.
    """
    return client_of("process_count", backend).process_count()


def process_index(backend: str | Client | None = None) -> int:
    """Returns the number of this process, from 0.

    Raises:
        RuntimeError: The backend is not available.
    """
    return client_of("process_index", backend).process_index()


def process_indices(backend: str | Client | None = None) -> list[int]:
    """Returns the numbers of all processes; RuntimeError for a backend that is not available."""
    return list(range(client_of("process_indices", backend).process_count()))


def host_count(backend: str | Client | None = None) -> int:
    """Returns process_count(). This is its older name."""
    return client_of("host_count", backend).process_count()


def host_id(backend: str | Client | None = None) -> int:
    """Returns process_index(). This is its older name."""
    return client_of("host_id", backend).process_index()


def host_ids(backend: str | Client | None = None) -> list[int]:
    """Returns process_indices(). This is its older name."""
    return list(range(client_of("host_ids", backend).process_count()))


def default_backend() -> str:
    """Returns the name of the default backend: "cpu".

    Example:
        >>> import artifex_devices as ad
        >>> ad.default_backend()
        'cpu'
    """
    return internal.current_client().platform


def client_of(operation: str, backend: str | Client | None) -> Client:
    """Returns the client of a backend, or of the calling context; RuntimeError for a backend that is not available."""
    if isinstance(backend, Client):
        return backend
    if backend is None:
        return internal.current_client()
    check_str(operation, "backend", backend, "write 'cpu' or leave it out", expected="the name of a backend")
    found = internal.client_of_platform(backend)
    if found is not None:
        return found
    client = internal.client_of_named_platform()
    if backend in _CUDA:
        reason = _why_no_gpu(client)
    elif backend in _ABSENT:
        reason = f"no {backend} backend is built into this package"
    elif backend.lower() == "cpu":
        reason = "names are written in lower case"
    else:
        reason = "no backend has this name"
    available = f"{client.platform} ({client.device_count()} devices)"
    if client.platform != "cpu" and not client.is_compile_only:
        available += ", cpu"
    raise failure(
        RuntimeError,
        operation,
        f"unknown or absent backend {safe_repr(backend)}: {reason}",
        expected=f"one of: {available}",
        fix=f"leave it out to use {client.platform}",
    )


def _why_no_gpu(current: Client) -> str:
    report = internal.cuda_report()
    if report["problem"]:
        return f"CUDA is not usable: {report['problem']}; {report['fix']}"
    return f"the current world has {current.platform} devices in place of the GPUs of this machine"
