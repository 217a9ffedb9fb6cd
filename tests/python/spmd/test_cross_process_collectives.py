# SPDX-License-Identifier: Apache-2.0
"""The tests of the collectives once more, with the participants in several processes (played by threads)."""

import math

import numpy as np
import pytest
import shared_worlds
import test_collectives
from artifex_devices._spmd.cross_process import CrossProcess
from artifex_devices._spmd.executors import run
from artifex_devices._spmd.process_groups import ProcessMap
from artifex_devices._spmd.session import Session
from artifex_devices.errors import CollectiveError
from shared_worlds import Job
from spmd_programs import name_of, unwatched
from test_collectives import *  # noqa: F403 - the tests

# These tests are about the memory of one process.
del test_ppermute_hands_on_blocks_that_nobody_can_write, test_memory_of_results_goes_back  # noqa: F821


def launch_across(processes):
    """As spmd_programs.launch, with the participants dealt out to processes in runs of their order."""

    def launch(body, executor, axes=None, **options):
        first = {}

        def common(value):
            """Tests that all members have one array mean: the same bits, between processes."""
            if type(value) is not np.ndarray:
                return value
            return first.setdefault((value.dtype, value.shape, value.tobytes()), value)

        axes = axes or {"i": 8}
        count = math.prod(axes.values())
        options.setdefault("operation", "launch")
        timeout_s = options.pop("timeout_s", 30.0)
        used = min(processes, count)
        owner = [i * used // count for i in range(count)]

        def process(index):
            process_map = ProcessMap(job.clients[index], tuple(axes.values()), [(each,) for each in owner])
            names = [f"cpu:{i}" for i in process_map.here]
            others = CrossProcess(process_map, options["operation"])
            session = Session(tuple(axes), tuple(axes.values()), names, others=others if used > 1 else None, **options)
            try:
                return run(session, body, list(process_map.here), name_of(executor), timeout_s)
            except BaseException as error:
                for circle in process_map.meeting_sets():
                    if circle != others.unmet:
                        job.transports[index].refuse("launch", f"{type(error).__name__}: {error}", circle)
                raise

        with unwatched(executor), Job([owner.count(index) for index in range(used)]) as job:
            results = [None] * used

            def guarded(index):
                results[index] = process(index)

            errors = [error for error in job.run(guarded, expect_errors=True) if error is not None]
        own = [error for error in errors if not isinstance(error, (CollectiveError, RuntimeError))]
        if errors:
            raise (own or errors)[0]
        return [common(value) for each in results for value in each]

    return launch


@pytest.fixture(autouse=True, params=[(2, False), (3, False), (4, False), (3, True)], ids=str)
def in_processes(request, monkeypatch):
    count, share_memory = request.param
    monkeypatch.setattr(shared_worlds, "share_memory", share_memory)
    monkeypatch.setattr(test_collectives, "launch", launch_across(count))
