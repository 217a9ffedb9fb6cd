# SPDX-License-Identifier: Apache-2.0
"""The command line: `artifex_devices <command>`, also `python -m artifex_devices <command>`.

A command is a module of this package with `SUMMARY`, `DESCRIPTION`, `EXAMPLES`, `add_arguments(parser)` and
`run(arguments)`, which returns the exit code. To add a command, add its name to `COMMANDS`. Such a module imports only
modules that load fast; `run` imports the rest.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from artifex_devices._base.public_lookup import add_public_lookup
from artifex_devices.command_line.console import (
    BROKEN_PIPE,
    FAILED,
    INTERRUPTED,
    OK,
    USAGE,
    UsageError,
    complain,
)
from artifex_devices.command_line.help_text import HelpText
from artifex_devices.command_line.parser import Parser, add_parser

__all__ = ["COMMANDS", "main", "make_parser"]
add_public_lookup(__name__)

COMMANDS = (
    "info",
    "topology",
    "doctor",
    "batch",
    "plan",
    "calibrate",
    "checkpoint",
    "data",
    "audit",
    "flight-record",
    "timeline",
)
"""The commands in the order of --help; each is a module of this package, with `_` for `-`."""

_EXIT_CODES = """\
exit codes:
  0    success
  1    success, but something needs attention (see the command's --help)
  2    the command was not understood, or a file it names cannot be read
  3    the command failed; standard error has the reason
  130  interrupted by Ctrl-C
  141  the reader of standard output closed it (`| head`)
"""

_EXAMPLES = """\
examples:
  artifex_devices info                              show the devices of this machine
  artifex_devices topology --machine "numa:2 pu:4"  show a machine that you do not own
  artifex_devices doctor                            check this machine and suggest repairs
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k
                                                    find the fastest way to train a model
  artifex_devices audit program step.hlo            show what a compiled program sends
  artifex_devices flight-record                     find out where a job hangs
  artifex_devices topology --help                   show the options of one command
"""


def make_parser() -> Parser:
    """Makes the parser of all commands; `arguments.run` is the function of the chosen command."""
    import artifex_devices

    parser = Parser(
        prog="artifex_devices",
        description="Devices, meshes and sharded arrays for NumPy: describe this machine's devices and plan with them.",
        epilog=f"{_EXAMPLES}\n{_EXIT_CODES}",
        formatter_class=HelpText,
    )
    parser.add_argument("--version", action="version", version=artifex_devices.__version__)
    cmake_help = "print the folder for CMake's artifex_devices_DIR, to use the C++ library, and exit"
    parser.add_argument("--cmake-dir", action="store_true", help=cmake_help)
    commands = parser.add_subparsers(title="commands", metavar="<command>", dest="command")
    for name in COMMANDS:
        command: Any = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
        texts = (command.SUMMARY, command.DESCRIPTION, command.EXAMPLES)
        command.add_arguments(add_parser(commands, name, *texts, run=command.run))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: Words after the program's name, by default the process's own.

    Returns:
        The exit code: 0 done, 1 something needs attention, 2 not understood, 3 failed, 130 Ctrl-C, 141 the reader of
        standard output has closed it.

    Raises:
        SystemExit: --help and --version (0), and options that are not understood (2).

    Example:
        >>> from artifex_devices.command_line import main
        >>> main(["info"])  # doctest: +ELLIPSIS
        Backend: cpu
        ...
        0
    """
    parser = make_parser()
    name = parser.prog
    try:
        chosen, unknown = parser.parse_known_args(arguments)
        getattr(chosen, "parser", parser).refuse(unknown)
        name = f"{parser.prog} {chosen.command}" if chosen.command else parser.prog
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: complain(f"{name}: warning: {message}")
            code = _run(parser, chosen)
        if sys.stdout is None:
            raise OSError("standard output is closed")
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _close_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt as error:
        for note in getattr(error, "__notes__", ()):
            complain(f"{name}: {note}")
        return INTERRUPTED
    except UsageError as error:
        complain(f"{name}: {error}")
        return USAGE
    except Exception as error:  # of a mistake of this package: 1, Python's own code, has another meaning
        is_mistake = not isinstance(error, (OSError, RuntimeError, ValueError, MemoryError))
        text = f"{name}: {str(error) or type(error).__name__}"
        complain(traceback.format_exc().rstrip() if is_mistake else text)
        _close_stdout()
        return FAILED


def _run(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> int:
    if chosen.cmake_dir:
        from importlib import resources

        print(resources.files("artifex_devices") / "cmake")
        return OK
    if chosen.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    return cast(int, chosen.run(chosen))


def _close_stdout() -> None:
    """Closes standard output; otherwise the interpreter would try to flush it again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
