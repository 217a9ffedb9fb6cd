# SPDX-License-Identifier: Apache-2.0
"""prefetch_to_device: order, look-ahead, errors, ends."""

from __future__ import annotations

import collections
import contextvars
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import prefetch
from artifex_devices.prefetch import Prefetcher, PrefetchStats, prefetch_to_device

WAIT_S = 30.0  # only ever waited out by a test that fails


def numbers(count: int) -> Iterator[np.ndarray]:
    for i in range(count):
        yield np.full((4, 2), i, np.float32)


def values(batches: Any) -> list[int]:
    return [int(np.asarray(batch)[0, 0]) for batch in batches]


def worker_of(batches: Prefetcher) -> threading.Thread:
    thread = batches._work.thread
    assert thread is not None
    return thread


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(autouse=True)
def no_worker_is_left() -> Iterator[None]:
    yield
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "artifex_devices-prefetch":
            thread.join(WAIT_S)
            assert not thread.is_alive()


@pytest.mark.parametrize("buffer_size", [1, 2, 3, 7, 10**12])
def test_order_and_number_are_the_sources(buffer_size: int) -> None:
    assert values(prefetch_to_device(numbers(20), buffer_size=buffer_size)) == list(range(20))
    assert values(prefetch_to_device(numbers(0), buffer_size=buffer_size)) == []


def test_an_iterable_that_is_not_an_iterator_is_taken() -> None:
    assert values(prefetch_to_device([np.zeros((1, 1)), np.ones((1, 1))])) == [0, 1]


def test_batches_are_placed_on_the_device() -> None:
    with ad.simulate(2):
        device = ad.devices()[1]
        for batch in prefetch_to_device(({"x": x, "n": None} for x in numbers(2)), device):
            assert batch["x"].sharding.device_set == {device}
            assert batch["n"] is None


def test_batches_are_placed_with_the_sharding() -> None:
    with ad.simulate(4):
        mesh = ad.Mesh(np.array(ad.devices()), ("data",))
        sharding = ad.NamedSharding(mesh, ad.P("data"))
        batches = list(prefetch_to_device(numbers(3), sharding))
        assert [batch.sharding for batch in batches] == [sharding] * 3
        assert values(batches) == [0, 1, 2]


def test_a_tree_of_places_is_a_prefix_of_each_batch() -> None:
    with ad.simulate(2):
        first, second = ad.devices()
        batch = next(prefetch_to_device([(np.ones(2), {"y": np.zeros(2)})], (first, second)))
        assert batch[0].sharding.device_set == {first}
        assert batch[1]["y"].sharding.device_set == {second}


def test_nothing_is_read_before_the_first_next() -> None:
    read: list[int] = []

    def source() -> Iterator[np.ndarray]:
        for i, batch in enumerate(numbers(3)):
            read.append(i)
            yield batch

    batches = prefetch_to_device(source())
    iter(batches)
    with batches:
        assert read == []
        assert values([next(batches)]) == [0]
        assert read[0] == 0


def test_the_first_batch_does_not_wait_for_the_second() -> None:
    go_on = threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield np.zeros((1, 1))
        assert go_on.wait(WAIT_S)
        yield np.ones((1, 1))

    batches = prefetch_to_device(source(), buffer_size=2)
    assert values([next(batches)]) == [0]
    go_on.set()
    assert values(batches) == [1]


def test_the_source_runs_while_the_consumer_works() -> None:
    reading_second = threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield np.zeros((1, 1))
        reading_second.set()
        yield np.ones((1, 1))

    batches = prefetch_to_device(source())
    next(batches)
    # Were the source read in this thread, it could not get there before the next `next`.
    assert reading_second.wait(WAIT_S)
    assert values(batches) == [1]


@pytest.mark.parametrize("buffer_size", [1, 2, 5])
def test_look_ahead_is_bounded(buffer_size: int) -> None:
    asked = 0
    ahead: list[int] = []
    full = threading.Event()

    def source() -> Iterator[np.ndarray]:
        for i in range(30):
            ahead.append(i + 1 - asked)
            if ahead[-1] == buffer_size:
                full.set()
            yield np.full((1, 1), i)

    batches = prefetch_to_device(source(), buffer_size=buffer_size)
    for _ in range(20):
        asked += 1
        next(batches)
        assert full.wait(WAIT_S)
    batches.close()
    assert max(ahead) == buffer_size


