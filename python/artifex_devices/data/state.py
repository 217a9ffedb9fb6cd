# SPDX-License-Identifier: Apache-2.0
"""The state of an iteration: what identifies its stream, and how far it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from artifex_devices._base.checks import check_int, check_str, failure, wrong_type
from artifex_devices._base.digest import digest_of
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import shortened_list
from artifex_devices.data.reading import Replacement

VERSION = 1
MAX_POSITION = 2**63 - 1
_SHOWN = 4  # sources in a message
_FIX = "give the stream that was saved, or leave state out to begin at the first sample"
# Keys of the state that identify the stream, each with its name in messages.
_IDENTITY = {"seed": "seed", "order": "order", "packing": "packing"}


class Progress(NamedTuple):
    """How far an iteration has come.

    Attributes:
        step: Number of batches that were used.
        position: Position of the next sample in the stream.
        skipped: Number of samples that could not be read.
        skipped_digest: Digest of these samples and their replacements, in order; "" without any.
    """

    step: int = 0
    position: int = 0
    skipped: int = 0
    skipped_digest: str = ""

    def after(self, position: int, replaced: list[Replacement]) -> Progress:
        """Returns the progress after one more batch, which ends before a position."""
        digest = self.skipped_digest
        for each in replaced:
            digest = digest_of(f"{digest}|{each.position}|{each.leaf}|{each.index}|{each.used}").hex()[:32]
        return Progress(self.step + 1, position, self.skipped + len(replaced), digest)


class IdentifiedStream(Protocol):
    """A stream, for its state."""

    @property
    def length(self) -> int | None:
        """Number of positions; None if it is endless."""

    def _identity(self) -> dict[str, str]:
        """Returns seed, sources (JSON of the digest of each by name), order and packing."""


class StateOfStream:
    """Writes and checks states of one stream."""

    def __init__(self, stream: IdentifiedStream) -> None:
        self._length = stream.length
        self._identity: dict[str, str] = stream._identity()

    def write(self, progress: Progress) -> dict[str, int | str]:
        """Returns the state."""
        return {"version": VERSION, **progress._asdict(), **self._identity}

    def read(self, operation: str, state: object) -> Progress:
        """Returns the progress of a state.

        Raises:
            TypeError: The state is not a dict of ints and texts.
            ValueError: It is of another stream or version, has other keys, or a number is out of range.
        """
        if not isinstance(state, Mapping):
            raise wrong_type(operation, "state", state, "the dict that batches.state() returned", "leave it out")
        version = check_int(operation, "state['version']", state.get("version"), _FIX)
        if version != VERSION:
            raise failure(
                ValueError,
                operation,
                f"the state has version {safe_repr(version)}",
                expected=f"version {VERSION}",
                fix="load it with the version of artifex_devices that wrote it (pip install -U artifex_devices)",
            )
        expected = self.write(Progress())
        missing, unknown = expected.keys() - state.keys(), state.keys() - expected.keys()
        if missing or unknown:
            parts = [f"lacks {_names(missing)}"] * bool(missing) + [f"has {_names(unknown)} too"] * bool(unknown)
            problem = f"the state {' and '.join(parts)}"
            raise failure(ValueError, operation, problem, expected=f"the keys {_names(expected)}", fix=_FIX)
        for key in self._identity:
            check_str(operation, f"state[{key!r}]", state[key], _FIX)
        differences = _differences(state, self._identity)
        if differences:
            raise failure(
                ValueError,
                operation,
                f"the state is of another stream: {'; '.join(differences)}",
                expected="the stream that was saved",
                fix=_FIX,
            )
        numbers = {
            key: check_int(operation, f"state[{key!r}]", state[key], _FIX, minimum=0, maximum=MAX_POSITION)
            for key in ("step", "position", "skipped")
        }
        if self._length is not None and numbers["position"] > self._length:
            raise failure(
                ValueError,
                operation,
                f"state['position'] is {numbers['position']}",
                expected=f"at most {self._length}, the length of the stream",
                fix=_FIX,
            )
        digest = check_str(operation, "state['skipped_digest']", state["skipped_digest"], _FIX)
        return Progress(**numbers, skipped_digest=str(digest))


def _names(keys: Any) -> str:
    return shortened_list([safe_repr(key) for key in sorted(keys, key=str)], 12)


def _differences(state: Mapping[str, Any], identity: Mapping[str, str]) -> list[str]:
    """Returns how the stream that a state identifies differs from another."""
    found = [
        f"its {name} is {safe_repr(state[key])}, and that of the stream {identity[key]!r}"
        for key, name in _IDENTITY.items()
        if state[key] != identity[key]
    ]
    if state["sources"] == identity["sources"]:
        return found
    now, before = json.loads(identity["sources"]), _sources(state["sources"])
    if before is None:
        return [*found, f"its sources are {safe_repr(state['sources'])}"]
    changed = [
        f"the source {name!r} had the digest {safe_repr(before[name])} and has {now[name]!r}"
        for name in now
        if name in before and before[name] != now[name]
    ]
    changed += [f"it has no source {name!r}" for name in now if name not in before]
    changed += [f"it has a source {safe_repr(name)}" for name in before if name not in now]
    return [*found, shortened_list(changed, _SHOWN) if changed else "its sources are in another order"]


def _sources(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
