# SPDX-License-Identifier: Apache-2.0
"""Conversions of ndarrays: the parts of a plan copied one by one."""

import numpy as np
from artifex_devices.checkpoint.planning import plan_conversion


def convert(arrays, rules, like=None, **allowed):
    """Returns the target arrays, by name."""
    plan = planned(arrays, rules, like, **allowed)
    return {
        name: box_of(plan, number, arrays, (0,) * len(shape), shape)
        for number, (name, shape, _) in enumerate(plan.targets())
    }


def box_of(plan, number, arrays, origin, shape):
    """Returns a box of a target array."""
    target = np.full(shape, 99, plan.targets()[number][2])
    for source, source_origin, source_shape, part in plan.parts(number, origin, shape):
        box = tuple(slice(o, o + s) for o, s in zip(source_origin, source_shape, strict=True))
        part.copy(None if source is None else np.ascontiguousarray(arrays[source][box]).reshape(source_shape), target)
    return target


def planned(arrays, rules, like=None, **allowed):
    """Returns the plan for ndarrays by name."""
    expected = None if like is None else types_of(like)
    return plan_conversion("test", types_of(arrays), rules, expected, **allowed)


def types_of(arrays):
    """Returns name, shape and dtype of each ndarray."""
    return [(name, array.shape, array.dtype) for name, array in arrays.items()]
