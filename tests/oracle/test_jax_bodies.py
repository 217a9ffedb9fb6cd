# SPDX-License-Identifier: Apache-2.0
"""Bodies that compute with jax.numpy, under our shard_map, pmap and collectives: the values of the same body in JAX."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import NamedSharding, P

jax = pytest.importorskip("jax", reason="jax is not installed")

X = np.arange(64, dtype=np.float32).reshape(16, 4)


def network(block):
    hidden = jax.numpy.tanh(block @ jax.numpy.ones((4, 8), jax.numpy.float32) / 100)
    return hidden.sum(axis=1)


@pytest.mark.parametrize("function", [network, jax.jit(network)], ids=["eager", "jit"])
def test_jax_functions_are_bodies(function):
    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))
        found = ad.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(X)
        assert found.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_allclose(np.asarray(found), np.asarray(network(X)), rtol=1e-6)


def test_jax_values_are_operands_of_collectives():
    def body(block):
        return ad.lax.pmean(jax.grad(lambda x: network(x).sum())(block), "x")

    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))
        found = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(X)
    gradient = np.asarray(jax.grad(lambda x: network(x).sum())(X)).reshape(8, 2, 4).mean(axis=0)
    np.testing.assert_allclose(np.asarray(found), gradient, rtol=1e-5)
