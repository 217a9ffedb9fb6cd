# SPDX-License-Identifier: Apache-2.0
"""Measures what flight records cost: of one event, and of examples/digits_train.py in two processes with and without.

The calls, and the two kinds of runs, take turns; the step is the best of all runs of its kind.

Example:
    python bench/flight_record.py --runs 5
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

from artifex_devices._core import internal

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "digits_train.py"
CALLS = 20_000
ROUNDS = 100
MEETINGS = 40_000
BATCH = 6  # meetings; the memory between two processes has room for 8
TEXT, DIGEST = "shard_map(step): psum of float32[128] over 'x'", bytes(32)


def call_costs_ns() -> dict[str, float]:
    """Nanoseconds of calls from Python: the best of many runs, which take turns."""
    with tempfile.TemporaryDirectory() as folder:
        recorder = internal.FlightRecorder(f"{folder}/process_0.flight", 0, 2, "host")
        group = recorder.group([0, 1])
        calls = {
            "an empty function": lambda: None,
            "begin of a meeting, with the line of the program": lambda: group.meet(TEXT, DIGEST),
            "end": lambda: recorder.end(group.last),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):
            for name, call in calls.items():
                times[name].append(timeit.timeit(call, number=CALLS) / CALLS * 1e9)
        return {name: min(each) for name, each in times.items()}


def meeting_costs_ns(folder: str) -> dict[bool, list[float]]:
    """Nanoseconds of meetings through shared memory without and with a record, in turns.

    The records of the other process are there before, so that nothing waits; both are ends in this process.
    """
    files = [internal.create_channels(2) for _ in range(2)]
    here, there = (internal.SharedChannels(place, files) for place in range(2))
    for file in files:
        os.close(file)
    recorder = internal.FlightRecorder(f"{folder}/process_1.flight", 1, 2, "host")
    groups = {False: None, True: recorder.group([0, 1])}
    mine = internal.SharedMeetingPoint(here, [1], 0, 7, 500)
    other = internal.SharedMeetingPoint(there, [0], 1, 7, 500)
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(MEETINGS):
        for is_recorded in (turn % 2 == 0, turn % 2 == 1):
            group = groups[is_recorded]
            for _ in range(BATCH):
                other.start(1, DIGEST, b"", TEXT)
            begin = time.perf_counter_ns()
            for _ in range(BATCH):
                mine.meet(1, DIGEST, b"", TEXT, group)
            times[is_recorded].append((time.perf_counter_ns() - begin) / BATCH)
            for _ in range(BATCH):
                there.take([0])
    return times


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
    parser.add_argument("--runs", type=int, default=5, help="runs of the example with and without (default 5)")
    runs = parser.parse_args().runs
    costs = call_costs_ns()
    for name, nanoseconds in costs.items():
        print(f"{nanoseconds:8.0f} ns  {name}")
    empty, begin, end = costs.values()
    print(f"{begin + end - 2 * empty:8.0f} ns  an event of two calls, without what empty functions take")
    with tempfile.TemporaryDirectory() as folder:
        meetings = {is_recorded: statistics.median(each) for is_recorded, each in meeting_costs_ns(folder).items()}
    print(f"{meetings[False]:8.0f} ns  a meeting through shared memory, without a record (median)")
    print(f"{meetings[True] - meetings[False]:8.0f} ns  more with a record: what an event adds to an operation")
    if not runs:
        return
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
