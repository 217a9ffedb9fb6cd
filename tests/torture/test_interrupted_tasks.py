# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while the tasks of one call run on several threads: it is raised, and the error of a task is its context."""

import signal
import sys
import threading


def interrupt_after_an_error():
    from artifex_devices import _core

    failed, interrupted = threading.Event(), threading.Event()
    main = threading.main_thread()
    error = ValueError("of a task")

    def handler(*_):
        interrupted.set()
        raise KeyboardInterrupt("of the handler")

    signal.signal(signal.SIGINT, handler)

    def task():
        if threading.current_thread() is main:
            failed.set()
            raise error
        failed.wait(60)
        signal.pthread_kill(main.ident, signal.SIGINT)
        interrupted.wait(60)

    for _ in range(3):
        failed.clear()
        interrupted.clear()
        references = sys.getrefcount(error)
        raised = None
        try:
            _core.internal.run_parallel([task, task])
        except BaseException as caught:
            raised = caught
        if interrupted.is_set():
            assert type(raised) is KeyboardInterrupt, raised
            assert raised.__context__ is error
        else:  # no worker was there in time
            assert raised is error
        raised.__context__ = raised.__traceback__ = error.__traceback__ = None
        raised = None
        assert sys.getrefcount(error) == references
    print("ok")


def test_an_interrupt_after_the_error_of_a_task_is_raised_with_the_error_as_its_context(own_process):
    assert own_process(interrupt_after_an_error) == ["ok"]
