# SPDX-License-Identifier: Apache-2.0
"""The same names in both libraries, so that a scenario is written once: `jax.device_put`, `jax.sharding.Mesh`, ...

This module has the differences. JAX traces a body once for all participants: an action of one participant is
`lax.cond` on its number there and a plain `if` here; Python code is `pure_callback` there and a call here. JAX runs
under `jit`, as its users run it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np


class Binding:
    """A library with 8 CPU devices in one axis "x", unless the process was started with another number."""

    jax: Any
    P: Any

    def __init__(self) -> None:
        self.lax = self.jax.lax
        self.P = self.jax.sharding.PartitionSpec
        self.NamedSharding = self.jax.sharding.NamedSharding
        self.Mesh = self.jax.sharding.Mesh

    def mesh(self) -> Any:
        """All devices in one axis."""
        return self.Mesh(np.array(self.jax.devices()), ("x",))

    def over(self, *spec: Any, **more: Any) -> Any:
        """A sharding by that spec over all devices."""
        return self.NamedSharding(self.mesh(), self.P(*spec), **more)

    def mapped(self, body: Any, **more: Any) -> Any:
        """A function that runs body once for each device, with its block of the first dimension."""
        raise NotImplementedError

    def choose(self, number: int, one: Any, others: Any, block: Any) -> Any:
        """one(block) in the participant of that number, others(block) in the others."""
        raise NotImplementedError

    def times(self, count_of_number: Any, step: Any, block: Any) -> Any:
        """step(block), repeated count_of_number(number of the participant) times."""
        raise NotImplementedError

    def python(self, function: Any, block: Any) -> Any:
        """function(ndarray) as Python code in the participant."""
        raise NotImplementedError


class Ours(Binding):
    """artifex_devices."""

    name = "ours"

    def __init__(self) -> None:
        import artifex_devices

        self.jax = artifex_devices
        super().__init__()

    def mapped(self, body: Any, **more: Any) -> Any:
        return self.jax.shard_map(body, mesh=self.mesh(), in_specs=self.P("x"), out_specs=self.P("x"), **more)

    def choose(self, number: int, one: Any, others: Any, block: Any) -> Any:
        return (one if self.lax.axis_index("x") == number else others)(block)

    def times(self, count_of_number: Any, step: Any, block: Any) -> Any:
        for _ in range(count_of_number(int(self.lax.axis_index("x")))):
            block = step(block)
        return block

    def python(self, function: Any, block: Any) -> Any:
        return function(np.asarray(block))


class Jax(Binding):
    """JAX with 64-bit types enabled, as in artifex_devices."""

    name = "jax"

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        super().__init__()

    def mapped(self, body: Any, **more: Any) -> Any:
        function = self.jax.shard_map(body, mesh=self.mesh(), in_specs=self.P("x"), out_specs=self.P("x"))
        return self.jax.jit(function)

    def choose(self, number: int, one: Any, others: Any, block: Any) -> Any:
        return self.lax.cond(self.lax.axis_index("x") == number, one, others, block)

    def times(self, count_of_number: Any, step: Any, block: Any) -> Any:
        count = count_of_number(self.lax.axis_index("x"))
        return self.lax.fori_loop(0, count, lambda _, each: step(each), block)

    def python(self, function: Any, block: Any) -> Any:
        varying = self.jax.typeof(block).manual_axis_type
        kind = self.jax.ShapeDtypeStruct(block.shape, block.dtype, manual_axis_type=varying)
        return self.jax.pure_callback(lambda each: function(np.asarray(each)), kind, block)


def bind(name: str, devices: int = 8) -> Binding:
    """Imports one of "ours" and "jax" with that many CPU devices."""
    os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)
    os.environ["JAX_PLATFORMS"] = "cpu"
    return {"ours": Ours, "jax": Jax}[name]()
