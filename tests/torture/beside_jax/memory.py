# SPDX-License-Identifier: Apache-2.0
"""Shortage, growth, and numbers of devices."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from scenario import WrongValueError, address_space, good_calls, resident_bytes, same, scenario

GROUP = "memory and sizes"
SHORTAGE = r"\w*(MemoryError|RuntimeError|ValueError|OutOfMemory\w*|ResourceExhausted\w*): .*"


def _nothing(count: int, dtype: Any) -> Any:
    """An array of `count` elements without memory of its own."""
    return np.broadcast_to(np.zeros((), dtype), (count,))


@scenario(GROUP, "4 TB onto one device", "a clear error", SHORTAGE)
def four_terabytes(b: Any) -> None:
    b.jax.block_until_ready(b.jax.device_put(_nothing(1 << 40, np.float32), b.jax.devices()[0]))


@scenario(GROUP, "2^62 bytes onto one device", "a clear error", SHORTAGE)
def two_to_the_62(b: Any) -> None:
    b.jax.block_until_ready(b.jax.device_put(_nothing(1 << 62, np.int8), b.jax.devices()[0]))


@scenario(GROUP, "4 GiB where RLIMIT_AS leaves 1 GiB", "a clear error", SHORTAGE)
def little_address_space(b: Any) -> None:
    good_calls(b)
    with address_space(1 << 30):
        b.jax.block_until_ready(b.jax.device_put(_nothing(1 << 30, np.float32), b.jax.devices()[0]))


@scenario(GROUP, "no room for a thread's stack at first use", "works, or a clear error", r"ok|" + SHORTAGE)
def no_room_for_threads(b: Any) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_STACK, (256 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    with address_space(96 << 20):
        value = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
        array = b.jax.device_put(value, b.over("x"))
        same(b.jax.device_put(array, b.over(None, "x")), value)


@scenario(GROUP, "10^5 device_puts of 4 KiB", "less than 8 MB more memory")
def growth(b: Any) -> None:
    x = np.arange(512.0)
    for _ in range(2000):
        b.jax.device_put(x)
    before = resident_bytes()
    for _ in range(100_000):
        b.jax.device_put(x)
    grown = (resident_bytes() - before) / 1e6
    if grown > 8:
        raise WrongValueError(f"{grown:.1f} MB more")


def _devices(b: Any, count: int, most_bytes: int | None) -> None:
    with address_space(all_bytes=most_bytes) if most_bytes else contextlib.nullcontext():
        found = b.jax.devices()
        same(len(found), count)
        sharding = b.NamedSharding(b.Mesh(np.array(found), ("x",)), b.P("x"))
        same(sharding.shard_shape((count * 2, 3)), np.array([2, 3]))


@scenario(
    GROUP,
    "10^4 simulated devices and their mesh",
    "works",
    devices=10**4,
    then=False,
    leave=True,
    timeout_s=300,
    note="JAX has a thread for each, and needs 1.2 GB of memory, 86 GB of address space, and minutes to end (measured "
    "separately; here os._exit ends the process). The next two rows limit the address space.",
)
def devices_10_4(b: Any) -> None:
    _devices(b, 10**4, None)


@scenario(GROUP, "10^5 simulated devices, 12 GB of address space", "works", devices=10**5, then=False, timeout_s=150)
def devices_10_5(b: Any) -> None:
    _devices(b, 10**5, 12 << 30)


@scenario(GROUP, "10^6 simulated devices, 12 GB of address space", "works", devices=10**6, then=False, timeout_s=150)
def devices_10_6(b: Any) -> None:
    _devices(b, 10**6, 12 << 30)
