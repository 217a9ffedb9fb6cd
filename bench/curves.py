# SPDX-License-Identifier: Apache-2.0
"""Measures how times grow with bytes, shards, devices and leaves: ours, JAX's, NumPy's and the machine's copy.

Each peer runs each family in a process of its own, and they take turns. What is measured goes to bench/curves.json, of
which performance_page.py makes docs/performance.md and its pictures.

Example:
    python bench/curves.py --jax-python PATH                   # about 6 minutes; the machine should be idle
    python bench/curves.py --quick --json /tmp/curves.json     # few points, to test the script
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FAMILIES = {"by_bytes": 8, "by_shards": 4096, "by_devices": 4096, "by_leaves": 8}  # with their devices


def collect(options: argparse.Namespace) -> dict[str, Any]:
    """Runs all families: for each curve, the points of each peer by x."""
    from machine import copy_limits, machine_facts, raised
    from measure import summary
    from run import interpreter, run_worker

    begin = time.monotonic()
    problems: list[str] = []
    peers: dict[str, str] = {}
    for peer in ["ours", *options.against]:
        python = interpreter(peer, options)
        if python is None:
            problems.append(f"{peer} is not installed here and was left out; give --jax-python PATH")
        else:
            peers[peer] = python
    facts = machine_facts(quick=options.quick)
    limits: dict[str, float] = {}
    versions: dict[str, str] = {}
    found: dict[tuple[str, str], dict[str, dict[float, list[float]]]] = {}
    for family in options.family:
        limits = raised(limits, copy_limits(quick=options.quick))
        for turn in range(1 if options.quick else options.rounds):
            for peer in list(peers) if turn % 2 == 0 else list(peers)[::-1]:
                print(f"{family}: {peer}, round {turn + 1}", file=sys.stderr, flush=True)
                rows, version, problem = run_worker(peers[peer], peer, family, options.quick, FAMILIES[family])
                versions[peer] = version or versions.get(peer, "")
                problems += [problem] if problem else []
                for row in rows:
                    points = found.setdefault((family, row["name"]), {}).setdefault(peer, {})
                    points.setdefault(row["x"], []).extend(row["samples"])
    curves = [
        {
            "family": family,
            "name": name,
            "peers": {
                peer: [{"x": x, **rounded(summary(samples))} for x, samples in sorted(points.items())]
                for peer, points in by_peer.items()
            },
        }
        for (family, name), by_peer in found.items()
    ]
    return {
        "machine": {**facts, "seconds": round(time.monotonic() - begin)},
        "copy_limits_bytes_per_s": limits,
        "versions": versions,
        "rounds": 1 if options.quick else options.rounds,
        "quick": options.quick,
        "problems": problems,
        "curves": curves,
    }


def rounded(stats: dict[str, float]) -> dict[str, float]:
    """Values for a curve, in four digits."""
    kept = ("median", "first_quartile", "third_quartile")
    return {key: float(f"{stats[key]:.4g}") for key in kept}


def main(arguments: list[str] | None = None) -> int:
    """Measures and writes; returns 1 if a measurement failed."""
    sys.path.insert(0, str(HERE))
    from json_rows import json_rows
    from run import parse

    options = parse((__doc__ or "").splitlines()[0], arguments, FAMILIES, HERE / "curves.json")
    result = collect(options)
    options.json.write_text(json_rows(result))
    for problem in result["problems"]:
        print(f"curves: {problem}", file=sys.stderr)
    print(f"curves: {options.json}, {result['machine']['seconds']} s", file=sys.stderr)
    return 1 if any("status" in problem for problem in result["problems"]) else 0


if __name__ == "__main__":
    sys.exit(main())
