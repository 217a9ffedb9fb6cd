# SPDX-License-Identifier: Apache-2.0
"""data.pack: rows of equal length from samples of different lengths, against plain NumPy."""

import itertools
import pickle

import numpy as np
import pytest
from artifex_devices import data
from hypothesis import given
from hypothesis import strategies as st
from packed_reference import assert_equal_rows, packed, rows_of


def documents(lengths, first=1):
    """Arrays of these lengths whose tokens are all different and not 0."""
    ends = np.cumsum([0, *lengths]) + first
    return [np.arange(begin, end, dtype=np.int32) for begin, end in itertools.pairwise(ends)]


def samples_of(stream, count):
    return [{"tokens": stream.at(position)} for position in range(count)]


@given(
    lengths=st.lists(st.integers(0, 30), max_size=60),
    length=st.integers(1, 40),
    seed=st.integers(0, 2**63 - 1),
    is_given=st.booleans(),
)
def test_rows_equal_plain_numpy(lengths, length, seed, is_given):
    stream = data.Stream(documents(lengths), seed=seed).shuffle()
    rows = data.pack(stream, length, lengths=np.array(lengths) if is_given else None, workers=1)
    assert len(rows) == -(-sum(lengths) // length)
    if sum(lengths):
        assert_equal_rows(rows_of(rows), packed(samples_of(stream, len(lengths)), length))


@given(lengths=st.lists(st.integers(0, 50), min_size=1, max_size=40), length=st.integers(1, 20))
def test_no_token_is_lost_or_repeated(lengths, length):
    stream = data.Stream(documents(lengths)).shuffle()
    rows = rows_of(data.pack(stream, length, workers=1))
    used = [rows[name][rows["segment_ids"] > 0].tolist() for name in rows] if rows else [[]]
    assert used[0] == np.concatenate([stream.at(position) for position in range(len(lengths))]).tolist()
    if rows:
        assert (rows["segment_ids"][:-1] > 0).all()  # only the last row has padding


def test_a_sample_longer_than_several_rows_continues_in_each():
    rows = rows_of(data.pack(data.Stream(documents([2, 11, 3])), 4))
    assert rows["tokens"].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
    assert rows["segment_ids"].tolist() == [[1, 1, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], [1, 2, 2, 2]]
    assert rows["positions"].tolist() == [[0, 1, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9], [10, 0, 1, 2]]


def test_a_row_that_ends_with_a_sample_has_no_part_of_the_next():
    rows = rows_of(data.pack(data.Stream(documents([3, 1, 4, 2])), 4))
    assert rows["segment_ids"].tolist() == [[1, 1, 1, 2], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert rows["positions"].tolist() == [[0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 0, 0]]
    assert rows["tokens"][2].tolist() == [9, 10, 0, 0]


def test_empty_samples_are_not_counted():
    rows = rows_of(data.pack(data.Stream(documents([0, 2, 0, 0, 1, 0])), 4))
    assert rows["segment_ids"].tolist() == [[1, 1, 2, 0]]
    assert len(data.pack(data.Stream(documents([0, 0])), 4)) == 0
    assert len(data.pack(data.Stream(documents([])), 4)) == 0


def test_rows_of_several_epochs():
    stream = data.Stream(documents([3, 5, 2, 4]), seed=2).shuffle().repeat(3)
    assert_equal_rows(rows_of(data.pack(stream, 5)), packed(samples_of(stream, 12), 5))


def test_rows_of_an_endless_stream():
    stream = data.Stream(documents([3, 5, 2, 4]), seed=2).shuffle().repeat()
    rows = data.pack(stream, 5)
    assert rows.length is None
    expected = packed(samples_of(stream, 400), 5)
    assert_equal_rows(rows_of(rows, 250), {name: column[:250] for name, column in expected.items()})
    far = 10**5 * 14 // 5  # the first row of an epoch, which 5 * 14 tokens repeat
    assert rows.at(far)["positions"][0] == 0


def test_rows_of_mixed_sources():
    web = data.Stream(documents([3, 5, 2, 4, 6, 1], 100), seed=1).shuffle()
    code = data.Stream(documents([7, 8, 1], 500), seed=2).shuffle()
    mixed = data.mix({"web": (web, 2), "code": (code, 1)}, seed=7, repeat=True)
    expected = packed(samples_of(mixed, 60), 6)
    assert_equal_rows(rows_of(data.pack(mixed, 6), 20), {name: column[:20] for name, column in expected.items()})
    lengths = {"web": [3, 5, 2, 4, 6, 1], "code": np.array([7, 8, 1])}
    assert_equal_rows(rows_of(data.pack(mixed, 6, lengths=lengths), 20), rows_of(data.pack(mixed, 6), 20))


def test_rows_can_be_shuffled_sliced_mapped_and_mixed():
    stream = data.Stream(documents([3, 5, 2, 4, 6, 1, 9]), seed=1)
    plain = data.pack(stream, 4)
    shuffled = plain.shuffle()
    order = shuffled.indices(0, len(shuffled))
    assert sorted(order) == list(range(8))
    assert rows_of(shuffled)["tokens"].tolist() == rows_of(plain)["tokens"][order].tolist()
    assert plain[2:5].at(0)["tokens"].tolist() == plain.at(2)["tokens"].tolist()
    assert plain.map(lambda row: row["tokens"].sum()).at(0) == 1 + 2 + 3 + 4
    mixed = data.mix({"a": (plain, 1), "b": (plain, 1)}, seed=0)
    assert sorted(mixed.at(position)["tokens"][0] for position in range(4)) == [1, 1, 5, 5]


def test_other_columns_are_cut_alike():
    samples = [
        {"tokens": tokens, "mask": tokens % 2 == 0, "vector": np.stack([tokens, -tokens], 1).astype(np.float32)}
        for tokens in documents([3, 6, 2])
    ]
    rows = rows_of(data.pack(data.Stream(samples), 4))
    assert_equal_rows({name: rows[name] for name in ("tokens", "mask")}, {
        "tokens": np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 0]], np.int32),
        "mask": np.array([[0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 0]], bool),
    })  # fmt: skip
    assert rows["vector"].shape == (3, 4, 2)
    assert rows["vector"][1].tolist() == [[5, -5], [6, -6], [7, -7], [8, -8]]


