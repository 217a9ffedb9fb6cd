# SPDX-License-Identifier: Apache-2.0
"""Parsers of commands: help that fits a screen, and errors of one line that suggest a correction."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from artifex_devices._base.nearest_name import did_you_mean, nearest
from artifex_devices.command_line.console import USAGE
from artifex_devices.command_line.help_text import HelpText, without_details

SCREEN_LINES = 40
_MOST_EXAMPLES = 4
_MOST_NAMES = 4
_MOST_TEXT = 200  # characters of a suggested command
_HELP = ("-h", "--help", "--help-all")
_MISSING = "the following arguments are required"  # of argparse
_BASIC_GROUPS = ("positional arguments", "options")
# Commands that people try, and what to write.
_WORDS = {
    "models list-models": "artifex_devices plan models",
    "clusters list-clusters": "artifex_devices plan clusters",
    "suggest search memory train llama-2-7b llama-2-70b llama-3-8b llama-3-70b mixtral-8x7b deepseek-v3": (
        "artifex_devices plan llama-3-70b --cluster '64 x h100' --batch 512 --sequence 8k"
    ),
    "run launch exec": "JAX_NUM_CPU_DEVICES=8 python script.py, or mpiexec -n 2 python script.py",
    "bench benchmark measure": "artifex_devices calibrate",
    "devices list": "artifex_devices info",
    "check diagnose": "artifex_devices doctor",
    "convert restore save compare verify inspect": "artifex_devices checkpoint --help",
    "trace profile": "artifex_devices timeline --help",
    "hang debug": "artifex_devices flight-record",
}


class Parser(argparse.ArgumentParser):
    """A parser whose help fits a screen, and whose errors are one line that suggests a correction.

    Attributes:
        default_command: Subcommand of words that begin with none, or "".
        former_commands: Names of former subcommands, whose words now follow the parser itself.
    """

    default_command = ""
    former_commands: Sequence[str] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_argument("--help-all", action=_HelpAll, help=argparse.SUPPRESS)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses words; words that begin with no subcommand are for the default subcommand."""
        words = list(sys.argv[1:] if args is None else args)
        if self.default_command and words:
            if words[0] in self.former_commands:
                text = shlex.join(words[1:])
                rest = text if text.isprintable() and len(text) < _MOST_TEXT else ""
                again = f"{self.prog} {rest}" if rest else self._first_example()
                self.error(f"{words[0]} was removed; leave it out: {again}")
            commands = self._commands()
            if words[0] not in (*commands, self.default_command, *_HELP):
                if words[0].isalpha() and (command := nearest(words[0], commands)):
                    mistyped = f"{words[0]!r} is not a command (did you mean {command}?)"
                    self.error(f"{mistyped}; for a file of this name write ./{words[0]}")
                words.insert(0, self.default_command)
        return super().parse_known_args(words, namespace)

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

    def _commands(self) -> list[str]:
        """Returns the names of the subcommands other than the default one."""
        actions = next(each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return [name for name in actions.choices if name != self.default_command]

    def _first_example(self) -> str:
        """Returns the first example of this command in the epilog, in one line, or ""."""
        text = (self.epilog or "").partition("examples:\n")[2].replace(" \\\n     ", "")
        command = self.prog.removesuffix(" MODEL")
        found = re.search(rf"^ *({re.escape(command)} .*?)(?: {{2,}}.*)?$", text, re.MULTILINE)
        return found[1] if found else ""

    def _format_short(self, examples: int) -> str:
        """Returns the help without the options of titled groups and without details, with some of the examples."""
        formatter = self._get_formatter()
        needed = [action for action in self._actions if action.required or not action.option_strings]
        words = [" ".join((*action.option_strings[-1:], str(action.metavar))) for action in needed if action.required]
        words += [f"[{action.metavar}]" for action in needed if not action.required]
        formatter.add_usage(self.usage or " ".join(("%(prog)s [options]", *words)), needed, [])
        formatter.add_text(self.description)
        more: list[str] = []
        for group in self._action_groups:
            names = [max(each.option_strings, key=len) for each in group._group_actions if each.option_strings]
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
        """Ends with one line on standard error and exit code 2; for missing arguments it has an example."""
        if message.startswith(_MISSING) and (example := self._first_example()):
            message = f"{message}; write {example}"
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


def add_parser(
    commands: Any, name: str, summary: str, description: str, epilog: str = "", **defaults: Callable[..., int]
) -> Parser:
    """Adds the parser of a command or of a part of it."""
    parser: Parser = commands.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=HelpText
    )
    parser.set_defaults(**defaults, parser=parser)
    return parser
