# SPDX-License-Identifier: Apache-2.0
"""Timelines of real jobs: stragglers that are planted are those that are named."""

import random
import time

import numpy as np
import pytest
from polling import wait_until

pytestmark = pytest.mark.real_processes
MEETINGS = 40


def straggle(seed, folder):
    """Meets the others, each time with another late process. Returns these, those that are named, waits, and trace."""
    from pathlib import Path

    import artifex_devices as ad
    from artifex_devices import multihost_utils
    from artifex_devices.distributed import flight_records
    from artifex_devices.distributed.timeline import Timeline

    generator = random.Random(seed)
    late = [generator.randrange(ad.process_count()) for _ in range(MEETINGS)]
    for number, process in enumerate(late):
        multihost_utils.sync_global_devices(f"before {number}")
        if process == ad.process_index():  # waits until the others are about to meet, and then some more
            files = [Path(folder, f"{number}-{other}") for other in range(ad.process_count()) if other != process]
            assert wait_until(lambda files=files: all(file.exists() for file in files))
            time.sleep(0.1)  # a slow process
        else:
            Path(folder, f"{number}-{ad.process_index()}").touch()
        multihost_utils.process_allgather(np.ones(3))
    multihost_utils.sync_global_devices("end")
    timeline = Timeline(flight_records.read_job(flight_records.last_job()))
    multihost_utils.sync_global_devices("all have read")
    found = [meeting for meeting in timeline.meetings if meeting.operation.startswith("process_allgather")]
    named = [timeline.records[meeting.members[meeting.last].record].process for meeting in found]
    return late, named, [meeting.waited_ns for meeting in found], timeline.trace()


def test_each_straggler_is_named(processes, tmp_path):
    for late, named, waited_ns, trace in processes(3, straggle, 5, str(tmp_path)).values:
        assert named == late
        assert min(waited_ns) > 0.1e9  # two others waited for 0.1 s each
        arrows = [event for event in trace["traceEvents"] if event["ph"] == "s"]
        ends = {event["id"]: event for event in trace["traceEvents"] if event["ph"] == "f"}
        assert {arrow["id"] for arrow in arrows} == ends.keys()  # each arrow ends, in another process and later
        assert all(ends[arrow["id"]]["pid"] != arrow["pid"] for arrow in arrows)
        assert all(ends[arrow["id"]]["ts"] >= arrow["ts"] for arrow in arrows)
        begun = [event["pid"] for event in arrows if event["ts"] > 0]
        assert all(begun.count(process) >= 2 * late.count(process) for process in range(3))
        assert {event["pid"] for event in trace["traceEvents"]} == {0, 1, 2}
