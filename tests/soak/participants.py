# SPDX-License-Identifier: Apache-2.0
"""shard_map in NumPy: the blocks of all devices are one ndarray, whose first dimensions are the mesh's axes."""

import math

import numpy as np

from soak.checking import blocks_of, entry_axes

OWN = ("scale", "flip", "add_index")


def cut(host, grid, spec):
    """The blocks of all devices, of shape (*mesh sizes, *block)."""
    numbered = np.arange(grid.ids.size).reshape(grid.ids.shape)
    boxes = blocks_of(numbered, grid.names, spec, host.shape)
    blocks = np.stack([host[boxes[i]] for i in range(grid.ids.size)])
    return blocks.reshape(grid.ids.shape + blocks.shape[1:])


def members(blocks, grid, axes):
    """(groups, members, *block): members are numbered row-major over the axes as they are named."""
    rank = len(grid.names)
    mine = [grid.names.index(axis) for axis in axes]
    rest = [d for d in range(rank) if d not in mine]
    order = rest + mine
    moved = blocks.transpose(*order, *range(rank, blocks.ndim))
    count = math.prod(grid.ids.shape[d] for d in mine)
    return moved.reshape(grid.ids.size // count, count, *blocks.shape[rank:]), order


def back(grouped, grid, order):
    """The inverse of members, for blocks of any shape."""
    rank = len(grid.names)
    moved = grouped.reshape(*(grid.ids.shape[d] for d in order), *grouped.shape[2:])
    return moved.transpose(*np.argsort(order), *range(rank, moved.ndim))


def total(grouped):
    """The sum over the members, in their order."""
    kind = np.int32 if grouped.dtype == bool else grouped.dtype
    result = grouped[:, 0].astype(kind)
    for i in range(1, grouped.shape[1]):
        result = (result + grouped[:, i]).astype(kind)
    return result


def everybody(one, count):
    return np.repeat(one[:, None], count, axis=1)


def tiles(grouped, dimension, tiled, size):
    """(groups, receivers, senders, *part): what each member gets of every other."""
    parts = np.stack(np.split(grouped, size, axis=dimension + 2), axis=1)
    return parts if tiled else parts.squeeze(dimension + 3)


def collective(operation, blocks, grid):
    """One collective of all devices."""
    name, axes, *rest = operation
    grouped, order = members(blocks, grid, axes)
    count = grouped.shape[1]
    if name == "psum":
        result = everybody(total(grouped), count)
    elif name == "pmean":
        result = everybody((total(grouped) / count).astype(grouped.dtype), count)
    elif name in ("pmax", "pmin"):
        result = everybody((np.maximum if name == "pmax" else np.minimum).reduce(grouped, axis=1), count)
    elif name == "ppermute":
        result = np.zeros_like(grouped)
        for source, target in rest[0]:
            result[:, target] = grouped[:, source]
    elif name == "all_gather":
        dimension, tiled = rest
        parts = [grouped[:, i] for i in range(count)]
        join = np.concatenate if tiled else np.stack
        result = everybody(join(parts, axis=dimension + 1), count)
    elif name == "psum_scatter":
        dimension, tiled = rest
        result = tiles(everybody(total(grouped), 1), dimension, tiled, count)[:, :, 0]
    elif name == "all_to_all":
        split, joined, tiled = rest
        received = tiles(grouped, split, tiled, count)
        parts = [received[:, :, i] for i in range(count)]
        result = (np.concatenate if tiled else np.stack)(parts, axis=joined + 2)
    else:
        raise ValueError(name)
    return back(result, grid, order)


def computes(name, kind):
    """Whether a body may do this with the dtype: means and orders that NumPy's rules leave open are not drawn."""
    if name == "pmean":
        return kind.kind not in "biu"
    if name in ("pmax", "pmin"):
        return kind.kind != "c"
    return kind.kind != "b" or name not in ("psum_scatter", *OWN)


def run(body, blocks, grid):
    """All operations of a body; a ValueError for what does not fit, as shrinking may make it."""
    rank = len(grid.names)
    for operation in body:
        name, argument = operation[:2]
        if not computes(name, blocks.dtype):
            raise ValueError(f"{name} of {blocks.dtype}")
        if name == "scale":
            blocks = (blocks * np.asarray(argument, blocks.dtype)).astype(blocks.dtype)
        elif name == "flip":
            blocks = np.flip(blocks, axis=rank + argument)
        elif name == "add_index":
            at = np.arange(grid.sizes[argument], dtype=np.int32)
            sides = [1] * blocks.ndim
            sides[grid.names.index(argument)] = -1
            blocks = (blocks + at.reshape(sides).astype(blocks.dtype)).astype(blocks.dtype)
        else:
            blocks = collective(operation, blocks, grid)
    return blocks


def differing(blocks, grid):
    """The axes along which not all devices have the same bits."""
    found = []
    for d, axis in enumerate(grid.names):
        first = np.take(blocks, [0], axis=d)
        whole = np.broadcast_to(first, blocks.shape)
        if np.ascontiguousarray(whole).tobytes() != np.ascontiguousarray(blocks).tobytes():
            found.append(axis)
    return found


def whole(blocks, grid, spec):
    """The value that out_specs put together."""
    rank = len(grid.names)
    block = blocks.shape[rank:]
    shape = [
        side * math.prod(grid.sizes[axis] for axis in entry_axes(spec[d] if d < len(spec) else None))
        for d, side in enumerate(block)
    ]
    result = np.empty(shape, blocks.dtype)
    numbered = np.arange(grid.ids.size).reshape(grid.ids.shape)
    flat = blocks.reshape(grid.ids.size, *block)
    for i, box in blocks_of(numbered, grid.names, spec, shape).items():
        result[box] = flat[i]
    return result
