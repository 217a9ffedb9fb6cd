# SPDX-License-Identifier: Apache-2.0
"""`plan step` and `plan suggest`: models, rules, costs of a step, and the best shardings."""

from __future__ import annotations

import argparse
import dataclasses
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line import console
from artifex_devices.command_line.cluster_argument import add_cluster, read_cluster
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.mesh_argument import add_mesh, lay_mesh

if TYPE_CHECKING:
    from artifex_devices.models import TransformerShape
    from artifex_devices.planner.step import StepModel


MODEL_FORMS = """\
models:
  llama-2-7b, llama-3-8b, mixtral-8x7b, ...         published shapes (all: artifex_devices.models.SHAPES)
  mine.toml                                         file with layers, embed, mlp, heads, kv_heads, head_dim, vocab;
                                                    optional: name, experts, experts_per_token
  config.json                                       file of a Hugging Face model, or its folder
"""


def _add_model(parser: argparse.ArgumentParser) -> None:
    """Adds MODEL, the options that describe a step of it, and --cluster."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="published name such as llama-2-7b, TOML file, or config.json")
    batch = "number of sequences in a step, over all devices"
    add("--batch", type=console.count_of, required=True, metavar="N", help=batch)
    add("--sequence", type=console.tokens_of, required=True, metavar="N", help="tokens in each sequence, such as 8k")
    add = parser.add_argument_group("step").add_argument
    keep = "activations to keep for the backward pass (default: products)"
    add("--keep", choices=("layers", "products", "all"), default="products", help=keep)
    add("--forward", action="store_true", help="plan a forward step (default: training with Adam)")
    cache = "for decoding with --forward: tokens whose keys and values are cached"
    add("--cache", type=console.tokens_of, metavar="N", help=cache)
    add("--dtype", default="bfloat16", help="dtype of parameters and activations (default: bfloat16)")
    add_cluster(parser)


def read_model(arguments: argparse.Namespace) -> StepModel:
    """Returns the step that the options describe."""
    from artifex_devices.models import Optimizer, transformer

    shape = read_shape(arguments.model)
    with console.usage_errors(TypeError, ValueError):
        return transformer(
            shape,
            batch=arguments.batch,
            sequence=arguments.sequence,
            keep=arguments.keep,
            optimizer=None if arguments.forward else Optimizer(8),
            cache=arguments.cache or 0,
            dtype=arguments.dtype,
        )


def read_shape(text: str) -> str | TransformerShape:
    """Returns the name of a published shape in small letters, or the shape of a file."""
    from artifex_devices.models import SHAPES, from_hf_config

    if text.endswith(".toml"):
        return _shape_of_file(text)
    if text.endswith(".json") or (text.lower() not in SHAPES and _has_config(text)):
        with console.usage_errors(ValueError, option="MODEL: "):
            return from_hf_config(text)
    if text.lower() in SHAPES:
        return text.lower()
    raise failure(
        UsageError,
        "MODEL",
        f"{text!r} is not a published shape{did_you_mean(text, SHAPES)}",
        expected=f"one of {', '.join(SHAPES)}, a .toml file or a config.json",
        fix="see the end of --help",
    )


def _has_config(text: str) -> bool:
    with suppress(OSError, ValueError):  # too long, or with a null character
        return (Path(text) / "config.json").is_file()
    return False


def _shape_of_file(path: str) -> TransformerShape:
    from artifex_devices._base.toml import all_mistakes, key_text, line_text, read_toml, unprintable
    from artifex_devices.models import TransformerShape

    with console.usage_errors(OSError, ValueError):
        entries, text = read_toml("MODEL", path)
    texts = ("source", "notes", "parameter_bytes")
    fields = {field.name: field for field in dataclasses.fields(TransformerShape) if field.name not in texts}
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
    with console.usage_errors(ValueError, option=f"MODEL: in {path}: "):
        return TransformerShape(**{"name": Path(path).stem, **entries}, source=path)


def read_rules(text: str) -> dict[str, tuple[str, ...]]:
    """Reads mesh axes by logical axis: `batch=data,embed=data+model`."""
    found: dict[str, tuple[str, ...]] = {}
    for part in (each.strip() for each in text.split(",")):
        logical, equals, axes = (each.strip() for each in part.partition("="))
        names = tuple(axis.strip() for axis in axes.split("+"))
        if not equals or not logical or not all(names) or logical in found:
            raise failure(
                UsageError,
                "--rules",
                f"{part!r} is not a rule",
                expected="each logical axis once, =, and mesh axes joined by +",
                fix="write batch=data,embed=data+model",
            )
        found[logical] = names
    return found


STEP_EXAMPLES = f"""\
  artifex_devices plan step llama-2-7b --batch 64 --sequence 4096 --cluster "tpu v5p 4x4x4" --mesh data=16,model=4 \\
      --rules batch=data,embed=data,mlp=model,kv_heads=model,vocab=model
  artifex_devices plan step llama-3-8b --batch 16 --sequence 1 --forward --cache 8192 --cluster "dgx h100" \\
      --mesh model=8 --rules kv_heads=model,mlp=model,vocab=model --json

