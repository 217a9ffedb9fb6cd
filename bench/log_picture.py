# SPDX-License-Identifier: Apache-2.0
"""Curves on two logarithmic axes as SVG text for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 68, 16, 64, 48
COLOURS = ("#3b82f6", "#e07b00", "#2e9e5b", "#8b6fd6")  # of medium brightness
LIMIT = "#8b949e"
STYLE = (
    "svg:root{color:#1f2328;background:#ffffff}"  # a page may be light where the system is dark
    "@media (prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#0d1117}}"
)


@dataclass(frozen=True)
class Curve:
    """One line: points of (x, median, first quartile, third quartile), all above 0."""

    label: str
    points: Sequence[tuple[float, float, float, float]]
    is_limit: bool = False  # dashed and grey


class _Axis:
    """Places numbers on a logarithmic axis from pixel `begin` to pixel `end`."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high = math.log10(low), math.log10(high)
        self.begin, self.end = begin, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / ((self.high - self.low) or 1.0)
        return self.begin + share * (self.end - self.begin)


def log_picture(title: str, x_label: str, x_ticks: Sequence[tuple[float, str]], curves: Sequence[Curve]) -> str:
    """The picture; y is in seconds.

    Args:
        title: Over the picture.
        x_label: What x is.
        x_ticks: Where x has a label, and which.
        curves: In the order of the legend; the colours go by it.
    """
    x_values = [point[0] for curve in curves for point in curve.points]
    y_values = [value for curve in curves for point in curve.points for value in point[1:]]
    low, high = 10.0 ** math.floor(math.log10(min(y_values))), 10.0 ** math.ceil(math.log10(max(y_values)))
    x_axis = _Axis(min(x_values), max(x_values), LEFT + 12, WIDTH - RIGHT - 12)
    y_axis = _Axis(low, high if high > low else 10 * low, HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img" font-family="system-ui, sans-serif" font-size="12" fill="currentColor" '
        'style="max-width:100%;height:auto">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        _text(LEFT, 20, title, "start", 'font-size="14" font-weight="600"'),
        *_grid(x_axis, y_axis, x_ticks, low, high),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_label, "middle"),
    ]
    at = float(LEFT)
    for number, curve in enumerate(curves):
        colour = LIMIT if curve.is_limit else COLOURS[number % len(COLOURS)]
        parts += _drawn(curve, colour, number, x_axis, y_axis)
        parts += [_line(at, 42, at + 22, 42, colour, curve.is_limit), _marker(at + 11, 42, colour, number, curve)]
        parts.append(_text(at + 28, 46, curve.label, "start"))
        at += 44 + 6.6 * len(curve.label)
    return "\n".join(part for part in [*parts, "</svg>"] if part) + "\n"


def _grid(x_axis: _Axis, y_axis: _Axis, x_ticks: Sequence[tuple[float, str]], low: float, high: float) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.45"/>'
    ]
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        y = y_axis.at(10.0**exponent)
        parts.append(_rule(LEFT, y, right, y))
        parts.append(_text(LEFT - 8, y + 4, _seconds(exponent), "end"))
    for value, label in x_ticks:
        x = x_axis.at(value)
        parts.append(_rule(x, TOP, x, bottom))
        parts.append(_text(x, bottom + 18, label, "middle"))
    return parts


def _drawn(curve: Curve, colour: str, number: int, x_axis: _Axis, y_axis: _Axis) -> list[str]:
    """The line, its markers, and between the quartiles a band."""
    at = [(x_axis.at(x), *(y_axis.at(value) for value in values)) for x, *values in curve.points]
    parts = []
    if not curve.is_limit and len(at) > 1:
        edge = [(x, high) for x, _, _, high in at] + [(x, low) for x, _, low, _ in reversed(at)]
        parts.append(f'<polygon points="{_points(edge)}" fill="{colour}" fill-opacity="0.18"/>')
    dash = ' stroke-dasharray="5 4"' if curve.is_limit else ""
    line = _points([(x, y) for x, y, _, _ in at])
    parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    parts += [_marker(x, y, colour, number, curve) for x, y, _, _ in at]
    return parts


def _marker(x: float, y: float, colour: str, number: int, curve: Curve) -> str:
    """A shape for each line, for readers who cannot distinguish the colours."""
    if curve.is_limit:
        return ""
    if number % 3 == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    if number % 3 == 1:
        return f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" fill="{colour}"/>'
    corners = [(x, y - 4.5), (x - 4, y + 3), (x + 4, y + 3)]
    return f'<polygon points="{_points(corners)}" fill="{colour}"/>'


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashed: bool) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" stroke="{colour}" stroke-width="2"{dash}/>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="currentColor" stroke-opacity="0.15"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    attributes = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"' + (f" {more}" if more else "")
    return f"<text {attributes}>{escape(text)}</text>"


def _seconds(exponent: int) -> str:
    for least, unit in ((0, "s"), (-3, "ms"), (-6, "µs"), (-9, "ns")):
        if exponent >= least:
            return f"{10 ** (exponent - least)} {unit}"
    return f"1e{exponent} s"
