# SPDX-License-Identifier: Apache-2.0
"""Exit codes, errors, amounts in options, and output of all commands."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.text import parse_bytes, printable, wrapped

OK = 0
ATTENTION = 1
USAGE = 2
FAILED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141


class UsageError(ValueError):
    """An option or argument is invalid; the text says why, and what to write instead. The exit code is 2."""


@context_manager
def usage_errors(*kinds: type[Exception], option: str = "") -> Generator[None, None, None]:
    """Turns errors of these kinds into UsageError, with the option before their text and notes."""
    try:
        yield
    except UsageError:
        raise
    except kinds as error:
        raise UsageError("; ".join((f"{option}{error}", *getattr(error, "__notes__", ())))) from None


def add_output(parser: argparse._ActionsContainer, picture: str) -> argparse._MutuallyExclusiveGroup:
    """Adds --json and --svg, which exclude each other; returns their group, for other forms of output."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    svg_help = f"draw {picture} as SVG (default FILE: standard output)"
    form.add_argument("--svg", metavar="FILE", nargs="?", const="-", help=svg_help)
    return form


def count_of(text: str, most: int | None = None) -> int:
    """Parses a whole number from 1 on; accepts 1,024 and 1_024 too."""
    try:
        value = int(text.replace(",", ""))
    except ValueError:
        value = 0
    if value < 1 or (most is not None and value > most):
        end = "on" if most is None else f"to {most}"
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 {end}, got {text!r}")
    return value


def tokens_of(text: str) -> int:
    """Parses a number of tokens: as count_of, and `8k` or `1m` for 8 times 1024 and 1024 squared."""
    match = re.fullmatch(r"([0-9]+)([km])", text.strip().lower())
    if match is None:
        return count_of(text)
    return count_of(match[1]) * (2**10 if match[2] == "k" else 2**20)


def bytes_of(text: str) -> int:
    """Parses `4000000`, `4MB` (of a million), `4MiB` (of 2 to the 20th) or `1.5 GB`."""
    found = parse_bytes(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4000000, 4MB or 4MiB, got {text!r}")
    return found


def has_signs(signs: str) -> bool:
    """Returns whether standard output can show these signs."""
    try:
        signs.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_text(text: str) -> None:
    """Writes lines to standard output; OSError if it is closed.

    It escapes control characters, and characters that the encoding lacks.
    """
    stream = sys.stdout
    if stream is None:
        raise OSError("standard output is closed")
    encoding = getattr(stream, "encoding", None) or "ascii"
    stream.write(_lines(text).encode(encoding, "backslashreplace").decode(encoding))


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def complain(text: str) -> None:
    """Writes a line to standard error, if it is open; escapes characters that its encoding lacks."""
    if sys.stderr is not None:  # print would take standard output
        with suppress(OSError, ValueError):
            print(_lines(text), file=sys.stderr)


def write_json(command: str, content: Mapping[str, Any]) -> None:
    """Writes the JSON document of a command, in ASCII; docs/formats/command_line.md describes each."""
    document = {"format": f"artifex_devices/{command}/1", **content}
    text = json.dumps(document, indent=2, allow_nan=False)
    write_text(text.replace("\x7f", "\\u007f") + "\n")  # ASCII that json.dumps does not escape


def write_picture(path: str, picture: str) -> None:
    """Writes an SVG picture to a file in UTF-8, to standard output where the path is "-"."""
    if path == "-":
        write_text(picture)
        return
    try:
        Path(path).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path!r} cannot be written ({error.strerror or error}); name a file that can be") from None


def terminal_width() -> int:
    """Returns the columns of the terminal, or of the variable COLUMNS; 0 where standard output goes elsewhere."""
    return shutil.get_terminal_size((0, 24)).columns


def write_lines(lines: Iterable[str]) -> None:
    """Writes lines; a line that is wider than the terminal continues in an indented line."""
    width = terminal_width()
    for line in lines:
        rest = " " * (len(line) - len(line.lstrip()) + 4)
        parts = wrapped(line, width, rest=rest) if len(line) > width > len(rest) else [line]
        write_text("\n".join(parts) + "\n")


def write_plan(plan: Any, arguments: argparse.Namespace) -> None:
    """Writes a plan as --json or --svg ask, without them as text that fits the terminal."""
    if arguments.svg is not None:
        write_picture(arguments.svg, plan.to_svg())
    else:
        write_text(f"{plan.to_json() if arguments.json else format(plan, str(terminal_width()))}\n")


def chart_svg(result: Any) -> str:
    """Returns the chart of a result as the text of an SVG file; matplotlib draws it."""
    from artifex_devices._base.charts import svg_text

    with usage_errors(ImportError):
        return svg_text(result.plot())


def write_mesh(mesh: Any, arguments: argparse.Namespace) -> None:
    """Writes the picture of a mesh on its network, as --svg asks."""
    from artifex_devices.render import placed_mesh_svg

    write_picture(arguments.svg, placed_mesh_svg(mesh))
