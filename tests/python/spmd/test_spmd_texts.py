# SPDX-License-Identifier: Apache-2.0
"""What jit, pmap and shard_map refuse, word for word, and the ends of what they accept."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices.errors import IndivisibleError
from artifex_devices.sharding import NamedSharding, P

X = np.ones(2)


def two(a, b, *, c=0):
    return 0


def many(a, *rest, **more):
    return 0


@pytest.mark.parametrize(
    ("f", "numbers", "names", "static", "placed"),
    [
        (two, 0, None, "a", "bc"),
        (two, -1, None, "b", "ac"),
        (two, (0, -2), None, "a", "bc"),
        (two, [1], "a", "ab", "c"),
        (two, None, ("b", "c"), "bc", "a"),
        (two, None, None, "", "abc"),
    ],
)
def test_arguments_chosen_by_number_have_names_and_those_by_name_have_numbers(f, numbers, names, static, placed):
    g = ad.jit(f, static_argnums=numbers, static_argnames=names)

    def call(texts, positional):
        values = {name: name if name in texts else X for name in "abc"}
        return g(*(values[name] for name in positional), **{name: values[name] for name in "abc"[len(positional) :]})

    for positional in ("", "a", "ab"):
        assert call(static, positional) == 0
        for name in placed:
            with pytest.raises(TypeError, match=r"^jit\(two\): .* of type str is not an array"):
                call(static + name, positional)


@pytest.mark.parametrize(
    ("f", "numbers", "names", "message"),
    [
        (two, 2, None, "static_argnums has [2]; expected numbers of the 2 positional arguments; check them"),
        (two, (-3, 1), None, "static_argnums has [-3]; expected numbers of the 2 positional arguments; check them"),
        (
            two,
            None,
            ("a", "spam"),
            "static_argnames has ['spam']; expected names of arguments: a, b, c; check the spelling",
        ),
        (lambda: 0, None, "x", "static_argnames has ['x']; expected names of arguments: none; check the spelling"),
    ],
)
def test_unknown_arguments_are_listed(f, numbers, names, message):
    text = refused(lambda: ad.jit(f, static_argnums=numbers, static_argnames=names))
    assert text == f"jit({f.__name__}): {message}"


def test_positions_from_the_end_are_those_of_the_call():
    g = ad.jit(many, static_argnums=(0, -1))
    assert g("a", X, "c", k=X) == g("a", "b") == g("a") == 0
    with pytest.raises(TypeError, match=r"of type str is not an array; .*, got 'b'"):
        g("a", "b", "c")
    assert "static_argnums has [-1]; expected numbers of the 0 positional arguments" in refused(lambda: g(a=X))
    assert ad.jit(many, static_argnums=3)(X, X) == 0  # the call has no such argument
    assert ad.jit(dict, static_argnums=(0, 7), static_argnames="x")() == {}  # a class without a signature


def test_a_static_and_donated_argument_is_refused():
    with pytest.raises(ValueError, match=r"arguments \['a', 0\] are both static and donated"):
        ad.jit(two, static_argnums=0, donate_argnums=(0, 1))
    assert ad.jit(two, static_argnums=0, donate_argnums=1)(3, np.ones(2)) == 0


def refused(call, error=ValueError):
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def identity(x):
    return x


def test_pmap_refuses_rows_that_do_not_fit_the_devices():
    with ad.simulate(4):
        name = "pmap(identity)"
        assert np.asarray(ad.pmap(identity)(np.arange(4))).tolist() == [0, 1, 2, 3]
        assert refused(lambda: ad.pmap(identity)(np.arange(5)), IndivisibleError).startswith(
            f"{name}: args[0] has 5 rows for 4 devices; expected at most one for each device; "
            "reshape it to (4, rows per device, ...), use shard_map, simulate more devices"
        )
        assert refused(lambda: ad.pmap(identity)(np.zeros((0, 2)))) == (
            f"{name}: args[0] has no rows; expected at least one, for one device each; give some"
        )
        assert refused(lambda: ad.pmap(identity)([np.zeros(2), np.zeros(3)]), IndivisibleError) == (
            f"{name}: arguments have different numbers of rows; expected 2 as args[0][0] has, got: args[0][1] has 3; "
            "make them equal, or use in_axes=None to replicate an argument"
        )
        assert refused(lambda: ad.pmap(identity, axis_size=3)(np.zeros(2))) == (
            f"{name}: axis_size is 3 and args[0] has 2 rows; expected equal numbers; leave axis_size out"
        )
        assert np.asarray(ad.pmap(identity, axis_size=2)(np.zeros(2))).shape == (2,)
        assert refused(lambda: ad.pmap(identity, in_axes=None)(np.zeros(2))) == (
            f"{name}: no argument has a mapped axis; expected at least one array that is sharded over devices; give "
            "one whose in_axes is an int"
        )
        assert refused(lambda: ad.pmap(identity)(1.0)).startswith(
            f"{name}: args[0] of float64() has no dimension 0; expected one to shard over devices; choose another"
        )
        assert refused(lambda: ad.pmap(identity, in_axes=2)(np.zeros((2, 2))), IndexError).startswith(
            f"{name}: args[0] of float64(2, 2) has no dimension 2; expected one"
        )
        assert refused(lambda: ad.pmap(identity, in_axes=-3)(np.zeros((2, 2))), IndexError).startswith(
            f"{name}: args[0] of float64(2, 2) has no dimension -3; expected one"
        )
        assert refused(lambda: ad.pmap(identity, devices=[])) == (
            f"{name}: devices is empty; expected at least one, or None; list some"
        )
        assert "an entry of devices is 1 (int); expected a Device" in refused(
            lambda: ad.pmap(identity, devices=[1]), TypeError
        )


def test_pmap_counts_axes_from_both_ends():
    x = np.arange(6).reshape(3, 2)
    with ad.simulate(4):
        assert np.asarray(ad.pmap(identity, in_axes=-2)(x)).tolist() == x.tolist()
        assert np.asarray(ad.pmap(identity, in_axes=1)(x)).tolist() == x.T.tolist()
        assert np.asarray(ad.pmap(identity, in_axes=-1, out_axes=-1)(x)).tolist() == x.tolist()
        assert np.asarray(ad.pmap(identity, out_axes=1)(x)).tolist() == x.T.tolist()
        assert np.asarray(ad.pmap(identity, out_axes=-2)(x)).tolist() == x.tolist()
        assert np.asarray(ad.pmap(identity, out_axes=None)(x)).tolist() == [0, 1]
        assert np.asarray(ad.pmap(lambda a, b: a + b, in_axes=(0, None))(x, x[0])).tolist() == (x + x[0]).tolist()
        assert np.asarray(ad.pmap(lambda a, *, b: a + b)(x, b=x)).tolist() == (2 * x).tolist()
        for axis in (2, -3):
            assert refused(lambda axis=axis: ad.pmap(identity, out_axes=axis)(x)) == (
                f"pmap(identity): out_axes is {axis} for output of int64(2,); expected -2 to 1; choose one of them"
            )


def test_pmap_gives_static_arguments_to_all_devices():
    def scaled(n, x, m):
        return x * n + m

    x = np.arange(3)
    with ad.simulate(4):
        call = ad.pmap(scaled, static_broadcasted_argnums=(0, -1))
        assert np.asarray(call(10, x, 1)).tolist() == [1, 11, 21]
        assert np.asarray(call(2, x, 0)).tolist() == [0, 2, 4]
        axes = ad.pmap(scaled, in_axes=(None, 0, None), static_broadcasted_argnums=(0, 2))
        assert np.asarray(axes(10, x, 1)).tolist() == [1, 11, 21]
        assert refused(lambda: ad.pmap(scaled, static_broadcasted_argnums=(0, 3))(1, x, 2)) == (
            "pmap(scaled): static_broadcasted_argnums has [3], and the call 3 positional arguments; expected all "
            "static arguments by position; pass them by position"
        )
        assert "static argument 0 is not hashable; expected a constant such as a number" in refused(
            lambda: ad.pmap(scaled, static_broadcasted_argnums=0)([1], x, x)
        )


def mapped(body, mesh, out_specs, **options):
    return ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out_specs, **options)(np.arange(12))


def test_results_that_differ_between_devices_are_listed():
    with ad.simulate(12):
        mesh = ad.make_mesh((12,), ("x",))

        def rows_of(wrong):
            return lambda x: np.zeros(2 if lax.axis_index("x") in wrong else 1)

        text = "output differs between devices; expected float64(1,) as on cpu:0, got "
        ending = "; return equal shapes and dtypes"
        four = ", ".join(f"float64(2,) on cpu:{i}" for i in (3, 4, 5, 6))
        assert text + four + ending in refused(lambda: mapped(rows_of({3, 4, 5, 6}), mesh, P("x")))
        assert text + four + " and 1 more" + ending in refused(lambda: mapped(rows_of({3, 4, 5, 6, 7}), mesh, P("x")))

        def others(first):
            return lambda x: np.full(2, float(lax.axis_index("x") >= first))

        replicated = "output is replicated by its spec, but not the same everywhere; expected the bits of cpu:0, got "
        named = "; name the axis in out_specs, reduce the value (lax.pmean), or take the first device's with"
        eight = ", ".join(f"cpu:{i}" for i in range(4, 12))
        assert f"{replicated}others on {eight}{named}" in refused(lambda: mapped(others(4), mesh, P()))
        eight = ", ".join(f"cpu:{i}" for i in range(3, 11))
        assert f"{replicated}others on {eight} and 1 more{named}" in refused(lambda: mapped(others(3), mesh, P()))
        assert np.asarray(mapped(others(4), mesh, P(), check_vma=False)).tolist() == [0.0, 0.0]
        assert (
            "has too few dimensions for its spec P('x', None); expected at least 2, got 1; shorten the spec"
            in refused(lambda: mapped(lambda x: x, mesh, P("x", None)))
        )
        assert "expected at least 1, got 0; return x[None] to stack numbers, or use P()" in refused(
            lambda: mapped(lambda x: 1.0, mesh, P("x"))
        )
        assert "is of type str; expected an ndarray or a number, got 'a'; return arrays only" in refused(
            lambda: mapped(lambda x: "a", mesh, P("x")), TypeError
        )
        assert "devices returned trees of different structure; expected" in refused(
            lambda: mapped(lambda x: [x] * (1 + int(lax.axis_index("x") == 5)), mesh, P("x"))
        )


def same_everywhere(a, b):
    """Whether a replicated output may have the bits of a on one device and those of b on the other."""
    with ad.simulate(2):
        try:
            mapped(lambda x: (a, b)[int(lax.axis_index("x"))], ad.make_mesh((2,), ("x",)), P())
        except ValueError as error:
            return "is replicated by its spec, but not the same everywhere" not in str(error)
    return True


@pytest.mark.parametrize("size", [1, 1 << 14, (1 << 14) + 1, (1 << 20) + 3, (2 << 20) + 1])
def test_replicas_are_compared_bit_by_bit(size):
    a = np.zeros(size, np.int8)
    for changed in {0, size // 2, size - 1}:
        b = a.copy()
        assert same_everywhere(a, b)
        b[changed] = 1
        assert not same_everywhere(a, b)


def test_the_bits_of_zeros_and_nans_count():
    assert not same_everywhere(np.array([0.0]), np.array([-0.0]))
    assert same_everywhere(np.full(5000, np.nan), np.full(5000, np.nan))


@pytest.mark.parametrize("size", [1, 511, 512, 513, 5000])
def test_a_result_that_the_body_keeps_is_not_changed_by_it_later(size):
    kept = []

    def body(x):
        result = np.full(size, float(x[0]))
        kept.append(result)
        return result

    def view(x):
        result = np.full(2 * size, float(x[0]))
        kept.append(result)
        return result[:size]

    with ad.simulate(2):
        mesh = ad.make_mesh((2,), ("x",))
        for each in (body, view):
            kept.clear()
            found = ad.shard_map(each, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(np.array([3.0, 4.0]))
            for result in kept:
                result[:] = -1
            assert np.asarray(found).tolist() == [3.0] * size + [4.0] * size


def test_specs_that_do_not_fit_the_mesh_are_listed():
    with ad.simulate(4):
        mesh = ad.make_mesh((2, 2), ("x", "y"))

        def shard(in_specs, out_specs=None):
            return ad.shard_map(identity, mesh=mesh, in_specs=in_specs, out_specs=out_specs or P())(np.zeros((4, 4)))

        assert (
            "in_specs = P('z', None) names 'z'; expected axes that this call binds, 'x', 'y'; check the spelling, "
            "mesh= and axis_names="
        ) in refused(lambda: shard(P("z", None)))
        assert "in_specs = P('x', 'x') names an axis twice; expected each mesh axis in at most one" in refused(
            lambda: shard(P("x", "x"))
        )
        assert "out_specs['a'] is 'x' (str); expected a PartitionSpec for each array; write P('x')" in refused(
            lambda: shard(P("x"), {"a": "x"}), TypeError
        )


def test_axis_names_and_groups_of_collectives_are_checked():
    with ad.simulate(4):
        mesh = ad.make_mesh((2, 2), ("x", "y"))

        def run(body):
            return ad.shard_map(body, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))(np.arange(4.0))

        assert "unbound axis name 'z'; expected one of the axes bound by shard_map" in refused(
            lambda: run(lambda x: lax.psum(x, "z")), NameError
        )
        assert "an axis name is repeated; expected each once, got ('x', 'x'); drop one" in refused(
            lambda: run(lambda x: lax.psum(x, ("x", "x")))
        )
        assert "axis_index_groups do not cover the axis; expected each of 0 to 3 in one group, got [[0, 1], [2]]" in (
            refused(lambda: run(lambda x: lax.psum(x, ("x", "y"), axis_index_groups=[[0, 1], [2]])))
        )
        assert "axis_index_groups differ in size; expected groups of one size, got [[0, 1, 2], [3]]" in refused(
            lambda: run(lambda x: lax.psum(x, ("x", "y"), axis_index_groups=[[0, 1, 2], [3]]))
        )
        found = run(lambda x: lax.psum(x, ("y", "x"), axis_index_groups=[[0, 3], [1, 2]]))
        assert np.asarray(found).tolist() == [3.0, 3.0, 3.0, 3.0]
        found = run(lambda x: lax.psum(x, ["x"]))
        assert np.asarray(found).tolist() == [2.0, 4.0, 2.0, 4.0]
    with pytest.raises(NameError, match="unbound axis name 'x'; expected a call inside the body of shard_map or pmap"):
        lax.psum(1.0, "x")


def test_jit_refuses_devices_that_differ():
    with ad.simulate(4):
        first, second = ad.devices()[:2]
        a, b = ad.device_put(np.ones(2), first), ad.device_put(np.ones(2), second)
        assert refused(lambda: ad.jit(lambda x, y: x)(a, b)).endswith(
            "args[0] and args[1] are on different devices; expected the same devices in the same order, got [0] and "
            "[1]; move an argument by device_put(x, sharding)"
        )
        assert ad.jit(lambda x, y: x)(a, ad.device_put(np.ones(2), first)).device == first
        sharding = ad.SingleDeviceSharding(second)
        line = ad.make_mesh((4,), ("x",))
        rows = ad.device_put(np.ones(4), NamedSharding(line, P("x")))
        assert "args[0] is committed to another sharding than in_shardings has" in refused(
            lambda: ad.jit(identity, in_shardings=NamedSharding(line, P(None)))(rows)
        )
        assert ad.jit(identity, in_shardings=sharding)(b).device == second
        assert ad.jit(identity, out_shardings=sharding)(np.ones(2)).device == second
        assert ad.jit(lambda x: 1.5)(a).device == first
        assert ad.jit(lambda x: np.zeros(3))(b).device == second
        assert (
            "keyword arguments came with in_shardings; expected positional ones, to which in_shardings apply, got x"
            in (refused(lambda: ad.jit(identity, in_shardings=sharding)(x=b)))
        )
        assert "device or backend came with in_shardings or out_shardings" in refused(
            lambda: ad.jit(identity, device=first, in_shardings=sharding)
        )
        assert "device and backend are both given" in refused(lambda: ad.jit(identity, device=first, backend="cpu"))
        assert ad.jit(identity, device=second)(np.ones(2)).device == second
        assert ad.jit(identity, backend="cpu")(np.ones(2)).device == first
        assert "out_shardings is of type int; expected a Sharding, a PartitionSpec or None, got 3" in refused(
            lambda: ad.jit(identity, out_shardings=3), TypeError
        )
        mesh = ad.make_mesh((4,), ("x",))
        with ad.set_mesh(mesh):
            assert "device or backend was passed under set_mesh, whose mesh places the call" in refused(
                lambda: ad.jit(identity, device=first)(np.ones(4))
            )
            placed = ad.jit(identity, out_shardings=P("x"))(np.ones(4))
            assert placed.sharding == NamedSharding(mesh, P("x"))
        for name in ("lower", "compile", "trace", "eval_shape"):
            assert f".{name}: nothing is compiled here; expected a plain call of the function" in refused(
                getattr(ad.jit(identity), name), NotImplementedError
            )
        assert ad.jit(identity).clear_cache() is None
