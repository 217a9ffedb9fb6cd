# SPDX-License-Identifier: Apache-2.0
"""Reductions over sharded dimensions: results have the shardings of JAX with Explicit axes, and refusals agree."""

import artifex_devices as ad
import numpy as np
import pytest
from both import JAX, OURS, error_agrees, jax

jnp = jax.numpy
VALUE = np.random.default_rng(0).integers(-9, 9, size=(8, 8, 4)).astype(np.float64)
SPECS = {
    "whole": (),
    "rows": ("x",),
    "both": ("x", "y"),
    "tuple": (("y", "x"), None, None),
    "columns": (None, "y"),
    "last": ("y", None, "x"),
}
# What each does, with the array module as first argument.
REDUCTIONS = {
    "sum": lambda np_, x, **k: np_.sum(x, **k),
    "prod": lambda np_, x, **k: np_.prod(np_.sign(x), **k),
    "max": lambda np_, x, **k: np_.max(x, **k),
    "any": lambda np_, x, **k: np_.any(x > 8, **k),
    "all": lambda np_, x, **k: np_.all(x < 8, **k),
    "mean": lambda np_, x, **k: np_.mean(x, **k),
    "var": lambda np_, x, **k: np_.var(x, **k),
    "std": lambda np_, x, **k: x.std(**k),
    "ptp": lambda np_, x, **k: np_.ptp(x, **k),
    "count_nonzero": lambda np_, x, **k: np_.count_nonzero(x, **k),
    "nansum": lambda np_, x, **k: np_.nansum(x, **k),
    "argmax": lambda np_, x, **k: np_.argmax(x, **k),
    "argmin": lambda np_, x, **k: x.argmin(**k),
}


def placed(library, entries):
    mesh = library.make_mesh((2, 4), ("x", "y"))  # Explicit axes
    return mesh, library.device_put(VALUE, library.NamedSharding(mesh, library.P(*entries)))


def answers(call, entries):
    ours = call(np, placed(OURS, entries)[1])
    mesh, x = placed(JAX, entries)
    with jax.set_mesh(mesh):
        theirs = call(jnp, x)
    return ours, theirs


def names(sharding):
    spec = [entry if entry else None for entry in tuple(sharding.spec)]
    while spec and spec[-1] is None:
        spec.pop()
    return tuple(spec)


def assert_as_in_jax(name, entries, axis, keepdims):
    ours, theirs = answers(lambda np_, x: REDUCTIONS[name](np_, x, axis=axis, keepdims=keepdims), entries)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-12)
    assert names(ours.sharding) == names(theirs.sharding)
    assert ours.committed == theirs.committed


@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_and_layout_are_jaxs(name):
    assert_as_in_jax(name, ("x", "y"), 0, False)
    assert_as_in_jax(name, ("x", "y"), None, True)


@pytest.mark.parametrize("entries", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("axis", [0, -1, (0, 1)], ids=str)
def test_layouts_of_sums_are_jaxs(entries, axis):
    assert_as_in_jax("sum", entries, axis, False)
    assert_as_in_jax("sum", entries, axis, True)


# Along dimensions that are cut JAX refuses these, and so do we.
REFUSED = {
    "sort": lambda np_, x: np_.sort(x, axis=0),
    "argsort": lambda np_, x: np_.argsort(x, axis=0, stable=True),
    "median": lambda np_, x: np_.median(x, axis=0),
    "quantile": lambda np_, x: np_.quantile(x, 0.5, axis=0),
    "partition": lambda np_, x: np_.partition(x, 3, axis=0),
    "diff": lambda np_, x: np_.diff(x, axis=0),
    "trapezoid": lambda np_, x: np_.trapezoid(x, axis=0),
    "cumsum without axis": lambda np_, x: np_.cumsum(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_jaxs(name):
    call = REFUSED[name]
    with pytest.raises(Exception, match=r"(?i)shard|replicated") as theirs:
        answers(lambda np_, x: call(np_, x) if np_ is jnp else None, ("x", "y"))
    with pytest.raises(ad.errors.ShardingTypeError) as ours:
        call(np, placed(OURS, ("x", "y"))[1])
    assert error_agrees(ours.value, theirs.value)
    assert type(ours.value).__name__ == type(theirs.value).__name__


@pytest.mark.parametrize("name", ["sort", "argsort", "median", "quantile", "diff", "trapezoid"])
def test_along_whole_dimensions_the_layout_is_jaxs(name):
    ours, theirs = answers(REFUSED[name], (None, "y", "x"))
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-12)
    assert names(ours.sharding) == names(theirs.sharding)
