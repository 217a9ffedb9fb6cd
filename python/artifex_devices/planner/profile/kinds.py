# SPDX-License-Identifier: Apache-2.0
"""The kinds of operations of a profile."""

from __future__ import annotations

KINDS = {
    "products": "matrix products",
    "attention_forward": "attention, forward",
    "attention_backward": "attention, backward",
    "attention": "attention, direction not known",
    "elementwise": "limited by the memory: norms, activation functions, copies on the device, update",
    "other": "names that no rule knows; they count as computation",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "all_to_all": "all-to-all",
    "send": "sends, receives, broadcasts, and messages whose name says no kind",
    "host": "copies between host and device",
}
MESSAGES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "host")
