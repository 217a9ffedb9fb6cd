# SPDX-License-Identifier: Apache-2.0
"""The arguments of distributed.initialize() as they are checked and stored."""

import pytest
from artifex_devices.distributed.arguments import InitializeArguments

DEFAULTS = {
    "coordinator_address": None,
    "num_processes": None,
    "process_id": None,
    "local_device_ids": None,
    "cluster_detection_method": None,
    "initialization_timeout": 300,
    "heartbeat_timeout_seconds": 100,
    "shutdown_timeout_seconds": 300,
    "coordinator_bind_address": None,
    "slice_index": None,
    "partition_index": None,
}


def test_arguments_of_initialize_are_stored_as_they_are_given():
    given = {
        "coordinator_address": "node7:65535",
        "num_processes": 4,
        "process_id": 3,
        "local_device_ids": range(2, 8),
        "cluster_detection_method": "mpi4py",
        "initialization_timeout": 1,
        "heartbeat_timeout_seconds": 2.5,
        "shutdown_timeout_seconds": 3,
    }
    assert vars(InitializeArguments(**{**DEFAULTS, **given})) == {
        "address": "node7:65535",
        "num_processes": 4,
        "process_id": 3,
        "device_ids": (2, 3, 4, 5, 6, 7),
        "num_devices": 6,
        "timeout_s": 1,
        "silence_s": 2.5,
        "shutdown_timeout_s": 3,
    }
    nothing = InitializeArguments(**DEFAULTS)
    assert (nothing.address, nothing.num_processes, nothing.process_id, nothing.num_devices) == (None,) * 4
    assert nothing.device_ids is None
    for ids, expected in ((0, (0,)), ([3], (3,)), ((5, 0), (5, 0))):
        given = InitializeArguments(**{**DEFAULTS, "local_device_ids": ids})
        assert (given.device_ids, given.num_devices) == (expected, len(expected))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"coordinator_address": "host:65536"},
            "coordinator_address has no port from 1 to 65535; expected",
        ),
        ({"coordinator_address": "x" * 299 + ":1"}, "coordinator_address is not an address; expected"),
        ({"process_id": 4, "num_processes": 4}, "process_id is 4; expected 0 to 3"),
        ({"process_id": 2**31 - 1}, "process_id is 2147483647; expected 0 to 2147483646"),
        ({"num_processes": 2**31}, "num_processes is 2147483648; expected 1 to 2147483647"),
        ({"local_device_ids": [0, 1, 0]}, "local_device_ids names devices twice, or below 0; expected"),
        ({"local_device_ids": -1}, "local_device_ids names devices twice, or below 0; expected"),
        (
            {"local_device_ids": range(2**24 + 1)},
            "local_device_ids names no devices, or too many",
        ),
        ({"local_device_ids": range(2**70)}, "local_device_ids names no devices, or too many"),
        ({"slice_index": 0}, "slice_index has no meaning here; expected None, got 0"),
        ({"cluster_detection_method": "mpi4p"}, r"'mpi4p' \(did you mean mpi4py\?\)"),
        ({"heartbeat_timeout_seconds": 0}, "heartbeat_timeout_seconds is 0; expected a finite number above 0"),
    ],
)
def test_wrong_arguments_of_initialize_are_refused(given, text):
    with pytest.raises(ValueError, match=text) as caught:
        InitializeArguments(**{**DEFAULTS, **given})
    assert str(caught.value).endswith("; correct it, or leave it out")


def test_the_longest_address_has_300_characters():
    address = "x" * 298 + ":1"
    assert InitializeArguments(**{**DEFAULTS, "coordinator_address": address}).address == address


@pytest.mark.parametrize(
    ("num_processes", "error", "text"),
    [
        (
            None,
            RuntimeError,
            "this process was started alone, without a launcher of MPI; expected several processes of one MPI job; "
            "start the program as: mpiexec -n 2 python script.py",
        ),
        (
            3,
            ValueError,
            "num_processes is 3, but this process was started alone; expected 1; start the program as: mpiexec -n 3 "
            "python script.py",
        ),
    ],
)
def test_a_process_that_was_started_alone_is_not_a_job(num_processes, error, text):
    with pytest.raises(error) as caught:
        InitializeArguments(**{**DEFAULTS, "num_processes": num_processes}).check_single()
    assert str(caught.value) == f"distributed.initialize: {text}"
    InitializeArguments(**{**DEFAULTS, "num_processes": 1}).check_single()
