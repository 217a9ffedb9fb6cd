# SPDX-License-Identifier: Apache-2.0
"""Products of arrays whose sizes do not match; a dimension of size 1 is not repeated in a product."""

import artifex_devices as ad
import numpy as np
import pytest

OF_ROWS = "dimension 1 of operand 0 is 1 but dimension 0 of operand 1 is 4"
OF_COLUMNS = "dimension 1 of operand 0 is 1 but dimension 1 of operand 1 is 4"


@pytest.mark.parametrize(
    ("name", "call", "where"),
    [
        ("matmul", np.matmul, OF_ROWS),
        ("dot", np.dot, OF_ROWS),
        ("tensordot", lambda x, y: np.tensordot(x, y, 1), OF_ROWS),
        ("vecdot", np.vecdot, OF_COLUMNS),
        ("inner", np.inner, OF_COLUMNS),
    ],
)
def test_a_dimension_of_size_1_is_not_repeated(name, call, where):
    with ad.simulate(2):
        x, y = ad.device_put(np.ones((4, 1))), ad.device_put(np.ones((4, 4)))
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared
            call(x, y)
    assert str(raised.value) == (
        f"{name}: sizes do not match; expected equal sizes where dimensions are indexed together, got shapes (4, 1) "
        f"and (4, 4): {where}; transpose or reshape one of them"
    )
