# SPDX-License-Identifier: Apache-2.0
"""Iterators without end in place of each argument of the calls of the bad_input tables: none is read without end."""

import ast
import copy
import re
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from bad_input.areas import AREAS
from bad_input.world import names

MOST = 1 << 21  # items that a call may take of an iterator; the library takes half as many at most
DIMENSIONS = 65

LAZY = ("DevicePlacement.prefetch_to_device",)  # takes an item when the consumer does
GOOD = {f"{area}: {calls.name}": calls for area, tables in AREAS.items() for calls in tables if calls.name not in LAZY}


class TookTooMany(BaseException):
    """Not an Exception, so that no handler of the library can suppress it."""


class Endless:
    """An iterator as itertools.repeat(value), which counts the items taken."""

    def __init__(self, value):
        self.value = value
        self.taken = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.taken += 1
        if self.taken > MOST:
            raise TookTooMany
        return self.value


def variants(text):
    """The calls of an expression, each with one argument replaced by `endless`."""
    tree = ast.parse(text, mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for number, call in enumerate(calls):
        for place in range(len(call.args) + len(call.keywords)):
            changed = copy.deepcopy(tree)
            same = [node for node in ast.walk(changed) if isinstance(node, ast.Call)][number]
            name = ast.Name("endless", ast.Load())
            if place < len(call.args):
                if isinstance(call.args[place], (ast.Starred, ast.Lambda)):
                    continue
                same.args[place] = name
            else:
                keyword = same.keywords[place - len(call.args)]
                if keyword.arg is None or isinstance(keyword.value, ast.Lambda):
                    continue
                keyword.value = name
            if isinstance(same.func, ast.Name) and same.func.id in ("list", "tuple", "next"):
                continue  # Python's own functions
            yield ast.unparse(ast.fix_missing_locations(changed))


@pytest.mark.parametrize("name", GOOD)
def test_no_argument_is_read_without_end(name, tmp_path):
    calls = GOOD[name]
    for text in variants(calls.good):
        for value in (1, "x", ad.devices()[0]):
            known = names(tmp_path) | {"endless": (endless := Endless(value))}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    if calls.where:
                        exec(calls.where, known)
                    eval(text, known)
                except (Exception, TookTooMany):
                    pass
            assert endless.taken <= MOST, f"{text} of {value!r}"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x, e: ad.Mesh(ad.devices(), e), "Mesh: axis_names has more than 64 entries"),
        (lambda x, e: ad.make_mesh(e, ("x",)), "make_mesh: axis_shapes has more than 64 entries"),
        (lambda x, e: ad.sharding.AbstractMesh(e, ("x",)), "AbstractMesh: axis_sizes has more than 64 entries"),
        (lambda x, e: x.sharding.shard_shape(e), "shard_shape: global_shape has more than 64 entries"),
        (lambda x, e: ad.ShapeDtypeStruct(e, np.float32), "ShapeDtypeStruct: shape has more than 64 entries"),
        (lambda x, e: ad.make_array_from_callback(e, x.sharding, lambda i: 1), "shape has more than 64 entries"),
        (lambda x, e: x.reshape(e), "reshape: shape has more than 64 entries"),
        (lambda x, e: np.transpose(x, e), "transpose: axes has more than 64 entries"),
        (lambda x, e: np.flip(x, e), "flip: axis has more than 64 entries"),
        (lambda x, e: np.roll(x, 1, e), "roll: axis has more than 64 entries"),
        (lambda x, e: np.squeeze(x, e), "squeeze: axis has more than 64 entries"),
        (lambda x, e: np.sum(x, axis=e), "axis has more than 64 entries"),
        (lambda x, e: np.broadcast_to(x, e), "broadcast_to: shape has more than 64 entries"),
        (lambda x, e: np.zeros_like(x, shape=e), "zeros_like: shape has more than 64 entries"),
        (lambda x, e: np.tile(x, e), "tile: reps has more than 64 entries"),
    ],
)
def test_one_entry_for_each_dimension_is_read_up_to_numpys_limit(call, text):
    x = ad.device_put(np.zeros((2, 2)))
    endless = Endless(1)
    with pytest.raises(ValueError, match=re.escape(text + "; expected at most 64, NumPy's limit of dimensions")):
        call(x, endless)
    assert endless.taken == DIMENSIONS
    with pytest.raises(ValueError, match="65 entries; expected at most 64"):
        call(x, (1,) * 65)
