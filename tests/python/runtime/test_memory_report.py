# SPDX-License-Identifier: Apache-2.0
"""memory_report: exact bytes and peaks of each device, nested and over threads; creation lines when asked for."""

import contextvars
import gc
import inspect
import os
import sys
import threading

import artifex_devices as ad
import numpy as np
import pytest

KIB = 1024


def line_here():
    return inspect.currentframe().f_back.f_lineno


def kib(count, device=None):
    return ad.device_put(np.zeros(count * KIB, np.uint8), device)


def first(numbers):
    return next(iter(numbers.values()))


@pytest.fixture
def traced():
    ad.config.update("trace_allocations", True)
    yield
    ad.config.update("trace_allocations", False)


@pytest.fixture
def world():
    with ad.simulate(2):
        yield ad.devices()


def test_bytes_by_device(world):
    kept = kib(1, world[1])
    with ad.memory_report() as report:
        big = kib(10, world[0])
        del big
        small = kib(3, world[0])
    kib(100, world[0])
    assert report.peak_bytes == {world[0]: 10 * KIB, world[1]: KIB}
    assert report.bytes_at_start == {world[0]: 0, world[1]: KIB}
    assert report.bytes_in_use == {world[0]: 3 * KIB, world[1]: KIB}
    assert report.allocated == {world[0]: 13 * KIB, world[1]: 0}
    assert report.freed == {world[0]: 10 * KIB, world[1]: 0}
    assert [(record.shape, record.dtype, record.bytes) for record in report.top] == [
        ((3 * KIB,), np.dtype(np.uint8), 3 * KIB),
        ((KIB,), np.dtype(np.uint8), KIB),
    ]
    assert report.top[0].sharding == small.sharding
    assert kept.nbytes == KIB


def test_a_peak_before_the_block_does_not_count(world):
    kib(50, world[0])
    with ad.memory_report() as report:
        kib(2, world[0])
    assert report.peak_bytes[world[0]] == 2 * KIB
    assert world[0].memory_stats()["peak_bytes_in_use"] == 50 * KIB


def test_nested_reports_have_peaks_of_their_own(world):
    with ad.memory_report() as outer:
        kib(5)
        held = kib(1)
        with ad.memory_report() as inner:
            kib(2)
            with ad.memory_report() as innermost:
                kib(3)
        with ad.memory_report() as second:
            kib(1)
        del held
    assert first(innermost.peak_bytes) == 4 * KIB
    assert first(inner.peak_bytes) == 4 * KIB
    assert first(second.peak_bytes) == 2 * KIB
    assert first(outer.peak_bytes) == 5 * KIB
    assert first(inner.allocated) == 5 * KIB
    assert first(outer.allocated) == first(outer.freed) == 12 * KIB


def test_reports_may_end_in_any_order(world):
    one, two = ad.memory_report(), ad.memory_report()
    one.__enter__()
    kib(1)
    two.__enter__()
    kib(4)
    one.__exit__(None, None, None)
    kib(9)
    two.__exit__(None, None, None)
    kib(20)
    assert first(one.peak_bytes) == 4 * KIB
    assert first(two.peak_bytes) == 9 * KIB


def test_numbers_can_be_read_in_the_block(world):
    with ad.memory_report() as report:
        assert first(report.peak_bytes) == 0
        held = kib(7)
        assert first(report.peak_bytes) == first(report.bytes_in_use) == 7 * KIB
        assert report.top[0].bytes == held.nbytes
        assert "now" in str(report)
        assert "measuring" in repr(report)
    assert "end" in str(report)
    assert repr(report) == "<MemoryReport: done, peak of a device 7.0 KiB>"


def test_replicas_count_in_full(world):
    mesh = ad.make_mesh((2,), ("x",))
    with ad.memory_report() as report:
        array = ad.device_put(np.zeros(KIB, np.uint8), ad.NamedSharding(mesh, ad.P()))
    assert set(report.peak_bytes.values()) == {KIB}
    assert report.top[0].bytes == array.on_device_size_in_bytes() == 2 * KIB


def test_a_block_that_raises_is_measured_and_its_error_passes(world):
    report = ad.memory_report()

    def work():
        kib(6)
        raise KeyError

    with pytest.raises(KeyError), report:
        work()
    assert first(report.peak_bytes) == 6 * KIB


