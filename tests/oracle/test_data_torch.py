# SPDX-License-Identifier: Apache-2.0
"""torch's own DataLoader reads the order of a stream: exact after a resume, with workers, on other numbers of ranks."""

import numpy as np
import pytest
from artifex_devices import data

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch.utils.data import DataLoader, Dataset  # noqa: E402

N = 103
# Not by fork: JAX of other tests has threads in this process.
OPTIONS = {0: {}, 2: {"num_workers": 2, "multiprocessing_context": "forkserver"}}


class Numbers(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, index):
        return torch.tensor(index * 10)


STREAM = data.Stream(Numbers(), seed=7).shuffle()


def loader(rank=0, world=1, batch=4, workers=0, stream=STREAM):
    sampler = data.TorchSampler(stream, rank=rank, world=world)
    return data.TorchLoader(Numbers(), batch_size=batch, sampler=sampler, **OPTIONS[workers])


def numbers(batches):
    return [(batch // 10).tolist() for batch in batches]


def joined(batches):
    return [number for batch in numbers(batches) for number in batch]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_order_of_the_stream(workers):
    found = joined(loader(workers=workers))
    assert found == STREAM.indices(0, N).tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_is_lost_or_repeated_after_a_resume_with_workers(workers):
    # Other loaders count what the workers have read ahead.
    first = loader(workers=workers)
    used = []
    for step, batch in enumerate(first):
        used += (batch // 10).tolist()
        if step == 4:
            state = first.state_dict()
            break
    second = loader(workers=workers, batch=7)
    second.load_state_dict(state)
    used += joined(second)
    assert used == STREAM.indices(0, N).tolist()


def test_no_epoch_is_skipped_after_a_resume():
    epochs = STREAM.repeat()
    whole = loader()
    expected = [joined(whole) for _ in range(3)]
    assert expected == [epochs.indices(k * N, (k + 1) * N).tolist() for k in range(3)]
    first = loader()
    _ = list(first)
    for when in (0, 3):  # between two epochs, and inside the second
        resumed = loader()
        resumed.load_state_dict(first.state_dict())
        assert joined(resumed) == expected[1][4 * when :]
        assert joined(resumed) == expected[2]
        iterator = iter(first)
        for _ in range(3):
            next(iterator)


def test_all_ranks_have_equally_many_batches():
    # Unequal counts hang the last step of a job whose ranks exchange gradients.
    for world in (1, 2, 3, 5, 8):
        counts = {len(numbers(loader(rank, world))) for rank in range(world)}
        lengths = {len(loader(rank, world)) for rank in range(world)}
        assert counts == lengths == {-(-(N // world) // 4)}


def test_global_batches_are_equal_on_another_number_of_ranks():
    def batches_of(world, batch, state=None):
        loaders = [loader(rank, world, batch) for rank in range(world)]
        for each in loaders if state else []:
            each.load_state_dict(state)
        return loaders, [set(np.concatenate(step).tolist()) for step in zip(*map(numbers, loaders), strict=True)]

    _, one = batches_of(1, 12)
    _, four = batches_of(4, 3)
    assert one[:8] == four[:8]
    loaders = [loader(rank, 4, 3) for rank in range(4)]
    for each in loaders:
        iterator = iter(each)
        for _ in range(5):
            next(iterator)
    states = [each.state_dict() for each in loaders]
    assert all(state == states[0] for state in states)
    _, resumed = batches_of(2, 6, states[0])
    assert resumed[:3] == one[5:8]


def test_a_plain_loader_is_counted_by_advance():
    sampler = data.TorchSampler(STREAM, batch_size=4)
    plain = DataLoader(Numbers(), batch_size=4, sampler=sampler, **OPTIONS[2])
    for step, _ in enumerate(plain):
        sampler.advance()
        if step == 2:
            break
    resumed = data.TorchSampler(STREAM)
    resumed.load_state_dict(sampler.state_dict())
    assert list(resumed) == STREAM.indices(12, N).tolist()


def test_the_stream_itself_is_a_dataset():
    mixed = data.mix(
        {"a": (data.Stream(np.arange(20), seed=1).shuffle(), 2), "b": (data.Stream(np.arange(100, 120)), 1)}
    )
    sampler = data.TorchSampler(data.Stream(mixed))
    found = torch.cat(list(data.TorchLoader(mixed, batch_size=5, sampler=sampler, **OPTIONS[2]))).tolist()
    assert found == [int(mixed.at(p)) for p in range(len(mixed))]


def test_an_endless_stream_goes_on():
    stream = STREAM.repeat()
    first = loader(stream=stream)
    iterator = iter(first)
    found = joined(next(iterator) for _ in range(60))
    assert found == stream.indices(0, 240).tolist()
    resumed = loader(stream=stream)
    resumed.load_state_dict(first.state_dict())
    assert (next(iter(resumed)) // 10).tolist() == stream.indices(240, 244).tolist()


def test_a_state_of_another_stream_is_refused():
    state = loader().state_dict()
    with pytest.raises(ValueError, match="the state is of another stream"):
        loader(stream=data.Stream(Numbers(), seed=8).shuffle()).load_state_dict(state)