def test_a_reused_source_buffer_is_safe() -> None:
    def source() -> Iterator[np.ndarray]:
        buffer = np.empty((1024, 8), np.int64)
        for i in range(10):
            buffer[:] = i
            yield buffer

    kept = list(prefetch_to_device(source(), buffer_size=4))
    for i, batch in enumerate(kept):
        np.testing.assert_array_equal(np.asarray(batch), np.full((1024, 8), i))


def test_the_sources_error_comes_after_its_batches_as_the_same_object() -> None:
    error = OSError("disk gone")

    def source() -> Iterator[np.ndarray]:
        yield from numbers(3)
        raise error

    batches = prefetch_to_device(source(), buffer_size=5)
    assert values(next(batches) for _ in range(3)) == [0, 1, 2]
    with pytest.raises(OSError, match="disk gone") as caught:
        next(batches)
    assert caught.value is error
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)
    assert batches.stats().batches == 3


def test_an_error_of_no_ordinary_class_is_handed_on_too() -> None:
    class Stop(BaseException):
        pass

    def source() -> Iterator[np.ndarray]:
        yield np.zeros(1)
        raise Stop

    batches = prefetch_to_device(source())
    next(batches)
    with pytest.raises(Stop):
        next(batches)


def test_a_batch_that_cannot_be_placed_is_an_error_after_those_before_it() -> None:
    batches = prefetch_to_device([np.zeros((1, 1)), {"name": "seven"}, np.ones((1, 1))])
    assert values([next(batches)]) == [0]
    with pytest.raises(TypeError, match="name"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


def test_a_dropped_prefetcher_ends_its_worker_and_its_generator() -> None:
    closed = threading.Event()

    def source() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(1)
        finally:
            closed.set()

    batches = prefetch_to_device(source())
    next(batches)
    thread = worker_of(batches)
    del batches
    gc.collect()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert closed.is_set()


def test_leaving_a_loop_ends_the_worker() -> None:
    threads: list[threading.Thread] = []

    def source() -> Iterator[np.ndarray]:
        threads.append(threading.current_thread())
        while True:
            yield np.zeros(1)

    for _batch in prefetch_to_device(source()):
        break
    gc.collect()
    threads[0].join(WAIT_S)
    assert not threads[0].is_alive()


def test_close_ends_the_worker_and_may_be_repeated() -> None:
    closed: list[str] = []

    def source() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(1)
        finally:
            closed.append(threading.current_thread().name)

    batches = prefetch_to_device(source())
    next(batches)
    thread = worker_of(batches)
    assert batches.close() is True
    assert not thread.is_alive()
    assert closed == ["artifex_devices-prefetch"]
    assert batches.close() is True
    assert list(batches) == []
    assert "closed" in repr(batches)


def test_close_before_the_first_next_starts_nothing() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        read.append(1)
        yield 1

    generator = source()
    batches = prefetch_to_device(generator)
    assert batches.close() is True
    assert list(batches) == []
    assert read == []
    assert list(generator) == []


def test_close_raises_what_the_sources_close_raises_once() -> None:
    def source() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(1)
        finally:
            raise OSError("cannot close")

    batches = prefetch_to_device(source())
    next(batches)
    with pytest.raises(OSError, match="cannot close"):
        batches.close()
    assert batches.close() is True


def test_close_lets_waiting_consumers_go() -> None:
    reading = threading.Event()
    go_on = threading.Event()

    def source() -> Iterator[np.ndarray]:
        reading.set()
        go_on.wait(WAIT_S)
        yield np.zeros(1)

    batches = prefetch_to_device(source())
    got: list[list[Any]] = []
    consumers = [threading.Thread(target=lambda: got.append(list(batches))) for _ in range(3)]
    for consumer in consumers:
        consumer.start()
    assert reading.wait(WAIT_S)
    assert batches.close(timeout_s=0.0) is False  # the source is stuck
    for consumer in consumers:
        consumer.join(WAIT_S)
    assert got == [[], [], []]
    go_on.set()
    assert batches.close(timeout_s=WAIT_S) is True


def stuck_source(
    at_end: list[str], reading: threading.Event, go_on: threading.Event, error: str = ""
) -> Iterator[np.ndarray]:
    """One batch, then a read that takes until `go_on`; its end is noted, and may raise."""
    try:
        yield np.zeros(1)
        reading.set()
        go_on.wait(WAIT_S)
        while True:
            yield np.ones(1)
    finally:
        at_end.append(threading.current_thread().name)
        if error:
            raise OSError(error)


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, 0.3])  # 0.3: longer than the worker is asked for its end once
def test_close_returns_without_a_stuck_source_after_its_time(timeout_s: float) -> None:
    at_end: list[str] = []
    reading, go_on = threading.Event(), threading.Event()
    batches = prefetch_to_device(stuck_source(at_end, reading, go_on))
    next(batches)
    thread = worker_of(batches)
    assert reading.wait(WAIT_S)
    assert batches.close(timeout_s=timeout_s) is False
    assert thread.is_alive()
    assert at_end == []
    assert list(batches) == []
    assert "closed" in repr(batches)
    assert batches.close(timeout_s=0.0) is False
    go_on.set()  # what it reads then is dropped, and its own thread closes it
    assert batches.close(timeout_s=WAIT_S) is True
    assert not thread.is_alive()
    assert at_end == ["artifex_devices-prefetch"]
    assert list(batches) == []
    assert batches.stats().batches == 1


