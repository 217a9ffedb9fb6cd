# SPDX-License-Identifier: Apache-2.0
"""Worlds of simulated devices: `with simulate(8): ...`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from artifex_devices import _core
from artifex_devices._base.caller import warn_user
from artifex_devices._base.checks import check_bool, check_callable, check_int, check_type, failure, wrong_value
from artifex_devices._base.public_path import public
from artifex_devices._base.refused_arguments import hides_unknown, missing_argument, unknown_argument
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import internal
from artifex_devices._runtime.process_clients import clients_of

_F = TypeVar("_F", bound=Callable[..., Any])


@public("artifex_devices")
class simulate(internal.WorldScope):  # noqa: N801 - used like a function
    """Opens a world of CPU devices or emulated GPUs for a `with` block, a decorated function or a pytest fixture.

    The devices share this machine's cores and memory. The memory of an emulated GPU is its own, as on a GPU: the host
    reads it only by a transfer, such as `device_get`. Worlds nest and are left in reverse order; threads of the user
    start in the base world. Arrays keep their world alive: they can be read and moved after the block, but not mixed
    with arrays of another world.

    Args:
        world: The number of devices (8 or "8"); nodes and devices of each ("2 nodes x 4"); an hwloc synthetic
            description ("pack:2 numa:2 core:4 pu:2") or the path of an hwloc XML file, with one device for each CPU
            domain; GPUs of the catalogue ("4 x h100"), which are emulated; a Machine; a Cluster
            (artifex_devices.cluster), whose devices are always compile-only; or, for GPUs together with CPU devices, a
            dict such as {"cpu": 2, "gpu": 4} or {"cpu": 2, "gpu": "4 x h100"}. The GPUs are then the default.
        bytes_limit: Bytes that arrays may hold on each device, or None for no limit.
        compile_only: Whether the devices have no memory, for planning: placing data on them raises RuntimeError.
        all_threads: Whether it becomes the base world of all threads. Only one at a time.
        platform: "cpu", or "gpu" for emulated GPUs. By default "cpu" unless `world` names GPUs.
        seed: A number from which the order of copies between devices, and of asynchronous copies to the host, is drawn,
            to test that every read waits for its copy: the copies run as late as possible, when a thread waits, and
            memory that waits for a copy is filled with a pattern. By default copies run in the background.
        processes: Number of processes, each on a separate host, that have equal numbers of the devices; for code that
            chooses meshes and shardings by `process_index`. This process is number 0 and holds data on its own devices
            only. `testing.run_processes` runs a program in all of them. `world` is then a number of devices, and only
            `all_threads` and `platform` may be given too.

    Raises:
        ValueError: The description is malformed, the number is not positive, the file is not hwloc XML, or the platform
            is unknown or does not fit `world`.
        FileNotFoundError: The file does not exist.
        TypeError: `world` is of another type.
        RuntimeError: Worlds are left out of order, or all_threads=True is active already. A world that was left out of
            order stays open until it is left again, or until the object that opened it is released.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate("2 nodes x 4"):
        ...     ad.device_count(), ad.devices()[7].numa_nodes
        (8, [1])
        >>> with ad.simulate("4 x h100"):
        ...     ad.devices("gpu")[3], ad.devices()[3].device_kind
        (GpuDevice(id=3), 'NVIDIA H100 80GB HBM3')
        >>> with ad.simulate({"cpu": 2, "gpu": 4}):
        ...     ad.device_count(), ad.devices("cpu")
        (4, [CpuDevice(id=0), CpuDevice(id=1)])
        >>> with ad.simulate(4, processes=2):
        ...     [device.process_index for device in ad.devices()], ad.local_devices()
        ([0, 0, 1, 1], [CpuDevice(id=0), CpuDevice(id=1)])
    """

    @hides_unknown
    def __init__(
        self,
        world: int | str | _core.Machine | _core.Cluster | Mapping[str, int | str] = UNSPECIFIED,
        *,
        bytes_limit: int | None = None,
        compile_only: bool = False,
        all_threads: bool = False,
        platform: str | None = None,
        seed: int | None = None,
        processes: int | None = None,
        **_unknown: NoReturn,
    ) -> None:
        if _unknown:
            raise unknown_argument("simulate", _unknown)
        if world is UNSPECIFIED:
            raise missing_argument("simulate", "world")
        for name, flag in (("compile_only", compile_only), ("all_threads", all_threads)):
            check_bool("simulate", name, flag, "leave it out for False")
        if seed is not None:
            check_int("simulate", "seed", seed, "write seed=7", minimum=0, maximum=2**64 - 1)
        if processes is not None:
            others = {"bytes_limit": bytes_limit, "compile_only": compile_only, "seed": seed}
            devices = _devices_of_processes(world, processes, others)
            known = _platform(world, platform, names_gpus=False)
            self._opening = _Opening(world)
            super().__init__(self._opening.recorded(lambda: clients_of(devices, 1, known)[0]), all_threads, None)
            return
        cpus = None  # next to GPUs
        if isinstance(world, Mapping):
            cpus, world, platform = _worlds_by_platform(world, platform, all_threads)
        cluster = world if isinstance(world, _core.Cluster) else None
        machine, num_devices, device_kind = _parts_of_world(world)
        platform = _platform(world, platform, device_kind is not None)
        if bytes_limit is not None:
            fix = "write 2**30, or None for no limit"
            check_int("simulate", "bytes_limit", bytes_limit, fix, minimum=0, maximum=2**63 - 1)
        if bytes_limit is not None and cluster is not None:
            raise failure(
                ValueError,
                "simulate",
                "bytes_limit is given for a Cluster, whose devices hold no arrays",
                expected="None",
                fix="omit it",
            )
        new_client = (
            functools.partial(
                internal.make_client,
                machine,
                num_devices,
                bytes_limit,
                compile_only,
                backend=internal.emulated_gpu_backend(device_kind) if platform == "gpu" else None,
                seed=seed,
            )
            if cluster is None
            else functools.partial(internal.client_of_cluster, cluster)
        )
        new_cpus = None
        if cpus is not None:
            new_cpus = functools.partial(internal.make_client, *cpus, bytes_limit, compile_only, seed=seed)
        self._opening = _Opening(world)
        around = None if new_cpus is None else self._opening.recorded(new_cpus)
        super().__init__(self._opening.recorded(new_client), all_threads, around)

    if TYPE_CHECKING:  # in C++, where Ctrl-C cannot come between the opening of a world and its block

        def __enter__(self) -> _core.Client:
            """Creates the world and returns its client."""

    def __call__(self, function: _F) -> _F:
        """Decorates a function so that each call runs in a new world."""
        fix = "write @simulate(8) above it, or `with simulate(8):`"
        self._opening.is_used = True
        check_callable("simulate", "the decorated object", function, fix=fix)

        @functools.wraps(function)
        def in_world(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_world  # type: ignore[return-value]

    def __del__(self) -> None:
        """Warns of a world that was dropped without a `with` block."""
        opening = vars(self).get("_opening")  # absent where the arguments were refused
        if opening is not None and not opening.is_used and not sys.is_finalizing():
            warn_user(f"simulate: the world was not opened; write `with ad.simulate({opening.text}):` around its code")


class _Opening:
    """Whether a world was used, for the warning when it is dropped."""

    def __init__(self, world: object) -> None:
        self.text = safe_repr(world) if isinstance(world, (int, str)) else "world"
        self.is_used = False

    def recorded(self, make: Callable[[], _core.Client]) -> Callable[[], _core.Client]:
        """Returns `make` as a function that also records the use."""

        def open_client() -> _core.Client:
            self.is_used = True
            return make()

        return open_client


def _platform(world: object, platform: str | None, names_gpus: bool) -> str:
    own = world.platform if isinstance(world, _core.Cluster) else "gpu" if names_gpus else None
    if platform is None:
        return own or "cpu"
    check_type("simulate", "platform", platform, str, "'cpu', 'gpu' or None", "write platform='gpu'")
    if platform not in ((own,) if own else ("cpu", "gpu")):
        expected = f"{own!r}, the platform of {safe_repr(world)}" if own else "'cpu' or 'gpu'"
        raise wrong_value("simulate", "platform", platform, expected, "leave it out")
    return platform


def _worlds_by_platform(
    worlds: Mapping[str, int | str], platform: str | None, all_threads: bool
) -> tuple[tuple[_core.Machine | None, int | None] | None, int | str, str]:
    """Returns machine and count of the additional CPU devices, or None, and the world and platform of the default."""
    expected = "a dict with 'gpu', 'cpu' or both"
    if not worlds or not set(worlds) <= {"cpu", "gpu"}:
        raise wrong_value("simulate", "world", worlds, expected, 'write simulate({"cpu": 2, "gpu": 4})')
    for name, world in worlds.items():
        fix = f'write simulate({{"{name}": 4}})'
        check_type("simulate", f"world[{name!r}]", world, (int, str), "a number of devices or a description", fix)
    if platform is not None:
        raise wrong_value("simulate", "platform", platform, f"None with {expected}", "leave it out")
    if set(worlds) == {"cpu"}:
        return None, worlds["cpu"], "cpu"
    if "cpu" not in worlds:
        return None, worlds["gpu"], "gpu"
    if all_threads:
        raise failure(
            ValueError,
            "simulate",
            "all_threads is True for a world of two platforms",
            expected="False",
            fix="omit it, or name one platform: simulate(4, platform='gpu', all_threads=True)",
        )
    machine, count, device_kind = _parts_of_world(worlds["cpu"])
    if device_kind is not None:
        expected = "a number of CPU devices or a description of a machine"
        raise wrong_value("simulate", "world['cpu']", worlds["cpu"], expected, 'write simulate({"cpu": 2, "gpu": 4})')
    return (machine, count), worlds["gpu"], "gpu"


def _devices_of_processes(world: object, processes: int, others: Mapping[str, Any]) -> list[int]:
    """Returns the number of devices of each process."""
    check_int("simulate", "processes", processes, "write processes=4", minimum=1, maximum=2**16)
    expected = f"a multiple of processes={processes}, up to 2**24"
    count = check_int("simulate", "world", world, "write simulate(8, processes=4)", expected=expected, maximum=2**24)
    if count < 1 or count % processes:
        raise wrong_value("simulate", "world", world, expected, f"write simulate({2 * processes}, ...)")
    given = [name for name, value in others.items() if value not in (None, False)]
    if given:
        raise failure(
            ValueError,
            "simulate",
            f"{' and '.join(given)} cannot be combined with processes",
            expected="all_threads and platform at most",
            fix=f"leave {' and '.join(given)} out, or leave processes out for one process",
        )
    return [count // processes] * processes


def _parts_of_world(
    world: int | str | _core.Machine | _core.Cluster,
) -> tuple[_core.Machine | None, int | None, str | None]:
    """Returns the machine (None for the live machine), the number of devices or None, and the GPUs' name or None."""
    if isinstance(world, _core.Cluster):
        return None, None, None
    if isinstance(world, _core.Machine):
        return world, None, None
    if isinstance(world, str):
        return internal.parse_world(world)
    expected = "a number of devices, a description or a path"
    count = check_int("simulate", "world", world, "write simulate(8)", expected=expected)
    if count >= 2**63:
        raise wrong_value("simulate", "world", count, "up to 2**24 devices", "use fewer")
    return None, count, None
