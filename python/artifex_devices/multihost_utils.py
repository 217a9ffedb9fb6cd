# SPDX-License-Identifier: Apache-2.0
"""Exchange of values between processes, as in `jax.experimental.multihost_utils`.

Every process calls the same functions, in the same order. A single process does not need `distributed.initialize()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import tree_util
from artifex_devices._base.checks import check_str, check_type, failure
from artifex_devices._base.digest import digest_of
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core import Client, Mesh, NamedSharding, PartitionSpec, internal
from artifex_devices._placement.device_put import device_put
from artifex_devices._placement.host_local import (
    global_array_to_host_local_array,
    host_local_array_to_global_array,
    spans_processes,
)
from artifex_devices._runtime.devices import devices
from artifex_devices._tree.treedef import PyTreeDef
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.tags import Tag
from artifex_devices.distributed.transport import Exchange

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "sync_global_devices",
]
add_public_lookup(__name__)

_TEXT_BYTES = 2048  # of each text in errors about values that differ


def process_allgather(in_tree: Tree, tiled: bool = False) -> PyTree:
    """Gathers the values of all processes.

    Args:
        in_tree: Tree of ndarrays, numbers or Arrays; shapes and dtypes are equal in all processes.
        tiled: Whether the values are joined along dimension 0 instead of stacked along a new one. Numbers are always
            stacked.

    Returns:
        The tree with ndarrays: of shape (process_count(), ...), or, tiled, of process_count() times the length. An
        Array that spans devices of other processes becomes its full value.

    Raises:
        TypeError: `tiled` is not a bool; a leaf is not an array of numbers.
        ValueError: Trees, shapes or dtypes differ between processes, or an Array that spans processes is to be stacked.
        CollectiveError: A process does not call it.

    Example:
        >>> import numpy as np
        >>> from artifex_devices import multihost_utils
        >>> multihost_utils.process_allgather(np.arange(3)).shape
        (1, 3)
    """
    check_type("process_allgather", "tiled", tiled, (bool, np.bool_), "True or False", "leave it out to stack")
    leaves, structure = tree_util.tree_flatten(in_tree)
    spanning = [spans_processes(leaf) for leaf in leaves]
    if any(spanning) and not tiled:
        raise failure(
            ValueError,
            "process_allgather",
            "an Array that spans devices of other processes is to be stacked",
            expected="tiled=True",
            got="tiled=False",
            fix="process_allgather(x, tiled=True) returns its full value",
        )
    client = internal.current_client()
    local = [number for number, spans in enumerate(spanning) if not spans]
    own = _host_leaves(client, "process_allgather", structure, {number: leaves[number] for number in local})
    gathered = iter(_gather(client, "process_allgather", structure, own))
    done: list[Any] = []
    for leaf, spans in zip(leaves, spanning, strict=True):
        if spans:
            everywhere = Mesh(np.array(devices()), ("devices",))
            done.append(np.asarray(device_put(leaf, NamedSharding(everywhere, PartitionSpec()))))
            continue
        parts = next(gathered)
        if len(parts) == 1:  # a number of a single process stays a number, as in JAX
            done.append(parts[0] if tiled else parts[0][np.newaxis])
        elif tiled and parts[0].ndim > 0:
            done.append(np.concatenate(parts))
        else:
            done.append(np.stack(parts))
    return tree_util.tree_unflatten(structure, done)


def broadcast_one_to_all(in_tree: Tree, is_source: bool | None = None) -> PyTree:
    """Sends the values of one process to all processes.

    Args:
        in_tree: Tree of ndarrays, numbers or Arrays of this process; shapes and dtypes are equal in all processes.
        is_source: Whether this process is the source; by default process 0 is.

    Returns:
        The tree with ndarrays of the source.

    Raises:
        TypeError: `is_source` is not a bool; a leaf is not an array of numbers.
        ValueError: Trees, shapes or dtypes differ between processes, or not exactly one of them is the source.
        CollectiveError: A process does not call it.

    Example:
        >>> from artifex_devices import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"seed": 7})
        {'seed': array(7)}
    """
    if is_source is not None:
        bools, expected = (bool, np.bool_), "True, False or None"
        check_type("broadcast_one_to_all", "is_source", is_source, bools, expected, "leave it out for process 0")
    client = internal.current_client()
    leaves, structure = tree_util.tree_flatten(in_tree)
    own = _host_leaves(client, "broadcast_one_to_all", structure, dict(enumerate(leaves)))
    if client.process_count() == 1:
        return tree_util.tree_unflatten(structure, own)
    me = client.process_index()
    claims = (me == 0) if is_source is None else bool(is_source)
    with transports.of_client(client, "broadcast_one_to_all").exclusive("broadcast_one_to_all"):
        claimed = _meet(client, "broadcast_one_to_all", structure, own, bytes([claims]))
        sources = [number for number, claim in enumerate(claimed) if claim == b"\x01"]
        if len(sources) != 1:
            raise failure(
                ValueError,
                "broadcast_one_to_all",
                f"{len(sources)} processes are the source",
                expected="one",
                got=f"processes {sources}",
                fix="give is_source=True in one of them",
            )
        found = _transfer(client, "broadcast_one_to_all", own, sources[0])
    return tree_util.tree_unflatten(structure, found[sources[0]])


def sync_global_devices(name: str) -> None:
    """Waits until every process has called it.

    Args:
        name: Name of this position in the program; equal in all processes.

    Raises:
        TypeError: `name` is not a str.
        AssertionError: The names differ; all of them are in the text.
        CollectiveError: A process does not call it.

    Example:
        >>> from artifex_devices import multihost_utils
        >>> multihost_utils.sync_global_devices("loaded")
    """
    check_str("sync_global_devices", "name", name, 'write sync_global_devices("loaded")')
    client = internal.current_client()
    if client.process_count() == 1:
        return
    _, texts = _compare(client, "sync_global_devices", str(name))
    if texts:
        raise AssertionError(
            f"sync_global_devices name mismatch ({safe_repr(str(name))}): expected one name in all processes, got "
            f"{texts}"
        )


def assert_equal(in_tree: Tree, fail_message: str = "") -> None:
    """Raises AssertionError, in every process, unless all have the same tree of values.

    Args:
        in_tree: Tree of ndarrays, numbers or Arrays. NaN equals nothing. An Array that spans processes is compared by
            its first part in this process.
        fail_message: Beginning of the error's text.

    Raises:
        AssertionError: The values, trees, shapes or dtypes differ; the text shows them for all processes.
        TypeError: A leaf is not an array of numbers.
        CollectiveError: A process does not call it.

    Example:
        >>> from artifex_devices import multihost_utils
        >>> multihost_utils.assert_equal({"step": 3}, "the step differs")
    """
    leaves, structure = tree_util.tree_flatten(in_tree)
    first = {number: leaf.addressable_data(0) if spans_processes(leaf) else leaf for number, leaf in enumerate(leaves)}
    client = internal.current_client()
    own = _host_leaves(client, "assert_equal", structure, first)
    try:
        gathered = _gather(client, "assert_equal", structure, own)
    except ValueError as error:
        raise AssertionError(f"{fail_message}. {error}") from None
    if not all(np.all(np.equal(part, parts[0])) for parts in gathered for part in parts):
        everything = [np.stack(parts) for parts in gathered]
        by_process = tree_util.tree_unflatten(structure, everything)
        raise AssertionError(f"{fail_message}. Expected: {by_process}; got: {in_tree}.")


def _host_leaves(client: Client, operation: str, structure: PyTreeDef, leaves: Mapping[int, Any]) -> list[NDArray[Any]]:
    """Returns contiguous ndarrays of the leaves with these numbers in the tree.

    TypeError for leaves that are not arrays of numbers, RuntimeError for Arrays that cannot be read here. The other
    processes get a CollectiveError with its text.
    """
    try:
        return _read_leaves(operation, structure, leaves)
    except Exception as error:
        if client.process_count() > 1:
            everyone = range(client.process_count())
            transports.of_client(client, operation).refuse(operation, f"{type(error).__name__}: {error}", everyone)
        raise


def _read_leaves(operation: str, structure: PyTreeDef, leaves: Mapping[int, Any]) -> list[NDArray[Any]]:
    arrays, wrong = [], []
    for number, leaf in leaves.items():
        array = np.asarray(leaf, order="C")
        try:
            internal.host_empty((0,), array.dtype)
        except TypeError:
            path = tree_util.keystr(structure.paths()[number])
            wrong.append(f"leaf {path or '(the root)'} of dtype {array.dtype}, {safe_repr(leaf)}")
        arrays.append(array)
    if wrong:
        raise failure(
            TypeError,
            operation,
            f"not an array of numbers: {'; '.join(wrong)}",
            expected="leaves of a bool, integer, float or complex dtype",
            fix=(
                "encode other values, in all processes with the same length: "
                "np.frombuffer(json.dumps(value).encode().ljust(4096), np.uint8)"
            ),
        )
    return arrays


def _gather(client: Client, operation: str, structure: PyTreeDef, own: list[NDArray[Any]]) -> list[list[NDArray[Any]]]:
    """Gathers, for each leaf, its value in each process."""
    count = client.process_count()
    if count == 1:
        return [[leaf] for leaf in own]
    with transports.of_client(client, operation).exclusive(operation):
        _meet(client, operation, structure, own)
        found = _transfer(client, operation, own)
    return [[found[number][i] for number in range(count)] for i in range(len(own))]


def _meet(
    client: Client, operation: str, structure: PyTreeDef, leaves: Sequence[NDArray[Any]], payload: bytes = b""
) -> list[bytes]:
    """Meets all processes and returns their payloads; ValueError where trees, shapes or dtypes differ."""
    kinds = ", ".join(f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves)
    payloads, texts = _compare(client, operation, f"{kinds or 'no leaves'} in {structure}", payload)
    if texts:
        raise failure(
            ValueError,
            operation,
            "the values of the processes differ",
            expected="equal trees, shapes and dtypes",
            got=texts,
            fix="give every process the same kind of value",
        )
    return payloads


def _compare(client: Client, operation: str, text: str, payload: bytes = b"") -> tuple[list[bytes], str]:
    """Meets all processes and returns their payloads, and the texts of all of them where these differ."""
    count = client.process_count()
    mine = digest_of(text)
    transport = transports.of_client(client, operation)
    with transport.exclusive(operation):
        received = transport.agree(operation, digest_of(operation), range(count), mine + payload)
        payloads = [each[32:] for each in received]
        if all(each[:32] == mine for each in received):
            return payloads, ""
        padded = np.frombuffer(text.encode()[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), np.uint8)
        sent = {n: each.tobytes().rstrip(b"\0") for n, (each,) in _transfer(client, operation, [padded]).items()}
    return payloads, "; ".join(f"process {n}: {each.decode(errors='replace')}" for n, each in sent.items())


def _transfer(
    client: Client, operation: str, own: list[NDArray[Any]], source: int | None = None
) -> dict[int, list[NDArray[Any]]]:
    """Sends contiguous arrays from each process, or only from `source`, to all others. Returns each sender's arrays."""
    transport = transports.of_client(client, operation)
    count, me = client.process_count(), client.process_index()
    senders = range(count) if source is None else (source,)
    found = {number: own if number == me else [np.empty_like(leaf) for leaf in own] for number in senders}
    moved = [(Exchange.receive, number, leaf) for number in senders if number != me for leaf in found[number]]
    if me in found:
        moved += [(Exchange.send, number, leaf) for number in range(count) if number != me for leaf in own]
    with transport.exchange(operation) as messages:
        for begin, number, leaf in moved:
            if leaf.nbytes:
                begin(messages, leaf.reshape(-1).view(np.uint8), number, Tag.HOST_VALUES)
        messages.wait_all()
    return found
