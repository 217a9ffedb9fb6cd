# SPDX-License-Identifier: Apache-2.0
"""python -m soak, in tests/: runs random programs for some time; writes a script for each that fails.

--seconds 60, --seed 1 (programs are those of seed, seed + 1, ...), --programs N (at most so many: the same ones on each
machine that is fast enough), --jax (JAX runs the same steps where it has them), --inject MODULE (the worker imports it:
to see that bugs are found), --shrinking 180 (seconds for each failure), --folder for scripts.
"""

import argparse
import collections
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from soak import script
from soak.generator import program_of
from soak.hired import HANG_S, PROGRAM_S, Hired
from soak.shrinking import Shrinker


def count(steps, counts):
    """Kinds of steps, also of those inside others, and the collectives of programs."""
    for step in steps:
        counts[step["kind"]] += 1
        for operation in step.get("body", ()):
            counts[f"lax.{operation[0]}"] += 1
        for inner in step.get("programs", [step["steps"]] if "steps" in step else []):
            count(inner, counts)


def report(program, failure, hired, folder, seed, seconds):
    """Shrinks a failure and writes its script; returns what to print."""
    timeout_s = HANG_S if failure["class"] == "hang" else PROGRAM_S
    shrinker = Shrinker(lambda each: hired.ask(each, timeout_s), failure, seconds)
    again = shrinker.fails(program)
    small = shrinker.shrink(again) if again else program
    if again:
        failure = hired.ask(small) or failure
    library = script.JAX if failure["library"] == script.JAX else script.OURS
    path = folder / f"seed_{seed}.py"
    why = f"Seed {seed}, {failure['class']} in {failure['kind']}: {len(program)} steps made {len(small)}."
    path.write_text(script.standalone(small, library, why), encoding="utf-8")
    try:
        code = subprocess.run(
            [sys.executable, str(path)], capture_output=True, timeout=PROGRAM_S, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        code = f"none within {PROGRAM_S} s"
    lines = [why, failure["text"], f"{shrinker.tried} smaller programs tried; {path}"]
    if not again:
        lines.append("it does not fail alone: it needs what ran before it in the same process")
    elif not hired.words:
        lines.append("the script alone does not fail" if code == 0 else f"the script ends with exit status {code}")
    return "\n".join(lines)


def main():
    """Runs programs until the time is over; exit status 1 if one failed."""
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jax", action="store_true")
    parser.add_argument("--inject")
    parser.add_argument("--shrinking", type=float, default=180)
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parents[2] / "build" / "soak")
    options = parser.parse_args()
    seconds = options.seconds or (60 if options.programs is None else math.inf)
    programs = options.programs or math.inf
    options.folder.mkdir(parents=True, exist_ok=True)
    words = ["--jax"] * options.jax + [f"--inject={options.inject}"] * bool(options.inject)
    hired, counts, failures, reported_s = Hired(words), collections.Counter(), {}, 0
    start, seed = time.monotonic(), options.seed
    while seed - options.seed < programs and time.monotonic() - start < seconds:
        program = program_of(seed)
        count(program, counts)
        failure = hired.ask(program)
        if failure:
            key = (failure["library"], failure["kind"], failure["class"])
            failures.setdefault(key, []).append(seed)
            if len(failures[key]) == 1:
                print(report(program, failure, hired, options.folder, seed, options.shrinking), flush=True)
        seed += 1
        if time.monotonic() - start > reported_s + 60:
            reported_s = time.monotonic() - start
            print(f"{reported_s:.0f} s, seed {seed}, {sum(map(len, failures.values()))} failures", flush=True)
    hired.stop()
    steps = sum(number for kind, number in counts.items() if not kind.startswith("lax."))
    spent = time.monotonic() - start
    print(f"{seed - options.seed} programs, {steps} steps, {spent:.0f} s, seeds {options.seed} to {seed - 1}")
    print("  ".join(f"{kind} {number}" for kind, number in counts.most_common()))
    for key, seeds in failures.items():
        print(f"FAILED {' '.join(key)}: {len(seeds)} programs, seeds {seeds[:20]}")
    if not failures:
        print("nothing failed")
    return 1 if failures else 0


if __name__ == "__main__":
    os.environ.update(script.ENVIRONMENT)
    sys.exit(main())
