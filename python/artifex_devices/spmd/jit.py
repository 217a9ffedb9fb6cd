# SPDX-License-Identifier: Apache-2.0
"""jit's placement, without a compiler: arguments and results are put where their shardings say."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from artifex_devices import _core
from artifex_devices._core import Array, Device, NamedSharding, PartitionSpec, Sharding
from artifex_devices.shown import shown
from artifex_devices.spmd.mapped import name_of
from artifex_devices.spmd.whole_numbers import numbers_in

__all__ = ["UNSPECIFIED", "jit"]


class _Unspecified:
    def __repr__(self) -> str:
        return "UNSPECIFIED"


# Stands for a placement that is left as it comes.
UNSPECIFIED: Any = _Unspecified()


def jit(
    f: Callable[..., Any] | None = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
) -> Any:
    """Places what goes into a function and what comes out of it; the function runs as it is: nothing is compiled.

    With it, code that says by jit where arrays shall lie runs here too. Operations inside run one by one, each where
    its operands lie. Every call runs the function's Python code, so printing and other effects happen every time.

    Args:
        f: The function; without it a decorator is returned.
        in_shardings: Where positional arguments shall lie: a Sharding, None (as they come), a
            PartitionSpec for the mesh of the enclosing `with mesh:`, or a tree of these that is a prefix of the tuple
            of arguments that are not static. Committed Arrays must lie so already, as in JAX.
        out_shardings: Where results shall lie; a prefix of what f returns. Where it says nothing, ndarrays and numbers
            go to the default device and Arrays stay where they are.
        static_argnums: Positions of arguments that are not arrays; they must be hashable. Negative ones count from the
            last parameter, or from the last argument of a call where the function takes `*args`.
        static_argnames: Names of such arguments.
        donate_argnums: Positions of arguments whose Arrays are deleted after the call.
        donate_argnames: Names of such arguments.
        keep_unused: Of no consequence.
        device: The device for arguments and results; not with in_shardings or out_shardings.
        backend: The platform whose first device that is.
        inline: Of no consequence.

    Returns:
        A function of arrays that returns Arrays. Its `lower` and `compile` raise: there is nothing to compile.

    Raises:
        TypeError: f is no function; a sharding is of another type; an argument or a result is no array.
        ValueError: Shardings do not fit arguments or results; a number or name of an argument does not exist; keyword
            arguments with in_shardings; a static argument is not hashable.
        RuntimeError: A PartitionSpec without a mesh; an unknown backend.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     rows = ad.NamedSharding(ad.make_mesh((8,), ("x",)), ad.P("x"))
        ...     double = ad.jit(lambda a: a * 2, in_shardings=rows, out_shardings=rows)
        ...     double(np.arange(8.0)).sharding == rows
        True
    """
    options: dict[str, Any] = {
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device,
        "backend": backend,
        "inline": inline,
    }
    if f is None:
        return functools.partial(jit, **options)
    if not callable(f):
        raise TypeError(f"jit: f is no function; expected a callable, got {shown(f)} ({type(f).__name__}); give one")
    placed = _Placed(f, in_shardings, out_shardings, _device(f, options))
    placed.choose(static_argnums, static_argnames, donate_argnums, donate_argnames)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return placed.call(args, kwargs)

    for name in ("lower", "compile", "trace", "eval_shape"):
        setattr(call, name, functools.partial(_not_compiled, placed.operation, name))
    call.clear_cache = _nothing_cached  # type: ignore[attr-defined]
    return call


def _nothing_cached() -> None:
    """There is no compiled code to forget."""


def _not_compiled(operation: str, name: str, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(
        f"{operation}.{name}: nothing is compiled here; expected a plain call of the function; call it, or look at the "
        "results' shape, dtype and sharding"
    )


def _device(f: Any, options: dict[str, Any]) -> Device | None:
    device, backend = options["device"], options["backend"]
    if device is None and backend is None:
        return None
    operation = f"jit({name_of(f)})"
    if options["in_shardings"] is not UNSPECIFIED or options["out_shardings"] is not UNSPECIFIED:
        raise ValueError(
            f"{operation}: device or backend came with in_shardings or out_shardings; expected one of the two ways to "
            "place; drop device and backend"
        )
    if device is not None and backend is not None:
        raise ValueError(f"{operation}: device and backend are both given; expected one of them; drop backend")
    if device is not None:
        if not isinstance(device, Device):
            raise TypeError(
                f"{operation}: device is of type {type(device).__name__}; expected a Device, got {shown(device)}; "
                "choose one of devices()"
            )
        return device
    from artifex_devices.discovery import devices

    return devices(backend)[0]


class _Placed:
    """One function with its placements."""

    def __init__(self, f: Callable[..., Any], in_shardings: Any, out_shardings: Any, device: Device | None) -> None:
        self.f = f
        self.operation = f"jit({name_of(f)})"
        self.device = device
        self.in_shardings = self._checked("in_shardings", in_shardings)
        self.out_shardings = self._checked("out_shardings", out_shardings)
        self.static_numbers: frozenset[int] = frozenset()
        self.static_names: frozenset[str] = frozenset()
        self.donated_numbers: frozenset[int] = frozenset()
        self.donated_names: frozenset[str] = frozenset()

    def choose(self, static_argnums: Any, static_argnames: Any, donate_argnums: Any, donate_argnames: Any) -> None:
        """Settles which arguments are static and which are donated.

        Raises:
            ValueError: There is no such argument; one is both.
        """
        parameters = _parameters(self.f)
        self.static_numbers, self.static_names = self._arguments("static", static_argnums, static_argnames, parameters)
        self.donated_numbers, self.donated_names = self._arguments(
            "donate", donate_argnums, donate_argnames, parameters
        )
        both = [*sorted(self.static_names & self.donated_names), *sorted(self.static_numbers & self.donated_numbers)]
        if both:
            raise ValueError(
                f"{self.operation}: arguments {both} are both static and donated; expected arrays to donate; drop them "
                "from one of the two"
            )

    def _arguments(
        self, kind: str, numbers: Any, names: Any, parameters: Sequence[inspect.Parameter] | None
    ) -> tuple[frozenset[int], frozenset[str]]:
        several = isinstance(numbers, Iterable) and not isinstance(numbers, str)
        chosen = () if numbers is None else numbers if several else (numbers,)
        places = numbers_in(self.operation, f"{kind}_argnums", chosen)
        if names is not None and not isinstance(names, Iterable):
            raise TypeError(
                f"{self.operation}: {kind}_argnames is of type {type(names).__name__}; expected a str or several, got "
                f"{shown(names)}; write the argument's name"
            )
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
        if not takes_more:  # else a call knows what the last argument is
            places = [place + count if place < 0 else place for place in places]
        known = {p.name for p in parameters}
        if not any(p.kind == p.VAR_KEYWORD for p in parameters) and called - known:
            raise ValueError(
                f"{self.operation}: {kind}_argnames has {sorted(called - known)}; expected names of arguments: "
                f"{', '.join(sorted(known)) or 'none'}; check the spelling"
            )
        # An argument that is chosen one way is meant however it is passed.
        by_number = {positional[place] for place in places if 0 <= place < count}
        by_name = {positional.index(name) for name in called if name in positional}
        return frozenset(places) | by_name, frozenset(called) | by_number

    def _checked(self, argument: str, shardings: Any) -> Any:
        from artifex_devices import tree_util

        for path, leaf in tree_util.tree_leaves_with_path(shardings, _is_sharding):
            if not _is_sharding(leaf):
                raise TypeError(
                    f"{self.operation}: {argument}{tree_util.keystr(path)} is of type {type(leaf).__name__}; expected "
                    f"a Sharding, a PartitionSpec or None, got {shown(leaf)}; write NamedSharding(mesh, P(...))"
                )
        return shardings

    def _resolved(self, argument: str, sharding: Any) -> Sharding | None:
        if sharding is None or sharding is UNSPECIFIED:
            return None
        if isinstance(sharding, PartitionSpec):
            from artifex_devices.mesh_scope import mesh_of_spec

            return NamedSharding(mesh_of_spec(f"{self.operation}: {argument}", sharding, entered=True), sharding)
        placed: Sharding = sharding
        return placed

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Places the arguments, calls the function, places the results, deletes what was donated."""
        if kwargs and self.in_shardings is not UNSPECIFIED and not self.static_names.issuperset(kwargs):
            raise ValueError(
                f"{self.operation}: keyword arguments came with in_shardings; expected positional ones, which "
                f"in_shardings go by, got {', '.join(kwargs)}; pass them by position"
            )
        static_numbers = self._in_call("static", self.static_numbers, len(args))
        donated_numbers = self._in_call("donate", self.donated_numbers, len(args))
        self._check_static(args, kwargs, static_numbers)
        dynamic = tuple(x for i, x in enumerate(args) if i not in static_numbers)
        placed = iter(self._place_arguments(dynamic))
        taken = [x if i in static_numbers else next(placed) for i, x in enumerate(args)]
        named = {
            name: x if name in self.static_names else self._place_tree("args", x, None, name)
            for name, x in kwargs.items()
        }
        donated = [x for i, x in enumerate(args) if i in donated_numbers]
        donated += [x for name, x in kwargs.items() if name in self.donated_names]
        result = self._place_results(self.f(*taken, **named))
        _delete(donated, result)
        return result

    def _in_call(self, kind: str, numbers: frozenset[int], count: int) -> frozenset[int]:
        """The numbers in a call with `count` positional arguments: negative ones count from the last argument."""
        if min(numbers, default=0) >= 0:
            return numbers
        wrong = sorted(number for number in numbers if number < -count)
        if wrong:
            raise ValueError(
                f"{self.operation}: {kind}_argnums has {wrong}; expected numbers of the {count} positional arguments "
                "of this call; pass more arguments"
            )
        return frozenset(number + count if number < 0 else number for number in numbers)

    def _check_static(self, args: tuple[Any, ...], kwargs: dict[str, Any], numbers: frozenset[int]) -> None:
        static = [(str(i), args[i]) for i in sorted(numbers) if i < len(args)]
        static += [(name, x) for name, x in kwargs.items() if name in self.static_names]
        for name, x in static:
            try:
                hash(x)
            except TypeError:
                raise ValueError(
                    f"{self.operation}: static argument {name} is not hashable; expected a constant such as a number, "
                    f"a string or a tuple, got {shown(x)} ({type(x).__name__}); pass a tuple for a list"
                ) from None

    def _place_arguments(self, dynamic: tuple[Any, ...]) -> Sequence[Any]:
        if self.in_shardings is UNSPECIFIED:
            return [self._place_tree("args", x, None, f"args[{i}]") for i, x in enumerate(dynamic)]
        from artifex_devices import tree_util
        from artifex_devices.spmd.specs import spread

        leaves, treedef = tree_util.tree_flatten(dynamic)
        wanted = spread(
            self.operation, "in_shardings", self.in_shardings, dynamic, "the tuple of arguments", _is_sharding
        )
        keys = treedef.paths()
        placed = []
        for leaf, sharding, key in zip(leaves, wanted, keys, strict=True):
            path = f"args{tree_util.keystr(key)}"
            placed.append(self._place_argument(leaf, self._resolved("in_shardings", sharding), path))
        restored: Sequence[Any] = tree_util.tree_unflatten(treedef, placed)
        return restored

    def _place_tree(self, what: str, x: Any, sharding: Sharding | None, path: str) -> Any:
        from artifex_devices import tree_util

        return tree_util.tree_map_with_path(
            lambda key, leaf: self._place_argument(leaf, sharding, f"{path}{tree_util.keystr(key)}"), x
        )

    def _place_argument(self, x: Any, sharding: Sharding | None, path: str) -> Any:
        from artifex_devices.spmd.arguments import check_alive, leaf_of

        leaf = leaf_of(self.operation, x, path)
        check_alive(self.operation, leaf, path)
        if sharding is None:
            return x if self.device is None else _put(leaf, self.device)
        if isinstance(leaf, Array):
            if leaf.committed and not leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
                raise ValueError(
                    f"{self.operation}: {path} is committed to another sharding than in_shardings say; expected "
                    f"{shown(sharding)}, got {leaf.sharding!r}; move it first: device_put({path}, sharding)"
                )
        else:
            _core._check_transfer("host_to_device", False, leaf.shape, leaf.dtype, path, sharding, self.operation)
        return self._named(path, leaf, sharding)

    def _named(self, path: str, leaf: Any, sharding: Sharding) -> Any:
        try:
            return _put(leaf, sharding)
        except ValueError as error:
            raise type(error)(f"{self.operation}: {path}: {error}") from None

    def _place_results(self, result: Any) -> Any:
        from artifex_devices import tree_util
        from artifex_devices.spmd.arguments import leaf_of
        from artifex_devices.spmd.specs import spread

        leaves, treedef = tree_util.tree_flatten(result)
        if self.out_shardings is UNSPECIFIED:
            wanted: list[Any] = [None] * len(leaves)
        else:
            wanted = spread(
                self.operation, "out_shardings", self.out_shardings, result, "what the function returns", _is_sharding
            )
        placed = []
        for leaf, sharding, key in zip(leaves, wanted, treedef.paths(), strict=True):
            path = f"output{tree_util.keystr(key)}"
            x = leaf_of(self.operation, leaf, path)
            target = self._resolved("out_shardings", sharding)
            if target is not None:
                placed.append(self._named(path, x, target))
            elif isinstance(x, Array):
                placed.append(x)
            else:
                placed.append(_put(x, self.device))
        return tree_util.tree_unflatten(treedef, placed)


def _put(x: Any, where: Any) -> Any:
    from artifex_devices.placement import device_put

    return device_put(x, where)


def _is_sharding(node: Any) -> bool:
    return node is None or node is UNSPECIFIED or isinstance(node, (Sharding, PartitionSpec))


def _parameters(f: Callable[..., Any]) -> Sequence[inspect.Parameter] | None:
    """The parameters of a function, or None where it does not tell."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None


def _delete(donated: Sequence[Any], result: Any) -> None:
    """Deletes the Arrays of donated arguments, but for those that the function returned."""
    from artifex_devices import tree_util

    if not donated:
        return
    kept = {id(leaf) for leaf in tree_util.tree_leaves(result)}
    for leaf in tree_util.tree_leaves(list(donated)):
        if isinstance(leaf, Array) and id(leaf) not in kept:
            leaf.delete()
