# SPDX-License-Identifier: Apache-2.0
"""What the others see when something goes wrong in one process."""

import os
import re
import signal
import sys
import time

import pytest
from launching import end_without_notice, transport, wait_for_outcomes
from polling import wait_until


def everyone():
    return range(transport().process_count)


def different_operations():
    if transport().process_index == 0:
        transport().agree("psum of float32[4] over 'x'", b"a", everyone())
    else:
        transport().agree("device_put of float32[8] to P('x')", b"b", everyone())


@pytest.mark.parametrize("count", [2, 3, 4])
def test_different_operations_give_every_process_one_error(processes, count):
    errors = processes(count, different_operations).errors
    assert [name for name, _ in errors] == ["CollectiveError"] * count
    texts = {text.partition("\nFlight records")[0] for _, text in errors}  # the records go on while they are read
    assert len(texts) == 1
    (text,) = texts
    assert text.startswith("the processes called different operations; expected every process to run the same")
    line = re.search(r"process 0 \(.*?\): psum of float32\[4\] over 'x', at .*test_faults.py:(\d+)\n", text)
    other = re.search(r"process 1 \(.*?\): device_put of float32\[8\] to P\('x'\), at .*:(\d+)\n", text)
    assert int(other[1]) == int(line[1]) + 2


def different_groups():
    members = [(0, 1), (0, 1, 2), (0, 1, 2)][transport().process_index]
    transport().agree("psum", b"a", members)


def test_different_groups_are_noticed(processes):
    errors = processes(3, different_groups).errors
    assert [name for name, _ in errors] == ["CollectiveError"] * 3
    assert all("the processes called different operations" in text for _, text in errors)


def raise_in_one():
    if transport().process_index == 1:
        raise ValueError("boom")
    transport().agree("psum", b"a", everyone())


@pytest.mark.parametrize("count", [2, 3])
def test_an_exception_in_one_process_reaches_those_that_wait_for_it(processes, count):
    job = processes(count, raise_in_one)
    assert job.errors[1] == ("ValueError", "boom")
    for number in [n for n in range(count) if n != 1]:
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert re.match(r"psum: process 1 \(.*?\) has failed: ValueError: boom; expected it to call the same", text)
        assert f"while process {number} waited in psum, at " in text
    assert job.status != 0
    assert "ValueError: boom" in job.output


def kill_one():
    if transport().process_index == 1:
        end_without_notice()
    transport().agree("psum", b"a", everyone())


@pytest.mark.parametrize("count", [2, 4])
def test_a_killed_process_is_named_by_all_others(processes, count):
    job = processes(count, kill_one, shielded=True)
    for number in [n for n in range(count) if n != 1]:
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert re.match(r"psum: process 1 \(.*?\) has ended without notice, killed or crashed; ", text)
    assert job.status != 0


@pytest.mark.real_processes
def test_a_killed_process_is_reported_on_standard_error_at_once(processes):
    job = processes(2, kill_one, shielded=True)
    assert re.search(r"artifex_devices: psum: process 1 \(pid \d+ on .*\) has ended without notice", job.output)


@pytest.mark.real_processes
def test_a_killed_process_ends_the_job(processes):
    job = processes(2, kill_one)
    assert not job.timed_out
    assert job.status != 0


def leave_early(code):
    if transport().process_index == 1:
        sys.exit(code)
    transport().agree("psum", b"a", everyone())


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_that_ends_early_keeps_nobody_waiting(processes, code):
    job = processes(3, leave_early, code)
    for number in (0, 2):
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert re.match(r"process 1 \(.*?\) takes no further part; expected every process", text)
        assert re.search(r"process 0 \(.*\): psum, at .*\n  process 1 \(.*\): takes no further part: its program", text)
    assert job.status != 0


def miss_the_deadline(folder):
    import artifex_devices as ad

    ad.config.update("collective_timeout_s", 4)  # the two are there by then, however busy the machine is
    if transport().process_index == 1:
        wait_for_outcomes(folder, 0, 2)
    else:
        transport().agree("psum", b"a", everyone())


@pytest.mark.real_processes
def test_the_deadline_ends_a_wait_for_a_process_that_does_something_else(processes, tmp_path):
    job = processes(3, miss_the_deadline, str(tmp_path / "job0"))
    for number in (0, 2):
        name, text = job.errors[number]
        assert name == "CollectiveError"
        assert text.startswith("the deadline of 4 s (config.collective_timeout_s) is over; expected every process")
        assert re.search(r"process 1 \(.*\): not in an operation of this package", text)
        assert re.search(r"process 2 \(.*\): psum, at ", text)


def go_on_after_a_fault():
    texts = []
    for _ in range(3):
        try:
            different_operations()
        except RuntimeError as error:
            texts.append(str(error))
    return texts


def test_later_calls_say_what_broke_the_job(processes):
    for outcome in processes(2, go_on_after_a_fault).outcomes:
        first, *later = outcome.value
        assert first.startswith("the processes called different operations")
        for text in later:
            assert "the processes of this job no longer work together, since: the processes called different" in text


def wait_for_ever(folder):
    if transport().process_index == 1:
        open(os.path.join(folder, "waits"), "w").close()
        time.sleep(999)  # a process that never comes
    transport().agree("psum", b"a", everyone())


@pytest.mark.real_processes
def test_ctrl_c_ends_the_job(processes, tmp_path):
    waits = tmp_path / "waits"
    job = processes(2, wait_for_ever, str(tmp_path), interrupt_after=lambda _: wait_until(waits.exists))
    assert not job.timed_out
    assert job.status != 0


def interrupt_one(folder):
    if transport().process_index == 1:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        transport().agree("psum", b"a", (0, 1))
    elif transport().process_index == 0:
        transport().agree("psum", b"a", (0, 2))
    else:
        wait_for_outcomes(folder, 1)


@pytest.mark.real_processes
def test_ctrl_c_in_one_wait_is_reported_to_the_others(processes, tmp_path):
    job = processes(3, interrupt_one, str(tmp_path / "job0"))
    assert job.errors[1] == ("KeyboardInterrupt", "")
    name, text = job.errors[0]
    assert name == "CollectiveError"
    assert "KeyboardInterrupt in process 1" in text or "takes no further part" in text


def fork_a_child():
    from artifex_devices import distributed

    t, members = transport(), everyone()
    child = os.fork()
    if child == 0:
        try:
            assert not distributed.is_initialized()
            t.agree("psum", b"a", members)
        except RuntimeError as error:
            os._exit(0 if "was forked from process" in str(error) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), t.agree("after", b"b", members, b"c")


@pytest.mark.real_processes
def test_a_forked_child_is_not_part_of_the_job(processes):
    assert processes(2, fork_a_child).values == [(0, [b"c", b"c"])] * 2


def fork_and_be_killed(folder):
    if transport().process_index == 1:
        if os.fork() == 0:
            wait_for_outcomes(folder, 0)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    transport().agree("psum", b"a", everyone())


@pytest.mark.real_processes
def test_a_child_that_lives_on_does_not_hide_the_end_of_its_parent(processes, tmp_path):
    job = processes(2, fork_and_be_killed, str(tmp_path / "job0"), shielded=True)
    name, text = job.errors[0]
    assert name == "CollectiveError"
    assert "process 1 (" in text
    assert "has ended without notice" in text
