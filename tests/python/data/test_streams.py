# SPDX-License-Identifier: Apache-2.0
"""Orders of streams are functions of the position: the same one by one, in blocks, sliced, mixed and after a pickle."""

import pickle

import numpy as np
import pytest
from artifex_devices import data
from hypothesis import given
from hypothesis import strategies as st


def plus_one(sample):
    return sample + 1


def with_noise(sample, generator):
    return int(sample), int(generator.integers(2**62))


RECORDED = [4, 8, 0, 1, 3, 2, 5, 9, 6, 7, 7, 8, 5, 2, 4, 0, 1, 3, 9, 6]
WEIGHTS = [(1, 1, 1), (0.5, 0.3, 0.2), (1e-3, 0.999), (1, 2, 3, 4, 5), (0.1,) * 10, (1 / 3, 2 / 3)]


def order_of(stream, count=None):
    return stream.indices(0, len(stream) if count is None else count).tolist()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("shuffle")),
        st.tuples(st.just("window"), st.integers(1, 9)),
        st.tuples(st.just("repeat"), st.integers(1, 3)),
        st.tuples(st.just("take"), st.integers(0, 20)),
        st.tuples(st.just("skip"), st.integers(0, 5)),
        st.tuples(st.just("slice"), st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-2, -1, 1, 3])),
    ),
    max_size=5,
)


def applied(stream, step):
    name, *arguments = step
    if name == "slice":
        return stream[slice(*arguments)]
    return stream.shuffle(window=arguments[0]) if name == "window" else getattr(stream, name)(*arguments)


@given(st.integers(0, 12), st.integers(0, 2**63 - 1), STEPS)
def test_slices_and_blocks_equal_python_lists(size, seed, steps):
    stream = data.Stream(range(size), seed=seed)
    expected = list(range(size))
    for step in steps:
        name, *arguments = step
        before, stream = stream, applied(stream, step)
        if name in ("shuffle", "window"):
            found = order_of(stream)
            window = arguments[0] if arguments else max(1, len(before))
            for start in range(0, len(found), window):
                assert sorted(found[start : start + window]) == sorted(expected[start : start + window])
            expected = found
        elif name == "repeat":
            found = order_of(stream)
            for epoch in range(arguments[0]):
                part = found[epoch * len(expected) : (epoch + 1) * len(expected)]
                assert sorted(part) == sorted(expected) if part else not expected
            expected = found
        else:
            part = {"take": slice(arguments[0]), "skip": slice(arguments[0], None), "slice": slice(*arguments)}[name]
            expected = expected[part]
        assert order_of(stream) == expected
    assert [stream.at(p) for p in range(len(stream))] == expected
    assert order_of(pickle.loads(pickle.dumps(stream))) == expected


def test_the_orders_of_a_seed_never_change():
    # A state that was saved goes on with a later version of the library.
    assert order_of(data.Stream(range(10), seed=7).shuffle().repeat(2)) == RECORDED


def test_seeds_epochs_and_stages_have_orders_of_their_own():
    one = data.Stream(range(1000), seed=7).shuffle()
    epochs = one.repeat(3)
    orders = [order_of(one), order_of(data.Stream(range(1000), seed=8).shuffle()), order_of(one.shuffle())]
    orders += [epochs.indices(1000, 2000).tolist(), epochs.indices(2000, 3000).tolist()]
    assert epochs.indices(0, 1000).tolist() == orders[0]
    assert all(sorted(order) == list(range(1000)) for order in orders)
    assert len(set(map(tuple, orders))) == 5


def test_the_largest_source_has_a_last_position():
    stream = data.Stream(range(2**63 - 1), seed=1).shuffle()
    assert len({stream.at(0), stream.at(1), stream.at(2**63 - 2)}) == 3
    with pytest.raises(IndexError, match="expected 0 to 9223372036854775806"):
        stream._resolve(np.array([-1]))


def test_a_part_of_a_shuffled_stream_has_the_same_samples_in_every_epoch():
    # Else samples that were held out for a validation would be trained on in the second epoch.
    stream = data.Stream(range(100), seed=7).shuffle()
    held_out = set(order_of(stream.skip(90)))
    for part in (stream.take(90), stream[:90], stream.filter(np.arange(90))):
        assert held_out.isdisjoint(order_of(part.shuffle().repeat(3)))
        assert len(set(order_of(part.repeat(2)))) == 90
    noisy = stream.map(with_noise, random=True).take(5).repeat(2)
    again = noisy.skip(0).repeat(2)  # epochs of epochs differ too
    assert len({again.at(p)[1] for p in range(20)}) == 20
    endless = stream.take(5).map(with_noise, random=True).repeat().take(10).repeat(2)
    assert len({endless.at(p)[1] for p in range(20)}) == 20
    assert [noisy.at(p)[0] for p in range(5)] == [noisy.at(p)[0] for p in range(5, 10)]
    assert {noisy.at(p)[1] for p in range(5)}.isdisjoint(noisy.at(p)[1] for p in range(5, 10))


