# SPDX-License-Identifier: Apache-2.0
"""Copies to the host that go on while the caller does something else."""

from __future__ import annotations

import numbers
import time
from typing import Any

import numpy as np

from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices._core import Array, _copy_to_host, _HostLeaf
from artifex_devices.errors import ResourceExhaustedError

__all__ = ["HostCopy", "copy_to_host_async"]


class _PartlyElsewhere:
    """An Array of which parts lie in other processes only: those of this one are here, the whole cannot be read."""

    def __init__(self, error: RuntimeError) -> None:
        self._error = error

    def value(self) -> Any:
        raise self._error.with_traceback(None)


@public("artifex_devices")
class HostCopy:
    """A tree on its way to the host: a future whose result is what `device_get` would give.

    Made by `copy_to_host_async`. Its Arrays may be deleted meanwhile.
    """

    def __init__(self, leaves: list[Any], treedef: Any) -> None:
        """Takes over what is under way; use copy_to_host_async."""
        self._leaves = leaves
        self._treedef = treedef
        self._result: Any = None
        self._is_finished = False

    def done(self) -> bool:
        """Whether result() would return, or raise, at once."""
        return all(leaf.done() for leaf in self._leaves if isinstance(leaf, _HostLeaf))

    def result(self, timeout: float | None = None) -> Any:
        """Waits and returns the tree, with a read-only ndarray for each Array. Ctrl-C ends the wait.

        Args:
            timeout: Seconds; None waits as long as it takes.

        Raises:
            TimeoutError: It was not done in time; it goes on, and can be asked again.
            RuntimeError: A transfer that makes an Array failed, or parts of an Array lie in other processes only.
        """
        if not self._is_finished:
            self._wait("result", timeout)
            started = (_HostLeaf, _PartlyElsewhere)
            values = [leaf.value() if isinstance(leaf, started) else leaf for leaf in self._leaves]
            self._result = values[0] if self._treedef is None else self._treedef.unflatten(values)
            self._is_finished = True
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits and returns what result() would raise, None if nothing.

        Args:
            timeout: Seconds; None waits as long as it takes.

        Raises:
            TimeoutError: It was not done in time.
        """
        self._wait("exception", timeout)
        try:
            self.result()
        except Exception as error:
            return error
        return None

    def _wait(self, operation: str, timeout: Any) -> None:
        is_number = isinstance(timeout, numbers.Real) and not isinstance(timeout, bool)
        if timeout is not None and (not is_number or timeout != timeout):
            raise TypeError(f"{operation}: timeout is {shown(timeout)}; expected seconds or None; leave it out to wait")
        end = None if timeout is None else time.monotonic() + timeout
        for leaf in self._leaves:
            if not isinstance(leaf, _HostLeaf):
                continue
            if not leaf.wait(None if end is None else max(end - time.monotonic(), 0.0)):
                raise TimeoutError(
                    f"{operation}: the copy to the host is not done after {timeout} s; expected it to end in time; "
                    "ask again, or give more time"
                )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The result, where it is one array."""
        if self._treedef is not None:
            raise TypeError(
                f"__array__: this HostCopy is a tree of {len(self._leaves)} leaves; expected one Array; take .result()"
            )
        value: np.ndarray[Any, Any] = np.asarray(self.result())
        changes = dtype is not None and np.dtype(dtype) != value.dtype
        if changes and copy is False:
            raise ValueError(
                f"__array__: copy=False cannot change the dtype; expected {value.dtype}, got {np.dtype(dtype)}; "
                "leave copy out"
            )
        if changes:
            return value.astype(dtype)
        return value.copy() if copy else value

    def _parts(self) -> list[Any]:
        """The leaves, with a HostCopy for each Array."""
        started = (_HostLeaf, _PartlyElsewhere)
        return [HostCopy([leaf], None) if isinstance(leaf, started) else leaf for leaf in self._leaves]

    def __repr__(self) -> str:
        """Whether it is done, and of how many leaves."""
        leaves = f"{len(self._leaves)} {'leaf' if len(self._leaves) == 1 else 'leaves'}"
        return f"<HostCopy of {leaves}, {'done' if self.done() else 'under way'}>"


def copy_to_host_async(x: Any) -> HostCopy:
    """Begins to bring a tree of Arrays to the host, and returns at once.

    Memory is taken in the call; the library's workers gather what lies in several buffers. The values are kept with the
    Arrays, so that `np.asarray` or `device_get` find them.

    Args:
        x: A tree; leaves that are no Arrays stay as they are.

    Of an Array that spans several processes the parts of this one are read from `x.addressable_shards`, as always.
    Its whole value cannot be read unless every part is here: `result()` then raises, as `np.asarray` does.

    Returns:
        A HostCopy: result(timeout=None), done(), exception(). `np.asarray` takes that of one Array; that of a tree can
        be used as the tree, with a HostCopy at each Array: `np.asarray(copy["w"])`, `tree_map(np.asarray, copy)`.

    Raises:
        RuntimeError: An Array was deleted.
        ResourceExhaustedError: No memory to gather into.

    Example:
        >>> import numpy as np, artifex_devices as ad
        >>> coming = ad.copy_to_host_async({"a": ad.device_put(np.arange(3))})
        >>> coming.result()
        {'a': array([0, 1, 2])}
    """
    if isinstance(x, Array):
        return HostCopy([_started(x)], None)
    from artifex_devices import tree_util

    leaves, treedef = tree_util.tree_flatten(x)
    from artifex_devices._placement.async_copy_tree import TreeHostCopy

    return TreeHostCopy([_started(leaf) if isinstance(leaf, Array) else leaf for leaf in leaves], treedef)


def _started(array: Array) -> _HostLeaf | _PartlyElsewhere:
    try:
        return _copy_to_host(array)
    except RuntimeError as error:
        if array.is_fully_addressable or array.is_deleted() or isinstance(error, ResourceExhaustedError):
            raise
        return _PartlyElsewhere(error)
