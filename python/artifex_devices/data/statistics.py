# SPDX-License-Identifier: Apache-2.0
"""Counters of an iteration over batches."""

from __future__ import annotations

import dataclasses

from artifex_devices._base.public_path import public
from artifex_devices.prefetch import PrefetchStats


@public("artifex_devices.data")
@dataclasses.dataclass(frozen=True)
class SkippedSample:
    """A sample that could not be read.

    Attributes:
        position: Position of the sample in the stream.
        source: Name of its source.
        index: Index of the sample in its source.
        used: Position of the sample that was used instead of it.
    """

    position: int
    source: str
    index: int
    used: int


@public("artifex_devices.data")
@dataclasses.dataclass(frozen=True)
class BatchStats(PrefetchStats):
    """Counters of `data.batches`, with the counters of its Prefetcher. Source: measured by `time.perf_counter`.

    Attributes:
        samples: Number of samples in the returned batches, over all processes.
        elapsed_s: Seconds from the first `next` to the last returned batch.
        skipped: Samples that could not be read, over all processes, since this iteration began.
        epochs: Epoch of each source in the last returned batch, by name: how often `repeat` had repeated it. Empty
            where a part of an endless stream is repeated.
    """

    samples: int = 0
    elapsed_s: float = 0.0
    skipped: tuple[SkippedSample, ...] = ()
    epochs: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def samples_per_s(self) -> float:
        """Samples a second from the first `next` on; 0.0 before the first batch."""
        return self.samples / self.elapsed_s if self.elapsed_s > 0.0 else 0.0
