# SPDX-License-Identifier: Apache-2.0
"""What a command's exit code says."""

from __future__ import annotations

OK = 0
ATTENTION = 1
USAGE = 2
FAILED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


class UsageError(ValueError):
    """What was asked for cannot be understood: the text says why and what to write instead; exit code 2."""
