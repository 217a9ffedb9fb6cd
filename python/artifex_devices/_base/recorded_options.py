# SPDX-License-Identifier: Apache-2.0
"""Options of JAX without effect here: accepted and recorded, or refused with the reason."""

from __future__ import annotations

from typing import Any, NamedTuple

from artifex_devices._base.checks import check_bool, check_choice, failure
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import alternatives

_FLAG = (False, True)


class _Option(NamedTuple):
    """One option of JAX."""

    default: Any  # in JAX
    values: tuple[Any, ...] | None = None  # accepted ones; None for any
    reason: str = ""  # why other values of JAX are refused


_NO_CHECKED_PROGRAM = "nothing is compiled here, so there is no program to check; write np.errstate(invalid='raise')"

RECORDED: dict[str, _Option] = {
    # Nothing is compiled or traced.
    "jax_check_tracer_leaks": _Option(False, _FLAG),
    "jax_compilation_cache_dir": _Option(None),
    "jax_compilation_cache_max_size": _Option(-1),
    "jax_compiler_enable_remat_pass": _Option(True, _FLAG),
    "jax_default_matmul_precision": _Option(None),
    "jax_disable_jit": _Option(False, _FLAG),
    "jax_disable_most_optimizations": _Option(False, _FLAG),
    "jax_enable_checks": _Option(False, _FLAG),
    "jax_enable_compilation_cache": _Option(True, _FLAG),
    "jax_enable_pgle": _Option(False, _FLAG),
    "jax_explain_cache_misses": _Option(False, _FLAG),
    "jax_include_full_tracebacks_in_locations": _Option(True, _FLAG),
    "jax_log_compiles": _Option(False, _FLAG),
    "jax_optimization_level": _Option("UNKNOWN"),
    "jax_persistent_cache_enable_xla_caches": _Option("xla_gpu_per_fusion_autotune_cache_dir"),
    "jax_persistent_cache_min_compile_time_secs": _Option(1.0),
    "jax_persistent_cache_min_entry_size_bytes": _Option(0),
    "jax_raise_persistent_cache_errors": _Option(False, _FLAG),
    "jax_traceback_filtering": _Option("auto"),
    "jax_use_shardy_partitioner": _Option(True, _FLAG),
    # Random numbers come from NumPy's Generator.
    "jax_default_prng_impl": _Option("threefry2x32"),
    "jax_enable_custom_prng": _Option(False, _FLAG),
    "jax_threefry_partitionable": _Option(True, _FLAG),
    # Processes exchange data by MPI with every choice.
    "jax_cpu_collectives_implementation": _Option("gloo", (None, "gloo", "mpi", "megascale")),
    "jax_distributed_debug": _Option(False, _FLAG),
    # Checks that do not exist here.
    "jax_array_garbage_collection_guard": _Option(
        None,
        (None, "allow"),
        "garbage collection of Arrays is not monitored; use memory_report() to find references to them",
    ),
    "jax_debug_infs": _Option(False, (False,), _NO_CHECKED_PROGRAM.replace("invalid", "over")),
    "jax_debug_nans": _Option(False, (False,), _NO_CHECKED_PROGRAM),
    "jax_numpy_dtype_promotion": _Option(
        "standard", ("standard",), "dtypes are promoted by NumPy's rules; compare x.dtype and y.dtype in the program"
    ),
    "jax_numpy_rank_promotion": _Option(
        "allow", ("allow",), "ranks are promoted by NumPy's rules; compare x.ndim and y.ndim in the program"
    ),
}


def check_recorded(name: str, value: object) -> None:
    """Checks the value of an option; NotImplementedError if it requests a check that does not exist here."""
    option = RECORDED[name]
    if option.values is None:
        return
    if isinstance(option.default, bool):
        check_bool("config.update", name, value)
    if option.reason and not any(type(value) is type(known) and value == known for known in option.values):
        raise failure(
            NotImplementedError,
            "config.update",
            f"{name} cannot be {safe_repr(value)}",
            expected=f"{alternatives(option.values)}: {option.reason}",
        )
    check_choice("config.update", name, value, option.values)
