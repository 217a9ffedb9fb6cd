# SPDX-License-Identifier: Apache-2.0
"""Options of `plan MODEL`: the fields of a TrainingConfig, factors of efficiency, the search, failures and output."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices.command_line import console
from artifex_devices.command_line.plan.actions import MODEL, MODEL_FORMS, add_action, add_run
from artifex_devices.command_line.plan.cluster_argument import add_cluster

_EXAMPLES = f"""\
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k --tensor 8 --pipeline 2 --zero 1
  artifex_devices plan llama-3-70b --cluster "64 x h100" --batch 512 --sequence 8k --tensor 4,8 --dtype float8
  artifex_devices plan llama-3.1-405b --cluster "2048 x dgx h100" --batch 2048 --sequence 8k --tp 8 --pp 16 --zero 1 \\
      --failures --mtbf-hours 3 --save-seconds 30 --restart-seconds 600
  artifex_devices plan config.json --cluster v5e-16 --batch 64 --sequence 4096 --zero 2,3 --json
  artifex_devices plan llama-2-7b --cluster "32 x h100" --batch 256 --sequence 4096 --code megatron
  artifex_devices plan llama-2-70b --cluster v5e-256 --batch 256 --sequence 4096 --zero 3 --recompute full \\
      --svg pictures/

