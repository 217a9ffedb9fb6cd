# SPDX-License-Identifier: Apache-2.0
"""XLA's Layout and JAX's: text, checks, copies and conversions."""

import copy
import pickle

import numpy as np
import pytest
from artifex_devices.layout import Layout as JaxLayout
from artifex_devices.xla_client import Layout, PjRtLayout


@pytest.mark.parametrize(
    "text",
    [
        *("", "1,0", "{1,,0}", "{1,0,}", "{1,0", "{1,0}x", "{+1,0}", "{*}", "{\x00}", "{1 0}", "{1,0}}"),
        *("{1,0:T(8,128)(2,1)}", "{1,0:L(8)}", "{1,0:E(4)}", "{1,0:S(1)}", "{1,0:}", "{1,0:D(D,D)}"),
        "{99999999999999999999}",
        "{" + ",".join("0" for _ in range(65)) + "}",
        "{" * 100_000,
    ],
)
def test_other_text_is_refused_in_one_sentence(text):
    with pytest.raises(ValueError, match=r"^Layout.parse: ") as caught:
        Layout.parse(text)
    assert str(caught.value).endswith(
        " is not an order of up to 64 dimensions; expected one such as '{1,0}', without the tiles, element bits, tails "
        "and memory spaces of XLA, which Arrays do not have"
    )
    assert len(str(caught.value)) < 300


def test_the_refusal_quotes_the_text():
    with pytest.raises(ValueError, match=r'^Layout.parse: "{1,0:T\(8,128\)}" is not an order'):
        Layout.parse("{1,0:T(8,128)}")


@pytest.mark.parametrize(
    ("order", "wrong"),
    [
        ((0, 0), "minor_to_major names dimension 0 twice; expected a permutation"),
        ((-1,), "minor_to_major[0] is -1; expected each of 0 to 0 once"),
        ((5, 0), "minor_to_major[0] is 5; expected each of 0 to 1 once"),
        ((3, 0, 0), "minor_to_major[0] is 3; expected each of 0 to 2 once; minor_to_major names dimension 0 twice"),
        ([9] * 9, "minor_to_major[7] is 9; expected each of 0 to 8 once; and 1 more; write Layout((1, 0))"),
        (range(65), "minor_to_major has 65 entries; expected at most 64"),
    ],
)
def test_wrong_orders_are_errors(order, wrong):
    with pytest.raises(ValueError, match=r"^Layout: ") as caught:
        Layout(order)
    assert wrong in str(caught.value)


@pytest.mark.parametrize("order", ["10", 1, (1.5, 0), (True,), None])
def test_wrong_types_are_type_errors(order):
    with pytest.raises(TypeError, match="Layout: "):
        Layout(order)


def test_equality_copies_and_pickles():
    layout = Layout((0, 2, 1))
    assert layout != Layout((1, 0))
    assert layout != "{0,2,1}"
    for again in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), copy.deepcopy(layout)):
        assert again == layout
        assert str(again) == str(layout)
    wrapped = PjRtLayout(layout)
    assert wrapped._xla_layout() == layout
    assert str(wrapped) == str(layout)
    assert wrapped == PjRtLayout(layout) != PjRtLayout(Layout((1, 0)))
    assert hash(wrapped) == hash(PjRtLayout(layout))
    assert eval(repr(wrapped)) == wrapped == pickle.loads(pickle.dumps(wrapped))
    with pytest.raises(TypeError):
        PjRtLayout("{1,0}")


def test_jax_layouts_take_numpys_integers_and_nothing_else():
    layout = JaxLayout(np.argsort([3, 1]))
    assert layout == JaxLayout((1, 0))
    assert [type(n) for n in layout.major_to_minor] == [int] * 2


@pytest.mark.parametrize(
    ("order", "what"),
    [
        (3, "major_to_minor is 3 (int)"),
        (None, "major_to_minor is None (NoneType)"),
        ("10", "major_to_minor is '10' (str)"),
        ((True, False), "major_to_minor[0] is True (bool)"),
        ((1.0, 0), "major_to_minor[0] is 1.0 (float)"),
    ],
)
def test_wrong_types_in_jax_layouts_are_type_errors(order, what):
    with pytest.raises(TypeError, match="expected") as caught:
        JaxLayout(order)
    assert str(caught.value).startswith(f"Layout: {what}; expected ")
    with pytest.raises(TypeError, match=r"is 3 .int.; expected a PjRtLayout"):
        JaxLayout.from_pjrt_layout(3)
