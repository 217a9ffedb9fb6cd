# SPDX-License-Identifier: Apache-2.0
"""Sources: samples by number, in memory and of other libraries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._base.digest import digest_of
from artifex_devices._base.leaf_types import PyTree
from artifex_devices._base.public_path import public

_SAMPLED = 64  # values that a digest reads
_BLOCK = 4096  # bytes that a digest reads of each


@public("artifex_devices.data")
class Source:
    """Samples that are read by number. `data.source` returns one; derive from it for a reader of your own.

    A derived class has `__len__` and `read`, and `digest` if its content can change.
    """

    #: File or folder beside which tables about the samples may be stored; None for sources in memory.
    path: Path | None = None
    #: What decides rows of packed samples, for messages; "" for other sources.
    packing: str = ""

    def __len__(self) -> int:
        """Returns the number of samples."""
        raise NotImplementedError(f"{type(self).__name__} needs __len__")

    def read(self, indices: NDArray[np.int64]) -> list[PyTree]:
        """Returns the samples at `indices`, which may be in any order and repeat."""
        raise NotImplementedError(f"{type(self).__name__} needs read(indices)")

    def __getitem__(self, index: int) -> PyTree:
        """Returns one sample."""
        length = len(self)
        if not -length <= index < length:
            raise IndexError(f"{self!r}: index {index}; expected {-length} to {length - 1}; ask for len(source) first")
        return self.read(np.array([index % length], np.int64))[0]

    def digest(self) -> str:
        """Returns a text that is another one for other content, as far as that is cheap to know."""
        return digest_of(f"{type(self).__qualname__} {len(self)}").hex()[:32]

    def describe(self, index: int) -> str:
        """Returns which record a sample is, for messages."""
        return f"sample {index} of {self!r}"

    @property
    def shards(self) -> NDArray[np.int64]:
        """The index at which each file or row group begins, for `shuffle(shards=True)`."""
        return np.zeros(min(1, len(self)), np.int64)

    def _samples_at(self, indices: NDArray[np.int64]) -> Any:
        """Returns the stream that packed rows are made of, and the positions in it; None for other sources."""
        return None


class ArraySource(Source):
    """The rows of an array in memory."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def read(self, indices: NDArray[np.int64]) -> list[PyTree]:
        """Returns the samples at `indices`."""
        return list(self._array[indices])

    def digest(self) -> str:
        """Returns a digest of the length and of some samples."""
        array = self._array
        found = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=16)
        for row in _spread(len(array)):
            found.update(np.ascontiguousarray(array[row]).tobytes()[:_BLOCK])
        return found.hexdigest()

    def __repr__(self) -> str:
        return f"an array of {self._array.dtype}{list(self._array.shape)}"


class ObjectSource(Source):
    """An object with `__len__` and `__getitem__` or `read(indices)`: a list, a dataset of another library."""

    def __init__(self, samples: Any) -> None:
        self._samples = samples
        self._reads = callable(getattr(samples, "read", None))

    def __len__(self) -> int:
        return len(self._samples)

    def read(self, indices: NDArray[np.int64]) -> list[PyTree]:
        """Returns the samples at `indices`."""
        if self._reads:
            return list(self._samples.read(indices))
        read_all = getattr(self._samples, "__getitems__", None)  # datasets of torch, Hugging Face and Grain have it
        if callable(read_all):
            return list(read_all(indices.tolist()))
        return [self._samples[index] for index in indices.tolist()]

    def digest(self) -> str:
        """Returns the digest of the object, or one of its class and length; of lists and texts also of some samples.

        Samples of other objects are not read: they may be random, or slow to read.
        """
        own = getattr(self._samples, "digest", None)
        if callable(own):
            return str(own())
        text = f"{type(self._samples).__module__}.{type(self._samples).__qualname__} {len(self)}"
        if isinstance(self._samples, (list, tuple, str, bytes, range)):
            text += "".join(f" {_content(self._samples[index])}" for index in _spread(len(self)))
        return digest_of(text).hex()[:32]

    def __repr__(self) -> str:
        name = type(self._samples).__name__
        return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _spread(length: int) -> Sequence[int]:
    """Returns numbers of samples at equal distance, the last one too."""
    return sorted({*range(0, length, max(1, length // _SAMPLED)), length - 1}) if length else []


def _content(sample: Any) -> str:
    """Returns the beginning of a sample as text; of objects whose text may be an address, the class only."""
    if isinstance(sample, np.ndarray) and sample.dtype != object:
        return f"{sample.dtype.str}{sample.shape}{np.ascontiguousarray(sample).tobytes()[:_BLOCK].hex()}"
    if isinstance(sample, dict):
        return "{" + ",".join(f"{key!r}:{_content(value)}" for key, value in sample.items() if type(key) is str) + "}"
    if isinstance(sample, (list, tuple)):
        return "[" + ",".join(_content(each) for each in sample[:_SAMPLED]) + f"]{len(sample)}"
    if isinstance(sample, (str, bytes)):
        return repr(sample[:_BLOCK]) + str(len(sample))
    return repr(sample) if isinstance(sample, (int, float, complex, bool, np.generic)) else type(sample).__qualname__
