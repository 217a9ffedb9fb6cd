# SPDX-License-Identifier: Apache-2.0
"""The placement of jit, without a compiler: arguments and results are placed by their shardings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from artifex_devices._base.checks import check_callable, check_type, failure
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import Array, Device, Sharding, internal
from artifex_devices._placement.device_put import LEAF_TYPES
from artifex_devices._placement.mesh_context import mesh_that_is_set
from artifex_devices._placement.target import TargetTree
from artifex_devices._runtime.devices import devices
from artifex_devices._spmd.jit_placement import JitShardings, is_placed_on, same_devices
from artifex_devices._spmd.mapped import name_of
from artifex_devices._spmd.static_and_donated import (
    ChosenArguments,
    check_hashable,
    choose_arguments,
    delete_donated,
    donated_arrays,
)

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@overload
def jit(
    f: Callable[_Parameters, _Result],
    in_shardings: TargetTree = ...,
    out_shardings: TargetTree = ...,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
) -> Callable[_Parameters, _Result]: ...
@overload
def jit(
    f: None = None,
    in_shardings: TargetTree = ...,
    out_shardings: TargetTree = ...,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]: ...
@hides_unknown
def jit(
    f: Callable[..., Any] | None = None,
    in_shardings: TargetTree = UNSPECIFIED,
    out_shardings: TargetTree = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool = False,
    **_unknown: Any,
) -> Any:
    """Places the arguments and results of a function by their shardings; nothing is compiled.

    With it, code that places arrays by jit runs here too. Operations inside run one by one, each on the devices of its
    operands. Every call runs the function's Python code, so printing and other effects happen every time.

    A call runs on the devices of its committed arguments, of in_shardings and out_shardings, or of the mesh of
    `set_mesh`; all of them must be the same devices in the same order. Without any of these it runs on the default
    device. Results that are not committed are placed on these devices, replicated; without any of these, Arrays stay
    where the function has placed them. These transfers are implicit, for transfer guards. The function may place a
    result by another sharding of the same devices, but not on other devices.

    Args:
        f: The function. Without it a decorator is returned.
        in_shardings: Placement of positional arguments: a Sharding, None (unchanged), a PartitionSpec for the mesh of
            the enclosing `with mesh:`, or a tree of such values that is a prefix of the tuple of arguments that are not
            static. A list with one entry for each of these arguments counts as a tuple. A committed Array must already
            have this sharding, as in JAX.
        out_shardings: Placement of results; a prefix of what f returns.
        static_argnums: Positions of arguments that are not arrays; they must be hashable. Negative ones count from the
            last parameter, or from the last argument of a call where the function takes `*args`.
        static_argnames: Names of such arguments.
        donate_argnums: Positions of arguments whose Arrays are deleted after the call.
        donate_argnames: Names of such arguments.
        keep_unused: Has no effect.
        device: The device for arguments and results; not with in_shardings or out_shardings.
        backend: The platform whose first device is used, instead of `device`.
        inline: Has no effect.

    Returns:
        A function of arrays that returns Arrays. Its `lower` and `compile` raise an error, because jit does not
        compile.

    Raises:
        TypeError: f is not a function; a sharding is of another type; an argument or a result is not an array.
        ValueError: Arguments, shardings and results are on different devices; shardings do not fit arguments or
            results; a number or name of an argument does not exist; keyword arguments with in_shardings; a static
            argument is not hashable.
        RuntimeError: A PartitionSpec without a mesh; an unknown backend; a donated Array is passed twice; a transfer
            guard refuses a transfer.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> with ad.simulate(8):
        ...     rows = ad.NamedSharding(ad.make_mesh((8,), ("x",)), ad.P("x"))
        ...     double = ad.jit(lambda a: a * 2, in_shardings=rows, out_shardings=rows)
        ...     double(np.arange(8.0)).sharding == rows
        True
    """
    if _unknown:
        raise unknown_argument("jit", _unknown)
    if f is None:
        return functools.partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
        )
    check_callable("jit", "f", f)
    operation = f"jit({name_of(f)})"
    home = _device(operation, device, backend, in_shardings is not UNSPECIFIED or out_shardings is not UNSPECIFIED)
    shardings = JitShardings(operation, in_shardings, out_shardings, home)
    static = choose_arguments(operation, "static", f, static_argnums, static_argnames)
    donated = choose_arguments(operation, "donate", f, donate_argnums, donate_argnames)
    both = [*sorted(static.names & donated.names), *sorted(static.numbers & donated.numbers)]
    if both:
        raise failure(
            ValueError,
            operation,
            f"arguments {both} are both static and donated",
            expected="donated arguments to be arrays",
            fix="drop them from one of the two",
        )
    is_plain = shardings.is_plain and not any((static.numbers, static.names, donated.numbers, donated.names))

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_plain and not kwargs and mesh_that_is_set() is None:
            home = _plain_home(args)
            if home is not UNSPECIFIED:
                result = f(*args)
                if type(result) is Array and (home is None or is_placed_on(result, home)):
                    return result
                return shardings.place_results(result, home)
        return _call_placed(f, shardings, static, donated, args, kwargs)

    for name in ("lower", "compile", "trace", "eval_shape"):
        setattr(call, name, functools.partial(_not_compiled, operation, name))
    call.clear_cache = lambda: None  # type: ignore[attr-defined]  # nothing is compiled
    return call


def _not_compiled(operation: str, name: str, *args: Any, **kwargs: Any) -> Any:
    raise failure(
        NotImplementedError,
        f"{operation}.{name}",
        "nothing is compiled here",
        expected="a plain call of the function",
        fix="call it, or read the results' shape, dtype and sharding",
    )


def _device(operation: str, device: Device | None, backend: str | None, has_shardings: bool) -> Device | None:
    if device is None and backend is None:
        return None
    if has_shardings:
        raise failure(
            ValueError,
            operation,
            "device or backend came with in_shardings or out_shardings",
            expected="one of the two",
            fix="drop device and backend",
        )
    if device is not None and backend is not None:
        raise ValueError(f"{operation}: device and backend are both given; expected one of them; drop backend")
    if device is not None:
        check_type(operation, "device", device, Device, "a Device", "choose one of devices()")
        return device
    return devices(backend)[0]


def _call_placed(
    f: Callable[..., Any],
    shardings: JitShardings,
    static: ChosenArguments,
    donated: ChosenArguments,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Places the arguments, calls the function, places the results, deletes donated Arrays."""
    if kwargs and shardings.in_shardings is not UNSPECIFIED and not static.names.issuperset(kwargs):
        raise failure(
            ValueError,
            shardings.operation,
            "keyword arguments came with in_shardings",
            expected="positional ones, to which in_shardings apply",
            got=", ".join(kwargs),
            fix="pass them by position",
        )
    static_arguments = static.of_call(args, kwargs)
    check_hashable(shardings.operation, static_arguments)
    deleted = donated_arrays(shardings.operation, list(donated.of_call(args, kwargs).values()), (args, kwargs))
    dynamic = tuple(x for i, x in enumerate(args) if i not in static_arguments)
    named = {name: x for name, x in kwargs.items() if name not in static_arguments}
    placed, home = shardings.place_arguments(dynamic, named)
    positional = iter(placed[: len(dynamic)])
    taken = [x if i in static_arguments else next(positional) for i, x in enumerate(args)]
    keywords = {**kwargs, **dict(zip(named, placed[len(dynamic) :], strict=True))}
    result = shardings.place_results(f(*taken, **keywords), home)
    delete_donated(deleted, result)
    return result


def _plain_home(args: tuple[Any, ...]) -> Any:
    """Returns the sharding that a call with these arguments runs on, or None; UNSPECIFIED if they need more checks."""
    home: Sharding | None = None
    for x in args:
        kind = type(x)
        if kind is Array:
            if x.is_deleted():
                return UNSPECIFIED
            if not x.committed:
                continue
            sharding = x.sharding
            if home is None:
                home = sharding
            elif home is not sharding and not same_devices(home, sharding):
                return UNSPECIFIED
        elif (
            kind not in LEAF_TYPES
            or (kind is np.ndarray and x.dtype.kind not in "biufc")
            or (kind is int and not -(1 << 63) <= x < 1 << 64)
            or internal.transfer_is_guarded("host_to_device", False)
        ):
            return UNSPECIFIED
    return home
