# SPDX-License-Identifier: Apache-2.0
"""Measures artifex_devices and its peers on the same 8 CPU devices in the same run.

Each peer and family runs in a process of its own; peers take turns, `--rounds` times, so that a slow minute of the
machine hits all of them. Prints medians with spread, ratios and the machine's own copy limit; `--json` keeps all.

Example:
    python bench/run.py --against jax,numpy --family put,get --json out.json
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FAMILIES = (
    "import",
    "put",
    "get",
    "reshard",
    "copies",
    "eager",
    "functions",
    "spmd",
    "participants",
    "executors",
    "prefetch",
    "mesh",
    "answers",
    "many",
    "threads",
    "roofline",
    "checkpoints",
    "conversions",
    "input",
)
MODULES = {"import": "importing", "functions": "numpy_functions"}
PEERS = ("jax", "numpy", "orbax", "grain", "torch")
PACKAGES = {"jax": "jax", "orbax": "orbax", "grain": "grain", "torch": "torch"}  # of peers that may be missing
ONLY = {  # families of a peer; others: all
    "orbax": ("checkpoints", "conversions"),
    "grain": ("input",),
    "torch": ("conversions", "input"),
}
DEVICES = {"many": 4096, "participants": 1024, "spmd": 256}  # others: 8


def parse(
    description: str, arguments: list[str] | None, families: Iterable[str], file: Path | None
) -> argparse.Namespace:
    """The command line of this script and of curves.py, by their families and the file that they write by default."""
    known = tuple(families)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--against", default="jax,numpy", help="peers, by comma: jax, numpy, orbax, grain, torch; empty for none"
    )
    parser.add_argument("--family", default=",".join(known), help=f"families, by comma: {', '.join(known)}")
    parser.add_argument("--json", type=Path, default=file, help="file for the numbers")
    parser.add_argument(
        "--jax-python",
        default="",
        help="an interpreter that has jax, orbax, grain or torch; default: this one, if it has them",
    )
    parser.add_argument("--rounds", type=int, default=2, help="number of turns of each peer")
    parser.add_argument("--quick", action="store_true", help="few repeats, one round, to test the script")
    options = parser.parse_args(arguments)
    options.against = [name for name in options.against.split(",") if name]
    options.family = [name for name in options.family.split(",") if name]
    for names, expected, what in ((options.against, PEERS, "--against"), (options.family, known, "--family")):
        unknown = sorted(set(names) - set(expected))
        if unknown:
            parser.error(f"{what}: {', '.join(unknown)} is not known; expected some of {', '.join(expected)}")
    return options


def interpreter(peer: str, options: argparse.Namespace) -> str | None:
    """The Python that runs a peer, or None where its package is missing."""
    package = PACKAGES.get(peer)
    if package is None:
        return sys.executable
    if not options.jax_python:
        return sys.executable if importlib.util.find_spec(package) else None
    return str(options.jax_python) if has_package(str(options.jax_python), package) else None


@functools.cache
def has_package(python: str, package: str) -> bool:
    """Whether an interpreter has a package."""
    program = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", program], check=False).returncode == 0


def run_worker(python: str, peer: str, family: str, quick: bool, devices: int) -> tuple[list[dict[str, Any]], str, str]:
    """Returns rows, version and the problem, if any."""
    command = [python, str(HERE / "worker.py"), peer, MODULES.get(family, family)]
    command += ["--devices", str(devices)] + (["--quick"] if quick else [])
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=1800)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    problem = ""
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        problem = f"{peer}, family {family}: ended with status {done.returncode}: {last}"
    version = next((line["version"] for line in lines if "version" in line), "")
    return [line for line in lines if "name" in line], version, problem


def collect(options: argparse.Namespace) -> dict[str, Any]:
    """Runs all families and peers."""
    sys.path.insert(0, str(HERE))
    from machine import copy_limits, machine_facts, raised
    from measure import summary

    peers = ["ours", *options.against]
    problems: list[str] = []
    for peer in options.against:
        if interpreter(peer, options) is None:
            problems.append(
                f"{peer} is not installed here and was left out; give --jax-python PATH of a Python with it"
            )
    peers = [peer for peer in peers if interpreter(peer, options)]
    facts = machine_facts(quick=options.quick)
    limits: dict[str, float] = {}
    rows: dict[str, dict[str, Any]] = {}
    versions: dict[str, str] = {}
    for family in options.family:
        limits = raised(limits, copy_limits(quick=options.quick))
        for turn in range(1 if options.quick else options.rounds):
            for peer in peers if turn % 2 == 0 else peers[::-1]:
                if family not in ONLY.get(peer, (family,)):
                    continue
                print(f"{family}: {peer}, round {turn + 1}", file=sys.stderr, flush=True)
                python = interpreter(peer, options)
                assert python is not None
                lines, version, problem = run_worker(python, peer, family, options.quick, DEVICES.get(family, 8))
                versions[peer] = version or versions.get(peer, "")
                problems += [problem] if problem else []
                for line in lines:
                    row = rows.setdefault(
                        line["name"],
                        {"family": family, "bytes": line["bytes"], "unit": line["unit"], "samples": {}, "notes": {}},
                    )
                    row["samples"].setdefault(peer, []).extend(line["samples"])
                    row["notes"][peer] = line["notes"]
    table = [
        {
            "name": name,
            "family": row["family"],
            "bytes": row["bytes"],
            "unit": row["unit"],
            "peers": {
                peer: {**summary(samples), "notes": row["notes"][peer], "samples": samples}
                for peer, samples in row["samples"].items()
            },
        }
        for name, row in rows.items()
    ]
    return {
        "machine": facts,
        "copy_limits_bytes_per_s": limits,
        "versions": versions,
        "peers": peers,
        "rows": table,
        "problems": problems,
        "quick": options.quick,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints and writes; returns 1 if a measurement failed."""
    options = parse((__doc__ or "").splitlines()[0], arguments, FAMILIES, None)
    result = collect(options)
    from json_rows import json_rows
    from report import print_report

    print_report(result)
    if options.json:
        options.json.write_text(json_rows(result))
    return 1 if any("status" in problem for problem in result["problems"]) else 0


if __name__ == "__main__":
    sys.exit(main())
