# SPDX-License-Identifier: Apache-2.0
"""The limit of each part of each curve, by family and name: (part, limit).

Shares are of samples of `perf record -e cpu-clock` while the row ran repeatedly; times of one and of several
threads were measured in turns, with `parallel_copy_bytes` raised for one thread; cache misses are those of cachegrind
with a second level of 1 MiB. All of 22 November 2026, on the machine of the page.
"""

from __future__ import annotations

_CALL = (
    "up to 16 KiB",
    "the call: at (8,16) 53 % of the samples are in the interpreter, 34 % in our extension, 1 % in the copy",
)
_CACHE = ("64 KiB and 256 KiB", "one thread's copy: of 256 KiB 7.4 of 9 us")
_WAKING = (
    "1 MiB and 4 MiB",
    "waking the workers: from a cached source 1 MiB takes 50 us with them and 27 on one thread, "
    "4 MiB 183 and 99 (8 shards: 183 and 166); other sources gain from 1 to 8 MiB on (decision 0013)",
)
_MEMORY = (
    "from 16 MiB on",
    "memory: 64 MiB take 3.0 ms and the bare copy loop 2.9, on one thread 5.2 (8 shards: 3.9); 256 MiB and 1 GiB have "
    "no page faults, because freed memory is cached up to a quarter of the machine's (`cache_bytes`)",
)
_TREE = "7,200 instructions per leaf; 48 % of the samples are in our extension, 33 % in the interpreter, 8 % in copies"
_MISSES = (
    "the second-level cache: with the same instructions, each leaf misses it {few} times in a tree of 256 leaves and "
    "{many} "
    "times in one of 4,096"
)

BOUNDS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("by_bytes", "device_put, one device"): (_CALL, _CACHE, _WAKING, _MEMORY),
    ("by_bytes", "device_put, 8 shards"): (_CALL, _CACHE, _WAKING, _MEMORY),
    ("by_bytes", "gather from 8 shards"): (
        (
            "up to 1 MiB",
            "the call alone: shards below 256 KiB are contiguous in one block, and if that is the order of the "
            "global array, the result is a read-only view of them; nothing is copied",
        ),
        ("4 MiB", "the copy, which the workers do not make faster: 228 us with them, 230 on one thread"),
        (
            "from 16 MiB on",
            "memory: a copy of 64 MiB lasts 2.8 ms, on one thread 3.9 ms; arrays up to 1 GiB cause no page faults",
        ),
    ),
    ("by_bytes", "reshard, rows to columns over 8"): (
        ("up to 16 KiB", "the call; its plan, 8 rows times 8 columns of boxes, is cached"),
        ("64 KiB and 256 KiB", "one thread's copy: 256 KiB take 7.6 us, the bare copy loop 7.4"),
        (
            "1 MiB and 4 MiB",
            "waking the workers: 1 MiB takes 75 us with them and 34 on one thread, 4 MiB 378 and 296. From 4 MiB on "
            "the copy goes on after the call (`async_copy_bytes`): 282 to 346 us, within the call 243 to 272",
        ),
        (
            "from 16 MiB on",
            "memory, as for full rows: 16 MiB take 737 us and a device_put of full rows 721, 64 MiB 3.5 and 3.0 ms",
        ),
    ),
    ("by_bytes", "x + x, 8 shards"): (
        (
            "up to 64 KiB",
            "Python: at 512 bytes 61 % of the samples are in the interpreter, 21 % in our extension, 7 % in NumPy",
        ),
        ("256 KiB and 1 MiB", "one call of NumPy's loop for all shards"),
        ("4 MiB", "a call of NumPy's loop for each shard, on one core"),
        ("16 MiB", "two cores gain little: 1.24 ms, on one 1.38"),
        (
            "above",
            "memory: 64 MiB take 5.5 ms, on one core 6.5. NumPy's loop stores through the caches, where copies store "
            "past them; at 256 MiB and 1 GiB a part of each result is fresh memory too, 60 and 270 page faults per "
            "call",
        ),
    ),
    ("by_shards", "device_put 64 MiB"): (
        (
            "all",
            "memory: 91 % of the samples are in the loop that copies, at 64 shards as at 4,096; memory accounting of "
            "the 4,096 "
            "devices takes 1.5 %",
        ),
    ),
    ("by_shards", "gather 64 MiB"): (
        ("one shard", "the call alone: the result is a view of it"),
        ("4 to 256 shards", "memory, as above"),
        (
            "from 1,024 shards on",
            "the call alone: shards below 256 KiB are contiguous in one block, of which the result is a view",
        ),
    ),
    ("by_devices", "a Mesh, new order"): (
        ("up to 16 devices", "the call: 58 % of the samples are in the interpreter, 25 % in our extension"),
        (
            "above",
            "reading each device of the ndarray, 15 to 18 ns: with 4,096 devices 41 % of the samples create the list "
            "of "
            "devices, 16 % check the type of the objects, 8 % read the ndarray",
        ),
    ),
    ("by_devices", "devices_indices_map on a new mesh"): (
        (
            "all",
            "a dict of a tuple of slices for each device: 77 % of the samples are in the interpreter, which creates "
            "and "
            "frees these objects, 16 % in our extension",
        ),
    ),
    ("by_devices", "device_put, 16 floats per device"): (
        (
            "up to 64 devices",
            "the call: at 64 46 % of the samples are in the interpreter, 13 % in the devices' memory accounting",
        ),
        (
            "above",
            "the devices' memory accounting: at 4,096 60 % of the samples are in charging and discharging, 12 % in "
            "the copy",
        ),
    ),
    ("by_devices", "shard_map + psum of 16 floats per device"): (
        ("one device", "the call; JAX's compiler removes the sum over one device, and most of the program with it"),
        (
            "above",
            "Python: each participant runs the body once and meets the others once, all in one thread; with 8 devices "
            "74 % of the samples are in the interpreter, with 256 68 %",
        ),
    ),
    ("by_leaves", "device_put of a tree, one device"): (
        ("up to 4 leaves", "the tree, which is flattened and rebuilt: with one leaf 5 us more than the leaf alone"),
        ("to 1,024 leaves", _TREE),
        ("above", _MISSES.format(few=3, many=53)),
    ),
    ("by_leaves", "device_put of a tree, 8 shards each"): (
        ("up to 4 leaves", "the tree: with one leaf 7 us more than the leaf alone"),
        (
            "to 1,024 leaves",
            "52 % of the samples are in our extension, 30 % in the interpreter, 8 % in copies: one for all shards of a "
            "leaf if they are in the order of the global array",
        ),
        ("above", "not explained yet; for one device it is the second-level cache"),
    ),
    ("by_leaves", "device_get of a tree, 8 shards each"): (
        ("up to 4 leaves", "the tree: with one leaf 1.2 us more than the leaf alone"),
        (
            "to 256 leaves",
            "for each leaf an ndarray, a view of the block that holds its shards in order; 36 % of the samples are "
            "in our extension, 35 % in the interpreter, 21 % in the C library, most of that malloc and free",
        ),
        ("above", _MISSES.format(few=1, many=34)),
    ),
}
