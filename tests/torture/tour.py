# SPDX-License-Identifier: Apache-2.0
"""Work of each kind, to be repeated, interrupted and abandoned. Each checks its values."""

import pickle

import artifex_devices as ad
import numpy as np
from artifex_devices import P, lax
from artifex_devices.dlpack import from_dlpack
from artifex_devices.prefetch import prefetch_to_device

BIG = np.arange(1 << 21, dtype=np.float32).reshape(1024, 2048)  # 8 MiB: over the worker pool


def over(spec, devices=None):
    """A sharding over all devices in one axis x."""
    return ad.NamedSharding(ad.Mesh(np.array(devices or ad.devices()), ("x",)), spec)


def equal(array, expected):
    """Bit by bit."""
    found = np.asarray(array)
    assert found.dtype == expected.dtype
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()


def place():
    equal(ad.device_put(BIG, over(P("x"))), BIG)


def reshard():
    x = ad.device_put(BIG, over(P("x")))
    equal(ad.device_put(x, over(P(None, "x"))), BIG)


def abandon_a_reshard():
    ad.device_put(ad.device_put(BIG, over(P("x"))), over(P(None, "x")))


def donate():
    x = ad.device_put(BIG, over(P("x")))
    equal(ad.device_put(x, ad.devices()[1], donate=True), BIG)
    assert x.is_deleted()


def copy_to_host():
    equal(ad.copy_to_host_async(ad.device_put(BIG, over(P(None, "x")))).result(), BIG)


def abandon_a_copy_to_host():
    ad.copy_to_host_async(ad.device_put(BIG, over(P(None, "x"))))


def get_a_tree():
    x = ad.device_put({"a": BIG, "b": [BIG[:8], 1.0]}, over(P()))
    equal(ad.device_get(x)["a"], BIG)


def wait_for_a_tree():
    x = ad.device_put(ad.device_put([BIG, BIG[:8]], over(P("x"))), over(P(None, "x")))
    assert ad.block_until_ready(x) is x


def wait():
    ad.device_put(ad.device_put(BIG, over(P("x"))), over(P(None, "x"))).block_until_ready()


def elementwise():
    x = ad.device_put(BIG, over(P("x")))
    equal(x + x, BIG + BIG)


def reduce():
    x = ad.device_put(np.ones(BIG.shape, np.float32), over(P("x")))
    assert float(np.asarray(x.sum())) == BIG.size


def from_callback():
    equal(ad.make_array_from_callback(BIG.shape, over(P("x")), BIG.__getitem__), BIG)


def prefetch():
    for i, batch in enumerate(prefetch_to_device((np.full((64, 64), i) for i in range(4)), over(P("x")))):
        equal(batch, np.full((64, 64), i))


def abandon_a_prefetch():
    for _ in prefetch_to_device((BIG for _ in iter(int, 1)), over(P("x"))):
        break


def program(executor):
    def body(block):
        return lax.psum(lax.psum(block, "x") * 2, "x")

    mapped = ad.shard_map(body, over(P("x")).mesh, in_specs=P("x"), out_specs=P(), executor=executor)
    equal(mapped(np.arange(8)), np.full(1, 28 * 2 * 8))


def threads():
    program("threads")


def cooperative():
    program("cooperative")


def mapped():
    equal(ad.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.arange(8)), np.full(8, 28))


def views():
    x = ad.device_put(BIG, ad.devices()[0])
    view = np.from_dlpack(x)
    x.delete()
    equal(from_dlpack(view.copy()), BIG)
    equal(view, BIG)


def pickles():
    equal(pickle.loads(pickle.dumps(ad.device_put(BIG[:64], over(P("x"))))), BIG[:64])


def worlds():
    with ad.simulate(4):
        equal(ad.device_put(BIG, over(P("x"))), BIG)


def seeded_worlds():
    with ad.simulate(4, seed=7):
        equal(ad.device_put(ad.device_put(BIG, over(P("x"))), over(P(None, "x"))), BIG)


KINDS = {
    each.__name__: each
    for each in (
        place,
        reshard,
        abandon_a_reshard,
        donate,
        copy_to_host,
        abandon_a_copy_to_host,
        get_a_tree,
        wait,
        wait_for_a_tree,
        elementwise,
        reduce,
        from_callback,
        prefetch,
        abandon_a_prefetch,
        threads,
        cooperative,
        mapped,
        views,
        pickles,
        worlds,
        seeded_worlds,
    )
}


def whole():
    """Each once."""
    for each in KINDS.values():
        each()
