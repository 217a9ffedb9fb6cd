# SPDX-License-Identifier: Apache-2.0
"""MemoryError at each step of the thread of a participant: nobody waits permanently, and the next call works."""

import sys
import threading

import numpy as np
import pytest

STEPS = ("_serve", "take", "_enter", "put")  # functions of threaded.py and handoff_queue.py

WAY = ("_bootstrap_inner", "_set_ident", "_set_tstate_lock", "_set_native_id", "run")  # of a thread to its function


def run_three(fails, timeout_s=None, wrap=None):
    """A program of three participants; the last one raises, if it should."""
    from artifex_devices import lax
    from artifex_devices._spmd.program import Program, run

    def body(i):
        total = int(lax.psum(np.array(i), "i"))
        if i == 2 and fails:
            raise ValueError(i)
        return total

    made = Program(("i",), (3,), ["cpu:0", "cpu:1", "cpu:2"], operation="program", timeout_s=timeout_s)
    if wrap is not None:
        made.rendezvous = wrap(made.rendezvous)
    return run(made, body, [0, 1, 2], "threads")


def outcome_of(fails, **options):
    """Its value, or the name of its error."""
    try:
        return run_three(fails, **options)
    except (MemoryError, ValueError) as error:
        return type(error).__name__


def all_threads_end():
    """Each thread has come to the end of its program."""
    from artifex_devices._spmd import threaded

    threaded.shutdown()
    return not [each for each in threading.enumerate() if each.name == "artifex-participant"]


def short_at_a_step(of, fails):
    """The n-th line, or the n-th call, in what threads run around bodies raises MemoryError, for each n."""
    from artifex_devices._base import handoff_queue
    from artifex_devices._spmd import threaded

    hook = {"lines": threading.settrace, "calls": threading.setprofile}[of]
    # Lines of the loop of the thread itself, and of its wait, do not ask for memory; what it calls may.
    steps = STEPS[2:] if of == "lines" else STEPS
    events = {"lines": ("call", "line"), "calls": ("call", "c_call")}[of]
    met = []
    short_at = 0

    def step(frame, event, _):
        name = frame.f_code.co_name
        if frame.f_code.co_filename not in (threaded.__file__, handoff_queue.__file__) or name not in steps:
            return None
        if event in events and (event, name) != ("call", "_serve"):
            met.append(name)
            if len(met) == short_at:
                raise MemoryError(name)
        return step

    hurt, ends = set(), set()
    while len(met) >= short_at:
        short_at += 1
        met.clear()
        hook(step)  # of threads to come
        end = outcome_of(fails == "fails")
        hook(None)
        assert end in ([3, 3, 3], "MemoryError", "ValueError"), end
        ends.add(str(end))
        hurt.update(met[short_at - 1 : short_at])
        assert all_threads_end(), (short_at, met)
        assert run_three(False) == [3, 3, 3]
        assert all_threads_end()
    assert hurt == set(steps)
    assert ends == {"MemoryError", "ValueError" if fails == "fails" else "[3, 3, 3]"}


@pytest.mark.parametrize("fails", ["ends", "fails"])
@pytest.mark.parametrize("of", ["lines", "calls"])
def test_no_participant_is_lost_at_any_step_of_its_thread(own_process, of, fails):
    own_process(short_at_a_step, of, fails)


class ShortRendezvous:
    """The rendezvous of a program that is refused memory, three times by each of its functions."""

    def __init__(self, rendezvous):
        self._rendezvous = rendezvous
        self._left = dict.fromkeys(("finished", "raised", "cancel", "failure"), 3)

    def __getattr__(self, name):
        if self._left.get(name, 0) > 0:
            self._left[name] -= 1
            raise MemoryError(name)
        return getattr(self._rendezvous, name)


def short_of_words():
    """Threads and the caller tell of ends and failures again until they are heard."""
    for _ in range(20):
        for fails in (False, True):
            # The caller may be the one that asks for the failure while memory is short.
            assert str(outcome_of(fails, wrap=ShortRendezvous)) in (
                "MemoryError",
                "ValueError" if fails else "[3, 3, 3]",
            )
            assert all_threads_end()
            assert run_three(fails=False) == [3, 3, 3]


def test_ends_and_failures_are_reported_until_they_are_read(own_process):
    own_process(short_of_words)


def short_on_the_way():
    """MemoryError at each step that CPython takes in a new thread before it comes to its function."""
    from artifex_devices._base.daemon_thread import DaemonThread
    from artifex_devices._spmd import threaded, watchdog
    from artifex_devices.prefetch import prefetch_to_device

    def refuse(*_):
        raise MemoryError

    raised = []
    threading.excepthook = sys.unraisablehook = lambda what: raised.append(what.exc_type)
    for name in [name for name in WAY if hasattr(threading.Thread, name)]:  # they differ between versions
        for use in (
            lambda: run_three(False),
            lambda: run_three(False, timeout_s=20),
            lambda: next(prefetch_to_device([np.arange(3)])),
        ):
            threaded.shutdown()
            watchdog.shutdown()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(DaemonThread, name, refuse)
                with pytest.raises(MemoryError, match="had no memory for its first steps"):
                    use()
            use()
    assert set(raised) <= {
        MemoryError,
        KeyError,
    }  # KeyError: such a thread is not in the list that CPython takes it from
    assert all_threads_end()


def test_a_thread_that_cannot_begin_is_an_error_and_no_wait(own_process):
    own_process(short_on_the_way)
