# SPDX-License-Identifier: Apache-2.0
"""testing.run_processes: what programs see in simulated processes, and what becomes of them."""

import contextvars
import os
import re
import signal
import sys
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, checkpoint, config, distributed, lax, multihost_utils
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices.distributed import transport as transports
from artifex_devices.errors import CollectiveError
from artifex_devices.prefetch import prefetch_to_device
from artifex_devices.testing import kill, run_processes, stall

cache = {}
counter = 0


def mesh_of_all():
    return ad.Mesh(np.array(ad.devices()), ("x",))


def total(value=1.0):
    """The sum of a number over all devices."""
    mesh = mesh_of_all()
    add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())
    return np.asarray(add(np.full(mesh.size, value))).item()


def crossing():
    """A reshard, a sum and a gather over all processes."""
    mesh = mesh_of_all()
    value = np.arange(4.0 * mesh.size * mesh.size).reshape(mesh.size, -1)
    rows = ad.device_put(value, ad.NamedSharding(mesh, P("x")))
    columns = ad.device_put(rows, ad.NamedSharding(mesh, P(None, "x")))
    for shard in columns.addressable_shards:
        assert np.array_equal(np.asarray(shard.data), value[shard.index])
    return total(2.0), multihost_utils.process_allgather(ad.process_index()).tolist()


def test_each_process_has_its_devices_of_one_world():
    def where():
        return (
            ad.process_index(),
            ad.process_count(),
            [device.id for device in ad.devices()],
            [device.id for device in ad.local_devices()],
            [device.process_index for device in ad.devices()],
        )

    assert run_processes(where, processes=3, devices=[1, 2, 1]).results == [
        (0, 3, [0, 1, 2, 3], [0], [0, 1, 1, 2]),
        (1, 3, [0, 1, 2, 3], [1, 2], [0, 1, 1, 2]),
        (2, 3, [0, 1, 2, 3], [3], [0, 1, 1, 2]),
    ]
    assert ad.process_count() == 1


def test_initialize_and_shutdown_as_at_the_head_and_end_of_a_program():
    def program():
        states = [distributed.is_launched(), distributed.is_initialized()]
        distributed.initialize("localhost:1234", ad.process_count(), ad.process_index(), [0, 1])
        with pytest.raises(RuntimeError, match=r"distributed.initialize: it was called before"):
            distributed.initialize()
        found = total()
        distributed.shutdown()
        distributed.shutdown()
        with pytest.raises(CollectiveError, match=r"distributed.shutdown\(\) was called"):
            multihost_utils.sync_global_devices("after")
        return states, found, distributed.is_initialized()

    assert run_processes(program, processes=2).results == [([True, True], 4.0, False)] * 2
    assert not distributed.is_initialized()


def test_shutdown_beside_a_failed_process_is_an_error():
    def program():
        if ad.process_index() == 1:
            raise ValueError("boom")
        distributed.shutdown()

    error = run_processes(program, processes=2, return_exceptions=True).results[0]
    assert type(error) is CollectiveError
    assert str(error).startswith("distributed.shutdown: process 1 (simulated) has failed: ValueError: boom; expected")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"num_processes": 3}, "num_processes is 3 in process 0, but run_processes simulates 2"),
        ({"num_processes": 2, "process_id": 1}, "process_id is 1 in process 0, but run_processes simulates 0"),
        ({"local_device_ids": [0]}, "the number of local_device_ids is 1 in process 0, but run_processes simulates 2"),
    ],
)
def test_initialize_checks_its_arguments(arguments, problem):
    done = run_processes(lambda: distributed.initialize(**arguments), processes=2, return_exceptions=True)
    assert type(done.results[0]) is ValueError
    assert problem in str(done.results[0])


@pytest.mark.parametrize("seed", range(20))
def test_results_do_not_depend_on_the_schedule(seed):
    assert run_processes(crossing, processes=3, seed=seed).results == [(12.0, [0, 1, 2])] * 3


@pytest.mark.parametrize(
    "faults", [[], [kill()], [stall(seconds=3.0)], [kill(1, at="psum"), stall(2, at="device_put")]]
)
def test_the_same_seed_gives_the_same_events_bit_for_bit(faults):
    runs = [run_processes(crossing, 3, 2, 11, faults, return_exceptions=True) for _ in range(3)]
    assert runs[0].events == runs[1].events == runs[2].events
    assert str(runs[0].results) == str(runs[1].results) == str(runs[2].results)
    others = {run_processes(crossing, 3, 2, seed, faults, return_exceptions=True).events for seed in range(8)}
    assert len(others) == 8


