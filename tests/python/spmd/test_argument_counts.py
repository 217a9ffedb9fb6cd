# SPDX-License-Identifier: Apache-2.0
"""Numbers of arguments and results that do not agree with their specs, and arguments by keyword."""

import functools

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import NamedSharding, P


def two_arguments(a, b=1.0):
    return a + b


def test_keyword_arguments_of_a_mapped_function_are_refused():
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        mapped = ad.shard_map(two_arguments, mesh, (P("x"), P()), P("x"))
        with pytest.raises(TypeError) as raised:
            mapped(np.zeros(8), b=2.0)
        assert str(raised.value) == (
            "shard_map(two_arguments): unexpected keyword arguments; expected positional arguments, to which in_specs "
            "apply, got b; pass them by position, or bind constants to the function that is mapped: "
            "functools.partial(two_arguments, b=b)"
        )
        names = {"functools": functools, "two_arguments": two_arguments, "b": 2.0}
        bound = eval(str(raised.value).rpartition(": ")[2], names)
        assert ad.shard_map(bound, mesh, P("x"), P("x"))(np.zeros(8)).tolist() == [2.0] * 8
        with pytest.raises(TypeError, match=r"shard_map\(<lambda>\): .* functools\.partial\(f, k=k\)"):
            ad.shard_map(lambda a, k: a, mesh, P("x"), P("x"))(np.zeros(8), k=1)


def function_of(kind, entries, mesh):
    """A function of two or more arguments that returns their sum, with this prefix as in_specs or in_axes."""
    if kind == "in_specs":
        return ad.shard_map(lambda *a: sum(a), mesh, entries, P("x"))
    if kind == "in_axes":
        return ad.pmap(lambda *a: sum(a), in_axes=entries)
    return ad.jit(lambda *a: sum(a), in_shardings=entries)


@pytest.mark.parametrize(
    ("kind", "entries", "count", "has", "repair"),
    [
        ("in_specs", "(P('x'),)", 2, "1 entry", "(P('x',), P())"),
        ("in_specs", "(P('x'), P())", 1, "2 entries", "(P('x',),)"),
        ("in_specs", "[P('x'), P()]", 2, "2 entries in a list", "(P('x',), P())"),
        ("in_axes", "(0,)", 2, "1 entry", "(0, None)"),
        ("in_axes", "(0, None, 0)", 2, "3 entries", "(0, None)"),
        ("in_shardings", "(s,)", 2, "1 entry", "(*in_shardings, None)"),
        ("in_shardings", "(s, s, s)", 2, "3 entries", "tuple(in_shardings[:2])"),
    ],
)
def test_a_wrong_number_of_arguments_is_refused_with_both_numbers(kind, entries, count, has, repair):
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        names = {"P": P, "s": NamedSharding(mesh, P("x"))}
        names[kind] = eval(entries, names)
        arguments = [np.arange(8.0), np.arange(8.0) if kind == "in_shardings" else np.float64(2)][:count]
        with pytest.raises(ValueError, match=f"{kind} has {has}") as raised:
            function_of(kind, names[kind], mesh)(*arguments)
        call = f"the call has {count} positional argument{'s' * (count > 1)}"
        fewer = f"pass {len(names[kind])} arguments, or " if len(names[kind]) > count else ""
        assert str(raised.value).endswith(f": {kind} has {has}, and {call}; {fewer}write {kind}={repair}")
        result = function_of(kind, eval(repair, names), mesh)(*arguments)
    np.testing.assert_array_equal(np.asarray(result), sum(arguments))


@pytest.mark.parametrize(
    ("body", "entries", "has", "returns", "repair"),
    [
        (lambda a: (a, a), "(P('x'), P('x'), P('x'))", "3 entries", "2 values", "(P('x',), P('x',))"),
        (lambda a: (a, a), "(P('x'),)", "1 entry", "2 values", "(P('x',), P('x',))"),
        (lambda a: a, "(P('x'), P('x'))", "2 entries", "1 value", "P('x',)"),
    ],
)
def test_a_wrong_number_of_results_is_refused_with_both_numbers(body, entries, has, returns, repair):
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        with pytest.raises(ValueError, match=f"out_specs has {has}") as raised:
            ad.shard_map(body, mesh, P("x"), eval(entries))(np.arange(8.0))
        expected = f": out_specs has {has}, and the function returns {returns}; write out_specs={repair}"
        assert str(raised.value).endswith(expected)
        ad.shard_map(body, mesh, P("x"), eval(repair))(np.arange(8.0))


@pytest.mark.parametrize("body", [lambda a: a, lambda a: {"k": a}])
def test_no_specs_for_a_result_are_refused(body):
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        with pytest.raises(ValueError, match="out_specs is not a prefix: at out_specs: expected tuple of 0"):
            ad.shard_map(body, mesh, P("x"), ())(np.arange(8.0))


def test_arguments_by_keyword_do_not_count_for_in_axes():
    with ad.simulate(8), pytest.raises(ValueError, match="in_axes has 2 entries, and the call has 1 pos"):
        ad.pmap(two_arguments, in_axes=(0, 0))(np.zeros(8), b=np.zeros(8))
