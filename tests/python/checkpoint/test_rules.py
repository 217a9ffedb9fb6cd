# SPDX-License-Identifier: Apache-2.0
"""Rules of conversions, compared with the same operations of NumPy."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
from artifex_devices._core import internal
from artifex_devices.checkpoint import rules
from checkpoint.region_oracle import convert, planned

W = np.arange(24, dtype=np.float32).reshape(4, 6)
LAYERS = {f"layers.{i}.up": W + 100 * i for i in range(12)}


def assert_arrays(result, expected):
    assert sorted(result) == sorted(expected)
    for name, array in expected.items():
        assert result[name].dtype == array.dtype
        np.testing.assert_array_equal(result[name], array)


def test_arrays_without_a_rule_pass_through_and_others_are_renamed():
    result = convert({"a.b": W, "layers.3.up": W + 1}, [rules.rename("layers.{layer}.*", "layers_{layer}/*")])
    assert_arrays(result, {"a.b": W, "layers_3/up": W + 1})


def test_layers_are_transposed_and_stacked_at_a_position():
    made = [rules.transpose("layers.{layer}.up", (1, 0)), rules.stack("layers.{layer}.up", "up", "layer", position=1)]
    expected = np.stack([LAYERS[f"layers.{i}.up"].T for i in range(12)], axis=1)
    assert_arrays(convert(LAYERS, made), {"up": expected})


@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_a_stack_is_divided_into_layers(position):
    stacked = np.moveaxis(np.stack(list(LAYERS.values())), 0, position)
    assert_arrays(convert({"up": stacked}, [rules.unstack("up", "layers.{layer}.up", "layer", position)]), LAYERS)


def test_a_fused_projection_is_divided_by_groups():
    q, k, v = (np.arange(n * 5).reshape(n, 5) + 1000 * n for n in (8, 4, 4))
    groups = [x[i * len(x) // 2 : (i + 1) * len(x) // 2] for i in range(2) for x in (q, k, v)]
    fused = np.concatenate(groups)
    rule = rules.split("{layer}.qkv", ["{layer}.q", "{layer}.k", "{layer}.v"], axis=0, sizes=[8, 4, 4], groups=2)
    parts = {"0.q": q, "0.k": k, "0.v": v}
    assert_arrays(convert({"0.qkv": fused}, [rule]), parts)
    assert_arrays(convert(parts, rules.inverse(rule)), {"0.qkv": fused})


def test_one_axis_becomes_several_and_again_one():
    turned = [rules.unflatten("w", -1, [2, 3]), rules.transpose("w", (0, 2, 1)), rules.flatten("w", -2, [3, 2])]
    expected = W.reshape(4, 2, 3).transpose(0, 2, 1).reshape(4, 6)
    assert_arrays(convert({"w": W}, turned), {"w": expected})
    assert_arrays(convert({"w": expected}, rules.inverse(turned)), {"w": W})


def test_values_are_cast_scaled_dropped_and_added():
    made = [
        rules.scale("w", 0.3),
        rules.cast("w", "float16"),
        rules.drop("old"),
        rules.constant("step", (2,), "int32", -7),
    ]
    expected = {"w": (W * np.float32(0.3)).astype(np.float16), "step": np.full(2, -7, np.int32)}
    assert_arrays(convert({"w": W, "old": W}, made), expected)


def test_names_are_exchanged_within_one_rule():
    assert_arrays(convert({"a.b": W, "b.a": W + 1}, [rules.rename("{x}.{y}", "{y}.{x}")]), {"b.a": W, "a.b": W + 1})


def test_a_cast_and_a_drop_have_no_inverse():
    with pytest.raises(ValueError, match=r"rules.cast\('w', 'float16'\) has no inverse"):
        rules.inverse([rules.rename("a", "b"), rules.cast("w", "float16")])
    with pytest.raises(ValueError, match=r"rules.drop\('w'\) has no inverse"):
        rules.inverse(rules.drop("w"))


def test_the_fields_of_a_rule_have_the_names_of_the_core():
    (inverse,) = internal.inverse_rules([vars(rules.rename("a", "b"))])
    assert list(inverse) == [field.name for field in fields(rules.Rule)]


def test_rules_are_equal_hashable_and_pickled_by_their_fields():
    made = rules.constant("step", (), "bfloat16", 1)
    assert pickle.loads(pickle.dumps(made)) == made
    assert len({made, rules.constant("step", (), "bfloat16", 1.0), rules.drop("step")}) == 2


def test_a_conversion_of_all_layers_reads_each_byte_once():
    plan = planned(LAYERS, [rules.stack("layers.{layer}.up", "up", "layer")])
    assert (plan.bytes_read, plan.bytes_written) == (12 * 96, 12 * 96)
    assert "layers.0.up, ..., layers.11.up (12 arrays)" in plan.text(2, 0)