def test_shards_are_read_one_after_the_other():
    stream = data.Stream(range(30), seed=3).shuffle(shards=[0, 10, 12]).repeat(2)
    for epoch in range(2):
        found = stream.indices(30 * epoch, 30 * (epoch + 1))
        shards = np.searchsorted([0, 10, 12], found, side="right")
        assert np.count_nonzero(np.diff(shards)) == 2
        assert sorted(found.tolist()) == list(range(30))


def test_shards_of_a_derived_stream_are_refused():
    with pytest.raises(ValueError, match=r"shards=True on a stream that is not all of one source; .* shards=\[0"):
        data.Stream(range(30)).take(3).shuffle(shards=True)


def test_a_mix_has_its_shares_and_keeps_the_order_of_each_stream():
    web, code = data.Stream([f"w{i}" for i in range(70)], seed=1).shuffle(), data.Stream([f"c{i}" for i in range(90)])
    mixed = data.mix({"web": (web, 0.7), "code": (code, 0.3), "none": (code, 0)})
    found = [mixed.at(p) for p in range(len(mixed))]
    assert [x for x in found if x[0] == "w"] == [web.at(p) for p in range(70)]
    assert [x for x in found if x[0] == "c"] == [f"c{i}" for i in range(len(found) - 70)]
    for k in range(1, len(found) + 1):
        assert abs(sum(x[0] == "w" for x in found[:k]) - 0.7 * k) < 1
    assert mixed.describe_position(0).startswith(("web: sample", "code: sample"))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_weight_is_met_within_one_sample(weights):
    mixed = data.mix({str(i): (data.Stream(range(10**6)), weight) for i, weight in enumerate(weights)})
    leaves = mixed._resolve(np.arange(5000))[0]
    for number, weight in enumerate(weights):
        used = np.cumsum(leaves == number)
        assert np.abs(used - np.arange(1, 5001) * weight / sum(weights)).max() < 1


def test_a_repeated_mix_is_endless_with_new_orders():
    mixed = data.mix({"a": (data.Stream(range(50), seed=1).shuffle(), 1), "b": (data.Stream(range(5)), 1)}, repeat=True)
    assert mixed.length is None
    leaves, indices, _ = mixed._resolve(np.arange(200))
    assert indices[leaves == 1].tolist() == [0, 1, 2, 3, 4] * 20
    first, second = indices[leaves == 0][:50].tolist(), indices[leaves == 0][50:].tolist()
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def test_random_functions_depend_on_seed_epoch_and_position_only():
    noisy = data.Stream(range(20), seed=7).shuffle().map(with_noise, random=True)
    plain = [noisy.at(p) for p in range(20)]
    assert len(set(plain)) == 20
    assert [noisy.skip(5).at(p) for p in range(15)] == plain[5:]
    epochs = noisy.repeat(2)
    assert [epochs.at(p) for p in range(20)] == plain
    assert {noise for _, noise in plain}.isdisjoint(epochs.at(p)[1] for p in range(20, 40))
    mixed = data.mix({"other": (data.Stream(range(20), seed=2).map(with_noise, random=True), 1), "noisy": (noisy, 1)})
    assert [x for x in (mixed.at(p) for p in range(40)) if x in plain] == plain
    twice = data.Stream(range(3), seed=7).map(with_noise, random=True)
    twice = twice.map(lambda x, g: (x, with_noise(0, g)[1]), random=True)
    assert all(sample[1] != noise for sample, noise in (twice.at(p) for p in range(3)))
    assert pickle.loads(pickle.dumps(noisy)).at(3) == plain[3]


def test_functions_apply_in_their_order():
    stream = data.Stream([1, 2]).map(plus_one).map(str)
    assert [stream.at(0), stream.at(1)] == ["2", "3"]
    assert repr(stream) == "Stream of 2 samples, seed 0\nmap(str)\nmap(plus_one)\na list"


def test_the_pipeline_of_a_mix_is_a_tree():
    mixed = data.mix({"web": (data.Stream([1, 2]).shuffle(), 0.7), "code": (data.Stream([3]), 0.3)}, seed=9).take(1)
    assert repr(mixed) == (
        "Stream of 1 samples, seed 9\ntake(1)\nmix\n  web: 7 of 10\n  shuffle()\n  a list\n  code: 3 of 10\n  a list"
    )


def test_a_stream_is_indexed_as_a_list():
    stream = data.Stream(list("abcd"))
    assert (stream[1], stream[-1], list(stream[1:3]), list(stream.filter([False, True, True, False]))) == (
        "b", "d", ["b", "c"], ["b", "c"],
    )  # fmt: skip
    with pytest.raises(IndexError):
        stream[4]


def test_an_endless_stream_is_sliced_from_its_begin():
    stream = data.Stream(range(3)).repeat()
    assert order_of(stream[1:8:2]) == [1, 0, 2, 1]
    assert stream.skip(2).indices(0, 3).tolist() == [2, 0, 1]
    assert stream[2:].length is None
    with pytest.raises(ValueError, match="counts from the end of an endless stream"):
        stream[-1:]
    with pytest.raises(TypeError, match=r"the stream is endless; .* stream.take\(n\)"):
        len(stream)
