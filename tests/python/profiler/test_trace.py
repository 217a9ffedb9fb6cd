# SPDX-License-Identifier: Apache-2.0
"""Traces: what they record, of one process and of simulated ones, the slowest participants, and what they show."""

import json
import random
import threading
import time

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, lax, multihost_utils, profiler
from artifex_devices.prefetch import prefetch_to_device
from artifex_devices.testing import run_processes
from matplotlib.text import Annotation


def of_kind(trace, kind):
    return [event for event in trace.events if event.kind == kind]


def test_transfers_have_their_route_bytes_and_line():
    with ad.simulate(4), profiler.trace() as trace:
        mesh = ad.make_mesh((4,), ("x",), (ad.AxisType.Auto,))
        rows = ad.device_put(np.ones((8, 8), np.float32), ad.NamedSharding(mesh, P("x")))
        columns = ad.device_put(rows, ad.NamedSharding(mesh, P(None, "x")))
        value = np.asarray(columns)
        columns.block_until_ready()
    assert value.sum() == 64
    moves = of_kind(trace, "transfer")
    puts = [event for event in moves if event.name == "host-to-device"]
    assert [(event.device, event.detail) for event in puts] == [(f"cpu:{i}", f"host -> cpu:{i}") for i in range(4)]
    assert all(event.planned_bytes == event.moved_bytes == 64 for event in puts)
    reshards = [event for event in moves if event.name == "device-to-device"]
    assert len(reshards) == 4
    assert sum(event.moved_bytes for event in reshards) == sum(event.planned_bytes for event in reshards) == 256
    assert {event.line for event in reshards} == {
        test_transfers_have_their_route_bytes_and_line.__code__.co_firstlineno + 4
    }
    assert all(event.file == __file__ and event.end_s >= event.begin_s >= 0 for event in moves)


def test_copies_that_run_in_the_background_end_later():
    with ad.simulate(2), profiler.trace() as trace:
        there = ad.device_put(np.ones(1 << 22), ad.devices()[0])
        for _ in range(3):
            there = ad.device_put(there, ad.devices()[0 if there.device == ad.devices()[1] else 1], may_alias=False)
        there.block_until_ready()
    moved = [event for event in of_kind(trace, "transfer") if event.name == "device-to-device"]
    assert [event.moved_bytes for event in moved] == [8 << 22] * 3
    assert all(event.end_s > event.begin_s for event in moved)


def test_memory_follows_the_counters():
    with ad.simulate(2) as _, profiler.trace() as trace:
        device = ad.devices()[1]
        kept = ad.device_put(np.ones(1000), device)
        dropped = ad.device_put(np.ones(3000), device)
        dropped.delete()
    del kept
    values = [
        row["args"]["bytes"]
        for row in trace.as_dict()["traceEvents"]
        if row["ph"] == "C" and row["name"].endswith("cpu:1")
    ]
    assert values == [0, 8000, 32000, 8000]


def test_spans_nest_and_may_decorate_a_function():
    @profiler.annotate("inner", size=3)
    def work(depth):
        if depth:
            work(depth - 1)

    with profiler.trace() as trace, profiler.annotate("outer"):
        work(1)
    spans = of_kind(trace, "span")
    assert [(event.name, event.detail) for event in spans] == [
        ("outer", ""),
        ("inner", "size=3"),
        ("inner", "size=3"),
    ]
    outer, first, second = spans
    assert outer.begin_s <= first.begin_s <= second.begin_s <= second.end_s <= first.end_s <= outer.end_s


