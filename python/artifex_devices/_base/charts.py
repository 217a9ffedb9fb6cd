# SPDX-License-Identifier: Apache-2.0
"""Charts with axes. They need matplotlib."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from artifex_devices._base.checks import wrong_type
from artifex_devices._base.text import wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes

_NOTE_WIDTH = 120  # characters


def axes_for(operation: str, ax: object, title: str, notes: Iterable[str] = ()) -> Axes:
    """Returns axes with a title, and notes below them: `ax`, or for None the axes of a new figure.

    Raises:
        ImportError: matplotlib is not installed; the text has the command that installs it.
        TypeError: `ax` is not an Axes.
    """
    try:
        from matplotlib import axes, pyplot
    except ImportError as error:
        raise ImportError(
            f"{operation}: matplotlib cannot be imported ({error}); expected it for charts with axes; "
            "pip install 'artifex_devices[plots]' installs it"
        ) from error
    if ax is None:
        ax = pyplot.subplots(figsize=(8, 5), layout="constrained")[1]
    if not isinstance(ax, axes.Axes):
        raise wrong_type(operation, "ax", ax, "an Axes of matplotlib", "leave it out for a new figure")
    ax.set_title(title, fontsize="medium", wrap=True)
    lines = [line for note in notes for line in wrapped(note, _NOTE_WIDTH)]
    ax.text(0, -0.16, "\n".join(lines), transform=ax.transAxes, fontsize="x-small", va="top")
    return ax


def svg_text(ax: Axes) -> str:
    """Returns the figure of a chart as the text of an SVG file."""
    from matplotlib import rc_context

    figure: Any = ax.figure
    stream = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "artifex_devices"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
