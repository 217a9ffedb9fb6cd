# SPDX-License-Identifier: Apache-2.0
"""Audits of programs of JAX and torch: their collectives, their shardings, and what is suspicious about them."""

from artifex_devices.audit.assertions import (
    AtMost,
    assert_bytes,
    assert_collectives,
    assert_no_rematerialization,
    at_most,
)
from artifex_devices.audit.comparison import ComparedRow, Comparison, compare
from artifex_devices.audit.differences import Change, Difference
from artifex_devices.audit.golden import assert_matches
from artifex_devices.audit.leaves import LeafSharding
from artifex_devices.audit.notices import Notice
from artifex_devices.audit.program import Program
from artifex_devices.audit.reading import program
from artifex_devices.audit.sharding_table import Shardings, shardings
from artifex_devices.audit.storing import diff, load, save
from artifex_devices.audit.summary import ProgramSummary, SummaryRow
from artifex_devices.audit.values import Collective, Finding, Total

__all__ = [
    "AtMost",
    "Change",
    "Collective",
    "ComparedRow",
    "Comparison",
    "Difference",
    "Finding",
    "LeafSharding",
    "Notice",
    "Program",
    "ProgramSummary",
    "Shardings",
    "SummaryRow",
    "Total",
    "assert_bytes",
    "assert_collectives",
    "assert_matches",
    "assert_no_rematerialization",
    "at_most",
    "compare",
    "diff",
    "load",
    "program",
    "save",
    "shardings",
]
