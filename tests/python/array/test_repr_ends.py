# SPDX-License-Identifier: Apache-2.0
"""The ends of texts of Arrays: a dtype that just fits on the last line, and an Array that is deleted meanwhile."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("size", "widths"),
    [(1, []), (5, [*range(20, 29)]), (10, [*range(20, 29), *range(37, 44)]), (30, [*range(20, 35), *range(39, 43)])],
)
def test_a_dtype_that_does_not_fit_follows_after_six_blanks(size, widths):
    x = ad.device_put(np.arange(size, dtype=np.int8))
    found = []
    for width in range(20, 45):
        with np.printoptions(linewidth=width):
            text = repr(x)
            assert text.endswith("],      dtype=int8)" if width in widths else "], dtype=int8)")
            if "      dtype" in text:
                found.append(width)
    assert found == widths


@pytest.mark.parametrize("text_of", [repr, str])
def test_an_array_that_is_deleted_while_it_is_read_has_a_text(text_of):
    x, y = (ad.device_put(np.arange(3)) for _ in range(2))

    def deleting(value):
        x.delete()
        raise RuntimeError("deleted")

    def failing(value):
        raise RuntimeError("something else")

    with np.printoptions(formatter={"int": deleting}):
        assert text_of(x) == "Array(shape=(3,), deleted, dtype=int64)"
    assert text_of(x) == "Array(shape=(3,), deleted, dtype=int64)"
    with np.printoptions(formatter={"int": failing}), pytest.raises(RuntimeError, match="something else"):
        text_of(y)
