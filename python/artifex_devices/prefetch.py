# SPDX-License-Identifier: Apache-2.0
"""Batches that a thread reads and places before the consumer needs them."""

from __future__ import annotations

import atexit
import contextvars
import dataclasses
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar, cast, overload

import numpy as np

from artifex_devices._base.checks import check_int, wrong_type
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._base.leaf_types import Container, K, Leaf, LeafT, NamedTupleT, PyTree, T
from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices._base.refused_arguments import hides_unknown, unknown_argument
from artifex_devices._core import Array, internal
from artifex_devices._placement.target import TargetTree, resolve_target
from artifex_devices.batch_placement import exchanges_sizes, place_batch

__all__ = ["PrefetchStats", "Prefetcher", "prefetch_to_device"]
add_public_lookup(__name__)

_POLL_S = 0.25  # longest delay of a thread whose wake-up was lost because Ctrl-C interrupted the other thread
_EXIT_WAIT_S = 2.0
Batch = TypeVar("Batch")


@dataclasses.dataclass(frozen=True)
class PrefetchStats:
    """Counters of a Prefetcher. Source: measured by `time.perf_counter`.

    Attributes:
        batches: Number of batches returned.
        waited_s: Seconds that consumers waited in `next`.
        read_s: Seconds that the worker spent in `next` of the source.
        place_s: Seconds that the worker spent in `device_put`.
        idle_s: Seconds that the worker waited because the buffer was full.
    """

    batches: int = 0
    waited_s: float = 0.0
    read_s: float = 0.0
    place_s: float = 0.0
    idle_s: float = 0.0

    @property
    def worked_s(self) -> float:
        """Seconds that the worker read and placed batches."""
        return self.read_s + self.place_s

    @property
    def overlap_ratio(self) -> float:
        """Fraction of `worked_s` without a waiting consumer: 1 - waited_s / worked_s, within 0.0 and 1.0."""
        if self.worked_s <= 0.0:
            return 0.0
        return min(1.0, max(0.0, 1.0 - self.waited_s / self.worked_s))


_END = object()  # follows the last batch in the queue and stays there
_NOTHING = object()  # what _take returns after a timeout


def _take(items: queue.SimpleQueue[Any], seconds: float) -> Any:
    try:
        return items.get(seconds > 0.0, seconds)
    except queue.Empty:
        return _NOTHING


class _Unplaced:
    """A batch that the consumer places: processes exchange sizes for it, which one thread of each must do in order."""

    def __init__(self, place: Callable[[], Any]) -> None:
        self.place = place