def test_prefetching_has_a_track_of_its_own():
    with profiler.trace() as trace, prefetch_to_device(np.ones((4, 2)) for _ in range(3)) as batches:
        assert len(list(batches)) == 3
    names = {event.name for event in of_kind(trace, "prefetch")}
    assert {"read a batch", "place a batch"} <= names
    tracks = [row["args"]["name"] for row in trace.as_dict()["traceEvents"] if row["name"] == "thread_name"]
    assert any(name.startswith("prefetch") for name in tracks)


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_40_slow_participants_are_named(executor):
    generator = random.Random(5)
    late = [generator.randrange(4) for _ in range(40)]

    def body(block):
        for slow in late:
            if lax.axis_index("x") == slow:
                time.sleep(0.04)  # slow work
            lax.psum(block, "x")
        return lax.psum(block, "x")

    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",), (ad.AxisType.Auto,))
        total = ad.shard_map(body, mesh, P("x"), P(), executor=executor)
        with profiler.trace() as trace:
            total(np.ones(4))
    named = [meeting.slowest.device for meeting in trace.collectives][:40]
    assert named == [f"cpu:{slow}" for slow in late]
    assert sum(meeting.waited_s for meeting in trace.collectives[:40]) > 40 * 0.04
    assert {len(meeting.members) for meeting in trace.collectives} == {4}
    assert trace.collectives[0].slowest.line == body.__code__.co_firstlineno + 4
    assert "shard_map(body): psum float64(1,) over x at test_trace.py:" in str(trace)


def test_members_of_groups_in_another_order_have_their_own_devices():
    def body(block):
        if lax.axis_index(("x", "y")) == 2:
            return lax.psum(block, ("y", "x"))  # the only one at this line
        return lax.psum(block, ("y", "x"))

    with ad.simulate(4):
        mesh = ad.make_mesh((2, 2), ("x", "y"), (ad.AxisType.Auto,) * 2)
        total = ad.shard_map(body, mesh, P(("x", "y")), P())
        with profiler.trace() as trace:
            total(np.ones(4))
    (meeting,) = trace.collectives
    line = body.__code__.co_firstlineno + 2
    assert {event.device: event.line - line for event in meeting.members} == {
        "cpu:0": 1,
        "cpu:1": 1,
        "cpu:2": 0,
        "cpu:3": 1,
    }


def step():
    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    x = ad.device_put(np.ones(mesh.size), ad.NamedSharding(mesh, P("x")))
    y = ad.shard_map(lambda block: lax.psum(block, "x"), mesh, P("x"), P())(x)
    z = ad.device_put(x, ad.NamedSharding(mesh, P()))
    multihost_utils.sync_global_devices("end")
    return np.asarray(y).sum() + np.asarray(z).sum()


def check_job_trace(trace, processes):
    assert {event.process for event in trace.events} == set(range(processes))
    (total,) = trace.collectives
    assert sorted((event.process, event.device) for event in total.members) == [
        (n, f"cpu:{2 * n + i}") for n in range(processes) for i in range(2)
    ]
    assert {event.detail for event in of_kind(trace, "meeting")} == {f"0-{processes - 1}"}
    exchanged = [event for event in of_kind(trace, "transfer") if event.name == "device-to-device"]
    assert {event.process for event in exchanged} == set(range(processes))
    # The devices of a process share a buffer.
    assert all(event.moved_bytes == event.planned_bytes == 2 * processes * 8 for event in exchanged)
    rows = trace.as_dict()["traceEvents"]
    starts, ends = ([row for row in rows if row["ph"] == kind] for kind in "sf")
    assert len(starts) == len(ends) == sum(len(meeting.members) - 1 for meeting in trace.meetings)
    slices = [row for row in rows if row["ph"] == "X"]
    for arrow in starts + ends:
        assert any(
            (row["pid"], row["tid"]) == (arrow["pid"], arrow["tid"])
            and row["ts"] - 1e-3 <= arrow["ts"] <= row["ts"] + row["dur"] + 1e-3
            for row in slices
        )


def test_a_trace_around_simulated_processes_has_all_of_them():
    with profiler.trace() as trace:
        assert run_processes(step, processes=3).results == [12.0] * 3
    assert {event.process for event in trace.events} == {0, 1, 2}
    assert len(trace.collectives) == 1


def test_simulated_processes_gather_one_trace(tmp_path):
    def program():
        with profiler.trace(tmp_path / "trace.json") as trace:
            step()
        return trace

    run = run_processes(program, processes=3, seed=4)
    check_job_trace(run.results[0], 3)
    assert {event.process for event in run.results[2].events} == {2}
    assert [clock.is_shared for clock in run.results[0].clocks] == [True] * 3
    document = json.loads((tmp_path / "trace.json").read_text())
    assert document == json.loads(json.dumps(run.results[0].as_dict()))
    host = run.results[0].clocks[0].host
    assert document["otherData"]["clock of process 0"] == f"the reference, on {host}"
    assert document["otherData"]["clock of process 2"].startswith(f"that of process 0, on {host}")
    assert run.events == run_processes(program, processes=3, seed=4).events


