# SPDX-License-Identifier: Apache-2.0
"""The beginning and the end of a job."""

import os
import re
import subprocess
import sys
import threading

import pytest
from launching import environment_of

pytestmark = pytest.mark.real_processes


def where_am_i():
    import artifex_devices as ad
    from artifex_devices import distributed

    return (
        distributed.is_initialized(),
        ad.process_index(),
        ad.process_count(),
        ad.process_indices(),
        ad.device_count(),
        ad.local_device_count(),
        [d.id for d in ad.devices()],
        [d.id for d in ad.local_devices()],
        [d.id for d in ad.local_devices(process_index=ad.process_count() - 1)],
        [d.process_index for d in ad.devices()],
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_devices_of_all_processes_are_one_list(processes, count):
    for number, found in enumerate(processes(count, where_am_i).values):
        assert found == (
            True,
            number,
            count,
            list(range(count)),
            2 * count,
            2,
            list(range(2 * count)),
            [2 * number, 2 * number + 1],
            [2 * count - 2, 2 * count - 1],
            [p for p in range(count) for _ in range(2)],
        )


def own_number_of_devices():
    import artifex_devices as ad
    from artifex_devices import distributed

    number = int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    distributed.initialize(local_device_ids=range(number + 1))
    return [d.process_index for d in ad.devices()]


def test_processes_may_have_different_numbers_of_devices(processes):
    assert processes(3, own_number_of_devices, initialize=False, devices=None).values == [[0, 1, 1, 2, 2, 2]] * 3


def jax_style():
    from artifex_devices import distributed

    number = int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    distributed.initialize("localhost:1234", 2, number, initialization_timeout=30)
    return distributed.is_initialized()


def test_correct_arguments_as_in_jax_are_accepted(processes):
    assert processes(2, jax_style, initialize=False).values == [True, True]


def wrong_arguments(kind):
    from artifex_devices import distributed

    number = int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    arguments = {
        "count": {"num_processes": 4} if number == 1 else {},
        "number": {"process_id": 0},
        "address": {"coordinator_address": "203.0.113.7:1234"},
        "addresses": {"coordinator_address": f"localhost:{number + 1}"},
    }
    distributed.initialize(**arguments[kind])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("count", "num_processes is 4 in process 1, but the MPI job has 2"),
        ("number", "process_id is 0 in the process that is number 1 of the MPI job"),
        ("address", "coordinator_address is '203.0.113.7:1234', but process 0 runs on "),
        ("addresses", "coordinator_address is 'localhost:2' in process 1, but 'localhost:1' in process 0"),
    ],
)
def test_wrong_arguments_are_an_error_in_every_process(processes, kind, message):
    errors = processes(2, wrong_arguments, kind, initialize=False).errors
    assert errors[0] == errors[1]
    name, text = errors[0]
    assert name == "ValueError"
    assert message in text


def different_versions():
    from artifex_devices import distributed
    from artifex_devices.distributed import job

    number = int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    job.__version__ = f"9.{number}"
    distributed.initialize()


def test_different_versions_are_an_error_in_every_process(processes):
    errors = processes(3, different_versions, initialize=False).errors
    assert len(set(errors)) == 1
    assert errors[0][0] == "ValueError"
    assert (
        "artifex_devices is 9.1 in process 1, but 9.0 in process 0; artifex_devices is 9.2 in process 2" in errors[0][1]
    )


def broken_variable():
    from artifex_devices import distributed

    distributed.initialize()


def test_a_process_that_cannot_count_its_devices_is_an_error_in_every_process(processes):
    errors = processes(
        2, broken_variable, initialize=False, devices=None, environment={"JAX_NUM_CPU_DEVICES": "x"}
    ).errors
    assert errors[0] == errors[1]
    assert errors[0][0] == "ValueError"
    assert re.search("process 0: ValueError: .*JAX_NUM_CPU_DEVICES.*; process 1: ValueError: ", errors[0][1])


def call_again_and_late():
    import artifex_devices as ad
    from artifex_devices import distributed

    texts = []
    for _ in range(2):
        try:
            distributed.initialize()
        except RuntimeError as error:
            texts.append(str(error))
        ad.devices()
    distributed.shutdown()
    states = [distributed.is_initialized()]
    distributed.shutdown()
    try:
        distributed.initialize()
    except RuntimeError as error:
        texts.append(str(error))
    return texts, states


def test_a_second_call_raises_and_shutdown_may_come_twice(processes):
    for texts, states in processes(2, call_again_and_late).values:
        assert len(texts) == 3
        assert all(text.startswith("distributed.initialize: it was called before") for text in texts)
        assert states == [False]


