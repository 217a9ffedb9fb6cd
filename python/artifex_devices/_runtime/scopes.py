# SPDX-License-Identifier: Apache-2.0
"""Settings for a part of a program: transfer guards, the default device, 64-bit data.

Each is a context manager and a decorator. It acts in the context that enters it (a Python context variable): not in
threads that the user starts, but in the library's own, which run in the context of their caller.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from artifex_devices import _core
from artifex_devices._base.caller import user_stacklevel, warn_user
from artifex_devices._base.public_path import public
from artifex_devices._core import Device

__all__ = [
    "default_device",
    "enable_x64",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
]

_F = TypeVar("_F", bound=Callable[..., Any])


class _Scope:
    """One value for one or more options; holds no state, so it can be entered again, also from other threads."""

    _options: ClassVar[tuple[str, ...]]

    def __init__(self, value: Any) -> None:
        self._value = _core._check_scope(self._options[-1], value, type(self).__name__)

    def __enter__(self) -> None:
        _core._enter_scope(list(self._options), self._value, self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core._leave_scope(list(self._options), self, type(self).__name__)

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def in_scope(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_scope  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value!r})"


@public("artifex_devices")
class transfer_guard_host_to_device(_Scope):  # noqa: N801 - used like a function
    """Says which transfers from the host to a device pass in a `with` block or a decorated function.

    See `transfer_guard`, which says it for every direction.

    Args:
        level: "allow", "log", "disallow", "log_explicit", "disallow_explicit", or None for the process's setting.

    Raises:
        ValueError: It is no level.
        TransferGuardError: At a transfer that the level refuses (a RuntimeError).

    Example:
        >>> import artifex_devices as ad
        >>> with ad.transfer_guard_host_to_device("disallow_explicit"):
        ...     ad.device_put(1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        artifex_devices.errors.TransferGuardError: device_put: disallowed explicit host-to-device transfer of a ...
    """

    _options = ("jax_transfer_guard_host_to_device",)

    def __init__(self, level: str | None) -> None:
        """See the class."""
        super().__init__(level)


@public("artifex_devices")
class transfer_guard_device_to_device(_Scope):  # noqa: N801
    """Says which transfers between devices pass in a `with` block or a decorated function.

    See `transfer_guard`, which says it for every direction.

    Args:
        level: As for `transfer_guard_host_to_device`.

    Raises:
        ValueError: It is no level.
        TransferGuardError: At a transfer that the level refuses (a RuntimeError).
    """

    _options = ("jax_transfer_guard_device_to_device",)

    def __init__(self, level: str | None) -> None:
        """See the class."""
        super().__init__(level)


@public("artifex_devices")
class transfer_guard_device_to_host(_Scope):  # noqa: N801
    """Says which transfers from a device to the host pass in a `with` block or a decorated function.

    On CPU devices, as in JAX, reading an Array is no transfer: every level lets it pass, and none logs it.

    Args:
        level: As for `transfer_guard_host_to_device`.

    Raises:
        ValueError: It is no level.
    """

    _options = ("jax_transfer_guard_device_to_host",)

    def __init__(self, level: str | None) -> None:
        """See the class."""
        super().__init__(level)


@public("artifex_devices")
class transfer_guard(_Scope):  # noqa: N801
    """Says which transfers of every direction pass in a `with` block or a decorated function.

    A transfer is explicit where the user asks for it by name (`device_put` and its family), implicit where an operation
    needs it (an ndarray given to an operation on Arrays, `make_array_from_callback`). Putting an Array where it already
    is, is none.

    Args:
        level: "allow" (the default); "log" and "disallow" log or refuse implicit transfers; "log_explicit" and
            "disallow_explicit" the explicit ones too; None for the process's setting. Logged is to the logger
            "artifex_devices" as a warning.

    Raises:
        ValueError: It is no level.
        TransferGuardError: At a transfer that the level refuses (a RuntimeError).

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

    def __init__(self, level: str | None) -> None:
        """See the class."""
        super().__init__(level)


@public("artifex_devices")
class default_device(_Scope):  # noqa: N801
    """Says where data without a place of its own goes in a `with` block or a decorated function.

    It does not commit the data, and changes neither `devices()` nor `make_mesh`. It acts in the world that its device
    belongs to: a world that is opened inside has its own first device.

    Args:
        device: A Device, a platform ("cpu": its first device), or None for the first device.

    Raises:
        ValueError: It is none of these, or, at entering, a Device of another world.
        RuntimeError: At the first placement, when the platform is not there.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2), ad.default_device(ad.devices()[1]):
        ...     x = ad.device_put(1.0)
        >>> x.device, x.committed
        (CpuDevice(id=1), False)
    """

    _options = ("jax_default_device",)

    def __init__(self, device: Device | str | None) -> None:
        """See the class."""
        super().__init__(device)


@public("artifex_devices")
class enable_x64(_Scope):  # noqa: N801
    """Says whether 64-bit host data stays 64-bit when it is placed in a `with` block or a decorated function.

    Arrays that are 64-bit already stay what they are.

    Args:
        new_val: True keeps 64 bits, the default of this library; False narrows to 32 bits, as JAX does by default.

    Raises:
        ValueError: It is neither True nor False.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.enable_x64(False):
        ...     ad.device_put(1.0).dtype
        dtype('float32')
    """

    _options = ("jax_enable_x64",)

    def __init__(self, new_val: bool = True) -> None:
        """See the class."""
        super().__init__(new_val)


def _log_transfer(text: str) -> None:
    """Called by the core for a guard's `log` levels."""
    import logging

    with transfer_guard("allow"):  # a handler that places data itself must not come here again
        logging.getLogger("artifex_devices").warning("%s", text, stacklevel=user_stacklevel())


def _warn_narrowing(text: str) -> None:
    """Called by the core at the first narrowing in the process."""
    warn_user(text)
