# SPDX-License-Identifier: Apache-2.0
"""Worlds of simulated devices: `with simulate(8): ...`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from artifex_devices import _core
from artifex_devices._base.checks import check_bool, check_callable, check_int, check_type, wrong_value
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr

_GPUS = re.compile(r"\s*([0-9]{1,18})\s*x\s*([^\s0-9].*?)\s*", re.IGNORECASE)  # "4 x h100"
_F = TypeVar("_F", bound=Callable[..., Any])


@public("artifex_devices")
class simulate(_core._WorldScope):  # noqa: N801 - used like a function
    """Opens a world of CPU devices or emulated GPUs for a `with` block, a decorated function or a pytest fixture.

    The devices share this machine's cores and memory. The memory of an emulated GPU is its own, as on a GPU: the host
    reads it only by a transfer, such as `device_get`. Worlds nest and are left in reverse order; threads of the user
    start in the base world. Arrays keep their world alive: they can be read and moved after the block, but not mixed
    with arrays of another world.

    Args:
        world: The number of devices (8 or "8"); nodes and devices of each ("2 nodes x 4"); an hwloc synthetic
            description ("pack:2 numa:2 core:4 pu:2") or the path of an hwloc XML file, with one device for each CPU
            domain; GPUs of the catalogue ("4 x h100"), which are emulated; a Machine; or a Cluster
            (artifex_devices.cluster), whose devices are always compile-only.
        bytes_limit: Bytes that arrays may hold on each device; None for no limit.
        compile_only: Whether the devices have no memory, for planning: placing data on them raises RuntimeError.
        all_threads: Whether it becomes the base world of all threads. Only one at a time.
        platform: "cpu", or "gpu" for emulated GPUs; None for "cpu" unless `world` names GPUs.

    Raises:
        ValueError: The description is malformed, the number is not positive, the file is not hwloc XML, or the platform
            is unknown or does not fit `world`.
        FileNotFoundError: The file does not exist.
        TypeError: `world` is of another type.
        RuntimeError: Worlds are left out of order, or all_threads=True is active already.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate("2 nodes x 4"):
        ...     ad.device_count(), ad.devices()[7].numa_nodes
        (8, [1])
        >>> with ad.simulate("4 x h100"):
        ...     ad.devices("gpu")[3], ad.devices()[3].device_kind
        (GpuDevice(id=3), 'NVIDIA H100 80GB HBM3')
    """

    def __init__(
        self,
        world: int | str | _core.Machine | _core.Cluster,
        *,
        bytes_limit: int | None = None,
        compile_only: bool = False,
        all_threads: bool = False,
        platform: str | None = None,
    ) -> None:
        cluster = world if isinstance(world, _core.Cluster) else None
        gpus = _GPUS.fullmatch(world) if isinstance(world, str) else None
        device_kind = None if gpus is None else gpus[2]
        platform = _platform(world, platform, gpus is not None)
        count = world if gpus is None else int(gpus[1])
        machine, num_devices = (None, None) if isinstance(count, _core.Cluster) else _machine_and_count(count)
        if bytes_limit is not None:
            fix = "write 2**30, or None for no limit"
            check_int("simulate", "bytes_limit", bytes_limit, fix, minimum=0, maximum=2**63 - 1)
        for name, flag in (("compile_only", compile_only), ("all_threads", all_threads)):
            check_bool("simulate", name, flag, "leave it out for False")
        if bytes_limit is not None and cluster is not None:
            raise ValueError(
                "simulate: bytes_limit is given for a Cluster, whose devices hold no arrays; expected None; leave it "
                "out"
            )
        new_client = (
            functools.partial(
                _core._make_client,
                machine,
                num_devices,
                bytes_limit,
                compile_only,
                platform=platform,
                device_kind=device_kind,
            )
            if cluster is None
            else functools.partial(_core._client_of_cluster, cluster)
        )
        super().__init__(new_client, all_threads)

    if TYPE_CHECKING:  # in C++, so that Ctrl-C cannot come between the opening of a world and its block

        def __enter__(self) -> _core.Client:
            """Creates the world and returns its client."""

    def __call__(self, function: _F) -> _F:
        """Decorates a function so that each call runs in a new world."""
        fix = "write @simulate(8) above it, or `with simulate(8):`"
        check_callable("simulate", "the decorated object", function, fix=fix)

        @functools.wraps(function)
        def in_world(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_world  # type: ignore[return-value]


def _platform(world: object, platform: str | None, names_gpus: bool) -> str:
    own = world.platform if isinstance(world, _core.Cluster) else "gpu" if names_gpus else None
    if platform is None:
        return own or "cpu"
    check_type("simulate", "platform", platform, str, "'cpu', 'gpu' or None", "write platform='gpu'")
    if platform not in ((own,) if own else ("cpu", "gpu")):
        expected = f"{own!r}, the platform of {safe_repr(world)}" if own else "'cpu' or 'gpu'"
        raise wrong_value("simulate", "platform", platform, expected, "leave it out")
    return platform


def _machine_and_count(world: int | str | _core.Machine) -> tuple[_core.Machine | None, int | None]:
    if isinstance(world, _core.Machine):
        return world, None
    if isinstance(world, str):
        return _core._parse_world(world)
    expected = "a number of devices, a description or a path"
    count = check_int("simulate", "world", world, "write simulate(8)", expected=expected)
    if count >= 2**63:
        raise wrong_value("simulate", "world", count, "up to 2**24 devices", "use fewer")
    return None, count