def after_first_use():
    import artifex_devices as ad
    from artifex_devices import distributed

    ad.devices()
    try:
        distributed.initialize()
    except RuntimeError as error:
        return str(error)


def test_a_call_after_the_first_use_of_devices_raises(processes):
    for text in processes(2, after_first_use, initialize=False).values:
        assert text.startswith("distributed.initialize: the devices are in use already; expected to come before")


def shares_of_cores():
    import artifex_devices as ad

    return [ad.local_devices()[0].cpuset, sorted(os.sched_getaffinity(0))]


def test_processes_split_the_cores_and_the_affinity_of_the_callers_is_left_alone(processes):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU only")
    found = processes(2, shares_of_cores, devices=None).values
    assert [affinity for _, affinity in found] == [allowed] * 2
    (first, _), (second, _) = found
    assert first != second


def overlap():
    from artifex_devices import distributed

    number = int(os.environ.get("PMI_RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:1] if number == 0 else allowed)
    distributed.initialize()


def test_overlapping_bindings_are_an_error_that_names_processes_and_cpus(processes):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU only")
    errors = processes(3, overlap, initialize=False).errors
    assert len(set(errors)) == 1
    name, text = errors[0]
    assert name == "ValueError"
    assert re.search(rf"got process 0 on CPUs {allowed[0]}, processes 1-2 on CPUs [\d,-]+; start them with -", text)


def mpi_of_ones_own():
    from mpi4py import MPI

    total = MPI.COMM_WORLD.allreduce(1)
    from artifex_devices import distributed

    distributed.initialize()
    return total, MPI.COMM_WORLD.allreduce(2)


def test_a_program_may_have_started_mpi_itself(processes):
    assert processes(2, mpi_of_ones_own, initialize=False).values == [(2, 4)] * 2


def ends_while_the_other_does_not():
    from artifex_devices import distributed

    distributed.initialize(shutdown_timeout_seconds=1)
    if distributed.job._job.transport.process_index == 1:
        threading.Event().wait()


def test_the_end_of_a_program_waits_for_others_until_its_deadline_and_names_them(processes):
    job = processes(2, ends_while_the_other_does_not, initialize=False)
    assert not job.timed_out
    assert job.status != 0
    assert re.search(
        r"artifex_devices: distributed: the program has ended and waits for the other processes: process 1 \(pid \d+ "
        r"on \S+\) did not come within 1 s \(shutdown_timeout_seconds of initialize\); expected them to end too",
        job.output,
    )


def by_hand(code):
    environment = {
        key: value
        for key, value in environment_of(None, {}).items()
        if not key.startswith(("PMI", "OMPI_COMM", "SLURM", "MV2"))
    }
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_a_launcher_the_error_gives_the_command():
    done = by_hand("from artifex_devices import distributed; distributed.initialize()")
    assert done.returncode == 1
    assert "RuntimeError: distributed.initialize: this process was started alone, without a launcher" in done.stderr
    assert "start the program as: mpiexec -n 2 python script.py" in done.stderr
    done = by_hand("from artifex_devices import distributed; distributed.initialize('localhost:1', 3, 0)")
    assert "ValueError: distributed.initialize: num_processes is 3, but this process was started alone" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("'localhost'", "ValueError: distributed.initialize: coordinator_address has no port"),
        ("7", "TypeError: distributed.initialize: coordinator_address is 7 (int)"),
        ("num_processes='2'", "TypeError: distributed.initialize: num_processes is '2' (str)"),
        ("local_device_ids=[]", "ValueError: distributed.initialize: local_device_ids names no devices"),
        ("local_device_ids=[0, 0]", "ValueError: distributed.initialize: local_device_ids names devices twice"),
        ("initialization_timeout=0", "ValueError: distributed.initialize: initialization_timeout is 0; expected"),
        ("cluster_detection_method='k8s'", "ValueError: distributed.initialize: cluster_detection_method is not known"),
        ("slice_index=1", "ValueError: distributed.initialize: slice_index has no meaning here"),
    ],
)
def test_arguments_of_a_wrong_kind(arguments, error):
    done = by_hand(f"from artifex_devices import distributed; distributed.initialize({arguments})")
    assert error in done.stderr


def test_the_package_imports_no_mpi():
    code = "import sys, artifex_devices.distributed, artifex_devices.multihost_utils; print('mpi4py' in sys.modules)"
    done = by_hand(code)
    assert done.stdout == "False\n", done.stderr
