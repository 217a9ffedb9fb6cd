# SPDX-License-Identifier: Apache-2.0
"""x.at, view, clone and out_sharding= give what JAX gives."""

import numpy as np
import pytest
from both import assert_agree, shards_of

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def sharding_of(library, *entries, explicit=False):
    if explicit:
        mesh = library.make_mesh((2, 4), ("x", "y"))
    else:
        mesh = library.Mesh(np.array(library.devices).reshape(2, 4), ("x", "y"))
    return library.NamedSharding(mesh, library.P(*entries))


PLACES = {
    "uncommitted": lambda library: None,
    "device 3": lambda library: library.devices[3],
    "whole": lambda library: sharding_of(library),
    "rows": lambda library: sharding_of(library, "x"),
    "tiles": lambda library: sharding_of(library, "x", "y"),
}
UPDATES = {
    "row": lambda x: x.at[1].set(5),
    "element": lambda x: x.at[-1, 2].set(9.0),
    "strided": lambda x: x.at[1:3, ::2].add(1.5),
    "backwards": lambda x: x.at[::-1].set(X * 2),
    "repeated": lambda x: x.at[np.array([0, 0, 3])].add(1),
    "repeated product": lambda x: x.at[np.array([0, 0, 3])].multiply(3),
    "min": lambda x: x.at[:, 1].min(6.0),
    "max": lambda x: x.at[2:].max(np.arange(4, dtype=np.float32)),
    "subtract": lambda x: x.at[0].subtract(1),
    "divide": lambda x: x.at[0].divide(2),
    "power": lambda x: x.at[0].power(2),
    "mul": lambda x: x.at[0].mul(2),
    "mask": lambda x: x.at[x > 4].set(0.0),
    "mask, add": lambda x: x.at[x > 4].add(1.0),
    "mask of rows": lambda x: x.at[np.array([True, False] * 4)].set(np.ones(4, np.float32)),
    "ellipsis": lambda x: x.at[..., 0].set(1),
    "new dimension": lambda x: x.at[None, 0].set(np.ones((1, 4), np.float32)),
    "pairs": lambda x: x.at[np.array([0, 1]), np.array([2, 3])].set(np.array([7, 8], np.float32)),
    "rows of columns": lambda x: x.at[np.array([0, 1]), 1:3].set(np.array([[7, 8], [9, 10]], np.float32)),
    "nothing": lambda x: x.at[3:3].set(1),
    "get": lambda x: x.at[1].get(),
    "values that do not broadcast": lambda x: x.at[0].set(np.ones(3, np.float32)),
    "too many": lambda x: x.at[0, 0, 0].set(1),
    "text": lambda x: x.at[0].set("words"),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    for place in PLACES.values():

        def ask(library, place=place):
            result = UPDATES[name](library.device_put(X, place(library)))
            return np.asarray(result), result.dtype.name, result.committed, result.devices()

        assert_agree(ask)


@pytest.mark.parametrize("name", ["row", "strided", "repeated", "max", "backwards"])
def test_results_are_cut_as_the_array(name):
    for place in ("device 3", "whole", "rows", "tiles"):

        def ask(library, place=place):
            x = library.device_put(X, PLACES[place](library))
            return shards_of(UPDATES[name](x))

        assert assert_agree(ask) is not None


VIEWS = ["int32", "int8", "uint16", "float64", "complex64", "bool", "float32", None, "S4"]


@pytest.mark.parametrize("dtype", VIEWS)
def test_views(dtype):
    def ask(library, source=X):
        result = library.device_put(source).view(dtype)
        return result.shape, result.dtype.name, result.committed, np.asarray(result)

    if dtype == "bool":  # other bytes than 0 and 1 are not defined
        assert assert_agree(lambda library: ask(library, np.array([1, 0, 1], np.int8))) is not None
        assert assert_agree(lambda library: np.asarray(library.device_put(X > 3).view(np.int8))) is not None
    else:
        assert_agree(ask)


def test_views_of_shards_and_without_dimensions():
    for entries in ((), ("x",), ("x", "y"), (None, "y")):

        def ask(library, entries=entries):
            return shards_of(library.device_put(X, sharding_of(library, *entries)).view(np.int16))

        assert assert_agree(ask) is not None
    number = np.float32(3)
    assert assert_agree(lambda library: np.asarray(library.device_put(number).view(np.int32))) is not None
    for refused in (
        lambda x: x[0, 0].view(np.int8),
        lambda x: x[:, :3].view(np.float64),
        lambda x: x.view(np.int32, np.ndarray),
    ):
        assert assert_agree(lambda library, refused=refused: refused(library.device_put(X))) is None


def test_clones():
    for place in PLACES.values():

        def ask(library, place=place):
            x = library.device_put(X, place(library))
            other = x.clone()
            return other is x, np.asarray(other), other.committed, shards_of(other)

        assert assert_agree(ask) is not None  # a clone of a deleted Array ends the process in JAX


def test_out_sharding():
    calls = {
        "reshape": lambda x, s: x.reshape(4, 8, out_sharding=s),
        "ravel": lambda x, s: x.ravel(out_sharding=s),
        "repeat": lambda x, s: x.repeat(2, axis=0, out_sharding=s),
    }
    for name, call in calls.items():
        for entries in (("x",), ("y",), ()):

            def ask(library, call=call, entries=entries):
                x = library.device_put(X, sharding_of(library, "x", explicit=True))
                result = call(x, sharding_of(library, *entries, explicit=True))
                return np.asarray(result), result.sharding.spec, result.committed, shards_of(result)

            assert assert_agree(ask) is not None, name
