# SPDX-License-Identifier: Apache-2.0
"""Which devices there are."""

from __future__ import annotations

from artifex_devices import _core
from artifex_devices._core import Device

__all__ = [
    "default_backend",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
]


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the current world, in order of id.

    Args:
        backend: None or "cpu".

    Returns:
        A new list of Device.

    Raises:
        RuntimeError: There is no such backend; the text says which there are.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     ad.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    _check_backend("devices", backend)
    return _core._devices()


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """The devices of one process; this is process 0, and there is no other.

    Args:
        process_index: None for this process.
        backend: None or "cpu".

    Raises:
        ValueError: There is no such process.
        RuntimeError: There is no such backend.
    """
    if process_index not in (None, 0):
        raise ValueError(
            f"local_devices: process_index names no process; expected 0, the only one, got {process_index}; "
            "leave it out"
        )
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Number of all devices; RuntimeError for a backend that is not there."""
    _check_backend("device_count", backend)
    return _core._device_count()


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process; RuntimeError for a backend that is not there."""
    _check_backend("local_device_count", backend)
    return _core._device_count()


def process_count(backend: str | None = None) -> int:
    """Number of processes: 1; RuntimeError for a backend that is not there."""
    _check_backend("process_count", backend)
    return 1


def process_index(backend: str | None = None) -> int:
    """Number of this process: 0; RuntimeError for a backend that is not there."""
    _check_backend("process_index", backend)
    return 0


def default_backend() -> str:
    """Name of the backend that is used when none is named: "cpu"."""
    return _core._current_client().platform


def _check_backend(operation: str, backend: str | None) -> None:
    if backend is not None and backend != "cpu":
        raise RuntimeError(
            f"{operation}: unknown or absent backend {backend!r}; expected one of: cpu; no other backend is built in; "
            f"leave it out to use cpu"
        )
