# SPDX-License-Identifier: Apache-2.0
"""Masked arrays beside Arrays: refused as by device_put, as the mask would be lost."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P

VALUE = np.arange(8.0)
MASKED = np.ma.masked_array(VALUE, VALUE > 5)

CALLS = {
    "x + masked": (lambda x: x + MASKED, "add: an operand"),
    "x == masked": (lambda x: x == MASKED, "equal: an operand"),
    "x @ masked": (lambda x: x @ MASKED, "matmul: an operand"),
    "np.add, first": (lambda x: np.add(MASKED, x), "add: an operand"),
    "np.maximum": (lambda x: np.maximum(x, MASKED), "maximum: an operand"),
    "np.add.outer": (lambda x: np.add.outer(x, MASKED), "add: an operand"),
    "out": (lambda x: np.add(x, 1, out=np.ma.masked_array(VALUE, VALUE > 5)), "add: out"),
    "where=": (lambda x: np.add(x, 1, out=VALUE.copy(), where=MASKED > 3), "add: where"),
    "where= of a sum": (lambda x: np.sum(x, where=MASKED > 3), "sum: where"),
    "where= of a mean": (lambda x: x.mean(where=MASKED > 3), "mean: an argument"),
    "out of a sum": (lambda x: np.sum(x, out=np.ma.masked_array(1.0, True)), "sum: an argument"),
    "np.concatenate": (lambda x: np.concatenate([x, MASKED]), "concatenate: an argument"),
    "np.concatenate, first": (lambda x: np.concatenate([MASKED, x]), "concatenate: an argument"),
    "np.stack": (lambda x: np.stack([x, MASKED]), "stack: an argument"),
    "np.where": (lambda x: np.where(x > 1, MASKED, 0), "where: an argument"),
    "np.where, condition": (lambda x: np.where(MASKED > 1, x, 0), "where: an argument"),
    "np.clip": (lambda x: np.clip(x, 0, MASKED), "clip: an argument"),
    "np.dot": (lambda x: np.dot(x, MASKED), "dot: an argument"),
    "np.einsum": (lambda x: np.einsum("i,i", x, MASKED), "einsum: an argument"),
    "np.linalg.outer": (lambda x: np.linalg.outer(x, MASKED), "linalg.outer: an argument"),
    "np.array_equal": (lambda x: np.array_equal(x, MASKED), "array_equal: an argument"),
    "np.average": (lambda x: np.average(x, weights=MASKED), "average: an argument"),
    "x.dot": (lambda x: x.dot(MASKED), "dot: an argument"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("spec", [P(), P("x")])
def test_masked_arrays_are_refused(name, spec, line):
    call, begin = CALLS[name]
    x = ad.device_put(VALUE, NamedSharding(line, spec))
    with pytest.raises(ValueError, match=rf"^{begin} is a masked array; expected an ndarray.*; give x.filled\(value\)"):
        call(x)


def test_the_repairs_of_the_message_work(line):
    x = ad.device_put(VALUE, NamedSharding(line, P("x")))
    np.testing.assert_array_equal(np.asarray(x + MASKED.filled(0)), [0, 2, 4, 6, 8, 10, 6, 7])
    np.testing.assert_array_equal(np.asarray(np.where(MASKED.mask, x, x + MASKED.data)), [0, 2, 4, 6, 8, 10, 6, 7])
