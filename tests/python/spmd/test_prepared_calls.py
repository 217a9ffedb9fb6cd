# SPDX-License-Identifier: Apache-2.0
"""Prepared calls that mapped functions cache: how many worlds they keep alive, and what tells them apart."""

import gc
import weakref

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P
from artifex_devices._base import clearable_cache
from artifex_devices._base.clearable_cache import WorldCache
from artifex_devices._spmd.mapped import PreparedCall
from artifex_devices._spmd.outputs import Outputs
from artifex_devices._spmd.specs import ParticipantGrid

WORLDS = 40


def live(*kinds):
    gc.collect()
    return [sum(isinstance(each, kind) for each in gc.get_objects()) for kind in kinds]


def total(x):
    return ad.lax.psum(x.sum(), "x")


@pytest.mark.parametrize("kind", ["shard_map", "shard_map of the set mesh", "pmap"])
def test_a_mapped_function_keeps_few_worlds_alive_and_clear_caches_none(kind):
    ad.clear_caches()
    before = live(ParticipantGrid, PreparedCall, Outputs)
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
    after = live(ParticipantGrid, PreparedCall, Outputs)
    assert max(now - then for now, then in zip(after, before, strict=True)) <= 4
    ad.clear_caches()
    assert live(ParticipantGrid, PreparedCall, Outputs) == before
    assert [each() for each in meshes if each() is not None] == []
    assert [each() for each in clients if each() is not None] == []
    assert f is None or callable(f)


def test_a_cache_of_a_function_goes_with_it():
    with ad.simulate(2):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        gc.collect()
        before = len(clearable_cache._world_caches)
        for _ in range(3):
            f = ad.shard_map(total, mesh, in_specs=P("x"), out_specs=P())
            f(np.ones(2))
        assert len(clearable_cache._world_caches) == before + 2  # its prepared calls and its outputs
        del f
        gc.collect()
        assert len(clearable_cache._world_caches) == before


def test_a_world_cache_has_at_most_four_worlds_and_256_entries():
    cache = WorldCache()
    for world in range(6):
        for key in range(2):
            assert cache.remember(world, (world, key), -world) == -world
    assert cache == {(world, key): -world for world in (2, 3, 4, 5) for key in range(2)}
    for key in range(248):
        cache.remember(5, key, key)
    assert len(cache) == 256
    cache.remember(5, "one more", 1)
    assert cache == {"one more": 1}
    ad.clear_caches()
    assert cache == {}


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