{MODEL_FORMS}"""

#: Fields that a search chooses: with one value of any of them the options describe one configuration.
CHOSEN_BY_SEARCH = (
    "tensor", "sequence_parallel", "context", "context_method", "pipeline", "schedule", "chunks", "data", "zero",
    "zero_shards", "expert", "expert_tensor", "microbatch", "recompute", "recompute_layers", "offload_optimizer",
    "offload_activations",
)  # fmt: skip
SEARCH_ONLY = ("top", "max_tensor", "device_counts")
ONE_ONLY = ("data", "measured_step")

PICTURES = ("waterfall", "memory", "schedule")
_CODES = ("mesh", "jax", "megatron", "maxtext", "torchtitan", "deepspeed")
_RECOMPUTES = ("none", "selective", "full")
_TENSOR_KINDS = ("embedding", "head", "norm", "attention", "mlp", "router", "expert")
_MANY = "; a list searches them: 1,2,4"


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

_FAILURES: dict[str, tuple[Callable[[str], Any], str, str]] = {  # arguments of plan_failures
    "mtbf_hours": (_number, "HOURS", "mean hours between failures of the run"),
    "failure_rate": (_number, "X", "failures of 1,000 devices in a day, instead of --mtbf-hours"),
    "save_seconds": (_number, "SECONDS", "seconds that training stops for a checkpoint"),
    "storage_bandwidth": (console.bytes_of, "BYTES", "bytes per second of the storage, instead of --save-seconds"),
    "restore_seconds": (_number, "SECONDS", "seconds to read a checkpoint (default: as a save)"),
    "restart_seconds": (_number, "SECONDS", "seconds to notice a failure and to start all processes again"),
    "spares": (_whole, "N", "number of spare nodes (default: 0)"),
    "repair_hours": (_number, "HOURS", "hours until a failed node is repaired (default: 24)"),
    "interval_seconds": (_number, "SECONDS", "seconds of work between checkpoints (default: the best)"),
    "days": (_number, "DAYS", "simulated days of each run (default: 30)"),
    "runs": (console.count_of, "N", "number of simulated runs (default: 400)"),
    "seed": (_whole, "N", "seed of the failures (default: 0)"),
}
FAILURE_OPTIONS = tuple(_FAILURES)


def add_model(actions: Any, run_action: Callable[..., int]) -> None:
    """Adds the subcommand and its options."""
    codes = "1 it does not fit in memory; 2 usage error; 3 the cluster lacks a rate that is needed"
    summary = "find the best configuration of a training run, or estimate the one that you describe"
    parser = add_action(actions, MODEL, summary, _EXAMPLES, codes, run_action)
    parser.usage = "%(prog)s --cluster TEXT --batch N --sequence N [options]"
    add_cluster(parser)
    add_run(parser)
    _add_fields(parser)
    factors = "factors of efficiency: fitted to training runs (default), published for kernels, or ideal"
    add = parser.add_argument_group("expected seconds").add_argument
    add("--efficiency", type=_one_of("fitted", "published", "ideal"), metavar="KIND", help=factors)
    add("--factor", type=_numbers, metavar="NAME=X,...", help="replace some factors: matmul=0.5,links=0.4")
    measured = "measured seconds of a step, to compare with the expected seconds"
    add("--measured-step", type=_number, metavar="SECONDS", help=measured)
    search = parser.add_argument_group("search").add_argument
    search("--search", action="store_true", help="search the fields that you leave out, although you give others")
    search("--top", type=console.count_of, metavar="N", help="number of options to show (default: 5)")
    inside = "largest tensor parallelism (default: the devices of a node, 8 behind switches, 16 on a torus)"
    search("--max-tensor", type=console.count_of, metavar="N", help=inside)
    counts = "numbers of devices for the Pareto front (default: all, half and a quarter, in whole nodes)"
    search("--device-counts", type=_listed(console.count_of), metavar="N,...", help=counts)
    search("--quiet", action="store_true", help="do not show progress on standard error")
    _add_failures(parser)
    _add_cost(parser)
    pictures = "the plan, or the Pareto front of a search, or all pictures if FILE is a folder such as pictures/,"
    output = parser.add_argument_group("output")
    form = console.add_output(output, pictures)
    form.add_argument("--details", action="store_true", help="also print rates, factors, sources and what was searched")
    code = f"print the (best) configuration as code or settings of a program: {', '.join(_CODES)}"
    form.add_argument("--code", type=_one_of(*_CODES), metavar="KIND", help=code)
    picture = f"picture for --svg FILE: {', '.join(PICTURES)} (default: waterfall)"
    output.add_argument("--picture", type=_one_of(*PICTURES), metavar="KIND", help=picture)


def _add_failures(parser: argparse.ArgumentParser) -> None:
    """Adds --failures and the arguments of plan_failures."""
    group = parser.add_argument_group("failures").add_argument
    group("--failures", action="store_true", help="also plan checkpoints and failures of the (best) configuration")
    for name, (read, unit, text) in _FAILURES.items():
        group(f"--{name.replace('_', '-')}", type=read, metavar=unit, help=text)


def _add_cost(parser: argparse.ArgumentParser) -> None:
    """Adds the options of days, device-hours and cost of a run."""
    run = parser.add_argument_group("cost of a run").add_argument
    run("--tokens", type=_tokens, metavar="N", help="tokens of the run, such as 15T or 300B")
    run("--price-per-device-hour", type=_number, metavar="PRICE", help="price of one device for an hour, with --tokens")


def _tokens(text: str) -> float:
    from artifex_devices.planner.training import checked_tokens

    try:
        return checked_tokens("--tokens", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).partition(": ")[2]) from None


def _add_fields(parser: argparse.ArgumentParser) -> None:
    """Adds an option for each field of a TrainingConfig, with the default None for fields that are not given."""
    counts = _listed(console.count_of)
    spread = parser.add_argument_group("spread over devices").add_argument
    spread("--tensor", "--tp", type=counts, metavar="N", help=f"devices that share each matrix{_MANY}")
    spread("--sequence-parallel", action="store_true", default=None, help="also share the activations between matrices")
    spread("--context", "--cp", type=counts, metavar="N", help="devices that share each sequence")
    methods = _one_of("ring", "all_to_all", "all_gather")
    spread("--context-method", type=_listed(methods), help="ring (default), all_to_all or all_gather", metavar="KIND")
    balanced = "give each device an early and a late part of a sequence (default except for all_gather)"
    spread("--context-balanced", action="store_true", default=None, help=balanced)
    consecutive = "give each device consecutive tokens of a sequence"
    spread("--no-context-balanced", dest="context_balanced", action="store_false", default=None, help=consecutive)
    spread("--pipeline", "--pp", type=counts, metavar="N", help="number of pipeline stages (default: 1)")
    schedules = _one_of("1f1b", "gpipe", "interleaved")
    spread("--schedule", type=schedules, help="1f1b (default), gpipe or interleaved", metavar="KIND")
    spread("--chunks", type=counts, metavar="N", help="chunks of layers per stage, for the interleaved schedule")
    spread("--data", "--dp", type=console.count_of, metavar="N", help="replicas (default: all remaining devices)")
    spread("--zero", type=_listed(_zero), metavar="0..3", help="stage of ZeRO (default: 0)")
    spread("--zero-shards", type=counts, metavar="N", help="devices over which ZeRO shards (default: all)")
    spread("--expert", "--ep", type=counts, metavar="N", help="devices that share the experts of a layer")
    spread("--expert-tensor", type=console.count_of, metavar="N", help="devices that share an expert (default: 1)")
    imbalance = "load of the busiest experts divided by the mean load (default: 1)"
    spread("--expert-imbalance", type=_number, metavar="X", help=imbalance)
    capacity = "maximum tokens of an expert divided by the mean (default: no limit)"
    spread("--expert-capacity", type=_number, metavar="X", help=capacity)
    padded = "pad each expert's tokens up to its capacity"
    spread("--expert-padding", action="store_true", default=None, help=padded)
    step = parser.add_argument_group("step").add_argument
    step("--microbatch", type=counts, metavar="N", help="sequences that a replica computes at once (default: 1)")
    programs = "program whose defaults are planned: torch, maxtext or megatron (default: what needs most memory)"
    step("--framework", type=_one_of("torch", "maxtext", "megatron"), metavar="KIND", help=programs)
    losses = "plain, chunked or fused (default: the framework's)"
    step("--loss", type=_one_of("plain", "chunked", "fused"), metavar="KIND", help=losses)
    step("--loss-chunks", type=console.count_of, metavar="N", help="chunks of the chunked loss (default: 8)")
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
        help=f"{', '.join(optimizers)} (default: the framework's)",
        metavar="KIND",
    )
    formats = ("bfloat16", "float16", "float32", "tensorfloat32", "float8", "int8")
    step("--dtype", type=_one_of(*formats), help="dtype of products (default: bfloat16)", metavar="KIND")
    framework = "the framework's"
    for kind, default in (("parameter", framework), ("gradient", framework), ("activation", "bfloat16")):
        step(f"--{kind}-dtype", metavar="DTYPE", help=f"dtype of {kind}s (default: {default})")
    for kind in ("parameter", "gradient"):
        own = f"dtypes of some {kind}s: embedding=bfloat16,norm=float32; kinds: {', '.join(_TENSOR_KINDS)}"
        step(f"--{kind}-dtypes", type=_by_name(str, "a dtype"), metavar="KIND=DTYPE,...", help=own)
    scales = "bytes of scales for each parameter of 8 bits or fewer, such as 0.03125 for MXFP8 (default: 0)"
    step("--parameter-scale", type=_number, metavar="BYTES", help=scales)
    step("--no-flash-attention", dest="flash_attention", action="store_false", default=None, help="store all scores")
    kernels = "kernel of attention: native, or flash2 for FlashAttention-2 (default: flash2 with --zero 3)"
    step("--attention-kernel", type=_one_of("native", "flash2"), metavar="KIND", help=kernels)
    step(
        "--no-compiled", dest="compiled", action="store_false", default=None, help="do not fuse elementwise operations"
    )
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
