# SPDX-License-Identifier: Apache-2.0
"""Blocks from process to process: small ones packed into one message, big ones each in a message of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._spmd.process_groups import ProcessGroups

if TYPE_CHECKING:
    from artifex_devices.distributed.transport import Transport

_TAG = 2  # of blocks; messages of one pair arrive in order, so that one tag is enough
_OWN_MESSAGE_BYTES = 1 << 16  # smaller blocks are packed
_ALIGNMENT = 64  # bytes, of blocks in a message
_PAYLOAD_ALIGNMENT = 16  # bytes, of blocks in a payload

Leaves = list[NDArray[Any]]
Kind = tuple[tuple[int, ...], Any]  # shape and dtype
Key = tuple[int, int]  # a member, and the member for which a piece of its block is taken; -1 for the entire block


def bytes_of(block: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a block in C order, without a copy where it is contiguous."""
    flat: NDArray[np.uint8] = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    return flat


def exchange(
    transport: Transport,
    operation: str,
    sends: Mapping[int, Sequence[NDArray[Any]]],
    receives: Mapping[int, Sequence[Kind]],
) -> dict[int, Leaves]:
    """Sends blocks to each process, and returns the read-only blocks of each, of these kinds and in its order."""
    from artifex_devices.distributed.transport import InFlight

    arrived: dict[int, Leaves] = {}
    with InFlight(transport, operation) as messages:
        for peer, kinds in receives.items():
            memory, arrived[peer] = _places(kinds)
            for data in memory:
                messages.add(transport.irecv(data, peer, _TAG))
        for peer, blocks in sends.items():
            for data in _packed(blocks):
                messages.add(transport.isend(data, peer, _TAG), data)
        messages.wait_all()
    for block in itertools.chain.from_iterable(arrived.values()):
        block.flags.writeable = False
    return arrived


def _places(kinds: Sequence[Kind]) -> tuple[Leaves, Leaves]:
    """The memory of the messages of one process, and the blocks in it."""
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in kinds]
    packed = _core._host_empty((_packed_bytes(sizes),), np.dtype(np.uint8))
    memory: Leaves = []
    place = 0
    blocks: Leaves = []
    for (shape, dtype), size in zip(kinds, sizes, strict=True):
        if size < _OWN_MESSAGE_BYTES:
            blocks.append(packed[place : place + size].view(dtype).reshape(shape))
            place += _rounded(size, _ALIGNMENT)
        else:
            blocks.append(_core._host_empty(shape, np.dtype(dtype)))
            memory.append(bytes_of(blocks[-1]))
    return [*memory, packed] if packed.size else memory, blocks


def _packed(blocks: Sequence[NDArray[Any]]) -> Leaves:
    """The messages to one process."""
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


def payload_blocks(across: ProcessGroups, me: int, template: Leaves, max_payload: int) -> PayloadBlocks | None:
    """The places of blocks like `template` in payloads; None, in all processes, where they do not fit."""
    owned: dict[int, list[tuple[int, int]]] = {process: [] for process in across.processes}
    for number, group in enumerate(across.groups):
        for member, owner in enumerate(group.owners):
            owned[owner].append((number, member))
    size = sum(_rounded(leaf.nbytes, _PAYLOAD_ALIGNMENT) for leaf in template) * max(map(len, owned.values()))
    fits = across.is_even and all(leaf.nbytes for leaf in template) and size <= max_payload
    return PayloadBlocks(across, me, template, owned) if fits else None


class PayloadBlocks:
    """The places of small blocks in the payloads of a meeting, so that a collective takes one message each way."""

    def __init__(
        self, across: ProcessGroups, me: int, template: Leaves, owned: Mapping[int, list[tuple[int, int]]]
    ) -> None:
        """Members bring arrays like `template`; `owned` has the groups and members of the blocks in each payload."""
        sizes = [_rounded(leaf.nbytes, _PAYLOAD_ALIGNMENT) for leaf in template]
        *offsets, itemsize = itertools.accumulate(sizes, initial=0)
        kinds = [(leaf.dtype, leaf.shape) for leaf in template]
        self._names = [str(i) for i in range(len(template))]
        self._record = np.dtype({"names": self._names, "formats": kinds, "offsets": offsets, "itemsize": itemsize})
        self._count = len(across.groups)
        self._slots = [across.groups[number].here[member] for number, member in owned[me]]
        self._theirs = [(place, owned[process]) for place, process in enumerate(across.processes) if process != me]

    def packed(self, blocks: Mapping[int, Leaves]) -> bytes:
        """The payload of this process, from the blocks of each slot."""
        records = np.zeros(len(self._slots), self._record)
        for i, name in enumerate(self._names):
            for place, slot in enumerate(self._slots):
                records[name][place] = blocks[slot][i]
        return records.tobytes()

    def unpacked(self, payloads: Sequence[bytes]) -> list[dict[Key, Leaves]]:
        """For each group the read-only blocks of the other processes."""
        found: list[dict[Key, Leaves]] = [{} for _ in range(self._count)]
        for place, members in self._theirs:
            records = np.frombuffer(payloads[place], self._record)
            fields = [records[name] for name in self._names]
            for i, (number, member) in enumerate(members):
                found[number][member, -1] = [field[i, ...] for field in fields]
        return found
