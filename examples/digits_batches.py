# SPDX-License-Identifier: Apache-2.0
"""Moves real batches to 8 CPU devices and back: placed, sharded, prefetched, drawn, gathered, compared byte for byte.

    python examples/digits_batches.py                    scikit-learn's images of handwritten digits
    python examples/digits_batches.py --file data.npz    your own arrays: one batch dimension, the first

Every example of the data is placed once in each epoch, in a new order. The exit code is 1 if a gathered byte
differs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import sys
import time
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import artifex_devices as ad
import numpy as np
from artifex_devices.prefetch import prefetch_to_device

Batch = dict[str, np.ndarray]
LARGE_BYTES = 128 << 20


def load_digits(enlarge: int) -> Batch:
    """1,797 images of 8 x 8 pixels and their labels; each pixel becomes a square of `enlarge` x `enlarge`."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        raise SystemExit("scikit-learn is missing: pip install scikit-learn, or use --file data.npz") from None
    digits = cast(Any, load())
    images = digits.images.astype(np.float32).repeat(enlarge, axis=1).repeat(enlarge, axis=2)
    return {"images": images, "labels": digits.target}


def load_file(path: Path) -> Batch:
    """All arrays of an .npz file; they must agree in their first dimension."""
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("one array and not an archive; save with np.savez(path, images=...)")
        with stored:
            data: Batch = {name: stored[name] for name in stored.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{path}: not a readable .npz file of numbers: {error}") from None
    if not data:
        raise SystemExit(f"{path}: no arrays in it; expected at least one; save with np.savez(path, images=...)")
    lengths = {name: array.shape[0] if array.ndim else None for name, array in data.items()}
    if None in lengths.values() or len(set(lengths.values())) > 1 or 0 in lengths.values():
        raise SystemExit(f"{path}: the first dimension is the batch and must be the same, not 0; got {lengths}")
    return data


def plan_epochs(examples: int, batch_size: int, epochs: int) -> list[np.ndarray]:
    """Which examples each batch holds, over all epochs; the last batch of an epoch may be short."""
    random = np.random.default_rng(0)
    plan: list[np.ndarray] = []
    for _ in range(epochs):
        order = random.permutation(examples)
        plan += [order[start : start + batch_size] for start in range(0, examples, batch_size)]
    return plan


@contextlib.contextmanager
def progress(total: int) -> Generator[Callable[[], None]]:
    """A rich progress bar, or plain lines without rich or a terminal; yields a function that counts one batch."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        pass
    else:
        if sys.stdout.isatty():
            columns = (TextColumn("batches"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            with Progress(*columns) as bar:
                task = bar.add_task("batches", total=total)
                yield lambda: bar.advance(task)
            return
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if done == total or done % max(1, total // 4) == 0:
            print(f"  batches {done}/{total}")

    yield advance


def same_bytes(host: np.ndarray, source: np.ndarray) -> bool:
    """Whether dtype, shape and every byte agree, NaN bits included."""
    return host.dtype == source.dtype and host.shape == source.shape and host.tobytes() == source.tobytes()


def rates(count: int, put_s: float, get_s: float, sharding: ad.Sharding) -> str:
    """Bytes per second in both directions."""
    gathered = f"gathered at {count / max(get_s, 1e-9) / 1e9:.2f} GB/s"
    if sharding.num_devices == 1:
        gathered = "read in place: one device, nothing to gather"
    return f"placed at {count / max(put_s, 1e-9) / 1e9:.2f} GB/s, {gathered}"


def show_hardware(placement: ad.DevicePlacement, data: Batch, batch_size: int) -> None:
    """Devices, and batch sizes for them and for other hardware."""
    info = placement.get_device_info()
    print(f"Devices: {info['num_devices']} x {', '.join(info['platforms'])}, hardware type {info['hardware_type']}")
    first = placement.default_device
    print(f"  cpu:0 owns CPUs {first.cpuset}, memory {first.memory_bytes / 2**30:.1f} GiB")
    print("Batch sizes:")
    print(f"  {placement.validate_batch_size(batch_size)[1]}")
    per_example = sum(array.nbytes for array in data.values()) // len(next(iter(data.values())))
    here = placement.get_batch_size_recommendation(bytes_per_example=max(1, per_example))
    print(f"  at {per_example} bytes per example, cpu:0 has room for {here.max_memory_batch_size:,} examples")
    h100 = ad.get_batch_size_recommendation(ad.HardwareType.H100)
    print(f"  on an H100: optimal {h100.optimal_batch_size}, critical {h100.critical_batch_size} ({h100.notes})")


def run_epochs(data: Batch, plan: list[np.ndarray], sharding: ad.Sharding, buffer_size: int) -> int:
    """Sends all batches through the devices; returns the number of arrays that differ.

    The loop's own work, which prefetching overlaps, is the check and a SHA-256 of the gathered bytes.
    """
    wrong = moved = 0
    digest = hashlib.sha256()
    gather_s = 0.0
    source = ({name: array[index] for name, array in data.items()} for index in plan)
    began = time.perf_counter()
    with progress(len(plan)) as advance, prefetch_to_device(source, sharding, buffer_size) as batches:
        for index, batch in zip(plan, batches, strict=True):
            from_s = time.perf_counter()
            host = ad.device_get(batch)
            gather_s += time.perf_counter() - from_s
            for name, array in data.items():
                moved += host[name].nbytes
                digest.update(host[name].tobytes())
                if not same_bytes(host[name], array[index]):
                    wrong += 1
                    print(f"  DIFFERENT: {name} of a batch of {len(index)} examples")
            advance()
        stats = batches.stats()
    total_s = time.perf_counter() - began
    print(f"  {stats.batches} batches, {moved / 1e6:.1f} MB each way, {total_s:.2f} s; measured on these batches:")
    print(f"  {rates(moved, stats.place_s, gather_s, sharding)}")
    print(
        f"  the worker read and placed for {stats.worked_s:.3f} s, the loop waited {stats.waited_s:.3f} s: "
        f"overlap {stats.overlap_ratio:.0%}"
    )
    print(f"  SHA-256 of all gathered bytes: {digest.hexdigest()}")
    return wrong


def measure_large(array: np.ndarray, sharding: ad.Sharding) -> int:
    """Places and gathers one large array made of repeated data; returns 1 if it differs."""
    times = max(1, LARGE_BYTES // max(1, array.nbytes))
    large = np.concatenate([array] * times)
    put_s: list[float] = []
    get_s: list[float] = []
    wrong = False
    for _ in range(3):
        began = time.perf_counter()
        placed = ad.block_until_ready(ad.device_put(large, sharding))
        placed_at = time.perf_counter()
        host = np.asarray(placed)
        get_s.append(time.perf_counter() - placed_at)
        put_s.append(placed_at - began)
        wrong = not same_bytes(host, large)
        del placed, host
    print(f"One array of {large.nbytes / 1e6:.0f} MB (the first data array, {times} times), best of 3:")
    print(f"  {rates(large.nbytes, min(put_s), min(get_s), sharding)}")
    return int(wrong)


def main() -> int:
    """Parses the command line and runs all of it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="an .npz file of arrays to use instead of the digits")
    parser.add_argument("--enlarge", type=int, default=8, help="repeat each pixel of the digits (default 8: 64 x 64)")
    parser.add_argument("--devices", type=int, default=8, help="CPU devices (default 8)")
    parser.add_argument("--batch-size", type=int, default=256, help="examples in a batch (default 256)")
    parser.add_argument("--epochs", type=int, default=20, help="times through the data (default 20)")
    parser.add_argument("--buffer-size", type=int, default=2, help="batches prefetched (default 2)")
    parser.add_argument("--svg", type=Path, metavar="PATH", help="also draw the sharding into this SVG file")
    args = parser.parse_args()
    for name in ("enlarge", "devices", "batch_size", "epochs", "buffer_size"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")

    data = load_digits(args.enlarge) if args.file is None else load_file(args.file)
    examples = len(next(iter(data.values())))
    print(f"Data: {args.file or 'scikit-learn digits'}, {examples} examples")
    for name, array in data.items():
        print(f"  {name}: {array.dtype} {array.shape}")

    with ad.simulate(args.devices):
        show_hardware(ad.DevicePlacement(), data, args.batch_size)
        mesh = ad.DeviceMeshManager().create_data_parallel_mesh()
        print(f"Mesh: {dict(mesh.shape)} on {len(os.sched_getaffinity(0))} cores")
        # Batches that do not divide evenly get short shards; by default they are an error.
        last = examples % args.batch_size
        uneven = args.batch_size % args.devices != 0 or last % args.devices != 0
        sharding = ad.NamedSharding(mesh, ad.P("data"), uneven="last-short" if uneven else None)
        if last:
            print(f"  the last batch of an epoch has {last} examples: it is placed too, some devices get fewer or none")
        try:
            first = ad.distribute_batch({name: array[: args.batch_size] for name, array in data.items()}, sharding)
        except TypeError as error:
            raise SystemExit(f"{args.file}: {error}") from None
        name, array = next(iter(data.items()))
        shape = first[name].shape
        print(f"A batch of {name}, {shape}, over the devices:")
        print(ad.render.sharding_text(sharding, shape))
        if args.svg:
            args.svg.write_text(ad.render.sharding_svg(sharding, shape), encoding="utf-8")
            print(f"  drawn into {args.svg}")
        print(f"Prefetching {args.epochs} epochs:")
        wrong = run_epochs(data, plan_epochs(examples, args.batch_size, args.epochs), sharding, args.buffer_size)
        wrong += measure_large(array, sharding)

    print("Every byte came back." if wrong == 0 else f"{wrong} arrays came back DIFFERENT.")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
