# SPDX-License-Identifier: Apache-2.0
"""Small training steps of JAX and the messages that their specs require; each is compiled once in a process."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from expected_messages import Messages

P = jax.sharding.PartitionSpec
# Code is not run: no time for making it fast.
OPTIONS = {"xla_backend_optimization_level": 0}


@dataclass(frozen=True)
class Step:
    """A function, its arguments, the shardings of its results (None: XLA chooses) and its messages."""

    function: Any
    arguments: tuple[Any, ...]
    results: Any
    messages: Messages


STEPS = {}


def step(function):
    """Registers a function that takes nothing and returns a Step."""
    STEPS[function.__name__] = functools.cache(function)
    return STEPS[function.__name__]


def mesh_of(**axes):
    count = math.prod(axes.values())
    return jax.sharding.Mesh(np.array(jax.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))


def described(mesh, shape, *spec, dtype=np.float32):
    """A description of an argument that is sharded as `spec`."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.NamedSharding(mesh, P(*spec)))


def constrain(mesh, x, *spec):
    return jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, P(*spec)))


def shardings(tree):
    return jax.tree.map(lambda each: each.sharding, tree)


def descended(parameters, gradients):
    return jax.tree.map(lambda value, gradient: value - 0.1 * gradient, parameters, gradients)


@functools.cache
def lowered(name):
    one = STEPS[name]()
    return jax.jit(one.function, out_shardings=one.results).lower(*one.arguments)


@functools.cache
def compiled(name):
    return lowered(name).compile(compiler_options=OPTIONS)
