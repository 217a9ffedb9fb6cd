# SPDX-License-Identifier: Apache-2.0
"""`artifex_devices batch`: batch sizes from a built-in table, and from measuring a function."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import traceback
from typing import Any

from artifex_devices._base.checks import failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.text import rate_text
from artifex_devices.command_line import console, user_function
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.parser import add_parser

SUMMARY = "recommend a batch size, check one, or measure your function"
DESCRIPTION = """\
recommend  recommend sizes for a chip from a built-in table or published numbers, limited by memory
validate   check whether a batch size is good for a chip
measure    find the throughput knee and the memory limit of your own function on this machine"""
EXAMPLES = """\
examples:
  artifex_devices batch recommend                     for this machine
  artifex_devices batch recommend --hardware h100 --bytes-per-example 4MB --free-bytes 80GB
  artifex_devices batch recommend --hardware "NVIDIA H200"  for a chip that only the catalogue has
  artifex_devices batch validate 256 --hardware a100
  artifex_devices batch measure train.py:step         uses make_batch(size) of the same file
  artifex_devices batch measure --help                shows how to write step and make_batch

exit codes: 0 success; 1 the size is not good (validate) or the confidence is low (measure);
            2 usage error, or the function was not found; 3 your function failed; other codes: artifex_devices --help
"""

_RECOMMEND = """\
Recommends batch sizes from a built-in table. For other chips of the catalogue, it computes them from published FLOP/s
and memory bandwidth."""
_MEASURE = """\
Calls your function on batches of growing size. Finds the smallest batch that reaches a share of the best throughput,
and the largest batch that fits in memory. It never creates a batch that it predicts not to fit. It runs the file or
module that you name, so only name code that you trust.

  def make_batch(size):    # train.py: returns a batch of that many examples
      return np.ones((size, 784), np.float32)

  def step(batch):         # the measurement waits for its result
      return model(batch)
"""
_MEASURE_EXAMPLES = """\
examples:
  artifex_devices batch measure train.py:step
  artifex_devices batch measure package.train:step package.data:make_batch --max-seconds 60
  JAX_NUM_CPU_DEVICES=8 artifex_devices batch measure train.py:step --multiple-of 8 --json > found.json

exit codes: 0 success; 1 the confidence is low (the notes say why); 2 the function was not found, or an option is out
            of range; 3 the function failed; other codes: artifex_devices --help