def test_close_waits_for_a_source_that_comes_back_in_time() -> None:
    at_end: list[str] = []
    reading, go_on = threading.Event(), threading.Event()
    batches = prefetch_to_device(stuck_source(at_end, reading, go_on))
    next(batches)
    assert reading.wait(WAIT_S)
    closed: list[bool] = []
    closer = threading.Thread(target=lambda: closed.append(batches.close(timeout_s=WAIT_S)))
    closer.start()
    assert list(batches) == []  # the closing thread has dropped the batches and waits, or will
    assert closed == []
    go_on.set()
    closer.join(WAIT_S)
    assert closed == [True]
    assert at_end == ["artifex_devices-prefetch"]
    assert not worker_of(batches).is_alive()


def test_what_a_stuck_source_raises_when_it_is_closed_is_raised_by_the_close_that_sees_its_end() -> None:
    reading, go_on = threading.Event(), threading.Event()
    batches = prefetch_to_device(stuck_source([], reading, go_on, "cannot close"))
    next(batches)
    assert reading.wait(WAIT_S)
    assert batches.close(timeout_s=0.0) is False
    go_on.set()
    with pytest.raises(OSError, match="cannot close"):
        batches.close(timeout_s=WAIT_S)
    assert batches.close() is True


def test_a_source_that_closes_its_own_prefetcher_does_not_wait_for_itself() -> None:
    closed: list[bool] = []

    def source() -> Iterator[np.ndarray]:
        yield np.zeros(1)
        closed.append(batches.close(timeout_s=WAIT_S))
        yield np.ones(1)

    batches = prefetch_to_device(source())
    assert len(list(batches)) <= 1  # the batch before may be dropped
    assert batches.close(timeout_s=WAIT_S) is True
    assert closed == [False]


def test_a_with_block_closes() -> None:
    with prefetch_to_device(numbers(10**9)) as batches:
        next(batches)
        thread = worker_of(batches)
    assert not thread.is_alive()


def test_each_batch_goes_to_one_of_several_consumers() -> None:
    batches = prefetch_to_device(numbers(300), buffer_size=4)
    got: list[list[int]] = [[] for _ in range(4)]

    def consume(mine: list[int]) -> None:
        mine.extend(values(batches))

    consumers = [threading.Thread(target=consume, args=(mine,)) for mine in got]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(WAIT_S)
    assert sorted(value for mine in got for value in mine) == list(range(300))
    assert all(mine == sorted(mine) for mine in got)
    assert batches.stats().batches == 300


def test_one_of_several_consumers_gets_the_error() -> None:
    def source() -> Iterator[np.ndarray]:
        yield from numbers(10)
        raise OSError("disk gone")

    batches = prefetch_to_device(source())
    outcomes: list[str] = []

    def consume() -> None:
        try:
            values(batches)
            outcomes.append("end")
        except OSError:
            outcomes.append("error")

    consumers = [threading.Thread(target=consume) for _ in range(3)]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(WAIT_S)
    assert sorted(outcomes) == ["end", "end", "error"]


def test_the_worker_has_the_consumers_context() -> None:
    word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="none")

    def source() -> Iterator[np.ndarray]:
        yield np.full((1, 1), len(word.get()))

    batches = prefetch_to_device(source())
    word.set("seven!!")
    assert values(batches) == [7]


def test_the_worker_is_in_the_consumers_world() -> None:
    with ad.simulate(3):
        (batch,) = prefetch_to_device(numbers(1))
        assert batch.sharding.device_set == {ad.devices()[0]}


