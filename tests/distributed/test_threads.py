# SPDX-License-Identifier: Apache-2.0
"""Two threads of a process that use collectives with others at once: an error at once in all processes, not a hang."""

import contextvars
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from launching import transport
from polling import wait_until


def start(function):
    thread = threading.Thread(target=contextvars.copy_context().run, args=(function,), name="second")
    thread.start()
    return thread


def error_of(function):
    """The text of the error that a function raises, or ""."""
    try:
        function()
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def crossing_operations(folder):
    """Process 0 is in a sum of all in one thread and gathers in another; the others gather only."""
    import artifex_devices as ad
    from artifex_devices import P, lax, multihost_utils

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    add = ad.shard_map(lambda block: lax.psum(block, "x"), mesh, in_specs=P("x"), out_specs=P())
    x = ad.device_put(np.ones(mesh.size), ad.NamedSharding(mesh, P("x")))
    multihost_utils.sync_global_devices("start")
    begin = time.monotonic()
    texts = []
    if ad.process_index() == 0:
        second = start(lambda: texts.append(error_of(lambda: add(x))))
        assert wait_until(lambda: transport()._user is not None)  # it waits for the others in the sum
        texts.append(error_of(lambda: multihost_utils.process_allgather(1)))
        second.join()
        Path(folder, "refused").touch()
    else:
        assert wait_until(Path(folder, "refused").exists)
        texts.append(error_of(lambda: multihost_utils.process_allgather(1)))
    texts.append(error_of(lambda: multihost_utils.sync_global_devices("after")))
    return texts, time.monotonic() - begin


@pytest.mark.real_processes
def test_crossing_operations_of_two_threads_are_refused_at_once_with_both_lines(processes, tmp_path):
    job = processes(2, crossing_operations, str(tmp_path), shielded=True)
    assert [outcome.state for outcome in job.outcomes] == ["returned", "returned"], str(job)
    (first, took_0), (others, took_1) = (outcome.value for outcome in job.outcomes)  # the launcher ends a broken job
    source = Path(__file__).read_text().splitlines()
    in_sum, in_gather = (
        next(number for number, line in enumerate(source, 1) if text in line)
        for text in ("add = ad.shard_map(", "error_of(lambda: multihost_utils.process_allgather(1))")
    )
    refusals = [text for text in first if "expected one operation between processes at a time" in text]
    assert len(refusals) == 1
    assert re.search(
        r"^CollectiveError: process_allgather: thread second is in shard_map\(<lambda>\): psum .* at .*"
        rf"test_threads\.py:{in_sum}, and thread MainThread began another at .*test_threads\.py:{in_gather}; expected",
        refusals[0],
    )
    assert all("two threads of process 0 " in text for text in first if text not in refusals)
    assert all(text.startswith("CollectiveError: ") for text in others)
    assert "psum float64(1,) over x" in others[0]  # it sees that process 0 has come to the sum
    assert len(first) == 3
    assert len(others) == 2
    assert max(took_0, took_1) < 20  # the deadline is 60 s


def operations_in_turns():
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    found = []
    for turn in range(5):
        thread = start(lambda turn=turn: found.append(multihost_utils.process_allgather(turn).tolist()))
        thread.join()
        found.append(multihost_utils.process_allgather(10 + turn).tolist())
    return found == [[value] * ad.process_count() for turn in range(5) for value in (turn, 10 + turn)]


def test_threads_may_take_turns(processes):
    assert processes(3, operations_in_turns).values == [True] * 3


def refuse_beside_a_wait():
    """Process 0 waits for 2 in one thread, and 2 for 1, which waits for what process 0 refuses in another thread."""
    found, same = transport(), b"d" * 32
    me = found.process_index
    if me == 0:
        second = start(lambda: found.agree("third", same, [0, 2]))
        assert wait_until(lambda: found._user is not None)  # until that thread has the transport
        found.refuse("first", "no memory", [0, 1])
        second.join()
        return ""
    text = ""
    if me == 1:
        text = error_of(lambda: found.agree("first", same, [0, 1]))
    found.agree("second", same, [1, 2])
    if me == 2:
        found.agree("third", same, [0, 2])
    return text


@pytest.mark.real_processes
def test_a_refusal_does_not_wait_for_a_thread_that_waits_for_its_effect(processes):
    first, text, third = processes(3, refuse_beside_a_wait).values
    assert (first, third) == ("", "")
    assert text.startswith(
        "CollectiveError: first: not all processes can take part; expected all of them to take part, got"
    )
    assert "refuses: first: no memory; fix the cause there; the job continues" in text
