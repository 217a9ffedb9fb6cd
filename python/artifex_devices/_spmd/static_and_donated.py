# SPDX-License-Identifier: Apache-2.0
"""The static and the donated arguments of jit and pmap."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from artifex_devices import tree_util
from artifex_devices._base.checks import check_sequence_of_ints, check_type, failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array
from artifex_devices.errors import JaxRuntimeError


class ChosenArguments(NamedTuple):
    """The static or the donated arguments of one function; positions also select arguments passed by name."""

    operation: str
    argument: str  # "static_argnums" or "donate_argnums"
    numbers: frozenset[int]
    names: frozenset[str]

    def positions(self, count: int) -> frozenset[int]:
        """Returns the positions in a call with `count` positional arguments; ValueError where they are too few."""
        if min(self.numbers, default=0) >= 0:
            return self.numbers
        wrong = sorted(number for number in self.numbers if number < -count)
        if wrong:
            raise failure(
                ValueError,
                self.operation,
                f"{self.argument} has {wrong}",
                expected=f"numbers of the {count} positional arguments of this call",
                fix="pass more arguments",
            )
        return frozenset(number + count if number < 0 else number for number in self.numbers)

    def of_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, Any]:
        """Returns the arguments of a call by their positions or names."""
        found: dict[Any, Any] = {i: args[i] for i in sorted(self.positions(len(args))) if i < len(args)}
        return found | {name: x for name, x in kwargs.items() if name in self.names}


def numbers_of(operation: str, argument: str, value: object) -> tuple[int, ...]:
    """Returns one position or several as a tuple; raises TypeError for anything else."""
    is_sequence = isinstance(value, Iterable) and not isinstance(value, str)
    return check_sequence_of_ints(operation, argument, value if is_sequence else (value,), "write (0, 1)")


def choose_arguments(operation: str, kind: str, f: Callable[..., Any], numbers: object, names: Any) -> ChosenArguments:
    """Returns the "static" or "donate" arguments by `numbers` and `names`, or None without such arguments.

    TypeError for positions that are not ints and names that are not str; ValueError for unknown arguments.
    """
    argument = f"{kind}_argnums"
    places = list(() if numbers is None else numbers_of(operation, argument, numbers))
    if names is not None:
        check_type(operation, f"{kind}_argnames", names, Iterable, "a str or several", "write the argument's name")
    called = {names} if isinstance(names, str) else set(names or ())
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # it has no signature
        return ChosenArguments(operation, argument, frozenset(places), frozenset(called))
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(positional)
    if not any(p.kind == p.VAR_POSITIONAL for p in parameters):  # otherwise only a call knows the last argument
        wrong = [place for place in places if not -count <= place < count]
        if wrong:
            raise failure(
                ValueError,
                operation,
                f"{argument} has {wrong}",
                expected=f"numbers of the {count} positional arguments",
                fix="check them",
            )
        places = [place % count for place in places]
    known = {p.name for p in parameters}
    if not any(p.kind == p.VAR_KEYWORD for p in parameters) and called - known:
        raise failure(
            ValueError,
            operation,
            f"{kind}_argnames has {sorted(called - known)}",
            expected=f"names of arguments: {', '.join(sorted(known)) or 'none'}",
            fix="check the spelling",
        )
    by_number = {positional[place] for place in places if 0 <= place < count}
    by_name = {positional.index(name) for name in called if name in positional}
    return ChosenArguments(operation, argument, frozenset(places) | by_name, frozenset(called) | by_number)


def check_hashable(operation: str, static: Mapping[Any, Any]) -> None:
    """Raises ValueError for static arguments, by their numbers or names, that are not hashable."""
    for name, x in static.items():
        try:
            hash(x)
        except TypeError:
            raise failure(
                ValueError,
                operation,
                f"static argument {name} is not hashable",
                expected="a constant such as a number, a string or a tuple",
                got=f"{safe_repr(x)} ({type(x).__name__})",
                fix="pass a tuple for a list",
            ) from None


def donated_arrays(operation: str, donated: Sequence[Any], arguments: object) -> list[Array]:
    """Returns the Arrays in the donated arguments; JaxRuntimeError if one occurs twice in all `arguments`."""
    if not donated:
        return []
    arrays = [x for x in tree_util.tree_leaves(list(donated)) if isinstance(x, Array)]
    counts: dict[int, int] = {}
    for x in tree_util.tree_leaves(arguments):
        counts[id(x)] = counts.get(id(x), 0) + 1
    for x in arrays:
        if counts[id(x)] > 1:
            raise failure(
                JaxRuntimeError,
                operation,
                f"an Array of shape {x.shape} and dtype {x.dtype} is donated and passed twice",
                expected="it once, as the call deletes it",
                fix="pass np.copy(x) as the other argument, or leave donate_argnums out",
            )
    return arrays


def delete_donated(donated: Sequence[Array], result: object) -> None:
    """Deletes donated Arrays, except Arrays that the function returned."""
    if not donated:
        return
    returned = {id(leaf) for leaf in tree_util.tree_leaves(result)}
    for array in donated:
        if id(array) not in returned:
            array.delete()