"""
_SOURCE = "built-in table"
_DERIVED_SOURCE = "derived from published FLOP/s and memory bandwidth"
_TYPES = ("tpu_v5e", "tpu_v5p", "tpu_v4", "h100", "a100", "v100", "cpu", "unknown")
_JUDGES = "Compares a batch size with the recommended sizes. The exit code is 1 if the size is not good."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the three subcommands and their options."""
    actions = parser.add_subparsers(title="what to do", metavar="<what>", dest="action", required=True)
    recommend = add_parser(actions, "recommend", "recommend sizes", _RECOMMEND, run_action=_recommend)
    validate = add_parser(actions, "validate", "check a size", _JUDGES, run_action=_validate)
    validate.add_argument("size", type=console.count_of, metavar="SIZE", help="number of examples in a batch")
    validate.add_argument("--strict", action="store_true", help="also fail for sizes below the critical batch size")
    for part in (recommend, validate):
        add = part.add_argument
        names = f"{', '.join(_TYPES)}; or a chip of the catalogue, such as H200 or 'TPU v6e'"
        add("--hardware", metavar="NAME", help=f"{names} (default: this machine)")
        each = "bytes of an example on the device, with activations: 4000000, 4MB, 4MiB"
        add("--bytes-per-example", type=console.bytes_of, metavar="BYTES", help=each)
        state = "bytes that do not depend on the batch, such as parameters (default: 0)"
        add("--state-bytes", type=console.bytes_of, default=0, metavar="BYTES", help=state)
        add("--free-bytes", type=console.bytes_of, metavar="BYTES", help="free memory (default: of this device)")
        add("--json", action="store_true", help="print JSON")

    summary = "measure your own function"
    measure = add_parser(actions, "measure", summary, _MEASURE, _MEASURE_EXAMPLES, run_action=_measure)
    add = measure.add_argument
    add("step", metavar="STEP", help="the function to measure: module:function or path/to/file.py:function")
    other = "function that creates a batch of a given size (default: make_batch in the file of STEP)"
    add("make_batch", metavar="MAKE_BATCH", nargs="?", help=other)
    add("--target", type=float, default=0.9, metavar="SHARE", help="share of the best throughput (default: 0.9)")
    add("--json", action="store_true", help="print all results as JSON")
    add("--quiet", action="store_true", help="do not show progress on standard error")
    add = measure.add_argument_group("sizes and limits").add_argument
    multiple = "only try multiples of N, such as the size of the mesh's data axis"
    add("--multiple-of", type=console.count_of, default=1, metavar="N", help=multiple)
    add("--min", type=console.count_of, metavar="N", help="first size; it runs without a memory prediction")
    add("--max", type=console.count_of, default=1 << 20, metavar="N", help="largest size (default: 1048576)")
    add("--max-seconds", type=float, default=30.0, metavar="S", help="time limit in seconds (default: 30)")
    share = "share of free memory to use (default: 0.9)"
    add("--memory-fraction", type=float, default=0.9, metavar="SHARE", help=share)
    add("--warmup-calls", type=int, default=1, metavar="N", help="untimed calls for each size (default: 1)")
    add("--new-batches", action="store_true", help="create a batch for each call, for steps that donate or change it")


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns the exit code."""
    code: int = arguments.run_action(arguments)
    return code


def _recommend(arguments: argparse.Namespace) -> int:
    hardware, source, advice = _advice(arguments)
    derived = _derived(hardware)
    if arguments.json:
        found = {"hardware": hardware, "source": source, **dataclasses.asdict(advice), "roofline": derived}
        console.write_json("batch", found)
        return console.OK
    lines = [
        f"Batch sizes for {hardware} ({source})",
        f"  minimum   {advice.min_batch_size:>12,}  for reasonable efficiency",
        f"  critical  {advice.critical_batch_size:>12,}  reaches the roofline",
        f"  optimal   {advice.optimal_batch_size:>12,}  peak throughput",
    ]
    if advice.max_memory_batch_size is not None:
        lines.append(f"  memory    {advice.max_memory_batch_size:>12,}  fits, by the bytes that you gave (arithmetic)")
    lines.append(advice.notes)
    if derived is not None:
        lines += [
            f"By the roofline of the {derived['chip']} the critical batch is {derived['critical_batch_size']:,}",
            f"(model: {rate_text(derived['peak_flops'], 'FLOP/s')} {derived['dtype']} over "
            f"{rate_text(derived['memory_bandwidth'], 'B/s')}, both published).",
        ]
    lines.append("`artifex_devices batch measure` measures a function of yours instead.")
    console.write_lines(lines)
    return console.OK


def _derived(hardware: str) -> dict[str, Any] | None:
    """Returns the sizes that follow from published numbers of a chip, or None for hardware without such numbers."""
    from artifex_devices.roofline import accelerator, roofline

    if hardware in ("cpu", "unknown") or hardware not in _TYPES:
        return None  # of other chips the notes say it
    chip = accelerator(hardware)
    dtype = "bfloat16" if "bfloat16" in chip.peak_flops else "float16"
    limits = roofline(chip.name, dtype)
    return {
        "chip": chip.name,
        "dtype": dtype,
        "critical_batch_size": limits.critical_batch_size,
        "critical_batch_from": limits.critical_batch_from.text,
        "peak_flops": limits.peak_flops,
        "memory_bandwidth": limits.memory_bandwidth,
        "sources": [source.title for source in limits.peak_from.sources],
    }


def _validate(arguments: argparse.Namespace) -> int:
    from artifex_devices._hardware.batch_size import validate_batch_size

    hardware, source, advice = _advice(arguments)
    with console.usage_errors(ValueError):
        is_good, message = validate_batch_size(arguments.size, hardware, True)
    if arguments.strict and arguments.size < advice.critical_batch_size:
        is_good = False
    most = advice.max_memory_batch_size
    if most is not None and arguments.size > most:
        is_good = False
        message += f" At most {most} examples fit, by the bytes that you gave."
    if arguments.json:
        found = {"batch_size": arguments.size, "is_good": is_good, "message": message}
        found |= {"hardware": hardware, "source": source, "recommendation": dataclasses.asdict(advice)}
        console.write_json("batch", found)
    else:
        console.write_text(f"{message}\n")
    return console.OK if is_good else console.ATTENTION


def _advice(arguments: argparse.Namespace) -> tuple[str, str, Any]:
    """Returns the hardware's name, the source of its sizes, and the sizes."""
    from artifex_devices._hardware.batch_size import get_batch_size_recommendation

    hardware = _hardware(arguments.hardware)
    each = arguments.bytes_per_example
    if each is None and (arguments.free_bytes is not None or arguments.state_bytes):
        raise UsageError("--free-bytes and --state-bytes say what fits only with --bytes-per-example; give that too")
    try:
        advice = get_batch_size_recommendation(
            hardware, bytes_per_example=each, model_state_bytes=arguments.state_bytes, free_bytes=arguments.free_bytes
        )
    except ValueError as error:
        raise UsageError(str(error).replace("write free_bytes=80 * 10**9", "write --free-bytes 80GB")) from None
    return hardware, _SOURCE if hardware in _TYPES else _DERIVED_SOURCE, advice


