# SPDX-License-Identifier: Apache-2.0
"""Peak rates of the machine: `measure_roofline` beside NumPy's product and a C loop in the same run.

Rows are times: of 10^9 FLOP, and of 10^9 bytes as STREAM counts them (24 for an element of a triad).
A ratio of 0.9 or more means that ours is not below 90 % of the peer.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

SIDE = 2048
C_LOOP = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double *a, *b, *c;
static long count, threads;
static void *triad(void *part) {
  const long from = count / threads * (long)part, to = from + count / threads;
  for (long i = from; i < to; ++i) c[i] = a[i] + 3.0 * b[i];
  return 0;
}
static void *fill(void *part) {
  const long from = count / threads * (long)part, to = from + count / threads;
  for (long i = from; i < to; ++i) { a[i] = 1; b[i] = 2; c[i] = 0; }
  return 0;
}
static void run(void *(*loop)(void *)) {
  pthread_t made[256];
  for (long i = 0; i < threads; ++i) pthread_create(&made[i], 0, loop, (void *)i);
  for (long i = 0; i < threads; ++i) pthread_join(made[i], 0);
}
int main(int n, char **v) {
  if (n != 4) return 2;
  count = atol(v[1]); threads = atol(v[2]);
  a = aligned_alloc(4096, count * 8); b = aligned_alloc(4096, count * 8); c = aligned_alloc(4096, count * 8);
  if (!a || !b || !c || threads < 1 || threads > 256) return 3;
  run(fill);
  for (int i = 0; i < atoi(v[3]); ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run(triad);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.9f\n", (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec));
  }
  return c[count / 2] == 7.0 ? 0 : 4;
}
"""
FLOPS_ROW = "{} products, 10^9 FLOP, best"
STREAM_ROW = "STREAM, 10^9 bytes, best"


def rows(peer: Any, *, quick: bool) -> Iterator[Row]:
    """The best of each, because the limit is measured."""
    if peer.NAME == "artifex_devices":
        yield from _ours(quick)
    elif peer.NAME == "numpy":
        yield from _numpy(quick)


def _ours(quick: bool) -> Iterator[Row]:
    from artifex_devices.roofline import measure_roofline

    found = measure_roofline(seconds=0.5 if quick else 4.0, cache=False)
    for dtype in ("float32", "float64"):
        eigen = max((rate for rate in found.products[dtype] if "Eigen" in rate.how), key=lambda rate: rate.best)
        yield Row(
            FLOPS_ROW.format(dtype),
            samples=[1e9 / found.peak_flops[dtype].best],
            notes=f"{found.peak_flops[dtype].how}; Eigen alone {eigen.best / 1e9:.0f} GFLOP/s ({eigen.how})",
        )
    yield Row(STREAM_ROW, samples=[1e9 / found.bandwidth.best], notes=found.bandwidth.how)


def _numpy(quick: bool) -> Iterator[Row]:
    for dtype in ("float32", "float64"):
        a, b, out = (np.full((SIDE, SIDE), 0.5, dtype) for _ in range(3))
        times = []
        for _ in range(4 if quick else 12):
            begin = time.perf_counter()
            np.matmul(a, b, out=out)
            times.append(time.perf_counter() - begin)
        yield Row(
            FLOPS_ROW.format(dtype), samples=[1e9 * min(times) / (2 * SIDE**3)], notes=f"np.matmul of {SIDE} x {SIDE}"
        )
    times = _c_loop(3 if quick else 15)
    if times:
        best, elements = times
        yield Row(
            STREAM_ROW, samples=[1e9 * best / (24 * elements)], notes="a triad in C, cc -O3 -march=native, pthreads"
        )


def _c_loop(repeats: int) -> tuple[float, int] | None:
    """The best time of a triad in C and its elements; None without a compiler."""
    elements = 16 << 20  # 128 MiB per array
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "triad.c"), Path(folder, "triad")
        source.write_text(C_LOOP)
        command = ["cc", "-O3", "-march=native", "-pthread", str(source), "-o", str(program)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        threads = len(os.sched_getaffinity(0))
        done = subprocess.run([program, str(elements), str(threads), str(repeats)], check=True, capture_output=True)
    return min(map(float, done.stdout.split())), elements
