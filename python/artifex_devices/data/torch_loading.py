# SPDX-License-Identifier: Apache-2.0
"""The order of a stream for torch's DataLoader. torch is imported by the caller: nothing here needs it before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from artifex_devices._base.checks import check_int, failure, wrong_type
from artifex_devices._base.public_path import public
from artifex_devices.data.state import MAX_POSITION, Progress, StateOfStream
from artifex_devices.data.stream import Stream

_BLOCK = 4096  # indices that are asked for at once
_FIX = "write data.TorchSampler(stream, rank=rank, world=world)"
_Batch = TypeVar("_Batch")


@public("artifex_devices.data")
class TorchSampler:
    """A sampler for `torch.utils.data.DataLoader`: the indices of this rank, in the order of a stream.

    Rank r gets the samples at the positions r, r + world, r + 2 * world, ... So `world` ranks with batches of b read
    the global batch of world * b samples together, and the global batches stay equal on another number of ranks if
    world * b does. All ranks get equally many indices: at the end of an epoch, fewer than `world` samples are left out.

    An iteration goes to the end of the epoch. The next one begins the next epoch, in another order if the stream is
    shuffled; an endless stream is one epoch.

    The state counts what was used, not what workers have read ahead. `data.TorchLoader` counts its batches; with a
    plain DataLoader, call `advance()` once for each batch in the loop.

    Args:
        stream: A stream of one source without functions of `map`; the dataset of the DataLoader applies them.
        rank: Number of this process.
        world: Number of processes.
        batch_size: Number of samples in each batch of a rank, which `advance` counts.

    Raises:
        TypeError: An argument is of another type.
        ValueError: A number is out of range; the stream has several sources, or functions of `map`.

    Example:
        >>> from artifex_devices import data
        >>> stream = data.Stream(range(10, 17), seed=7)
        >>> list(data.TorchSampler(stream, rank=1, world=3))
        [1, 4]
    """

    def __init__(self, stream: Stream, rank: int = 0, world: int = 1, *, batch_size: int = 1) -> None:
        operation = "data.TorchSampler"
        if not isinstance(stream, Stream):
            raise wrong_type(operation, "stream", stream, "a Stream", "write data.Stream(source)")
        self._world = check_int(operation, "world", world, _FIX, minimum=1, maximum=MAX_POSITION)
        self._rank = check_int(operation, "rank", rank, _FIX, minimum=0, maximum=self._world - 1)
        self._batch_size = check_int(operation, "batch_size", batch_size, _FIX, minimum=1, maximum=MAX_POSITION)
        if len(stream._leaves) != 1 or stream._leaves[0].steps:
            what = "functions of map" if len(stream._leaves) == 1 else f"{len(stream._leaves)} sources"
            raise failure(
                ValueError,
                operation,
                f"the stream has {what}, and a sampler gives indices only",
                expected="a stream of one source without functions",
                fix="write TorchSampler(data.Stream(stream)) with dataset=stream, which applies them",
            )
        self._stream = stream
        self._epochs = stream if stream.length is None or not stream.length else stream.repeat()
        self._written = StateOfStream(self._epochs)
        self._begin = 0  # of the epoch, a position in the repeated stream
        self._position = 0  # of the next sample that no rank has used
        self._has_ended = False

    def _end(self) -> int:
        """Returns the end of the epoch, without the samples that not every rank gets one of."""
        if self._stream.length is None:
            return MAX_POSITION // self._world * self._world
        left = self._begin + self._stream.length - self._position
        return self._position + left // self._world * self._world

    def _next_epoch(self) -> None:
        self._begin += self._stream.length or 0
        self._position = self._begin

    def __iter__(self) -> Iterator[int]:
        if self._stream.length and (self._has_ended or self._end() == self._position):
            self._next_epoch()
        self._has_ended = False
        position, end = self._position, self._end()
        while position < end:
            stop = min(end, position + _BLOCK * self._world)
            yield from self._epochs.indices(position, stop)[self._rank :: self._world].tolist()
            position = stop
        self._has_ended = True

    def __len__(self) -> int:
        """Returns the number of indices of the next iteration."""
        if self._stream.length is None:
            raise failure(
                TypeError, "len", "the stream is endless", expected="a stream with an end", fix="write stream.take(n)"
            )
        if self._has_ended or self._end() == self._position:
            return self._stream.length // self._world
        return (self._end() - self._position) // self._world

    def advance(self, batches: int = 1) -> None:
        """Counts batches that were used, of `batch_size` samples in each rank.

        Example:
            >>> from artifex_devices import data
            >>> sampler = data.TorchSampler(data.Stream(range(100)), rank=0, world=2, batch_size=8)
            >>> sampler.advance()
            >>> sampler.state_dict()["position"]
            16
        """
        count = check_int(
            "TorchSampler.advance", "batches", batches, "write advance()", minimum=0, maximum=MAX_POSITION
        )
        self._advance_samples(count * self._batch_size)

    def _advance_samples(self, count: int) -> None:
        self._position = min(self._position + count * self._world, self._end())

    def state_dict(self) -> dict[str, int | str]:
        """Returns the state, a dict of ints and texts that is equal on all ranks.

        Example:
            >>> from artifex_devices import data
            >>> data.TorchSampler(data.Stream(range(10))).state_dict()["position"]
            0
        """
        return self._written.write(Progress(position=self._position))

    def load_state_dict(self, state: Mapping[str, int | str]) -> None:
        """Goes on from a state, which may be of another number of ranks and another batch size.

        Raises:
            TypeError: The state is not a dict of ints and texts.
            ValueError: It is of another stream.

        Example:
            >>> from artifex_devices import data
            >>> stream = data.Stream(range(10))
            >>> sampler = data.TorchSampler(stream, batch_size=4)
            >>> sampler.advance(2)
            >>> resumed = data.TorchSampler(stream, rank=1, world=2)
            >>> resumed.load_state_dict(sampler.state_dict())
            >>> list(resumed)
            [9]
        """
        self._position = self._written.read("TorchSampler.load_state_dict", state).position
        length = self._stream.length
        # A state at the end of an epoch is of that epoch: the next iteration begins the one after it.
        self._begin = max(0, self._position - 1) // length * length if length else 0
        self._has_ended = False


@public("artifex_devices.data")
class TorchLoader(Generic[_Batch]):
    """Counts the batches of a torch DataLoader as they are used, so that the state is exact with workers.

    Args:
        loader: A `torch.utils.data.DataLoader` whose sampler is a TorchSampler; or its dataset, with the arguments of
            DataLoader, `sampler` among them.
        arguments: Arguments of DataLoader.

    Raises:
        TypeError: The sampler is not a TorchSampler.
        ValueError: The DataLoader has no batches (`batch_size=None`).

    Example:
        >>> from artifex_devices import data
        >>> class Loader:  # stands for torch.utils.data.DataLoader
        ...     def __init__(self, dataset, sampler, batch_size):
        ...         self.dataset, self.sampler, self.batch_size = dataset, sampler, batch_size
        ...     def __iter__(self):
        ...         indices = list(self.sampler)
        ...         return (indices[k : k + self.batch_size] for k in range(0, len(indices), self.batch_size))
        >>> loader = data.TorchLoader(Loader(range(10), data.TorchSampler(data.Stream(range(10))), 4))
        >>> next(iter(loader)), loader.state_dict()["position"]
        ([0, 1, 2, 3], 4)
    """

    def __init__(self, loader: object, **arguments: object) -> None:
        operation = "data.TorchLoader"
        made: Any = loader
        if arguments:
            from torch.utils.data import DataLoader

            made = DataLoader(made, **arguments)
        sampler = getattr(made, "sampler", None)
        if not isinstance(sampler, TorchSampler):
            raise wrong_type(
                operation,
                "sampler",
                sampler,
                "a TorchSampler",
                "write DataLoader(dataset, sampler=data.TorchSampler(stream))",
            )
        if made.batch_size is None:
            raise failure(
                ValueError,
                operation,
                "the DataLoader has batch_size=None",
                expected="batches of a known size",
                fix="write batch_size=32",
            )
        self.loader = made
        self._sampler = sampler

    def __iter__(self) -> Iterator[_Batch]:
        sampler = self._sampler
        left = None
        for batch in self.loader:
            if left is None:  # the sampler has begun its epoch now
                left = (sampler._end() - sampler._position) // sampler._world
            count = min(self.loader.batch_size, left)
            left -= count
            sampler._advance_samples(count)
            yield batch

    def __len__(self) -> int:
        """Returns the number of batches of the next iteration."""
        return len(self.loader)

    def state_dict(self) -> dict[str, int | str]:
        """Returns the state after the batches that were handed out."""
        return self._sampler.state_dict()

    def load_state_dict(self, state: Mapping[str, int | str]) -> None:
        """Goes on from a state.

        Raises:
            TypeError: The state is not a dict of ints and texts.
            ValueError: It is of another stream.
        """
        self._sampler.load_state_dict(state)
