# SPDX-License-Identifier: Apache-2.0
"""Bits of every dtype over the kinds of moves that tests/python/base/test_bits.py does not make."""

import pickle

import numpy as np
import pytest
import tour


def special(dtype, shape):
    """Random bits; in wider floating-point numbers -0.0, subnormals, infinities and NaNs of either kind among them."""
    import ml_dtypes
    from artifex_devices.testing.array_strategies import random_bits

    value = random_bits(shape, dtype, 11)
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if part.itemsize > 1 and (part.kind == "f" or part.name == "bfloat16"):
        form = ml_dtypes.finfo(part)
        sign, exponents = 1 << (form.bits - 1), ((1 << form.nexp) - 1) << form.nmant
        quiet, low = exponents | 1 << (form.nmant - 1), (1 << form.nmant) - 1
        bits = [
            0,
            sign,
            1,
            low,
            sign | 1,
            exponents,
            sign | exponents,
            exponents | 1,
            exponents | low,
            quiet,
            sign | quiet | 5,
        ]
        flat = value.reshape(-1).view(f"u{part.itemsize}")
        flat[: len(bits)] = bits
        flat[-len(bits) :] = bits
    return value


def moves(value):
    """(name, the value after that kind of move)."""
    import artifex_devices as ad
    from artifex_devices import P, lax
    from artifex_devices.dlpack import from_dlpack
    from artifex_devices.prefetch import prefetch_to_device

    rows = tour.over(P("x"))
    mesh = rows.mesh
    cut = ad.device_put(value, rows)
    yield "callback", ad.make_array_from_callback(value.shape, rows, value.__getitem__)
    yield "pieces", ad.make_array_from_single_device_arrays(value.shape, rows, [s.data for s in cut.addressable_shards])
    yield "process data", ad.make_array_from_process_local_data(rows, value)
    yield "prefetch", next(prefetch_to_device(iter([value]), rows))
    yield "pickle", pickle.loads(pickle.dumps(cut))
    yield "copy to host", ad.copy_to_host_async(cut).result()
    yield "device_get", ad.device_get(cut)
    yield "donated", ad.device_put(ad.device_put(value, rows), tour.over(P(None, "x")), donate=True)
    yield (
        "sharded",
        np.concatenate(
            [np.asarray(s.data) for s in ad.device_put_sharded(list(value[:, None]), ad.devices()).addressable_shards]
        ).reshape(value.shape),
    )
    yield "replicated", ad.device_put_replicated(value, ad.devices()).addressable_shards[5].data.reshape(value.shape)
    yield "DLPack", from_dlpack(ad.device_put(value, ad.devices()[2]))
    for kind in ("pinned_host", "unpinned_host"):
        there = ad.device_put(cut, rows.with_memory_kind(kind))
        yield kind, there
        yield f"{kind} and back", ad.device_put(there, tour.over(P(None, "x")))
    for executor in ("cooperative", "threads"):
        for name, body, out in (
            ("ppermute", lambda b: lax.ppermute(b, "x", [(i, (i + 3) % 8) for i in range(8)]), P("x")),
            ("all_gather", lambda b: lax.all_gather(b, "x", tiled=True), P()),
            ("all_to_all", lambda b: lax.all_to_all(b, "x", 1, 0, tiled=True), P(None, "x")),
        ):
            got = ad.shard_map(body, mesh, P("x"), out, executor=executor, check_vma=False)(cut)
            yield f"{name}, {executor}", np.roll(np.asarray(got), -3, 0) if name == "ppermute" else got


def every_bit(name):
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name, name))
    value = special(dtype, (8, 16))
    count = 0
    for kind, moved in moves(value):
        found = np.asarray(moved)
        assert found.dtype == dtype, kind
        assert found.tobytes() == value.tobytes(), (kind, name)
        count += 1
    assert count == 21


def all_dtypes(half):
    from artifex_devices.testing.array_strategies import ML_DTYPES, NUMPY_DTYPES

    names = [*NUMPY_DTYPES, *ML_DTYPES]
    assert len(names) > 20
    for name in names[int(half) :: 2]:
        every_bit(name)


@pytest.mark.parametrize("half", [0, 1])
def test_every_move_keeps_every_bit_of_every_dtype(own_process, half):
    own_process(all_dtypes, half)
