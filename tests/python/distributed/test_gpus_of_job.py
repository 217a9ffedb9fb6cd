# SPDX-License-Identifier: Apache-2.0
"""Which process of a job uses which GPUs, for described processes: no GPU is needed."""

import re
import warnings

import pytest
from artifex_devices.distributed.gpus_of_job import SeenGpus, share_of_gpus

TWO = SeenGpus(("0000:01:00.0", "0000:02:00.0"), "", None)
ONE = SeenGpus(("0000:01:00.0",), "", None)


def test_a_job_of_cpus_has_no_shares():
    assert share_of_gpus(0, ["a", "a"], [None, None]) is None


def test_processes_of_a_machine_divide_its_gpus():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [share_of_gpus(me, ["a", "a"], [TWO, TWO]) for me in (0, 1)] == [[0], [1]]
        assert [share_of_gpus(me, ["a", "b"], [TWO, TWO]) for me in (0, 1)] == [[0, 1]] * 2
        chosen = [TWO._replace(chosen=(1,)), TWO._replace(chosen=(0,))]
        assert [share_of_gpus(me, ["a", "a"], chosen) for me in (0, 1)] == [[1], [0]]


def test_the_first_of_the_processes_that_share_a_gpu_warns():
    chosen = [ONE._replace(chosen=(0,)), TWO._replace(chosen=(1,)), ONE._replace(chosen=(0,))]
    with pytest.warns(RuntimeWarning, match=r"processes 0,2 use GPU 0000:01:00\.0; expected one process for each GPU"):
        assert share_of_gpus(0, ["a"] * 3, chosen) == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [share_of_gpus(me, ["a"] * 3, chosen) for me in (1, 2)] == [[1], [0]]


def test_all_processes_refuse_a_job_in_which_one_has_no_gpus():
    seen = [TWO, None, TWO._replace(problem="no driver")]
    text = "process 2: no driver; process 1: its JAX_PLATFORMS does not ask for GPUs; expected the same JAX_PLATFORMS"
    for me in range(3):
        with pytest.raises(RuntimeError, match=re.escape(f"not all processes have GPUs: {text}")):
            share_of_gpus(me, ["a"] * 3, seen)
