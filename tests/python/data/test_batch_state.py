# SPDX-License-Identifier: Apache-2.0
"""The state of data.batches: what it counts, what it refuses, and how it is saved."""

import copy
import json

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import checkpoint, data
from artifex_devices.testing import run_processes


def stream_of(count=100, seed=3):
    return data.Stream(np.arange(count), seed=seed).shuffle()


def values(batches):
    return [np.asarray(batch).tolist() for batch in batches]


def test_batches_that_wait_are_not_counted_and_a_resume_gives_the_next_one():
    stream = stream_of()
    expected = values(data.batches(stream, 8))
    for used in range(13):
        with data.batches(stream, 8, prefetch=4) as batches:
            found = [np.asarray(next(batches)).tolist() for _ in range(used)]
            state = batches.state()
        assert (state["step"], state["position"]) == (used, 8 * used)
        assert state == batches.state_at(used)
        resumed = data.batches(stream, 8, state=json.loads(json.dumps(state)))
        assert len(resumed) == 12 - used
        assert found + values(resumed) == expected


def test_another_batch_size_goes_on_at_the_position():
    stream = stream_of()
    with data.batches(stream, 8) as batches:
        begin = [next(batches) for _ in range(3)]
    resumed = data.batches(stream, 10, state=batches.state(), last="short")
    rest = list(resumed)
    assert np.concatenate([*begin, *rest]).tolist() == stream.indices(0, 100).tolist()
    assert resumed.state() == {**batches.state(), "step": 11, "position": 100}
    assert resumed.state_at(5)["position"] == 44
    with pytest.raises(ValueError, match="step is 2, before step 3 at which this iteration began; expected 3 or more"):
        resumed.state_at(2)
    with pytest.raises(ValueError, match="step is 12; expected 0 to 11; give the step of a batch of the run"):
        resumed.state_at(12)


def test_state_at_needs_no_run():
    batches = data.batches(stream_of(10**6).repeat(), 512)
    assert batches.state_at(step=12_000)["position"] == 12_000 * 512
    assert batches.state_at(step=12_000) == {**batches.state(), "step": 12_000, "position": 12_000 * 512}


def test_the_state_is_small_and_of_ints_and_texts():
    state = data.batches(stream_of(), 8).state()
    assert list(state) == [
        *("version", "step", "position", "skipped", "skipped_digest", "seed", "sources", "order", "packing")
    ]
    assert {type(value) for value in state.values()} == {int, str}
    assert len(json.dumps(state)) < 1000


def test_a_checkpoint_returns_the_state_with_and_without_like(tmp_path):
    stream = stream_of()
    with data.batches(stream, 8) as batches:
        next(batches)
        state = batches.state()
        checkpoint.save(tmp_path / "c", {"params": np.ones(3), "data": state})
    assert checkpoint.restore(tmp_path / "c")["data"] == state
    fresh = data.batches(stream, 8)
    like = {"params": np.zeros(3), "data": fresh.state()}
    assert checkpoint.restore(tmp_path / "c", like)["data"] == state
    resumed = data.batches(stream, 8, state=checkpoint.restore(tmp_path / "c")["data"])
    assert values(resumed) == values(data.batches(stream, 8))[1:]


def test_ints_of_numpy_are_taken():
    state = data.batches(stream_of(), 8).state_at(2)
    found = data.batches(stream_of(), 8, state={**state, "position": np.int64(16), "step": np.asarray(2)})
    assert found.state() == state
    assert {type(value) for value in found.state().values()} == {int, str}


def test_states_of_other_streams_are_refused_with_the_difference():
    state = data.batches(stream_of(), 8).state()
    for stream, text in (
        (stream_of(seed=4), "its seed is '3', and that of the stream '4'"),
        (data.Stream(np.arange(100), seed=3), "its order is "),
        (data.Stream(np.arange(100) + 1, seed=3).shuffle(), "the source 'source' had the digest "),
    ):
        with pytest.raises(ValueError, match=r"data\.batches: the state is of another stream: ") as caught:
            data.batches(stream, 8, state=state)
        assert text in str(caught.value)
        assert "expected the stream that was saved; give the stream that was saved, or leave" in str(caught.value)


HOSTILE = [None, True, 1.5, "", "x", b"x", -1, 2**63, 10**400, [], {}, object(), float("nan")]
HOSTILE += [np.zeros(2), np.float64(1)]


def test_hostile_states_are_errors():
    stream = stream_of()
    state = data.batches(stream, 8).state_at(3)
    good = [("packing", ""), ("skipped_digest", ""), ("skipped_digest", "x")]
    for key in state:
        for value in HOSTILE:
            changed = {**state, key: value}
            if isinstance(value, str) and (key, value) in good:
                data.batches(stream, 8, state=changed)
                continue
            with pytest.raises((TypeError, ValueError), match=r"^data\.batches: ") as caught:
                data.batches(stream, 8, state=changed)
            assert len(str(caught.value)) < 2000
        without = copy.copy(state)
        del without[key]
        with pytest.raises((TypeError, ValueError), match=key):
            data.batches(stream, 8, state=without)
    for value in [3, "x", [], (), [("version", 1)], object(), {1: 2}, {"version": 1, None: 3, 4: "x"}]:
        with pytest.raises((TypeError, ValueError), match=r"^data\.batches: "):
            data.batches(stream, 8, state=value)
    with pytest.raises(ValueError, match=r"the state has 'more' too; expected the keys 'order', 'packing', 'position'"):
        data.batches(stream, 8, state={**state, "more": 1})
    with pytest.raises(ValueError, match=r"state\['position'\] is 101; expected at most 100, the length of the"):
        data.batches(stream, 8, state={**state, "position": 101})
    with pytest.raises(ValueError, match="the state has version 2; expected version 1; load it with the version of"):
        data.batches(stream, 8, state={**state, "version": 2})


def test_a_state_at_the_end_has_no_batches():
    stream = stream_of()
    state = data.batches(stream, 10).state_at(10)
    resumed = data.batches(stream, 10, state=state)
    assert (len(resumed), list(resumed)) == (0, [])


def use_some(state, count):
    mesh = ad.Mesh(np.array(ad.devices()), ("data",))
    sharding = ad.NamedSharding(mesh, ad.P("data"), uneven="last-short")
    from artifex_devices import multihost_utils

    found = []
    with data.batches(stream_of(), 8, sharding, state=state) as batches:
        for _ in range(count):
            found.append(multihost_utils.process_allgather(next(batches), tiled=True))
    return np.concatenate(found).tolist(), batches.state()


def test_a_job_goes_on_with_another_number_of_processes():
    found, state = [], None
    for processes, count in ((4, 3), (1, 2), (7, 4), (16, 3)):
        results = run_processes(use_some, processes, 1, args=(state, count)).results
        assert all(each == results[0] for each in results)
        found += results[0][0]
        state = results[0][1]
    assert found == stream_of().indices(0, 96).tolist()
