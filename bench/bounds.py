# SPDX-License-Identifier: Apache-2.0
"""The limit of each part of each curve, by family and name: (part, limit).

Shares are of samples of `perf record -e cpu-clock` while the row ran repeatedly. Times with one and with several
threads were measured in alternation; `parallel_copy_bytes` was raised for one thread. cachegrind counted the cache
misses, with a second level of 1 MiB. All measurements are of 22 November 2026, on the machine of the page.
"""

from __future__ import annotations

_CALL = (
    "up to 16 KiB",
    "the fixed cost of the call. At (8,16) 53 % of the samples are in the interpreter, 34 % in our extension and 1 % "
    "in the copy",
)
_CACHE = ("64 KiB and 256 KiB", "the copy, which runs on one thread: 7.4 of 9 us for 256 KiB")
_WAKING = (
    "1 MiB and 4 MiB",
    "waking the workers. From a cached source, 1 MiB takes 50 us with workers and 27 us on one thread, and 4 MiB takes "
    "183 and 99 us (8 shards: 183 and 166 us). Other sources gain from workers from 1 to 8 MiB on "
    "(decision 0013)",
)
_MEMORY = (
    "from 16 MiB on",
    "memory. 64 MiB take 3.0 ms, and the bare copy loop 2.9 ms; on one thread they take 5.2 ms (8 shards: 3.9 ms). "
    "256 MiB and 1 GiB cause no page faults, because up to a quarter of the machine's memory is cached after it is "
    "freed (`cache_bytes`)",
)
_TREE = (
    "7,200 instructions per leaf. 48 % of the samples are in our extension, 33 % in the interpreter and 8 % in copies"
)
_MISSES = (
    "the second-level cache. The instructions per leaf stay the same, but each leaf causes {few} in a tree of 256 "
    "leaves, and {many} misses in a tree of 4,096"
)

