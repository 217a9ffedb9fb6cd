# SPDX-License-Identifier: Apache-2.0
"""batches: global batches of a stream, read and placed in advance, with the state to go on from any of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from artifex_devices._base.checks import check_choice, check_int, failure, wrong_type
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.public_path import public
from artifex_devices._placement.target import TargetTree
from artifex_devices.data.batch_reading import BatchPlan, BatchReader, ReadBatch
from artifex_devices.data.epochs import epochs_of
from artifex_devices.data.placing import Placement
from artifex_devices.data.reading import Replacement
from artifex_devices.data.skipping import SkipAgreement
from artifex_devices.data.state import MAX_POSITION, Progress, StateOfStream
from artifex_devices.data.statistics import BatchStats, SkippedSample
from artifex_devices.data.stream import Stream
from artifex_devices.data.workers import map_in_order
from artifex_devices.prefetch import Prefetcher

_OPERATION = "data.batches"
_MAX_WORKERS = 1024


def batches(
    stream: Stream,
    batch: int = 512,
    sharding: TargetTree = None,
    *,
    last: Literal["drop", "pad", "short"] = "drop",
    workers: int = 2,
    prefetch: int = 2,
    on_error: Literal["raise", "skip"] = "raise",
    state: Mapping[str, int | str] | None = None,
) -> Batches:
    """Returns the global batches of a stream, which threads read and place in advance.

    Batch `k` has the samples at positions `k * batch` to `(k + 1) * batch`, whatever the number of processes, devices
    and workers. Each process reads only the rows that its shards hold. Samples are trees of arrays and numbers of equal
    shapes; each leaf becomes one Array with a new first dimension. Nothing is read before the first `next`.

    Args:
        stream: The samples.
        batch: Number of samples in each global batch.
        sharding: A target of `device_put` for the global batch, or a tree of targets that is a prefix of each batch.
            None places each batch on the default device, as `device_put` does: with several processes, each then reads
            all rows and places them on its own default device.
        last: What becomes of samples at the end that do not fill a batch: "drop" leaves them out, "short" returns a
            shorter batch, for which several devices need a sharding that divides it or has `uneven="last-short"`, and
            "pad" adds rows of zeros. With "pad" every batch is a pair `(batch, mask)`: the mask is True for samples.
        workers: Number of threads that read, each another batch. Functions of `map` run in these threads.
        prefetch: Number of placed batches that wait for `next`. Up to `workers + 1` batches more are being read.
        on_error: "raise" raises SampleError for a sample that cannot be read, after all earlier batches. "skip"
            replaces the sample by the next sample of the same source in the order of the stream that can be read;
            with several processes, `next` then exchanges the numbers of skipped samples, and all processes call it
            together.
        state: A state that `Batches.state` returned, perhaps with another number of processes, another sharding or
            another batch size. None begins at the first sample.

    Returns:
        An iterator of batches and a context manager, with `state()`, `state_at(step)`, `stats()` and `close()`.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A number is out of range, the state is of another stream, or the sharding does not divide a batch
            (IndivisibleError).

    Example:
        >>> import numpy as np
        >>> from artifex_devices import data
        >>> stream = data.Stream(np.arange(10), seed=7)
        >>> with data.batches(stream, batch=4) as batches:
        ...     print(len(batches), next(batches), batches.state()["position"])
        2 [0 1 2 3] 4
    """
    if not isinstance(stream, Stream):
        raise wrong_type(_OPERATION, "stream", stream, "a Stream", "write data.Stream(source)")
    size = check_int(_OPERATION, "batch", batch, "write batch=512", minimum=1, maximum=MAX_POSITION)
    threads = check_int(_OPERATION, "workers", workers, "write workers=2", minimum=1, maximum=_MAX_WORKERS)
    ahead = check_int(_OPERATION, "prefetch", prefetch, "write prefetch=2", minimum=1)
    check_choice(_OPERATION, "last", last, ("drop", "pad", "short"))
    check_choice(_OPERATION, "on_error", on_error, ("raise", "skip"))
    written = StateOfStream(stream)
    progress = Progress() if state is None else written.read(_OPERATION, state)
    placement = Placement(_OPERATION, sharding, has_mask=last == "pad")
    plan = BatchPlan(size, last, stream.length, progress.position)
    for number in plan.sizes():
        placement.rows(number)  # raises before anything is read
    reader = BatchReader(_OPERATION, stream, plan, placement, skips=on_error == "skip")
    return Batches(stream, reader, written, progress, threads, ahead)


class _Placed(NamedTuple):
    """A batch on its devices."""

    value: Any
    begin: int
    end: int
    replaced: list[Replacement]


@public("artifex_devices.data")
class Batches(Iterator[PyTree]):
    """The batches of a stream, returned by `data.batches`.

    Threads begin to read at the first `next`. They end with the last batch, with `close()`, at the end of a `with`
    block, when the object is deleted, and at interpreter exit. Several threads may use one object: each batch is
    returned to one of them. A forked process cannot use the batches that its parent started.
    """

    def __init__(
        self,
        stream: Stream,
        reader: BatchReader,
        state: StateOfStream,
        progress: Progress,
        workers: int,
        prefetch: int,
    ) -> None:
        self._plan = reader.plan
        self._leaf_names = [leaf.name for leaf in stream._leaves]
        self._stream = stream
        self._last = (0, 0)  # positions of the last batch
        self._state = state
        self._first = self._used = progress
        self._skips = SkipAgreement(_OPERATION) if reader.skips else None
        self._skipped: list[tuple[int, SkippedSample]] = []  # each with the number of its batch
        self._history = [progress]  # the progress after each batch with skipped samples
        self._began_s: float | None = None
        self._elapsed_s = 0.0
        self._workers = workers
        self._next_lock = threading.Lock()  # held for a whole `next`, so that batches are counted in their order

        def place(read: ReadBatch) -> _Placed:
            return _Placed(reader.place(read), read.begin, read.end, read.replaced)

        source = map_in_order(reader.read, self._plan.ranges(), workers)
        self._prefetcher: Prefetcher[_Placed] = Prefetcher(source, place, prefetch, operation=_OPERATION)

    def __iter__(self) -> Batches:
        return self

    def __len__(self) -> int:
        """Returns the number of batches from the beginning of this iteration; TypeError for an endless stream."""
        count = self._plan.num_batches()
        if count is None:
            raise failure(
                TypeError,
                "len(batches)",
                "the stream is endless",
                expected="a stream with a length",
                fix="count steps instead: for step, batch in zip(range(1000), batches)",
            )
        return count

    def __next__(self) -> PyTree:
        with self._next_lock:
            if self._began_s is None:
                self._began_s = time.perf_counter()
            try:
                placed = next(self._prefetcher)
            except StopIteration:
                raise
            except BaseException as error:
                if self._skips is not None:
                    self._skips.refuse(error)
                raise
            self._count(placed)
            return placed.value

    def _count(self, placed: _Placed) -> None:
        """Counts a batch that the caller receives."""
        before = self._used
        if placed.begin != before.position:
            raise failure(
                RuntimeError,
                _OPERATION,
                f"an exception such as Ctrl-C interrupted an earlier `next`, and the batch at position "
                f"{before.position} was lost",
                expected="no `next` after that",
                fix="batches = data.batches(stream, batch, sharding, state=batches.state())",
            )
        replaced = placed.replaced
        if self._skips is not None:
            try:
                replaced = self._skips.gather(before, replaced)
            except BaseException:
                self._prefetcher.close(0.0)
                raise
        after = before.after(placed.end, replaced)
        if replaced:
            self._history.append(after)
            self._skipped += [
                (before.step, SkippedSample(each.position, self._leaf_names[each.leaf], each.index, each.used))
                for each in replaced
            ]
        if self._began_s is not None:
            self._elapsed_s = time.perf_counter() - self._began_s
        self._used = after
        self._last = (placed.begin, placed.end)

    def state(self) -> dict[str, int | str]:
        """Returns the state after the batches that `next` has returned, as a dict of ints and texts.

        It is the same in all processes, and `checkpoint.save` takes it. Batches that wait for `next` do not count. Its
        keys never change: version, step (batches), position (samples), seed, sources, order and packing (which identify
        the stream), skipped and skipped_digest (samples that could not be read, with `on_error="skip"`).

        Example:
            >>> import numpy as np
            >>> from artifex_devices import data
            >>> stream = data.Stream(np.arange(100), seed=7).shuffle()
            >>> with data.batches(stream, batch=4) as batches:
            ...     first = next(batches)
            ...     state = batches.state()
            ...     second = next(batches)
            >>> with data.batches(stream, batch=4, state=state) as batches:
            ...     bool(np.array_equal(next(batches), second))
            True
        """
        return self._state.write(self._used)

    def state_at(self, step: int) -> dict[str, int | str]:
        """Returns the state after a number of batches from the start of the run, without reading anything.

        Samples that are skipped later are not in it.

        Args:
            step: Number of batches; the step of `state()` counts them.

        Raises:
            TypeError: `step` is not an integer.
            ValueError: The stream has fewer batches; or `step` is before the state at which this iteration began, and
                that state does not say where the batch was.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import data
            >>> batches = data.batches(data.Stream(np.arange(100)), batch=8)
            >>> batches.state_at(step=3)["position"]
            24
        """
        operation, first, size = "state_at", self._first, self._plan.batch
        count = self._plan.num_batches()
        most = None if count is None else first.step + count
        if most is None:
            most = first.step + (MAX_POSITION - first.position) // size
        number = check_int(operation, "step", step, "give the step of a batch of the run", minimum=0, maximum=most)
        if number < first.step and (first.position != first.step * size or first.skipped):
            raise failure(
                ValueError,
                operation,
                f"step is {number}, before step {first.step} at which this iteration began",
                expected=f"{first.step} or more, as earlier batches had other sizes or skipped samples",
                fix="keep the state of that step",
            )
        position = first.position + (number - first.step) * size
        if self._plan.length is not None:
            position = min(position, self._plan.length)
        known = [each for each in self._history if each.step <= number]
        skipped = known[-1] if known else Progress()
        return self._state.write(Progress(number, position, skipped.skipped, skipped.skipped_digest))

    def stats(self) -> BatchStats:
        """Returns batches, samples, rates, waits and epochs so far.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import data
            >>> batches = data.batches(data.Stream(np.arange(100)).repeat(2), batch=8)
            >>> _ = list(batches)
            >>> batches.stats().batches, batches.stats().samples, batches.stats().epochs
            (25, 200, {'source': 1})
        """
        waits = self._prefetcher.stats()
        return BatchStats(
            waits.batches,
            waits.waited_s,
            waits.read_s,
            waits.place_s,
            waits.idle_s,
            samples=self._used.position - self._first.position,
            elapsed_s=self._elapsed_s,
            skipped=tuple(each for _, each in self._skipped),
            epochs=epochs_of(self._stream, np.arange(*self._last, dtype=np.int64)),
        )

    def close(self, timeout_s: float = 5.0) -> bool:
        """Ends the threads and drops the batches that were not returned; `state()` stays as it was.

        Args:
            timeout_s: Seconds to wait for the threads. A thread that hangs in a source or in a function of `map` ends
                when that returns.

        Returns:
            Whether the threads have ended.

        Raises:
            RuntimeError: The process was forked after the threads were started.

        Example:
            >>> import numpy as np
            >>> from artifex_devices import data
            >>> batches = data.batches(data.Stream(np.arange(100)), batch=8)
            >>> batches.close(), list(batches)
            (True, [])
        """
        return self._prefetcher.close(timeout_s)

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        count = self._plan.num_batches()
        of = "" if count is None else f" of {self._first.step + count}"
        return (
            f"<Batches step {self._used.step}{of}, position {self._used.position}, batch={self._plan.batch}, "
            f"workers={self._workers}>"
        )
