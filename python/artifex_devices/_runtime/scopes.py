# SPDX-License-Identifier: Apache-2.0
"""Settings for a part of a program: transfer guards, the default device, 64-bit data.

Each is a context manager and a decorator. A Python context variable stores it: it does not apply in threads that the
user starts, but it does in the library's own threads, which run in the context of their caller.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import ClassVar

from artifex_devices._base.caller import user_stacklevel, warn_user
from artifex_devices._base.public_path import public
from artifex_devices._core import Device, internal


class _Scope(contextlib.ContextDecorator):
    """One value for one or more options. It has no state and can be entered again, also from other threads."""

    _options: ClassVar[tuple[str, ...]]

    def __init__(self, value: object) -> None:
        self._value = internal.check_scope(self._options[-1], value, type(self).__name__)
        self._token = object()  # stands for this object in contexts, which do not keep it alive

    def __enter__(self) -> None:
        internal.enter_scope(list(self._options), self._value, self._token)

    def __exit__(self, *_: object) -> None:
        try:
            internal.leave_scope(list(self._options), self._token, type(self).__name__)
        except RuntimeError:  # a generator that was closed in another scope cannot leave its scope later
            weakref.finalize(self, internal.abandon_scope, self._token).atexit = False
            del self  # the traceback must not keep it alive
            raise

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"


class _Guard(_Scope):
    """A level for one or more directions of transfers."""

    def __init__(self, level: str | None) -> None:
        super().__init__(level)


@public("artifex_devices")
class transfer_guard_host_to_device(_Guard):  # noqa: N801 - used like a function
    """Guards transfers from the host to a device in a `with` block or a decorated function; see `transfer_guard`.

    Args:
        level: "allow", "log", "disallow", "log_explicit", "disallow_explicit", or None to use the setting of
            the process.

    Raises:
        ValueError: `level` is not one of these.
        TransferGuardError: At a transfer that is disallowed (a RuntimeError).

    Example:
        >>> import artifex_devices as ad
        >>> with ad.transfer_guard_host_to_device("disallow_explicit"):
        ...     ad.device_put(1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        artifex_devices.errors.TransferGuardError: device_put: disallowed explicit host-to-device transfer of a ...
    """

    _options = ("jax_transfer_guard_host_to_device",)


@public("artifex_devices")
class transfer_guard_device_to_device(_Guard):  # noqa: N801
    """Guards transfers between devices in a `with` block or a decorated function; see `transfer_guard`.

    Args:
        level: As for `transfer_guard_host_to_device`.

    Raises:
        ValueError: `level` is not one of these.
        TransferGuardError: At a transfer that is disallowed (a RuntimeError).
    """

    _options = ("jax_transfer_guard_device_to_device",)


@public("artifex_devices")
class transfer_guard_device_to_host(_Guard):  # noqa: N801
    """Guards transfers from a device to the host in a `with` block or a decorated function; see `transfer_guard`.

    On CPU devices, as in JAX, reading an Array is not a transfer: every level allows it, and none logs it.

    Args:
        level: As for `transfer_guard_host_to_device`.

    Raises:
        ValueError: `level` is not one of these.
    """

    _options = ("jax_transfer_guard_device_to_host",)


@public("artifex_devices")
class transfer_guard(_Guard):  # noqa: N801
    """Guards transfers of all directions in a `with` block or a decorated function.

    `device_put` and its family make explicit transfers. An operation makes implicit transfers if it needs them (for an
    ndarray among the operands of an operation on Arrays, or in `make_array_from_callback`). Putting an Array where it
    is already placed is not a transfer.

    Args:
        level: "allow" (the default); "log" or "disallow" for implicit transfers; "log_explicit" or "disallow_explicit"
            for explicit ones too; None to use the setting of the process. The logger is "artifex_devices", the level
            warning.

    Raises:
        ValueError: `level` is not one of these.
        TransferGuardError: At a transfer that is disallowed (a RuntimeError).

    Example:
        >>> import artifex_devices as ad
        >>> with ad.transfer_guard("disallow"):
        ...     ad.device_put(1.0).is_ready()
        True
    """

    _options = (
        "jax_transfer_guard_host_to_device",
        "jax_transfer_guard_device_to_device",
        "jax_transfer_guard_device_to_host",
        "jax_transfer_guard",
    )


@public("artifex_devices")
class default_device(_Scope):  # noqa: N801
    """Sets the device of data without a target in a `with` block or a decorated function.

    It does not commit the data, and changes neither `devices()` nor `make_mesh`. It applies in the world of its device,
    and a CPU device also in worlds of emulated GPUs whose `devices("cpu")` has it. Other worlds that are opened inside
    have their own first device.

    Args:
        device: A Device, a platform ("cpu": its first device), or None for the first device.

    Raises:
        ValueError: `device` is of another type, or, at entering, a Device of another world.
        RuntimeError: At the first placement, if the platform is not available.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2), ad.default_device(ad.devices()[1]):
        ...     x = ad.device_put(1.0)
        >>> x.device, x.committed
        (CpuDevice(id=1), False)
    """

    _options = ("jax_default_device",)

    def __init__(self, device: Device | str | None) -> None:
        super().__init__(device)


@public("artifex_devices")
class enable_x64(_Scope):  # noqa: N801
    """Sets whether 64-bit host data keeps 64 bits when it is placed in a `with` block or a decorated function.

    64-bit Arrays are not affected.

    Args:
        new_val: True keeps 64 bits, the default of this library; False narrows to 32 bits, as JAX does by default.

    Raises:
        ValueError: `new_val` is neither True nor False.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.enable_x64(False):
        ...     ad.device_put(1.0).dtype
        dtype('float32')
    """

    _options = ("jax_enable_x64",)

    def __init__(self, new_val: bool = True) -> None:
        super().__init__(new_val)


def _log_transfer(text: str) -> None:
    """Logs a transfer; the core calls it for a guard's `log` levels."""
    import logging

    with transfer_guard("allow"):  # a handler that places data must not call this again
        logging.getLogger("artifex_devices").warning("%s", text, stacklevel=user_stacklevel())


def _warn_narrowing(text: str) -> None:
    """Warns that dtypes are narrowed; the core calls it at the first narrowing in the process."""
    warn_user(text)
