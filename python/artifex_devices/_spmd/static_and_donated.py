# SPDX-License-Identifier: Apache-2.0
"""The static and the donated arguments of jit and pmap."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from artifex_devices import tree_util
from artifex_devices._base.checks import check_sequence_of_ints, check_type
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Array
from artifex_devices.errors import JaxRuntimeError


class ChosenArguments:
    """The static and the donated arguments of one function, by position and by name."""

    def __init__(
        self,
        operation: str,
        f: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
    ) -> None:
        """Resolves positions and names: an argument chosen by one is also chosen by the other.

        TypeError for positions that are not ints and names that are not str; ValueError for unknown arguments, and
        those that are both static and donated.
        """
        self.operation = operation
        parameters = _parameters(f)
        self.static_numbers, self.static_names = self._arguments("static", static_argnums, static_argnames, parameters)
        donated = self._arguments("donate", donate_argnums, donate_argnames, parameters)
        self.donated_numbers, self.donated_names = donated
        both = [*sorted(self.static_names & self.donated_names), *sorted(self.static_numbers & self.donated_numbers)]
        if both:
            raise ValueError(
                f"{operation}: arguments {both} are both static and donated; expected donated arguments to be "
                "arrays; drop them from one of the two"
            )
        self.is_none = not (self.static_numbers or self.static_names or self.donated_numbers or self.donated_names)

    def _arguments(
        self, kind: str, numbers: Any, names: Any, parameters: Sequence[inspect.Parameter] | None
    ) -> tuple[frozenset[int], frozenset[str]]:
        is_sequence = isinstance(numbers, Iterable) and not isinstance(numbers, str)
        chosen = () if numbers is None else numbers if is_sequence else (numbers,)
        places = list(check_sequence_of_ints(self.operation, f"{kind}_argnums", chosen, "write (0, 1)"))
        if names is not None:
            fix = "write the argument's name"
            check_type(self.operation, f"{kind}_argnames", names, Iterable, "a str or several", fix)
        called = {names} if isinstance(names, str) else set(names or ())
        if parameters is None:
            return frozenset(places), frozenset(called)
        positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        takes_more = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        count = len(positional)
        wrong = [place for place in places if not -count <= place < count and not takes_more]
        if wrong:
            raise ValueError(
                f"{self.operation}: {kind}_argnums has {wrong}; expected numbers of the {count} positional arguments; "
                "check them"
            )
        if not takes_more:  # otherwise only a call knows the last argument
            places = [place + count if place < 0 else place for place in places]
        known = {p.name for p in parameters}
        if not any(p.kind == p.VAR_KEYWORD for p in parameters) and called - known:
            raise ValueError(
                f"{self.operation}: {kind}_argnames has {sorted(called - known)}; expected names of arguments: "
                f"{', '.join(sorted(known)) or 'none'}; check the spelling"
            )
        by_number = {positional[place] for place in places if 0 <= place < count}
        by_name = {positional.index(name) for name in called if name in positional}
        return frozenset(places) | by_name, frozenset(called) | by_number

    def numbers_in_call(self, kind: str, count: int) -> frozenset[int]:
        """The "static" or "donate" positions in a call with `count` positional arguments, which must be enough."""
        numbers = self.static_numbers if kind == "static" else self.donated_numbers
        if min(numbers, default=0) >= 0:
            return numbers
        wrong = sorted(number for number in numbers if number < -count)
        if wrong:
            raise ValueError(
                f"{self.operation}: {kind}_argnums has {wrong}; expected numbers of the {count} positional arguments "
                "of this call; pass more arguments"
            )
        return frozenset(number + count if number < 0 else number for number in numbers)

    def check_static(self, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: frozenset[int]) -> None:
        """Raises ValueError for static arguments that are not hashable."""
        static = {i: args[i] for i in sorted(numbers) if i < len(args)}
        check_hashable(self.operation, static | {name: x for name, x in kwargs.items() if name in self.static_names})

    def donated(self, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: frozenset[int]) -> list[Array]:
        """The Arrays that the call deletes; see donated_arrays."""
        chosen = [x for i, x in enumerate(args) if i in numbers]
        chosen += [x for name, x in kwargs.items() if name in self.donated_names]
        return donated_arrays(self.operation, chosen, (args, kwargs))


def check_hashable(operation: str, static: Mapping[Any, Any]) -> None:
    """Raises ValueError for static arguments, by their numbers or names, that are not hashable."""
    for name, x in static.items():
        try:
            hash(x)
        except TypeError:
            raise ValueError(
                f"{operation}: static argument {name} is not hashable; expected a constant such as a number, a string "
                f"or a tuple, got {safe_repr(x)} ({type(x).__name__}); pass a tuple for a list"
            ) from None


def donated_arrays(operation: str, donated: Sequence[Any], arguments: Any) -> list[Array]:
    """The Arrays in the donated arguments; JaxRuntimeError where `arguments`, which are all, hold one of them twice."""
    if not donated:
        return []
    arrays = [x for x in tree_util.tree_leaves(list(donated)) if isinstance(x, Array)]
    counts: dict[int, int] = {}
    for x in tree_util.tree_leaves(arguments):
        counts[id(x)] = counts.get(id(x), 0) + 1
    for x in arrays:
        if counts[id(x)] > 1:
            raise JaxRuntimeError(
                f"{operation}: an Array of shape {x.shape} and dtype {x.dtype} is donated and passed twice; expected "
                "it once, as the call deletes it; pass np.copy(x) as the other argument, or leave donate_argnums out"
            )
    return arrays


def delete_donated(donated: Sequence[Array], result: Any) -> None:
    """Deletes donated Arrays, except those that the function returned."""
    if not donated:
        return
    returned = {id(leaf) for leaf in tree_util.tree_leaves(result)}
    for array in donated:
        if id(array) not in returned:
            array.delete()


def _parameters(f: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """The parameters of a function, or None where it has no signature."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None
