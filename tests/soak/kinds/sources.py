# SPDX-License-Identifier: Apache-2.0
"""Steps that make what others use: ndarrays and meshes."""

import math

import numpy as np

from soak.checking import numbers
from soak.kinds import Kind
from soak.model import Grid, Outcome, UnusableError


class Numbers(Kind):
    name = "numbers"
    weight = 3

    def draw(self, dice, state):
        parts = ()
        if state.grids:
            sizes = dice.choice(list(state.grids.values())).sizes
            parts = [math.prod(dice.sample(list(sizes.values()), dice.randint(0, len(sizes))))]
            parts += [math.prod(sizes.values()) // parts[0]]
            dice.shuffle(parts)
        style = "bits" if dice.one_in(4) else "tame"
        out, dtype = dice.name("a"), dice.dtype()
        return {"out": out, "shape": dice.shape(parts), "dtype": dtype, "seed": dice.randrange(100), "style": style}

    def lines(self, step, library):
        return [
            f"{step['out']} = numbers({tuple(step['shape'])}, {step['dtype']!r}, {step['seed']}, {step['style']!r})"
        ]

    def expect(self, step, state):
        made = numbers(tuple(step["shape"]), step["dtype"], step["seed"], step["style"])
        return Outcome(hosts={step["out"]: made})


class MakeMesh(Kind):
    name = "mesh"
    weight = 2

    def draw(self, dice, state):
        ids, sizes = dice.grid(state.devices)
        names = dice.sample(["x", "y", "z", "w"], len(sizes))
        return {"out": dice.name("m"), "ids": ids, "sizes": sizes, "names": names, "explicit": dice.one_in(4)}

    def lines(self, step, library):
        kind = "Explicit" if step["explicit"] else "Auto"
        types = f"(AxisType.{kind},) * {len(step['sizes'])}"
        grid = f"onp.array([devices[i] for i in {step['ids']}]).reshape({tuple(step['sizes'])})"
        return [f"{step['out']} = Mesh({grid}, {tuple(step['names'])}, axis_types={types})"]

    def expect(self, step, state):
        if max(step["ids"], default=0) >= state.devices or math.prod(step["sizes"]) != len(step["ids"]):
            raise UnusableError("devices")
        grid = Grid(np.array(step["ids"]).reshape(step["sizes"]), tuple(step["names"]), step["explicit"])
        return Outcome(grids={step["out"]: grid})
