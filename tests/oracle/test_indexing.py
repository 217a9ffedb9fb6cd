# SPDX-License-Identifier: Apache-2.0
"""Parts of sharded arrays, joining and splitting: values and where the results lie, as in JAX."""

from typing import Any

import numpy as np
import pytest
from both import JAX, OURS, assert_agree, jax, shards_of

X = np.arange(64, dtype=np.float64).reshape(8, 8)
FUNCTIONS = {OURS.name: np, JAX.name: jax.numpy}

INDICES = {
    "int": 0,
    "int of the last dimension": (slice(None), 3),
    "two ints": (5, -1),
    "slice": slice(4),
    "odd slice": slice(3),
    "all": slice(None),
    "all by numbers": slice(0, 8),
    "step": slice(None, None, 2),
    "backwards": slice(None, None, -1),
    "both backwards": (slice(None, None, -1), slice(None, None, -1)),
    "new": None,
    "new at the end": (..., None),
    "new between": (slice(None), None, slice(2)),
    "places": np.array([1, 0]),
    "odd places": np.array([1, 0, 5]),
    "pairs": (np.array([1, 0]), np.array([2, 3])),
    "places and new": (slice(None), np.array([0]), None),
    "mask": np.arange(8) > 3,
}

CALLS: dict[str, Any] = {
    "concatenate": lambda np, x, y: np.concatenate([x, y]),
    "concatenate the last": lambda np, x, y: np.concatenate([x, y], axis=1),
    "stack": lambda np, x, y: np.stack([x, y]),
    "stack last": lambda np, x, y: np.stack([x, y], axis=-1),
    "vstack": lambda np, x, y: np.vstack([x, y]),
    "hstack": lambda np, x, y: np.hstack([x, y]),
    "split": lambda np, x, y: np.split(x, 2),
    "split by columns": lambda np, x, y: np.split(x, 2, axis=1),
    "unstack": lambda np, x, y: [part.shape for part in np.unstack(x, axis=1)],
    "take": lambda np, x, y: np.take(x, np.array([1, 3]), axis=0),
    "repeat": lambda np, x, y: np.repeat(x, 2, axis=1),
    "zeros_like": lambda np, x, y: np.zeros_like(x),
    "full_like": lambda np, x, y: np.full_like(x, 3),
    "another shape": lambda np, x, y: np.ones_like(x, shape=(4,)),
    "select": lambda np, x, y: np.select([x > 3, y > 40], [x, y], 0.0),
}


def placed(lib, spec, kind):
    mesh = lib.make_mesh((2, 4), ("x", "y"), axis_types=(getattr(lib.AxisType, kind),) * 2)
    return lib.device_put(X, lib.NamedSharding(mesh, lib.P(*spec)))


def facts(result):
    if isinstance(result, list) and result and isinstance(result[0], tuple):
        return result
    parts = result if isinstance(result, list | tuple) else [result]
    return [(shards_of(part), part.shape, part.committed) for part in parts]


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", INDICES)
def test_parts(name, kind):
    spec = ("x", "y")
    assert_agree(lambda lib: facts(placed(lib, spec, kind)[INDICES[name]]))


@pytest.mark.parametrize("spec", [("x",), (None, "y"), (("x", "y"),), ()], ids=str)
@pytest.mark.parametrize("name", INDICES)
def test_parts_of_other_layouts(name, spec):
    assert_agree(lambda lib: facts(placed(lib, spec, "Auto")[INDICES[name]]))


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", CALLS)
def test_functions(name, kind):
    def ask(lib):
        x = placed(lib, ("x", "y"), kind)
        return facts(CALLS[name](FUNCTIONS[lib.name], x, x + 1))

    assert_agree(ask)


def test_assignment_is_a_type_error():
    def assign(lib):
        placed(lib, ("x",), "Auto")[0] = 1.0

    assert_agree(assign)
