# SPDX-License-Identifier: Apache-2.0
"""Runs bodies as participants of a program, without placing anything: what the tests of collectives stand on."""

import math

from artifex_devices.spmd.program import Program, run

EXECUTORS = ("cooperative", "threads")


def launch(body, executor, axes=None, **options):
    """[body(0), body(1), ...] by as many participants as the axes have members; default one axis i of 8."""
    axes = axes or {"i": 8}
    count = math.prod(axes.values())
    options.setdefault("operation", "launch")
    options.setdefault("timeout_s", 30.0)
    program = Program(tuple(axes), tuple(axes.values()), [f"cpu:{i}" for i in range(count)], **options)
    return run(program, [lambda i=i: body(i) for i in range(count)], executor)
