# SPDX-License-Identifier: Apache-2.0
"""visualize_sharding and visualize_array_sharding: colour where it shows, plain text elsewhere."""

import io
import re
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest

PLAIN = "┌───────┬───────┬───────┬───────┐\n│CPU 0,4│CPU 1,5│CPU 2,6│CPU 3,7│\n└───────┴───────┴───────┴───────┘\n"


def test_plain_text_where_no_colour_shows(named, capsys):
    ad.debug.visualize_sharding((16,), named("y"))
    assert capsys.readouterr().out == PLAIN


def test_an_array_shows_its_sharding(named, capsys):
    ad.debug.visualize_array_sharding(ad.device_put(np.zeros(16), named("y")), use_color=False)
    assert capsys.readouterr().out == PLAIN


def test_in_colour_where_the_output_shows_it(named, capsys, monkeypatch):
    pytest.importorskip("rich", reason="rich is not installed: there is no colour")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ad.debug.visualize_sharding((16,), named("y"))
    text = capsys.readouterr().out
    from rich.text import Text

    assert Text.from_ansi(text).plain.splitlines() == PLAIN.splitlines()
    grounds = ("156;197;226", "217;226;156", "215;156;226", "156;226;194")
    assert re.findall(r"\x1b\[30;48;2;([\d;]+)m", text) == list(grounds)  # black letters, four light grounds
    ad.debug.visualize_sharding((16,), named("y"), use_color=False)
    assert capsys.readouterr().out == PLAIN


def test_a_colour_map_decides(named, capsys, monkeypatch):
    pytest.importorskip("rich", reason="rich is not installed: there is no colour")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    asked = []

    def grey(place):
        asked.append(place)
        return (place, place, place, 1.0)

    ad.debug.visualize_sharding((16,), named("y"), color_map=grey)
    text = capsys.readouterr().out
    assert asked == [0.0, 0.25, 0.5, 0.75]
    assert "\x1b[37;48;2;0;0;0m" in text  # white letters on black
    assert "\x1b[30;48;2;191;191;191m" in text
    # The letters are black on what is brighter than 110 of 255, by the weights of ITU-R BT.601.
    for red, green, blue, letters in (
        (110, 110, 110, 37),
        (111, 111, 111, 30),
        (255, 0, 0, 37),
        (0, 255, 0, 30),
        (0, 0, 255, 37),
    ):
        colour = (red / 255, green / 255, blue / 255, 1.0)
        ad.debug.visualize_sharding((16,), named("y"), color_map=lambda _, colour=colour: colour)
        assert f"\x1b[{letters};48;2;{red};{green};{blue}m" in capsys.readouterr().out
    ad.debug.visualize_sharding((16,), named("y"), color_map=lambda _: (2.0, -1.0, 0.5))  # outside of 0 to 1
    assert "\x1b[37;48;2;255;0;128m" in capsys.readouterr().out


def test_no_color_is_respected(named, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    ad.debug.visualize_sharding((16,), named("y"))
    assert capsys.readouterr().out == PLAIN


def test_without_rich_it_is_plain_text():
    program = (
        "import sys; sys.modules['rich'] = None\n"
        "import artifex_devices as ad\n"
        "with ad.simulate(2):\n"
        "    ad.debug.visualize_sharding((4,), ad.NamedSharding(ad.make_mesh((2,), ('x',)), ad.P('x')))\n"
        "assert not any(name.startswith('rich.') for name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "┌───────┬───────┐\n│ CPU 0 │ CPU 1 │\n└───────┴───────┘\n"


def test_sizes_can_be_chosen(named, capsys):
    def lines(**options):
        ad.debug.visualize_sharding((16, 16), named("x", "y"), use_color=False, **options)
        return capsys.readouterr().out.splitlines()

    usual, big = lines(), lines(scale=2.0)
    assert (len(usual), len(usual[0])) == (11, 33)
    assert (len(big), len(big[0])) == (21, 45)
    assert len(lines(scale=0.01, min_width=12)[0]) == 4 * 10 + 5
    assert max(map(len, lines(scale=50.0, max_width=60))) <= 60


@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_bad_scale_is_refused(named, scale):
    with pytest.raises(ValueError, match="visualize_sharding: scale is"):
        ad.debug.visualize_sharding((16,), named("y"), scale=scale)


def test_a_shape_that_does_not_fit_is_refused(named):
    with pytest.raises(ValueError, match="visualize_sharding"):
        ad.debug.visualize_sharding((3,), named("x"))


def test_what_is_printed_goes_to_the_standard_output_of_now(named, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    ad.debug.visualize_sharding((16,), named("y"))
    assert stream.getvalue() == PLAIN


def test_only_arrays_have_a_sharding_to_show():
    with pytest.raises(TypeError, match=r"visualize_array_sharding: array is .* .ndarray.; expected an Array"):
        ad.debug.visualize_array_sharding(np.ones(3))