def test_events_name_time_process_kind_and_operation():
    done = run_processes(lambda: multihost_utils.sync_global_devices("here"), processes=2, seed=1)
    kinds = [event.kind for event in done.events]
    assert kinds.count("begin") == kinds.count("return") == 2
    first = next(event for event in done.events if event.kind == "begin")
    assert str(first) == f"{first.time_s:.6f} process {first.process} begin: sync_global_devices"
    assert [event.time_s for event in done.events] == sorted(event.time_s for event in done.events)


def test_an_exception_of_a_process_ends_the_call_at_once_with_a_note():
    ended = []

    def program():
        try:
            multihost_utils.sync_global_devices("here")
            if ad.process_index() == 2:
                raise ZeroDivisionError("in process 2")
            multihost_utils.sync_global_devices("never")
        finally:
            ended.append(ad.process_index())

    with pytest.raises(ZeroDivisionError, match="in process 2") as caught:
        run_processes(program, processes=4, seed=5)
    assert caught.value.__notes__ == ["raised by simulated process 2 of 4; run_processes(..., seed=5)"]
    assert sorted(ended) == [0, 1, 2, 3]


def test_exceptions_may_be_results_and_others_learn_of_them():
    def program():
        if ad.process_index() == 1:
            raise ValueError("boom")
        multihost_utils.sync_global_devices("here")

    first, second, third = run_processes(program, processes=3, return_exceptions=True).results
    assert (type(second), str(second)) == (ValueError, "boom")
    for number, error in ((0, first), (2, third)):
        assert type(error) is CollectiveError
        assert str(error).startswith(
            "sync_global_devices: process 1 (simulated) has failed: ValueError: boom; expected it to call the same "
            "operation, while "
            f"process {number} waited in sync_global_devices, at {__file__}:"
        )


def test_a_mismatch_gives_every_process_the_same_table():
    def program():
        if ad.process_index() == 0:
            total()
        else:
            multihost_utils.sync_global_devices("here")

    errors = run_processes(program, processes=3, return_exceptions=True).results
    assert {type(error) for error in errors} == {CollectiveError}
    (text,) = {str(error) for error in errors}
    assert text.startswith("the processes called different operations; expected every process to run the same")
    assert re.search(r"process 0 \(simulated\): shard_map\(<lambda>\): psum float64\(1,\) over x at .*:\d+", text)
    assert text.count("(simulated): sync_global_devices, at ") == 2


@pytest.mark.parametrize("seed", range(5))
def test_a_deadlock_is_reported_at_once(seed):
    def program():
        me = ad.process_index()
        for pair in [((0, 2), (0, 1)), ((0, 1), (1, 2)), ((1, 2), (0, 2))][me]:
            mesh = ad.Mesh(np.array([ad.local_devices(number)[0] for number in pair]), ("x",))
            ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P())(np.ones(2))

    done = run_processes(program, processes=3, seed=seed, return_exceptions=True)
    (text,) = {str(error) for error in done.results}
    assert text.startswith("the processes wait for each other and none can go on; expected every process to run")
    assert text.count("psum float64(1,) over x at ") == 3
    assert [event.kind for event in done.events].count("deadlock") == 3


def test_a_process_that_returns_early_is_named():
    def program():
        if ad.process_index() != 1:
            multihost_utils.sync_global_devices("here")

    with pytest.raises(
        CollectiveError, match=r"^process 1 \(simulated\) takes no further part; expected every process"
    ):
        run_processes(program, processes=2)


def test_a_killed_process_is_named_by_the_others_and_its_finally_blocks_run_last():
    order = []

    def program():
        try:
            for _ in range(3):
                total()
        except CollectiveError as error:
            order.append(ad.process_index())
            return str(error)
        finally:
            if ad.process_index() == 1:
                order.append("finally")
        return "done"

    done = run_processes(program, processes=3, faults=[kill(1, at="psum", call=3)])
    assert done.unfinished == (1,)
    assert done.results[1] is None
    for number in (0, 2):
        assert "process 1 (simulated) has ended without notice, killed or crashed; " in done.results[number]
    assert order[-1] == "finally"
    fault = next(event for event in done.events if event.kind == "fault")
    assert (fault.process, fault.text) == (1, "ends without notice")
    begun = [event for event in done.events if event.kind == "begin" and event.process == 1 and "psum" in event.text]
    assert len(begun) == 3