def test_a_slow_simulated_process_is_named():
    def program():
        with profiler.trace() as trace:
            for slow in (2, 0, 1, 2):
                multihost_utils.sync_global_devices("before")
                if ad.process_index() == slow:
                    time.sleep(0.05)  # slow work
                multihost_utils.process_allgather(slow)
        return trace

    for seed in range(3):
        trace = run_processes(program, processes=3, seed=seed).results[0]
        gathers = [meeting for meeting in trace.meetings if meeting.name == "process_allgather"]
        assert [max(meeting.members, key=lambda event: event.begin_s) for meeting in gathers] == [
            meeting.slowest for meeting in gathers
        ]
        assert len(gathers) == 4


def test_an_exception_leaves_what_was_recorded(tmp_path):
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path / "trace.json"), profiler.annotate("broken"):
        1 / 0  # noqa: B018
    document = json.loads((tmp_path / "trace.json").read_text())
    assert [row["name"] for row in document["traceEvents"] if row["ph"] == "X"] == ["broken"]

    def program():
        with profiler.trace(tmp_path / "job.json"):
            if ad.process_index() == 1:
                raise ValueError("boom")
            multihost_utils.sync_global_devices("here")

    done = run_processes(program, processes=2, return_exceptions=True)
    assert type(done.results[1]) is ValueError
    assert (tmp_path / "job.process_0.json").exists()
    assert (tmp_path / "job.process_1.json").exists()


def test_nothing_is_recorded_outside_of_the_block():
    with profiler.annotate("before"):
        ad.device_put(np.ones(3))
    trace = profiler.trace()
    with trace:
        pass
    ad.device_put(np.ones(3))
    assert trace.events == ()
    assert str(trace) == "Trace: 0 events, 0 s"


def test_traces_overlap_and_threads_may_record():
    def work():
        with profiler.annotate("in a thread"):
            ad.device_put(np.ones(3)).block_until_ready()

    with profiler.trace() as outer:
        with profiler.trace() as inner:
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with profiler.annotate("later"):
            pass
    assert len(of_kind(inner, "span")) == 4
    assert len(of_kind(outer, "span")) == 5
    assert len({event.thread for event in of_kind(inner, "span")}) <= 4


def test_a_picture_shows_tracks_and_the_slowest():
    with ad.simulate(2), profiler.trace() as trace:
        mesh = ad.make_mesh((2,), ("x",), (ad.AxisType.Auto,))
        with profiler.annotate("step"):
            ad.shard_map(lambda block: lax.psum(block, "x"), mesh, P("x"), P())(np.ones(2))
    ax = trace.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["thread 1", "cpu:0", "cpu:1"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [kind for kind in ("span", "collective", "transfer") if of_kind(trace, kind)]
    spans = [path for bars in ax.collections for path in bars.get_paths()]
    assert len(spans) == len(trace.events)
    assert len([text for text in ax.texts if isinstance(text, Annotation)]) == len(trace.meetings)
    assert "up to " in ax.get_xlabel()
    names = [text.get_text() for text in ax.texts if text.get_ha() == "center"]
    assert "step" in names  # its bar is as long as the picture
    beginnings = [name.removesuffix("\N{HORIZONTAL ELLIPSIS}") for name in names]
    assert all(any(event.name.startswith(name) for event in trace.events) for name in beginnings)
    html = trace._repr_html_()
    assert "<th" in html
    assert "others waited" in html
    assert repr(trace).startswith("<Trace: ")


def test_a_trace_records_one_block():
    trace = profiler.trace()
    with trace:
        pass
    with pytest.raises(RuntimeError, match=r"^trace: this trace has recorded a block already; expected a new one"):
        trace.__enter__()
    with pytest.raises(RuntimeError, match=r"^trace: left without having been entered; expected a `with` block"):
        profiler.trace().__exit__(None, None, None)


def test_a_folder_that_does_not_exist_is_reported_before_the_block(tmp_path):
    with pytest.raises(FileNotFoundError, match="for the trace"), profiler.trace(tmp_path / "none" / "trace.json"):
        pytest.fail("the block must not run")
