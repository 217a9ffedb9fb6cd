# SPDX-License-Identifier: Apache-2.0
"""simulate(seed=...): copies run as late as possible, in an order drawn from the seed; every read waits for them."""

from __future__ import annotations

import ctypes

import artifex_devices as ad
import numpy as np
import pytest

X = np.arange(128, dtype=np.float32).reshape(8, 16)
UNWRITTEN = b"\xa5\xa5\xa5\xa5"
SPECS = [ad.P(), ad.P("x"), ad.P("y", "x"), ad.P(None, ("x", "y")), ad.P(("x", "y")), ad.P("x", "y")]


@pytest.fixture(params=["cpu", "gpu"])
def platform(request):
    return request.param


def grid():
    return ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))


@pytest.mark.parametrize("seed", range(10))
def test_every_read_waits_for_its_copy(platform, seed):
    random = np.random.default_rng(seed)
    with ad.simulate({platform: "2 nodes x 4"}, seed=seed):
        arrays = [ad.device_put(X, ad.NamedSharding(grid(), ad.P("x", "y")))]
        for _ in range(12):
            source = arrays[random.integers(len(arrays))]
            target = ad.NamedSharding(grid(), SPECS[random.integers(len(SPECS))])
            arrays.append(ad.device_put(source, target, may_alias=False))
        copies = [array.copy_to_host_async() for array in arrays[::3]]
        order = random.permutation(len(arrays))
        for i in order[:4]:
            np.testing.assert_array_equal(ad.device_get(arrays[i] * 2), X * 2)
            np.testing.assert_array_equal(ad.device_get(arrays[i].sum(axis=0)), X.sum(axis=0))
        for i in order[4:8]:
            np.testing.assert_array_equal(np.asarray(arrays[i]), X)
            assert [np.asarray(s.data).tolist() for s in arrays[i].addressable_shards] == [
                X[s.index].tolist() for s in arrays[i].addressable_shards
            ]
        for copy in copies:
            np.testing.assert_array_equal(copy.result(), X)
        double = ad.shard_map(lambda x: x * 2, mesh=grid(), in_specs=ad.P("x", "y"), out_specs=ad.P("x", "y"))
        for i in order[8:]:
            np.testing.assert_array_equal(ad.device_get(double(arrays[i])), X * 2)


def first_bytes(array):
    """The memory of a CPU device as it is, without a wait."""
    return ctypes.string_at(array.unsafe_buffer_pointer(), 4)


def moves(count=8):
    first, second = ad.devices()[0], ad.devices()[4]
    sources = [ad.device_put(np.full(4, i + 1, np.float32), first) for i in range(count)]
    return [ad.device_put(source, second, may_alias=False) for source in sources]


def test_copies_run_when_a_thread_waits():
    with ad.simulate("2 nodes x 4", seed=3):
        (moved,) = moves(1)
        with ad.transfers.record() as report:
            later = ad.device_put(moved, ad.devices()[1])
        assert report.calls() == 1  # counted where it is started
        assert not later.is_ready()  # polling has run the copy before it
        assert later.is_ready()
        np.testing.assert_array_equal(np.asarray(later), np.ones(4))
    with ad.simulate("2 nodes x 4"):
        (moved,) = moves(1)
        assert moved.is_ready()


def test_the_order_is_repeatable_and_differs_between_seeds():
    def written_before_the_last(seed):
        with ad.simulate("2 nodes x 4", seed=seed):
            moved = moves()
            moved[-1].block_until_ready()
            ready = [first_bytes(array) != UNWRITTEN for array in moved]
            for i, array in enumerate(moved):
                np.testing.assert_array_equal(np.asarray(array), np.full(4, i + 1))
            return tuple(ready)

    orders = {seed: written_before_the_last(seed) for seed in range(8)}
    assert orders == {seed: written_before_the_last(seed) for seed in range(8)}
    assert len(set(orders.values())) > 3


def order_of_copies(seed, disturb=lambda: None):
    """Which copies have run after each wait; `disturb` is called before each step."""
    seen = []
    with ad.simulate("2 nodes x 4", seed=seed):
        first, second = ad.devices()[0], ad.devices()[4]
        moved = []
        for i in range(8):
            disturb()
            moved.append(ad.device_put(ad.device_put(np.full(4, i + 1, np.float32), first), second, may_alias=False))
        for i in (5, 2, 7, 0):
            disturb()
            moved[i].block_until_ready()
            seen.append(tuple(first_bytes(array) != UNWRITTEN for array in moved))
    return seen


def test_two_worlds_with_seeds_do_not_change_each_other_s_order():
    alone = {seed: order_of_copies(seed) for seed in range(6)}

    def another_world():
        with ad.simulate(8, seed=99):
            moved = moves(3)
            moved[1].block_until_ready()
            moved[0].is_ready()

    def a_world_without_seed():
        with ad.simulate(8):
            ad.device_put(moves(1)[0], ad.devices()[1]).block_until_ready()

    for disturb in (another_world, a_world_without_seed, lambda: order_of_copies(5)):
        assert {seed: order_of_copies(seed, disturb) for seed in range(6)} == alone


def test_an_array_that_moves_between_worlds_with_seeds_arrives():
    with ad.simulate(2, seed=1):
        source = ad.device_put(ad.device_put(np.arange(4.0), ad.devices()[0]), ad.devices()[1], may_alias=False)
        for seed in (2, None):
            with ad.simulate(2, seed=seed):
                np.testing.assert_array_equal(np.asarray(ad.device_put(source, ad.devices()[1])), np.arange(4.0))


def test_copies_that_nobody_awaits_run_at_the_end_of_the_world():
    with ad.simulate("2 nodes x 4", seed=1):
        moved = moves()
        assert [first_bytes(array) for array in moved] == [UNWRITTEN] * 8
    assert [first_bytes(array) for array in moved] == [np.float32(i + 1).tobytes() for i in range(8)]


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("7", TypeError)])
def test_bad_seeds_are_refused(seed, error):
    with pytest.raises(error, match="simulate: seed"):
        ad.simulate(2, seed=seed)
