# SPDX-License-Identifier: Apache-2.0
"""Waits for a condition that no event reports: a file of another process, an ended thread, a released object."""

import time


def wait_until(condition, seconds=30.0):
    """Polls until the condition is true or the seconds have passed. Returns whether it is true."""
    end_s = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.001)
    return True
