# SPDX-License-Identifier: Apache-2.0
"""pmap: one row for each device, on both executors; and every wrong call."""

import functools

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, lax
from spmd_programs import EXECUTORS, name_of, unwatched

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


@pytest.fixture(params=EXECUTORS)
def pmap(request):
    with unwatched(request.param):
        yield functools.partial(ad.pmap, executor=name_of(request.param))


def identity(a):
    return a


def check(result, expected, spec, count=8, name="i"):
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert result.sharding == ad.NamedSharding(ad.Mesh(np.array(ad.devices()[:count]), (name,)), spec)


def test_each_device_gets_a_row(pmap):
    shapes = []

    def body(row):
        shapes.append((type(row), row.shape, row.flags.writeable))
        return row * 2

    check(pmap(body, axis_name="i")(X), X * 2, P("i"))
    assert shapes == [(np.ndarray, (4,), False)] * 8


def test_without_a_name_every_name_means_the_axis(pmap):
    summed = pmap(lambda a: lax.psum(a, axis_name="batch"))(X)
    np.testing.assert_array_equal(np.asarray(summed), np.tile(X.sum(0), (8, 1)))
    gathered = pmap(lambda a: (lax.all_gather(a, "left"), lax.axis_index("right")))(X)
    np.testing.assert_array_equal(np.asarray(gathered[0]), np.tile(X, (8, 1, 1)))
    np.testing.assert_array_equal(np.asarray(gathered[1]), np.arange(8))
    with pytest.raises(NameError, match="'j'"):
        pmap(lambda a: lax.psum(a, "j"), axis_name="i")(X)


def test_out_axes(pmap):
    check(pmap(identity, "i", out_axes=1)(X), X.T, P(None, "i"))
    check(pmap(identity, "i", out_axes=-1)(X), X.T, P(None, "i"))
    check(pmap(identity, "i", out_axes=None)(X), X[0], P())
    made = pmap(lambda a: {"s": a.sum(), "m": (a, a)}, "i", out_axes={"s": 0, "m": (1, None)})(X)
    check(made["s"], X.sum(1), P("i"))
    check(made["m"][0], X.T, P(None, "i"))
    check(made["m"][1], X[0], P())


def test_constants_none_and_trees(pmap):
    made = pmap(lambda a: {"c": 3, "n": None, "t": [a[0], True]}, "i")(X)
    check(made["c"], np.full(8, 3), P("i"))
    assert made["n"] is None
    check(made["t"][0], X[:, 0], P("i"))
    check(made["t"][1], np.ones(8, bool), P("i"))


def test_static_arguments(pmap):
    def body(a, power, b=None, c=0):
        return a**power + (0 if b is None else b) + c

    check(pmap(body, "i", static_broadcasted_argnums=1)(X, 2), X**2, P("i"))
    check(pmap(body, "i", static_broadcasted_argnums=(1, -1))(X, 2, X, 1), X**2 + X + 1, P("i"))
    check(pmap(body, "i", in_axes=(1, None, 1), static_broadcasted_argnums=[1])(X, 2, X), X.T**2 + X.T, P("i"), 4)
    check(pmap(body, "i", static_broadcasted_argnums=1)(X, 2, b=X), X**2 + X, P("i"))
    with pytest.raises(ValueError, match=r"static_broadcasted_argnums has \[5\]"):
        pmap(body, static_broadcasted_argnums=5)(X, 2)
    with pytest.raises(ValueError, match="static argument 1 is not hashable"):
        pmap(body, static_broadcasted_argnums=1)(X, [2])


def test_devices_and_backend(pmap):
    devices = ad.devices()[::-1]
    made = pmap(identity, "i", devices=devices)(X[:5])
    np.testing.assert_array_equal(np.asarray(made), X[:5])
    assert made.sharding == ad.NamedSharding(ad.Mesh(np.array(devices[:5]), ("i",)), P("i"))
    check(pmap(identity, "i", backend="cpu")(X), X, P("i"))
    with pytest.raises(RuntimeError, match="gpu"):
        pmap(identity, backend="gpu")(X)
    with pytest.raises(ValueError, match="devices is empty"):
        pmap(identity, devices=[])
    with pytest.raises(ValueError, match="more than once"):
        pmap(identity, devices=[devices[0]] * 2)(X[:2])


