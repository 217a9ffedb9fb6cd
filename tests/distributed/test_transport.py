# SPDX-License-Identifier: Apache-2.0
"""Bytes between processes, and the meeting before them."""

import contextvars
import time

import numpy as np
import pytest
from launching import transport

COUNTS = [2, 3, 4]


def all_done(requests, operation="test"):
    requests = list(requests)
    while requests:
        done = transport().wait_some(requests, operation)
        assert done
        requests = [request for i, request in enumerate(requests) if i not in done]


def around(size, tag):
    """Sends an array of `size` bytes to the next process and returns whether that of the one before has come."""
    t = transport()
    me, count = t.process_index, t.process_count
    mine = np.random.default_rng(me).integers(0, 256, size, dtype=np.uint8)
    expected = np.random.default_rng((me - 1) % count).integers(0, 256, size, dtype=np.uint8)
    got = np.zeros(size, np.uint8)
    all_done([t.irecv(got, (me - 1) % count, tag), t.isend(mine, (me + 1) % count, tag)])
    return bool((got == expected).all())


def send_sizes(sizes):
    return [around(size, tag) for tag, size in enumerate(sizes)]


@pytest.mark.parametrize("count", COUNTS)
def test_bytes_arrive_whole_whatever_their_number(processes, count):
    sizes = [0, 1, 7, 4096, 65537, 1 << 20, (8 << 20) + 3]
    assert processes(count, send_sizes, sizes).values == [[True] * len(sizes)] * count


def send_in_pieces():
    from artifex_devices.distributed import mpi_transport

    mpi_transport._PIECE = 1000
    return around(123_456, 3)


@pytest.mark.real_processes
def test_messages_beyond_what_one_message_of_mpi_may_hold_go_in_pieces(processes):
    assert processes(2, send_in_pieces).values == [True, True]


def many_tags_at_once():
    t = transport()
    me, count = t.process_index, t.process_count
    others = [p for p in range(count) if p != me]
    got = {(p, tag): np.zeros(5, np.int64) for p in others for tag in range(20)}
    requests = [t.irecv(buffer, p, tag) for (p, tag), buffer in got.items()]
    requests += [t.isend(np.full(5, 100 * me + tag), p, tag) for tag in reversed(range(20)) for p in others]
    all_done(requests)
    return all((buffer == 100 * p + tag).all() for (p, tag), buffer in got.items())


def test_messages_find_their_tags(processes):
    assert processes(3, many_tags_at_once).values == [True] * 3


def meet_in_groups():
    t = transport()
    me = t.process_index
    found = [t.agree("all", b"d", range(3), bytes([me]))]
    if me != 1:
        found.append(t.agree("two of three", b"e", (0, 2), bytes([10 + me])))
    found += [t.agree(f"all, time {i}", b"f", range(3), bytes([i, me])) for i in range(50)][-1:]
    found.append(t.agree("alone", b"", (me,), b"mine"))
    return found


def test_groups_meet_and_exchange_payloads(processes):
    all_three = [b"\x00", b"\x01", b"\x02"]
    last = [bytes([49, me]) for me in range(3)]
    assert processes(3, meet_in_groups).values == [
        [all_three, [b"\x0a", b"\x0c"], last, [b"mine"]],
        [all_three, last, [b"mine"]],
        [all_three, [b"\x0a", b"\x0c"], last, [b"mine"]],
    ]


def refuse_and_go_on():
    t = transport()
    texts = []
    for turn in range(5):
        if t.process_index == turn % 3:
            t.refuse("device_put", f"no memory in turn {turn}", range(3))
        else:
            try:
                t.agree("device_put", b"same", range(3))
            except RuntimeError as error:
                texts.append(str(error))
    return texts, t.agree("after all that", b"x", range(3), b"y")


def test_a_refusal_ends_the_waits_of_the_others_and_the_job_goes_on(processes):
    for number, (texts, after) in enumerate(processes(3, refuse_and_go_on).values):
        turns = [turn for turn in range(5) if turn % 3 != number]
        assert len(texts) == len(turns)
        for turn, text in zip(turns, texts, strict=True):
            assert f"process {turn % 3} (" in text
            assert f"refuses: device_put: no memory in turn {turn}; fix the cause there; the job continues" in text
        assert after == [b"y"] * 3


def send_from_a_thread():
    import threading

    t = transport()
    me, count = t.process_index, t.process_count
    peer = (me + 1) % count
    wrong = []

    def exchange(tag):
        for turn in range(20):
            got = np.zeros(100, np.int64)
            all_done([t.irecv(got, peer, tag), t.isend(np.full(100, 1000 * me + 10 * turn + tag), peer, tag)])
            if not (got == 1000 * peer + 10 * turn + tag).all():
                wrong.append((tag, turn))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(exchange, 7))
    thread.start()
    thread.join()
    return wrong


def test_another_thread_than_the_first_may_send(processes):
    assert processes(2, send_from_a_thread).values == [[], []]


def late_meeting():
    t = transport()
    if t.process_index == 0:
        time.sleep(1.5)  # a slow process
    before = time.process_time()
    t.agree("late", b"l", range(t.process_count))
    return time.process_time() - before


@pytest.mark.real_processes
def test_waiting_costs_little(processes):
    waited = processes(2, late_meeting).values[1]
    assert waited < 0.75  # of 1.5 s


def threads_left():
    import threading

    return threading.active_count()


@pytest.mark.real_processes
def test_no_thread_is_made(processes):
    assert processes(2, threads_left).values == [1, 1]
