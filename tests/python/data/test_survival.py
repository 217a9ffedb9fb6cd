# SPDX-License-Identifier: Apache-2.0
"""Jobs that are killed, stalled and resized at seeded moments use every sample once, with the same bits.

Each run draws a stream (mixed, shuffled, packed, with random maps) and plays a job on it: simulated processes read
batches and save checkpoints, until a fault ends one of them or the job is stopped. Another number of processes then
restores the newest complete checkpoint. In the end the batches that were used, one after the other, must be the plain
order of the stream. `python tests/python/data/test_survival.py --runs 100000 --seed 1` plays more runs.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint, data, multihost_utils
from artifex_devices.testing import kill, run_processes, stall

RUNS = 300
MOST_PROCESSES = 16
MOST_STEPS = 12
REAL_CHECKPOINTS = 10  # one run of so many saves to files; the others in memory


class Documents:
    """Documents of different lengths, some of them empty, as a source."""

    def __init__(self, number, lengths):
        self.number = number
        self.lengths = np.array(lengths)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return np.arange(self.lengths[index], dtype=np.int32) + 1000 * index + 1_000_000 * self.number


def add_noise(row, generator):
    return {**row, "noise": generator.integers(0, 2**32, 2, np.uint32)}


def draw_stream(draw):
    """A stream of packed rows; the same draws give the same stream."""
    parts, lengths = {}, {}
    for number, name in enumerate("abc"[: draw.randint(1, 3)]):
        documents = Documents(number, [draw.choice((0, 1, 3, 7, 11, 30)) for _ in range(draw.randint(4, 25))])
        stream = data.Stream(documents, seed=draw.randrange(2**63))
        stream = stream.shuffle() if draw.random() < 0.8 else stream.shuffle(window=5)
        lengths[name] = documents.lengths
        parts[name] = (stream.repeat(draw.randint(1, 3)), draw.choice((1, 2, 0.5, 0.3)))
    mixed = data.mix(parts, seed=draw.randrange(2**63))
    rows = data.pack(mixed, length=draw.choice((4, 8, 13)), lengths=lengths)
    rows = rows.shuffle() if draw.random() < 0.5 else rows
    return rows.map(add_noise, random=True)


class Store:
    """Checkpoints that exist completely or not at all, in memory or in files."""

    def __init__(self, folder):
        self.folder = folder
        self.states = {}  # in memory: by step, that of each process
        self.newest = None

    def save(self, state):
        """Saves the state of a process; all processes call it together."""
        if self.folder:
            checkpoint.save(f"{self.folder}/c", {"w": np.zeros(1), "data": state}, overwrite=True)
            return
        self.states.setdefault(state["step"], []).append(state)
        multihost_utils.sync_global_devices(f"checkpoint {state['step']}")
        states = self.states[state["step"]]
        assert all(each == state for each in states), "the states of the processes differ"
        if ad.process_index() == 0:
            self.newest = state

    def restore(self):
        """The state of the newest complete checkpoint, or None."""
        if self.folder:
            saved = Path(f"{self.folder}/c").exists()
            return checkpoint.restore(f"{self.folder}/c")["data"] if saved else None
        self.states.clear()
        return self.newest


class Log:
    """The rows of the batches that were used, by step and row."""

    def __init__(self):
        self.rows = {}
        self.forgotten = {}  # those after the checkpoint that a job went on from

    def add(self, step, batch):
        """Adds the rows of a batch that this process holds."""
        leaves = [leaf.addressable_shards for leaf in ad.tree_util.tree_leaves(batch)]
        found = self.rows.setdefault(step, {})
        for shards in zip(*leaves, strict=True):
            [begin, end, _] = shards[0].index[0].indices(batch_size_of(batch))
            parts = [np.asarray(shard.data) for shard in shards]
            for row in range(begin, end):
                text = b"".join(part[row - begin].tobytes() for part in parts)
                for earlier in (found, self.forgotten.get(step, {})):
                    assert earlier.get(row, text) == text, f"row {row} of step {step} has other bits"
                found[row] = text

    def forget_after(self, step):
        """Forgets the batches after a checkpoint."""
        for number in [number for number in self.rows if number >= step]:
            self.forgotten.setdefault(number, {}).update(self.rows.pop(number))

    def all_rows(self):
        return [self.rows[step][row] for step in sorted(self.rows) for row in sorted(self.rows[step])]


def batch_size_of(batch):
    return ad.tree_util.tree_leaves(batch)[0].shape[0]


def play(stream, batch, last, workers, save_every, stop_after, store, log):
    """The program of a process: trains until the end of the stream, or stops after some steps as if it was asked to."""
    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven="last-short")
    state = store.restore()
    multihost_utils.sync_global_devices("restored")
    log.forget_after(state["step"] if state else 0)
    multihost_utils.sync_global_devices("begin")
    with data.batches(stream, batch, sharding, last=last, workers=workers, state=state) as batches:
        for number, each in enumerate(batches):
            rows, mask = each if last == "pad" else (each, None)
            log.add(batches.state()["step"] - 1, rows if mask is None else (rows, mask))
            multihost_utils.sync_global_devices("step")
            if batches.state()["step"] % save_every == 0:
                store.save(batches.state())
            if number + 1 == stop_after:
                return False
        assert batches.state()["step"] == len(batches) + (state["step"] if state else 0)
        store.save(batches.state())
        return True


def plain_rows(stream, batch, last):
    """The rows that a job must use, in order, read one by one."""
    rows = [
        b"".join(np.asarray(leaf).tobytes() for leaf in ad.tree_util.tree_leaves(stream.at(position)))
        for position in range(len(stream))
    ]
    if last == "drop":
        return rows[: len(rows) // batch * batch]
    if last == "pad" and rows:
        padding = -len(rows) % batch
        return [row + b"\1" for row in rows] + [bytes(len(rows[0]) + 1)] * padding
    return rows


def run(seed, folder=None):
    """Plays one job to its end; returns the numbers of processes that it had."""
    draw = random.Random(seed)
    stream = draw_stream(draw)
    batch = max(draw.randint(1, 9), len(stream) // MOST_STEPS)
    last = draw.choice(("drop", "short", "pad"))
    store, log, sizes = Store(folder), Log(), []
    while True:
        processes = round(MOST_PROCESSES ** draw.random())  # half of them at most 4: large jobs take long
        faults, stop_after = [], None
        kind = draw.choice(("kill", "kill", "stall", "forever", "stop", "none")) if len(sizes) < 6 else "none"
        if kind in ("kill", "stall", "forever"):
            seconds = {"stall": draw.uniform(0.001, 5.0), "forever": None}.get(kind)
            process, call, messages = draw.randrange(processes), draw.randint(1, 9), draw.randint(0, 3)
            where = {"process": process, "call": call, "messages": messages}
            faults = [kill(**where) if kind == "kill" else stall(**where, seconds=seconds)]
        elif kind == "stop":
            stop_after = draw.randint(1, 6)
        arguments = (stream, batch, last, draw.randint(1, 2), draw.randint(1, 4), stop_after, store, log)
        job = run_processes(
            play, processes, draw.randint(1, 2), draw.randrange(2**32), faults, args=arguments, return_exceptions=True
        )
        sizes.append(processes)
        for result in job.results:
            if isinstance(result, BaseException) and type(result).__name__ != "CollectiveError":
                raise result
        if all(result is True for result in job.results):
            break
    expected = plain_rows(stream, batch, last)
    assert log.all_rows() == expected, f"seed {seed}: other rows than the plain order"
    return sizes


def run_many(seeds, folder):
    """Plays the runs of some seeds; returns the number of jobs that they had."""
    jobs = 0
    for seed in seeds:
        place = None
        if seed % REAL_CHECKPOINTS == 0:
            place = Path(folder) / str(seed)
            place.mkdir()
        try:
            jobs += len(run(seed, place))
        except BaseException as error:
            error.add_note(f"python tests/python/data/test_survival.py --runs 1 --seed {seed}")
            raise
        if place:
            shutil.rmtree(place)
    return jobs


@pytest.mark.parametrize("part", range(10))
def test_no_sample_is_lost_or_repeated(part, tmp_path):
    count = RUNS // 10
    assert run_many(range(part * count, (part + 1) * count), tmp_path) > count


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run; the next runs have the next ones")
    options = parser.parse_args()
    began, jobs = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, options.runs, 100):
            seeds = range(options.seed + first, options.seed + min(first + 100, options.runs))
            jobs += run_many(seeds, folder)
            seconds = time.monotonic() - began
            print(f"{seeds.stop - options.seed} runs, {jobs} jobs, {seconds:.0f} s", flush=True)
    print("0 lost, 0 repeated, equal bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
