# SPDX-License-Identifier: Apache-2.0
"""Parts of a conversion: which boxes of sources a box of a target needs, and what is copied from them."""

import ml_dtypes
import numpy as np
import pytest
from artifex_devices.checkpoint import rules
from checkpoint.region_oracle import box_of, convert, planned

FLOATS = ["float16", "float32", "bfloat16"] + [
    f"float8_{kind}" for kind in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
]
FLOATS += ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
OTHERS = ["float64", "int8", "int64", "uint16", "bool", "complex64", "float8_e8m0fnu", "int4"]


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def bits(array):
    return array.reshape(-1).view(np.uint8)


def assert_equal_values(found, expected):
    """Compares all bits, but those of NaN, whose payload is not defined."""
    assert found.dtype == expected.dtype
    not_a_number = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), not_a_number)
    np.testing.assert_array_equal(bits(found[~not_a_number]), bits(expected[~not_a_number]))


def all_values(name):
    """Returns all values of a small type, else values of all magnitudes and between those of small types."""
    size = dtype(name).itemsize
    if size <= 2:
        exponents = {"float6_e2m3fn": 64, "float6_e3m2fn": 64, "float4_e2m1fn": 16}.get(name, 1 << (8 * size))
        return np.arange(exponents, dtype=f"u{size}").view(dtype(name))
    random = np.random.default_rng(0)
    patterns = random.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    middles = []
    for small in FLOATS:
        if small != "float32":
            with np.errstate(invalid="ignore"):
                numbers = all_values(small).astype(np.float32)
            numbers = np.sort(numbers[np.isfinite(numbers)])
            middle = (numbers[1:] + numbers[:-1]) / 2
            middles += [numbers, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), numbers * 2]
    return np.concatenate([patterns, *middles]).astype(np.float32)


def read_only(shape):
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_casts_round_as_astype(source, target):
    values = all_values(source)
    (found,) = convert({"w": values}, [rules.cast("w", target)]).values()
    if source == target:
        np.testing.assert_array_equal(bits(found), bits(values))
    else:
        assert_equal_values(found, values.astype(dtype(target)))


@pytest.mark.parametrize("name", OTHERS)
def test_other_types_are_cast_by_numpy(name):
    values = np.arange(2 if name == "bool" else 6).astype(np.float32).reshape(2, -1)
    there = [rules.transpose("w", (1, 0)), rules.cast("w", name)]
    (found,) = convert({"w": values}, there).values()
    np.testing.assert_array_equal(bits(found), bits(values.T.astype(dtype(name))))
    if name != "complex64":
        (back,) = convert({"w": found}, [rules.cast("w", "bfloat16")]).values()
        np.testing.assert_array_equal(bits(back), bits(found.astype(ml_dtypes.bfloat16)))


def test_each_change_of_several_is_rounded():
    values = np.linspace(-3, 3, 1001, dtype=np.float32)
    made = [rules.cast("w", "float16"), rules.scale("w", 0.3), rules.cast("w", "float32"), rules.scale("w", 3.0)]
    half = (values.astype(np.float16).astype(np.float32) * np.float32(0.3)).astype(np.float16)
    np.testing.assert_array_equal(convert({"w": values}, made)["w"], half.astype(np.float32) * np.float32(3))


def test_float64_is_scaled_in_float64():
    values = np.array([1 / 3, 2 / 3])
    np.testing.assert_array_equal(convert({"w": values}, [rules.scale("w", 0.1)])["w"], values * 0.1)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "int4", "complex64"])
def test_arrays_that_are_moved_keep_their_bits(name):
    size = dtype(name).itemsize
    patterns = np.random.default_rng(0).integers(0, 256, (6, 40 * size), dtype=np.uint8)
    patterns[:, :size] = 0xFF  # NaN with all bits
    values = patterns.view(dtype(name))
    (found,) = convert({"w": values}, [rules.transpose("w", (1, 0))]).values()
    np.testing.assert_array_equal(bits(found), bits(np.ascontiguousarray(values.T)))


