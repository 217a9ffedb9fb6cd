# SPDX-License-Identifier: Apache-2.0
"""Each kind of work where the whole process, Python and NumPy included, has next to no memory left (RLIMIT_AS).

The limit is set to what is in use, all that is free within is filled, and a part of it released, from 64 bytes to
1 MiB, in blocks here and there; in every third try nothing is filled, and the limit leaves 0 to 300 MiB. Then each kind
of work has its value, or says what is short; when there is memory again, it has its value.

ARTIFEX_SCARCE_ROUNDS: how often, for a longer search; ARTIFEX_SCARCE_SEED: where it begins.
"""

import faulthandler
import gc
import os
import random
import re
import resource
import sys
import tempfile

import numpy as np
import pytest
import tour

ROUNDS = int(os.environ.get("ARTIFEX_SCARCE_ROUNDS", "4"))
SEED = int(os.environ.get("ARTIFEX_SCARCE_SEED", "1"))
PARTS = 3
MOST_BLOCKS = 400_000
SIZES = (1 << 20, 1 << 18, 1 << 16, 1 << 14, 1 << 12, 1 << 11, 1 << 10, *range(512, 32, -16))
HEAD = sys.getsizeof(b"")  # of each block

FRAMELESS = r"error return without exception set|<function .*> returned NULL without setting an exception"

# greenlet ends the process if it has no memory for the stack that it leaves (executor "cooperative"). Programs that ran
# before memory is short run here, in threads.
LEFT_OUT = ("threads", "cooperative", "mapped")


def programs():
    """Kinds of work by name: those of tour.py, and what is mapped and made before memory is short."""
    import artifex_devices as ad
    from artifex_devices import P, lax

    def body(block):
        return lax.psum(lax.psum(block, "x") * 2, "x")

    def gather(block):
        return lax.all_gather(lax.ppermute(block, "x", [(i, (i + 1) % 8) for i in range(8)]), "x", tiled=True)

    whole = tour.over(P("x"))
    added = ad.shard_map(body, whole.mesh, in_specs=P("x"), out_specs=P(), executor="threads")
    gathered = ad.shard_map(gather, whole.mesh, in_specs=P("x"), out_specs=P(), executor="threads", check_vma=False)
    summed = ad.pmap(lambda x: lax.psum(x, "i"), axis_name="i", executor="threads")
    doubled = ad.jit(lambda x: x + x)
    held = ad.device_put(tour.BIG, whole)
    eight = np.arange(8)

    def collectives():
        tour.equal(added(eight), np.full(1, 28 * 2 * 8))

    def rings():
        tour.equal(gathered(eight), np.roll(eight, 1))

    def pmapped():
        tour.equal(summed(eight), np.full(8, 28))

    def jitted():
        tour.equal(doubled(held), tour.BIG + tour.BIG)

    def read():
        tour.equal(ad.device_get(held), tour.BIG)

    def meshes():
        assert ad.make_mesh((2, 4), ("a", "b")).devices[1, 3].id == 7
        mesh = ad.Mesh(np.array(ad.devices()).reshape(4, 2), ("a", "b"))
        assert ad.NamedSharding(mesh, P("b", "a")).shard_shape((8, 8)) == (4, 2)

    kinds = {name: work for name, work in tour.KINDS.items() if name not in LEFT_OUT}
    return kinds | {each.__name__: each for each in (collectives, rings, pmapped, jitted, read, meshes)}


class Scarcity:
    """Leaves the process a given number of bytes; all that it needs itself it has beforehand."""

    def __init__(self):
        self.blocks = [None] * MOST_BLOCKS
        self.count = 0
        self.before = resource.getrlimit(resource.RLIMIT_AS)

    def try_with(self, work, room, spare, draw):
        """Runs it with `room` bytes above what is in use, of which all but `spare` are filled (None: nothing is).

        Returns the error.
        """
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        low, before = (used + room, self.before[1]), self.before
        setrlimit, limit = resource.setrlimit, resource.RLIMIT_AS
        try:
            setrlimit(limit, low)
            if spare is not None:
                self.fill()
                self.release(spare, draw)
            work()
        except BaseException as error:  # which ones are right is for the caller to say
            setrlimit(limit, before)
            return error
        finally:
            setrlimit(limit, before)
            self.blocks[: self.count] = [None] * self.count
        return None

    def fill(self):
        self.count = 0
        for size in SIZES:
            try:
                while True:
                    self.blocks[self.count] = bytes(size - HEAD)
                    self.count += 1
            except MemoryError:
                continue

    def release(self, spare, draw):
        left = spare
        while left > 0:
            i = draw.randrange(self.count)
            if self.blocks[i] is not None:
                left -= len(self.blocks[i]) + HEAD
                self.blocks[i] = None


def is_right(error):
    """Whether it says what is short."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, SystemError):  # CPython 3.11, of a function written in Python that has no room for its frame
        return re.fullmatch(FRAMELESS, str(error)) is not None
    return isinstance(error, RuntimeError) and ("thread" in str(error) or "RESOURCE_EXHAUSTED" in str(error))


class Recorder:
    """What Python writes to stderr meanwhile: of threads and finalizers that had no memory, and of nothing else."""

    def __enter__(self):
        self.stderr = os.dup(2)
        self.file = tempfile.TemporaryFile("w+")
        os.dup2(self.file.fileno(), 2)
        faulthandler.enable(file=self.stderr)
        return self

    def __exit__(self, *_):
        sys.stderr.flush()
        os.dup2(self.stderr, 2)
        faulthandler.cancel_dump_traceback_later()

    def errors(self):
        with self.file as file:
            file.seek(0)
            lines = file.read().splitlines()
        return {line.split(":")[0] for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt|Fault)\b", line)}


def with_next_to_nothing(part):
    import artifex_devices as ad

    tour.BIG = np.arange(1 << 14, dtype=np.float32).reshape(128, 128)  # 64 KiB
    kinds = dict(list(programs().items())[int(part) :: PARTS])
    for work in kinds.values():
        work()
        work()
    gc.collect()
    gc.freeze()  # later collections look at what is new only, and are quick
    draw = random.Random(SEED)
    scarcity = Scarcity()
    outcomes = {"value": 0, "short": 0}
    with Recorder() as recorder:
        for i in range(ROUNDS * 3):
            for name, work in kinds.items():
                gc.collect()
                if draw.random() < 0.5:  # threads begin again
                    ad.shutdown()
                    ad.clear_caches()
                room, spare = 0, int(2 ** draw.uniform(6, 20))
                if i % 3 == 2:
                    room, spare = draw.choice([0, *(1 << k for k in (12, 16, 18, 20, 21, 22, 23, 25, 27, 28))]), None
                faulthandler.dump_traceback_later(60, exit=True, file=recorder.stderr)
                error = scarcity.try_with(work, room, spare, draw)
                if error is not None and not is_right(error):
                    raise AssertionError((i, name, room, spare)) from error
                outcomes["value" if error is None else "short"] += 1
                error = None
                work()
    assert recorder.errors() <= {"MemoryError", "KeyError"}  # KeyError: CPython's list of threads, of one not yet in it
    gc.collect()
    print(outcomes["value"], outcomes["short"])


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the sanitizer's malloc needs address space for each size")
def test_next_to_no_memory_is_an_error_in_words_or_none(own_process, part):
    values, short = map(int, own_process(with_next_to_nothing, part)[0].split())
    assert min(values, short) > 10