@pytest.mark.parametrize("messages", [0, 1, 2])
def test_a_process_may_be_killed_between_the_messages_of_an_operation(messages):
    def reshard():
        mesh = mesh_of_all()
        rows = ad.make_array_from_callback((8, 8), ad.NamedSharding(mesh, P("x")), np.ones((8, 8)).__getitem__)
        ad.device_put(rows, ad.NamedSharding(mesh, P(None, "x")))

    faults = [kill(0, at="device_put", call=1, messages=messages)]
    done = run_processes(reshard, processes=4, devices=1, faults=faults, return_exceptions=True)
    assert [event.process for event in done.events if event.kind == "send"].count(0) == messages
    assert done.unfinished == (0,)
    assert [type(error) for error in done.results[1:]] == [CollectiveError] * 3


def test_a_stalled_process_is_missed_at_the_deadline_of_virtual_time():
    def program():
        config.update("collective_timeout_s", 30.0)
        multihost_utils.sync_global_devices("here")
        return "done"

    done = run_processes(program, processes=3, faults=[stall(1, seconds=20)])
    assert done.results == ["done"] * 3
    assert 20 < done.events[-1].time_s < 21
    done = run_processes(program, processes=3, faults=[stall(1)], return_exceptions=True)
    assert done.unfinished == (1,)
    for number in (0, 2):
        text = str(done.results[number])
        assert text.startswith("the deadline of 30 s (config.collective_timeout_s) is over; expected every process")
        assert "process 1 (simulated): not in an operation of this package" in text
    assert config.collective_timeout_s != 30.0


def test_drawn_faults_are_found_among_few_seeds():
    ended = {run_processes(crossing, 3, 1, seed, [kill()], return_exceptions=True).unfinished for seed in range(40)}
    assert ended == {(), (0,), (1,), (2,)}


def test_both_executors_batches_and_checkpoints(tmp_path):
    def program(executor):
        mesh = mesh_of_all()
        rows = ad.NamedSharding(mesh, P("x"))
        add = ad.shard_map(lambda b: lax.psum(b, "x"), mesh, in_specs=P("x"), out_specs=P(), executor=executor)
        sums = np.asarray(add(np.ones(mesh.size))).item()
        with prefetch_to_device((np.full(4, ad.process_index() + i) for i in range(3)), rows) as batches:
            read = [multihost_utils.process_allgather(batch, tiled=True).tolist() for batch in batches]
        checkpoint.save(tmp_path / executor, {"w": ad.device_put(np.arange(8.0), rows)})
        found = checkpoint.restore(tmp_path / executor, {"w": rows})["w"]
        return sums, read, [np.asarray(shard.data).tolist() for shard in found.addressable_shards]

    read = [[i] * 4 + [i + 1] * 4 for i in range(3)]
    for executor in ("cooperative", "threads"):
        assert run_processes(program, processes=2, args=[executor]).results == [
            (4.0, read, [[0.0, 1.0], [2.0, 3.0]]),
            (4.0, read, [[4.0, 5.0], [6.0, 7.0]]),
        ]


def test_saves_in_the_background(tmp_path):
    def program():
        w = ad.device_put(np.arange(8.0), ad.NamedSharding(mesh_of_all(), P("x")))
        checkpoint.save_async(tmp_path / "c", {"w": w}).wait()
        return checkpoint.metadata(tmp_path / "c").nbytes

    assert run_processes(program, processes=4).results == [64] * 4


def test_scopes_belong_to_a_process():
    def program():
        device = ad.local_devices()[-1]
        with ad.default_device(device), ad.transfer_guard("disallow" if ad.process_index() else "allow"):
            multihost_utils.sync_global_devices("inside")
            with ad.simulate(3):
                multihost_number = ad.device_count()
            return ad.device_put(1.0).device == device, multihost_number

    assert run_processes(program, processes=3).results == [(True, 3)] * 3


def test_threads_of_the_program_take_part_in_the_context_of_their_process():
    def program():
        found = []
        thread = threading.Thread(
            target=contextvars.copy_context().run,
            args=(lambda: found.append(multihost_utils.process_allgather(ad.process_index()).tolist()),),
        )
        thread.start()
        thread.join()
        return found

    assert run_processes(program, processes=3).results == [[[0, 1, 2]]] * 3


