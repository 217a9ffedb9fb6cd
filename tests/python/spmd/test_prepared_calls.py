# SPDX-License-Identifier: Apache-2.0
"""Prepared calls that mapped functions cache: how many worlds they keep alive, and what tells them apart."""

import gc
import weakref

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P
from artifex_devices._core import internal

WORLDS = 40


def total(x):
    return ad.lax.psum(x.sum(), "x")


@pytest.mark.parametrize("kind", ["shard_map", "shard_map of the set mesh", "pmap"])
def test_a_mapped_function_keeps_few_worlds_alive_and_clear_caches_none(kind):
    ad.clear_caches()
    functions = {
        "shard_map of the set mesh": ad.shard_map(total, in_specs=P("x"), out_specs=P()),
        "pmap": ad.pmap(total, "x"),
    }
    f = functions.get(kind)
    meshes, clients = [], []
    for _ in range(WORLDS):
        with ad.simulate(2) as client:
            clients.append(weakref.ref(client))
            mesh = ad.Mesh(np.array(ad.devices()), ("x",))
            meshes.append(weakref.ref(mesh))
            g = f or ad.shard_map(total, mesh, in_specs=P("x"), out_specs=P())
            with ad.set_mesh(mesh):
                result = np.asarray(g(np.array([3.0, 4.0])))
            assert (result == 7.0).all()
    del client, mesh, g
    gc.collect()
    assert sum(each() is not None for each in meshes) <= 4
    ad.clear_caches()
    gc.collect()
    assert [each() for each in meshes if each() is not None] == []
    assert [each() for each in clients if each() is not None] == []
    assert f is None or callable(f)


def test_the_caches_of_a_function_go_with_it():
    def call(count):
        for _ in range(count):
            f = ad.shard_map(total, mesh, in_specs=P("x"), out_specs=P())
            f(np.ones(2))
        del f
        gc.collect()
        return len(gc.get_objects())

    with ad.simulate(2):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        assert call(2) + 50 > call(100)


def test_prepared_calls_of_pmap_differ_by_the_names_of_keywords():
    def f(x, a=0.0, b=0.0):
        return x + a + 10 * b

    with ad.simulate(2):
        g = ad.pmap(f)
        x, y = np.arange(2.0), np.ones(2)
        np.testing.assert_array_equal(np.asarray(g(x, a=y)), x + 1)
        np.testing.assert_array_equal(np.asarray(g(x, b=y)), x + 10)
        np.testing.assert_array_equal(np.asarray(g(x, a=y, b=2 * y)), x + 21)
        np.testing.assert_array_equal(np.asarray(g(x, b=2 * y, a=y)), x + 21)
        gone = ad.device_put(y, ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("i",)), P("i")))
        g(x, a=gone)
        g(x, b=gone)
        gone.delete()
        for name in ("a", "b"):
            with pytest.raises(RuntimeError, match=rf"^pmap\(f\): {name} of float64\(2,\) was deleted"):
                g(x, **{name: gone})


def test_blocks_of_one_allocation_have_one_owner_that_outlives_the_array():
    with ad.simulate(8):
        mesh = ad.Mesh(np.array(ad.devices()), ("i",))
        x = ad.device_put(np.arange(24.0), ad.NamedSharding(mesh, P("i")))
        blocks = internal.local_arrays(x)
        assert len({id(block.base) for block in blocks}) == 1
        shard = x.addressable_shards[2].data
        assert internal.local_arrays(shard)[0].tolist() == [6.0, 7.0, 8.0]
        del x, shard
        gc.collect()
        assert [block.tolist() for block in blocks[1:3]] == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
