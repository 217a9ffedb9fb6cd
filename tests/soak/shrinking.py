# SPDX-License-Identifier: Apache-2.0
"""Makes a program that fails smaller, as long as it fails alike."""

import copy
import time

from soak.script import OURS, Text, write

PLAIN = {"dtype": ("int32", "float32"), "style": ("tame",), "executor": ("cooperative",), "explicit": (False,)}
PLAIN |= {"donate": (False,), "single": (False,), "keepdims": (False,), "seed": (0, 1), "verb": ("device_put",)}
PLAIN |= {"how": ("onp.asarray({})",), "axis": (None, 0)}


def alike(one, other):
    """The same library, kind of step and class of error."""
    return other is not None and all(one[key] == other[key] for key in ("library", "kind", "class"))


class Shrinker:
    """Tries smaller programs by `ask`, which runs one and tells its failure."""

    def __init__(self, ask, failure, seconds):
        self.ask = ask
        self.failure = failure
        self.until = time.monotonic() + seconds
        self.tried = 0
        self.known = set()

    def fails(self, program):
        """The steps of a candidate that make sense, if they fail alike."""
        if time.monotonic() > self.until:
            return None
        try:
            program = write(copy.deepcopy(program), Text(OURS))
        except (KeyError, IndexError, TypeError, ValueError):
            return None  # a smaller operand that makes no sense of its step
        if not program or repr(program) in self.known:
            return None
        self.known.add(repr(program))
        self.tried += 1
        return program if alike(self.failure, self.ask(program)) else None

    def shrink(self, program):
        """The smallest program found."""
        best = program
        while True:
            before = repr(best)
            best = self.fewer(best)
            best = self.simpler(best)
            if repr(best) == before or time.monotonic() > self.until:
                return best

    def fewer(self, program):
        """Without steps: halves first, then single ones, the last first."""
        size = max(len(program) // 2, 1)
        while True:
            start = len(program) - size
            while start > -size:
                candidate = program[: max(start, 0)] + program[start + size :]
                program = self.fails(candidate) or program
                start = min(start, len(program)) - size
            if size == 1:
                return program
            size //= 2

    def simpler(self, program):
        """With plainer steps, one change at a time."""
        changed = True
        while changed and time.monotonic() < self.until:
            changed = False
            for number in range(len(program)):
                for step in plainer(program[number]):
                    better = self.fails([*program[:number], step, *program[number + 1 :]])
                    if better is not None and len(better) == len(program):
                        program, changed = better, True
                        break
        return program


def plainer(step):
    """The step with one thing simpler, the boldest changes first."""
    for key, value in step.items():
        for plain in PLAIN.get(key, ()):
            if plain != value:
                yield step | {key: plain}
        if key == "shape":
            yield from ({**step, key: shape} for shape in smaller_shapes(value))
        elif key in ("spec", "in_spec", "out_spec"):
            yield from ({**step, key: spec} for spec in smaller_specs(value))
        elif key == "body":
            yield from ({**step, key: value[:i] + value[i + 1 :]} for i in range(len(value)))
        elif key == "ids" and value != sorted(value):
            yield step | {key: sorted(value)}
        elif key == "place" and value:
            yield step | {key: {"device": 0}}
            yield from ({**step, key: place} for place in plainer(value))
            for gone in ("kind", "uneven", "single"):
                if gone in value:
                    yield step | {key: {name: each for name, each in value.items() if name != gone}}
        elif key in ("steps", "programs"):
            yield from nested(step, key, value)
    if step.get("kind") == "mesh" and len(step["sizes"]) > 1:
        total = len(step["ids"])
        yield step | {"sizes": [total], "names": step["names"][:1]}
        yield step | {"sizes": [step["sizes"][0], total // step["sizes"][0]], "names": step["names"][:2]}


def nested(step, key, value):
    """With fewer or plainer steps inside."""
    for i, inner in enumerate(value):
        yield {**step, key: value[:i] + value[i + 1 :]}
        if isinstance(inner, list):
            fewer = [inner[:j] + inner[j + 1 :] for j in range(len(inner))]
            yield from ({**step, key: [*value[:i], each, *value[i + 1 :]]} for each in fewer)
        elif isinstance(inner, dict):
            yield from ({**step, key: [*value[:i], each, *value[i + 1 :]]} for each in plainer(inner))


def smaller_shapes(shape):
    for i in range(len(shape)):
        yield shape[:i] + shape[i + 1 :]
    for i, side in enumerate(shape):
        for less in dict.fromkeys((1, side // 2, side - 1)):
            if 0 < less < side:
                yield [*shape[:i], less, *shape[i + 1 :]]


def smaller_specs(spec):
    if spec:
        yield []
        yield spec[:-1]
    for i, entry in enumerate(spec):
        if entry:
            yield [*spec[:i], None, *spec[i + 1 :]]
        if isinstance(entry, list) and len(entry) > 1:
            yield from ([*spec[:i], entry[:j] + entry[j + 1 :], *spec[i + 1 :]] for j in range(len(entry)))
