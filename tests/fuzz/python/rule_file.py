# SPDX-License-Identifier: Apache-2.0
"""TOML files of rules: checkpoint.rules.load, and plans of conversions with them."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
from artifex_devices.checkpoint import rules
from artifex_devices.checkpoint.planning import plan_conversion
from oracle import check_pickle, check_refusal, require

MODULES = ("artifex_devices.checkpoint.rule_files", "artifex_devices._base.toml", "tomllib")
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "rules.toml"
_SHAPES = {"a.0": (4, 6), "a.1": (4, 6), "b.0.w": (8,), "b.1.w": (8,), "c": (2, 3, 4), "d": ()}
_ARRAYS = {name: np.arange(math.prod(shape), dtype=np.float32).reshape(shape) for name, shape in _SHAPES.items()}
_MOST_BYTES = 1 << 16


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    _FILE.write_bytes(data)
    try:
        read = rules.load(_FILE)
        plan = plan_conversion("fuzz", [(name, array.shape, array.dtype) for name, array in _ARRAYS.items()], read)
    except ValueError as error:
        return check_refusal(error, ValueError)
    require(rules.load(_FILE) == read, "others when read again")
    require(repr(read).isprintable(), repr(read))
    check_pickle(read)
    for number, (name, shape, dtype) in enumerate(plan.targets()):
        if math.prod(shape) * dtype.itemsize > _MOST_BYTES:
            continue
        target = np.empty(shape, dtype)
        for source, origin, size, part in plan.parts(number, (0,) * len(shape), shape):
            box = tuple(slice(o, o + s) for o, s in zip(origin, size, strict=True))
            part.copy(None if source is None else np.ascontiguousarray(_ARRAYS[source][box]).reshape(size), target)
        require(bool(name), "an array without a name")
    return True
