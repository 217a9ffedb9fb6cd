# SPDX-License-Identifier: Apache-2.0
"""Processes agree for each batch on the samples that were skipped, so that their states stay equal."""

from __future__ import annotations

import dataclasses

import numpy as np

from artifex_devices import multihost_utils
from artifex_devices._base.digest import digest_of
from artifex_devices._core import internal
from artifex_devices.data.reading import Replacement
from artifex_devices.data.state import Progress
from artifex_devices.distributed import transport as transports
from artifex_devices.distributed.failure_notice import error_text


class SkipAgreement:
    """The processes of a job, of which each reads other samples of a batch."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._client = internal.current_client()

    def gather(self, before: Progress, replaced: list[Replacement]) -> list[Replacement]:
        """Returns the samples of a batch that any process has replaced, by position. All processes call it together.

        Raises:
            CollectiveError: A process has failed, has ended, or has come to another batch.
        """
        count = self._client.process_count()
        own = sorted(set(replaced), key=dataclasses.astuple)
        if count > 1:
            operation = f"{self._operation}: the samples that were skipped in batch {before.step}"
            digest = digest_of(f"{self._operation}|{before}")
            payload = len(own).to_bytes(8, "little")
            received = transports.of_client(self._client, operation).agree(operation, digest, range(count), payload)
            longest = max(int.from_bytes(each[:8], "little") for each in received)
            if longest:
                table = np.full((longest, 4), -1, np.int64)
                table[: len(own)] = np.array([dataclasses.astuple(each) for each in own], np.int64).reshape(-1, 4)
                rows = multihost_utils.process_allgather(table).reshape(-1, 4)
                found = {Replacement(*row) for row in rows.tolist() if row[0] >= 0}
                own = sorted(found, key=dataclasses.astuple)
        return own

    def refuse(self, error: BaseException) -> None:
        """Reports to the other processes, which wait in `gather` or come to it, that this process has failed."""
        count = self._client.process_count()
        if count > 1:
            transport = transports.of_client(self._client, self._operation)
            transport.refuse(self._operation, error_text(error), range(count))
