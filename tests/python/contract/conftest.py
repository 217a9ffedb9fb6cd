# SPDX-License-Identifier: Apache-2.0
"""The backends whose devices hold arrays; tests of the contract run on each.

CUDA devices are tested in processes of their own (test_cuda_stand_in.py): their driver stays loaded, and the stand-in
for it ends the process on misuse. ARTIFEX_CONTRACT_BACKENDS names the backends of a process. What NumPy does on CUDA
devices is in compute_on_cuda.py.
"""

import functools
import os

import artifex_devices as ad
import cuda_stand_in
import numpy as np
import pytest
from artifex_devices._core import internal
from shared_worlds import entered

BACKENDS = os.environ.get("ARTIFEX_CONTRACT_BACKENDS", "cpu,emulated_gpu").split(",")


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


@pytest.fixture
def platform(backend):
    return "cpu" if backend == "cpu" else "gpu"


@pytest.fixture
def open_world(backend):
    """open_world(8, bytes_limit=100) is the context manager of a world of the backend."""
    return functools.partial(_world, backend)


def _world(backend, count, bytes_limit=None):
    if backend != "cuda":
        platform = "cpu" if backend == "cpu" else "gpu"
        return ad.simulate(count, platform=platform, bytes_limit=bytes_limit)
    per_gpu = -(-count // len(internal.cuda_report()["gpus"]))
    backend = internal.cuda_backend(per_gpu)
    return entered(internal.make_client(None, count, bytes_limit, False, backend=backend))


@pytest.fixture
def world(open_world):
    with open_world(8) as client:
        yield client


@pytest.fixture
def grid(world):
    """A 2 x 4 mesh with axes x and y."""
    return ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The path of the stand-in for the CUDA driver, compiled here."""
    return cuda_stand_in.build(tmp_path_factory.mktemp("cuda"))