def test_a_killed_process_has_no_result_even_if_its_program_catches_everything():
    def program(catches):
        try:
            multihost_utils.sync_global_devices("here")
        except BaseException:
            if catches:
                return "caught"
            raise ValueError("in the handler") from None
        return "done"

    for catches in (True, False):
        done = run_processes(program, 2, faults=[kill(1)], args=[catches], return_exceptions=True)
        assert (done.unfinished, done.results[1]) == ((1,), None)


def test_ctrl_c_ends_all_processes():
    ended = []

    def program():
        try:
            multihost_utils.sync_global_devices("start")
            if ad.process_index() == 1:
                os.kill(os.getpid(), signal.SIGINT)
            while True:
                multihost_utils.sync_global_devices("again")
        finally:
            ended.append(ad.process_index())

    with pytest.raises(KeyboardInterrupt):
        run_processes(program, processes=3)
    assert sorted(ended) == [0, 1, 2]
    assert run_processes(crossing, processes=2).results == [(8.0, [0, 1])] * 2


def test_a_sum_equals_its_copy_in_another_process():
    def program():
        mesh = mesh_of_all()

        def body(block):
            found = lax.psum(block, "x")
            return found.copy() if ad.process_index() == 1 else found

        return np.asarray(ad.shard_map(body, mesh, in_specs=P("x"), out_specs=P())(np.ones(mesh.size))).item()

    assert run_processes(program, processes=2).results == [4.0, 4.0]


def test_ctrl_c_as_the_processes_start_is_the_error_of_the_call(monkeypatch):
    starts = []
    start = DaemonThread.start

    def interrupted(thread):
        starts.append(thread)
        if len(starts) == 3:
            raise KeyboardInterrupt
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(DaemonThread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_processes(total, processes=4)
    assert not any(thread.is_alive() for thread in starts)
    assert run_processes(total, processes=4).results == [8.0] * 4


def test_globals_that_two_processes_change_are_named():
    def program():
        global counter
        counter = object()
        cache[ad.process_index()] = 1
        multihost_utils.sync_global_devices("here")

    done = run_processes(program, processes=2)
    assert done.shared_globals == (f"{__name__}.cache", f"{__name__}.counter")

    def one_writes():
        if ad.process_index() == 1:
            cache["one"] = 1
        multihost_utils.sync_global_devices("here")

    assert run_processes(one_writes, processes=2).shared_globals == ()


def test_a_program_that_exits_has_ended():
    assert run_processes(lambda: sys.exit(0), processes=2).results == [None, None]
    done = run_processes(lambda: sys.exit(0), processes=2, return_exceptions=True)
    assert [type(error) for error in done.results] == [SystemExit] * 2
    with pytest.raises(SystemExit) as caught:
        run_processes(lambda: sys.exit(3), processes=2)
    assert caught.value.code == 3


def test_nothing_is_left_behind():
    before = threading.active_count()
    for seed in range(3):
        run_processes(crossing, processes=2, seed=seed, faults=[kill()], return_exceptions=True)
    assert threading.active_count() == before
    assert ad.process_count() == 1


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"function": 7}, TypeError, "run_processes: function"),
        ({"processes": 0}, ValueError, "run_processes: processes is 0; expected"),
        ({"devices": [1]}, ValueError, r"run_processes: devices is \[1\]; expected one number, or one for each of 4"),
        ({"devices": 0}, ValueError, "run_processes: devices is 0; expected"),
        ({"seed": -1}, ValueError, "run_processes: seed is -1; expected"),
        ({"faults": ["kill"]}, TypeError, r"run_processes: a fault is of type str; expected the result of kill\(\)"),
        ({"faults": [kill(4)]}, ValueError, "run_processes: the process of a fault is 4; expected 0 to 3"),
    ],
)
def test_wrong_arguments_are_refused(arguments, kind, text):
    with pytest.raises(kind, match=text):
        run_processes(**{"function": total, **arguments})


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: kill(-1), ValueError, "kill: process is -1; expected"),
        (lambda: kill(at=7), TypeError, "kill: at is 7"),
        (lambda: stall(call=0), ValueError, "stall: call is 0; expected"),
        (lambda: stall(seconds=0), ValueError, "stall: seconds is 0; expected"),
    ],
)
def test_wrong_faults_are_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_simulate_has_the_devices_of_several_processes_for_placement():
    with ad.simulate(6, processes=3):
        assert (ad.process_count(), ad.process_index(), ad.local_device_count()) == (3, 0, 2)
        assert [device.process_index for device in ad.devices()] == [0, 0, 1, 1, 2, 2]
        x = ad.device_put(np.ones(2), ad.local_devices()[1])
        assert x.is_fully_addressable
        with pytest.raises(RuntimeError, match=r"no transport is installed; expected that of .* testing.run_processes"):
            total()
    with pytest.raises(ValueError, match=r"simulate: world is 7; expected a multiple of processes=2"):
        ad.simulate(7, processes=2)
    with pytest.raises(ValueError, match=r"simulate: compile_only and seed cannot be combined with processes"):
        ad.simulate(8, processes=2, compile_only=True, seed=1)
    with pytest.raises(TypeError, match=r"simulate: world is '8'"):
        ad.simulate("8", processes=2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"function": 3}, TypeError, "function is 3 (int); expected a function; give the function of each process"),
        ({"processes": 0}, ValueError, "processes is 0; expected 1 to 256; write processes=4"),
        ({"processes": 257}, ValueError, "processes is 257; expected 1 to 256; write processes=4"),
        ({"processes": "2"}, TypeError, "processes is '2' (str); expected an int; write processes=4"),
        ({"devices": 0}, ValueError, "devices is 0; expected 1 to 65536; write devices=2"),
        ({"seed": -1}, ValueError, f"seed is -1; expected 0 to {2**64 - 1}; write seed=7"),
        ({"seed": 2**64}, ValueError, f"seed is {2**64}; expected 0 to {2**64 - 1}; write seed=7"),
        ({"seed": 1.5}, TypeError, "seed is 1.5 (float); expected an int; write seed=7"),
        ({"return_exceptions": 1}, TypeError, "return_exceptions is 1 (int); expected True or False; leave it out"),
        ({"faults": 3}, TypeError, "faults is 3 (int); expected a list of faults; write faults=[kill(1)]"),
        ({"args": 5}, TypeError, "args is 5 (int); expected a list of arguments; write args=[1]"),
    ],
)
def test_wrong_arguments_are_refused_before_a_process_starts(arguments, error, text):
    started = []
    with pytest.raises(error, match=re.escape(f"run_processes: {text}")):
        run_processes(**{"function": lambda *_: started.append(1), **arguments})
    assert not started


