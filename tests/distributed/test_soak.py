# SPDX-License-Identifier: Apache-2.0
"""Random reshards, gathers and collectives over the devices of several processes, beside NumPy.

`ARTIFEX_SOAK_SECONDS=600` goes on for so long with ever other seeds; the default is the same few each time.
"""

import os
import time

import numpy as np
import pytest

SECONDS = float(os.environ.get("ARTIFEX_SOAK_SECONDS", "0"))
STEPS = 25
DTYPES = ["float32", "int8", "float64", "bool", "complex64", "int16", "bfloat16"]


def random_mesh(ad, rng, devices):
    """Some or all devices, in any order, in one to three axes."""
    count = int(rng.choice([n for n in (2, 4, 6, 8) if n <= len(devices)]))
    if rng.random() < 0.6:
        count = len(devices)
    chosen = np.array(devices, dtype=object)[rng.permutation(len(devices))[:count]]
    shapes = [(count,)]
    shapes += [(a, count // a) for a in range(2, count) if count % a == 0]
    shapes += [(2, 2, count // 4)] if count % 4 == 0 else []
    shape = shapes[rng.integers(len(shapes))]
    return ad.Mesh(chosen.reshape(shape), tuple("xyz"[: len(shape)]))


def random_spec(ad, rng, mesh, shape):
    """Some of the axes on some of the dimensions that they divide."""
    axes = list(rng.permutation(list(mesh.axis_names)))
    entries = []
    for size in shape:
        taken = []
        while axes and rng.random() < 0.6:
            parts = int(np.prod([mesh.shape[name] for name in [*taken, axes[-1]]]))
            if size % parts:
                break
            taken.append(axes.pop())
        entries.append(tuple(taken) if len(taken) > 1 else (taken[0] if taken else None))
    return ad.P(*entries)


def value_of(rng, shape, dtype):
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    return (rng.integers(-100, 100, shape)).astype(kind)


def check(ad, x, value):
    """Every part that is here is what NumPy cuts out of the value."""
    for shard in x.addressable_shards:
        expected = np.ascontiguousarray(value[shard.index])
        found = np.asarray(shard.data)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.tobytes() == expected.tobytes(), (x.sharding, shard.index)


def collect(ad, x, value):
    """Sums, maxima and gathers over all axes of the mesh, where all devices of the world take part."""
    mesh, axes = x.sharding.mesh, x.sharding.mesh.axis_names
    if mesh.size < ad.device_count() or value.dtype.kind not in "iu":
        return
    size = mesh.size

    def body(block):
        total = ad.lax.psum(block.astype(np.int64), axes).sum()
        most = ad.lax.pmax(block.astype(np.int64).max(), axes)
        me = ad.lax.axis_index(axes)
        return np.array([total, most]), ad.lax.all_gather(me, axes)

    sums, members = ad.shard_map(
        body, mesh=mesh, in_specs=x.sharding.spec, out_specs=(ad.P(), ad.P()), check_vma=False
    )(x)
    used = [name for entry in x.sharding.spec if entry for name in (entry if isinstance(entry, tuple) else (entry,))]
    copies = size // int(np.prod([mesh.shape[name] for name in used], dtype=int))
    assert np.asarray(sums).tolist() == [int(value.astype(np.int64).sum()) * copies, int(value.max())]
    assert np.asarray(members).tolist() == list(range(size))


def wander(seed, steps, seconds):
    """Moves one value from sharding to sharding; all processes draw the same numbers."""
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    done = 0
    begin = time.monotonic()
    while True:
        rng = np.random.default_rng([seed, done])
        rank = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.choice([4, 8, 12, 16, 24, 48], rank))
        value = value_of(rng, shape, DTYPES[rng.integers(len(DTYPES))])
        mesh = random_mesh(ad, rng, ad.devices())
        x = ad.device_put(value, ad.NamedSharding(mesh, random_spec(ad, rng, mesh, shape)))
        for _ in range(steps):
            check(ad, x, value)
            collect(ad, x, value)
            if rng.random() < 0.5:
                mesh = random_mesh(ad, rng, ad.devices())
            x = ad.device_put(x, ad.NamedSharding(mesh, random_spec(ad, rng, mesh, shape)))
            done += 1
        if len({device.process_index for device in mesh.devices.flat}) > 1:
            assert multihost_utils.process_allgather(x, tiled=True).tobytes() == value.tobytes()
        # The processes stop together.
        over = time.monotonic() - begin >= seconds
        if multihost_utils.broadcast_one_to_all(np.array(over)):
            return done


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize(("count", "devices"), [(2, 2), (2, 4), (3, 2), (4, 2)])
def test_values_do_not_change_by_any_route(processes, count, devices):
    seed = int(time.time()) if SECONDS else 7
    found = processes(count, wander, seed, STEPS, SECONDS / 4, devices=devices, timeout=60 + SECONDS).values
    assert len(set(found)) == 1
    assert found[0] >= STEPS
