# SPDX-License-Identifier: Apache-2.0
"""Errors that the conversion of an argument raises keep their arguments."""

import artifex_devices as ad
import numpy as np
import pytest


class Broken:
    dtype = np.dtype(np.float32)
    shape = (2,)

    def __init__(self, *arguments):
        self.arguments = arguments

    def __array__(self, *_, **__):
        raise ValueError(*self.arguments)


@pytest.mark.parametrize(
    ("arguments", "raised"),
    [
        ((), ()),
        ((5,), (5,)),
        ((5, "device_put: x"), (5, "device_put: x")),
        (("device_put: x, device_put: y", 5), ("buffer_from_pyval: x, device_put: y", 5)),
    ],
)
def test_only_a_text_names_the_operation(arguments, raised):
    with ad.simulate(1), pytest.raises(ValueError) as caught:  # noqa: PT011 - the arguments are compared
        ad.devices()[0].client.buffer_from_pyval(Broken(*arguments))
    assert caught.value.args == raised
