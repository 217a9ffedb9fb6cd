# SPDX-License-Identifier: Apache-2.0
"""Settings and meshes whose `with` block ends in another one, as that of a generator may."""

from __future__ import annotations

import threading

import artifex_devices as ad
import numpy as np
import pytest


def holding(scope):
    with scope:
        yield


@pytest.mark.parametrize(
    ("make", "read", "inner", "outside"),
    [
        (
            lambda: ad.transfer_guard("log"),
            lambda: ad.config.jax_transfer_guard,
            lambda: ad.transfer_guard("allow"),
            None,
        ),
        (lambda: ad.enable_x64(False), lambda: ad.device_put(1.5).dtype, lambda: ad.enable_x64(True), np.float64),
        (
            lambda: ad.default_device(ad.devices()[1]),
            lambda: ad.device_put(1.5).device,
            lambda: ad.default_device(ad.devices()[2]),
            None,
        ),
    ],
    ids=["guard", "x64", "default device"],
)
@pytest.mark.parametrize("where", ["scope", "thread"])
def test_a_generator_that_is_closed_in_another_scope_ends_its_own(make, read, inner, outside, where):
    before = read()
    assert outside is None or before == outside
    own = holding(make())
    next(own)
    assert read() != before
    errors = []

    def close():
        try:
            own.close()
        except RuntimeError as error:
            errors.append(str(error))

    if where == "thread":
        thread = threading.Thread(target=close)
        thread.start()
        thread.join()
    else:
        with inner():
            within = read()
            close()
            assert read() == within
    assert len(errors) == 1
    assert "scopes were left in the wrong order" in errors[0]
    assert read() == before


def test_a_scope_that_is_referred_to_can_be_left_later():
    guard = ad.transfer_guard("log")
    own = holding(guard)
    next(own)
    with ad.transfer_guard("allow"), pytest.raises(RuntimeError, match="innermost"):
        own.close()
    assert ad.config.jax_transfer_guard == "log"
    guard.__exit__(None, None, None)
    assert ad.config.jax_transfer_guard is None


def test_a_mesh_that_is_left_out_of_order_is_left():
    grid = ad.make_mesh((2, 4), ("x", "y"))
    line = ad.make_mesh((8,), ("z",))
    own = holding(grid)
    next(own)
    with line:
        with pytest.raises(RuntimeError, match="Mesh: meshes were left in the wrong order"):
            own.close()
        assert ad.lax.with_sharding_constraint(np.ones(8), ad.P("z")).sharding.mesh == line
    with pytest.raises(RuntimeError, match=r"P\('z',\) needs a mesh and none is set"):
        ad.lax.with_sharding_constraint(np.ones(8), ad.P("z"))
