# SPDX-License-Identifier: Apache-2.0
"""Traces of jobs: events of all processes in one file, and the process that is late is named."""

import json
import random
import time

import numpy as np
import pytest

MEETINGS = 40


def traced(file, late_s):
    """Each collective has another process that is late, by `late_s`.

    Returns these, those that are named, clocks, bytes and spans.
    """
    import artifex_devices as ad
    from artifex_devices import P, lax, multihost_utils, profiler

    generator = random.Random(3)
    late = [generator.randrange(ad.process_count()) for _ in range(MEETINGS)]
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    x = ad.device_put(np.ones(mesh.size), ad.NamedSharding(mesh, P("x")))
    add = ad.shard_map(lambda block: lax.psum(block, "x"), mesh, in_specs=P("x"), out_specs=P())
    add(x)  # so that no process compiles or imports at its first step
    with profiler.trace(file) as trace:
        multihost_utils.sync_global_devices("start")
        for process in late:
            with profiler.annotate("step"):
                if process == ad.process_index():
                    time.sleep(late_s)  # slow work
                add(x)
        ad.device_put(x, ad.NamedSharding(mesh, P())).block_until_ready()
    named = [meeting.slowest.process for meeting in trace.collectives]
    moves = [event for event in trace.events if event.kind == "transfer" and event.name == "device-to-device"]
    spans = [event.process for event in trace.events if event.kind == "span"]
    return late, named, trace.clocks, [(e.process, e.planned_bytes, e.moved_bytes) for e in moves], spans


def check(values, file, count):
    late, named, clocks, moves, spans = values[0]
    assert [clock.process for clock in clocks] == list(range(count))
    assert all(clock.is_shared and clock.ahead_s == 0 and clock.error_s is not None for clock in clocks)
    assert sorted(moves) == [(process, 2 * count * 8, 2 * count * 8) for process in range(count)]
    assert sorted(spans) == sorted(list(range(count)) * MEETINGS)
    assert all(set(each[4]) == {process} for process, each in enumerate(values) if process)
    document = json.loads(file.read_text())
    rows = document["traceEvents"]
    assert {row["pid"] for row in rows} == set(range(count))
    tracks = {(row["pid"], row["args"]["name"]) for row in rows if row["name"] == "thread_name"}
    assert {(process, f"cpu:{2 * process + i}") for process in range(count) for i in range(2)} <= tracks
    assert len(document["otherData"]) == count
    return late, named


def test_processes_gather_one_trace(processes, tmp_path):
    values = processes(3, traced, str(tmp_path / "trace.json"), 0).values
    late, named = check(values, tmp_path / "trace.json", 3)
    assert len(named) == len(late)


@pytest.mark.real_processes
def test_each_late_process_is_named(processes, tmp_path):
    values = processes(3, traced, str(tmp_path / "trace.json"), 0.1).values
    late, named = check(values, tmp_path / "trace.json", 3)
    assert named == late
