# SPDX-License-Identifier: Apache-2.0
"""Counts instructions of the hot calls with callgrind and compares them with bench/instructions.json.

Counts do not depend on what else the machine does, so they show a few per cent where timings cannot. Each call is
warmed up and then counted alone, between callgrind's client requests, with the loop that calls it subtracted. A count
is the same in each run; addresses, by which Python hashes objects, move it by up to 2 % when paths or sizes change, so
the median over five arrangements of the heap is taken, and their spread is allowed for. A call that takes more than
2 % (or 20 instructions) more than recorded is a failure where interpreter, NumPy, libraries, compiler and C library are
those of the record; elsewhere the numbers are only shown. A call that takes fewer is named, so that the gain can be
recorded.

Example:
    python bench/instructions.py            # compare; status 1 if a call takes over 2 % more instructions
    python bench/instructions.py --update   # write the record
    python bench/instructions.py --call "x + x, 8 shards"
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE / "instructions.json"
TOLERANCE = 0.02
LEAST = 20  # tolerated change in instructions, for calls of a few hundred
SHIFTS = (0, 509, 1013, 3001, 5003)  # numbers of objects created first, which shift the heap
PACKAGES = ("numpy", "greenlet", "ml_dtypes", "pybind11")
# Disables code that is chosen by the CPU model.
BASELINE = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2_Usable,-AVX512F_Usable,-ERMS,-FSRM,-AVX2,-AVX512F,-AVX",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
    "ARTIFEX_DEVICES_COPY_ISA": "baseline",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
}


def conditions() -> dict[str, str]:
    """Conditions that the counts depend on, beside our code."""
    compiler = subprocess.run(["c++", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {
        "machine": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()} {platform.python_compiler()}",
        "libc": " ".join(platform.libc_ver()),
        "compiler": compiler,
        "valgrind": valgrind,
        **{name: importlib.metadata.version(name) for name in PACKAGES if _is_installed(name)},
    }


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def count(chosen: list[str]) -> tuple[dict[str, int], dict[str, float]]:
    """Instructions of one call, by its name, and the relative spread over the arrangements of the heap."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = list(pool.map(lambda shift: count_once(chosen, shift), SHIFTS))
    medians = {name: sorted(run[name] for run in runs)[len(runs) // 2] for name in runs[0]}
    spread = {
        name: (max(run[name] for run in runs) - min(run[name] for run in runs)) / median
        for name, median in medians.items()
    }
    return medians, spread


def count_once(chosen: list[str], shift: int) -> dict[str, int]:
    """The same with one arrangement of the heap."""
    with tempfile.TemporaryDirectory() as folder:
        marks = Path(folder) / "marks.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", marks, HERE / "instruction_marks.c"], check=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
        environment.update(BASELINE)
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
        done = subprocess.run(
            [
                *("setarch", platform.machine(), "-R"),  # addresses determine which hashes collide
                *valgrind,
                *(sys.executable, HERE / "instruction_worker.py", marks, str(shift), *chosen),
            ],
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        if done.returncode:
            sys.exit(f"instructions: the counted program ended with status {done.returncode}:\n{done.stderr[-3000:]}")
        counts = dict(_of_dump(dump) for dump in sorted(Path(folder).glob("counts.*"), key=_number))
    from instruction_worker import CALLS

    del counts["marks"]
    loop = counts.pop("nothing")
    return {name: round((total - loop) / CALLS) for name, total in counts.items()}


def _number(dump: Path) -> int:
    return int(dump.suffix[1:])


def _of_dump(dump: Path) -> tuple[str, int]:
    text = dump.read_text()
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
    total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
    if not name or not total:
        sys.exit(f"instructions: {dump.name} has no total; expected a dump of callgrind")
    return name.group(1), int(total.group(1))


def compare(now: dict[str, int], spread: dict[str, float], recorded: dict[str, int]) -> tuple[list[str], list[str]]:
    """Prints the table; returns the names of the calls above the record, and of those below.

    Tolerance and spread are allowed for. The first list also has calls that are not counted any more, or never were.
    """
    dearer, cheaper = [name for name in recorded if name not in now], []
    print(f"{'call':44} {'instructions':>12} {'recorded':>12} {'change':>8} {'spread':>7}")
    for name, number in now.items():
        before = recorded.get(name)
        change = f"{number / before - 1:+8.1%}" if before else "     new"
        print(f"{name:44} {number:12,} {before or 0:12,} {change} {spread[name]:7.1%}")
        if before is None:
            dearer.append(name)
        elif abs(number - before) > max(LEAST, before * (TOLERANCE + spread[name])):
            (dearer if number > before else cheaper).append(name)
    return dearer, cheaper


def main() -> int:
    """Counts and compares; returns 1 if a count differs from the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the counts to bench/instructions.json")
    parser.add_argument("--call", action="append", default=[], help="only this call; may be repeated")
    options = parser.parse_args()
    missing = [tool for tool in ("valgrind", "cc", "setarch") if not shutil.which(tool)]
    if missing:
        sys.exit(f"instructions: {', '.join(missing)} not found; apt-get install valgrind gcc util-linux")
    sys.path.insert(0, str(HERE))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"conditions": {}, "instructions": {}}
    here = conditions()
    others = {name: (record["conditions"].get(name), value) for name, value in here.items()}
    others = {name: pair for name, pair in others.items() if pair[0] != pair[1]}
    now, spread = count(options.call)
    recorded = {name: record["instructions"].get(name) for name in now} if options.call else record["instructions"]
    dearer, cheaper = compare(now, spread, {name: old for name, old in recorded.items() if old})
    if options.update:
        RECORD.write_text(json.dumps({"conditions": here, "instructions": now}, indent=1) + "\n")
        return 0
    for name, (before, value) in others.items():
        print(f"not compared strictly: {name} is {value}, recorded with {before}")
    if cheaper:
        print(f"more than {TOLERANCE:.0%} below the record: {'; '.join(cheaper)}. Run --update.")
    if dearer:
        print(f"more than {TOLERANCE:.0%} above the record: {'; '.join(dearer)}. If intended, run --update.")
    return 1 if dearer and not others else 0


if __name__ == "__main__":
    sys.exit(main())