BOUNDS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("by_bytes", "device_put, one device"): (_CALL, _CACHE, _WAKING, _MEMORY),
    ("by_bytes", "device_put, 8 shards"): (_CALL, _CACHE, _WAKING, _MEMORY),
    ("by_bytes", "gather from 8 shards"): (
        (
            "up to 1 MiB",
            "the fixed cost of the call. Shards below 256 KiB are contiguous in one block. If they have the order of "
            "the global array, the result is a read-only view and no bytes are copied",
        ),
        ("4 MiB", "the copy, which workers do not speed up: it takes 228 us with workers and 230 us on one thread"),
        (
            "from 16 MiB on",
            "memory. A copy of 64 MiB takes 2.8 ms with workers and 3.9 ms on one thread. Arrays up to 1 GiB cause no "
            "page faults",
        ),
    ),
    ("by_bytes", "reshard, rows to columns over 8"): (
        ("up to 16 KiB", "the fixed cost of the call. The plan, 8 rows times 8 columns of boxes, is cached"),
        ("64 KiB and 256 KiB", "the copy, which runs on one thread: 7.6 us for 256 KiB, and 7.4 us for the bare loop"),
        (
            "1 MiB and 4 MiB",
            "waking the workers. 1 MiB takes 75 us with workers and 34 us on one thread, and 4 MiB takes 378 and 296 "
            "us. From 4 MiB on, the copy continues after the call returns (`async_copy_bytes`): it takes 282 to 346 "
            "us, and 243 to 272 us within the call",
        ),
        (
            "from 16 MiB on",
            "memory, as for full rows. 16 MiB take 737 us, and a device_put of full rows 721 us; 64 MiB take 3.5 and "
            "3.0 ms",
        ),
    ),
    ("by_bytes", "x + x, 8 shards"): (
        (
            "up to 64 KiB",
            "Python. At 512 bytes 61 % of the samples are in the interpreter, 21 % in our extension and 7 % in NumPy",
        ),
        ("256 KiB and 1 MiB", "one call of NumPy's loop for all shards"),
        ("4 MiB", "one call of NumPy's loop for each shard, on one core"),
        ("16 MiB", "one core, because a second core gains little: 1.24 ms instead of 1.38 ms"),
        (
            "above",
            "memory. 64 MiB take 5.5 ms on two cores and 6.5 ms on one. NumPy's loop stores through the caches, and "
            "our copies store past them. At 256 MiB and 1 GiB a part of each result is also fresh memory: 60 and 270 "
            "page faults per call",
        ),
    ),
    ("by_shards", "device_put 64 MiB"): (
        (
            "all",
            "memory. 91 % of the samples are in the copy loop, with 64 shards and with 4,096. Memory accounting of "
            "4,096 devices takes 1.5 %",
        ),
    ),
    ("by_shards", "gather 64 MiB"): (
        ("one shard", "the fixed cost of the call. The result is a view of the shard"),
        ("4 to 256 shards", "memory, as for gathers of 16 MiB and more above"),
        (
            "from 1,024 shards on",
            "the fixed cost of the call. Shards below 256 KiB are contiguous in one block, and the result is a view",
        ),
    ),
    ("by_devices", "a Mesh, new order"): (
        (
            "up to 16 devices",
            "the fixed cost of the call. 58 % of the samples are in the interpreter, 25 % in our extension",
        ),
        (
            "above",
            "reading the devices from the ndarray, 15 to 18 ns each. With 4,096 devices 41 % of the samples create the "
            "list of devices, 16 % check the type of the objects, and 8 % read the ndarray",
        ),
    ),
    ("by_devices", "devices_indices_map on a new mesh"): (
        (
            "all",
            "building a dict with a tuple of slices for each device. 77 % of the samples are in the interpreter, which "
            "creates and frees these objects, and 16 % in our extension",
        ),
    ),
    ("by_devices", "device_put, 16 floats per device"): (
        (
            "up to 64 devices",
            "the fixed cost of the call. With 64 devices 46 % of the samples are in the interpreter, and 13 % in the "
            "memory accounting of devices",
        ),
        (
            "above",
            "the memory accounting of devices. With 4,096 devices 60 % of the samples charge or discharge memory, and "
            "12 % copy",
        ),
    ),
    ("by_devices", "shard_map + psum of 16 floats per device"): (
        (
            "one device",
            "the fixed cost of the call. JAX's compiler removes the sum over one device, and with it most of the "
            "program",
        ),
        (
            "above",
            "Python. One thread runs the body of every participant, and each of them calls one collective. 74 % of the "
            "samples are in the interpreter with 8 devices, and 68 % with 256",
        ),
    ),
    ("by_leaves", "device_put of a tree, one device"): (
        (
            "up to 4 leaves",
            "flattening and rebuilding the tree. A tree of one leaf takes 5 us more than the leaf alone",
        ),
        ("to 1,024 leaves", _TREE),
        ("above", _MISSES.format(few="3 misses", many=53)),
    ),
    ("by_leaves", "device_put of a tree, 8 shards each"): (
        (
            "up to 4 leaves",
            "flattening and rebuilding the tree. A tree of one leaf takes 7 us more than the leaf alone",
        ),
        (
            "to 1,024 leaves",
            "our extension with 52 % of the samples, the interpreter with 30 %, and copies with 8 %. If the shards of "
            "a leaf have the order of the global array, they need only one copy",
        ),
        ("above", "not explained yet; for one device it is the second-level cache"),
    ),
    ("by_leaves", "device_get of a tree, 8 shards each"): (
        (
            "up to 4 leaves",
            "flattening and rebuilding the tree. A tree of one leaf takes 1.2 us more than the leaf alone",
        ),
        (
            "to 256 leaves",
            "creating one ndarray for each leaf, a view of the block that holds its shards in order. 36 % of the "
            "samples are in our extension, 35 % in the interpreter, and 21 % in the C library, mostly in malloc and "
            "free",
        ),
        ("above", _MISSES.format(few="1 miss", many=34)),
    ),
}
