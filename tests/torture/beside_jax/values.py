# SPDX-License-Identifier: Apache-2.0
"""Arrays never change, and keep each bit."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import time
from typing import Any

import ml_dtypes
import numpy as np
from scenario import WrongValueError, aligned, same, scenario

GROUP = "values"


@scenario(GROUP, "writes to the NumPy source after device_put, 30 sizes, alignments and placements", "no Array changes")
def writes_to_the_source(b: Any) -> None:
    changed = []
    for size in (16, 256, 4096, 1 << 20, 1 << 24):
        for offset in (0, 4, 32):
            for placement in (b.jax.devices()[0], b.over("x")):
                count = max(size // 4, 8)
                source = aligned(count, np.float32, offset)
                array = b.jax.block_until_ready(b.jax.device_put(source, placement))
                source[:] = -1
                if not np.array_equal(np.asarray(array), np.arange(count, dtype=np.float32)):
                    changed.append((size, offset))
    if changed:
        raise WrongValueError(f"{len(changed)} of 30 Arrays change, the least of {min(changed)[0]} bytes")


@scenario(
    GROUP,
    "make_array_from_callback whose callback reuses one buffer",
    "each shard keeps its values",
    note="This buffer, and the sources of the next two rows, begin at a multiple of 64 bytes: JAX shares such memory "
    "of NumPy instead of copying it.",
)
def reused_buffer(b: Any) -> None:
    buffer = aligned(8)

    def read(index: Any) -> Any:
        buffer[:] = index[0].start
        return buffer

    array = b.jax.make_array_from_callback((64,), b.over("x"), read)
    same(array, np.repeat(np.arange(0.0, 64, 8), 8))


@scenario(GROUP, "writes to the source of make_array_from_process_local_data", "the Array does not change")
def process_local_data(b: Any) -> None:
    source = aligned(64)
    array = b.jax.block_until_ready(b.jax.make_array_from_process_local_data(b.over("x"), source))
    source[:] = -1
    same(array, np.arange(64.0))


@scenario(GROUP, "writes to the source of device_put(..., may_alias=False)", "the Array does not change")
def may_not_alias(b: Any) -> None:
    source = aligned(1024)
    array = b.jax.block_until_ready(b.jax.device_put(source, b.jax.devices()[0], may_alias=False))
    source[:] = -1
    same(array, np.arange(1024.0))


@scenario(GROUP, "writes through np.asarray(array)", "refused", r"ValueError: .*read-only.*")
def writes_to_a_view(b: Any) -> None:
    array = b.jax.device_put(np.arange(8.0))
    np.asarray(array)[0] = 5


@scenario(GROUP, "pmax and pmin with NaN in one participant", "NaN everywhere")
def maximum_of_nan(b: Any) -> None:
    x = np.arange(8.0)
    x[3] = np.nan
    for function in (b.lax.pmax, b.lax.pmin):
        found = np.asarray(b.mapped(lambda block, function=function: function(block, "x"))(x))
        if not np.isnan(found).all():
            raise WrongValueError(f"{function.__name__} drops the NaN: {found.tolist()}")


@scenario(GROUP, "psum of float32 in 8 participants, 50 times", "the same bits each time")
def sums_repeat(b: Any) -> None:
    x = np.random.default_rng(1).standard_normal((8, 1001)).astype(np.float32) * 1e6
    mapped = b.mapped(lambda block: b.lax.psum(block, "x"))
    first = np.asarray(mapped(x)).copy()
    for _ in range(50):
        same(mapped(x), first)


KINDS = [
    *(np.dtype(each) for each in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")),
    *(np.dtype(getattr(ml_dtypes, each)) for each in ("bfloat16", "float8_e4m3fn", "float8_e5m2")),
]


@scenario(GROUP, "random bits (payloads of NaN, -0.0, subnormals) placed, resharded, read; 17 dtypes", "bits are kept")
def bits(b: Any) -> None:
    random = np.random.default_rng(2)
    for kind in KINDS:
        bits_of = random.integers(0, 2 if kind == np.bool_ else 256, 64 * 64 * kind.itemsize, dtype=np.uint8)
        x = bits_of.view(kind).reshape(64, 64)
        array = b.jax.device_put(x, b.over("x"))
        moved = b.jax.device_put(array, b.over(None, "x"))
        for found in (array, moved, b.jax.device_put(moved, b.jax.devices()[5])):
            same(found, x, str(kind))


@scenario(GROUP, "pickle of a Mesh", "an equal object")
def pickled_mesh(b: Any) -> None:
    mesh = b.mesh()
    if pickle.loads(pickle.dumps(mesh)) != mesh:
        raise WrongValueError("another mesh")


@scenario(GROUP, "pickle of a NamedSharding", "an equal object")
def pickled_sharding(b: Any) -> None:
    sharding = b.over("x")
    if pickle.loads(pickle.dumps(sharding)) != sharding:
        raise WrongValueError("another sharding")


@scenario(GROUP, "pickle of a sharded Array", "the same values and sharding")
def pickled_array(b: Any) -> None:
    array = b.jax.device_put(np.arange(8.0), b.over("x"))
    made = pickle.loads(pickle.dumps(array))
    same(made, np.arange(8.0))
    if made.sharding != array.sharding:
        raise WrongValueError(f"came back as {made.sharding}")


@scenario(GROUP, "an Array is moved to a sharding with the same blocks, and then deleted", "the result keeps its value")
def moved_then_deleted(b: Any) -> None:
    value = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    mesh = b.Mesh(np.array(b.jax.devices()).reshape(2, 2, 2), ("x", "y", "z"))
    array = b.jax.device_put(value, b.NamedSharding(mesh, b.P("x", ("y", "z"))))
    moved = b.jax.device_put(array, b.NamedSharding(mesh, b.P("z", ("y", "x"))))
    array.delete()
    same(moved, value)


@scenario(GROUP, "views by DLPack outlive the Array (dropped, then deleted), 200 times", "the views keep their values")
def exported(b: Any) -> None:
    for i in range(200):
        array = b.jax.device_put(np.full(5000, float(i)), b.jax.devices()[0])
        view = np.from_dlpack(array)
        if i % 2:
            array.delete()
        del array
        others = [b.jax.device_put(np.full(5000, -1.0), b.jax.devices()[0]) for _ in range(3)]
        if i % 20 == 0:
            gc.collect()
        same(view, np.full(5000, float(i)))
        del others, view


@scenario(GROUP, "Arrays by DLPack outlive NumPy's name for their memory, 200 times", "the Arrays keep their values")
def imported(b: Any) -> None:
    import importlib

    from_dlpack = importlib.import_module(f"{b.jax.__name__}.dlpack").from_dlpack
    for i in range(200):
        array = from_dlpack(np.full(5000, float(i)))
        others = [np.full(5000, -1.0) for _ in range(3)]
        same(array, np.full(5000, float(i)))
        del others


@scenario(GROUP, "np.asarray while another thread calls delete(), 4 s", "the value, or the error for a deleted Array")
def read_against_delete(b: Any) -> None:
    strange: list[str] = []
    expected = np.arange(64.0)
    sys.setswitchinterval(1e-5)  # more races
    end = time.monotonic() + 4
    while time.monotonic() < end and not strange:
        arrays = [b.jax.device_put(expected, b.over("x")) for _ in range(50)]
        begin = threading.Barrier(2)

        def read(arrays: Any = arrays, begin: Any = begin) -> None:
            begin.wait()
            for array in arrays:
                try:
                    same(np.asarray(array), expected)
                except RuntimeError as error:
                    if "deleted" not in str(error):
                        strange.append(f"RuntimeError: {error}")
                except Exception as error:
                    strange.append(f"{type(error).__name__}: {error}")

        reader = threading.Thread(target=read)
        reader.start()
        begin.wait()
        for array in arrays:
            array.delete()
        reader.join()
    if strange:
        raise WrongValueError(strange[0])


@scenario(GROUP, "8 threads place, reshard, read and delete Arrays, some of them the same, 5 s", "each value is right")
def soak(b: Any) -> None:
    shared = b.jax.device_put(np.arange(64.0).reshape(8, 8), b.over("x"))
    end = time.monotonic() + 5
    failures: list[BaseException] = []

    def work(number: int) -> None:
        x = np.arange(64.0).reshape(8, 8) + number
        try:
            while time.monotonic() < end:
                array = b.jax.device_put(x, b.over("x"))
                other = b.jax.device_put(array, b.over(None, "x"))
                same(other, x)
                array.delete()
                same(b.jax.device_put(shared, b.over(None, "x")), x - number)
                other.delete()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failures:
        raise failures[0]
