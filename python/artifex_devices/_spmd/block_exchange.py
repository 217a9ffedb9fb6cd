# SPDX-License-Identifier: Apache-2.0
"""Blocks from process to process: small ones together, big ones each in a message of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core

if TYPE_CHECKING:
    from artifex_devices.distributed.transport import Request, Transport

__all__ = ["bytes_of", "exchange", "finish_all"]

_TAG = 2  # of blocks; messages of one pair come in order, so that one number does
_OWN_MESSAGE_BYTES = 1 << 16  # smaller blocks are packed
_ALIGNMENT = 64

Kind = tuple[tuple[int, ...], Any]  # shape and dtype


def bytes_of(block: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a block in C order, without a copy where it lies so."""
    flat: NDArray[np.uint8] = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    return flat


def exchange(
    carrier: Transport, text: str, sends: Mapping[int, Sequence[NDArray[Any]]], receives: Mapping[int, Sequence[Kind]]
) -> dict[int, list[NDArray[Any]]]:
    """Sends blocks to other processes and receives theirs.

    Args:
        carrier: Takes the bytes.
        text: The operation, for messages.
        sends: Blocks for each process.
        receives: Shape and dtype of what each process sends, in its order.

    Returns:
        The blocks of each process, to be read only.

    Raises:
        CollectiveError: As the transport's waits.
    """
    requests: list[Request] = []
    arrived: dict[int, list[NDArray[Any]]] = {}
    kept: list[Any] = []  # what messages are read from
    try:
        for peer, kinds in receives.items():
            arrived[peer] = _begin_receiving(carrier, peer, kinds, requests)
        for peer, blocks in sends.items():
            kept += _begin_sending(carrier, peer, blocks, requests)
        finish_all(carrier, requests, text)
        for block in itertools.chain.from_iterable(arrived.values()):
            block.flags.writeable = False
    except BaseException:
        carrier.cancel(requests)
        raise
    return arrived


def finish_all(carrier: Transport, requests: list[Request], text: str) -> None:
    """Waits for all requests; those that are done are taken away."""
    while requests:
        for place in sorted(carrier.wait_some(requests, text), reverse=True):
            requests.pop(place)


def _begin_receiving(
    carrier: Transport, peer: int, kinds: Sequence[Kind], requests: list[Request]
) -> list[NDArray[Any]]:
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in kinds]
    packed = _core._host_empty((_packed_bytes(sizes),), np.dtype(np.uint8))
    place = 0
    blocks: list[NDArray[Any]] = []
    for (shape, dtype), size in zip(kinds, sizes, strict=True):
        if size < _OWN_MESSAGE_BYTES:
            blocks.append(packed[place : place + size].view(dtype).reshape(shape))
            place += _rounded(size)
        else:
            block = _core._host_empty(shape, np.dtype(dtype))
            requests.append(carrier.irecv(bytes_of(block), peer, _TAG))
            blocks.append(block)
    if packed.size:
        requests.append(carrier.irecv(packed, peer, _TAG))
    return blocks


def _begin_sending(
    carrier: Transport, peer: int, blocks: Sequence[NDArray[Any]], requests: list[Request]
) -> list[NDArray[np.uint8]]:
    packed = np.empty(_packed_bytes([block.nbytes for block in blocks]), np.uint8)
    kept = [packed]
    place = 0
    for block in blocks:
        data = bytes_of(block)
        if data.size < _OWN_MESSAGE_BYTES:
            packed[place : place + data.size] = data
            place += _rounded(data.size)
        else:
            kept.append(data)
            requests.append(carrier.isend(data, peer, _TAG))
    if packed.size:
        requests.append(carrier.isend(packed, peer, _TAG))
    return kept


def _rounded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _packed_bytes(sizes: Sequence[int]) -> int:
    return sum(_rounded(size) for size in sizes if size < _OWN_MESSAGE_BYTES)