def test_arrays_with_one_row_on_each_device_are_not_copied(pmap):
    placed = ad.device_put(X, ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("k",)), P("k")))
    made = pmap(identity, "i")(placed)
    check(made, X, P("i"))
    assert [s.data.unsafe_buffer_pointer() for s in made.addressable_shards] == [
        s.data.unsafe_buffer_pointer() for s in placed.addressable_shards
    ]
    check(pmap(identity, "i")(ad.device_put(X)), X, P("i"))


def test_committed_elsewhere():
    mesh = ad.Mesh(np.array(ad.devices()), ("k",))
    for where in (ad.devices()[1], ad.NamedSharding(mesh, P()), ad.NamedSharding(mesh, P(None))):
        with pytest.raises(ValueError, match=r"args\[0\] is committed to another placement"):
            ad.pmap(identity)(ad.device_put(X, where))


def test_donated_arrays_are_deleted(pmap):
    mesh = ad.Mesh(np.array(ad.devices()), ("i",))
    x, y = (ad.device_put(X, ad.NamedSharding(mesh, P("i"))) for _ in range(2))
    made = pmap(lambda a, b: a + b["y"], "i", donate_argnums=(1,))(x, {"y": y})
    assert (x.is_deleted(), y.is_deleted()) == (False, True)
    check(made, X + X, P("i"))
    check(pmap(identity, "i", donate_argnums=0)(x), X, P("i"))
    assert x.is_deleted()
    check(pmap(identity, "i", donate_argnums=0)(X), X, P("i"))


def test_a_sharded_function_of_rows_repeats_bit_for_bit(pmap):
    values = np.random.default_rng(0).standard_normal((8, 1000)).astype(np.float32)
    f = pmap(lambda a: lax.pmean(a, "i"), "i")
    first = np.asarray(f(values)).tobytes()
    assert all(np.asarray(f(values)).tobytes() == first for _ in range(5))


BAD = [  # rows that do not fit the devices are in test_spmd_texts.py
    ({"in_axes": (0,)}, (X, X), ValueError, "in_axes has 1 entry, and the call has 2"),
    ({"in_axes": [0, 0]}, (X, X), ValueError, "in_axes has 2 entries in a list"),
    ({"out_axes": (0, 0)}, (X,), ValueError, "out_axes has 2 entries, and the function returns 1 value"),
    ({}, ("text",), TypeError, r"args\[0\] of type str is not an array"),
]


@pytest.mark.parametrize(("options", "args", "kind", "text"), BAD)
def test_what_does_not_fit(options, args, kind, text):
    with pytest.raises(kind, match=text):
        ad.pmap(lambda *a: a[0], **options)(*args)


@pytest.mark.parametrize(
    ("options", "text"),
    [({"in_axes": 0.5}, r"in_axes is 0.5 \(float\)"), ({"out_axes": {"a": "b"}}, r"out_axes\['a'\] is 'b' \(str\)")],
)
def test_axes_that_are_not_ints(options, text):
    with pytest.raises(TypeError, match=text):
        ad.pmap(identity, **options)


def test_results_that_are_not_arrays(pmap):
    with pytest.raises(TypeError, match=r"output\['k'\] on cpu:0 is of type str"):
        pmap(lambda a: {"k": "text"})(X)
    with pytest.raises(TypeError, match="fun is 3 "):
        ad.pmap(3)


def test_a_row_that_raises(pmap):
    def body(a):
        if a[0] == 8:
            raise OSError("mine")
        return lax.psum(a, "i")

    with pytest.raises(OSError, match="mine") as caught:
        pmap(body, "i")(X)
    assert "cpu:2: raised" in caught.value.__notes__[0]
    check(pmap(lambda a: lax.psum(a, "i"), "i", out_axes=None)(X), X.sum(0), P())
