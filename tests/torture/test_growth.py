# SPDX-License-Identifier: Apache-2.0
"""All kinds of work again and again, in an order drawn by chance: nothing grows."""

import ctypes
import gc
import os
import random
import threading

import tour

WARM_UP, ROUNDS = 6, 12  # caches fill while it warms up
GROWTH = 12 << 10  # bytes over all rounds: 1 KiB forgotten in each is seen; 2 to 5 KiB come and go


class Blocks(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in _names]


def in_use():
    """Bytes that malloc has given out and not got back, Python's objects among them (PYTHONMALLOC=malloc)."""
    process = ctypes.CDLL(None)
    if hasattr(process, "__sanitizer_get_current_allocated_bytes"):  # malloc is the address sanitizer's
        count = process.__sanitizer_get_current_allocated_bytes
        count.restype = ctypes.c_size_t
        return count()
    process.mallinfo2.restype = Blocks
    blocks = process.mallinfo2()
    return blocks.uordblks + blocks.hblkhd


def counts():
    """What may not grow: bytes; Arrays and their bytes; threads, open files, mappings."""
    import artifex_devices as ad

    ad.clear_caches()
    ad.shutdown()  # ends what is under way; threads begin again at the next use
    gc.collect()
    ctypes.pythonapi.PyType_ClearCache()  # it keeps up to 4096 names of attributes that NumPy makes again in each call
    with open("/proc/self/maps") as file:
        mappings = sum(1 for _ in file)
    arrays = ad.live_arrays()
    used = sum((device.memory_stats() or {}).get("bytes_in_use", 0) for device in ad.devices())
    return in_use(), len(arrays), used, threading.active_count(), len(os.listdir("/proc/self/fd")), mappings


def rounds(seed):
    draw = random.Random(int(seed))
    kinds = list(tour.KINDS.values())
    seen = []
    for _ in range(WARM_UP + ROUNDS):
        draw.shuffle(kinds)
        for kind in kinds:
            kind()
        seen.append(counts())
    before, after = seen[WARM_UP - 1], seen[-1]
    assert after[0] - before[0] < GROWTH, [each[0] for each in seen]
    assert after[1:5] == before[1:5], seen
    assert after[5] - before[5] < ROUNDS, seen


def test_rounds_of_all_work_grow_nothing(own_process):
    own_process(rounds, 11, environment={"PYTHONMALLOC": "malloc"})