def test_ctrl_c_ends_a_wait() -> None:
    go_on = threading.Event()

    def source() -> Iterator[np.ndarray]:
        yield np.zeros((1, 1))
        os.kill(os.getpid(), signal.SIGINT)
        assert go_on.wait(WAIT_S)
        yield np.ones((1, 1))

    batches = prefetch_to_device(source())
    # Shells make jobs in the background ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            collections.deque(batches, maxlen=0)
    finally:
        signal.signal(signal.SIGINT, before)
    go_on.set()
    assert values(batches) in ([1], [0, 1])  # nothing that was not given out is lost


def test_a_source_that_draws_from_its_own_prefetcher_is_an_error() -> None:
    box: list[Prefetcher] = []

    def source() -> Iterator[Any]:
        yield np.zeros((1, 1))
        box[0].stats()
        yield from box[0]

    box.append(prefetch_to_device(source()))
    next(box[0])
    with pytest.raises(RuntimeError, match="its own Prefetcher"):
        list(box[0])


def test_exit_with_batches_in_flight_is_silent_and_keeps_the_code() -> None:
    done = run_script("""
        import sys
        import numpy as np
        from artifex_devices.prefetch import prefetch_to_device

        def source():
            while True:
                yield np.ones((512, 512))

        batches = prefetch_to_device(source())
        for _ in range(3):
            next(batches)
        sys.exit(7)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_exit_does_not_wait_for_a_stuck_source() -> None:
    done = run_script("""
        import time
        import numpy as np
        from artifex_devices.prefetch import prefetch_to_device

        def source():
            yield np.ones(3)
            time.sleep(3600)  # a stuck source

        next(batches := prefetch_to_device(source()))
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_gets_one_clear_error() -> None:
    done = run_script("""
        import os, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        from artifex_devices.prefetch import prefetch_to_device

        def source():
            while True:
                yield np.ones(3)

        started = prefetch_to_device(source())
        next(started)
        fresh = prefetch_to_device(np.ones(3) for _ in range(2))
        child = os.fork()
        if child == 0:
            for call in (lambda: next(started), started.close, started.stats):
                try:
                    call()
                except RuntimeError as error:
                    assert "create a new iterator" in str(error), error
                else:
                    os._exit(3)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert len(list(fresh)) == 2
        started.close()
        raise SystemExit(code)
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("place", ["gpu", 3, ["gpu"], object()])
def test_a_place_that_is_none_is_an_error_at_once(place: Any) -> None:
    with pytest.raises(TypeError, match=r"prefetch_to_device: the target is .*; (write ad\.|expected None)"):
        prefetch_to_device(numbers(1), place)


@pytest.mark.parametrize(
    ("size", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError), (None, TypeError)]
)
def test_a_bad_buffer_size_is_an_error_at_once(size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="buffer_size"):
        prefetch_to_device(numbers(1), buffer_size=size)


def test_a_source_that_cannot_be_iterated_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="iterator is <function"):
        prefetch_to_device(lambda: numbers(3))  # type: ignore[arg-type]


def test_stats_count_batches_and_time() -> None:
    batches = prefetch_to_device(numbers(50))
    assert batches.stats() == PrefetchStats()
    list(batches)
    stats = batches.stats()
    assert stats.batches == 50
    assert stats.waited_s > 0.0
    assert stats.read_s > 0.0
    assert stats.place_s > 0.0
    assert stats.worked_s == stats.read_s + stats.place_s


def test_seconds_are_those_of_the_source_of_placing_and_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(prefetch, "time", SimpleNamespace(perf_counter=lambda: now[0], monotonic=time.monotonic))

    def source() -> Iterator[int]:
        for number in (1, 2):
            now[0] += 1.0
            yield number
        now[0] += 8.0  # for nothing: it has no more

    def place(number: int) -> int:
        now[0] += 0.25
        return number

    batches = Prefetcher(source(), place, 5)
    assert list(batches) == [1, 2]
    stats = batches.stats()
    assert (stats.read_s, stats.place_s, stats.idle_s, stats.batches) == (10.0, 0.5, 0.0, 2)
    assert stats.worked_s == 10.5


@pytest.mark.parametrize(
    ("stats", "ratio"),
    [
        (PrefetchStats(), 0.0),
        (PrefetchStats(4, waited_s=1.0, read_s=3.0, place_s=1.0), 0.75),
        (PrefetchStats(4, waited_s=0.0, read_s=3.0, place_s=1.0), 1.0),
        (PrefetchStats(4, waited_s=9.0, read_s=3.0, place_s=1.0), 0.0),
    ],
)
def test_overlap_is_the_work_that_nobody_waited_for(stats: PrefetchStats, ratio: float) -> None:
    assert stats.overlap_ratio == ratio