def test_threads_are_counted(world):
    def work():
        for _ in range(200):
            kib(1, world[0])
            with ad.memory_report() as mine:
                held = kib(2, world[0])
            peaks.append(mine.peak_bytes[world[0]])
            del held

    peaks = []
    with ad.memory_report() as report:
        threads = [threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(peaks) == 4 * 200
    assert min(peaks) >= 2 * KIB
    assert first(report.allocated) == first(report.freed) == 4 * 200 * 3 * KIB
    assert max(peaks) <= first(report.peak_bytes)
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        assert first(report.peak_bytes) <= 4 * 3 * KIB  # else a report that ends holds Arrays that other threads drop


def test_the_report_keeps_no_memory(world, nothing_left):
    with ad.memory_report() as report:
        held = kib(8)
        assert report.top
    del held
    gc.collect()
    assert world[0].memory_stats()["bytes_in_use"] == 0
    assert report.top[0].bytes == 8 * KIB


def test_worlds_are_kept_apart():
    with ad.simulate(1), ad.memory_report() as outer:
        with ad.simulate(1), ad.memory_report() as inner:
            kib(4)
        kib(1)
    assert first(inner.peak_bytes) == 4 * KIB
    assert first(outer.peak_bytes) == KIB


def test_a_report_measures_one_block(world):
    report = ad.memory_report()
    assert str(report) == "<MemoryReport: not entered>"
    assert report.peak_bytes == {}
    with report:
        pass
    with pytest.raises(RuntimeError, match="has measured a block already"), report:
        pass


@pytest.mark.parametrize(("top", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError), ("3", TypeError)])
def test_bad_numbers(top, error):
    with pytest.raises(error, match=r"memory_report: top .* expected "):
        ad.memory_report(top)


def test_top_is_limited_and_sorted(world):
    with ad.memory_report(top=2) as report:
        held = [kib(n) for n in (1, 5, 3)]
    assert [record.bytes for record in report.top] == [5 * KIB, 3 * KIB]
    assert "Live Arrays (end): 3, 9.0 KiB on all devices" in str(report)
    assert len(held) == 3


def test_memories_of_a_made_up_machine_are_counted_once():
    physical = []
    for world in (1, "2 nodes x 1"):
        with ad.simulate(world), ad.memory_report() as report:
            held = kib(64)
        physical.append([line for line in str(report).splitlines() if line.startswith("Physical memory")])
        del held
    assert physical[0] == physical[1]


# --- Creation lines ---


def test_creation_lines(world, traced):
    with ad.memory_report() as report:
        small, line = kib(1), 0
        big, line = ad.device_put(np.zeros(5 * KIB, np.uint8)), line_here()
        tree = ad.device_put({"a": np.zeros(100 * KIB, np.uint8)}, world[0])
        tree_line = line_here() - 1
    assert [record.created_at for record in report.top[:2]] == [f"{__file__}:{tree_line}", f"{__file__}:{line}"]
    assert report.top[2].created_at == f"{__file__}:{kib.__code__.co_firstlineno + 1}"
    assert f"{__file__}:{line}" in str(report)
    assert (small.nbytes, big.nbytes, len(tree)) == (KIB, 5 * KIB, 1)


def test_reshards_and_threads_are_traced_too(world, traced):
    mesh = ad.make_mesh((2,), ("x",))
    made = {}

    def work():
        made["line"] = line_here() + 1
        made["array"] = ad.device_put(source, ad.NamedSharding(mesh, ad.P("x")))

    source = ad.device_put(np.zeros(256 * KIB, np.uint8), world[0])
    with ad.memory_report() as report:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert f"{__file__}:{made['line']}" in [record.created_at for record in report.top]


def test_nothing_is_traced_by_default(world):
    assert ad.config.trace_allocations is False
    with ad.memory_report() as report:
        held = kib(1)
    assert report.top[0].created_at is None
    assert held.nbytes == KIB


def test_arrays_made_before_tracing_have_no_line(world):
    early = kib(2)
    ad.config.update("trace_allocations", True)
    late = kib(1)
    ad.config.update("trace_allocations", False)
    with ad.memory_report() as report:
        pass
    assert [record.created_at is None for record in report.top] == [True, False]
    assert early.nbytes > late.nbytes


def test_tracing_refuses_what_is_not_a_bool():
    with pytest.raises(TypeError, match="trace_allocations"):
        ad.config.update("trace_allocations", 2)


def test_a_forked_child_can_report(world, traced):
    held = kib(1)
    with ad.memory_report():
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with ad.memory_report() as inner:
                    kib(2)
                code = 0 if first(inner.peak_bytes) == 3 * KIB else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert held.nbytes == KIB


def test_a_report_is_left_after_it_was_entered(world):
    with pytest.raises(RuntimeError, match="memory_report: left without having been entered"):
        ad.memory_report().__exit__(None, None, None)
