# SPDX-License-Identifier: Apache-2.0
"""Functions along a dimension of an Array of shape (): NumPy takes the number as one element in some only."""

import artifex_devices as ad
import numpy as np
import pytest

CALLS = {
    "argsort": lambda x, axis: np.argsort(x, axis=axis),
    "argpartition": lambda x, axis: np.argpartition(x, 0, axis=axis),
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "partition": lambda x, axis: np.partition(x, 0, axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis=axis),
    "nancumsum": lambda x, axis: np.nancumsum(x, axis=axis),
    "nancumprod": lambda x, axis: np.nancumprod(x, axis=axis),
    "cumulative_sum": lambda x, axis: np.cumulative_sum(x, axis=axis),
    "cumulative_prod": lambda x, axis: np.cumulative_prod(x, axis=axis),
    "accumulate": lambda x, axis: np.add.accumulate(x),
    "median": lambda x, axis: np.median(x, axis=axis),
    "nanmedian": lambda x, axis: np.nanmedian(x, axis=axis),
    "take": lambda x, axis: np.take(x, [0, -1], axis=axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "compress": lambda x, axis: np.compress([True], x, axis=axis),
    "squeeze": lambda x, axis: np.squeeze(x, axis=axis),
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "mean": lambda x, axis: np.mean(x, axis=axis),
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "flip": lambda x, axis: np.flip(x, axis=axis),
    "flip of all": lambda x, axis: np.flip(x),
    "roll of all": lambda x, axis: np.roll(x, axis),
    "rot90": lambda x, axis: np.rot90(x, axis),
    "transpose": lambda x, axis: np.transpose(x),
    "reshape": lambda x, axis: np.reshape(x, (1,)),
    "broadcast_to": lambda x, axis: np.broadcast_to(x, (2,)),
}


def answer(call, x, axis):
    try:
        return np.asarray(call(x, axis))
    except (ValueError, TypeError, IndexError) as error:
        return error


@pytest.mark.parametrize("axis", [0, -1, 1])
@pytest.mark.parametrize("name", CALLS)
def test_the_answer_or_the_error_is_numpys(name, axis):
    value = np.array(5.0)
    found, expected = answer(CALLS[name], ad.device_put(value), axis), answer(CALLS[name], value, axis)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), found
    else:
        assert (found.tolist(), found.shape, found.dtype) == (expected.tolist(), expected.shape, expected.dtype)
