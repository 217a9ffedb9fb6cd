# SPDX-License-Identifier: Apache-2.0
"""A small replicated operand beside one of higher rank that is sharded in any dimension."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.sharding import AxisType, NamedSharding, P


@pytest.mark.parametrize("dimension", [0, 1, 2])
@pytest.mark.parametrize("shape", [(4,), (4, 4), (1, 4), (4, 1), (4, 4, 4), ()])
def test_the_value_is_that_of_numpy(dimension, shape):
    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        large = np.arange(64.0).reshape(4, 4, 4)
        small = np.arange(float(np.prod(shape))).reshape(shape) + 100
        x = ad.device_put(large, NamedSharding(mesh, P(*(None,) * dimension, "x")))
        y = ad.device_put(small, NamedSharding(mesh, P()))
        for found, expected in ((x + y, large + small), (np.subtract(y, x), small - large)):
            assert np.array_equal(np.asarray(found), expected)
            assert found.sharding.spec[dimension] == "x"
