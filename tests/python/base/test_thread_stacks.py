# SPDX-License-Identifier: Apache-2.0
"""Stacks of other threads."""

import os
import threading

from artifex_devices._base.thread_stacks import thread_stacks


def wait_inside(ready, end):
    ready.set()
    end.wait(30)  # the line of the test


def test_stacks_of_other_threads_end_with_their_innermost_call():
    ready, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=wait_inside, args=(ready, end))
    thread.start()
    assert ready.wait(30)
    stacks = thread_stacks()
    end.set()
    thread.join()
    assert threading.get_ident() not in stacks
    calls = [(call.name, call.lineno, call.line) for call in stacks[thread.ident] if call.filename == __file__]
    line = wait_inside.__code__.co_firstlineno + 2
    assert calls == [("wait_inside", line, "end.wait(30)  # the line of the test")]
    assert stacks[thread.ident][0].name == "_bootstrap"


def test_there_are_no_stacks_without_a_file_to_write_them_to(monkeypatch):
    def fail(name):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", fail)
    assert thread_stacks() == {}
