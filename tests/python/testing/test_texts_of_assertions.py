# SPDX-License-Identifier: Apache-2.0
"""Texts of failed assertions, compared as a whole."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, testing


@pytest.fixture(scope="module")
def world():
    with ad.simulate(2):
        mesh = ad.make_mesh((2,), ("x",))
        yield ad.device_put(np.arange(8.0).reshape(4, 2), ad.NamedSharding(mesh, P("x")))


def text_of(call):
    with pytest.raises(AssertionError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (
            np.float32([1, 2]),
            np.float64([1, 2]),
            "got float32(2,), expected float64(2,)",
        ),
        (np.float32([1, 2]), np.float32([1]), "got float32(2,), expected float32(1,)"),
        (
            np.float32([[1, 2], [3, 4]]),
            np.float32([[1, 2], [5, 6]]),
            "2 of 4 elements differ; first at (1, 0): got 3.0, expected 5.0 (bytes 00004040, 0000a040)",
        ),
    ],
)
def test_bits_that_differ(got, expected, text):
    assert text_of(lambda: testing.assert_same_bits(got, expected)) == text


def test_empty_arrays_have_the_same_bits():
    testing.assert_same_bits(np.empty((0, 3)), np.empty((0, 3)))
    assert text_of(lambda: testing.assert_same_bits(np.empty((0, 3)), np.empty((0, 2)))) == (
        "got float64(0, 3), expected float64(0, 2)"
    )


def test_an_array_on_one_device_has_no_spec(world):
    x = ad.device_put(np.ones(4), ad.devices()[0])
    assert text_of(lambda: testing.assert_same_sharding(x, P("x"))) == (
        f"assert_same_sharding: the sharding is {x.sharding}, expected P('x',) on a mesh"
    )


def test_a_sharding_that_does_not_divide_the_shape_is_reported(world):
    x = ad.device_put(np.ones((3, 2)), ad.NamedSharding(world.sharding.mesh, P()))
    text = text_of(lambda: testing.assert_same_sharding(x, P("x")))
    assert text.startswith(
        "assert_same_sharding: an array of shape (3, 2) is sharded otherwise\n  got P(), expected P('x',)\n  "
    )
    assert "dimension 0 of size 3 is split into 2 parts by mesh axis 'x'" in text


@pytest.mark.parametrize("kind", [ad.Array, ad.ShapeDtypeStruct])
def test_the_sharding_of_an_array_is_expected(world, kind):
    struct = ad.ShapeDtypeStruct(world.shape, world.dtype, sharding=world.sharding)
    expected = world if kind is ad.Array else struct
    testing.assert_same_sharding(world, expected)
    testing.assert_same_sharding(struct, expected)
    other = ad.device_put(np.ones((4, 2)), ad.NamedSharding(world.sharding.mesh, P(None, "x")))
    assert text_of(lambda: testing.assert_same_sharding(other, expected)).splitlines() == [
        "assert_same_sharding: an array of shape (4, 2) is sharded otherwise",
        "  got P(None, 'x'), expected P('x',)",
        "  cpu:0: got [0:4, 0:1], expected [0:2, 0:2]",
        "  cpu:1: got [0:4, 1:2], expected [2:4, 0:2]",
    ]


def test_the_shape_is_compared_first(world):
    assert text_of(lambda: testing.assert_allclose(world, np.ones(3))) == (
        "assert_allclose: the shape is (4, 2), expected (3,)"
    )
    testing.assert_allclose(world * 0, 0)  # one number stands for all


def test_differences_of_complex_numbers():
    assert text_of(lambda: testing.assert_allclose(np.array([1 + 1j, 2]), np.array([1 + 2j, 2]))) == (
        "assert_allclose: 1 of 2 elements differ by more than rtol=1e-07, atol=0.0\n"
        "  1 of 2, most at [0]: got (1+1j), expected (1+2j); difference 1, relative 0.4472"
    )
    assert text_of(lambda: testing.assert_allclose([1.0], [0.0])) == (
        "assert_allclose: 1 of 1 elements differ by more than rtol=1e-07, atol=0.0\n"
        "  1 of 1, most at [0]: got 1.0, expected 0.0; difference 1"
    )
