# SPDX-License-Identifier: Apache-2.0
"""Programs over meshes of several processes: the bits of one process, and errors for all when one goes wrong.

Threads of this process play the processes; tests/distributed has real ones.
"""

from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
import shared_worlds
from artifex_devices import P, lax
from artifex_devices._spmd import chain, result_check
from artifex_devices._spmd.process_groups import ProcessMap
from artifex_devices.distributed import transport
from crossing_programs import DTYPES, expected, mesh_of, run
from shared_worlds import Job, check_value

LAYOUTS = [
    ((2, 2), (4,)),
    ((1, 1), (2,)),
    ((3, 1, 2), (6,)),
    ((2, 2), (2, 2)),
    ((1, 1, 1, 1), (2, 2)),
    ((4, 2, 2), (2, 2, 2)),
]


@pytest.fixture(autouse=True, params=[False, True], ids=["messages", "memory"])
def memory(request, monkeypatch):
    """Whether the processes share memory, as those of one host do."""
    monkeypatch.setattr(shared_worlds, "share_memory", request.param)
    return request.param


def check_everywhere(counts, *arguments):
    wanted = expected(*arguments)
    with Job(counts) as job:
        for made in job.run(lambda index: run(*arguments)):
            assert len(made) == len(wanted)
            for array, value in zip(made, wanted, strict=True):
                check_value(array, value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("counts", "sizes"), LAYOUTS, ids=str)
