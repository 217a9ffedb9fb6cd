# SPDX-License-Identifier: Apache-2.0
"""Environment variables that act on this library, on BLAS and on memory."""

from __future__ import annotations

from collections.abc import Mapping

from artifex_devices.doctor.facts import Section

_ACTS = {
    "XLA_FLAGS": "number of CPU devices",
    "JAX_NUM_CPU_DEVICES": "number of CPU devices",
    "JAX_PLATFORMS": "which platforms may be used",
    "JAX_PLATFORM_NAME": "which platforms may be used",
    "JAX_DEFAULT_DEVICE": "the default device",
    "JAX_ENABLE_X64": "whether 64-bit data is kept",
    "OMP_NUM_THREADS": "threads of BLAS",
    "OPENBLAS_NUM_THREADS": "threads of OpenBLAS",
    "GOTO_NUM_THREADS": "threads of OpenBLAS",
    "MKL_NUM_THREADS": "threads of MKL",
    "BLIS_NUM_THREADS": "threads of BLIS",
    "VECLIB_MAXIMUM_THREADS": "threads of Accelerate",
    "CUDA_VISIBLE_DEVICES": "which GPUs other libraries see",
    "LD_PRELOAD": "libraries put before all others",
    "LD_LIBRARY_PATH": "where libraries are looked for",
    "MALLOC_ARENA_MAX": "the C library's memory",
    "PYTHONMALLOC": "Python's memory",
}
_PREFIXES = {
    "JAX_TRANSFER_GUARD": "which transfers are allowed",
    "JAX_": "JAX",
    "OMP_": "OpenMP",
    "GOMP_": "OpenMP of GCC",
    "KMP_": "OpenMP of LLVM and Intel",
    "OPENBLAS_": "OpenBLAS",
    "MKL_": "MKL",
    "BLIS_": "BLIS",
    "HWLOC_": "hwloc: what it shows",
    "ARTIFEX_": "this library",
    "XLA_": "XLA",
}


def environment_variables(environment: Mapping[str, str]) -> Section:
    """The variables that are set, with what they act on."""
    section = Section("Environment variables")
    for name in sorted(environment):
        acts = _ACTS.get(name)
        if acts is None:
            acts = next((what for prefix, what in _PREFIXES.items() if name.startswith(prefix)), None)
        if acts is not None:
            section.add(name, environment[name].encode("utf-8", "replace").decode(), f"environment; acts on {acts}")
    return section
