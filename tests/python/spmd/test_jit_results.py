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


def test_a_result_moves_to_the_devices_of_the_arguments():
    x, other = (ad.device_put(np.arange(4.0), ad.devices()[number]) for number in (1, 2))
    assert ad.jit(lambda x: x)(x) is x
    moved = ad.jit(lambda x: other)(x)
    assert moved.sharding == on(1)
    assert np.array_equal(moved, np.arange(4.0))


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
