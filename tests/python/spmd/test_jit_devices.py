# SPDX-License-Identifier: Apache-2.0
"""jit: on which devices a call runs, where its results go, what guards and donation refuse."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def over(devices, *entries):
    return ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), P(*entries))


def test_different_devices_are_refused():
    third, rows = ad.device_put(X, ad.devices()[3]), ad.device_put(X, over(ad.devices(), "x"))
    backwards = ad.device_put(X, over(ad.devices()[::-1], "x"))
    half = over(ad.devices()[:4], "x")
    first = ad.jit(lambda *a: 1)
    cases = [
        (lambda: first(third, rows), r"args\[0\] and args\[1\] are on different devices.* got \[3\] and \[0, 1, 2, 3"),
        (lambda: first(rows, backwards), r"expected the same devices in the same order, got \[0, 1, .*\[7, 6, 5"),
        (lambda: first({"a": third}, b=rows), r"args\[0\]\['a'\] and b are"),
        (lambda: ad.jit(lambda a: a, out_shardings=half)(rows), r"args\[0\] and out_shardings are"),
        (
            lambda: ad.jit(lambda a: a, in_shardings=over(ad.devices(), "x"), out_shardings=half)(X),
            r"in_shardings of args\[0\] and out_shardings are",
        ),
    ]
    for call, text in cases:
        with pytest.raises(ValueError, match=text):
            call()
    with ad.set_mesh(over(ad.devices()).mesh):
        with pytest.raises(ValueError, match=r"the mesh of set_mesh and args\[0\] are on different devices"):
            first(third)
        with pytest.raises(ValueError, match="device or backend was passed under set_mesh"):
            ad.jit(lambda a: a, device=ad.devices()[0])(X)
        assert first(rows).sharding == over(ad.devices())


def test_placements_are_implicit_transfers():
    rows = over(ad.devices(), "x")
    placed, loose = ad.device_put(X, rows), ad.device_put(X)
    calls = {
        "an ndarray": lambda: ad.jit(lambda a: 1)(X),
        "in a tree": lambda: ad.jit(lambda a: 1)({"k": X}),
        "with device": lambda: ad.jit(lambda a: a, device=ad.devices()[2])(X),
        "moved by device": lambda: ad.jit(lambda a: a, device=ad.devices()[2])(placed),
        "moved by in_shardings": lambda: ad.jit(lambda a: a, in_shardings=rows)(loose),
        "a result": lambda: ad.jit(lambda a: np.ones(3))(placed),
        "moved by out_shardings": lambda: ad.jit(lambda a: a, out_shardings=rows)(loose),
    }
    for name, call in calls.items():
        with ad.transfer_guard("disallow"), pytest.raises(ad.errors.TransferGuardError, match="jit"):
            call()
        call()
        assert name
    with ad.transfer_guard("disallow_explicit"):
        assert ad.jit(lambda a: 4)(placed).sharding == over(ad.devices())  # a number is a constant
    with ad.transfer_guard("disallow"):
        np.testing.assert_array_equal(np.asarray(ad.jit(lambda a: a * 2, in_shardings=rows)(placed)), X * 2)


def test_a_donated_array_is_passed_once():
    x, y = ad.device_put(X), ad.device_put(X, over(ad.devices(), "x"))
    for call in (
        lambda: ad.jit(lambda a, b: 1, donate_argnums=0)(x, x),
        lambda: ad.jit(lambda a, b: 1, donate_argnums=(0, 1))(y, y),
        lambda: ad.jit(lambda a: 1, donate_argnums=0)([x, {"k": x}]),
        lambda: ad.jit(lambda a, b: 1, donate_argnames="b")(x, b=x),
        lambda: ad.pmap(lambda a, b: a, donate_argnums=0)(y, y),
    ):
        with pytest.raises(RuntimeError, match=r"an Array of shape .* is donated and passed twice"):
            call()
    assert not x.is_deleted()
    assert not y.is_deleted()
    ad.jit(lambda a, b: 1, donate_argnums=0)(x, y)
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match=r"args\[1\] of float32\(8, 4\) was deleted"):
        ad.jit(lambda a, b: 1)(y, x)
