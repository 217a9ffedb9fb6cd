# SPDX-License-Identifier: Apache-2.0
"""Sends blocks between processes: small blocks packed into one message, each big block in its own message."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._core import internal
from artifex_devices._spmd.process_groups import CrossProcessGroups

if TYPE_CHECKING:
    from artifex_devices.distributed.transport import Transport

_OWN_MESSAGE_BYTES = 1 << 16  # smaller blocks are packed
_ALIGNMENT = 64  # bytes, of blocks in a message
_PAYLOAD_ALIGNMENT = 16  # bytes, of blocks in a payload

Leaves = list[NDArray[Any]]
Kind = tuple[tuple[int, ...], Any]  # shape and dtype
Key = tuple[int, int]  # a member, and the member for which a piece of its block is taken; -1 for the entire block


def bytes_of(block: NDArray[Any]) -> NDArray[np.uint8]:
    """Returns the bytes of a block in C order, without a copy where it is contiguous."""
    flat: NDArray[np.uint8] = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    return flat


def exchange(
    transport: Transport,
    operation: str,
    sends: Mapping[int, Sequence[NDArray[Any]]],
    receives: Mapping[int, Sequence[Kind]],
) -> dict[int, Leaves]:
    """Sends blocks to each process, and returns the read-only blocks of each, of these kinds and in its order."""
    from artifex_devices.distributed.tags import Tag

    arrived: dict[int, Leaves] = {}
    with transport.exchange(operation) as messages:
        for peer, kinds in receives.items():
            memory, arrived[peer] = _places(kinds)
            for data in memory:
                messages.receive(data, peer, Tag.BLOCKS)
        for peer, blocks in sends.items():
            for data in _packed(blocks):
                messages.send(data, peer, Tag.BLOCKS)
        messages.wait_all()
    for block in itertools.chain.from_iterable(arrived.values()):
        block.flags.writeable = False
    return arrived


def _places(kinds: Sequence[Kind]) -> tuple[Leaves, Leaves]:
    """Allocates the memory of the messages of one process, and returns it with the blocks in it."""
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in kinds]
    packed = internal.host_empty((_packed_bytes(sizes),), np.dtype(np.uint8))
    memory: Leaves = []
    place = 0
    blocks: Leaves = []
    for (shape, dtype), size in zip(kinds, sizes, strict=True):
        if size < _OWN_MESSAGE_BYTES:
            blocks.append(packed[place : place + size].view(dtype).reshape(shape))
            place += _rounded(size, _ALIGNMENT)
        else:
            blocks.append(internal.host_empty(shape, np.dtype(dtype)))
            memory.append(bytes_of(blocks[-1]))
    return [*memory, packed] if packed.size else memory, blocks


def _packed(blocks: Sequence[NDArray[Any]]) -> Leaves:
    """Packs the messages to one process."""
    packed = np.empty(_packed_bytes([block.nbytes for block in blocks]), np.uint8)
    memory: Leaves = []
    place = 0
    for block in blocks:
        data = bytes_of(block)
        if data.size < _OWN_MESSAGE_BYTES:
            packed[place : place + data.size] = data
            place += _rounded(data.size, _ALIGNMENT)
        else:
            memory.append(data)
    return [*memory, packed] if packed.size else memory


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _packed_bytes(sizes: Sequence[int]) -> int:
    return sum(_rounded(size, _ALIGNMENT) for size in sizes if size < _OWN_MESSAGE_BYTES)


def payload_blocks(across: CrossProcessGroups, me: int, template: Leaves, max_payload: int) -> PayloadBlocks | None:
    """Returns the places of blocks like `template` in payloads; None, in all processes, where they do not fit."""
    owned: dict[int, list[tuple[int, int]]] = {process: [] for process in across.processes}
    for number, group in enumerate(across.groups):
        for member, owner in enumerate(group.owners):
            owned[owner].append((number, member))
    size = sum(_rounded(leaf.nbytes, _PAYLOAD_ALIGNMENT) for leaf in template) * max(map(len, owned.values()))
    fits = across.is_even and all(leaf.nbytes for leaf in template) and size <= max_payload
    return PayloadBlocks(across, me, template, owned) if fits else None


class PayloadBlocks:
    """The places of small blocks in the payload of a collective, which then takes one message in each direction."""

    def __init__(
        self, across: CrossProcessGroups, me: int, template: Leaves, owned: Mapping[int, list[tuple[int, int]]]
    ) -> None:
        """Members bring arrays like `template`; `owned` has the groups and members of the blocks in each payload."""
        sizes = [_rounded(leaf.nbytes, _PAYLOAD_ALIGNMENT) for leaf in template]
        *offsets, member_bytes = itertools.accumulate(sizes, initial=0)
        self._padding = [bytes(size - leaf.nbytes) for size, leaf in zip(sizes, template, strict=True)]
        self._leaves = [(leaf.shape, leaf.dtype, offset) for leaf, offset in zip(template, offsets, strict=True)]
        self._mine = [across.slots.index(across.groups[number].here[member]) for number, member in owned[me]]
        # For each group: the source of each member's block, and the results of this process, by position. A source is a
        # position in this process, or the place of another process and the begin of the block in its payload.
        starts = {
            each: (across.processes.index(process), i * member_bytes)
            for process, members in owned.items()
            for i, each in enumerate(members)
        }
        self._groups = []
        for number, (group, positions) in enumerate(zip(across.groups, across.positions, strict=True)):
            here = dict(zip(group.here, positions, strict=True))
            sources = [
                (here[member], None) if member in here else starts[number, member]
                for member in range(len(group.members))
            ]
            self._groups.append((sources, list(here.items())))

    def packed(self, blocks: Sequence[Any]) -> bytes:
        """Packs the payload of this process from its participants' blocks: each a list of leaves, or the only one."""
        if len(self._padding) == 1:
            (padding,) = self._padding
            mine = [blocks[i] for i in self._mine]
            return padding.join([(b[0] if type(b) is list else b).tobytes() for b in mine]) + padding
        parts: list[bytes] = []
        for i in self._mine:
            for leaf, padding in zip(blocks[i], self._padding, strict=True):
                parts += leaf.tobytes(), padding
        return b"".join(parts)

    def completed(
        self, complete: Callable[[list[Any]], Sequence[Leaves]], blocks: Sequence[Any], payloads: Sequence[bytes]
    ) -> list[Leaves]:
        """Returns the participants' results; `complete` computes a group's results from the blocks of all members."""
        results: list[Leaves] = [[]] * len(blocks)
        for sources, here in self._groups:
            parts: list[Any] = []
            for at, start in sources:
                if start is None:
                    parts.append(blocks[at])
                elif len(self._leaves) == 1:
                    shape, dtype, _ = self._leaves[0]
                    parts.append(np.ndarray(shape, dtype, payloads[at], start))
                else:
                    data = payloads[at]
                    parts.append([np.ndarray(shape, dtype, data, start + o) for shape, dtype, o in self._leaves])
            made = complete(parts)
            for member, i in here:
                results[i] = made[member]
        return results
