# SPDX-License-Identifier: Apache-2.0
"""Streams of samples whose order is a function of the position."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from artifex_devices._base.checks import check_bool, check_callable, check_int, failure, wrong_type
from artifex_devices._base.digest import digest_of
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._core.data import Order
from artifex_devices.data.finding import source as find_source
from artifex_devices.data.leaves import Leaf, MapStep
from artifex_devices.data.reading import read

_MOST = 2**63 - 1
_MOST_INDICES = 2**32  # of one call, 32 GiB


class _Node(NamedTuple):
    """A line of the pipeline: as users read it, and what decides the order."""

    text: str
    identity: str
    children: tuple[_Node, ...]


@public("artifex_devices.data")
class Stream:
    """Samples of a source in an order that is a function of the position alone.

    Nothing is read before `at`, an index or `data.batches`. A method returns a new stream. `stream[3]` is
    `stream.at(3)`, and `stream[10:20]` a stream.

    Args:
        source: What `data.source` takes: files, an array, or an object with `__len__` and `__getitem__`.
        seed: Number that decides shuffles and random functions, 0 to 2**63 - 1.

    Raises:
        TypeError: `source` cannot be read by number.

    Example:
        >>> from artifex_devices import data
        >>> stream = data.Stream([10, 20, 30, 40], seed=7).shuffle().map(lambda x: x + 1)
        >>> sorted(stream[p] for p in range(len(stream)))
        [11, 21, 31, 41]
        >>> stream.at(2) == [10, 20, 30, 40][stream.indices(2, 3)[0]] + 1
        True
    """

    def __init__(self, source: object, seed: int = 0) -> None:
        found = find_source(source)
        number = check_int("data.Stream", "seed", seed, "write seed=7", minimum=0, maximum=_MOST)
        line = _Node(repr(found), "source", ())
        self._set((), ("range", len(found)), (Leaf(found, "source", ()),), number, 0, line)

    def _set(
        self,
        parents: tuple[Stream, ...],
        recipe: tuple[Any, ...],
        leaves: tuple[Leaf, ...],
        seed: int,
        stage: int,
        line: _Node,
    ) -> None:
        self._parents = parents
        self._recipe = recipe  # of the order, which cannot be pickled
        self._leaves = leaves
        self._seed = seed
        self._stage = stage  # number of shuffles and random functions, which differ in it
        self._line = line
        self._order: Order = order_of(recipe, [parent._order for parent in parents])

    @classmethod
    def _of_leaf(cls, leaf: Leaf, size: int | None, seed: int = 0, inner: Stream | None = None) -> Stream:
        """Returns the stream of one source, which may be endless; `inner` is a stream that the source reads."""
        stream = object.__new__(cls)
        text = repr(leaf.source)
        line = _Node(text, "source", ()) if inner is None else _Node(text, text, (inner._line,))
        stream._set((), ("range", size), (leaf,), seed, 0, line)
        return stream

    @classmethod
    def _joined(
        cls, streams: dict[str, Stream], recipe: tuple[Any, ...], seed: int, texts: Iterable[str], identity: str
    ) -> Stream:
        """Returns one stream of several; `texts` has a line before each."""
        leaves: list[Leaf] = []
        marks = 0
        for name, stream in streams.items():
            for leaf in stream._leaves:
                steps = tuple(s if s.mark is None else s._replace(mark=s.mark + marks) for s in leaf.steps)
                of_several = len(stream._leaves) > 1
                leaves.append(Leaf(leaf.source, f"{name}/{leaf.name}" if of_several else name, steps))
            marks += stream._order.marks
        lines = [
            _Node(text, name, (stream._line,)) for text, (name, stream) in zip(texts, streams.items(), strict=True)
        ]
        joined = object.__new__(cls)
        joined._set(tuple(streams.values()), recipe, tuple(leaves), seed, 0, _Node(recipe[0], identity, tuple(lines)))
        return joined

    def _then(self, text: str, recipe: tuple[Any, ...], identity: str = "", *, stages: int = 0) -> Stream:
        """Returns this stream with one more step."""
        stream = object.__new__(type(self))
        line = _Node(text, identity or text, (self._line,))
        stream._set((self,), recipe, self._leaves, self._seed, self._stage + stages, line)
        return stream

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_order"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._order = order_of(self._recipe, [parent._order for parent in self._parents])

    @property
    def length(self) -> int | None:
        """Number of samples; None for an endless stream.

        Example:
            >>> from artifex_devices import data
            >>> stream = data.Stream(range(5))
            >>> stream.length, stream.repeat(2).length, stream.repeat().length
            (5, 10, None)
        """
        return self._order.size

    @property
    def seed(self) -> int:
        """The number that decides shuffles and random functions."""
        return self._seed

    def __len__(self) -> int:
        if self.length is None:
            raise failure(
                TypeError,
                "len",
                "the stream is endless",
                expected="a stream with an end",
                fix="write stream.take(n), or ask for stream.length, which is None",
            )
        return self.length

    def _key(self) -> int:
        """Returns the key of the next shuffle or random function."""
        return int.from_bytes(digest_of(f"{self._seed}/{self._stage}")[:8], "little")

    def shuffle(self, *, window: int | None = None, shards: Sequence[int] | bool = False) -> Stream:
        """Returns the samples in random order; each epoch of `repeat` has an order of its own.

        Args:
            window: Shuffle only inside consecutive windows of this many samples, for sources that are slow where
                the next index is far away. None: over the whole stream.
            shards: True: the files or row groups of the source in random order, and the samples inside each; or the
                positions where shards begin. The stream must then be the source itself or have its length.

        Raises:
            ValueError: The stream is endless, a window is below 1, or shards do not fit the stream.

        Example:
            >>> from artifex_devices import data
            >>> stream = data.Stream(range(8), seed=7)
            >>> sorted(stream.shuffle().indices(0, 8).tolist()) == list(range(8))
            True
            >>> sorted(stream.shuffle(window=4).indices(0, 4).tolist())
            [0, 1, 2, 3]
            >>> sorted(stream.shuffle(shards=[0, 6]).repeat(2).indices(8, 16).tolist()) == list(range(8))
            True
        """
        operation = "Stream.shuffle"
        key = self._key()
        if shards is not False:
            if window is not None:
                raise failure(
                    ValueError,
                    operation,
                    "window and shards are both given",
                    expected="one of them",
                    fix="write shuffle(shards=True)",
                )
            starts = self._shard_starts(operation) if shards is True else _positions(operation, "shards", shards)
            text = f"shuffle(shards={len(starts)})"
            identity = f"shuffle(seed={self._seed}, shards={digest_of(starts.tobytes()).hex()[:16]})"
            return self._then(text, ("shuffle_shards", key, starts), identity, stages=1)
        if window is not None:
            window = check_int(operation, "window", window, "write window=10_000", minimum=1, maximum=_MOST)
        text = "shuffle()" if window is None else f"shuffle(window={window})"
        identity = f"shuffle(seed={self._seed}, window={window})"
        return self._then(text, ("shuffle", key, window), identity, stages=1)

    def _shard_starts(self, operation: str) -> NDArray[np.int64]:
        [leaf, *others] = self._leaves
        if others or len(leaf.source) != self.length:
            raise failure(
                ValueError,
                operation,
                "shards=True on a stream that is not all of one source",
                expected="data.Stream(source) itself",
                fix="shuffle before other steps, or write the positions where shards begin: shards=[0, 1000]",
            )
        return leaf.source.shards

    def repeat(self, times: int | None = None) -> Stream:
        """Returns the stream several times, each time ("epoch") in another order if it is shuffled.

        Slices, `take`, `skip` and `filter` have the same samples in every epoch: shuffle after them for new orders.

        Args:
            times: Number of epochs; None: without end.

        Raises:
            ValueError: The stream is endless already, or empty and repeated without end.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(range(3)).repeat(2).indices(0, 6)
            array([0, 1, 2, 0, 1, 2])
        """
        if times is not None:
            times = check_int("Stream.repeat", "times", times, "write repeat(3)", minimum=0, maximum=_MOST - 1)
        return self._then(f"repeat({'' if times is None else times})", ("repeat", times))

    def take(self, count: int) -> Stream:
        """Returns the first samples, at most `count`.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(range(5)).repeat().take(7).indices(0, 7)
            array([0, 1, 2, 3, 4, 0, 1])
        """
        number = check_int("Stream.take", "count", count, "write take(100)", minimum=0, maximum=_MOST - 1)
        number = number if self.length is None else min(number, self.length)
        return self._then(f"take({number})", ("slice", 0, number, 1))

    def skip(self, count: int) -> Stream:
        """Returns the samples after the first `count`.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(range(5)).skip(3).indices(0, 2)
            array([3, 4])
        """
        number = check_int("Stream.skip", "count", count, "write skip(100)", minimum=0, maximum=_MOST - 1)
        if self.length is None:
            return self._then(f"skip({number})", ("slice", number, None, 1))
        number = min(number, self.length)
        return self._then(f"skip({number})", ("slice", number, self.length - number, 1))

    @overload
    def __getitem__(self, index: slice) -> Stream: ...
    @overload
    def __getitem__(self, index: int) -> PyTree: ...
    def __getitem__(self, index: int | slice) -> PyTree:
        operation = "Stream[...]"
        if not isinstance(index, slice):
            position = check_int(operation, "index", index, "write stream[3] or stream[10:20]")
            return self.at(position + self.length if position < 0 and self.length is not None else position)
        bounds = (index.start, index.stop, index.step)
        for name, bound in zip(("start", "stop", "step"), bounds, strict=True):
            if bound is not None:
                check_int(operation, name, bound, "write stream[10:20]")
        text = "[" + ":".join("" if b is None else str(b) for b in bounds[: 3 if index.step is not None else 2]) + "]"
        if self.length is not None:
            chosen = range(*index.indices(self.length))
            return self._then(text, ("slice", chosen.start if chosen else 0, len(chosen), chosen.step))
        start, step = index.start or 0, 1 if index.step is None else index.step
        if start < 0 or step < 1 or (index.stop is not None and index.stop < 0):
            raise failure(
                ValueError,
                operation,
                f"{text} counts from the end of an endless stream",
                expected="bounds from 0 and a step from 1",
                fix="write stream.take(n) first",
            )
        count = None if index.stop is None else len(range(start, index.stop, step))
        return self._then(text, ("slice", int(start) if count != 0 else 0, count, int(step)))

    def filter(self, keep: ArrayLike) -> Stream:
        """Returns the chosen samples.

        Args:
            keep: One bool for each position of the stream, or the positions to keep, in the order wanted.

        Raises:
            ValueError: The mask has another length than the stream, or the stream is endless.
            IndexError: A position is outside the stream.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(range(4)).filter([True, False, False, True]).indices(0, 2)
            array([0, 3])
            >>> data.Stream(range(4)).filter([2, 2, 1]).indices(0, 3)
            array([2, 2, 1])
        """
        operation = "Stream.filter"
        values = np.asarray(keep)
        if values.dtype == bool and values.ndim == 1:
            if self.length is None or len(values) != self.length:
                raise failure(
                    ValueError,
                    operation,
                    f"the mask has {len(values)} values",
                    expected=f"{'a stream with an end' if self.length is None else self.length}, one for each sample",
                    fix="give a mask of the length of the stream, or positions",
                )
            positions = np.flatnonzero(values).astype(np.int64)
        else:
            positions = _positions(operation, "keep", keep)
        identity = f"filter({len(positions)}, {digest_of(positions.tobytes()).hex()[:16]})"
        return self._then(f"filter({len(positions)} positions)", ("select", positions), identity)

    def map(self, function: Callable[..., PyTree], random: bool = False) -> Stream:
        """Returns the stream with a function applied to each sample when it is read.

        Args:
            function: Called as `function(sample)` by threads that read.
            random: Call `function(sample, generator)` with a NumPy Generator that depends on the seed, the epoch and
                the position only: the same after a resume and on every number of hosts.

        Example:
            >>> from artifex_devices import data
            >>> noisy = data.Stream([0.0, 0.0], seed=7).map(lambda x, generator: x + generator.normal(), random=True)
            >>> noisy.at(0) == noisy.at(0), noisy.at(0) == noisy.at(1)
            (True, False)
        """
        check_callable("Stream.map", "function", function, "write map(decode)")
        is_random = check_bool("Stream.map", "random", random, "write random=True")
        name = getattr(function, "__qualname__", None) or safe_repr(function)
        stream = self._then(
            f"map({name}{', random=True' if is_random else ''})",
            ("mark",) if is_random else (),
            "map(random)" if is_random else "map()",
            stages=is_random,
        )
        step = MapStep(function, self._order.marks if is_random else None, self._key())
        stream._leaves = tuple(leaf._replace(steps=(*leaf.steps, step)) for leaf in self._leaves)
        return stream

    def at(self, position: int) -> PyTree:
        """Returns the sample at a position.

        Raises:
            IndexError: The position is outside the stream.
            SampleError: The sample cannot be read.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(["a", "b", "c"]).at(1)
            'b'
        """
        number = check_int("Stream.at", "position", position, "write stream.at(0)", minimum=-_MOST, maximum=_MOST)
        fix = "repair the source, or leave the sample out by filter"
        return read(self, np.array([number]), skips=False, operation="Stream.at", fix=fix).samples[0]

    def indices(self, start: int, stop: int) -> NDArray[np.int64]:
        """Returns the indices in the source of the samples at the positions `start` to `stop` - 1.

        For several sources, each index is in the source of that sample, which `describe_position` names.

        Raises:
            IndexError: A position is outside the stream.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream(range(10))[::-1].indices(0, 3)
            array([9, 8, 7])
        """
        operation = "Stream.indices"
        first = check_int(operation, "start", start, "write indices(0, 10)", minimum=-_MOST, maximum=_MOST)
        end = check_int(operation, "stop", stop, "write indices(0, 10)", minimum=-_MOST, maximum=_MOST)
        if end - first > _MOST_INDICES:
            raise failure(
                ValueError,
                operation,
                f"{end - first} indices at once",
                expected=f"at most {_MOST_INDICES}",
                fix="ask for fewer positions at a time",
            )
        return self._order.indices(first, end)

    def describe_position(self, position: int) -> str:
        """Returns which record of which source is at a position.

        Raises:
            IndexError: The position is outside the stream.

        Example:
            >>> from artifex_devices import data
            >>> data.Stream([5, 6, 7])[::-1].describe_position(0)
            'sample 2 of a list'
        """
        number = check_int("Stream.describe_position", "position", position, "write 0", minimum=-_MOST, maximum=_MOST)
        numbers, indices, _ = self._resolve(np.array([number]))
        leaf = self._leaves[numbers[0]]
        found = leaf.source.describe(int(indices[0]))
        return found if len(self._leaves) == 1 else f"{leaf.name}: {found}"

    def _resolve(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]:
        """Returns source, index and keys (mark, position, (epoch, position)) of each position."""
        return self._order.resolve(positions)

    def _identity(self) -> dict[str, str]:
        """Returns what decides the samples, except the functions of `map`: a state of another one is refused."""
        packing = {leaf.name: leaf.source.packing for leaf in self._leaves if leaf.source.packing}
        return {
            "seed": str(self._seed),
            "sources": json.dumps({leaf.name: leaf.source.digest() for leaf in self._leaves}),
            "order": self._order_identity(),
            "packing": json.dumps(packing) if packing else "",
        }

    def _order_identity(self) -> str:
        """Returns what decides the indices of the samples."""
        return _identity_of(self._line)

    def __repr__(self) -> str:
        length = "endless stream" if self.length is None else f"stream of {self.length} samples"
        return f"{length[0].upper()}{length[1:]}, seed {self._seed}\n" + "\n".join(_lines(self._line, ""))


def order_of(recipe: tuple[Any, ...], parents: list[Order]) -> Order:
    """Returns the order of a step on the orders of the streams before it."""
    if not recipe:
        return parents[0]
    name, *arguments = recipe
    if name == "range":
        return Order.range(*arguments)
    joins = name in ("concatenate", "mix")
    made: Order = getattr(Order, name)(parents, *arguments) if joins else getattr(parents[0], name)(*arguments)
    return made


def _positions(operation: str, name: str, values: object) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise wrong_type(operation, name, values, "a sequence of positions", f"write {name}=[0, 1000]")
    if array.size and array.dtype.kind == "u" and int(array.max()) > _MOST:
        raise failure(
            IndexError,
            operation,
            f"{name} has the position {int(array.max())}",
            expected=f"at most {_MOST}",
            fix="give positions of the stream",
        )
    return array.astype(np.int64)


def _lines(node: _Node, indent: str) -> list[str]:
    """Returns the lines of a pipeline, the last step first."""
    lines = [indent + node.text]
    for child in node.children:
        lines += _lines(child, indent + "  " if len(node.children) > 1 else indent)
    return lines


def _identity_of(node: _Node) -> str:
    inner = [_identity_of(child) for child in node.children]
    return " > ".join(([f"({', '.join(inner)})"] if len(inner) > 1 else inner) + [node.identity])


@public("artifex_devices.data")
def concatenate(streams: Sequence[Stream]) -> Stream:
    """Returns one stream after the other; only the last may be endless. The seed is that of the first stream.

    Raises:
        TypeError: An element is not a Stream.
        ValueError: There are no streams, or one before the last is endless.

    Example:
        >>> from artifex_devices import data
        >>> both = data.concatenate([data.Stream(list("ab")), data.Stream(list("xyz"))])
        >>> "".join(both.at(p) for p in range(len(both)))
        'abxyz'
    """
    operation = "data.concatenate"
    found = list(streams) if isinstance(streams, (list, tuple)) else None
    if not found or not all(isinstance(each, Stream) for each in found):
        raise wrong_type(operation, "streams", streams, "a list of Streams", "write data.concatenate([first, second])")
    named = {str(number): stream for number, stream in enumerate(found)}
    texts = [f"{number}:" for number in named]
    return Stream._joined(named, ("concatenate",), found[0].seed, texts, "concatenate")
