# SPDX-License-Identifier: Apache-2.0
"""Measures two processes with two CPU devices each, beside plain MPI in the same processes and JAX's (gloo).

The peers take turns. A time is that of the slower process, from a barrier to the end; medians of all rounds.

Example:
    python bench/processes.py --jax-python .venv-oracle/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

PROCESSES = 2
DEVICES = 2  # of each process
BIG = (4096, 4096)  # of float32: 64 MiB
SMALL = (1024,)  # 4 KiB
REPEATS = {"big": 9, "small": 201}

Case = tuple[str, Callable[[], Any], str]  # name, what is timed, "big" or "small"


def plain_cases(world: Any) -> Iterator[Case]:
    """mpi4py's own operations on the same bytes."""
    from mpi4py import MPI

    half = np.ones(BIG[0] * BIG[1] * 4 // PROCESSES, np.uint8)
    other, whole = np.ones_like(half), np.ones(half.size * PROCESSES, np.uint8)
    peer = 1 - world.Get_rank()
    yield "reshard 64 MiB to replicated", lambda: world.Allgather(half, whole), "big"
    yield "Sendrecv of 32 MiB", lambda: world.Sendrecv(half, peer, 0, other, peer, 0), "big"
    for name, count, kind in (("psum 64 MiB", BIG[0] * BIG[1], "big"), ("psum 4 KiB", SMALL[0], "small")):
        given, total = np.ones(count, np.float32), np.ones(count, np.float32)
        yield name, lambda given=given, total=total: world.Allreduce(given, total, MPI.SUM), kind


def our_cases() -> Iterator[Case]:
    """This library, between the processes of mpiexec."""
    import artifex_devices as ad

    mesh = ad.make_mesh((PROCESSES * DEVICES,), ("x",))
    source = np.ones(BIG, np.float32)
    placed = {}
    for name, spec in (("rows", ad.P("x")), ("columns", ad.P(None, "x")), ("whole", ad.P())):
        placed[name] = ad.make_array_from_callback(BIG, ad.NamedSharding(mesh, spec), source.__getitem__)
    for name, begin, end in (
        ("reshard 64 MiB to replicated", "rows", "whole"),
        ("reshard 64 MiB, columns to replicated", "columns", "whole"),
        ("reshard 64 MiB, rows to columns", "rows", "columns"),
    ):
        target = placed[end].sharding
        yield name, lambda x=placed[begin], to=target: ad.device_put(x, to).block_until_ready(), "big"
    small = ad.make_array_from_callback(
        SMALL, ad.NamedSharding(mesh, ad.P("x")), np.ones(SMALL, np.float32).__getitem__
    )
    yield "reshard 4 KiB to replicated", lambda: ad.device_put(small, placed["whole"].sharding), "small"
    yield from _psums(ad, mesh, placed["rows"], small)


def _psums(lib: Any, mesh: Any, big: Any, small: Any) -> Iterator[Case]:
    """Each of 4 devices adds a quarter of the bytes, as in JAX's rows."""
    spec = lib.P
    total = lib.shard_map(lambda block: lib.lax.psum(block, "x"), mesh=mesh, in_specs=spec("x"), out_specs=spec())
    for name, x, kind in (("psum 64 MiB", big, "big"), ("psum 4 KiB", small, "small")):
        yield name, lambda x=x: total(x).block_until_ready(), kind


def jax_cases() -> Iterator[Case]:
    """JAX's multi-process CPU, its programs compiled."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    jax.P = PartitionSpec
    mesh = jax.make_mesh((PROCESSES * DEVICES,), ("x",))
    source = np.ones(BIG, np.float32)
    rows = jax.make_array_from_callback(BIG, NamedSharding(mesh, PartitionSpec("x")), source.__getitem__)
    to = NamedSharding(mesh, PartitionSpec())
    yield "reshard 64 MiB to replicated", lambda: jax.device_put(rows, to).block_until_ready(), "big"
    columns = NamedSharding(mesh, PartitionSpec(None, "x"))
    yield "reshard 64 MiB, rows to columns", lambda: jax.device_put(rows, columns).block_until_ready(), "big"
    small = jax.make_array_from_callback(
        SMALL, NamedSharding(mesh, PartitionSpec("x")), np.ones(SMALL, np.float32).__getitem__
    )
    yield "reshard 4 KiB to replicated", lambda: jax.device_put(small, to).block_until_ready(), "small"
    for name, x, kind in (("psum 64 MiB", rows, "big"), ("psum 4 KiB", small, "small")):
        total = jax.jit(
            jax.shard_map(lambda b: jax.lax.psum(b, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
        )
        yield name, lambda x=x, total=total: total(x).block_until_ready(), kind


def timed(cases: Iterator[Case], barrier: Callable[[], Any], quick: bool) -> dict[str, list[float]]:
    """Seconds of each repeat in this process."""
    by_name = {}
    for name, call, kind in cases:
        call()
        times = []
        for _ in range(3 if quick else REPEATS[kind]):
            barrier()
            begin = time.perf_counter()
            result = call()
            times.append(time.perf_counter() - begin)
            del result
        by_name[name] = times
    return by_name


def work(options: argparse.Namespace) -> None:
    """One process of a peer; prints its times."""
    os.environ["JAX_NUM_CPU_DEVICES"] = str(DEVICES)
    if options.worker == "jax":
        import jax

        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{options.port}", PROCESSES, options.rank)
        from jax.experimental import multihost_utils

        times = timed(jax_cases(), lambda: multihost_utils.sync_global_devices("bench"), options.quick)
        rank = options.rank
    else:
        from artifex_devices import distributed

        distributed.initialize()
        from mpi4py import MPI

        cases = our_cases() if options.worker == "ours" else plain_cases(MPI.COMM_WORLD)
        times = timed(cases, MPI.COMM_WORLD.Barrier, options.quick)
        rank = MPI.COMM_WORLD.Get_rank()
    sys.stdout.write(json.dumps({"rank": rank, "times": times}) + "\n")
    sys.stdout.flush()


def run_peer(peer: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds of the slower process in each repeat, by name."""
    quick = ["--quick"] if options.quick else []
    if peer == "jax":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        commands = [
            [options.jax_python, __file__, "--worker", "jax", "--rank", str(rank), "--port", port, *quick]
            for rank in range(PROCESSES)
        ]
    else:
        commands = [[options.mpiexec, "-n", str(PROCESSES), sys.executable, __file__, "--worker", peer, *quick]]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    output = "".join(process.communicate(timeout=600)[0] for process in running)
    if any(process.returncode for process in running):
        raise SystemExit(f"{peer}: ended with status {[process.returncode for process in running]}")
    times = [json.loads(line)["times"] for line in output.splitlines() if line.startswith("{")]
    return {name: [max(both) for both in zip(*(each[name] for each in times), strict=True)] for name in times[0]}


def main() -> None:
    """Runs the peers in turn and prints the table."""
    beside = Path(sys.executable).parent / "mpiexec"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jax-python", default="", help="an interpreter that has jax; default: without JAX")
    parser.add_argument("--mpiexec", default=str(beside) if beside.exists() else shutil.which("mpiexec"))
    parser.add_argument("--rounds", type=int, default=2, help="number of turns of each peer")
    parser.add_argument("--quick", action="store_true", help="few repeats, one round, to test the script")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options)
        return
    peers = ["ours", "plain", *(["jax"] if options.jax_python else [])]
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(1 if options.quick else options.rounds):
        for peer in peers:
            for name, each in run_peer(peer, options).items():
                times[name][peer] += each
    sys.stdout.write(f"{'':40} {'ours':>12} {'plain MPI':>12} {'jax':>12}   (medians, milliseconds)\n")
    for name, by_peer in times.items():
        medians = {peer: 1e3 * statistics.median(each) for peer, each in by_peer.items()}
        line = f"{name:40} " + " ".join(
            f"{medians[p]:12.3f}" if p in medians else f"{'-':>12}" for p in ("ours", "plain", "jax")
        )
        ratios = [
            f"{p} / ours {medians[p] / medians['ours']:.2f}"
            for p in ("plain", "jax")
            if p in medians and "ours" in medians
        ]
        sys.stdout.write(f"{line}   {', '.join(ratios)}\n")


if __name__ == "__main__":
    main()
