# SPDX-License-Identifier: Apache-2.0
"""The code of a training plan: JAX runs it, and its mesh, shapes and specs are those of this library."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.models import TransformerShape
from artifex_devices.planner import TrainingChoice, TrainingConfig, plan_training

jax = pytest.importorskip("jax", reason="jax is not installed: nothing to compare with")

DENSE = TransformerShape("dense", 4, 64, 256, 8, 4, 16, 1024, qkv_bias=True)
SPARSE = TransformerShape("sparse", 4, 64, 128, 8, 4, 16, 1024, 8, 2, dense_layers=2, dense_mlp=256)
RUNS = [
    (DENSE, {"tensor": 2, "sequence_parallel": True, "pipeline": 2, "zero": 1}),
    (DENSE, {"context": 2, "zero": 3}),
    (SPARSE, {"tensor": 2, "expert": 4, "zero": 3}),
    (SPARSE, {"expert": 4, "zero": 3, "zero_shards": 4}),
]


def made_by(code):
    made = {}
    exec(code, made)
    return made


def is_size(node):
    return isinstance(node, tuple)


@pytest.mark.parametrize(("model", "values"), RUNS)
def test_both_libraries_run_the_code(model, values):
    config = TrainingConfig(batch=16, sequence=128, **values)
    choice = TrainingChoice(plan_training(model, cluster.dgx("h100"), config))
    theirs = made_by(choice.to_jax_code())
    with ad.simulate(8):
        ours = made_by(choice.to_mesh_code())
        assert dict(ours["mesh"].shape) == dict(theirs["mesh"].shape)
        assert ours["shapes"] == theirs["shapes"]
        texts = [
            tree(made["specs"], is_leaf=lambda node, made=made: isinstance(node, made["P"]))
            for tree, made in ((ad.tree.leaves, ours), (jax.tree.leaves, theirs))
        ]
        assert [tuple(spec) for spec in texts[0]] == [tuple(spec) for spec in texts[1]]

    # A jitted function creates the parameters where the specs place them.
    def create():
        return jax.tree.map(lambda size: jax.numpy.zeros(size, "bfloat16"), theirs["shapes"], is_leaf=is_size)

    parameters = jax.jit(create, out_shardings=theirs["shardings"])()
    arrays = jax.tree.leaves(parameters)
    assert sum(array.size for array in arrays) == model.parameters.total
    for array, sharding in zip(arrays, jax.tree.leaves(theirs["shardings"]), strict=True):
        assert array.sharding.is_equivalent_to(sharding, array.ndim)
    tokens = jax.sharding.NamedSharding(theirs["mesh"], theirs["activation_specs"]["tokens"])
    assert jax.device_put(np.zeros((16, 128), np.int32), tokens).sharding == tokens
