# SPDX-License-Identifier: Apache-2.0
"""Registration of types as nodes of trees, and Partial, a function that is a node."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from artifex_devices._base.checks import check_callable, check_sequence, failure
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._tree.keys import GetAttrKey, KeyEntry
from artifex_devices._tree.nodes import Aux, NodeType, register
from artifex_devices._tree.treedef import NodeData

Typ = TypeVar("Typ", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[PyTree], tuple[Iterable[PyTree], Hashable]],
    unflatten_func: Callable[[NodeData, tuple[PyTree, ...]], PyTree],
    flatten_with_keys_func: Callable[[PyTree], tuple[Iterable[tuple[KeyEntry, PyTree]], Hashable]] | None = None,
) -> None:
    """Registers a type as a node of trees.

    Args:
        nodetype: The type; instances of its subclasses stay leaves.
        flatten_func: Returns the children and, as hashable data, the rest of the object.
        unflatten_func: Builds the object from data and a tuple of children, which may be of any type.
        flatten_with_keys_func: Like flatten_func, with (key, child) for each child; replaces flatten_func if given.
            Without it the keys are numbers.

    Raises:
        ValueError: The type is registered already.
        TypeError: nodetype is not a type, or a function cannot be called.

    Example:
        >>> from artifex_devices import tree_util
        >>> class Pair:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> tree_util.register_pytree_node(Pair, lambda pair: ((pair.x, pair.y), None), lambda _, xy: Pair(*xy))
        >>> tree_util.tree_map(lambda leaf: 10 * leaf, Pair(1, 2)).y
        20
    """
    _register("register_pytree_node", nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[PyTree], tuple[Iterable[tuple[KeyEntry, PyTree]], Hashable]],
    unflatten_func: Callable[[NodeData, tuple[PyTree, ...]], PyTree],
    flatten_func: Callable[[PyTree], tuple[Iterable[PyTree], Hashable]] | None = None,
) -> None:
    """Registers a type as register_pytree_node does, with the keys of its children.

    Args:
        nodetype: The type; instances of its subclasses stay leaves.
        flatten_with_keys: Returns (key, child) for each child, and hashable data. Keys are `GetAttrKey` and the like,
            or any objects with a `str`.
        unflatten_func: Builds the object from data and a tuple of children.
        flatten_func: Unused; accepted as in JAX.

    Raises:
        ValueError: The type is registered already.
        TypeError: nodetype is not a type, or a function cannot be called.
    """
    _register("register_pytree_with_keys", nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Typ) -> Typ:
    """Registers a class with `tree_flatten(self)` and a class method `tree_unflatten(data, children)`."""
    name = "register_pytree_node_class"
    _register(name, cls, operator.methodcaller("tree_flatten"), _unflatten_of(name, cls), None)
    return cls


def register_pytree_with_keys_class(cls: Typ) -> Typ:
    """Registers a class with `tree_flatten_with_keys(self)` and a class method `tree_unflatten(data, children)`."""
    with_keys = operator.methodcaller("tree_flatten_with_keys")
    name = "register_pytree_with_keys_class"
    _register(name, cls, None, _unflatten_of(name, cls), with_keys)
    return cls


def register_dataclass(
    nodetype: Typ,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Typ:
    """Registers a dataclass as a node: data fields are children, meta fields hashable data.

    Args:
        nodetype: The class. With both lists given, any class whose fields are keyword arguments.
        data_fields: Names of the children; default the fields that are not marked by `tree.static`.
        meta_fields: Names of the data; default the marked fields. Give both lists or none.
        drop_fields: Names of fields with `init=True` that are in neither list.

    Returns:
        The class; the function is a decorator too.

    Raises:
        ValueError: A field is missing, unknown or in both lists; the type is registered already.
        TypeError: Only one list is given, or none for a class that is not a dataclass.

    Example:
        >>> import dataclasses
        >>> import artifex_devices as ad
        >>> @ad.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Layer:
        ...     weight: float
        ...     name: str = ad.tree.static(default="layer")
        >>> ad.tree.map(lambda leaf: leaf + 1, Layer(1.0))
        Layer(weight=2.0, name='layer')
    """
    data, meta = _fields_of(nodetype, data_fields, meta_fields, drop_fields)
    names = (*data, *meta)
    keys = tuple(map(GetAttrKey, data))

    def flatten(node: object) -> tuple[tuple[Any, ...], Aux]:
        return tuple([getattr(node, name) for name in data]), Aux(tuple([getattr(node, name) for name in meta]), keys)

    def unflatten(values: Any, children: Any) -> Any:
        return nodetype(**dict(zip(names, (*children, *values), strict=True)))

    register("register_dataclass", nodetype, NodeType(flatten, unflatten, list))
    return nodetype


def register_static(cls: Typ) -> Typ:
    """Registers a class whose hashable instances are nodes without leaves, stored in the structure.

    Example:
        >>> import artifex_devices as ad
        >>> @ad.tree_util.register_static
        ... class Mode(str):
        ...     pass
        >>> ad.tree.leaves({"mode": Mode("train"), "x": 1})
        [1]
    """
    register("register_static", cls, NodeType(lambda node: ((), Aux(node, ())), lambda node, _: node))
    return cls


def _register(
    operation: str,
    cls: type,
    flatten_func: Callable[[Any], Any] | None,
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys: Callable[[Any], Any] | None,
) -> None:
    for name, function in (
        ("flatten_func", flatten_func),
        ("unflatten_func", unflatten_func),
        ("flatten_with_keys", flatten_with_keys),
    ):
        if function is not None:
            check_callable(operation, name, function)
    chosen = flatten_func if flatten_with_keys is None else flatten_with_keys
    if chosen is None:
        raise TypeError(f"{operation}: flatten_func is None; expected a function; write one")

    def flatten(node: object) -> tuple[tuple[Any, ...], Aux]:
        result = chosen(node)
        if type(result) is not tuple or len(result) != 2 or not isinstance(result[0], Iterable):
            raise failure(
                ValueError,
                "tree_flatten",
                f"flatten_func of {cls.__name__} returned {safe_repr(result)}",
                expected="a pair (children, data), with an iterable of children",
            )
        children = tuple(result[0])
        if flatten_with_keys is None:
            return children, Aux(result[1], None)
        for child in children:
            if not isinstance(child, tuple | list) or len(child) != 2:
                raise failure(
                    ValueError,
                    "tree_flatten",
                    f"flatten_with_keys of {cls.__name__} returned {safe_repr(child)} for a child",
                    expected="a pair (key, child)",
                )
        return tuple([child for _, child in children]), Aux(result[1], tuple([key for key, _ in children]))

    register(operation, cls, NodeType(flatten, unflatten_func, list if flatten_func is None else tuple))


def _unflatten_of(operation: str, cls: Any) -> Callable[[Any, Any], Any]:
    try:
        return cls.tree_unflatten  # type: ignore[no-any-return]
    except AttributeError:
        raise failure(
            AttributeError,
            operation,
            f"{safe_repr(cls)} has no tree_unflatten",
            expected="a class with the class method tree_unflatten(data, children)",
            fix="define it",
        ) from None


def _fields_of(
    cls: Any, data_fields: Sequence[str] | None, meta_fields: Sequence[str] | None, drop_fields: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    is_dataclass = dataclasses.is_dataclass(cls)
    if data_fields is None or meta_fields is None:
        if data_fields is not None or meta_fields is not None:
            raise failure(
                TypeError,
                "register_dataclass",
                "only one list of fields",
                expected="data_fields and meta_fields or neither",
                got=f"data_fields={data_fields!r} meta_fields={meta_fields!r}",
            )
        if not is_dataclass:
            raise failure(
                TypeError,
                "register_dataclass",
                f"{safe_repr(cls)} is not a dataclass",
                expected="one, or data_fields and meta_fields",
                fix="decorate it with dataclasses.dataclass",
            )
        known = dataclasses.fields(cls)
        data_fields = [field.name for field in known if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in known if field.metadata.get("static", False)]
    data, meta = (
        tuple(check_sequence("register_dataclass", name, fields, "a sequence of names", "write ('weight',)"))
        for name, fields in (("data_fields", data_fields), ("meta_fields", meta_fields))
    )
    wrong = []
    if both := [name for name in data if name in meta]:
        wrong.append(f"{both} are in both lists")
    if is_dataclass:
        expected = [field.name for field in dataclasses.fields(cls) if field.init and field.name not in drop_fields]
        if missing := [name for name in expected if name not in (*data, *meta)]:
            wrong.append(f"{missing} are in neither list (name them in drop_fields to leave them out)")
        if unknown := [name for name in (*data, *meta) if name not in expected]:
            wrong.append(f"{unknown} are not fields with init=True, or are dropped")
    if wrong:
        raise failure(
            ValueError,
            "register_dataclass",
            "; ".join(wrong),
            expected=f"data_fields and meta_fields to name each field of {cls.__name__} once",
            got=f"data_fields={list(data)} meta_fields={list(meta)}",
        )
    return data, meta


class _Boxed:
    """A partial function that functools.partial must not merge into the outer one."""

    def __init__(self, function: functools.partial[Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return bool(self.function == (other.function if isinstance(other, _Boxed) else other))

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


@public("artifex_devices.tree_util")
class Partial(functools.partial):  # type: ignore[type-arg]
    """functools.partial as a node of trees: bound arguments are children, the function is data.

    Example:
        >>> import artifex_devices as ad
        >>> add = ad.tree_util.Partial(lambda x, y: x + y, 1)
        >>> ad.tree.map(lambda leaf: 10 * leaf, add)(2)
        12
    """

    def __new__(cls, func: Callable[..., Any], /, *args: object, **kwargs: object) -> Partial:
        return super().__new__(cls, _Boxed(func) if isinstance(func, functools.partial) else func, *args, **kwargs)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, bound: Partial(func, *bound[0], **bound[1]),
)