def test_large_arrays_are_cast_and_transposed_in_blocks():
    values = np.arange(300 * 700, dtype=np.float32).reshape(300, 7, 100)
    made = [rules.transpose("w", (2, 0, 1)), rules.cast("w", "bfloat16")]
    found = convert({"w": values}, made)["w"]
    np.testing.assert_array_equal(found, values.transpose(2, 0, 1).astype(ml_dtypes.bfloat16))


def test_a_constant_is_cast_and_fills_its_boxes():
    made = [rules.constant("c", (3, 4), "float32", 1 / 3), rules.cast("c", "bfloat16"), rules.cast("c", "int8")]
    plan = planned({}, made[:2])
    np.testing.assert_array_equal(box_of(plan, 0, {}, (1, 2), (2, 2)), np.full((2, 2), 1 / 3, ml_dtypes.bfloat16))
    np.testing.assert_array_equal(convert({}, made)["c"], np.zeros((3, 4), np.int8))


def test_a_box_needs_only_boxes_of_its_sources():
    layers = {f"x.{i}": np.arange(30.0).reshape(5, 6) + 100 * i for i in range(4)}
    plan = planned(layers, [rules.transpose("x.{layer}", (1, 0)), rules.stack("x.{layer}", "x", "layer", 1)])
    parts = plan.parts(0, (2, 1, 0), (3, 2, 4))
    assert [part[:3] for part in parts] == [("x.1", (0, 2), (4, 3)), ("x.2", (0, 2), (4, 3))]
    stacked = np.stack([layer.T for layer in layers.values()], axis=1)
    np.testing.assert_array_equal(box_of(plan, 0, layers, (2, 1, 0), (3, 2, 4)), stacked[2:5, 1:3, 0:4])


def test_a_part_that_is_its_source_is_known():
    source = {"w": np.zeros((4, 6), np.float32)}
    for rule, expected in (
        ([], True),
        ([rules.unflatten("w", 0, [2, 2])], True),
        ([rules.transpose("w", (1, 0))], False),
        ([rules.scale("w", 2.0)], False),
        ([rules.cast("w", "float16")], False),
    ):
        plan = planned(source, rule)
        ((_, _, _, part),) = plan.parts(0, (0,) * len(plan.targets()[0][1]), plan.targets()[0][1])
        assert part.is_identity is expected
        assert plan.itemsize(0) == 4
    plan = planned(source, [])
    assert [part.is_identity for *_, part in plan.parts(0, (1, 0), (2, 6))] == [True]
    assert [part.is_identity for *_, part in plan.parts(0, (0, 1), (4, 3))] == [True]


def test_rows_of_one_head_are_not_read_with_all_heads():
    """Half a head needs rows 1 apart, and the same half of all heads needs rows a head apart."""
    rows = np.arange(8 * 64 * 4096, dtype=np.float32).reshape(8 * 64, 4096)
    made = [rules.unflatten("w", 0, [8, 2, 32]), rules.transpose("w", (1, 0, 2, 3))]
    plan = planned({"w": rows}, made)
    parts = plan.parts(0, (1, 0, 0, 0), (1, 8, 32, 4096))
    assert [part[1:3] for part in parts] == [((64 * head + 32, 0), (32, 4096)) for head in range(8)]
    assert len(planned({"w": rows[:, :8]}, made).parts(0, (1, 0, 0, 0), (1, 8, 32, 8))) == 1


def test_boxes_and_arrays_that_do_not_fit_are_refused():
    plan = planned({"w": np.zeros((2, 3))}, [])
    with pytest.raises(ValueError, match=r"the box from \(1, 0\) of shape \(2, 3\) is not in w\(2, 3\)"):
        plan.parts(0, (1, 0), (2, 3))
    with pytest.raises(ValueError, match=r"the box from \(-1,\) of shape \(1,\)"):
        plan.parts(0, (-1,), (1,))
    assert plan.parts(0, (2, 0), (0, 3)) == []
    ((_, _, _, part),) = plan.parts(0, (0, 0), (2, 3))
    with pytest.raises(ValueError, match=r"the source is float64\(3, 2\); expected a dense float64\(2, 3\)"):
        part.copy(np.zeros((3, 2)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"the target is float32\(2, 3\); expected a dense float64\(2, 3\)"):
        part.copy(np.zeros((2, 3)), np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="the target is read-only"):
        part.copy(np.zeros((2, 3)), read_only((2, 3)))