class _Work:
    """State of worker and consumers, without a reference to the Prefetcher: deleting that ends the worker.

    `ready` has the placed batches; `wake` wakes a worker that waits for space in it. Waits have time limits, because a
    consumer that is interrupted (Ctrl-C) between two steps may omit a wake-up.
    """

    def __init__(self, source: Iterator[Any], place: Callable[[Any], Any], buffer_size: int) -> None:
        self.source = source
        self.place = place
        self.buffer_size = buffer_size
        self.ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.waits_for_room = False
        self.stopped = False
        self.claim = threading.Lock()  # acquired once, by the thread that runs, or by close() before that
        self.thread: threading.Thread | None = None
        self.finished = threading.Event()
        self.error: BaseException | None = None
        self.close_error: BaseException | None = None
        self.close_awaited = False
        self.read_s = 0.0
        self.place_s = 0.0
        self.idle_s = 0.0

    def stop(self) -> None:
        """Stops the worker without waiting for it, because finalizers call it."""
        self.stopped = True
        self.wake.put(None)

    def drop_batches(self) -> None:
        """Drops the batches that were not returned, and wakes waiting consumers."""
        self.error = None
        while (batch := _take(self.ready, 0.0)) is not _NOTHING:
            del batch
        self.ready.put(_END)

    def run(self) -> None:
        """Runs the worker."""
        thread = threading.current_thread()
        _running[thread] = self
        # A start that was interrupted is repeated, while the first thread may run too.
        if not self.claim.acquire(blocking=False):
            _running.pop(thread, None)
            return
        self.thread = thread
        try:
            self._read_all()
        except BaseException as error:
            self.error = error
        try:
            self._end()
        finally:
            _running.pop(thread, None)

    def _end(self) -> None:
        """Ends the queue and closes the source."""
        self.ready.put(_END)
        try:
            self._close_source()
        finally:
            if self.stopped:
                self.drop_batches()
            self.finished.set()

    def wait(self, seconds: float) -> bool:
        """Waits for the end of the worker; returns whether it has ended."""
        end_s = time.monotonic() + seconds
        while not self.finished.wait(max(0.0, min(end_s - time.monotonic(), _POLL_S))):
            if time.monotonic() >= end_s:
                return False
        if self.thread is not None:
            self.thread.join(max(0.0, end_s - time.monotonic()))  # it is about to end
        return True

    def _read_all(self) -> None:
        clock = time.perf_counter
        while True:
            self._wait_for_room()
            if self.stopped:
                return
            read_from = clock()
            try:
                batch = next(self.source)
            except StopIteration:
                self.read_s += clock() - read_from
                return
            place_from = clock()
            self.read_s += place_from - read_from
            _trace("read a batch", read_from)
            placed = self.place(batch)
            self.place_s += clock() - place_from
            _trace("place a batch", place_from)
            self.ready.put(placed)
            # A waiting worker must not keep a batch alive.
            del batch, placed

    def _wait_for_room(self) -> None:
        began = time.perf_counter()
        # The flag is set before the check, and a consumer reads it after taking: no wake-up is missed.
        self.waits_for_room = True
        has_waited = False
        while not self.stopped and self.ready.qsize() >= self.buffer_size:
            _take(self.wake, _POLL_S)
            has_waited = True
        self.waits_for_room = False
        self.idle_s += time.perf_counter() - began
        if has_waited:
            _trace("wait for space", began)

    def _close_source(self) -> None:
        if not isinstance(self.source, Generator):
            return
        try:
            self.source.close()
        except BaseException as error:
            if not self.close_awaited:
                raise
            self.close_error = error


def _trace(what: str, began_s: float) -> None:
    """Adds an event that ends now to open traces. On Linux `perf_counter` is the clock of traces."""
    if internal.is_tracing():
        process = internal.current_client().process_index()
        internal.trace_event("prefetch", what, "", int(began_s * 1e9), process)


# Running workers and their state.
_running: dict[threading.Thread, _Work] = {}


def _stop_all_at_exit() -> None:
    workers = list(_running.items())
    for _, work in workers:
        work.stop()
    deadline = time.monotonic() + _EXIT_WAIT_S
    for thread, _ in workers:
        thread.join(max(0.0, deadline - time.monotonic()))


atexit.register(_stop_all_at_exit)
os.register_at_fork(after_in_child=_running.clear)


