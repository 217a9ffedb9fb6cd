# SPDX-License-Identifier: Apache-2.0
"""Assertions on values and shardings: what passes, and the exact text of failures."""

import subprocess
import sys

import artifex_devices as ad
import ml_dtypes
import numpy as np
import pytest
from artifex_devices import NamedSharding, P, testing
from artifex_devices.testing import assert_allclose, assert_same_sharding

X = np.arange(64.0).reshape(8, 8)


def failure_of(assertion, *arguments, **options):
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments, **options)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (X, X),
        (X * (1 + 5e-8), X),
        (np.full((2, 2), 3.0), 3),
        (np.array([np.nan, np.inf, -np.inf]), [np.nan, np.inf, -np.inf]),
        (np.array([1, 2], np.uint8), [1, 2]),
        (np.array([True, False]), [True, False]),
        (np.array([1 + 2j]), [1 + 2j]),
        (np.array([1.5, 2.5], ml_dtypes.bfloat16), np.float32([1.5, 2.5])),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
    ids=str,
)
def test_close_values_pass(actual, expected):
    assert_allclose(actual, expected)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (({"a": X}, X), "actual is {'a': array"),
        ((X, {"a": X}), "expected is {'a': array"),
        ((X, [[1.0], [2.0, 3.0]]), r"expected is [[1.0], [2.0, 3.0]] (list)"),
        (("text", X), "actual is 'text' (str)"),
    ],
    ids=["tree", "expected tree", "ragged", "text"],
)
def test_values_that_are_not_numbers_name_a_comparison_by_leaf(arguments, text):
    with pytest.raises(TypeError, match=r"^assert_allclose: ") as caught:
        assert_allclose(*arguments)
    assert text in str(caught.value)
    assert str(caught.value).endswith("ad.tree.map(assert_allclose, actual, expected)")


def test_trees_are_compared_leaf_by_leaf_as_the_message_says():
    ad.tree.map(assert_allclose, {"a": X, "b": [X]}, {"a": X, "b": [X * (1 + 5e-8)]})
    assert failure_of(ad.tree.map, assert_allclose, {"a": X, "b": [X]}, {"a": X, "b": [X + 1]})[0] == (
        "assert_allclose: 64 of 64 elements differ by more than rtol=1e-07, atol=0.0"
    )


def test_tolerances_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match=r"^assert_allclose: rtol is 'a' \(str\); expected a number; write rtol=1e-5$"):
        assert_allclose(X, X, rtol="a")
    with pytest.raises(TypeError, match=r"^assert_allclose: atol is None \(NoneType\)"):
        assert_allclose(X, X, atol=None)


def test_tolerances_are_those_of_numpy():
    assert_allclose([1.0, 100.0], [1.1, 110.0], rtol=0.1)
    assert_allclose([1.0], [1.5], rtol=0, atol=0.5)
    assert failure_of(assert_allclose, [1.0, 100.0], [1.1, 110.0], rtol=0.0, atol=1.0) == [
        "assert_allclose: 1 of 2 elements differ by more than rtol=0.0, atol=1.0",
        "  1 of 2, most at [1]: got 100.0, expected 110.0; difference 10, relative 0.09091",
    ]
    assert failure_of(assert_allclose, [np.nan], [np.nan], equal_nan=False) == [
        "assert_allclose: 1 of 1 elements differ by more than rtol=1e-07, atol=0.0",
        "  1 of 1, most at [0]: got nan, expected nan",
    ]


@pytest.mark.parametrize(("got", "expected"), [(np.inf, -np.inf), (1.0, np.inf), (np.nan, 1.0), (1.0, np.nan)])
def test_infinities_and_nan_differ_from_other_values(got, expected):
    assert failure_of(assert_allclose, [0.0, got], [0.0, expected], rtol=1e9)[1] == (
        f"  1 of 2, most at [1]: got {got}, expected {expected}"
    )


def test_shapes_must_be_equal(named):
    x = ad.device_put(X, named("x"))
    assert failure_of(assert_allclose, x, X[:4]) == ["assert_allclose: the shape is (8, 8), expected (4, 8)"]


def test_failures_name_the_shard_and_its_largest_difference(named):
    x = ad.device_put(X, named("x", "y"))
    wrong = X.copy()
    wrong[0, 3] += 1
    wrong[5, 6] -= 0.5
    wrong[7, 7] += 63
    assert failure_of(assert_allclose, x, wrong) == [
        "assert_allclose: 3 of 64 elements differ by more than rtol=1e-07, atol=0.0",
        "  cpu:1 [0:4, 2:4]: 1 of 8, most at [0, 3]: got 3.0, expected 4.0; difference 1, relative 0.25",
        "  cpu:7 [4:8, 6:8]: 2 of 8, most at [7, 7]: got 63.0, expected 126.0; difference 63, relative 0.5",
    ]


def test_one_of_several_replicas_is_named(named):
    x = ad.device_put(X, named("x", None))
    assert failure_of(assert_allclose, x, X + 1)[1:] == [
        "  cpu:0 [0:4, 0:8]: 32 of 32, most at [0, 0]: got 0.0, expected 1.0; difference 1, relative 1",
        "  cpu:4 [4:8, 0:8]: 32 of 32, most at [4, 0]: got 32.0, expected 33.0; difference 1, relative 0.0303",
    ]


