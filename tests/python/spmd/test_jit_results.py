# SPDX-License-Identifier: Apache-2.0
"""Where results of jit are placed, and which buffers become those of results."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P


@pytest.fixture(scope="module", autouse=True)
def world():
    with ad.simulate(4):
        yield


def on(number):
    return ad.SingleDeviceSharding(ad.devices()[number])


def test_an_array_of_a_call_without_placement_is_returned_as_it_is():
    committed, uncommitted = ad.device_put(np.ones(4), ad.devices()[2]), ad.device_put(np.ones(4))
    assert ad.jit(lambda: committed)() is committed
    assert ad.jit(lambda: uncommitted)() is uncommitted


def test_an_uncommitted_result_moves_to_the_devices_of_the_arguments():
    x, other = ad.device_put(np.arange(4.0), ad.devices()[1]), ad.device_put(np.arange(4.0))
    assert ad.jit(lambda x: x)(x) is x
    moved = ad.jit(lambda x: other)(x)
    assert moved.sharding == on(1)
    assert np.array_equal(moved, np.arange(4.0))


def rows(devices, *entries):
    return ad.NamedSharding(ad.Mesh(np.array(ad.devices())[devices], ("b",)), P(*entries))


# What a function may do with its argument on devices 0 and 1, and the devices that the error names.
PLACES_ELSEWHERE = {
    "with_sharding_constraint": (
        lambda v: ad.lax.with_sharding_constraint(v, rows(slice(2, 4), "b")),
        "output",
        "2, 3",
    ),
    "device_put": (lambda v: ad.device_put(v, rows(slice(2, 4), "b")), "output", "2, 3"),
    "device_put to one device": (lambda v: ad.device_put(v, ad.devices()[3]), "output", "3"),
    "device_put to one of the devices": (lambda v: ad.device_put(v, ad.devices()[0]), "output", "0"),
    "device_put to more devices": (lambda v: ad.device_put(v, rows(slice(4), "b")), "output", "0, 1, 2, 3"),
    "device_put to another order": (lambda v: ad.device_put(v, rows([1, 0], "b")), "output", "1, 0"),
    "reshard": (lambda v: ad.reshard(v, rows(slice(2, 4), "b")), "output", "2, 3"),
    "a computed result": (lambda v: ad.device_put(v, rows(slice(2, 4), "b")) * 2, "output", "2, 3"),
    "a leaf": (lambda v: {"a": v, "b": [ad.device_put(v, ad.devices()[3])]}, r"output\['b'\]\[0\]", "3"),
    "a constant": (lambda v: ad.device_put(np.ones(3), ad.devices()[3]), "output", "3"),
}


@pytest.mark.parametrize("name", PLACES_ELSEWHERE)
@pytest.mark.parametrize("out_shardings", [False, True])
def test_a_function_must_not_place_a_result_on_other_devices(name, out_shardings):
    function, path, devices = PLACES_ELSEWHERE[name]
    x = ad.device_put(np.arange(4.0), rows(slice(2), "b"))
    options = {"out_shardings": rows(slice(2))} if out_shardings else {}
    with pytest.raises(ValueError, match=rf"placed {path} on other devices .* got \[{devices}\] in a call on \[0, 1\]"):
        ad.jit(function, **options)(x)
    with ad.set_mesh(rows(slice(2)).mesh), pytest.raises(ValueError, match=rf"placed {path} on other devices"):
        ad.jit(function)(np.arange(4.0))


def test_without_a_placement_all_results_of_a_function_are_on_the_same_devices():
    first, second = rows(slice(2), "b"), rows(slice(2, 4), "b")
    assert ad.jit(lambda v: ad.device_put(v, second))(np.arange(4.0)).sharding == second
    with pytest.raises(ValueError, match=r"placed output\[1\] on other devices .* got \[2, 3\] in a call on \[0, 1\]"):
        ad.jit(lambda v: (ad.device_put(v, first), ad.device_put(v, second)))(np.arange(4.0))


def test_a_committed_array_that_is_not_an_argument_must_be_on_the_devices_of_the_call():
    x, other = (ad.device_put(np.arange(4.0), ad.devices()[number]) for number in (1, 2))
    with pytest.raises(ValueError, match=r"got \[2\] in a call on \[1\]; move it after the call"):
        ad.jit(lambda x: other)(x)


def test_a_list_of_in_shardings_has_one_for_each_argument():
    split, whole = rows(slice(2), "b"), rows(slice(2))
    for shardings in ([split, whole], (split, whole)):
        one, two = ad.jit(lambda a, b: (a, b), in_shardings=shardings)(np.arange(4.0), [np.arange(2.0)])
        assert one.sharding == split
        assert two[0].sharding == whole
    one, _ = ad.jit(lambda a, n: (a, n), in_shardings=[split], static_argnums=1)(np.arange(4.0), 3)
    assert one.sharding == split
    with pytest.raises(ValueError, match="in_shardings has 1 entry, and the call has 2 positional arguments"):
        ad.jit(lambda a, b: a, in_shardings=[split])(np.arange(4.0), np.arange(4.0))


@pytest.mark.parametrize("value", [np.ones(2), 3, [np.ones(2), 1.5]])
def test_results_go_to_the_device_of_the_call(value):
    call = ad.jit(lambda *_: value, device=ad.devices()[3])
    for arguments in ((), (np.ones(2),), (ad.device_put(np.ones(2)),)):
        assert {leaf.sharding for leaf in ad.tree.leaves(call(*arguments))} == {on(3)}


@pytest.mark.parametrize(("spec", "count"), [(P(), 1), (P("x"), 4)])
def test_new_buffers_become_those_of_the_result_without_a_copy(spec, count):
    mesh = ad.make_mesh((4,), ("x",))
    addresses = []

    def body(_):
        result = np.full(1 << 18, 2.0)
        addresses.append(result.ctypes.data)
        return result

    found = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=spec)(np.ones(4))
    pointers = {shard.data.unsafe_buffer_pointer() for shard in found.addressable_shards}
    assert len(pointers) == count
    assert pointers <= set(addresses)
