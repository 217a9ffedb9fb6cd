# SPDX-License-Identifier: Apache-2.0
"""What the tests of NumPy's functions share."""

import artifex_devices as ad
import pytest


@pytest.fixture
def no_moves():
    """Makes calls that would move operands over Auto axes errors, as they are over Explicit axes."""
    before = ad.config.auto_axes_moves
    ad.config.update("auto_axes_moves", "error")
    yield
    ad.config.update("auto_axes_moves", before)
