# SPDX-License-Identifier: Apache-2.0
"""The tags of messages between two processes."""

from __future__ import annotations


class Tag:
    """Purpose of a message. Messages of one pair of processes and one tag arrive in order, so one tag is enough."""

    MEETING = 0
    RESHARD = 1
    BLOCKS = 2
    CHAIN_ON = 3
    CHAIN_BACK = 4
    HOST_VALUES = 5
    TRACE = 6
    STATE = 7  # of a simulated process; arrives after all messages that were sent before
