# SPDX-License-Identifier: Apache-2.0
"""The stacks of other threads, for messages about what they wait for."""

from __future__ import annotations

import faulthandler
import os
import re
import threading
import traceback

_THREAD = re.compile(r"(?:Current thread|Thread) 0x([0-9a-f]+) ")
_CALL = re.compile(r'  File "(.*)", line (\d+) in (.*)')


def thread_stacks() -> dict[int, traceback.StackSummary]:
    """Returns the stack of each other thread by its identity, innermost call last; none if no file can be opened.

    faulthandler stops all threads while it reads their stacks, at most 100 threads and 100 calls of each. Frames that
    sys._current_frames() returns continue to run; reading them can crash free-threaded builds.
    """
    stacks: dict[int, traceback.StackSummary] = {}
    try:
        with open(os.memfd_create("artifex-stacks"), "w+", encoding="utf-8") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            lines = file.readlines()
    except OSError:
        return stacks
    stack = traceback.StackSummary()
    for line in lines:
        if thread := _THREAD.match(line):
            stack = stacks[int(thread[1], 16)] = traceback.StackSummary()
        elif call := _CALL.match(line):
            stack.insert(0, traceback.FrameSummary(call[1], int(call[2]), call[3], lookup_line=False))
    stacks.pop(threading.get_ident(), None)
    return stacks
