# SPDX-License-Identifier: Apache-2.0
"""Random rules, applied one by one, all together, and undone."""

import numpy as np
from artifex_devices.checkpoint import rules
from checkpoint.region_oracle import box_of, convert, planned
from hypothesis import given, settings
from hypothesis import strategies as st


def applicable(draw, arrays, number):
    """Draws a rule that fits one of the arrays, or all layers "x.<number>"."""
    layers = [name for name in arrays if name.startswith("x.")]
    if layers and len({arrays[name].shape for name in layers}) == 1 and draw(st.booleans()):
        position = draw(st.integers(0, arrays[layers[0]].ndim))
        return rules.stack("x.{layer}", f"s{number}", "layer", position)
    name = draw(st.sampled_from(sorted(arrays)))
    shape = arrays[name].shape
    kinds = ["rename", "scale"] + (["transpose", "split", "unflatten"] if shape else [])
    kinds += ["unstack"] if shape and not layers else []
    kinds += ["flatten"] if len(shape) > 1 else []
    kind = draw(st.sampled_from(kinds))
    axis = draw(st.integers(-len(shape), len(shape) - 1)) if shape else 0
    new = f"n{number}"
    if kind == "rename":
        return rules.rename(name, new)
    if kind == "scale":
        return rules.scale(name, 2.0)
    if kind == "transpose":
        return rules.transpose(name, draw(st.permutations(range(len(shape)))))
    if kind == "unstack":
        return rules.unstack(name, "x.{layer}", "layer", axis)
    if kind == "flatten":
        axis = draw(st.integers(-len(shape), -2))
        count = draw(st.integers(2, -axis))
        return rules.flatten(name, axis, shape[axis:][:count])
    size = shape[axis]
    factor = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    if kind == "unflatten" or size == factor:
        return rules.unflatten(name, axis, [factor, size // factor])
    first = draw(st.integers(1, size // factor - 1)) * factor
    return rules.split(name, [f"{new}a", f"{new}b"], axis, [first, size - first], groups=factor)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rules_together_do_what_they_do_one_by_one_and_are_undone(data):
    size = data.draw(st.integers(1, 4))
    shape = data.draw(st.permutations([size, 2, 6]))
    source = {"w": np.arange(size * 12, dtype=np.float32).reshape(shape), "v": np.arange(6.0, dtype=np.float32)}
    arrays, made = source, []
    for number in range(data.draw(st.integers(1, 6))):
        made.append(applicable(data.draw, arrays, number))
        arrays = convert(arrays, [made[-1]])
    together = convert(source, made, like=arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(together[name], array)
    plan = planned(source, made)
    for number, (name, shape, _) in enumerate(plan.targets()):
        origin = tuple(data.draw(st.integers(0, size)) for size in shape)
        sizes = tuple(data.draw(st.integers(0, size - begin)) for size, begin in zip(shape, origin, strict=True))
        box = tuple(slice(begin, begin + size) for begin, size in zip(origin, sizes, strict=True))
        np.testing.assert_array_equal(box_of(plan, number, source, origin, sizes), arrays[name][box])
    back = convert(arrays, rules.inverse(made), like=source)
    for name, array in source.items():
        np.testing.assert_array_equal(back[name], array)
