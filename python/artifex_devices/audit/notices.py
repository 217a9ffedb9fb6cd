# SPDX-License-Identifier: Apache-2.0
"""What is notable about the shardings of a tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text
from artifex_devices.audit.leaves import FREE, LeafSharding, axes_of, sharded_axes

_MAX_WORDS = 64  # of a path that are compared
_WORDS = re.compile(r"[^./\[\]'\"]+")

# Words of paths. Optimizers keep a tree of the parameters' structure below a slot, or slots below each parameter.
_CONTAINERS = {"opt_state", "optimizer_state", "optim_state", "optimizer", "optim", "opt", "opt_states"}
_SLOTS = {
    *("mu", "nu", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "acc_delta"),
    *("momentum", "trace", "m", "v", "velocity", "accumulator", "sum_of_squares", "master", "step_size"),
}
_SLOT_OF_TREE = re.compile(r"\.(mu|nu)\b")  # fields of optax's ScaleByAdamState
_SLOTS_OF_PARAMETERS = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer"}  # of torch


@public("artifex_devices.audit")
@dataclass(frozen=True)
class Notice:
    """Something notable about the sharding of a leaf or a mesh axis.

    Attributes:
        kind: "replicated", "does not divide", "unused axis" or "optimizer state".
        path: Path of the leaf, or name of the axis.
        bytes: Bytes of the leaf on each device; None where they are unknown, and for an axis.
        text: The fact in one sentence.
    """

    kind: str
    path: str
    bytes: int | None
    text: str


def notices_of(leaves: Iterable[LeafSharding], at_least: int) -> tuple[Notice, ...]:
    """Returns the notices of a tree by kind, those of large leaves first.

    Args:
        leaves: Leaves of the tree.
        at_least: Least number of bytes of a leaf that is reported as replicated. A leaf without a dtype counts with one
            byte for each element.
    """
    listed = sorted(leaves, key=lambda leaf: -leaf.weight)
    return (*_replicated(listed, at_least), *_uneven(listed), *_unused(listed), *_optimizer_states(listed))


def _replicated(leaves: list[LeafSharding], at_least: int) -> Iterator[Notice]:
    for leaf in leaves:
        if (leaf.replicas or 0) > 1 and sharded_axes(leaf) == () and leaf.weight >= max(at_least, 1):
            what = f"{leaf.size:,} elements" if leaf.total_bytes is None else bytes_text(leaf.total_bytes)
            text = f"each of {leaf.replicas} devices holds all of its {what}"
            yield Notice("replicated", leaf.path, leaf.device_bytes, text)


def _uneven(leaves: list[LeafSharding]) -> Iterator[Notice]:
    for leaf in leaves:
        for dimension, (size, parts) in enumerate(zip(leaf.shape or (), leaf.parts or (), strict=False)):
            if size % parts:
                axes = ", ".join(axes_of(leaf.spec[dimension] if leaf.spec is not None else None))
                text = f"its dimension {dimension} of {size} does not divide by {parts} ({axes})"
                yield Notice("does not divide", leaf.path, leaf.device_bytes, text)


def _unused(leaves: list[LeafSharding]) -> Iterator[Notice]:
    """Yields the axes of more than one device that no leaf of their mesh uses, where all shardings are known."""
    meshes = {tuple(leaf.mesh.items()): leaf.mesh for leaf in leaves}
    for key, mesh in meshes.items():
        specs = [leaf.spec for leaf in leaves if tuple(leaf.mesh.items()) == key]
        if any(spec is None or FREE in spec for spec in specs):
            continue
        used = {name for spec in specs if spec is not None for entry in spec for name in axes_of(entry)}
        for name, size in mesh.items():
            if size > 1 and name not in used:
                text = f"no leaf is sharded over this axis of {size} devices"
                yield Notice("unused axis", name, None, text)


def _optimizer_states(leaves: list[LeafSharding]) -> Iterator[Notice]:
    """Yields the states of parameters whose path ends alike, below a root that fits most states of an optimizer."""
    parameters: dict[tuple[str, ...], LeafSharding] = {}
    roots: dict[tuple[str, ...], list[tuple[str, ...]]] = {}  # by the end of a path
    groups: dict[tuple[str, ...], list[tuple[tuple[str, ...], LeafSharding]]] = {}  # ends by the beginning of a path
    for leaf in leaves:
        words = tuple(_WORDS.findall(leaf.path))[-_MAX_WORDS:]
        split = _state_words(leaf.path, words)
        if split is not None:
            groups.setdefault(split[0], []).append((split[1], leaf))
            continue
        parameters[words] = leaf
        for begin in range(len(words)):
            roots.setdefault(words[begin:], []).append(words[:begin])
    for states in groups.values():
        votes = Counter(root for end, _ in states for root in roots.get(end, ()))
        if not votes:
            continue
        root = min(votes, key=lambda each: (-votes[each], len(each)))
        for end, state in states:
            parameter = parameters.get((*root, *end))
            if parameter is not None and _differ(parameter, state):
                text = f"it is sharded {state.spec}, its parameter {parameter.path} {parameter.spec}"
                yield Notice("optimizer state", state.path, state.device_bytes, text)


def _differ(parameter: LeafSharding, state: LeafSharding) -> bool:
    if parameter.shape != state.shape or (parameter.mesh and state.mesh and parameter.mesh != state.mesh):
        return False
    specs = (parameter.spec, state.spec)
    return all(spec is not None and FREE not in spec for spec in specs) and sharded_axes(parameter) != sharded_axes(
        state
    )


def _state_words(path: str, words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Returns the words before and of a parameter's path within the path of an optimizer's state, else None."""
    if not words:
        return None
    containers = [i for i, word in enumerate(words) if word in _CONTAINERS]
    if words[-1] in _SLOTS_OF_PARAMETERS or (containers and words[-1] in _SLOTS):
        begin = max((i + 1 for i, word in enumerate(words) if word == "state" or word in _CONTAINERS), default=0)
        return (*words[:begin], words[-1]), words[begin:-1]
    if not containers and not _SLOT_OF_TREE.search(path):
        return None
    begin = containers[0] + 1 if containers else 0
    slots = [i for i, word in enumerate(words) if i >= begin and word in _SLOTS]
    if slots:
        return words[: slots[0] + 1], words[slots[0] + 1 :]
    while begin < len(words) and words[begin].isdecimal():
        begin += 1
    return words[:begin], words[begin:]
