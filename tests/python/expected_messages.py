# SPDX-License-Identifier: Apache-2.0
"""The messages that shardings require, counted from shapes, specs and the mesh alone: what audits must find."""

import collections
import math


def axes_of(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


class Messages:
    """Messages of one step: tensors and bytes that one device sends in one run, by kind, mesh axes and number of runs.

    The bytes are the least that a ring sends from one device. `shape` is always the global shape.
    """

    def __init__(self, mesh):
        self.mesh = dict(mesh)
        self.rows = collections.defaultdict(lambda: [0, 0])

    def size(self, axes):
        return math.prod(self.mesh[axis] for axis in axes)

    def _local(self, shape, spec, itemsize):
        spec = (*spec, *[None] * (len(shape) - len(spec)))
        for size, entry in zip(shape, spec, strict=True):
            assert size % self.size(axes_of(entry)) == 0, (shape, spec)
        parts = (size // self.size(axes_of(entry)) for size, entry in zip(shape, spec, strict=True))
        return math.prod(parts) * itemsize

    def _add(self, kind, axes, nbytes, runs, times):
        axes = tuple(axis for axis in self.mesh if axis in axes_of(axes))
        row = self.rows[kind, axes, runs]
        row[0] += times
        row[1] += times * nbytes

    def reduce(self, axes, shape, spec=(), runs=1, itemsize=4, times=1):
        """Sums values that are sharded as `spec` over `axes`: an all-reduce."""
        n = self.size(axes_of(axes))
        self._add("all_reduce", axes, 2 * (n - 1) * self._local(shape, spec, itemsize) / n, runs, times)

    def gather(self, axes, shape, spec, runs=1, itemsize=4, times=1):
        """Gathers an array that is sharded as `spec` over `axes`, which `spec` has."""
        n = self.size(axes_of(axes))
        self._add("all_gather", axes, (n - 1) * self._local(shape, spec, itemsize), runs, times)

    def scatter(self, axes, shape, spec, runs=1, itemsize=4, times=1):
        """Sums over `axes`, each device receives its part by `spec`: a reduce-scatter."""
        n = self.size(axes_of(axes))
        self._add("reduce_scatter", axes, (n - 1) * self._local(shape, spec, itemsize), runs, times)

    def scatter_on_cpu(self, axes, shape, spec, runs=1, itemsize=4, times=1):
        """Sums as `scatter` does. The partitioner for CPUs writes an all-reduce and a slice."""
        n = self.size(axes_of(axes))
        self.reduce(axes, (n, *shape), (None, *spec), runs, itemsize, times)

    def exchange(self, axes, shape, spec, runs=1, itemsize=4, times=1):
        """Each device sends a part of an array that is sharded as `spec` to each device of the group: an all-to-all."""
        n = self.size(axes_of(axes))
        self._add("all_to_all", axes, (n - 1) * self._local(shape, spec, itemsize) / n, runs, times)

    def shift(self, axes, shape, spec, runs=1, itemsize=4, times=1):
        """Each device sends its part by `spec` to another: a collective permute."""
        self._add("collective_permute", axes, self._local(shape, spec, itemsize), runs, times)

    def expected(self):
        return {key: tuple(row) for key, row in sorted(self.rows.items())}


def found_messages(program):
    """What the reader found, in the form of `Messages.expected`."""
    rows = collections.defaultdict(lambda: [0, 0])
    for each in program.collectives:
        row = rows[each.kind, each.axes, each.runs]
        row[0] += 1 if each.kind == "all_to_all" else len(each.shapes)  # an all-to-all may have its parts as operands
        row[1] += each.bytes
    return {key: tuple(row) for key, row in sorted(rows.items())}
