# SPDX-License-Identifier: Apache-2.0
"""Batches over devices of several processes: each process feeds its own part."""

import numpy as np
import pytest


def whole(x):
    from artifex_devices import multihost_utils

    return multihost_utils.process_allgather(x, tiled=True)


def expected_rows(count, rows=4):
    return np.concatenate([np.arange(rows * 3.0).reshape(rows, 3) + 100 * n for n in range(count)])


def own_rows():
    import artifex_devices as ad

    return np.arange(12.0).reshape(4, 3) + 100 * ad.process_index()


def place_batches():
    import artifex_devices as ad

    mesh = ad.DeviceMeshManager().create_data_parallel_mesh()
    placement = ad.DevicePlacement()
    batch = {"x": own_rows(), "n": 3}
    sharding = ad.NamedSharding(mesh, ad.P("data"))
    distributed = placement.distribute_batch(batch["x"], sharding)
    sharded = placement.shard_batch_dim(batch, mesh)
    moved = placement.distribute_batch(distributed, ad.NamedSharding(mesh, ad.P()))
    own = placement.place_on_device(batch["x"])
    copies = placement.replicate_across_devices(np.arange(3))
    return (
        mesh.shape["data"],
        whole(distributed),
        whole(sharded["x"]),
        sharded["n"],
        np.asarray(moved),
        own.device in ad.local_devices(),
        placement.default_device == ad.local_devices()[0],
        np.asarray(copies).tolist(),
    )


@pytest.mark.parametrize("count", [2, 3])
def test_device_placement_takes_each_processs_part(processes, count):
    rows = expected_rows(count)
    for data, distributed, sharded, number, moved, is_own, is_default, copies in processes(count, place_batches).values:
        assert data == 2 * count
        assert number == 3
        for value in (distributed, sharded, moved):
            assert value.tolist() == rows.tolist()
        assert is_own
        assert is_default
        assert copies == [0, 1, 2]


def prefetch_batches():
    """Draws batches while the processes do other things together, at different times."""
    import time

    import artifex_devices as ad
    from artifex_devices import multihost_utils
    from artifex_devices.prefetch import prefetch_to_device

    mesh = ad.DeviceMeshManager().create_hybrid_mesh(data_parallel_size=ad.process_count(), model_parallel_size=2)
    sharding = ad.NamedSharding(mesh, ad.P("data"))

    def source():
        for i in range(8):
            time.sleep(0.01 * ((i + ad.process_index()) % 3))  # a slow source
            yield {"x": own_rows() + i, "y": np.full(4, i)}

    sums = []
    with prefetch_to_device(source(), sharding) as batches:
        for i, batch in enumerate(batches):
            multihost_utils.sync_global_devices(f"step {i}")
            sums.append((batch["x"].shape, whole(batch["x"]).sum(), whole(batch["y"]).tolist()))
    return sums


def test_prefetching_sends_nothing_and_so_disturbs_nothing(processes):
    base = expected_rows(2)
    for sums in processes(2, prefetch_batches).values:
        assert sums == [((8, 3), (base + i).sum(), [i] * 8) for i in range(8)]


def uneven_batches(length):
    """The shapes of a batch whose last parts are short, placed in every way; each process checks its own shards."""
    import artifex_devices as ad
    from artifex_devices import multihost_utils
    from artifex_devices.batch_placement import batch_share

    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven="last-short")
    rows = np.arange(3.0 * length).reshape(length, 3)
    own = rows[batch_share(sharding, length)]
    placement = ad.DevicePlacement()
    made = [
        ad.make_array_from_process_local_data(sharding, own),
        ad.make_array_from_process_local_data(sharding, own, rows.shape),
        ad.make_array_from_process_local_data(sharding, rows, rows.shape),
        placement.distribute_batch({"x": own}, sharding)["x"],
    ]
    buffer = np.empty_like(own)

    def source():
        for step in range(3):
            buffer[...] = own + step
            yield buffer

    with placement.prefetch_to_device(source(), sharding) as batches:
        for step, batch in enumerate(batches):
            multihost_utils.sync_global_devices(f"step {step}")
            made.append(batch - float(step))
    for x in made:
        for shard in x.addressable_shards:
            assert np.asarray(shard.data).tolist() == rows[shard.index].tolist()
    return len(own), [x.shape for x in made]


@pytest.mark.parametrize(
    ("length", "own"), [(13, [4, 4, 4, 1]), (16, [4] * 4), (9, [4, 4, 1, 0]), (3, [2, 1, 0, 0]), (0, [0] * 4)]
)
def test_the_last_batch_may_be_short(processes, length, own):
    found = processes(4, uneven_batches, length).values
    assert found == [(count, [(length, 3)] * 7) for count in own]


def parts_that_do_not_fit():
    import artifex_devices as ad

    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven="last-short")
    with pytest.raises(ValueError, match=r"^make_array_from_process_local_data: the data of the") as caught:
        ad.make_array_from_process_local_data(sharding, np.ones(3 + ad.process_index()))
    return str(caught.value), ad.make_array_from_process_local_data(sharding, np.ones(2)).shape


def test_sizes_of_parts_that_do_not_fit_together_are_an_error_in_every_process(processes):
    found = processes(2, parts_that_do_not_fit).values
    assert found[0] == found[1]
    assert found[0][1] == (4,)
    assert (
        "expected parts of shape (7,), the sum of all, got dimension 0: process 0 has 3 and its part is 4; dimension "
        "0: process 1 has 4 and its part is 3; cut the global array by batch_placement.batch_share(sharding, length)"
    ) in found[0][0]


def shares():
    import artifex_devices as ad
    from artifex_devices.batch_placement import batch_share

    devices = np.array(ad.devices())
    line = ad.NamedSharding(ad.Mesh(devices, ("data",)), ad.P("data"))
    mixed = ad.NamedSharding(ad.Mesh(devices.reshape(2, 2), ("data", "model")), ad.P("data", "model"))
    model = ad.NamedSharding(ad.Mesh(devices, ("model",)), ad.P(None, "model"))
    twisted = ad.NamedSharding(ad.Mesh(devices[[0, 2, 1, 3]], ("data",)), ad.P("data"))
    try:
        message = str(batch_share(twisted, 64))
    except ValueError as error:
        message = str(error)
    return [batch_share(s, 64) for s in (line, mixed, model)], message


def test_batch_share_returns_the_rows_of_a_process(processes):
    for number, (found, message) in enumerate(processes(2, shares).values):
        half = slice(32 * number, 32 * number + 32)
        assert found == [half, half, slice(0, 64)]
        first = 16 * number
        assert f"are [({first}, {first + 16}), ({first + 32}, {first + 48})]; expected contiguous rows" in message