def test_the_extreme_seeds_are_accepted():
    for seed in (0, 2**64 - 1):
        assert run_processes(total, processes=2, seed=seed).results == run_processes(total, processes=2).results


def test_the_devices_of_simulated_processes_may_be_emulated_gpus():
    with ad.simulate(4, processes=2, platform="gpu"):
        found = [(device.platform, device.process_index) for device in ad.devices()]
        assert found == [("gpu", 0)] * 2 + [("gpu", 1)] * 2
        with pytest.raises(BufferError, match="cannot read"):
            memoryview(ad.device_put(np.ones(2), ad.local_devices()[1]))
    with pytest.raises(ValueError, match=r"simulate: platform is 'tpu'; expected 'cpu' or 'gpu'"):
        ad.simulate(4, processes=2, platform="tpu")
    with pytest.raises(ValueError, match=r"run_processes: platform is 'tpu'; expected 'cpu' or 'gpu'; leave it out"):
        run_processes(total, platform="tpu")
    with pytest.raises(TypeError, match=r"run_processes: platform is 3"):
        run_processes(total, platform=3)
    assert run_processes(total, processes=2, platform="gpu").results == run_processes(total, processes=2).results


def test_a_message_of_another_size_ends_the_run():
    def program():
        transport = transports.of_client(ad.devices()[0].client, "test")
        begin = transport.isend if ad.process_index() == 0 else transport.irecv
        message = begin(bytearray(8 + ad.process_index()), 1 - ad.process_index(), 7)
        transport.wait_some([message], "test")

    for seed in range(6):
        with pytest.raises(RuntimeError, match="process 1 receives 9 bytes, but process 0 has sent 8; expected equal"):
            run_processes(program, processes=2, seed=seed, return_exceptions=bool(seed % 2))
