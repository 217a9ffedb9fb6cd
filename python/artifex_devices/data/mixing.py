# SPDX-License-Identifier: Apache-2.0
"""mix: several streams in proportion to weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from artifex_devices._base.checks import check_bool, check_int, failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices.data.stream import Stream

_OPERATION = "data.mix"
_MOST_PARTS = 1 << 20  # MixSchedule::kMostParts
_FIX = 'write data.mix({"web": (web, 0.7), "code": (code, 0.3)})'


@public("artifex_devices.data")
def mix(streams: Mapping[str, tuple[Stream, float]], seed: int = 0, repeat: bool = False) -> Stream:
    """Returns a stream that takes from several streams in proportion to their weights.

    After any number k of samples, each stream was used within 1 of k times its share. The place of each is fixed, not
    drawn at random; every stream keeps its own order. Weights count as ratios of whole numbers ("parts", shown by
    repr): 0.7 and 0.3 are 7 and 3 parts. Where the parts have a sum above 2**20, they are rounded to this sum.

    Args:
        streams: Stream and weight by name. A weight of 0 leaves a stream out.
        seed: Seed of later steps, as `shuffle`.
        repeat: False: the mix ends when a stream that is next has no more samples. True: each stream is repeated,
            with another order in each epoch where it is shuffled, and the mix is endless.

    Raises:
        TypeError: `streams` is not a dict of pairs, or a weight not a number.
        ValueError: A weight is negative or not finite, or all are 0.

    Example:
        >>> from artifex_devices import data
        >>> web, code = data.Stream(["w"] * 70), data.Stream(["c"] * 100)
        >>> mixed = data.mix({"web": (web, 0.7), "code": (code, 0.3)})
        >>> len(mixed), "".join(mixed.at(p) for p in range(10)).count("w")
        (100, 7)
    """
    pairs: Any = streams
    if not isinstance(pairs, Mapping) or not pairs:
        raise wrong_type(_OPERATION, "streams", streams, "a dict of (stream, weight) by name", _FIX)
    number = check_int(_OPERATION, "seed", seed, "write seed=7", minimum=0, maximum=2**63 - 1)
    repeats = check_bool(_OPERATION, "repeat", repeat, "write repeat=True")
    weights: dict[str, Fraction] = {}
    for name, pair in pairs.items():
        if not isinstance(name, str):
            raise wrong_type(_OPERATION, "the name of a stream", name, "a str", _FIX)
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Stream)):
            raise wrong_type(_OPERATION, f"streams[{name!r}]", pair, "a pair of a Stream and its weight", _FIX)
        weights[name] = _fraction(name, pair[1])
    parts = _parts(weights)
    texts = [f"{name}: {part} of {sum(parts)}" for name, part in zip(weights, parts, strict=True)]
    recipe = ("mix", parts, repeats)
    identity = f"mix({'repeat, ' if repeats else ''}{', '.join(map(str, parts))})"
    return Stream._joined({name: pair[0] for name, pair in pairs.items()}, recipe, number, texts, identity)


def _fraction(name: str, weight: Any) -> Fraction:
    """Returns a weight as the ratio that its decimal digits say."""
    if isinstance(weight, bool) or not isinstance(weight, Real):
        raise wrong_type(_OPERATION, f"the weight of {name!r}", weight, "a number", _FIX)
    if not isinstance(weight, Rational) and not math.isfinite(weight):
        value = None
    else:
        value = Fraction(weight) if isinstance(weight, Rational) else Fraction(repr(float(weight)))
    if value is None or value < 0:
        raise failure(
            ValueError,
            _OPERATION,
            f"the weight of {name!r} is {weight}",
            expected="0 or more, and finite",
            fix=_FIX,
        )
    return value


def _parts(weights: dict[str, Fraction]) -> list[int]:
    """Returns whole numbers in the ratio of weights, with a sum of at most _MOST_PARTS."""
    total = sum(weights.values())
    if total == 0:
        raise failure(ValueError, _OPERATION, "all weights are 0", expected="at least one above 0", fix=_FIX)
    scale = math.lcm(*(weight.denominator for weight in weights.values()))
    whole = [int(weight * scale) for weight in weights.values()]
    divisor = math.gcd(*whole)
    whole = [each // divisor for each in whole]
    if sum(whole) <= _MOST_PARTS:
        return whole
    exact = [weight * _MOST_PARTS / total for weight in weights.values()]
    rounded = [max(int(each), each > 0) for each in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: rounded[i] - exact[i])
    for i in by_remainder[: max(0, _MOST_PARTS - sum(rounded))]:
        rounded[i] += 1
    while sum(rounded) > _MOST_PARTS:  # small weights that count as one part
        rounded[rounded.index(max(rounded))] -= 1
    return [int(each) for each in rounded]
