# SPDX-License-Identifier: Apache-2.0
"""The expected state of a program at each moment, in NumPy: values, their placement, which are deleted."""

import math
from dataclasses import dataclass, field

import numpy as np

from soak.checking import blocks_of, canonical, entry_axes, numbers


class UnusableError(Exception):
    """A step that names what there is not: shrinking leaves such steps out."""


@dataclass(frozen=True)
class Grid:
    """A mesh."""

    ids: np.ndarray
    names: tuple
    explicit: bool

    @property
    def sizes(self):
        return dict(zip(self.names, self.ids.shape, strict=True))


@dataclass(eq=False)
class Value:
    """An Array. Names of one object share one Value."""

    host: np.ndarray
    place: dict | None  # {"mesh", "spec", ...} or {"device": id}; None where the rules leave it open
    committed: bool | None = True
    slack: float = 0.0  # numbers that are not exact: they are moved and read, not computed with
    dead: bool = False
    in_jax: bool = True
    exact: bool = True  # whether its spec is known to the letter; results of functions may leave axes of size 1 out

    @property
    def tame(self):
        """Whether sums of them are exact in any order: small multiples of 1/4."""
        if self.host.dtype.kind in "biu":
            return True
        with np.errstate(all="ignore"):
            wide = self.host.astype(np.complex128) * 4
            parts = np.stack([wide.real, wide.imag])
            return bool((abs(parts) <= 256).all() and (parts == np.round(parts)).all())


@dataclass
class Outcome:
    """What a step must do."""

    values: dict = field(default_factory=dict)  # new names of Arrays
    hosts: dict = field(default_factory=dict)  # new names of ndarrays
    error: tuple = ()
    jax: bool = True
    jax_error: tuple | None = None  # where its class is another one
    jax_places: bool = True  # whether JAX must place the results so too
    grids: dict = field(default_factory=dict)
    dropped: tuple = ()  # (name, ndarray, slack, class that may be raised instead) of what is checked and let go of
    computed: bool = False  # results of functions: their specs may leave out axes that do not cut


@dataclass
class State:
    """All names of a program."""

    arrays: dict = field(default_factory=dict)
    hosts: dict = field(default_factory=dict)  # name: (ndarray, in_jax)
    grids: dict = field(default_factory=dict)
    devices: int = 8
    top: bool = True  # not inside a thread or a world, where others have Arrays too

    def alive(self):
        """The distinct Values that are not deleted."""
        return list({id(value): value for value in self.arrays.values() if not value.dead}.values())

    def array(self, name):
        if name not in self.arrays:
            raise UnusableError(name)
        return self.arrays[name]

    def host(self, name):
        if name not in self.hosts:
            raise UnusableError(name)
        return self.hosts[name][0]

    def grid(self, name):
        if name not in self.grids:
            raise UnusableError(name)
        return self.grids[name]

    def shape_error(self, place, shape):
        """The class of the error of a placement that does not fit, or ()."""
        if "device" in place:
            return ()
        sizes = self.grid(place["mesh"]).sizes
        if not {axis for entry in place["spec"] for axis in entry_axes(entry)} <= set(sizes):
            raise UnusableError("an axis that the mesh does not have")
        if len(place["spec"]) > len(shape):
            return ("ValueError",)
        for size, entry in zip(shape, place["spec"], strict=False):
            if size % math.prod(sizes[axis] for axis in entry_axes(entry)) and not place.get("uneven"):
                return ("IndivisibleError",)
        return ()

    def refused(self, place, error, jax):
        """The Outcome of a placement that does not fit; with Explicit axes JAX may stop at an assertion of its own."""
        jax = jax and not ("mesh" in place and self.grid(place["mesh"]).explicit)
        return Outcome(error=error, jax=jax, jax_error=("ValueError", "IndexError"))

    def blocks(self, place, shape):
        if "device" in place:
            return {place["device"]: tuple(slice(0, size) for size in shape)}
        grid = self.grid(place["mesh"])
        return blocks_of(grid.ids, grid.names, place["spec"], shape)

    def same_place(self, value, place):
        """Whether a move has nothing to do, so that it gives the same object; specs count to the letter."""
        one = value.place
        if "device" in one or "device" in place:
            return one.get("device") == place.get("device") and "mesh" not in one and "mesh" not in place
        grids = self.grid(one["mesh"]), self.grid(place["mesh"])
        if grids[0].names != grids[1].names or grids[0].ids.tolist() != grids[1].ids.tolist():
            return False
        if grids[0].explicit != grids[1].explicit or one.get("kind") != place.get("kind"):
            return False
        if not value.exact and meaning(one, grids[0]) == meaning(place, grids[1]):
            raise UnusableError("it may be the same object or not")
        return to_the_letter(one) == to_the_letter(place)


def to_the_letter(place):
    return [entry_axes(entry) for entry in place["spec"]], place.get("uneven")


def meaning(place, grid):
    return canonical(place["spec"], grid.sizes, cutting=True)


def entries(spec):
    """A spec of JSON with tuples in place of lists."""
    return [tuple(entry) if isinstance(entry, list) else entry for entry in spec]


def spec_text(spec):
    return f"P({', '.join(repr(entry) for entry in entries(spec))})"


def place_text(place):
    """Python text of a device or sharding."""
    if place is None:
        return "None"
    if "device" in place:
        device = f"devices[{place['device']}]"
        return f"SingleDeviceSharding({device})" if place.get("single") else device
    more = "".join(
        f", {key}={value!r}"
        for key, value in (("memory_kind", place.get("kind")), ("uneven", place.get("uneven")))
        if value
    )
    return f"NamedSharding({place['mesh']}, {spec_text(place['spec'])}{more})"


__all__ = ["Grid", "Outcome", "State", "UnusableError", "Value", "entries", "numbers", "place_text", "spec_text"]
