# SPDX-License-Identifier: Apache-2.0
"""Worlds of simulated devices: `with simulate(8): ...`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from artifex_devices import _core
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown

__all__ = ["simulate"]

_F = TypeVar("_F", bound=Callable[..., Any])


@public("artifex_devices")
class simulate(_core._WorldScope):  # noqa: N801 - used like a function
    """Opens a world of CPU devices for a `with` block, a decorated function or a pytest fixture.

    The devices share this machine's cores and memory. Worlds nest and are left in reverse order; threads of the user
    start in the base world. Arrays keep their world alive: they can be read and moved after it was left, but not mixed
    with arrays of another.

    Args:
        world: How many devices (8 or "8"); nodes and devices on each ("2 nodes x 4"); an hwloc synthetic description
            ("pack:2 numa:2 core:4 pu:2"), or the path of an hwloc XML file, with one device a CPU domain; or a Machine;
            or a Cluster (artifex_devices.cluster), whose devices are always compile-only.
        bytes_limit: Bytes that arrays may hold on each device; None for no limit.
        compile_only: Devices without memory, to plan with: placing data on them raises RuntimeError.
        all_threads: Make it the base world of all threads. Only one at a time.

    Raises:
        ValueError: The description is malformed, the number is not positive, or the file is no hwloc XML.
        FileNotFoundError: There is no such file.
        TypeError: `world` is of another type.
        RuntimeError: Worlds are left out of order, or all_threads=True is active already.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate("2 nodes x 4"):
        ...     ad.device_count(), ad.devices()[7].numa_nodes
        (8, [1])
    """

    def __init__(
        self,
        world: int | str | _core.Machine | _core.Cluster,
        *,
        bytes_limit: int | None = None,
        compile_only: bool = False,
        all_threads: bool = False,
    ) -> None:
        """See the class."""
        cluster = world if isinstance(world, _core.Cluster) else None
        machine, num_devices = (None, None) if isinstance(world, _core.Cluster) else _machine_and_count(world)
        if bytes_limit is not None:
            if isinstance(bytes_limit, bool) or not hasattr(bytes_limit, "__index__"):
                raise TypeError(
                    f"simulate: bytes_limit is of type {type(bytes_limit).__name__}; expected an int of bytes, got "
                    f"{shown(bytes_limit)}; write 2**30, or None for no limit"
                )
            if not 0 <= operator.index(bytes_limit) < 2**63:
                raise ValueError(
                    f"simulate: bytes_limit is out of range; expected 0 to 2**63 - 1 bytes, got {bytes_limit}; use "
                    "None for no limit"
                )
        for name, flag in (("compile_only", compile_only), ("all_threads", all_threads)):
            if not isinstance(flag, bool):
                raise TypeError(f"simulate: {name} is {shown(flag)}; expected True or False; leave it out for False")
        if bytes_limit is not None and cluster is not None:
            raise ValueError(
                "simulate: bytes_limit is given for a Cluster, whose devices hold no arrays; expected None; leave it "
                "out"
            )
        make = (
            functools.partial(_core._make_client, machine, num_devices, bytes_limit, compile_only)
            if cluster is None
            else functools.partial(_core._client_of_cluster, cluster)
        )
        super().__init__(make, all_threads)

    if TYPE_CHECKING:  # it is C++, where no Ctrl-C comes between the opening of a world and the beginning of its block

        def __enter__(self) -> _core.Client:
            """Makes the world and returns its client."""

    def __call__(self, function: _F) -> _F:
        """Decorates a function so that each call runs in a fresh world."""
        if not callable(function):
            raise TypeError(
                f"simulate: what is decorated is of type {type(function).__name__}; expected a function; write "
                "@simulate(8) above it, or `with simulate(8):`"
            )

        @functools.wraps(function)
        def in_world(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_world  # type: ignore[return-value]


def _machine_and_count(world: int | str | _core.Machine) -> tuple[_core.Machine | None, int | None]:
    if isinstance(world, _core.Machine):
        return world, None
    if isinstance(world, str):
        return _core._parse_world(world)
    if isinstance(world, bool) or not hasattr(world, "__index__"):
        raise TypeError(
            f"simulate: world is of type {type(world).__name__}; expected a number of devices, a description or a "
            f"path, got {shown(world)}; write simulate(8)"
        )
    count = int(world)
    if count >= 2**63:
        raise ValueError(
            f"simulate: the number of devices does not fit 64 bits; expected up to 2**24, got {count}; use fewer"
        )
    return None, count
