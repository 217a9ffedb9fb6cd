# SPDX-License-Identifier: Apache-2.0
"""jit's placement without a compiler: what goes where, what is deleted, what is refused."""

import functools

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def identity(a):
    return a


def rows(kind=None):
    devices = np.array(ad.devices()).reshape(2, 4)
    mesh = ad.Mesh(devices, ("x", "y")) if kind is None else ad.make_mesh((2, 4), ("x", "y"))
    return ad.NamedSharding(mesh, P("x"))


def check(result, expected, sharding):
    np.testing.assert_array_equal(np.asarray(result), expected)
    assert result.sharding == sharding


def test_results_are_arrays_and_nothing_is_traced():
    calls = []

    def f(a, b):
        calls.append(type(a))
        return a + b, {"n": 3}

    g = ad.jit(f)
    for _ in range(2):
        total, rest = g(X, 1)
        check(total, X + 1, ad.SingleDeviceSharding(ad.devices()[0]))
        assert isinstance(rest["n"], ad.Array)
    assert calls == [np.ndarray] * 2, "it runs every time, on what it was given"


def test_arguments_are_placed():
    s = rows()
    seen = []

    def f(a, b):
        seen.append((a.sharding, type(b["k"])))
        return a

    check(ad.jit(f, in_shardings=(s, None))(X, {"k": X}), X, s)
    check(ad.jit(f, in_shardings=(s, {"k": None}))(ad.device_put(X), {"k": X}), X, s)
    assert seen == [(s, np.ndarray)] * 2
    whole = ad.NamedSharding(s.mesh, P())
    made = ad.jit(lambda a, b: (a, b["k"]), in_shardings=(s, whole))(X, {"k": X})
    check(made[0], X, s)
    check(made[1], X, whole)


def test_results_are_placed():
    s = rows()
    check(ad.jit(identity, out_shardings=s)(X), X, s)
    placed = ad.device_put(X, s)
    check(ad.jit(identity)(placed), X, s)
    made = ad.jit(lambda a: {"a": a, "b": [a, a * 2]}, out_shardings={"a": None, "b": s})(X)
    check(made["a"], X, ad.NamedSharding(s.mesh, P()))  # on the devices of the call
    check(made["b"][1], X * 2, s)


def test_specs_take_the_mesh_of_the_context():
    s = rows()
    f = ad.jit(identity, in_shardings=P("x"), out_shardings=P("y"))
    with s.mesh:
        check(f(X), X, ad.NamedSharding(s.mesh, P("y")))
    with pytest.raises(RuntimeError, match=r"in_shardings: P\('x',\) needs a mesh and none is set"):
        f(X)


def test_decorators():
    s = rows()

    @ad.jit
    def first(a):
        """A docstring."""
        return a + 1

    @functools.partial(ad.jit, out_shardings=s)
    def second(a):
        return a + 2

    @ad.jit(static_argnums=1)
    def third(a, n):
        return a * n

    check(first(X), X + 1, ad.SingleDeviceSharding(ad.devices()[0]))
    assert (first.__name__, first.__doc__) == ("first", "A docstring.")
    check(second(X), X + 2, s)
    np.testing.assert_array_equal(np.asarray(third(X, 3)), X * 3)


def test_static_arguments_are_passed_unchanged():
    def f(a, mode, *, scale=1):
        assert mode == "double"
        return a * 2 * scale

    for options in ({"static_argnums": 1}, {"static_argnums": -1}, {"static_argnames": "mode"}):
        np.testing.assert_array_equal(np.asarray(ad.jit(f, **options)(X, "double")), X * 2)
        np.testing.assert_array_equal(np.asarray(ad.jit(f, **options)(X, mode="double")), X * 2)
    s = rows()
    check(
        ad.jit(f, static_argnames=("mode", "scale"), in_shardings=(s,), out_shardings=s)(X, "double", scale=3), X * 6, s
    )
    with pytest.raises(ValueError, match="static argument 1 is not hashable"):
        ad.jit(f, static_argnums=1)(X, ["double"])


@pytest.mark.parametrize("number", [2, -1])
def test_static_and_donated_arguments_among_several_more(number):
    def f(a, *rest):
        *arrays, mode = rest
        assert type(mode) is str
        return [a, *arrays, mode == "double"]

    s = rows()
    placed = ad.jit(f, static_argnums=number, in_shardings=s)
    first, second, is_double = placed(X, X + 1, "double")  # in_shardings go by the other arguments
    check(first, X, s)
    check(second, X + 1, s)
    assert bool(is_double)
    with pytest.raises(ValueError, match="static argument 2 is not hashable"):
        placed(X, X, ["double"])
    x, y, z = (ad.device_put(X, s) for _ in range(3))
    ad.jit(lambda a, *rest: a + rest[0] + rest[1], donate_argnums=number)(x, y, z)
    assert [each.is_deleted() for each in (x, y, z)] == [False, False, True]


def test_numbers_from_the_end_are_those_of_each_call_where_the_function_takes_more():
    def f(a, *rest):
        return [type(each) for each in (a, *rest)]

    seen = []
    placed = ad.jit(lambda *args: seen.append(f(*args)) or 0, static_argnums=(-1, 0))
    placed("first", X, 3)
    placed("first", X, X, 3)
    placed("only")
    assert seen == [[str, np.ndarray, int], [str, np.ndarray, np.ndarray, int], [str]]
    ad.jit(lambda *args: seen.append(f(*args)) or 0, static_argnums=5)(X)  # there is no such argument in this call
    assert seen[-1] == [np.ndarray]
    with pytest.raises(
        ValueError, match=r"static_argnums has \[-2\]; expected numbers of the 1 positional arguments of"
    ):
        ad.jit(lambda *args: 0, static_argnums=-2)(3)
    with pytest.raises(ValueError, match=r"static_argnums has \[2\]; expected numbers of the 2 positional arguments"):
        ad.jit(lambda a, b: 0, static_argnums=2)
    with pytest.raises(ValueError, match=r"donate_argnums has \[-3\]; expected numbers of the 2 positional arguments"):
        ad.jit(lambda a, b: 0, donate_argnums=-3)


