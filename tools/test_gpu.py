#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the contract suite, and the tests of ownership, streams and CuPy, on the GPUs of this machine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from artifex_devices._core import internal

CONTRACT = Path(__file__).resolve().parents[1] / "tests" / "python" / "contract"
FILES = ["test_devices_of_every_backend.py", "test_transfers.py", "exchange_on_cuda.py"]
OF_CUPY = ["compute_on_cuda.py", "numpy_on_cuda.py"]


def main(arguments: list[str]) -> int:
    """Returns the status of pytest, or 1 where CUDA is not usable."""
    report = internal.cuda_report()
    if report["problem"]:
        print(f"test-gpu: CUDA is not usable: {report['problem']}; expected a GPU; {report['fix']}", file=sys.stderr)
        return 1
    names = ", ".join(gpu["name"] for gpu in report["gpus"])
    print(f"test-gpu: {names}; CUDA {report['driver_version']} of {report['library']}", flush=True)
    files = list(FILES)
    if importlib.util.find_spec("cupy") is not None:
        files += OF_CUPY
    else:
        print("test-gpu: the tests of CuPy are left out: pip install cupy-cuda12x", flush=True)
    environment = {
        **os.environ,
        "ARTIFEX_CONTRACT_BACKENDS": "cuda",
        "JAX_PLATFORMS": "cuda",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(CONTRACT), os.environ.get("PYTHONPATH")])),
    }
    command = [sys.executable, "-m", "pytest", "-n", "0", *(str(CONTRACT / name) for name in files), *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
