# SPDX-License-Identifier: Apache-2.0
"""Measures what flight records cost: of one event, and of examples/digits_train.py in two processes with and without.

The two kinds of runs take turns; the step is the best of all runs of its kind.

Example:
    python bench/flight_record.py --runs 5
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

from artifex_devices import _core

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "digits_train.py"
CALLS = 200_000


def event_costs_ns() -> dict[str, float]:
    """Nanoseconds of calls from Python: the best of five runs of many calls."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = _core._FlightRecorder(f"{folder}/process_0.flight", 0, 2, "host")
        group = recorder.group([0, 1])
        text, digest = "shard_map(step): psum of float32[128] over 'x'", bytes(32)
        calls = {
            "begin of a meeting, with the line of the program": lambda: group.meet(text, digest),
            "end": lambda: recorder.end(1),
            "an empty function": lambda: None,
        }
        return {name: min(timeit.repeat(call, number=CALLS, repeat=5)) / CALLS * 1e9 for name, call in calls.items()}


def step_ms(record_dir: str) -> float:
    """Milliseconds of a training step in two processes; the example prints it."""
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if mpiexec is None:
        raise SystemExit("bench/flight_record.py: there is no mpiexec; pip install 'artifex_devices[mpi]'")
    environment = {**os.environ, "ARTIFEX_FLIGHT_RECORD_DIR": record_dir, "JAX_NUM_CPU_DEVICES": "1"}
    command = [mpiexec, "-n", "2", sys.executable, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found = re.search(r"([\d.]+) ms a step", done.stdout)
    if found is None:
        raise SystemExit(f"bench/flight_record.py: {EXAMPLE} prints no step; got {done.stdout}")
    return float(found[1])


def main() -> None:
    """Prints the costs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of the example with and without records (default 5)")
    runs = parser.parse_args().runs
    for name, nanoseconds in event_costs_ns().items():
        print(f"{nanoseconds:8.0f} ns  {name}")
    steps: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            steps["with"].append(step_ms(folder))
            steps["without"].append(step_ms("off"))
    best = {name: min(times) for name, times in steps.items()}
    print(f"step of {EXAMPLE.name}, 2 processes: {best['with']:.3f} ms with records, {best['without']:.3f} ms without")
    print(f"ratio {best['with'] / best['without']:.3f}; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
