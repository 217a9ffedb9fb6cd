# SPDX-License-Identifier: Apache-2.0
"""The parsers of the subcommands of `plan`, and the argument that names a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line import console
from artifex_devices.command_line.parser import Parser, add_parser
from artifex_devices.command_line.plan.cluster_argument import CLUSTER_FORMS

if TYPE_CHECKING:
    from artifex_devices.models import TransformerShape

MODEL = "MODEL"  # the subcommand of words that name none
MODEL_FORMS = """\
models:
  llama-3-70b, meta-llama/Meta-Llama-3-70B, ...     published models by name or by id on the Hugging Face Hub;
                                                    `artifex_devices plan models` lists them
  config.json                                       file of a Hugging Face model, or its folder
  mine.toml                                         file with layers, embed, mlp, heads, kv_heads, head_dim, vocab;
                                                    optional: name, experts, experts_per_token
  ./models                                          a file or folder with the name of a subcommand or of a model
"""


def add_action(
    actions: Any, name: str, summary: str, examples: str, codes: str, run_action: Callable[..., int]
) -> Parser:
    """Adds the parser of a subcommand, with its examples, the forms of clusters and the exit codes in its help."""
    description = f"{summary[0].upper()}{summary[1:]}."
    exits = f"exit codes: 0 success; {codes}; other codes: artifex_devices --help\n"
    epilog = f"examples:\n{examples}\n{CLUSTER_FORMS}\n{exits}"
    return add_parser(actions, name, summary, description, epilog, run_action=run_action)


def add_run(parser: Parser) -> None:
    """Adds MODEL, --batch and --sequence."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="published name such as llama-3-70b, id on the hub, config.json or TOML file")
    batch = "number of sequences in a step, over all devices"
    add("--batch", type=console.count_of, required=True, metavar="N", help=batch)
    add("--sequence", type=console.tokens_of, required=True, metavar="N", help="tokens in each sequence, such as 8k")


def read_model(text: str) -> TransformerShape:
    """Returns the shape of a MODEL argument."""
    from artifex_devices.planner.shape import shape_of

    with console.usage_errors(OSError, ValueError):
        return shape_of("MODEL", text, "")
