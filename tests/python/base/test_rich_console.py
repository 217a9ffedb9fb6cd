# SPDX-License-Identifier: Apache-2.0
"""NO_COLOR makes consoles of rich plain."""

import io

import pytest
from artifex_devices._base.rich_console import rich_console

rich_text = pytest.importorskip("rich.text")


@pytest.mark.parametrize("style", ["bold", "dim", "bold red", "on blue"])
def test_no_color_also_means_no_bold_and_dim(style, monkeypatch):
    written = {}
    for value in ("", "1"):  # an empty variable counts as none, by no-color.org
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setenv("TERM", "xterm-256color")
        stream = io.StringIO()
        rich_console(file=stream, force_terminal=True).print(rich_text.Text("words", style=style))
        written[value] = stream.getvalue()
    assert written["1"] == "words\n"
    assert "\x1b[" in written[""]
