# SPDX-License-Identifier: Apache-2.0
"""Models and rules of `plan step` and `plan suggest`: a published name or a TOML file; `batch=data,mlp=model`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from artifex_devices.command_line.amounts import count_of
from artifex_devices.command_line.exit_codes import UsageError

if TYPE_CHECKING:
    from artifex_devices.models import TransformerShape
    from artifex_devices.planner.step_model import StepModel

MODEL_FORMS = """\
models:
  llama-2-7b, llama-3-8b, mixtral-8x7b, ...         published shapes (artifex_devices.models.SHAPES has all)
  mine.toml                                         layers, embed, mlp, heads, kv_heads, head_dim, vocab; name, experts,
                                                    experts_per_token
"""

_KEEPS = ("layers", "products", "all")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Adds MODEL and the options that describe a step of it."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a published name or a TOML file, see below")
    add("--batch", type=count_of, required=True, metavar="N", help="number of sequences in a step, over all devices")
    add("--sequence", type=count_of, required=True, metavar="N", help="number of tokens in each sequence")
    add("--keep", choices=_KEEPS, default="products", help="activations kept for the backward pass (default: products)")
    add("--forward", action="store_true", help="plan a forward step (default: training with Adam)")
    add(
        "--cache",
        type=count_of,
        metavar="N",
        help="of a forward step: tokens whose keys and values exist already (decoding)",
    )
    add("--dtype", default="bfloat16", help="of parameters and activations (default: bfloat16)")


def read_model(arguments: argparse.Namespace) -> StepModel:
    """Returns the step that the options describe.

    Raises:
        UsageError: The model is unknown, or the options are inconsistent.
    """
    from artifex_devices.models import Optimizer, transformer

    shape = _shape(arguments.model)
    try:
        return transformer(
            shape,
            batch=arguments.batch,
            sequence=arguments.sequence,
            keep=arguments.keep,
            optimizer=None if arguments.forward else Optimizer(8),
            cache=arguments.cache or 0,
            dtype=arguments.dtype,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _shape(text: str) -> str | TransformerShape:
    from artifex_devices._base.nearest_name import did_you_mean
    from artifex_devices.models import SHAPES

    if text.endswith(".toml"):
        return _shape_of_file(text)
    if text.lower() in SHAPES:
        return text.lower()
    raise UsageError(
        f"MODEL: {text!r} is not a published shape{did_you_mean(text, SHAPES)}; expected one of {', '.join(SHAPES)}, "
        "or a .toml file; see the end of --help"
    )


def _shape_of_file(path: str) -> TransformerShape:
    from artifex_devices._base.nearest_name import did_you_mean
    from artifex_devices._base.toml import all_mistakes, key_text, line_text, read_toml, unprintable
    from artifex_devices.models import TransformerShape

    try:
        entries, text = read_toml("MODEL", path)
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    fields = {field.name: field for field in dataclasses.fields(TransformerShape) if field.name != "source"}
    wrong = []
    for key, value in entries.items():
        kind = str if key == "name" else int
        if key not in fields:
            wrong.append(f"{line_text(text, key)}{key_text(key)} is not a key{did_you_mean(key, fields)}")
        elif not isinstance(value, kind) or isinstance(value, bool):
            wanted = "a string" if kind is str else "an integer"
            wrong.append(f"{line_text(text, key)}{key} is {value!r}; expected {wanted}")
        else:
            wrong += unprintable(value, text, key)
    needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING and name != "name"]
    wrong += [f"{name} is missing" for name in needed if name not in entries]
    if wrong:
        raise UsageError(f"MODEL: in {path}: {all_mistakes(wrong)}; expected {', '.join(fields)}; correct the file")
    try:
        return TransformerShape(**{"name": Path(path).stem, **entries}, source=path)
    except ValueError as error:
        raise UsageError(f"MODEL: in {path}: {error}") from None


def read_rules(text: str) -> dict[str, tuple[str, ...]]:
    """Reads mesh axes by logical axis: `batch=data,embed=data+model`.

    Raises:
        UsageError: The text is not such a list.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in (each.strip() for each in text.split(",")):
        logical, equals, axes = (each.strip() for each in part.partition("="))
        names = tuple(axis.strip() for axis in axes.split("+"))
        if not equals or not logical or not all(names) or logical in found:
            raise UsageError(
                f"--rules: {part!r} is not a rule; expected each logical axis once, =, and mesh axes joined by +; "
                "write batch=data,embed=data+model"
            )
        found[logical] = names
    return found
