# SPDX-License-Identifier: Apache-2.0
"""Prefetchers in any mixture: slow sources, slow consumers, two consumers, reused buffers, errors, early leaves."""

import threading
import time

import numpy as np
import tour
from polling import wait_until


class OwnError(Exception):
    pass


def one(random, seed):
    """Draws a case; runs it; what is drawn says what must come of it. Returns what it was."""
    from artifex_devices import P
    from artifex_devices.prefetch import prefetch_to_device

    count = int(random.integers(0, 13))
    error_at = int(random.integers(0, count + 1)) if random.random() < 0.3 else None
    leave_at = int(random.integers(1, count + 2)) if random.random() < 0.3 else None
    consumers = int(random.integers(1, 3))
    slow = random.choice(["nobody", "source", "consumers"])
    is_reused = bool(random.random() < 0.5)
    place = tour.over(P("x")) if random.random() < 0.5 else tour.ad.devices()[int(random.integers(8))]
    error = OwnError(seed)
    is_closed = []

    def source():
        buffer = np.zeros((8, 40), np.int64)
        try:
            for i in range(count):
                if i == error_at:
                    raise error
                if slow == "source":
                    time.sleep(0.002)  # slow work
                if not is_reused:
                    buffer = np.empty((8, 40), np.int64)
                buffer[...] = np.arange(320).reshape(8, 40) + 1000 * i
                yield buffer
            if error_at == count:
                raise error
        finally:
            is_closed.append(True)

    batches = prefetch_to_device(source(), place, buffer_size=int(random.integers(1, 5)))
    got, raised, other = [[] for _ in range(consumers)], [], []

    def consume(mine):
        try:
            while leave_at is None or sum(map(len, got)) < leave_at:
                batch = np.asarray(next(batches))
                i = int(batch[0, 0]) // 1000
                tour.equal(batch, np.arange(320).reshape(8, 40) + 1000 * i)
                mine.append(i)
                if slow == "consumers":
                    time.sleep(0.002)  # slow work
        except StopIteration:
            pass
        except OwnError as e:
            raised.append(e)
        except BaseException as e:
            other.append(e)

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in got]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert other == []
    there = count if error_at is None else error_at
    assert all(mine == sorted(mine) for mine in got), got
    everything = sorted(i for mine in got for i in mine)
    assert everything == list(range(len(everything))), got
    has_left = leave_at is not None and len(everything) >= leave_at
    assert len(everything) == there if not has_left else leave_at <= len(everything) <= min(there, leave_at + 1)
    assert len(raised) <= 1
    if error_at is not None and not has_left:
        assert raised == [error]
    if seed % 2:
        assert batches.close(timeout_s=60)
        assert is_closed == [True] or not everything
    return "left" if has_left else "error" if error_at is not None else "all"


def mixtures():
    import gc

    import artifex_devices as ad

    before = threading.active_count()
    seen = [one(np.random.default_rng(seed), seed) for seed in range(200)]
    assert min(seen.count(kind) for kind in ("left", "error", "all")) > 30, seen
    gc.collect()
    assert wait_until(lambda: threading.active_count() <= before, 60)
    assert ad.live_arrays() == []


def test_any_mixture_keeps_order_values_and_errors(own_process):
    own_process(mixtures)
