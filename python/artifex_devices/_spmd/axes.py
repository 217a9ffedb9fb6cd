# SPDX-License-Identifier: Apache-2.0
"""Axis names in a body: the participants that they bring together, and their order."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TypeAlias

from artifex_devices._base.checks import check_sequence, check_sequence_of_ints, failure
from artifex_devices._base.refused_arguments import missing_argument
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.unspecified import UNSPECIFIED
from artifex_devices._core import internal
from artifex_devices._spmd.axis_groups import AxisGroups, Membership
from artifex_devices._spmd.session import Participant, Session, _current

AxisNames: TypeAlias = Hashable | Sequence[Hashable]  # one name, or several
IndexGroups = tuple[tuple[int, ...], ...]
_SPLIT = object()  # in the key of a collective over groups of an axis; an object cannot equal a name in other keys


def names_of(axis_name: AxisNames) -> tuple[Hashable, ...]:
    """Returns the names as a tuple: one name, or several in a tuple or list."""
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def require(operation: str, axis_name: AxisNames) -> Participant:
    """Returns the participant of the calling body; NameError outside shard_map and pmap, where no axis is bound."""
    if axis_name is UNSPECIFIED:
        raise missing_argument(operation, "axis_name")
    me = _current.get()
    if me is None:
        raise failure(
            NameError,
            operation,
            f"unbound axis name {safe_repr(axis_name)}",
            expected="a call inside the body of shard_map or pmap, which bind axis names",
            fix=f"call {operation} in f of ad.shard_map(f, mesh=mesh, in_specs=ad.P('x'), out_specs=ad.P())(x)",
        )
    return me


def group_of(operation: str, axis_name: object, index_groups: object = None) -> Membership:
    """Returns the calling body's group in a collective over these axes; members are row-major over the axes as named.

    NameError as `require`, and for a name that the body does not bind; ValueError for a repeated name, or
    axis_index_groups that do not hold each member once.
    """
    me = require(operation, axis_name)
    if type(axis_name) is list:
        axis_name = tuple(axis_name)
    session = me.session
    groups = session.groups.get(axis_name)
    if groups is None:
        groups = session.add_groups(axis_name, _all_groups(operation, session, names_of(axis_name), None))
    if index_groups is not None:
        groups = _prepared_groups(operation, me, axis_name, groups, index_groups)
    return groups.of[me.position]


def _prepared_groups(
    operation: str, me: Participant, axis_name: object, groups: AxisGroups, index_groups: object
) -> AxisGroups:
    """Returns the parts of these groups; checks and creates them once for all participants."""
    session = me.session
    found: AxisGroups | None = session.scheduler.prepared(me, operation, groups, index_groups)
    if found is not None:
        return found
    listed = check_sequence(operation, "axis_index_groups", index_groups, "lists of ints", "write [[0, 1], [2, 3]]")
    split = tuple(
        check_sequence_of_ints(operation, f"axis_index_groups[{i}]", each, "write [0, 1]")
        for i, each in enumerate(listed)
    )
    key = (_SPLIT, axis_name, split)
    made = session.groups.get(key)
    if made is None:
        made = session.add_groups(key, _all_groups(operation, session, names_of(axis_name), split))
    result: AxisGroups = session.scheduler.prepare(me, operation, groups, index_groups, split, made)
    return result


def _all_groups(
    operation: str, session: Session, names: tuple[Hashable, ...], index_groups: IndexGroups | None
) -> AxisGroups:
    if session.any_name and len(names) == 1 and names[0] not in session.axis_names:
        names = session.axis_names
    unbound = [name for name in names if name not in session.axis_names]
    if unbound:
        bound = ", ".join(repr(name) for name in session.axis_names)
        raise failure(
            NameError,
            operation,
            f"unbound axis name {safe_repr(unbound[0])}",
            expected=f"one of the axes bound by {session.operation}: {bound or 'none'}",
            fix="check its spelling and axis_names=",
        )
    if len(set(names)) != len(names):
        raise ValueError(f"{operation}: an axis name is repeated; expected each once, got {names}; drop one")
    axes = [session.axis_names.index(name) for name in names]
    groups = list(internal.axis_groups(session.axis_sizes, axes))
    if index_groups is not None:
        groups = [part for members in groups for part in _split(operation, members, index_groups)]
    process_map = None if session.others is None else session.others.process_map
    return AxisGroups(groups, len(session.device_names), process_map)


def _split(operation: str, members: Sequence[int], index_groups: IndexGroups) -> list[tuple[int, ...]]:
    groups = [list(group) for group in index_groups]
    if sorted(itertools.chain(*index_groups)) != list(range(len(members))):
        raise failure(
            ValueError,
            operation,
            "axis_index_groups do not cover the axis",
            expected=f"each of 0 to {len(members) - 1} in one group",
            got=groups,
            fix="list every index once",
        )
    if len({len(group) for group in index_groups}) > 1:
        raise failure(
            ValueError,
            operation,
            "axis_index_groups differ in size",
            expected="groups of one size",
            got=groups,
            fix="make them equal",
        )
    return [tuple(members[i] for i in group) for group in index_groups]
