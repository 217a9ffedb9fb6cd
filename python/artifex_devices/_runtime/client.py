# SPDX-License-Identifier: Apache-2.0
"""make_cpu_client: devices of one's own, beside those of the world."""

from __future__ import annotations

import operator
from typing import Any

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Client
from artifex_devices._runtime.allocator import GpuAllocatorConfig

__all__ = ["make_cpu_client"]

_MOST = 2**24
_ONE_PROCESS = {
    "distributed_client": "processes are not joined by a client",
    "collectives": "collectives run in this process, through artifex_devices.lax",
    "transfer_server_factory": "there is no transfer server",
}


def make_cpu_client(
    asynchronous: bool = True,
    distributed_client: None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: None = None,
    num_devices: int | None = None,
    get_local_topology_timeout_minutes: int | None = None,
    get_global_topology_timeout_minutes: int | None = None,
    transfer_server_factory: None = None,
    allocator_config: GpuAllocatorConfig | None = None,
) -> Client:
    """Makes CPU devices that are independent of the world's: ids from 0, and memory that is counted by itself.

    The parameters are those of jaxlib. Devices of different clients do not mix in one Array, Mesh or operation. Making
    a client counts as the first use of a device where num_devices is not given.

    Args:
        asynchronous: True: big copies between devices go on after the call that asks for them; False: none does.
        distributed_client: None; there is one process.
        node_id: 0; as above.
        num_nodes: 1; as above.
        collectives: None; as above.
        num_devices: How many, from 1 to 2**24; None for as many as the world has.
        get_local_topology_timeout_minutes: None or at least 1; of no effect, as there are no other processes to wait
            for.
        get_global_topology_timeout_minutes: The same.
        transfer_server_factory: None.
        allocator_config: How its devices take memory; None for the caching allocator without a limit. Not in jaxlib.

    Returns:
        A Client on this machine's cores and memory.

    Raises:
        TypeError: An argument is of another type; all that are wrong are named.
        ValueError: A number is out of range; allocator_config asks for what a CPU does not have.
        ResourceExhaustedError: What allocator_config wants up front is not free (a MemoryError and a RuntimeError).
        NotImplementedError: Something is asked for that `distributed.initialize()` does here (a RuntimeError).

    Example:
        >>> from artifex_devices import xla_client
        >>> client = xla_client.make_cpu_client(num_devices=2)
        >>> client.devices()
        [CpuDevice(id=0), CpuDevice(id=1)]
    """
    numbers: dict[str, tuple[Any, int]] = {"node_id": (node_id, 0), "num_nodes": (num_nodes, 1)}
    optional: dict[str, Any] = {
        "num_devices": num_devices,
        "get_local_topology_timeout_minutes": get_local_topology_timeout_minutes,
        "get_global_topology_timeout_minutes": get_global_topology_timeout_minutes,
    }
    numbers |= {name: (value, 1) for name, value in optional.items() if value is not None}
    wrong = {name: value for name, (value, _) in numbers.items() if not _is_int(value)}
    flag: Any = asynchronous
    if not isinstance(flag, bool):
        wrong["asynchronous"] = flag
    config: Any = allocator_config
    if config is not None and not isinstance(config, GpuAllocatorConfig):
        wrong["allocator_config"] = config
    types = [f"{name} is of type {type(value).__name__}, {shown(value)}" for name, value in wrong.items()]
    if types:
        raise TypeError(
            f"make_cpu_client: {'; '.join(types)}; expected ints (None where the default is None), a bool for "
            "asynchronous, a GpuAllocatorConfig for allocator_config; leave out what is not needed"
        )
    outside = [
        f"{name} is {value}, expected {least} to {_MOST}"
        for name, (value, least) in numbers.items()
        if not least <= operator.index(value) <= _MOST
    ]
    if outside:
        raise ValueError(f"make_cpu_client: {'; '.join(outside)}; leave out what is not needed")
    _check_one_process(
        operator.index(node_id),
        operator.index(num_nodes),
        {
            "distributed_client": distributed_client,
            "collectives": collectives,
            "transfer_server_factory": transfer_server_factory,
        },
    )
    count = _core._current_client().local_device_count() if num_devices is None else operator.index(num_devices)
    allocator = None if config is None else config._for_core()
    return _core._make_client(None, count, None, False, allocator, asynchronous)


def _is_int(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__")


def _check_one_process(node_id: int, num_nodes: int, objects: dict[str, Any]) -> None:
    wrong = [f"{name} is {shown(value)} ({_ONE_PROCESS[name]})" for name, value in objects.items() if value is not None]
    if num_nodes != 1:
        wrong.insert(0, f"num_nodes is {num_nodes}")
    if wrong:
        raise NotImplementedError(
            f"make_cpu_client: {'; '.join(wrong)}; expected the client of one process: num_nodes=1 and None for the "
            "objects; leave these out, and join processes by distributed.initialize()"
        )
    if node_id >= num_nodes:
        raise ValueError(f"make_cpu_client: node_id is {node_id}; expected 0, the number of this process; leave it out")
