# SPDX-License-Identifier: Apache-2.0
"""audit.shardings of trees of JAX: containers that only JAX knows, keys, specs, and results of the compiler."""

import dataclasses

import both  # noqa: F401 - skips this module where JAX is not installed
import jax
import jax.numpy as jnp
import numpy as np
from artifex_devices import P, audit
from jax.sharding import NamedSharding, PartitionSpec

MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
SIZES = {"data": 4, "model": 2}


def over(*spec):
    return NamedSharding(MESH, PartitionSpec(*spec))


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    """A node of JAX only."""

    params: dict
    rest: list


def test_arrays_structs_keys_and_numbers_in_a_container_of_jax():
    w = jax.device_put(jnp.zeros((8, 6), jnp.bfloat16), over("data", "model"))
    b = jax.ShapeDtypeStruct((3,), np.float32, sharding=over())
    found = audit.shardings(State({"w": w, "b": b}, [jax.random.key(0), jnp.zeros(5, jnp.float32), 3, None]))
    assert [(leaf.path, leaf.dtype, leaf.spec, leaf.device_bytes, leaf.replicas) for leaf in found.leaves] == [
        (".params['b']", "float32", P(), 12, 8),
        (".params['w']", "bfloat16", P("data", "model"), 12, 1),
        (".rest[0]", "key<fry>", P(), 8, 1),
        (".rest[1]", "float32", P(), 20, 1),
    ]
    assert found.leaves[1].mesh == SIZES


def test_bytes_are_those_of_the_shards():
    for spec in ((), ("data",), (None, "model"), (("data", "model"),), (("model", "data"), None), ("model", "data")):
        x = jax.device_put(jnp.zeros((16, 8), jnp.float32), over(*spec))
        (leaf,) = audit.shardings(x).leaves
        index = x.addressable_shards[0].index
        same = [each for each in x.addressable_shards if each.index == index]
        assert (leaf.device_bytes, leaf.total_bytes) == (x.addressable_shards[0].data.nbytes, x.nbytes)
        assert leaf.replicas == len(same)


def test_shardings_of_a_compiled_function_with_the_shapes_of_a_second_tree():
    def f(x):
        return {"y": x * 2, "z": x.sum(0)}

    x = jax.ShapeDtypeStruct((8, 4), np.float32, sharding=over("data", "model"))
    compiled = jax.jit(f, out_shardings={"y": over("data"), "z": over("model")}).lower(x).compile()
    found = audit.shardings(compiled.output_shardings, jax.eval_shape(f, x))
    assert [(leaf.path, leaf.shape, leaf.spec, leaf.device_bytes) for leaf in found.leaves] == [
        ("['y']", (8, 4), P("data"), 32),
        ("['z']", (4,), P("model"), 8),
    ]


def test_specs_of_jax_need_a_mesh_for_their_bytes():
    pair = (PartitionSpec(("data", "model"), PartitionSpec.UNCONSTRAINED), (8, 8))
    (leaf,) = audit.shardings([pair], mesh=MESH).leaves
    assert (leaf.spec, leaf.mesh, leaf.replicas) == (P(("data", "model"), P.UNCONSTRAINED), SIZES, None)
    (leaf,) = audit.shardings([(PartitionSpec("model"), (8,))], mesh=MESH).leaves
    assert leaf.replicas == 4
