# SPDX-License-Identifier: Apache-2.0
"""Which collectives a product of cut arrays needs: planned, against what jax compiles."""

import itertools
import math
import re

import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.models import Operation, StepModel, Tensor
from artifex_devices.planner import plan_step
from artifex_devices.sharding import Mesh

jax = pytest.importorskip("jax", reason="jax is not installed")

LINE = re.compile(
    r"= (\(?)f32\[([\d,]*)\].* (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(-start)?\("
)
PARTS = 4


def compiled(einsum, shapes, specs):
    """(op, elements of the whole array of the group) of each collective."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:PARTS]), ("x",))
    a, b, out = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)) for spec in specs)
    product = jax.jit(lambda x, y: jax.numpy.einsum(einsum, x, y), in_shardings=(a, b), out_shardings=out)
    text = product.lower(*(jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes[:2])).compile().as_text()
    found = []
    for line in filter(None, map(LINE.search, text.splitlines())):
        is_tuple, sizes, op = line[1] == "(", line[2], line[3].replace("-", "_")
        elements = math.prod(map(int, sizes.split(",")))
        if op == "all_to_all":  # a device's part, or one piece of it
            elements *= PARTS * PARTS if is_tuple else PARTS
        found.append((op, elements))
    return sorted(found)


def planned(einsum, shapes, specs):
    """The same by plan_step; a reduce-scatter is an all-reduce and a slice on CPU devices."""
    names = ("a", "b", "out")
    tensors = [
        Tensor(name, shape, tuple(f"{name}{d}" for d in range(len(shape))), "float32")
        for name, shape in zip(names, shapes, strict=True)
    ]
    batch = Tensor("batch", (1,), ("batch",))
    model = StepModel(
        einsum, (*tensors, batch), (Operation("product", einsum, ("a", "b"), "out", dtype="bfloat16"),), tokens=1
    )
    mesh = Mesh(np.array(cluster.tpu("v5p", (4, 4, 4)).devices()[:PARTS]), ("x",))
    rules = {
        axis: cut
        for tensor, spec in zip(tensors, specs, strict=True)
        for axis, cut in zip(tensor.axes, spec, strict=True)
    }
    return sorted(
        (each.op.replace("reduce_scatter", "all_reduce"), each.nbytes / 4)
        for each in plan_step(model, mesh, rules).collectives
    )


@pytest.mark.parametrize(
    ("einsum", "sizes"),
    [
        ("ij,jk->ik", {"i": 64, "j": 32, "k": 128}),
        ("ij,jk->ik", {"i": 8, "j": 1024, "k": 8}),
        ("ij,jk->ik", {"i": 8, "j": 1024, "k": 1024}),
        ("ij,jk->ik", {"i": 1024, "j": 1024, "k": 8}),
        ("ij,jk->ik", {"i": 1024, "j": 8, "k": 1024}),
        ("ij,jk->ik", {"i": 32, "j": 64, "k": 32}),
        ("ecd,edf->ecf", {"e": 16, "c": 64, "d": 32, "f": 128}),
        ("ijm,jmk->ik", {"i": 64, "j": 32, "m": 64, "k": 128}),
    ],
    ids=str,
)
def test_collectives_of_a_product(einsum, sizes):
    parts = re.split(",|->", einsum)
    shapes = [tuple(sizes[letter] for letter in part) for part in parts]
    cuts = [range(-1, len(part)) for part in parts]
    for places in itertools.product(*cuts):
        specs = [
            tuple("x" if d == place else None for d in range(len(part)))
            for part, place in zip(parts, places, strict=True)
        ]
        assert planned(einsum, shapes, specs) == compiled(einsum, shapes, specs), (einsum, places)
