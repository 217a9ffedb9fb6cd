# SPDX-License-Identifier: Apache-2.0
"""Random choices of a generator, all from one seed."""

import math
import random

from soak.model import entry_axes

EXACT = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
WIDE = ("float32", "float64", "complex64", "complex128")
NARROW = ("float16", "bfloat16")
TINY = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e8m0fnu", "int4", "uint4", "int2", "uint2")
TINY += ("float8_e4m3", "float8_e3m4", "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz")


class Dice(random.Random):
    """random.Random with the things of programs."""

    count = 0

    def one_in(self, n):
        return self.randrange(n) == 0

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def dtype(self):
        return self.choice(self.choice((EXACT, EXACT, WIDE, WIDE, NARROW, TINY)))

    def grid(self, count):
        """Sizes of 1 to 4 axes over some of the devices."""
        ids = self.sample(range(count), count) if self.one_in(3) else list(range(count))
        if self.one_in(5):
            ids = ids[: self.randrange(1, count + 1)]
        left, sizes = len(ids), []
        while left > 1 and len(sizes) < 3:
            sizes.append(self.choice([n for n in range(1, left + 1) if left % n == 0 and (n > 1 or self.one_in(8))]))
            left //= sizes[-1]
        return ids, [*sizes, left] if left > 1 or not sizes else sizes

    def spec(self, names, rank, *, shape=None, sizes=None, cut=0.7):
        """Entries of a spec of at most this rank; with shape and sizes one that divides, for most axes."""
        entries = [[] for _ in range(rank)]
        for axis in self.sample(list(names), len(names)):
            if not rank or self.random() > cut:
                continue
            places = list(range(rank))
            if shape is not None:
                places = [
                    d for d in places if shape[d] % math.prod([*map(sizes.__getitem__, entries[d]), sizes[axis]]) == 0
                ]
            if places:
                entries[self.choice(places)].append(axis)
        spec = [each if len(each) > 1 else each[0] if each else None for each in entries]
        while spec and spec[-1] is None and self.random() < 0.7:
            spec.pop()
        return spec

    def shape(self, parts=()):
        """A shape that these parts divide, with more dimensions at times."""
        rank = max(len(parts), self.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))
        parts = [*parts, *[1] * (rank - len(parts))]
        low = 0 if self.one_in(6) else 1
        shape = [part * self.randint(low, 4) for part in parts]
        while math.prod(shape) > 4096:
            shape = [part if size > part else size for size, part in zip(shape, parts, strict=True)]
            if math.prod(shape) > 4096:
                break
        return shape

    def array(self, state, *, dead=False, where=None):
        """The name of an Array, the newest ones first for choice; None where there is none."""
        names = [
            name for name, value in state.arrays.items() if (dead or not value.dead) and (where is None or where(value))
        ]
        if not names:
            return None
        return self.choice(names[-4:]) if self.random() < 0.7 else self.choice(names)

    def place(self, state, shape):
        """A place that mostly fits the shape."""
        if not state.grids or self.one_in(5):
            return {"device": self.randrange(state.devices), **({"single": True} if self.one_in(2) else {})}
        mesh = self.choice(list(state.grids))
        sizes = state.grids[mesh].sizes
        place = {"mesh": mesh}
        if self.one_in(12):
            place["spec"] = self.spec(sizes, len(shape))
        else:
            place["spec"] = self.spec(sizes, len(shape), shape=shape, sizes=sizes)
        if self.one_in(10):
            place["kind"] = self.choice(("pinned_host", "unpinned_host"))
        if self.one_in(10):
            place["spec"] = self.spec(sizes, len(shape))
            place["uneven"] = "last-short"
        return place


def parts_of(spec, sizes):
    return [math.prod(sizes[axis] for axis in entry_axes(entry)) for entry in spec]