def test_donated_arrays_are_deleted_except_returned_ones():
    s = rows()
    x, y, z = (ad.device_put(X, s) for _ in range(3))
    made = ad.jit(lambda a, b, c: (b["y"] + c, b["z"]), donate_argnums=1)(x, {"y": y, "z": z}, x)
    assert [a.is_deleted() for a in (x, y, z)] == [False, True, False]
    assert made[1] is z
    np.testing.assert_array_equal(np.asarray(made[0]), X + X)
    ad.jit(lambda a: None, donate_argnames="a")(a=z)
    assert z.is_deleted()


def test_device_and_backend():
    device = ad.devices()[2]
    check(ad.jit(lambda a: a + 1, device=device)(X), X + 1, ad.SingleDeviceSharding(device))
    check(ad.jit(identity, backend="cpu")(X), X, ad.SingleDeviceSharding(ad.devices()[0]))
    with pytest.raises(RuntimeError, match="gpu"):
        ad.jit(identity, backend="gpu")
    with pytest.raises(ValueError, match="device or backend came with in_shardings"):
        ad.jit(identity, device=device, in_shardings=rows())
    with pytest.raises(TypeError, match=r"device is 'cpu:0' \(str\)"):
        ad.jit(identity, device="cpu:0")


@pytest.mark.parametrize("kind", [None, "explicit"])
def test_committed_arrays_must_have_the_sharding_already(kind):
    s = rows(kind)
    f = ad.jit(lambda a, b: a, in_shardings=(None, {"k": s}))
    for where in (ad.NamedSharding(s.mesh, P("y")), ad.devices()[1]):
        with pytest.raises(ValueError, match=r"args\[1\]\['k'\] is committed to another sharding"):
            f(1, {"k": ad.device_put(X, where)})
    f(1, {"k": ad.device_put(X, ad.NamedSharding(s.mesh, P("x", None)))})


BAD = [
    ({"in_shardings": "x"}, TypeError, "in_shardings is of type str; expected a Sharding"),
    ({"out_shardings": {"a": 3}}, TypeError, r"out_shardings\['a'\] is of type int"),
    ({"static_argnums": 7}, ValueError, r"static_argnums has \[7\]; expected numbers of the 1 positional"),
    ({"static_argnames": "q"}, ValueError, r"static_argnames has \['q'\]"),
    ({"donate_argnums": (0, 3)}, ValueError, r"donate_argnums has \[3\]"),
    ({"donate_argnames": ["z"]}, ValueError, r"donate_argnames has \['z'\]"),
    ({"static_argnums": 0, "donate_argnames": "a"}, ValueError, "both static and donated"),
]


@pytest.mark.parametrize(("options", "kind", "text"), BAD)
def test_options_that_do_not_fit(options, kind, text):
    with pytest.raises(kind, match=text):
        ad.jit(identity, **options)


def test_arguments_and_results_that_do_not_fit():
    s = rows()
    cases = [
        ({"in_shardings": (s, s)}, (X,), {}, ValueError, "in_shardings has 2 entries, and the call has 1 "),
        ({"out_shardings": (s, s)}, (X,), {}, ValueError, "out_shardings has 2 entries, and the function "),
        ({"in_shardings": s}, (), {"a": X}, ValueError, "keyword arguments came with in_shardings"),
        ({"in_shardings": s}, (X[:3],), {}, ad.errors.IndivisibleError, r"args\[0\]"),
        ({"out_shardings": s}, (X[:3],), {}, ad.errors.IndivisibleError, "output"),
        ({"in_shardings": s}, (3.0,), {}, ValueError, r"args\[0\]"),
        ({}, ("text",), {}, TypeError, r"args\[0\] of type str is not an array"),
        ({}, ({"k": object()},), {}, TypeError, r"args\[0\]\['k'\] of type object is not an array"),
    ]
    for options, args, kwargs, kind, text in cases:
        with pytest.raises(kind, match=text):
            ad.jit(identity, **options)(*args, **kwargs)
    with pytest.raises(TypeError, match=r"output\[0\] of type str is not an array"):
        ad.jit(lambda a: ["text"])(X)
    with pytest.raises(TypeError, match="f is 3 "):
        ad.jit(3)


def test_nothing_is_compiled():
    f = ad.jit(identity)
    for name in ("lower", "compile", "trace", "eval_shape"):
        with pytest.raises(NotImplementedError, match="nothing is compiled here"):
            getattr(f, name)(X)
    assert "nothing is compiled" in ad.jit.__doc__


def test_host_arguments_are_implicit_transfers():
    f = ad.jit(identity, in_shardings=rows())
    with ad.transfer_guard("disallow"):
        with pytest.raises(RuntimeError, match="transfer"):
            f(X)
        with pytest.raises(RuntimeError, match="transfer"):
            ad.shard_map(identity, rows().mesh, P("x"), P("x"))(X)
        with pytest.raises(RuntimeError, match="transfer"):
            ad.pmap(identity)(X)
        placed = ad.device_put(X, rows())
        check(f(placed), X, rows())
        np.testing.assert_array_equal(np.asarray(ad.shard_map(identity, rows().mesh, P("x"), P("x"))(placed)), X)
