# SPDX-License-Identifier: Apache-2.0
"""Options of `plan train`: the fields of a TrainingConfig, factors of efficiency, the search and its output."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line import console
from artifex_devices.command_line.cluster_argument import add_cluster
from artifex_devices.command_line.plan_model import MODEL_FORMS

TRAIN_EXAMPLES = f"""\
  artifex_devices plan train llama-3.1-405b --batch 2048 --sequence 8192 --cluster "dgx h100 nodes=2048" \\
      --tensor 8 --sequence-parallel --pipeline 16 --zero 1
  artifex_devices plan train llama-2-7b --batch 256 --sequence 4096 --cluster "dgx h100 nodes=4" --search
  artifex_devices plan train config.json --batch 64 --sequence 4096 --cluster "tpu v5e 4x4" --search --zero 2,3 --json
  artifex_devices plan train llama-2-70b --batch 256 --sequence 4096 --cluster "tpu v5e 16x16" --zero 3 \\
      --recompute full --svg pictures/
  artifex_devices plan train llama-2-7b --batch 256 --sequence 4096 --cluster "dgx h100 nodes=4" --search \\
      --code megatron

{MODEL_FORMS}"""

PICTURES = ("waterfall", "memory", "schedule")
_CODES = ("mesh", "jax", "megatron", "maxtext")
_RECOMPUTES = ("none", "selective", "full")
_TENSOR_KINDS = ("embedding", "head", "norm", "attention", "mlp", "router", "expert")
_MANY = "; a list with --search: 1,2,4"


def _listed(read: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    def listed(text: str) -> list[Any]:
        return [read(part.strip()) for part in text.split(",")]

    return listed


def _one_of(*choices: str) -> Callable[[str], str]:
    def one_of(text: str) -> str:
        if text not in choices:
            expected = f"expected one of {', '.join(choices)}"
            raise argparse.ArgumentTypeError(f"{text!r} is not one of them{did_you_mean(text, choices)}; {expected}")
        return text

    return one_of


def _zero(text: str) -> int:
    if text not in ("0", "1", "2", "3"):
        raise argparse.ArgumentTypeError(f"expected a stage of ZeRO, 0 to 3, got {text!r}")
    return int(text)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, got {text!r}")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def _by_name(read: Callable[[str], Any], what: str) -> Callable[[str], dict[str, Any]]:
    """Reads values by name: `data=1,tensor=0.5`."""

    def by_name(text: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, value = (each.strip() for each in part.partition("="))
            if not equals or not name or name in found:
                raise argparse.ArgumentTypeError(f"expected each name once, = and {what}, got {part.strip()!r}")
            found[name] = read(value)
        return found

    return by_name


_numbers = _by_name(_number, "a number")


def add_train(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `plan train`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="published name such as llama-2-7b, TOML file, or config.json")
    batch = "number of sequences in a step, over all devices"
    add("--batch", type=console.count_of, required=True, metavar="N", help=batch)
    add("--sequence", type=console.tokens_of, required=True, metavar="N", help="tokens in each sequence, such as 8k")
    add_cluster(parser)
    _add_fields(parser)
    factors = "factors of efficiency: fitted to training runs (default), published for kernels, or ideal"
    add = parser.add_argument_group("expected seconds").add_argument
    add("--efficiency", type=_one_of("fitted", "published", "ideal"), metavar="KIND", help=factors)
    add("--factor", type=_numbers, metavar="NAME=X,...", help="replace some factors: matmul=0.5,links=0.4")
    measured = "measured seconds of a step, to compare with the expected seconds"
    add("--measured-step", type=_number, metavar="SECONDS", help=measured)
    search = parser.add_argument_group("search").add_argument
    search("--search", action="store_true", help="search all options that you leave out, or give as a list of choices")
    search("--top", type=console.count_of, metavar="N", help="number of options to show (default: 5)")
    inside = "largest tensor parallelism (default: the devices of a node, 8 behind switches, 16 on a torus)"
    search("--max-tensor", type=console.count_of, metavar="N", help=inside)
    search("--memory-headroom", type=_number, metavar="X", help="fraction of the memory to leave free (default: 0.1)")
    counts = "numbers of devices for the Pareto front (default: all, half and a quarter, in whole nodes)"
    search("--device-counts", type=_listed(console.count_of), metavar="N,...", help=counts)
    search("--quiet", action="store_true", help="do not show progress on standard error")
    pictures = "the plan, or with --search the Pareto front, or all pictures if FILE is a folder such as pictures/,"
    output = parser.add_argument_group("output")
    form = console.add_output(output, pictures)
    code = f"print the (best) configuration as code or flags: {', '.join(_CODES)}"
    form.add_argument("--code", type=_one_of(*_CODES), metavar="KIND", help=code)
    picture = f"picture for --svg FILE: {', '.join(PICTURES)} (default: waterfall)"
    output.add_argument("--picture", type=_one_of(*PICTURES), metavar="KIND", help=picture)


def _add_fields(parser: argparse.ArgumentParser) -> None:
    """Adds an option for each field of a TrainingConfig, with the default None for fields that are not given."""
    counts = _listed(console.count_of)
    spread = parser.add_argument_group("spread over devices").add_argument
    spread("--tensor", type=counts, metavar="N", help=f"devices that share each matrix{_MANY}")
    spread("--sequence-parallel", action="store_true", default=None, help="also share the activations between matrices")
    spread("--context", type=counts, metavar="N", help="devices that share each sequence")
    methods = _one_of("ring", "all_to_all", "all_gather")
    spread("--context-method", type=_listed(methods), help="ring (default), all_to_all or all_gather", metavar="KIND")
    spread("--pipeline", type=counts, metavar="N", help="number of pipeline stages (default: 1)")
    schedules = _one_of("1f1b", "gpipe", "interleaved")
    spread("--schedule", type=schedules, help="1f1b (default), gpipe or interleaved", metavar="KIND")
    spread("--chunks", type=counts, metavar="N", help="chunks of layers per stage, for the interleaved schedule")
    spread("--data", type=console.count_of, metavar="N", help="replicas (default: all remaining devices)")
    spread("--zero", type=_listed(_zero), metavar="0..3", help="stage of ZeRO (default: 0)")
    spread("--zero-shards", type=counts, metavar="N", help="devices over which ZeRO shards (default: all)")
    spread("--expert", type=counts, metavar="N", help="devices that share the experts of a layer")
    spread("--expert-tensor", type=console.count_of, metavar="N", help="devices that share an expert (default: 1)")
    imbalance = "load of the busiest experts divided by the mean load (default: 1)"
    spread("--expert-imbalance", type=_number, metavar="X", help=imbalance)
    capacity = "maximum tokens of an expert divided by the mean (default: no limit)"
    spread("--expert-capacity", type=_number, metavar="X", help=capacity)
    padded = "pad each expert's tokens up to its capacity"
    spread("--expert-padding", action="store_true", default=None, help=padded)
    step = parser.add_argument_group("step").add_argument
    step("--microbatch", type=counts, metavar="N", help="sequences that a replica computes at once (default: 1)")
    again = "activations to recompute: none (default), selective or full"
    step("--recompute", type=_listed(_one_of(*_RECOMPUTES)), help=again, metavar="KIND")
    blocks = "recompute some layers of each stage (block, default) or all layers in units (uniform)"
    step("--recompute-method", type=_one_of("block", "uniform"), metavar="KIND", help=blocks)
    numbers = "layers per stage for block (default: all), or per unit for uniform (default: 1)"
    step("--recompute-layers", type=_listed(_whole), metavar="N", help=numbers)
    optimizers = ("adamw-fp32-master", "adam", "adafactor", "muon", "sgd")
    step(
        "--optimizer",
        type=_listed(_one_of(*optimizers)),
        help=f"{optimizers[0]} (default), {', '.join(optimizers[1:])}",
        metavar="KIND",
    )
    formats = ("bfloat16", "float16", "float32", "tensorfloat32", "float8", "int8")
    step("--dtype", type=_one_of(*formats), help="dtype of products (default: bfloat16)", metavar="KIND")
    for kind, default in (("parameter", "bfloat16"), ("gradient", "float32"), ("activation", "bfloat16")):
        step(f"--{kind}-dtype", metavar="DTYPE", help=f"dtype of {kind}s (default: {default})")
    for kind in ("parameter", "gradient"):
        own = f"dtypes of some {kind}s: embedding=bfloat16,norm=float32; kinds: {', '.join(_TENSOR_KINDS)}"
        step(f"--{kind}-dtypes", type=_by_name(str, "a dtype"), metavar="KIND=DTYPE,...", help=own)
    scales = "bytes of scales for each parameter of 8 bits or fewer, such as 0.03125 for MXFP8 (default: 0)"
    step("--parameter-scale", type=_number, metavar="BYTES", help=scales)
    step("--no-flash-attention", dest="flash_attention", action="store_false", default=None, help="store all scores")
    step("--no-causal", dest="causal", action="store_false", default=None, help="also compute masked scores")
    step("--dropout", action="store_true", default=None, help="store the masks of dropout")
    for kind, text in (
        ("optimizer", "keep optimizer state in host memory"),
        ("activations", "keep activations in host memory"),
    ):
        step(f"--offload-{kind}", action="store_true", default=None, help=text)
        never = "do not offload (a search otherwise tries both)"
        step(f"--no-offload-{kind}", dest=f"offload_{kind}", action="store_false", default=None, help=never)
    switches = "let InfiniBand switches sum the gradients (SHARP)"
    step("--sharp", action="store_true", default=None, help=switches)
    overlap = "fraction of each kind of communication to hide: data=1,tensor=0.5"
    step("--overlap", type=_numbers, metavar="KIND=X,...", help=overlap)