def test_functions_before_pack_change_the_lengths():
    stream = data.Stream(documents([3, 5])).map(lambda tokens: np.repeat(tokens, 2))
    assert rows_of(data.pack(stream, 8))["tokens"].tolist() == [[1, 1, 2, 2, 3, 3, 4, 4], [5, 5, 6, 6, 7, 7, 8, 8]]


def test_random_functions_before_pack_need_lengths():
    stream = data.Stream(documents([3, 5])).map(lambda tokens, random: random.permutation(tokens), random=True)
    with pytest.raises(ValueError, match=r"go through map\(f, random=True\).* expected lengths=, or a random function"):
        data.pack(stream, 4)
    rows = rows_of(data.pack(stream, 4, lengths=[3, 5]))
    assert sorted(rows["tokens"].ravel()) == list(range(1, 9))
    assert rows["positions"].tolist() == [[0, 1, 2, 0], [1, 2, 3, 4]]


def test_samples_longer_than_a_row_can_be_refused():
    stream = data.Stream(documents([3, 4, 6, 9]))
    assert len(data.pack(stream, 9, too_long="error")) == 3
    with pytest.raises(ValueError, match="6"):
        data.pack(stream, 5, too_long="error")
    assert len(data.pack(stream[:2], 5, too_long="error")) == 2  # only samples of the stream count


def test_a_process_reads_a_sample_of_several_rows_once():
    read = []

    class Counted:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            read.append(index)
            return np.ones(100, np.int32)

    rows = data.pack(data.Stream(Counted()), 10, lengths=[100, 100])
    source = rows._leaves[0].source
    source.read(np.arange(10))
    read.clear()
    assert len(source.read(np.arange(10))) == 10
    assert read == [0]


def test_a_row_is_described_by_its_samples():
    rows = data.pack(data.Stream(documents([3, 1, 4])), 4)
    assert rows.describe_position(0).startswith("packed row 0, which holds ")


@pytest.mark.parametrize("length", [2, 5])
def test_a_sample_of_another_length_than_in_the_table_is_an_error(length):
    rows = data.pack(data.Stream(documents([3, 4])), 4, lengths=[length, 4])
    with pytest.raises(
        data.SampleError,
        match=f"data.pack: sample 0 of the source '.*' has the length 3; expected {length}, its length in the table of "
        "lengths; correct lengths=",
    ):
        rows.at(0)


def test_samples_with_other_columns_or_dtypes_than_the_first_are_errors():
    first = {"tokens": np.ones(3, np.int32)}
    for other, text in (
        (
            {"tokens": np.ones(3, np.int64)},
            r"has the column 'tokens' \(int64\); expected the column 'tokens' \(int32\)",
        ),
        ({"tokens": np.ones(3, np.int32), "mask": np.ones(3, bool)}, r"columns 'tokens' \(int32\), 'mask' \(bool\)"),
    ):
        rows = data.pack(data.Stream([first, other]), 3)
        assert rows.at(0)["tokens"].tolist() == [1, 1, 1]
        with pytest.raises(data.SampleError, match=text):
            rows.at(1)