def test_long_lists_are_shortened():
    with ad.simulate(12):
        x = ad.device_put(np.zeros(12), NamedSharding(ad.make_mesh((12,), ("x",)), P("x")))
        lines = failure_of(assert_allclose, x, 1.0)
    assert len(lines) == 10
    assert lines[8:] == [
        "  cpu:7 [7:8]: 1 of 1, most at [7]: got 0.0, expected 1.0; difference 1, relative 1",
        "  and 4 more shards",
    ]


def test_numbers_of_small_dtypes_are_shown_as_numbers(named):
    x = ad.device_put(np.array([1.5, 2.5], ml_dtypes.bfloat16), named())
    assert failure_of(assert_allclose, x, [1.5, 3.0])[1] == (
        "  cpu:0 [0:2]: 1 of 2, most at [1]: got 2.5, expected 3.0; difference 0.5, relative 0.1667"
    )


def test_equivalent_shardings_pass(named, line):
    x = ad.device_put(X, named("x", None))
    assert_same_sharding(x, x)
    assert_same_sharding(x, P("x"))
    assert_same_sharding(x, named(("x",)))
    assert_same_sharding(ad.ShapeDtypeStruct((8,), "int8"), ad.ShapeDtypeStruct((4,), "int8"))
    assert_same_sharding(ad.device_put(X, NamedSharding(line, P("x"))), named(("x", "y")))


def test_failures_show_the_part_of_each_device(named):
    x = ad.device_put(X, named("x", None))
    assert failure_of(assert_same_sharding, x, P("x", "y"))[:4] == [
        "assert_same_sharding: an array of shape (8, 8) is sharded otherwise",
        "  got P('x', None), expected P('x', 'y')",
        "  cpu:0: got [0:4, 0:8], expected [0:4, 0:2]",
        "  cpu:1: got [0:4, 0:8], expected [0:4, 2:4]",
    ]


def test_failures_show_other_devices_meshes_and_memory_kinds(named, devices):
    x = ad.device_put(X, devices[2])
    assert failure_of(assert_same_sharding, x, ad.SingleDeviceSharding(devices[3])) == [
        "assert_same_sharding: an array of shape (8, 8) is sharded otherwise",
        "  got SingleDeviceSharding(device=CpuDevice(id=2), memory_kind=device), expected "
        "SingleDeviceSharding(device=CpuDevice(id=3), memory_kind=device)",
        "  cpu:2: got [0:8, 0:8], expected nothing",
        "  cpu:3: got nothing, expected [0:8, 0:8]",
    ]
    assert failure_of(assert_same_sharding, x, P("x")) == [
        "assert_same_sharding: the sharding is SingleDeviceSharding(device=CpuDevice(id=2), memory_kind=device), "
        "expected P('x',) on a mesh"
    ]
    pinned = ad.device_put(X, named("x", memory_kind="pinned_host"))
    (_, line) = failure_of(assert_same_sharding, pinned, named("x"))
    assert "memory_kind=pinned_host" in line
    assert "memory_kind=device" in line


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
    assert failure_of(testing.assert_same_bits, got, expected) == [text]


def test_empty_arrays_have_the_same_bits():
    testing.assert_same_bits(np.empty((0, 3)), np.empty((0, 3)))
    assert failure_of(testing.assert_same_bits, np.empty((0, 3)), np.empty((0, 2))) == [
        "got float64(0, 3), expected float64(0, 2)"
    ]


def test_a_sharding_that_does_not_divide_the_shape_is_reported(named):
    lines = failure_of(assert_same_sharding, ad.device_put(np.ones((3, 2)), named()), P("x"))
    assert lines[:2] == [
        "assert_same_sharding: an array of shape (3, 2) is sharded otherwise",
        "  got P(), expected P('x',)",
    ]
    assert "dimension 0 of size 3 is split into 2 parts by mesh axis 'x'" in lines[2]


def test_the_sharding_of_an_array_is_expected(named):
    x = ad.device_put(X, named("x"))
    struct = ad.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    for one in (x, struct):
        for other in (x, struct):
            assert_same_sharding(one, other)
        assert failure_of(assert_same_sharding, ad.device_put(X, named(None, "x")), one)[:3] == [
            "assert_same_sharding: an array of shape (8, 8) is sharded otherwise",
            "  got P(None, 'x'), expected P('x',)",
            "  cpu:0: got [0:8, 0:4], expected [0:4, 0:8]",
        ]


def test_differences_of_complex_numbers_and_from_zero():
    assert failure_of(assert_allclose, np.array([1 + 1j, 2]), np.array([1 + 2j, 2])) == [
        "assert_allclose: 1 of 2 elements differ by more than rtol=1e-07, atol=0.0",
        "  1 of 2, most at [0]: got (1+1j), expected (1+2j); difference 1, relative 0.4472",
    ]
    assert failure_of(assert_allclose, [1.0], [0.0])[1] == "  1 of 1, most at [0]: got 1.0, expected 0.0; difference 1"


def test_other_arguments_are_errors(named):
    with pytest.raises(
        TypeError, match=r"^assert_same_sharding: actual is 3 \(int\); expected an Array; pass an Array"
    ):
        assert_same_sharding(3, P())
    with pytest.raises(
        TypeError,
        match=r"^assert_same_sharding: expected is 'x' \(str\); expected a Sharding, an Array or a PartitionSpec",
    ):
        assert_same_sharding(ad.device_put(X, named("x")), "x")


def test_assertions_do_not_load_hypothesis():
    code = (
        "import sys; from artifex_devices.testing import assert_allclose; print('hypothesis' in sys.modules); "
        "from artifex_devices.testing import arrays, meshes; print(callable(arrays), 'hypothesis' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False", "True", "True"]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'assert_alclose'"):
        _ = testing.assert_alclose
