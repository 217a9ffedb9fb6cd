# SPDX-License-Identifier: Apache-2.0
"""Steps that hold programs: simulated worlds, and threads that run one each at the same time."""

from soak.kinds import Kind
from soak.model import Outcome, UnusableError

WORLDS = {"3": 3, "8": 8, "16": 16, "2 nodes x 4": 8, "3 nodes x 2": 6, "pack:2 numa:2 core:1 pu:1": 4}


class World(Kind):
    name = "world"
    weight = 2
    nested = False
    jax = False

    def draw(self, dice, state):
        from soak.generator import steps_of
        from soak.model import State

        world = dice.choice(list(WORLDS))
        return {"world": world, "steps": steps_of(dice, State(devices=WORLDS[world], top=False), 7)}

    def expect(self, step, state):
        if not step["steps"]:
            raise UnusableError("nothing to do")
        return Outcome(jax=False)


class Threads(Kind):
    name = "threads"
    weight = 2
    nested = False
    jax = False

    def draw(self, dice, state):
        from soak.generator import steps_of
        from soak.model import State

        return {"programs": [steps_of(dice, State(top=False), 5) for _ in range(dice.randint(2, 4))]}

    def expect(self, step, state):
        if not any(step["programs"]):
            raise UnusableError("nothing to do")
        return Outcome(jax=False)
