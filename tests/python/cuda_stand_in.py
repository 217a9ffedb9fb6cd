# SPDX-License-Identifier: Apache-2.0
"""The stand-in for the CUDA driver, and the variables of a process that uses it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def build(folder):
    """Compiles the library into a folder. Returns its path. Without a compiler the test is skipped."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler ({compiler}) to build the stand-in library")
    path = folder / "libcuda.so.1"
    sources = sorted(map(str, (CHECKOUT / "tests/cpp/cuda_stand_in").glob("*.cpp")))
    flags = ["-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{CHECKOUT / 'cpp'}"]
    subprocess.run([compiler, *flags, *sources, "-o", str(path)], check=True)
    return str(path)


def path_of_cupy():
    """PYTHONPATH with the stand-in for CuPy, before what it has."""
    folders = [str(CHECKOUT / "tests" / folder) for folder in ("cupy_stand_in", "python/contract")]
    return os.pathsep.join(filter(None, [*folders, os.environ.get("PYTHONPATH")]))


def variables_of(library, gpus):
    """GPUs of the stand-in as the default devices, and the stand-in for CuPy."""
    return {
        "ARTIFEX_CUDA_LIBRARY": library,
        "CUDA_STAND_IN": f"gpus={gpus}",
        "JAX_PLATFORMS": "cuda",
        "PYTHONPATH": path_of_cupy(),
    }
