# SPDX-License-Identifier: Apache-2.0
"""Threads of data.batches: what runs in them, and how they end."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import data
from polling import wait_until

NAMES = ("artifex_devices-prefetch", "artifex_devices-data")


def threads():
    return [thread for thread in threading.enumerate() if thread.name in NAMES]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert wait_until(lambda: not threads())


def stream_of(count=1000):
    return data.Stream(np.arange(count))


def test_nothing_is_read_before_the_first_next():
    read = []
    batches = data.batches(stream_of().map(lambda x: read.append(int(x)) or x), 4)
    assert not threads()
    assert read == []
    with batches:
        next(batches)
        assert len(threads()) == 3
    assert read[0] in (0, 4, 8, 12)


@pytest.mark.parametrize("how", ["close", "with", "delete", "end", "error"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_threads_end(how, workers):
    stream = stream_of(64) if how == "end" else stream_of().repeat()
    if how == "error":
        stream = stream.map(lambda x: x if x < 50 else 1 // 0)
    batches = data.batches(stream, 8, workers=workers)
    next(batches)
    if how == "close":
        assert batches.close()
        assert list(batches) == []
    elif how == "with":
        with batches:
            next(batches)
    elif how == "delete":
        del batches
    elif how == "end":
        assert len(list(batches)) == 7
    else:
        with pytest.raises(data.SampleError):
            list(batches)
    assert wait_until(lambda: not threads())


def test_functions_run_in_the_context_of_the_first_next():
    with ad.simulate(3):
        stream = stream_of(8).map(lambda x: np.array([len(ad.devices()), x]))
        assert [np.asarray(batch)[0].tolist() for batch in data.batches(stream, 4)] == [[3, 0], [3, 4]]


def test_several_consumers_share_the_batches():
    batches = data.batches(stream_of(), 8, workers=3)
    found = []

    def consume():
        found.extend(np.asarray(batch)[0] for batch in batches)

    consumers = [threading.Thread(target=consume) for _ in range(4)]
    for thread in consumers:
        thread.start()
    for thread in consumers:
        thread.join()
    assert sorted(found) == list(range(0, 1000, 8))
    assert batches.state()["step"] == 125


def test_close_wakes_a_consumer_that_waits():
    go_on = threading.Event()
    batches = data.batches(stream_of().map(lambda x: x if x < 8 else go_on.wait(60) and x), 8)
    next(batches)
    ended = []
    consumer = threading.Thread(target=lambda: ended.append(list(batches)))
    consumer.start()
    time.sleep(0.05)  # the consumer probably waits; the test holds if it does not
    assert not batches.close(0.1)
    consumer.join()
    assert ended == [[]]
    assert batches.state()["step"] == 1
    go_on.set()


def run_script(script, *, interrupts=False):
    command = [sys.executable, "-c", "import numpy as np\nfrom artifex_devices import data\n" + textwrap.dedent(script)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if interrupts:
        assert job.stdout.readline() == "reading\n"
        job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)
    return job.returncode, out, err


def test_ctrl_c_ends_a_wait_for_a_batch():
    status, out, err = run_script(
        """
        import threading
        def wait(x):
            print("reading", flush=True)
            threading.Event().wait()
        stream = data.Stream(np.arange(8)).map(wait)
        batches = data.batches(stream, 8, workers=1)
        try:
            next(batches)
        except KeyboardInterrupt:
            print("interrupted at", batches.state()["position"])
        """,
        interrupts=True,
    )
    assert (status, out) == (0, "interrupted at 0\n"), err


def test_the_interpreter_exits_while_threads_read_and_wait():
    for repeat in ("", ".repeat()"):
        status, out, err = run_script(
            f"""
            stream = data.Stream(np.arange(100)){repeat}.map(lambda x: np.full(1000, x))
            batches = data.batches(stream, 8, workers=3)
            next(batches)
            print("done")
            """
        )
        assert (status, out, err) == (0, "done\n", "")


def test_a_forked_child_is_refused_and_can_read_by_its_own_batches():
    batches = data.batches(stream_of(), 8)
    next(batches)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with pytest.raises(
                RuntimeError, match=r"^data\.batches: the worker that reads in advance runs in process "
            ):
                next(batches)
            with data.batches(stream_of(), 8, state=batches.state()) as mine:
                status = 0 if np.asarray(next(mine))[0] == 8 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.asarray(next(batches))[0] == 8
    batches.close()


def test_a_batch_that_an_interrupt_lost_is_noticed():
    batches = data.batches(stream_of(), 8)
    next(batches)
    next(batches._prefetcher)  # as if Ctrl-C had come between the queue and the caller
    with pytest.raises(
        RuntimeError, match="the batch at position 8 was lost; expected no `next` after that; batches ="
    ):
        next(batches)
    assert batches.state()["position"] == 8
    batches.close()


def test_stats_and_repr():
    batches = data.batches(stream_of(100), 8, workers=2)
    assert repr(batches) == "<Batches step 0 of 12, position 0, batch=8, workers=2>"
    assert (batches.stats().samples_per_s, batches.stats().epochs) == (0.0, {})
    assert len(list(batches)) == 12
    stats = batches.stats()
    assert (stats.batches, stats.samples, stats.skipped, stats.epochs) == (12, 96, (), {"source": 0})
    assert stats.samples_per_s == 96 / stats.elapsed_s
    assert repr(data.batches(stream_of().repeat(), 8)) == "<Batches step 0, position 0, batch=8, workers=2>"


def epochs_after(stream, batch, count):
    with data.batches(stream, batch) as batches:
        for _ in range(count):
            next(batches)
        return batches.stats().epochs


def test_stats_have_the_epoch_of_each_source_in_the_last_batch():
    source = stream_of(10).shuffle()
    assert [epochs_after(source.repeat(3), 5, count) for count in (2, 3, 6)] == [
        {"source": 0},
        {"source": 1},
        {"source": 2},
    ]
    noisy = source.map(lambda x, generator: x, random=True).repeat().skip(7).map(lambda x, generator: x, random=True)
    assert epochs_after(noisy, 4, 6) == {"source": 3}
    mixed = data.mix({"a": (source, 3), "b": (stream_of(4), 1)}, repeat=True)
    assert epochs_after(mixed, 40, 1) == {"a": 2, "b": 2}
    assert epochs_after(mixed.take(40).repeat(2), 40, 1) == {}


def test_epochs_of_packed_rows_are_of_their_samples():
    documents = data.Stream([np.arange(3), np.arange(5)])
    assert epochs_after(data.pack(documents.repeat(), 4), 2, 3) == {"source": 2}
    assert epochs_after(data.pack(documents, 4).repeat(), 2, 3) == {"source": 2}
    rows = data.pack(data.mix({"a": (documents, 1), "b": (documents, 1)}, repeat=True), 8)
    assert epochs_after(rows, 3, 1) == {"a": 1, "b": 1}
    assert epochs_after(data.mix({"rows": (rows, 1), "x": (rows, 0)}), 3, 1) == {"rows/a": 1, "rows/b": 1}