def _hardware(wanted: str | None) -> str:
    """Returns the name that advice has for it."""
    from artifex_devices._hardware.batch_size import hardware_name
    from artifex_devices.accelerators import accelerators

    if wanted is None:
        return hardware_name()
    type_name = wanted.strip().lower()
    with contextlib.suppress(ValueError):
        if wanted and wanted.isprintable():
            return hardware_name(type_name if type_name in _TYPES else wanted)
    names = [chip.name for chip in accelerators()]
    raise failure(
        UsageError,
        "--hardware",
        f"{wanted!r} is not known{did_you_mean(wanted, (*_TYPES, *names))}",
        expected=f"one of {', '.join(_TYPES)}, or of the catalogue: {', '.join(names)}",
        fix="leave it out for this hardware",
    )


def _measure(arguments: argparse.Namespace) -> int:
    from artifex_devices.batch_measurement import measure_batch_size

    place, name = user_function.split_name(arguments.step)
    other = user_function.split_name(arguments.make_batch) if arguments.make_batch else (place, "make_batch")
    # Output of the user's code is not part of the answer; where the code fails, its traceback helps.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            step, make_batch = user_function.load_function(place, name), user_function.load_function(*other)
        except (UsageError, KeyboardInterrupt):
            raise
        except BaseException:
            traceback.print_exc()
            return console.FAILED
        try:
            with console.usage_errors(ValueError):  # of the options; errors of the function are results
                found = measure_batch_size(
                    step,
                    make_batch,
                    target=arguments.target,
                    multiple_of=arguments.multiple_of,
                    min_batch_size=arguments.min,
                    max_batch_size=arguments.max,
                    max_seconds=arguments.max_seconds,
                    memory_fraction=arguments.memory_fraction,
                    warmup_calls=arguments.warmup_calls,
                    reuse_batch=not arguments.new_batches,
                    progress=not arguments.quiet,
                )
        except BaseException as error:
            is_expected = isinstance(error, (UsageError, MemoryError, RuntimeError, KeyboardInterrupt))
            if is_expected and not isinstance(error, NotImplementedError):
                raise
            traceback.print_exc()  # a mistake of the function, or sys.exit(), which would end without an answer
            return console.FAILED
    if arguments.json:
        console.write_json("batch", found.to_dict())
    else:
        console.write_text(f"{found}\n")
    return console.ATTENTION if found.confidence == "low" else console.OK