def test_every_collective_gives_the_bits_of_one_process(counts, sizes, dtype):
    check_everywhere(counts, sizes, 5, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
@pytest.mark.parametrize(("counts", "sizes"), [((2, 2), (4,)), ((2, 1, 1), (4,)), ((2, 2), (2, 2))], ids=str)
def test_big_blocks_too(counts, sizes, dtype):
    check_everywhere(counts, sizes, 400_001, dtype)


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
@pytest.mark.parametrize("columns", [5, 40_000])
def test_devices_in_any_order(order, columns):
    check_everywhere((2, 2), (4,), columns, "float32", order)


@pytest.mark.parametrize("columns", [5, 40_000])
def test_by_threads(columns):
    wanted = expected((2, 2), columns, "float32")
    with Job((2, 2)) as job:
        for made in job.run(lambda index: run((2, 2), columns, "float32", None, "threads")):
            for array, value in zip(made, wanted, strict=True):
                check_value(array, value)


def sum_of(body, counts=(2, 2), out_specs=None, **options):
    """What each process gets of shard_map(body) over one axis of arange rows: a value or an error."""

    def process(index):
        count = sum(counts)
        mapped = ad.shard_map(
            body(index), mesh_of((count,)), P("x"), P() if out_specs is None else out_specs, **options
        )
        again = ad.shard_map(lambda b: lax.psum(b, "x"), mesh_of((count,)), P("x"), P())
        rows = np.arange(float(count))
        try:
            made = np.asarray(mapped(rows))
        except Exception as error:
            made = error
        return made, np.asarray(again(rows)).item()

    with Job(counts) as job:
        return job.run(process)


def raise_in_one(index):
    def body(block):
        if lax.axis_index("x") == 3:
            raise ZeroDivisionError("in the last one")
        return lax.psum(block, "x")

    return body


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_an_exception_in_one_process_ends_the_others_and_the_next_call_works(executor):
    (first, total), (second, other) = sum_of(raise_in_one, executor=executor)
    assert isinstance(second, ZeroDivisionError)
    assert isinstance(first, RuntimeError)
    assert "ZeroDivisionError: in the last one" in str(first)
    assert total == other == 6.0


def raise_after_the_sum(index):
    def body(block):
        total = lax.psum(block, "x")
        if index == 1:
            raise ZeroDivisionError("after it")
        return total

    return body


def test_an_exception_after_the_last_collective_is_reported_too():
    (first, total), (second, other) = sum_of(raise_after_the_sum)
    assert isinstance(second, ZeroDivisionError)
    assert "ZeroDivisionError: after it" in str(first)
    assert total == other == 6.0


def test_all_processes_may_raise():
    def body(index):
        def divide(block):
            raise ZeroDivisionError(f"in process {index}")

        return divide

    for index, (made, total) in enumerate(sum_of(body)):
        assert str(made) == f"in process {index}"
        assert total == 6.0


def test_failures_reach_all_processes_of_a_mesh_of_several_groups():
    def process(index):
        mesh = mesh_of((2, 2))

        def body(block):
            if index == 0:
                raise ZeroDivisionError("early")
            return lax.psum(lax.psum(block, "x"), "y")

        def fine(block):
            return lax.psum(lax.psum(block, "x"), "y")

        reports = []
        for each in (body, fine, body):
            try:
                reports.append(np.asarray(ad.shard_map(each, mesh, P(("x", "y")), P())(np.arange(4.0))).item())
            except Exception as error:
                reports.append((type(error).__name__, str(error)))
        return reports

    with Job((1, 1, 1, 1)) as job:
        first, *others = job.run(process)
    assert first == [("ZeroDivisionError", "early"), 6.0, ("ZeroDivisionError", "early")]
    for before, total, after in others:
        assert total == 6.0
        for kind, text in (before, after):
            assert kind == "RuntimeError"
            assert "shard_map(body): ZeroDivisionError: early" in text


@pytest.mark.parametrize("other", [lambda b: lax.pmax(b, "x"), lambda b: lax.psum(np.repeat(b, 2), "x")])
def test_different_collectives_are_an_error_of_both(other):
    with Job((2, 2)) as job:

        def process(index):
            body = other if index else (lambda b: lax.psum(b, "x"))
            ad.shard_map(body, mesh_of((4,)), P("x"), P())(np.arange(4.0))

        for error in job.run(process, expect_errors=True):
            assert "psum float64(1,) over x at " in str(error)
            assert "test_cross_process.py:" in str(error)


def test_results_that_should_be_the_same_and_are_not():
    def body(index):
        return lambda block: np.full(3, lax.axis_index("x") // 2)

    for made, total in sum_of(body):
        assert isinstance(made, ValueError)
        assert "is replicated by its spec, but not the same in processes 0, 1" in str(made)
        assert total == 6.0
    for index, (made, _) in enumerate(sum_of(body, check_vma=False)):
        assert made.tolist() == [index] * 3


def test_results_of_different_shapes_are_an_error_of_both():
    def body(index):
        return lambda block: np.zeros(1 + index)

    with Job((2, 2)) as job:

        def process(index):
            ad.shard_map(body(index), mesh_of((4,)), P("x"), P("x"))(np.arange(4.0))

        for error in job.run(process, expect_errors=True):
            assert "output of float64(1,) as P('x',)" in str(error)
            assert "output of float64(2,) as P('x',)" in str(error)


def test_axes_that_bodies_do_not_see_may_span_processes():
    def process(index):
        mesh = mesh_of((2, 2))
        mapped = ad.shard_map(
            lambda b: (lax.psum(b, "y"), b * 2, lax.axis_size("y")), mesh, P("y"), (P(), P("y"), P()), axis_names={"y"}
        )
        return mapped(np.arange(4.0))

    with Job((2, 2)) as job:
        for total, twice, size in job.run(process):
            check_value(total, np.array([2.0, 4.0]))
            check_value(twice, np.arange(4.0) * 2)
            check_value(size, np.asarray(2))


def test_bodies_without_collectives_and_arguments_on_other_devices():
    def process(index):
        mesh = mesh_of((4,))
        rows = ad.device_put(np.arange(16.0).reshape(4, 4), ad.NamedSharding(mesh, P("x")))
        return ad.shard_map(lambda b: b + 1, mesh, P(None, "x"), P(None, "x"))(rows)

    with Job((3, 1)) as job:
        for made in job.run(process):
            check_value(made, np.arange(16.0).reshape(4, 4) + 1)


def test_a_mesh_of_own_devices_needs_nobody():
    def process(index):
        own = ad.Mesh(np.array(ad.local_devices()), ("x",))
        return ad.shard_map(lambda b: lax.psum(b, "x"), own, P("x"), P())(np.arange(2.0) + index)

    with Job((2, 2)) as job:
        assert [np.asarray(made).tolist() for made in job.run(process)] == [[1.0], [3.0]]
        assert all(not each.operations for each in job.transports)


def test_only_what_crosses_is_sent(memory):
    """psum of tiny blocks: each process's two blocks to the other, and nothing else."""
    with Job((2, 2)) as job:
        sent = []
        for each in job.transports:
            isend = each.isend
            each.isend = lambda buffer, peer, tag, isend=isend: sent.append(len(buffer)) or isend(buffer, peer, tag)
        job.run(lambda index: ad.shard_map(lambda b: lax.psum(b, "x"), mesh_of((4,)), P("x"), P())(np.ones((4, 16))))
        assert sent == ([] if memory else [256, 256])  # or with the words of the meeting
        sent.clear()
        shift = [(0, 1), (1, 2), (2, 3)]
        job.run(
            lambda index: ad.shard_map(lambda b: lax.ppermute(b, "x", shift), mesh_of((4,)), P("x"), P("x"))(
                np.ones((4, 16))
            )
        )
        assert sent == [128]


@pytest.mark.parametrize("tiled", [False, True])
def test_big_psum_scatter_returns_only_the_rows_of_each_process(memory, tiled):
    rows = 8 if tiled else 4
    x = np.random.default_rng(1).random((4, rows, 100_000), np.float32)
    total = x[0] + x[1] + x[2] + x[3]

    def process(index):
        def body(block):
            part = lax.psum_scatter(block[0], "x", scatter_dimension=0, tiled=tiled)
            return part if tiled else part[None]

        return ad.shard_map(body, mesh_of((4,)), P("x"), P("x"))(x)

    with Job((2, 2)) as job:
        sent = {}
        for i, each in enumerate(job.transports):
            isend = each.isend
            each.isend = lambda buffer, peer, tag, isend=isend, i=i: (
                sent.__setitem__(i, sent.get(i, 0) + memoryview(buffer).nbytes) or isend(buffer, peer, tag)
            )
        for made in job.run(process):
            check_value(made, total)
        half = total.nbytes // 2
        pieces = -(-half // chain._PIECE_BYTES) * chain._PIECE_BYTES
        assert sent == ({} if memory else {0: total.nbytes, 1: pieces})


def test_a_big_psum_has_few_pieces_on_their_way_to_a_slow_process(memory):
    x = np.random.default_rng(1).random((4, 1_200_000), np.float32)
    with Job((2, 2)) as job:
        under_way = []
        wait_some = job.transports[0].wait_some

        def one_send_at_a_time(requests, operation):
            sends = [place for place, request in enumerate(requests) if request[0] == "send"]
            under_way.append(len(sends))
            looked_at = [place for place in range(len(requests)) if place not in sends[1:]]
            return [looked_at[place] for place in wait_some([requests[place] for place in looked_at], operation)]

        job.transports[0].wait_some = one_send_at_a_time
        made = job.run(lambda index: ad.shard_map(lambda b: lax.psum(b, "x"), mesh_of((4,)), P("x"), P())(x))
    for each in made:
        check_value(each, x[:1] + x[1:2] + x[2:3] + x[3:])
    if not memory:
        assert -(-x[0].nbytes // chain._PIECE_BYTES) > 2 * chain._AHEAD
        assert max(under_way) == chain._AHEAD


def test_without_a_transport_there_is_an_error():
    with Job((2, 2)) as job:
        for client in job.clients:
            transport.installed.pop(client._uid, None)

        def process(index):
            ad.shard_map(lambda b: lax.psum(b, "x"), mesh_of((4,)), P("x"), P())(np.ones(4))

        for error in job.run(process, expect_errors=True):
            assert "no transport is installed" in str(error)


def test_pmap_takes_and_returns_the_rows_of_each_process():
    def process(index):
        rows = np.arange(4.0).reshape(2, 2) + 10 * index
        share = ad.pmap(lambda x: (x / lax.psum(x, "i"), lax.axis_index("i"), lax.psum(1, "i")), axis_name="i")
        return [np.asarray(made) for made in share(rows)]

    with Job((2, 2)) as job:
        made = job.run(process)
    every = np.concatenate([np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2) + 10])
    for index, (shares, numbers, sizes) in enumerate(made):
        assert np.array_equal(shares, (every / every.sum(axis=0))[2 * index : 2 * index + 2])
        assert numbers.tolist() == [2 * index, 2 * index + 1]
        assert sizes.tolist() == [4, 4]


def test_pmap_of_too_few_rows_for_the_devices_of_a_process():
    with Job((2, 2)) as job:
        errors = job.run(lambda index: ad.pmap(lambda x: x)(np.ones(1)), expect_errors=True)
    for error in errors:
        assert isinstance(error, ValueError)
        assert "1 rows for the 2 devices of this process" in str(error)


def test_processes_whose_groups_are_of_different_kinds_do_the_same():
    """One process has members of a group in runs only, another one also of one that has none."""
    check_everywhere((3, 3), (2, 3), 40_000, "float32", (0, 3, 1, 4, 2, 5))
    check_everywhere((2, 2, 2), (2, 3), 40_000, "float32", (0, 1, 2, 3, 4, 5))
    check_everywhere((2, 2, 2), (2, 3), 40_000, "float32", (0, 2, 1, 3, 4, 5))


def test_a_mesh_without_devices_of_this_process():
    def process(index):
        mesh = ad.Mesh(np.array(ad.devices()[:2]), ("x",))
        return np.asarray(ad.shard_map(lambda b: lax.psum(b, "x"), mesh, P("x"), P())(np.arange(2.0))).item()

    with Job((2, 2)) as job:
        values = job.run(lambda index: process(index) if index == 0 else None)
        errors = job.run(lambda index: process(index) if index == 1 else None, expect_errors=True)
    assert values == [1.0, None]
    assert "the mesh has no device of this process, 1" in str(errors[1])


@pytest.mark.parametrize(
    ("body", "hashed"),
    [
        (lambda block: lax.psum(block, "x"), 0),  # the bits of one collective are the same everywhere
        (lambda block: lax.psum(block, "x") + 1, 2),  # once in each process
    ],
)
def test_replicated_outputs_are_hashed_unless_they_come_from_one_collective(monkeypatch, body, hashed):
    seen = []
    digest = result_check.value_digest
    monkeypatch.setattr(result_check, "value_digest", lambda block: seen.append(block.tolist()) or digest(block))
    results = sum_of(lambda index: body)
    assert [(made.tolist(), total) for made, total in results] == [([6.0 + bool(hashed)], 6.0)] * 2
    assert seen == [[7.0]] * hashed


@pytest.mark.parametrize(
    ("owners", "circles", "compared"),
    [
        # Of a mesh of 2 x 2: a process for each participant, for each row, each diagonal, and three processes.
        ((0, 1, 2, 3), [(0, 1, 2, 3), (0, 2), (0, 1)], {"x": (0, 1), "y": (0, 2), "": (0, 1, 2, 3), "xy": None}),
        ((0, 0, 1, 1), [(0, 1)], {"x": None, "y": (0, 1), "": (0, 1), "xy": None}),
        ((0, 1, 1, 0), [(0, 1)], {"x": (0, 1), "y": (0, 1), "": (0, 1), "xy": None}),
        ((0, 1, 1, 2), [(0, 1, 2)], {"x": None, "y": None, "": (0, 1, 2), "xy": None}),
        ((0, 0, 0, 0), [(0,)], {"x": None, "y": None, "": None, "xy": None}),
    ],
)
def test_the_processes_that_collectives_and_equal_values_bring_together(owners, circles, compared):
    client = SimpleNamespace(_uid=0, process_index=lambda: 0)
    process_map = ProcessMap(client, (2, 2), [(owner,) for owner in owners])
    assert process_map.here == tuple(i for i, owner in enumerate(owners) if owner == 0)
    assert list(process_map.meeting_sets()) == circles
    for named, processes in compared.items():
        across = process_map.sharers(named, ("x", "y"))
        assert (None if across is None else across.processes) == processes