{MODEL_FORMS}"""
SUGGEST_EXAMPLES = f"""\
  artifex_devices plan suggest llama-2-7b --batch 256 --sequence 4096 --cluster "tpu v5e 16x16"
  artifex_devices plan suggest llama-2-70b --batch 128 --sequence 4096 --cluster "tpu v5p 8x8x8" --top 3 --max-axes 3
  artifex_devices plan suggest mine.toml --batch 32 --sequence 2048 --cluster lab.toml --axes batch,embed,mlp --json

{MODEL_FORMS}"""


def add_step(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plan step`, except for the output."""
    _add_model(parser)
    add_mesh(parser, required=True)
    rules = "mesh axes that shard each logical axis: batch=data,embed=data+model,mlp=model"
    parser.add_argument("--rules", metavar="LOGICAL=AXIS,...", required=True, help=rules)


def add_suggest(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plan suggest`, except for the output."""
    _add_model(parser)
    add = parser.add_argument
    add("--top", type=console.count_of, default=5, metavar="N", help="number of options to show (default: 5)")
    add("--max-axes", type=console.count_of, default=2, metavar="N", help="most axes of a mesh, 1 to 4 (default: 2)")
    add("--axes", metavar="LOGICAL,...", help="logical axes that rules may shard (default: all axes of products)")
    add("--no-overlap", action="store_true", help="rank steps as if communication and computation did not overlap")
    add("--quiet", action="store_true", help="do not show progress on standard error")


def run_step(arguments: argparse.Namespace) -> int:
    """Writes the plan of a step; 1 if it does not fit."""
    from artifex_devices.planner import plan_step

    cluster = read_cluster(arguments.cluster, arguments.measured)
    model, rules = read_model(arguments), read_rules(arguments.rules)
    mesh = lay_mesh(cluster, arguments)
    with console.usage_errors(TypeError, ValueError):
        plan = plan_step(model, mesh, rules)
    if arguments.svg is None:
        console.write_plan(plan, arguments)
    else:
        console.write_picture(arguments.svg, console.chart_svg(plan))
    return console.OK if plan.fits else console.ATTENTION


def run_suggest(arguments: argparse.Namespace) -> int:
    """Writes the suggestions; 1 if none fits."""
    from artifex_devices.planner import suggest

    cluster = read_cluster(arguments.cluster, arguments.measured)
    model = read_model(arguments)
    axes = None if arguments.axes is None else [axis.strip() for axis in arguments.axes.split(",")]
    options = {"overlap": not arguments.no_overlap, "progress": not arguments.quiet}
    with console.usage_errors(ValueError):
        found = suggest(model, cluster, arguments.top, max_axes=arguments.max_axes, axes=axes, **options)
        if not found.fits and arguments.keep != "layers" and not arguments.forward:
            less = read_model(argparse.Namespace(**vars(arguments) | {"keep": "layers"}))
            if suggest(less, cluster, 1, max_axes=arguments.max_axes, axes=axes, **options).fits:
                found = dataclasses.replace(found, fits_with=("keep='layers'", *found.fits_with))
    if arguments.svg is None:
        console.write_plan(found, arguments)
    elif found.options:
        console.write_mesh(found.options[0].mesh, arguments)
    else:
        why = "nothing fits in memory: there is no best option to draw; omit --svg to see the nearest options"
        console.complain(f"artifex_devices plan: {why}")
    return console.OK if found.fits else console.ATTENTION
