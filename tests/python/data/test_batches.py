# SPDX-License-Identifier: Apache-2.0
"""data.batches: the same global batches for every number of processes and devices, and the last batch."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import data, multihost_utils
from artifex_devices.errors import IndivisibleError
from artifex_devices.testing import run_processes


def stream_of(count=100, seed=3):
    return data.Stream(np.arange(count), seed=seed).shuffle()


def plain_order(stream):
    return stream.indices(0, len(stream))


def values(batches):
    return [np.asarray(batch).tolist() for batch in batches]


def whole(x):
    return multihost_utils.process_allgather(x, tiled=True)


def line(uneven=None):
    return ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("data",)), ad.P("data"), uneven=uneven)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_are_the_samples_in_the_order_of_the_stream(workers, prefetch):
    stream = stream_of()
    with data.batches(stream, 8, workers=workers, prefetch=prefetch) as batches:
        assert len(batches) == 12
        found = values(batches)
    assert np.concatenate(found).tolist() == plain_order(stream)[:96].tolist()


def test_trees_of_samples_become_trees_of_arrays():
    stream = data.Stream(np.arange(6.0)).map(lambda x: {"x": np.full((2, 3), x), "n": (int(x), x > 2)})
    batch = next(data.batches(stream, 4))
    assert batch["x"].shape == (4, 2, 3)
    assert np.asarray(batch["x"])[:, 0, 0].tolist() == [0, 1, 2, 3]
    assert np.asarray(batch["n"][0]).tolist() == [0, 1, 2, 3]
    assert np.asarray(batch["n"][1]).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (np.int32(1), np.float32(2)),
        (1, 2.5),
        (np.arange(6, dtype=">i4"), np.arange(6, dtype=">i4")),
        (np.arange(6, dtype="<i4"), np.arange(6, dtype=">i4")),
        (np.zeros((2, 3), np.int16), np.arange(6, dtype=np.float32).reshape(3, 2).T),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 17, 39])
def test_samples_of_other_dtypes_and_layouts_are_stacked_as_by_numpy(first, other, place):
    samples = [first] * place + [other] * (40 - place)
    batch = np.asarray(next(data.batches(data.Stream(list(range(40))).map(lambda i: samples[i]), 40)))
    expected = np.stack([np.asarray(sample) for sample in samples])
    assert batch.dtype == expected.dtype
    np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize(
    ("last", "sizes"), [("drop", [24] * 4), ("short", [24, 24, 24, 24, 4]), ("pad", [24, 24, 24, 24, 24])]
)
def test_the_last_batch_is_dropped_short_or_padded(last, sizes):
    stream = stream_of()
    batches = data.batches(stream, 24, last=last)
    assert len(batches) == len(sizes)
    found = list(batches)
    if last == "pad":
        masks = [np.asarray(mask) for _, mask in found]
        found = [batch for batch, _ in found]
        assert np.concatenate(masks).tolist() == [True] * 100 + [False] * 20
        assert np.asarray(found[-1])[4:].tolist() == [0] * 20
    assert [len(batch) for batch in found] == sizes
    kept = 96 if last == "drop" else 100
    assert np.concatenate(found)[:kept].tolist() == plain_order(stream)[:kept].tolist()
    assert batches.state()["position"] == kept


def test_a_stream_that_is_shorter_than_a_batch():
    stream = stream_of(5)
    batches = data.batches(stream, 8)
    assert (len(batches), list(batches), batches.state()["position"]) == (0, [], 0)
    assert values(data.batches(stream, 8, last="short")) == [plain_order(stream).tolist()]
    [(batch, mask)] = data.batches(stream, 8, last="pad")
    assert np.asarray(batch).tolist() == [*plain_order(stream), 0, 0, 0]
    assert np.asarray(mask).tolist() == [True] * 5 + [False] * 3
    assert len(data.batches(stream, 2**62)) == 0


def test_an_endless_stream_has_endless_batches():
    batches = data.batches(stream_of(10).repeat(), 8)
    with pytest.raises(TypeError, match=r"len\(batches\): the stream is endless; expected a stream with a length"):
        len(batches)
    with batches:
        found = [np.asarray(next(batches)) for _ in range(10)]
    epochs = np.concatenate(found).reshape(8, 10)
    assert np.sort(epochs).tolist() == [list(range(10))] * 8
    assert len({tuple(epoch) for epoch in epochs.tolist()}) > 1


def global_batches(batch, last, uneven):
    """The full value of each batch in a process, and whether each of its shards has the right rows."""
    stream = data.Stream(np.arange(100), seed=3).shuffle().map(lambda x: np.full(3, x))
    found = []
    with data.batches(stream, batch, line(uneven), last=last) as batches:
        for each in batches:
            rows = each[0] if last == "pad" else each
            full = whole(rows)
            assert all(np.array_equal(shard.data, full[shard.index]) for shard in rows.addressable_shards)
            found += [full, whole(each[1])] if last == "pad" else [full]
    return found, batches.state()


@pytest.mark.parametrize(("last", "uneven"), [("drop", None), ("pad", None), ("short", "last-short")])
def test_global_batches_do_not_depend_on_processes_and_devices(last, uneven):
    expected, state = global_batches(48, last, uneven)
    for processes, devices in [(1, 2), (2, 1), (3, 2), (3, [1, 2, 3]), (4, 4), (8, 2), (16, 1)]:
        run = run_processes(global_batches, processes, devices, seed=processes, args=(48, last, uneven))
        for found, found_state in run.results:
            assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
            assert found_state == state


@pytest.mark.parametrize("devices", [[1, 2, 4], [5, 1], [3, 3, 3, 3, 1]])
def test_a_batch_that_odd_numbers_of_devices_do_not_divide(devices):
    expected, _ = global_batches(24, "short", "last-short")
    run = run_processes(global_batches, len(devices), devices, args=(24, "short", "last-short"))
    for found, _ in run.results:
        assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]


class Counted:
    """A source that records what each process reads."""

    def __init__(self, count=64):
        self.count = count
        self.read_by = {}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.read_by.setdefault(ad.process_index(), []).append(int(index))
        return np.full(4, index)


def read_once(source, entries, order):
    devices = np.array(ad.devices())[order] if order else np.array(ad.devices())
    mesh = ad.Mesh(devices.reshape(-1, 2), ("data", "model"))
    with data.batches(data.Stream(source), 16, ad.NamedSharding(mesh, ad.P(*entries)), workers=1) as batches:
        return [whole(batch).tolist() for batch in batches]


@pytest.mark.parametrize(
    ("entries", "order", "rows"),
    [
        (("data",), None, [range(8), range(8, 16)]),
        (("data", "model"), None, [range(8), range(8, 16)]),
        ((("data", "model"),), None, [range(8), range(8, 16)]),
        ((None, "model"), None, [range(16), range(16)]),
        ((), None, [range(16), range(16)]),
        ((("data", "model"),), [0, 4, 1, 5, 2, 6, 3, 7], [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]),
        ((("data", "model"),), [0, 1, 4, 5, 2, 3, 6, 7], [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]),
    ],
)
def test_each_process_reads_only_the_rows_of_its_shards(entries, order, rows):
    source = Counted()
    run = run_processes(read_once, 2, 4, args=(source, entries, order))
    expected = [np.repeat(np.arange(16 * k, 16 * k + 16), 4).reshape(16, 4).tolist() for k in range(4)]
    assert run.results == [expected, expected]
    for process in range(2):
        assert source.read_by[process] == [16 * k + int(row) for k in range(4) for row in rows[process]]


def some_have_no_rows():
    source = Counted()
    sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()[:2]), ("data",)), ad.P("data"))
    with data.batches(data.Stream(source), 16, sharding, workers=1) as batches:
        found = [(batch.shape, batch.dtype.name, len(batch.addressable_shards)) for batch in batches]
    return found, source.read_by.get(ad.process_index(), [])


def test_a_process_without_rows_reads_one_sample_for_the_structure():
    for process, (found, read) in enumerate(run_processes(some_have_no_rows, 3, 1).results):
        assert found == [((16, 4), "int64", int(process < 2))] * 4
        assert read == ([0] if process == 2 else [16 * k + 8 * process + i for k in range(4) for i in range(8)])


def different_targets():
    mesh = ad.Mesh(np.array(ad.devices()), ("data",))
    target = {"x": ad.NamedSharding(mesh, ad.P("data")), "y": ad.NamedSharding(mesh, ad.P())}
    stream = data.Stream(np.arange(8)).map(lambda x: {"x": x, "y": (x, x + 1)})
    with data.batches(stream, 4, target) as batches:
        return [(whole(each["x"]).tolist(), whole(each["y"][1]).tolist()) for each in batches]


def test_a_tree_of_targets_is_a_prefix_of_each_batch():
    expected = [([0, 1, 2, 3], [1, 2, 3, 4]), ([4, 5, 6, 7], [5, 6, 7, 8])]
    assert run_processes(different_targets, 2, 2).results == [expected] * 2


def own_default_device():
    with data.batches(data.Stream(np.arange(8)), 4) as batches:
        found = [np.asarray(batch).tolist() for batch in batches]
    return found, next(data.batches(data.Stream(np.arange(8)), 4)).device == ad.local_devices()[0]


def test_without_a_sharding_each_process_has_all_rows_on_its_default_device():
    expected = ([[0, 1, 2, 3], [4, 5, 6, 7]], True)
    assert run_processes(own_default_device, 2, 2).results == [expected] * 2


def test_a_sharding_that_does_not_divide_a_batch_is_an_error_before_anything_is_read():
    source = Counted(18)
    with ad.simulate(4):
        for batch, last in [(6, "drop"), (12, "short"), (3, "pad")]:
            with pytest.raises(IndivisibleError, match=r"data\.batches"):
                data.batches(data.Stream(source), batch, line(), last=last)
        assert len(data.batches(data.Stream(source), 12, line(), last="drop")) == 1
    assert source.read_by == {}


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (
            lambda x: np.zeros(int(x)),
            ValueError,
            "the samples at positions 0 and 1 have shapes (0,) and (1,); expected",
        ),
        (lambda x: {"a": x} if x else {"b": x}, ValueError, "the samples at positions 0 and 1 are different trees"),
        (lambda x: {"t": "abc"}, TypeError, "the sample at position 0 has 'abc' (<U3) in ['t']; expected arrays of"),
        (lambda x: (x, None if x else 1), ValueError, "the samples at positions 0 and 1 are different trees"),
    ],
)
def test_samples_that_do_not_make_an_array_are_an_error(function, error, text):
    with pytest.raises(error) as caught:
        next(data.batches(data.Stream(np.arange(8)).map(function), 4))
    assert text in str(caught.value)
