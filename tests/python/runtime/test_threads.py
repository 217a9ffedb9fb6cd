# SPDX-License-Identifier: Apache-2.0
"""Many threads on the same Arrays: a value, or the documented error, and never a crash."""

import copy
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.dlpack import from_dlpack
from artifex_devices.testing import assert_same_bits
from many_threads import THREADS, together

ROUNDS = 60
SMALL = np.arange(64, dtype=np.float32).reshape(8, 8)
BIG = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)  # 1 MiB: over the worker pool, without the GIL


USES = {
    "get": lambda array, value, target: assert_same_bits(np.asarray(array), value),
    "device_get": lambda array, value, target: assert_same_bits(ad.device_get(array), value),
    "reshard": lambda array, value, target: assert_same_bits(np.asarray(ad.device_put(array, target)), value),
    "pickle": lambda array, value, target: assert_same_bits(pickle.loads(pickle.dumps(array)), value),
    "copy": lambda array, value, target: assert_same_bits(copy.deepcopy(array), value),
    "repr": lambda array, value, target: repr(array),
    "shards": lambda array, value, target: [
        assert_same_bits(shard.data, value[shard.index]) for shard in array.addressable_shards
    ],
    "dlpack": lambda array, value, target: assert_same_bits(
        from_dlpack(array.addressable_data(0)), parts(array, value)
    ),
}


def parts(array, value):
    return value[array.addressable_shards[0].index]


@pytest.mark.parametrize("use", USES)
def test_a_delete_in_the_middle_gives_a_value_or_the_error(use, named, devices):
    errors = []
    for i in range(ROUNDS):
        value = BIG if i % 4 == 0 else SMALL
        array = ad.device_put(value, named("x", "y") if i % 2 else devices[1])

        def work(number, array=array, value=value):
            if number == 3:
                array.delete()
                return
            try:
                USES[use](array, value, named("y"))
            except (RuntimeError, BufferError) as error:
                errors.append(str(error))

        together(work, threads=4)
        assert array.is_deleted()
    assert all("deleted" in text for text in errors), set(errors)


def test_threads_make_and_drop_arrays_of_their_own(named, nothing_left):
    def work(number):
        value = BIG + number
        for i in range(12):
            array = ad.device_put(value, named("x", "y") if i % 2 else named("y"))
            assert_same_bits(ad.device_put(array, named(None, "x"), donate=True), value)
            assert array.is_deleted()

    together(work)


def test_views_are_let_go_of_in_other_threads(devices):
    """DLPack views and memoryviews made here, dropped there."""
    views = [(np.from_dlpack(ad.device_put(BIG)), memoryview(ad.device_put(SMALL))) for _ in range(40)]
    imported = [from_dlpack(BIG.copy(), copy=False) for _ in range(40)]

    def work(number):
        while True:
            try:
                (view, memory), array = views.pop(), imported.pop()
            except IndexError:
                return
            assert_same_bits(view, BIG)
            assert memory.tobytes() == SMALL.tobytes()
            assert_same_bits(ad.device_put(array, devices[number]), BIG)

    together(work)


def test_each_thread_has_its_own_world():
    counts = [0] * THREADS

    def work(number):
        for _ in range(10):
            with ad.simulate(number + 1):
                array = ad.device_put(SMALL, ad.devices()[number])
                data = pickle.dumps(array)
                assert pickle.loads(data).devices() == {ad.devices()[number]}
                counts[number] = len(ad.devices())

    together(work)
    assert counts == list(range(1, THREADS + 1))


def test_threads_get_one_object_for_a_client():
    for _ in range(200):
        with ad.simulate(2):
            first, second = ad.devices()
            same = together(lambda _, one=first, other=second: [one.client is other.client for _ in range(20)], 4)
            assert all(map(all, same))