class Prefetcher(Iterator[T]):
    """An iterator over batches that a thread reads and places in advance, returned by `prefetch_to_device`.

    The thread starts at the first `next`, in the context of that caller (with its `simulate` world). It ends with the
    source, with `close()`, at the end of a `with` block, when the Prefetcher is deleted, and at interpreter exit.
    Several threads may use one Prefetcher: each batch is returned to one of them. A forked process cannot use a
    Prefetcher that its parent started.
    """

    def __init__(
        self,
        source: Iterator[Batch],
        place: Callable[[Batch], T],
        buffer_size: int,
        *,
        operation: str = "prefetch_to_device",
    ) -> None:
        self._operation = operation  # for messages
        self._work = _Work(source, place, buffer_size)
        self._started = False
        self._process: int | None = None
        self._lock = threading.Lock()  # start and counters; no finalizer takes it
        self._batches = 0
        self._waited_s = 0.0
        # At exit the module's hook stops all workers, and waits for them together.
        weakref.finalize(self, self._work.stop).atexit = False

    def __iter__(self) -> Prefetcher[T]:
        return self

    def __next__(self) -> T:
        work = self._work
        if not self._started:
            self._start()
        self._check_process()
        began = time.perf_counter()
        item = _take(work.ready, 0.0)
        if item is _NOTHING:
            item = self._wait()
            _trace("wait for a batch", began)
        if work.waits_for_room:
            work.wake.put(None)
        waited = time.perf_counter() - began
        with self._lock:
            self._waited_s += waited
            if item is not _END:
                self._batches += 1
        if isinstance(item, _Unplaced):
            item = self._placed_here(item)
        if item is not _END:
            return cast(T, item)
        work.ready.put(_END)  # the other consumers end too
        with self._lock:
            error, work.error = work.error, None
        if error is None:
            raise StopIteration
        try:
            raise error
        finally:
            del error  # it refers to this frame

    def _start(self) -> None:
        with self._lock:
            if self._started or self._work.stopped:
                return
            context = contextvars.copy_context()
            self._process = os.getpid()
            work = self._work  # the thread has no reference to the Prefetcher
            DaemonThread("artifex_devices-prefetch", context.run, work.run).start()
            self._started = True

    def _wait(self) -> Any:
        work = self._work
        if work.thread is threading.current_thread():
            raise RuntimeError(
                f"{self._operation}: the source reads from its own Prefetcher, which would wait forever; expected a "
                "source that does not use it; read from the inner iterator"
            )
        while True:
            item = _take(work.ready, _POLL_S)
            if item is not _NOTHING:
                return item
            # A consumer that is interrupted between taking and putting back loses the end mark.
            if (work.finished.is_set() or not self._started) and work.ready.empty():
                return _END

    def _placed_here(self, item: _Unplaced) -> Any:
        """Places a batch in this thread; an error ends the iteration, as one of the worker does."""
        try:
            return item.place()
        except BaseException:
            self._work.stop()
            self._work.drop_batches()
            raise

    def _check_process(self) -> None:
        if self._process is not None and self._process != os.getpid():
            raise RuntimeError(
                f"{self._operation}: the worker that reads in advance runs in process {self._process}, and this is "
                f"process {os.getpid()}, forked from it; expected the process that started it; create a new iterator"
            )

    def close(self, timeout_s: float = 5.0) -> bool:
        """Ends the worker, closes a generator source and drops the batches that were not returned.

        It may be called again, and raises the exception of the source's own `close`. Afterwards `next` raises
        StopIteration, also in threads that wait in it.

        Args:
            timeout_s: Seconds to wait for the worker. The thread of a source that hangs in `next` ends when that
                returns.

        Returns:
            Whether the worker has ended.

        Raises:
            RuntimeError: The process was forked after the worker was started.

        Example:
            >>> import numpy as np
            >>> from artifex_devices.prefetch import prefetch_to_device
            >>> batches = prefetch_to_device(np.ones((4, 2)) for _ in range(100))
            >>> next(batches).shape
            (4, 2)
            >>> batches.close()
            True
            >>> list(batches)
            []
        """
        self._check_process()
        work = self._work
        work.close_awaited = True
        work.stop()
        work.drop_batches()
        if work.claim.acquire(blocking=False):
            work._close_source()  # no worker has run or will run
            work.finished.set()
        elif work.thread is threading.current_thread() or not work.wait(timeout_s):
            return False
        work.drop_batches()
        error, work.close_error = work.close_error, None
        if error is not None:
            raise error
        return True

    def stats(self) -> PrefetchStats:
        """Returns batches, seconds and overlap so far.

        Example:
            >>> import numpy as np
            >>> from artifex_devices.prefetch import prefetch_to_device
            >>> batches = prefetch_to_device(np.ones((4, 2)) for _ in range(3))
            >>> _ = list(batches)
            >>> batches.stats().batches
            3
            >>> 0.0 <= batches.stats().overlap_ratio <= 1.0
            True
        """
        self._check_process()
        work = self._work
        with self._lock:
            return PrefetchStats(self._batches, self._waited_s, work.read_s, work.place_s, work.idle_s)

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        work = self._work
        if work.stopped:
            state = "closed"
        elif work.finished.is_set():
            state = "finished"
        else:
            state = "running" if self._started else "not started"
        return f"<Prefetcher {state}, buffer_size={work.buffer_size}, {self._batches} batches returned>"


