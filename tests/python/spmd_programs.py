# SPDX-License-Identifier: Apache-2.0
"""Runs bodies as participants of a session, without placing anything: what the tests of collectives stand on."""

import contextlib
import math
from unittest import mock

from artifex_devices._spmd import cooperative
from artifex_devices._spmd.executors import run
from artifex_devices._spmd.session import Session

# "unwatched" is the cooperative one as it is where nobody has imported a package with foreign frames.
EXECUTORS = ("cooperative", "unwatched", "threads")


def unwatched(executor):
    """While entered, the executor of this name does not search for foreign frames."""
    if executor == "unwatched":
        return mock.patch.object(cooperative, "_FOREIGN", frozenset())
    return contextlib.nullcontext()


def name_of(executor):
    """What the package calls an executor."""
    return "cooperative" if executor == "unwatched" else executor


def launch(body, executor, axes=None, **options):
    """[body(0), body(1), ...] by as many participants as the axes have members; default one axis i of 8."""
    axes = axes or {"i": 8}
    count = math.prod(axes.values())
    options.setdefault("operation", "launch")
    timeout_s = options.pop("timeout_s", 30.0)
    session = Session(tuple(axes), tuple(axes.values()), [f"cpu:{i}" for i in range(count)], **options)
    with unwatched(executor):
        return run(session, body, list(range(count)), name_of(executor), timeout_s)
