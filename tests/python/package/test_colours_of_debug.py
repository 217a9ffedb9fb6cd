# SPDX-License-Identifier: Apache-2.0
"""Backgrounds and letters of drawn shardings."""

import pytest
from artifex_devices.debug import _own_colour, _style


@pytest.mark.parametrize(
    ("colour", "style"),
    [
        ((0.0, 0.0, 0.0), "white on #000000"),
        ((1.0, 1.0, 1.0, 0.5), "black on #ffffff"),
        ((1.0, 0.0, 0.0), "white on #ff0000"),
        ((0.0, 1.0, 0.0), "black on #00ff00"),
        ((0.0, 0.0, 1.0), "white on #0000ff"),
        ((2.0, -1.0, 0.5), "white on #ff0080"),  # parts outside of 0 to 1
        ((110 / 255, 110 / 255, 110 / 255), "white on #6e6e6e"),
        ((111 / 255, 111 / 255, 111 / 255), "black on #6f6f6f"),
    ],
)
def test_letters_are_black_on_light_colours_only(colour, style):
    assert _style(colour) == style


def test_own_colours_are_light_and_neighbours_differ():
    styles = [_style(_own_colour(float(place))) for place in range(5)]
    assert styles == [f"black on #{colour}" for colour in ("9cc5e2", "d9e29c", "d79ce2", "9ce2c2", "e2ae9c")]
