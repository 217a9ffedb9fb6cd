# SPDX-License-Identifier: Apache-2.0
"""Exit codes, parsers, errors, amounts in options, and output of all commands."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.raised_exceptions import context_manager
from artifex_devices._base.text import printable, wrapped
from artifex_devices.command_line.help_text import HelpText, without_details

OK = 0
ATTENTION = 1
USAGE = 2
FAILED = 3
INTERRUPTED = 130
BROKEN_PIPE = 141

SCREEN_LINES = 40
_MOST_EXAMPLES = 4
_MOST_NAMES = 4
_BASIC_GROUPS = ("positional arguments", "options")
_LISTS = "artifex_devices plan suggest --help-all, which lists models and clusters"
# Commands that people try, and what to write.
_WORDS = {
    "models list-models clusters": _LISTS,
    "suggest search memory llama-2-7b llama-2-70b llama-3-8b llama-3-70b mixtral-8x7b deepseek-v3": "artifex_devices "
    "plan suggest llama-2-7b --batch 64 --sequence 4096",
    "run launch exec": "JAX_NUM_CPU_DEVICES=8 python script.py, or mpiexec -n 2 python script.py",
    "bench benchmark measure": "artifex_devices calibrate",
    "devices list": "artifex_devices info",
    "check diagnose": "artifex_devices doctor",
    "convert restore save": "artifex_devices checkpoint --help",
    "trace profile": "artifex_devices timeline --help",
    "hang debug": "artifex_devices flight-record",
}


class UsageError(ValueError):
    """An option or argument is invalid; the text says why, and what to write instead. The exit code is 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose help fits a screen, and whose errors are one line that suggests a correction."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_argument("--help-all", action=_HelpAll, help=argparse.SUPPRESS)
        self.add_argument("--list-models", "--list-clusters", action=_ListNames, help=argparse.SUPPRESS)

    def format_help(self) -> str:
        """Returns the complete help if it fits a screen, otherwise the most important parts of it."""
        complete = self.format_all()
        if complete.count("\n") <= SCREEN_LINES:
            return complete
        shorter = [self._format_short(examples) for examples in range(_MOST_EXAMPLES, 0, -1)]
        return next((text for text in shorter if text.count("\n") <= SCREEN_LINES), shorter[-1])

    def format_all(self) -> str:
        """Returns the complete help."""
        return super().format_help()

    def _format_short(self, examples: int) -> str:
        """Returns the help without the options of titled groups and without details, with some of the examples."""
        formatter = self._get_formatter()
        needed = [action for action in self._actions if action.required or not action.option_strings]
        words = [" ".join((*action.option_strings[-1:], str(action.metavar))) for action in needed if action.required]
        words += [f"[{action.metavar}]" for action in needed if not action.required]
        formatter.add_usage(" ".join(("%(prog)s [options]", *words)), needed, [])
        formatter.add_text(self.description)
        more: list[str] = []
        for group in self._action_groups:
            names = [action.option_strings[-1] for action in group._group_actions if action.option_strings]
            if names and group.title not in _BASIC_GROUPS:
                more.append(
                    f"  {group.title:<20}  {', '.join(names[:_MOST_NAMES])}{', ...' * (len(names) > _MOST_NAMES)}"
                )
                continue
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(
            "\n".join((f"more options ({self.prog} --help-all describes them):", *more)) if more else None
        )
        for part in without_details(self.epilog or "", examples):
            formatter.add_text(part)
        if not more:
            formatter.add_text(f"all options and examples: {self.prog} --help-all")
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Ends with one line on standard error and exit code 2."""
        self.exit(USAGE, f"{self.prog}: error: {message}; {self.prog} --help shows the options\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(each) for each in action.choices]
            command = next((hint for words, hint in _WORDS.items() if value in words.split()), "")
            hint = f"; write {command}" if command else did_you_mean(str(value), names)
            raise argparse.ArgumentError(
                action, f"{value!r} is not one of them{hint}; expected one of {', '.join(names)}"
            )

    def refuse(self, unknown: Sequence[str]) -> None:
        """Ends with a usage error that names the unknown words, if there are any."""
        if unknown:
            hint = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


class _HelpAll(argparse._HelpAction):
    """Prints the complete help and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(parser.format_all() if isinstance(parser, Parser) else parser.format_help(), end="")
        parser.exit()


class _ListNames(argparse._HelpAction):
    """Ends with a usage error that says where names are listed: people try this option."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> NoReturn:
        parser.error(f"{rest[-1]} is not an option; write {_LISTS}")


@context_manager
def usage_errors(*kinds: type[Exception], option: str = "") -> Generator[None, None, None]:
    """Turns errors of these kinds into UsageError, with the option before their text."""
    try:
        yield
    except UsageError:
        raise
    except kinds as error:
        raise UsageError(f"{option}{error}") from None


def add_parser(
    commands: Any, name: str, summary: str, description: str, epilog: str = "", **defaults: Callable[..., int]
) -> Parser:
    """Adds the parser of a command or of a part of it."""
    parser: Parser = commands.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=HelpText
    )
    parser.set_defaults(**defaults, parser=parser)
    return parser


def add_output(parser: argparse._ActionsContainer, picture: str) -> argparse._MutuallyExclusiveGroup:
    """Adds --json and --svg, which exclude each other; returns their group, for other forms of output."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as JSON")
    svg_help = f"draw {picture} as SVG (default FILE: standard output)"
    form.add_argument("--svg", metavar="FILE", nargs="?", const="-", help=svg_help)
    return form


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


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
    return count_of(match[1]) * _UNITS[f"{match[2]}i"]


def bytes_of(text: str) -> int:
    """Parses `4000000`, `4MB` (of a million), `4MiB` (of 2 to the 20th) or `1.5 GB`."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?)?b?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4000000, 4MB or 4MiB, got {text!r}")
    unit = _UNITS[match[2] or ""]
    return round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


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