@pytest.mark.parametrize(
    ("sample", "error", "text"),
    [
        ({"text": np.ones(3)}, ValueError, "has no column 'tokens'; expected one of its columns, 'text'"),
        ({"tokens": np.ones(3), "id": np.ones(2)}, ValueError, r"other lengths than 'tokens', 3: 'id' \(2\)"),
        ({"tokens": np.ones(3), "id": 7}, TypeError, "has 7 in the column 'id'; expected an array of numbers"),
        ({"tokens": np.ones(3), "positions": np.ones(3)}, ValueError, "has the column 'positions'"),
        ("a text", TypeError, "has 'a text' in the column 'tokens'"),
        (5, TypeError, "has 5 in the column 'tokens'"),
        (["a"], TypeError, "in the column 'tokens'"),
    ],
)
def test_samples_that_cannot_be_packed_are_refused_when_their_length_is_measured(sample, error, text):
    with pytest.raises(error, match=text):
        data.pack(data.Stream([sample]), 4)


@pytest.mark.parametrize(
    ("lengths", "error", "text"),
    [
        ([3], ValueError, "there are 1 lengths .* expected 2, one for each sample of the source"),
        ([3, 4, 5], ValueError, "there are 3 lengths"),
        ([3, -1], ValueError, "the length of sample 1 .* is -1; expected 0 to 2147483647"),
        ([3, 2**31], ValueError, "the length of sample 1 .* is 2147483648"),
        ([3.0, 4.0], TypeError, "an array of integers, one for each sample"),
        ([[3], [4]], TypeError, "an array of integers"),
        ([[3], [4, 5]], TypeError, "an array of integers"),
        ({"other": [3, 4]}, ValueError, "lengths has 'other', which the stream does not read"),
    ],
)
def test_lengths_that_do_not_match_are_refused(lengths, error, text):
    with pytest.raises(error, match=text):
        data.pack(data.Stream(documents([3, 4])), 4, lengths=lengths)


def test_one_array_of_lengths_for_two_sources_is_refused():
    streams = {name: (data.Stream(documents([3, 4])), 1) for name in ("web", "code")}
    with pytest.raises(
        ValueError, match=r"lengths is one array, and the stream reads 2 sources; .* write lengths={'web'"
    ):
        data.pack(data.mix(streams, seed=0), 4, lengths=[3, 4])


def test_the_pipeline_shows_the_packing():
    rows = data.pack(data.Stream(documents([3, 4]), seed=7).shuffle(), 4)
    assert repr(rows).splitlines() == [
        "Stream of 2 samples, seed 7",
        "pack(4, by='tokens')",
        "shuffle()",
        "a list",
    ]


def test_a_pickled_stream_of_rows_gives_the_same_rows():
    rows = data.pack(data.Stream(documents([3, 4, 9]), seed=7).shuffle(), 4).shuffle()
    assert_equal_rows(rows_of(pickle.loads(pickle.dumps(rows))), rows_of(rows))


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (lambda stream: data.pack(stream, 5), "its order is .* and that of the stream .*; its packing is .*rows of 4"),
        (lambda stream: data.pack(stream.map(lambda x: x[1:]), 4), "its packing is .*rows of 4 tokens, lengths "),
        (lambda stream: data.pack(stream.shuffle(), 4), "its order is .*, and that of the stream "),
        (
            lambda stream: data.pack(data.Stream(documents([3, 4, 9], 2), seed=7).shuffle(), 4),
            "the source 'packed' had",
        ),
        (lambda stream: stream, "its packing is "),
    ],
    ids=["row length", "lengths", "order", "source", "not packed"],
)
def test_a_state_of_other_rows_is_refused(other, text):
    stream = data.Stream(documents([3, 4, 9]), seed=7).shuffle()
    state = data.batches(data.pack(stream, 4), 2).state()
    assert data.batches(data.pack(stream, 4), 2, state=state).state() == state
    with pytest.raises(ValueError, match=text):
        data.batches(other(stream), 2, state=state)


def test_batches_of_rows_go_on_after_any_batch():
    rows = data.pack(data.Stream(documents([3, 4, 9, 2, 7, 1]), seed=7).shuffle(), 4).shuffle()
    whole = [np.asarray(batch["tokens"]).tolist() for batch in data.batches(rows, 2)]
    assert whole == [[rows.at(2 * step + row)["tokens"].tolist() for row in range(2)] for step in range(3)]
    for step in range(4):
        state = data.batches(rows, 2).state_at(step)
        rest = data.batches(rows, 2, state=state)
        assert [np.asarray(batch["tokens"]).tolist() for batch in rest] == whole[step:]


def test_an_endless_stream_without_tokens_is_refused():
    with pytest.raises(ValueError, match=r"data.pack: an endless stream of samples without tokens"):
        data.pack(data.Stream(documents([0, 0])).repeat(), 4)


def test_a_position_beyond_the_last_row_is_an_error():
    with pytest.raises(IndexError, match="2"):
        data.pack(data.Stream(documents([3, 4])), 4).at(2)
