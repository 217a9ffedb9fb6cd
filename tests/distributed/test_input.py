# SPDX-License-Identifier: Apache-2.0
"""data.batches in several processes: equal global batches, agreement on skipped samples, and a killed process."""

from pathlib import Path

import numpy as np
import pytest
from launching import end_without_notice

ROWS = 100


class Numbers:
    """A source of rows of numbers, some of which cannot be read."""

    def __init__(self, bad=()):
        self.bad = bad

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        if index in self.bad:
            raise OSError(f"bad block {index}")
        return np.full(3, index)


def stream_of(bad=()):
    from artifex_devices import data

    def shifted(row, generator):
        return {"x": row, "noise": generator.integers(0, 1000)}

    return data.Stream(Numbers(bad), seed=5).shuffle().map(shifted, random=True)


def line(uneven=None):
    import artifex_devices as ad

    return ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven=uneven)


def whole(x):
    from artifex_devices import multihost_utils

    return multihost_utils.process_allgather(x, tiled=True)


def read_all(batch, last, on_error, bad):
    from artifex_devices import data

    found = []
    with data.batches(stream_of(bad), batch, line("last-short"), last=last, on_error=on_error) as batches:
        for each in batches:
            rows = each[0] if last == "pad" else each
            found.append((whole(rows["x"])[:, 0].tolist(), whole(rows["noise"]).tolist()))
        return found, batches.state(), batches.stats().skipped


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("last", ["drop", "short", "pad"])
def test_batches_are_the_same_in_every_number_of_processes(processes, count, last):
    expected = read_all(12, last, "raise", ())
    assert processes(count, read_all, 12, last, "raise", ()).values == [expected] * count


@pytest.mark.parametrize("count", [2, 3])
def test_processes_agree_on_samples_that_are_skipped(processes, count):
    expected = read_all(12, "short", "skip", (0, 1, 50, 99))
    assert len(expected[2]) == 4
    assert processes(count, read_all, 12, "short", "skip", (0, 1, 50, 99)).values == [expected] * count


def train(folder, state, killed, at_step):
    """Uses batches and saves every third step; the killed process ends in the middle of a step."""
    import artifex_devices as ad
    from artifex_devices import checkpoint, data, multihost_utils

    with data.batches(stream_of(), 9, line("last-short"), last="short", state=state) as batches:
        for batch in batches:
            step = batches.state()["step"] - 1
            for shard in batch["x"].addressable_shards:
                np.save(f"{folder}/rows.{step}.{shard.index[0].start or 0}.npy", np.asarray(shard.data)[:, 0])
            if step == at_step and ad.process_index() == killed:
                end_without_notice()
            multihost_utils.sync_global_devices(f"step {step}")
            if step % 3 == 0:
                checkpoint.save(f"{folder}/c", {"w": np.ones(2), "data": batches.state()}, overwrite=True)
        return batches.state()


@pytest.mark.parametrize(("count", "then"), [(2, 3), (3, 2)])
def test_a_job_goes_on_after_a_killed_process_without_losing_or_repeating_a_sample(processes, tmp_path, count, then):
    from artifex_devices import checkpoint

    job = processes(count, train, str(tmp_path), None, 1, 8, shielded=True)
    assert job.outcomes[1].state == "ended without an outcome"
    assert [outcome.value[0] for number, outcome in enumerate(job.outcomes) if number != 1] == ["CollectiveError"] * (
        count - 1
    )
    state = checkpoint.restore(tmp_path / "c")["data"]
    assert (state["step"], state["position"]) == (7, 63)
    for file in tmp_path.glob("rows.*"):
        if int(file.name.split(".")[1]) >= 7:
            file.unlink()  # the job has lost these batches
    states = processes(then, train, str(tmp_path), state, None, None).values
    assert states == [{**state, "step": 12, "position": ROWS}] * then
    files = sorted(tmp_path.glob("rows.*"), key=lambda file: [int(part) for part in Path(file).name.split(".")[1:3]])
    used = np.concatenate([np.load(file) for file in files])
    assert used.tolist() == stream_of().indices(0, ROWS).tolist()
