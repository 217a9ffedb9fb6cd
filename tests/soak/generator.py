# SPDX-License-Identifier: Apache-2.0
"""A program from a seed: a list of steps, each drawn for what there is by then."""

from soak.dice import Dice
from soak.kinds import Kind
from soak.model import State, UnusableError
from soak.script import apply


def program_of(seed, length=18):
    """The steps of one seed."""
    return steps_of(Dice(seed), State(), length)


def steps_of(dice, state, length):
    kinds = [kind for kind in Kind.ALL.values() if state.top or kind.nested]
    weights = [kind.weight for kind in kinds]
    first = [Kind.ALL["mesh"], Kind.ALL["numbers"], Kind.ALL["put"]]
    steps = []
    while len(steps) < length:
        kind = first.pop(0) if first else dice.choices(kinds, weights)[0]
        drawn = kind.draw(dice, state)
        if drawn is None:
            continue
        step = {"kind": kind.name, **drawn}
        try:
            apply(kind.expect(step, state), state)
        except UnusableError:
            continue
        steps.append(step)
    return steps
