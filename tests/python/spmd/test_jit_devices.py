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


def several(a):
    return a + 1, np.arange(3), 5, ad.device_put(1.5)


def check(results, sharding):
    assert [each.sharding for each in results] == [sharding] * len(results)
    assert all(each.committed for each in results)


def test_all_results_go_to_the_devices_of_committed_arguments():
    third = ad.devices()[3]
    made = ad.jit(several)(ad.device_put(X, third))
    check(made, ad.SingleDeviceSharding(third))
    assert [np.asarray(each).tolist() for each in made[1:]] == [[0, 1, 2], 5, 1.5]
    rows = over(ad.devices(), "x")
    made = ad.jit(lambda *a, **k: several(a[1]))(X, ad.device_put(X, rows), k=1)
    assert made[0].sharding == rows
    check(made[1:], over(ad.devices()))


def test_all_results_go_to_the_devices_of_shardings():
    rows, whole = over(ad.devices(), "x"), over(ad.devices())
    check(ad.jit(several, in_shardings=rows)(X)[1:], whole)
    check(ad.jit(several, in_shardings=(None,), out_shardings=(rows, None, None, None))(X)[1:], whole)
    check(ad.jit(several, device=ad.devices()[2])(X), ad.SingleDeviceSharding(ad.devices()[2]))
    # A result that the function places decides where nothing else does.
    placed, other = ad.jit(lambda a: (ad.device_put(a, rows), 3))(X)
    assert placed.sharding == rows
    check([other], whole)


def test_all_results_go_to_the_mesh_that_is_set():
    for mesh in (over(ad.devices()).mesh, ad.make_mesh((8,), ("x",))):
        # As in JAX, a spec on Explicit axes has an entry for each dimension.
        is_auto = mesh.are_all_axes_auto
        specs = [P() if is_auto else P(*(None,) * ndim) for ndim in (2, 1, 0, 0)]
        for given in (X, ad.device_put(X)):
            with ad.set_mesh(mesh):
                made = ad.jit(several)(given)
            assert [each.sharding for each in made] == [ad.NamedSharding(mesh, spec) for spec in specs]
            assert all(each.committed for each in made)


def test_without_a_placement_results_stay_uncommitted():
    made = ad.jit(several)(X)
    assert [each.sharding for each in made] == [ad.SingleDeviceSharding(ad.devices()[0])] * 4
    assert not any(each.committed for each in made)
    x = ad.device_put(X)
    assert ad.jit(lambda a: a)(x) is x


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


def test_arguments_that_are_sharded_alike_move_to_the_devices_of_in_shardings():
    rows = over(ad.devices(), "x")
    backwards = ad.device_put(X, over(ad.devices()[::-1], "x"))
    made = ad.jit(lambda a: a, in_shardings=rows)(backwards)
    assert made.sharding == rows
    np.testing.assert_array_equal(np.asarray(made), X)
    with pytest.raises(ValueError, match="committed to another sharding"):
        ad.jit(lambda a: a, in_shardings=over(ad.devices(), None, "x"))(ad.device_put(np.ones((8, 8)), rows))


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
