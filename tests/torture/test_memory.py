# SPDX-License-Identifier: Apache-2.0
"""A million devices, threads on the same Arrays, exit with views alive."""

import gc
import resource
import threading

import numpy as np
import pytest
import tour


def a_million_devices():
    """In less than 1 GB, the Python objects of all devices included."""
    import artifex_devices as ad
    from artifex_devices import P

    with ad.simulate(10**6, compile_only=True):
        devices = ad.devices()
        assert len(devices) == 10**6
        mesh = ad.Mesh(np.array(devices).reshape(1000, 1000), ("x", "y"))
        sharding = ad.NamedSharding(mesh, P("x", "y"))
        assert sharding.shard_shape((10**6, 2000)) == (1000, 2)
        assert sharding.num_devices == 10**6
        assert len(sharding.device_set) == 10**6
        assert sharding.devices_indices_map((10**6, 2000))[devices[-1]] == (slice(999_000, 10**6), slice(1998, 2000))
        assert ad.make_mesh((1000, 1000), ("a", "b")).devices[999, 999].id == 10**6 - 1
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert most < 10**9, most


def test_a_million_devices_fit_one_gigabyte(own_process):
    own_process(a_million_devices)


def same_arrays():
    """8 threads place, reshard, read, pickle, donate and delete 24 Arrays, each of its own value."""
    import pickle

    import artifex_devices as ad
    from artifex_devices import P

    mesh = ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))
    places = [ad.NamedSharding(mesh, spec) for spec in (P("x", "y"), P("y"), P(None, "x"), P(("y", "x")), P())]
    places += ad.devices()[:3]
    shapes = [(8, 16), (64, 128), (256, 512)]
    slots = [None] * 24
    errors = []
    done = [0] * 8

    def fill(random, slot):
        tag = int(random.integers(1 << 40))
        shape = shapes[slot % 3]
        value = tag + np.arange(np.prod(shape)).reshape(shape)
        slots[slot] = (ad.device_put(value, places[random.integers(8)]), value)

    def work(number):
        random = np.random.default_rng(number)
        for _ in range(500):
            slot = int(random.integers(24))
            array, value = slots[slot]
            kind = random.integers(8)
            try:
                if kind < 2:
                    tour.equal(array, value)
                elif kind == 2:
                    tour.equal(ad.device_put(array, places[random.integers(8)]), value)
                elif kind == 3:
                    tour.equal(pickle.loads(pickle.dumps(array)), value)
                elif kind == 4:
                    tour.equal(array + array, value + value)
                elif kind == 5:
                    tour.equal(ad.copy_to_host_async(array).result(), value)
                elif kind == 6:
                    tour.equal(ad.device_put(array, places[random.integers(8)], donate=True), value)
                    fill(random, slot)
                else:
                    array.delete()
                    fill(random, slot)
            except RuntimeError as error:
                if "deleted" not in str(error):
                    errors.append(error)
                fill(random, slot)
            except BaseException as error:
                errors.append(error)
            done[number] += 1

    random = np.random.default_rng(99)
    for slot in range(24):
        fill(random, slot)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert done == [500] * 8
    slots.clear()
    gc.collect()
    assert ad.live_arrays() == []
    assert [device.memory_stats()["bytes_in_use"] for device in ad.devices()] == [0] * 8


def test_eight_threads_on_the_same_arrays_see_whole_values(own_process):
    own_process(same_arrays)


KEPT = []  # at exit


def end_with_views(where):
    """The process ends while views are held where Python lets go of them late, or never."""
    import sys
    import threading

    import artifex_devices as ad
    from artifex_devices.dlpack import from_dlpack

    x = ad.device_put(tour.BIG, ad.devices()[0])
    foreign = tour.BIG.copy()
    exports = [np.from_dlpack(x), memoryview(x), x.__dlpack__(), from_dlpack(foreign, copy=False)]
    exports.append(np.from_dlpack(exports[-1]))
    x.delete()
    del foreign
    if where == "module":
        KEPT.extend(exports)
    elif where == "cycle":
        exports.append(exports)
    elif where == "sys":
        sys.kept_views = exports
    elif where == "thread":

        def hold(views=exports):
            threading.Event().wait()
            del views

        threading.Thread(target=hold, daemon=True).start()
    elif where == "world":
        world = ad.simulate(2)
        world.__enter__()
        KEPT.extend([ad.device_put(tour.BIG), np.from_dlpack(ad.device_put(tour.BIG)), *exports])
    tour.equal(exports[0], tour.BIG)
    sys.exit(5)


@pytest.mark.parametrize("where", ["module", "cycle", "sys", "thread", "world"])
def test_exit_with_views_alive(own_process, where):
    assert own_process(end_with_views, where, code=5) == []
