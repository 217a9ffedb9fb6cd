# SPDX-License-Identifier: Apache-2.0
"""Copies of Arrays to the host in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from artifex_devices._base.checks import check_number, failure, wrong_type
from artifex_devices._base.leaf_types import PyTree, Tree
from artifex_devices._base.public_path import public
from artifex_devices._base.raised_exceptions import copy_of
from artifex_devices._core import Array
from artifex_devices._core.internal import HostLeaf, copy_to_host
from artifex_devices._tree.register import register_pytree_node
from artifex_devices._tree.treedef import PyTreeDef
from artifex_devices.errors import ResourceExhaustedError
from artifex_devices.tree_util import tree_flatten


class _PartlyRemote:
    """An Array with parts that only other processes hold; the global array cannot be read."""

    def __init__(self, error: RuntimeError) -> None:
        self._error = error

    def value(self) -> Any:
        raise copy_of(self._error).with_traceback(None)


_STARTED = (HostLeaf, _PartlyRemote)


@public("artifex_devices")
class HostCopy:
    """A future with the result of `device_get`, returned by `copy_to_host_async`.

    The Arrays may be deleted before it is done.
    """

    def __init__(self, leaves: list[Any], treedef: PyTreeDef | None) -> None:
        self._leaves = leaves
        self._treedef = treedef
        self._result: Any = None
        self._is_finished = False

    def done(self) -> bool:
        """Returns whether result() would return, or raise, at once."""
        return all(leaf.done() for leaf in self._leaves if isinstance(leaf, HostLeaf))

    def result(self, timeout: float | None = None) -> PyTree:
        """Waits and returns the tree, with a read-only ndarray for each Array. Ctrl-C ends the wait.

        Args:
            timeout: Seconds, or None for no limit.

        Raises:
            TimeoutError: The copy was not done in time; it continues, and result() may be called again.
            RuntimeError: A transfer to an Array failed, or an Array has parts in other processes only.
        """
        if not self._is_finished:
            self._wait("result", timeout)
            values = [leaf.value() if isinstance(leaf, _STARTED) else leaf for leaf in self._leaves]
            self._result = values[0] if self._treedef is None else self._treedef.unflatten(values)
            self._is_finished = True
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits and returns the exception that result() would raise, or None.

        Args:
            timeout: Seconds, or None for no limit.

        Raises:
            TimeoutError: The copy was not done in time.
        """
        self._wait("exception", timeout)
        try:
            self.result()
        except Exception as error:
            return error
        return None

    def _wait(self, operation: str, timeout: float | None) -> None:
        if timeout is not None:
            expected, fix = "seconds or None", "leave it out to wait"
            check_number(operation, "timeout", timeout, fix, expected=expected)
            if timeout != timeout:
                raise wrong_type(operation, "timeout", timeout, expected, fix)
        end = None if timeout is None else time.monotonic() + timeout
        for leaf in self._leaves:
            if not isinstance(leaf, HostLeaf):
                continue
            if not leaf.wait(None if end is None else max(end - time.monotonic(), 0.0)):
                raise failure(
                    TimeoutError,
                    operation,
                    f"the copy to the host is not done after {timeout} s",
                    expected="it to end in time",
                    fix="call it again, or give more time",
                )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Returns the result of a copy of one Array."""
        if self._treedef is not None:
            raise failure(
                TypeError,
                "__array__",
                f"this HostCopy is a tree of {len(self._leaves)} leaves",
                expected="one Array",
                fix="take .result()",
            )
        value: np.ndarray[Any, Any] = np.asarray(self.result())
        if copy is False and dtype is not None and np.dtype(dtype) != value.dtype:
            raise failure(
                ValueError,
                "__array__",
                "copy=False cannot change the dtype",
                expected=value.dtype,
                got=np.dtype(dtype),
                fix="leave copy out",
            )
        return np.asarray(value, dtype, copy=copy)

    def __repr__(self) -> str:
        leaves = f"{len(self._leaves)} {'leaf' if len(self._leaves) == 1 else 'leaves'}"
        return f"<HostCopy of {leaves}, {'done' if self.done() else 'under way'}>"


class TreeHostCopy(HostCopy):
    """The HostCopy of a tree; `copy[key]`, iteration and the functions of `tree_util` find a HostCopy at each Array."""

    def tree(self) -> Any:
        """Returns the tree with a HostCopy for each Array; other leaves are unchanged."""
        parts = [HostCopy([leaf], None) if isinstance(leaf, _STARTED) else leaf for leaf in self._leaves]
        assert self._treedef is not None
        return self._treedef.unflatten(parts)

    def __getitem__(self, key: object) -> Any:
        return self.tree()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tree())


register_pytree_node(TreeHostCopy, lambda copy: ((copy.tree(),), None), lambda _, children: children[0])


def copy_to_host_async(x: Tree) -> HostCopy:
    """Starts to copy a tree of Arrays to the host, and returns at once.

    Memory is allocated in the call; the library's workers gather an Array of several buffers. The values are cached
    with the Arrays for `np.asarray` and `device_get`.

    Args:
        x: A tree; leaves that are not Arrays are unchanged.

    The value of an Array that spans several processes can be read only if every part is in this process: otherwise
    `result()` raises, as `np.asarray` does. `x.addressable_shards` has the parts of this process.

    Returns:
        A HostCopy: result(timeout=None), done(), exception(). `np.asarray` takes that of one Array; that of a tree can
        be used as the tree, with a HostCopy at each Array: `np.asarray(copy["w"])`, `tree_map(np.asarray, copy)`.

    Raises:
        RuntimeError: An Array was deleted.
        ResourceExhaustedError: There is no memory to gather into.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> coming = ad.copy_to_host_async({"a": ad.device_put(np.arange(3))})
        >>> coming.result()
        {'a': array([0, 1, 2])}
    """
    if isinstance(x, Array):
        return HostCopy([_started(x)], None)
    leaves, treedef = tree_flatten(x)
    return TreeHostCopy([_started(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves], treedef)


def _started(array: Array) -> HostLeaf | _PartlyRemote:
    try:
        return copy_to_host(array)
    except RuntimeError as error:
        if array.is_fully_addressable or array.is_deleted() or isinstance(error, ResourceExhaustedError):
            raise
        return _PartlyRemote(error)
