# SPDX-License-Identifier: Apache-2.0
"""Samples that cannot be read: SampleError after all earlier batches, or replacements that processes agree on."""

import dataclasses
import pickle
import time

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import data, multihost_utils
from artifex_devices.errors import CollectiveError
from artifex_devices.testing import kill, run_processes


class Damaged:
    """A source of numbers, some of which cannot be read."""

    def __init__(self, count, bad):
        self.count = count
        self.bad = set(bad)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.bad:
            raise OSError(f"bad block {index}")
        return np.full(2, index)


def firsts(batches):
    return [np.asarray(batch)[:, 0].tolist() for batch in batches]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_error_comes_after_all_earlier_batches(workers):
    stream = data.Stream(Damaged(40, [21, 22, 37]))
    batches = data.batches(stream, 8, workers=workers, prefetch=4)
    assert [np.asarray(next(batches))[0, 0] for _ in range(2)] == [0, 8]
    with pytest.raises(data.SampleError) as caught:
        next(batches)
    assert batches.state()["position"] == 16
    assert (caught.value.source, caught.value.index, caught.value.position) == ("source", 21, 21)
    assert isinstance(caught.value.__cause__, OSError)
    text = str(caught.value)
    assert text.startswith("data.batches: the sample at position 21, index 21 of the source 'source' (")
    assert "cannot be read: OSError: bad block 21; repair the source, or skip such samples: data.batches(" in text
    assert list(batches) == []


def test_an_error_of_a_function_names_the_sample_and_has_the_original_as_its_cause():
    def function(x):
        if x[0] == 5:
            raise KeyError("missing")
        return x

    stream = data.Stream(Damaged(16, [])).shuffle().map(function)
    position = stream.indices(0, 16).tolist().index(5)
    with pytest.raises(data.SampleError, match="cannot be read: KeyError: 'missing'; repair the source, or") as caught:
        list(data.batches(stream, 4))
    assert (caught.value.index, caught.value.position) == (5, position)
    assert caught.value.__cause__.args == ("missing",)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.index, copied.position) == (str(caught.value), 5, position)


def test_skipping_takes_the_next_sample_of_the_same_source_that_can_be_read():
    stream = data.Stream(Damaged(12, [2, 3, 10, 11]))
    batches = data.batches(stream, 4, on_error="skip")
    assert firsts(batches) == [[0, 1, 4, 4], [4, 5, 6, 7], [8, 9, 0, 0]]
    assert [dataclasses.astuple(each) for each in batches.stats().skipped] == [
        (2, "source", 2, 4),
        (3, "source", 3, 4),
        (10, "source", 10, 0),
        (11, "source", 11, 0),
    ]
    state = batches.state()
    assert state["skipped"] == 4
    assert len(state["skipped_digest"]) == 32
    assert batches.state_at(1) == {**state, "step": 1, "position": 4, "skipped": 2} | {
        "skipped_digest": batches.state_at(2)["skipped_digest"]
    }
    other = data.batches(stream, 4, on_error="skip", state=batches.state_at(2))
    assert firsts(other) == [[8, 9, 0, 0]]
    assert other.state() == state


def test_a_replacement_in_a_mixture_is_of_the_same_source():
    others = data.Stream(np.arange(100, 130).repeat(2).reshape(-1, 2))
    parts = {"a": (data.Stream(Damaged(30, [4])), 0.5), "b": (others, 0.5)}
    mixed = data.mix(parts, seed=1)
    plain = data.mix({**parts, "a": (data.Stream(Damaged(30, [])), 0.5)}, seed=1)
    expected = np.concatenate(firsts(data.batches(plain, 4)))
    found = np.concatenate(firsts(data.batches(mixed, 4, on_error="skip")))
    [place] = np.flatnonzero(expected != found)
    assert (expected[place], found[place]) == (4, 5)


def test_a_source_without_a_readable_sample_is_an_error():
    batches = data.batches(data.Stream(Damaged(12, range(12))), 4, on_error="skip")
    with pytest.raises(data.SampleError, match=r"at position 0, index 0 .*OSError: bad block 0"):
        next(batches)
    endless = data.batches(data.Stream(Damaged(5000, range(5000))).repeat(), 4, on_error="skip")
    with pytest.raises(data.SampleError, match=r"at position 0, index 0 .*OSError: bad block 0"):
        next(endless)


def skip_in_processes(count, bad, batch):
    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven="last-short")
    stream = data.Stream(Damaged(count, bad), seed=2).shuffle()
    found, states = [], []
    with data.batches(stream, batch, sharding, on_error="skip", last="short") as batches:
        for each in batches:
            found.append(multihost_utils.process_allgather(each, tiled=True)[:, 0].tolist())
            states.append(batches.state())
    return found, states, batches.stats().skipped


def test_processes_agree_on_skipped_samples():
    arguments = (50, [0, 7, 8, 9, 30, 49], 12)
    expected = skip_in_processes(*arguments)
    assert expected[1][-1]["skipped"] == 6
    for processes in (2, 3, 8, 16):
        for found in run_processes(skip_in_processes, processes, 1, seed=processes, args=arguments).results:
            assert found == expected


def fails_otherwise(process, kind):
    """One process raises in the middle; the others must learn of it at the next batch."""

    def function(x):
        if x[0] == 33 and ad.process_index() == process and kind == "in map":
            raise KeyboardInterrupt
        return x

    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"))
    stream = data.Stream(Damaged(60, [])).map(function)
    used = 0
    with data.batches(stream, 12, sharding, on_error="skip") as batches:
        for _ in batches:
            used += 1
            if used == 2 and ad.process_index() == process and kind == "in the loop":
                raise ZeroDivisionError("in the loop")
    return used


@pytest.mark.parametrize(("kind", "error"), [("in map", KeyboardInterrupt), ("in the loop", ZeroDivisionError)])
def test_a_process_that_fails_otherwise_ends_the_waits_of_the_others(kind, error):
    began = time.monotonic()
    results = run_processes(fails_otherwise, 3, 1, args=(2, kind), return_exceptions=True).results
    assert isinstance(results[2], error)
    for found in results[:2]:
        assert isinstance(found, CollectiveError), found
        assert error.__name__ in str(found)
    assert time.monotonic() - began < 30


def test_a_killed_process_ends_the_waits_of_the_others():
    run = run_processes(
        skip_in_processes, 3, 1, args=(60, [3], 12), faults=[kill(1, at="skipped", call=3)], return_exceptions=True
    )
    assert run.unfinished == (1,)
    assert all(isinstance(run.results[process], CollectiveError) for process in (0, 2))
