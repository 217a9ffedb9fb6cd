# SPDX-License-Identifier: Apache-2.0
"""Programs of shard_map whose collectives go over meshes of any shape, and what one process makes of them."""

import artifex_devices as ad
import ml_dtypes
import numpy as np
from artifex_devices import P, lax

DTYPES = ("int8", "int32", "float16", "bfloat16", "float32", "float64", "complex64")


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def data_for(count, columns, dtype, seed=0):
    """One row for each device; its sums depend on the order of the additions."""
    values = np.random.default_rng(seed).standard_normal((count, columns)) * 100
    return values.astype(dtype_of(dtype))


def mesh_of(sizes, order=None):
    devices = np.array(ad.devices(), dtype=object)
    if order is not None:
        devices = devices[list(order)]
    return ad.Mesh(devices[: int(np.prod(sizes))].reshape(sizes), ("x", "y", "z")[: len(sizes)])


def everything(sizes, columns, dtype):
    """A body with each collective over each set of axes, and the specs of what it returns."""
    names = ("x", "y", "z")[: len(sizes)]
    count = int(np.prod(sizes))
    specs = []
    sets = [names, *[(name,) for name in names if len(names) > 1]]
    is_complex = dtype.startswith("complex")

    def rest(axes):
        return P(tuple(name for name in names if name not in axes) or None)

    for axes in sets:
        specs += [rest(axes)] * (6 if is_complex else 8)  # sums, all_gather (, pmax, pmin)
        specs += [P(names)] * 5
    specs += [P(names)] * (2 if len(sizes) == 1 and count % 2 == 0 else 1)

    def body(block):
        made = []
        for axes in sets:
            size = int(np.prod([sizes[names.index(name)] for name in axes]))
            many = np.concatenate([block + block.dtype.type(i) for i in range(size)], axis=1)
            made += [lax.psum(block, axes), lax.pmean(block, axes), lax.all_gather(block, axes, axis=1, tiled=True)]
            made += [lax.psum(block, axes, reproducible=True), lax.pmean(block, axes, reproducible=True)]
            made.append(lax.sum_over(block, axes, 1))
            if not is_complex:
                made += [lax.pmax(block, axes), lax.pmin(block, axes)]
            made += [
                lax.psum_scatter(many, axes, scatter_dimension=1, tiled=True),
                lax.psum_scatter(many, axes, scatter_dimension=1, tiled=True, reproducible=True),
                lax.all_to_all(many, axes, 1, 1, tiled=True),
                lax.ppermute(block, axes, [(i, (i + 1) % size) for i in range(size - 1)]),
                lax.pbroadcast(block, axes, size - 1),
            ]
        place = np.full((1, 1), lax.axis_index(names) * 100 + lax.axis_size(names[0]))
        made.append(place)
        if len(sizes) == 1 and count % 2 == 0:
            halves = [list(range(0, count, 2)), list(range(1, count, 2))]
            made.append(lax.psum(block, names, axis_index_groups=halves))
        return tuple(made)

    return body, P(names), tuple(specs)


def run(sizes, columns, dtype, order=None, executor="cooperative"):
    """What the program makes in the current world; Arrays."""
    body, in_spec, out_specs = everything(sizes, columns, dtype)
    mapped = ad.shard_map(body, mesh_of(sizes, order), in_specs=in_spec, out_specs=out_specs, executor=executor)
    return mapped(data_for(int(np.prod(sizes)), columns, dtype))


def expected(sizes, columns, dtype, order=None):
    """The same in one process; ndarrays."""
    with ad.simulate(int(np.prod(sizes))):
        return [np.asarray(made) for made in run(sizes, columns, dtype, order)]
