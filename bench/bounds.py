# SPDX-License-Identifier: Apache-2.0
"""What bounds each part of each curve, by family and name: (which part, what)."""

from __future__ import annotations

_CALL = (
    "up to 16 KiB",
    "the call itself: arguments, the kept plan of this shape and sharding, a block from a free list, one Python object",
)
_CACHE = (
    "64 KiB to 256 KiB",
    "one thread's copy inside the caches; up to 512 KiB the workers would take longer to wake than they save",
)
_SHARED = ("1 MiB to 16 MiB", "all workers copy inside the last-level cache; to wake them counts")
_BUS = (
    "from 64 MiB on",
    "the memory bus: all workers copy with stores that bypass the caches; each byte is read once and written once",
)
_FRESH = (
    "at 1 GiB",
    "fresh memory, where other sizes were used before: freed memory is kept for reuse up to 1 GiB (`cache_bytes`), and "
    "pages that the system gives anew cost three to five times the copy",
)

BOUNDS: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("by_bytes", "device_put, one device"): (_CALL, _CACHE, _SHARED, _BUS, _FRESH),
    ("by_bytes", "device_put, 8 shards"): (_CALL, _CACHE, _SHARED, _BUS, _FRESH),
    ("by_bytes", "gather from 8 shards"): (
        (
            "up to 1 MiB",
            "the call alone: shards below 256 KiB lie behind each other in one block, and where that is the order of "
            "the whole, the result is a read-only view of them; nothing is copied",
        ),
        ("4 MiB and 16 MiB", "all workers copy inside the last-level cache; to wake them counts"),
        _BUS,
        _FRESH,
    ),
    ("by_bytes", "reshard, rows to columns over 8"): (
        ("up to 16 KiB", "the call and its plan, 8 rows times 8 columns of boxes, which is kept for the next time"),
        ("64 KiB to 16 MiB", "short runs: a row of a box is an eighth of a row of the array"),
        _BUS,
    ),
    ("by_bytes", "x + x, 8 shards"): (
        ("up to 256 KiB", "Python: the operator finds the kept plan and calls NumPy's loop once for all shards"),
        ("1 MiB to 16 MiB", "a call of NumPy's loop for each shard, and to wake the bound workers for them"),
        (
            "above",
            "the memory bus. NumPy's loop stores through the caches, so that a byte of the result is also read: three "
            "bytes pass for each byte of the sum, where a copy with streaming stores passes two",
        ),
    ),
    ("by_shards", "device_put 64 MiB"): (
        ("up to some hundred shards", "the memory bus"),
        ("above", "a block of memory for each shard, and its entry in the accounts of its device"),
    ),
    ("by_shards", "gather 64 MiB"): (
        ("one shard", "the call alone: the result is a view of it"),
        ("4 to 256 shards", "the memory bus"),
        (
            "from 1,024 shards on",
            "the call alone: shards below 256 KiB lie behind each other in one block, of which the result is a view",
        ),
    ),
    ("by_devices", "a Mesh, new order"): (
        ("up to 16 devices", "the call: an ndarray of objects is looked at and interned"),
        ("above", "a look at each Python object of the ndarray, 0.15 us a device"),
    ),
    ("by_devices", "devices_indices_map on a new mesh"): (
        ("all", "a dict of a tuple of slices for each device, which Python makes one by one"),
    ),
    ("by_devices", "device_put, 16 floats a device"): (
        ("up to 64 devices", "the call"),
        ("above", "arithmetic for each shard: where it begins in the common block, and the account of its device"),
    ),
    ("by_devices", "shard_map + psum of 16 floats a device"): (
        ("one device", "the call; JAX's compiler takes the sum over one away, and most of the program with it"),
        ("above", "Python: each participant runs the body once and meets the others once, all in one thread"),
    ),
    ("by_leaves", "device_put of a tree, one device"): (
        ("up to 4 leaves", "the call and the tree: a dict is sorted, opened and made again"),
        ("to 1,024 leaves", "for each leaf a block from a free list and a Python object"),
        ("above", "the same; sources, blocks and objects no longer fit the second-level cache"),
    ),
    ("by_leaves", "device_put of a tree, 8 shards each"): (
        ("up to 4 leaves", "the call and the tree"),
        (
            "to 1,024 leaves",
            "for each leaf a block for all 8 shards, one copy where they lie in the order of the whole, entries in the "
            "accounts of 8 devices, and a Python object",
        ),
        ("above", "the same; sources, blocks and objects no longer fit the second-level cache"),
    ),
    ("by_leaves", "device_get of a tree, 8 shards each"): (
        ("up to 4 leaves", "the call and the tree"),
        ("to 256 leaves", "for each leaf an ndarray, a view of the block in which its shards lie in order"),
        ("above", "the same; blocks and objects no longer fit the second-level cache"),
    ),
}