@overload
def prefetch_to_device(
    iterator: Iterable[Leaf], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[Array]: ...
@overload
def prefetch_to_device(
    iterator: Iterable[dict[K, LeafT]], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[dict[K, Array]]: ...
@overload
def prefetch_to_device(
    iterator: Iterable[NamedTupleT], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[NamedTupleT]: ...
@overload
def prefetch_to_device(
    iterator: Iterable[tuple[LeafT, ...]], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[tuple[Array, ...]]: ...
@overload
def prefetch_to_device(
    iterator: Iterable[Container], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[PyTree]: ...
@overload
def prefetch_to_device(
    iterator: Iterable[T], device_or_sharding: TargetTree = None, buffer_size: int = 2
) -> Prefetcher[T]: ...
@hides_unknown
def prefetch_to_device(
    iterator: Iterable[Any], device_or_sharding: TargetTree = None, buffer_size: int = 2, **_unknown: Any
) -> Prefetcher[Any]:
    """Reads and places batches in advance, while the consumer works.

    Arguments are checked at once; nothing is read before the first `next`. From then on a thread reads the source and
    places each batch, at most `buffer_size` batches in advance. Order and number of batches are the same as in the
    source. An exception of the source is raised after the batches before it, as the same object, and ends the
    iteration. Batches are copied, and the source may reuse one buffer.

    Args:
        iterator: The source of batches, each a pytree of arrays.
        device_or_sharding: A target of `device_put`, or a tree of targets that is a prefix of each batch, by default
            the default device. A PartitionSpec is bound to the mesh that is set at this call. If a sharding has devices
            of several processes, each process reads its own part of the batches. If that sharding has
            `uneven="last-short"` too, the processes exchange the sizes of their parts in `next`, which places the
            batch: all of them call it together.
        buffer_size: Number of batches read in advance, at least 1.

    Returns:
        A Prefetcher: an iterator of placed batches, a context manager, with `close()` and `stats()`.

    Raises:
        TypeError: The source is not iterable, the target is of another type, or buffer_size is not an integer.
        ValueError: buffer_size is below 1.

    Example:
        >>> import numpy as np
        >>> import artifex_devices as ad
        >>> source = ({"x": np.full((4, 2), i)} for i in range(3))
        >>> from artifex_devices.prefetch import prefetch_to_device
        >>> with prefetch_to_device(source, ad.devices()[0]) as batches:
        ...     [int(np.asarray(batch["x"])[0, 0]) for batch in batches]
        [0, 1, 2]
    """
    if _unknown:
        raise unknown_argument("prefetch_to_device", _unknown)
    name = "prefetch_to_device"
    size = check_int(name, "buffer_size", buffer_size, "write 2, or use device_put in the loop", minimum=1)
    try:
        target = resolve_target(name, device_or_sharding)
    except TypeError as error:
        if type(device_or_sharding) is not int:
            raise
        way = f"prefetch_to_device(batches, buffer_size={device_or_sharding})"  # flax's second argument
        raise TypeError(f"{error}, or {way}") from None
    try:
        source = iter(iterator)
    except TypeError:
        expected, fix = "an iterator or iterable of batches", "call the function if it returns the generator"
        raise wrong_type(name, "iterator", iterator, expected, fix) from None

    def place(batch: Any) -> Any:
        if not exchanges_sizes(name, batch, target):
            return place_batch(name, batch, target)
        from artifex_devices import tree_util

        copied = tree_util.tree_map(lambda leaf: leaf if isinstance(leaf, Array) else np.array(leaf), batch)
        return _Unplaced(lambda: place_batch(name, copied, target))

    return Prefetcher(source, place, size)
