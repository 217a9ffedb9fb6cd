# SPDX-License-Identifier: Apache-2.0
"""Waiting for messages: awake while they may come at once, then asleep in growing steps, with an ear for peers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from artifex_devices.distributed.peers import Peers

__all__ = ["wait_until"]

_AWAKE_S = 200e-6  # a message between two processes that both wait takes 1 to 20 us
_BYTES_PER_S = 0.5e9  # big messages move only while both sides look; so look until they should long be there
_LOOK_S = 1e-3
_FIRST_NAP_S = 50e-6
_LONGEST_NAP_S = 1e-3


def wait_until(done: Callable[[], bool], peers: Peers, look: Callable[[], None], nbytes: int = 0) -> None:
    """Returns when `done()` is true.

    Other processes may need this core, so each look at what is not there yet gives way to them.

    Args:
        done: Asks MPI, which also moves messages on.
        peers: Whose words end a nap.
        look: Called every millisecond or so; raises to end the wait.
        nbytes: Bytes under way, for how long it stays awake.

    Raises:
        Exception: What `look` raises, and KeyboardInterrupt.
    """
    if done():
        return
    start = now = time.monotonic()
    awake_until = start + _AWAKE_S + nbytes / _BYTES_PER_S
    next_look = start + _LOOK_S
    while now < awake_until:
        for _ in range(8):
            os.sched_yield()
            if done():
                return
        now = time.monotonic()
        if now >= next_look:
            look()
            next_look = now + _LOOK_S
    nap = _FIRST_NAP_S
    while not done():
        peers.sleep(nap)
        nap = min(nap * 1.25, _LONGEST_NAP_S)
        look()
