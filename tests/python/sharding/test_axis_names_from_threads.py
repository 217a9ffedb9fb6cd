# SPDX-License-Identifier: Apache-2.0
"""Axis names that are added by several threads at once: equal ones are one name, also where their code runs between."""

from __future__ import annotations

import sys
import threading

import artifex_devices as ad
import pytest


class Name:
    """Equal by its key. The first repr of each object, which describes a new name, meets those of the other threads."""

    def __init__(self, key, barrier):
        self.key = key
        self.barrier = barrier

    def __eq__(self, other):
        return isinstance(other, Name) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __repr__(self):
        barrier, self.barrier = self.barrier, None
        if barrier is not None:
            barrier.wait(60)
        return f"Name({self.key!r})"


@pytest.mark.parametrize("threads", [2, 8])
def test_equal_names_of_threads_give_one_mesh(threads):
    devices = ad.devices()
    for round_ in range(20):
        barrier = threading.Barrier(threads)
        names = [Name((threads, round_), barrier) for _ in range(threads)]
        made = [None] * threads

        def make(slot, names=names, made=made):
            made[slot] = ad.Mesh(devices, (names[slot],)), ad.P(names[slot])

        running = [threading.Thread(target=make, args=(slot,)) for slot in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        assert all(mesh is made[0][0] and spec == made[0][1] for mesh, spec in made)
        (kept,) = made[0][0].axis_names
        assert all(mesh.axis_names[0] is kept for mesh, _ in made)
        assert ad.Mesh(devices, (Name((threads, round_), None),)) is made[0][0]


def test_names_that_lost_the_race_are_released():
    barrier = threading.Barrier(2)
    names = [Name("released", barrier) for _ in range(2)]
    counts = [sys.getrefcount(name) for name in names]
    running = [threading.Thread(target=ad.P, args=(name,)) for name in names]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    del running
    after = [sys.getrefcount(name) for name in names]
    assert min(now - before for now, before in zip(after, counts, strict=True)) == 0
