# SPDX-License-Identifier: Apache-2.0
"""Arguments that are the same for all participants are checked once, whatever the number of participants.

The arguments here count how often something reads them. Lists that change, or differ, keep their meaning.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices._spmd.executors import run
from artifex_devices._spmd.session import Session
from artifex_devices.errors import CollectiveError
from spmd_programs import EXECUTORS, launch

N = 16
RING = [(i, (i + 1) % N) for i in range(N)]
PAIRS = [[i, i + 1] for i in range(0, N, 2)]


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return request.param


class Counted(Sequence):
    """A sequence that counts how often its entries are read."""

    def __init__(self, entries):
        self.entries = entries
        self.reads = 0

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, index):
        self.reads += 1
        return self.entries[index]

    def __iter__(self):
        self.reads += len(self.entries)
        return iter(self.entries)


CALLS = {  # the call, its indices, and what participant i gets
    "ppermute": (lambda x, perm: lax.ppermute(x, "i", perm), RING, lambda i: (i - 1) % N),
    "ppermute of a tree": (lambda x, perm: lax.ppermute({"a": x}, "i", perm)["a"], RING, lambda i: (i - 1) % N),
    "pshuffle": (lambda x, perm: lax.pshuffle(x, "i", perm), [*range(1, N), 0], lambda i: (i + 1) % N),
    "psum": (lambda x, groups: lax.psum(x, "i", axis_index_groups=groups), PAIRS, lambda i: 4 * (i // 2) + 1),
    "pmax of a tree": (lambda x, groups: lax.pmax([x], "i", axis_index_groups=groups)[0], PAIRS, lambda i: i | 1),
    "all_gather": (
        lambda x, groups: lax.all_gather(x, "i", axis_index_groups=groups)[1],
        PAIRS,
        lambda i: i | 1,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_indices_are_read_once_for_all_participants(name):
    call, entries, expected = CALLS[name]
    indices = Counted(entries)
    session = Session(("i",), (N,), [f"cpu:{i}" for i in range(N)], operation="launch")

    def body(i):
        x = np.array([float(i)])
        return [call(x, indices).tolist() for _ in range(3)]

    wanted = [[[float(expected(i))]] * 3 for i in range(N)]
    for calls in (1, 2):
        assert run(session, body, list(range(N)), "cooperative") == wanted
        assert indices.reads == calls * 3 * len(entries)  # once in each of 3 steps


def test_equal_lists_of_participants_are_one_permutation(executor):
    def body(i):
        steps = []
        for distance in (1, 2, 1):
            perm = (
                [(j, (j + distance) % N) for j in range(N)]
                if i % 2
                else tuple((j, (j + distance) % N) for j in range(N))
            )
            steps.append(int(lax.ppermute(np.array([i]), "i", perm)[0]))
        return steps

    assert launch(body, executor, {"i": N}) == [[(i - 1) % N, (i - 2) % N, (i - 1) % N] for i in range(N)]


def test_a_list_that_changes_between_two_steps_is_read_again(executor):
    def body(i):
        perm = list(range(N))
        found = []
        for _ in range(20):
            perm.append(perm.pop(0))
            found.append(int(lax.pshuffle(np.array([i]), "i", perm)[0]))
        return found

    assert launch(body, executor, {"i": N}) == [[(i + step) % N for step in range(1, 21)] for i in range(N)]


def test_a_list_of_all_that_changes_between_two_calls_is_read_again():
    perm = list(range(N))
    session = Session(("i",), (N,), [f"cpu:{i}" for i in range(N)], operation="launch")

    def body(i):
        return int(lax.pshuffle(np.array([i]), "i", perm)[0])

    for step in range(1, 4):
        perm.append(perm.pop(0))
        assert run(session, body, list(range(N)), "cooperative") == [(i + step) % N for i in range(N)]


def test_a_mistake_that_a_body_corrects_is_checked_again(executor):
    def body(i):
        perm = [*range(1, N), 1]
        with pytest.raises(ValueError, match="perm is not a permutation"):
            lax.pshuffle(np.array([i]), "i", perm)
        perm[-1] = 0
        return int(lax.pshuffle(np.array([i]), "i", perm)[0])

    assert launch(body, executor, {"i": N}) == [(i + 1) % N for i in range(N)]


def test_different_permutations_are_different_collectives(executor):
    def body(i):
        for _ in range(2):
            lax.ppermute(np.zeros(1), "i", RING)
        return lax.ppermute(np.zeros(1), "i", RING if i else RING[:-1])

    with pytest.raises(CollectiveError, match="participants called different collectives"):
        launch(body, executor, {"i": N})


def test_bools_and_floats_are_refused_where_equal_ints_were_known(executor):
    def body(i):
        lax.ppermute(np.zeros(1), "i", [(0, 1), (1, 0)])
        for perm in ([(False, True), (True, False)], [(0.0, 1.0), (1.0, 0.0)]):
            with pytest.raises(TypeError, match=r"ppermute: perm\[0\]\[0\]"):
                lax.ppermute(np.zeros(1), "i", perm)
        return True

    assert launch(body, executor, {"i": 2}) == [True] * 2


def test_more_permutations_than_a_session_caches(executor):
    def body(i):
        found = []
        for step in range(1, 81):
            perm = [(j, (j + step) % N) for j in range(N)]
            found.append(int(lax.ppermute(np.array([i, step]), "i", perm)[0]))
            found.append(int(lax.psum(np.ones(step), "i", axis_index_groups=[list(range(N))])[0]))
        return found

    wanted = [[n for step in range(1, 81) for n in ((i - step) % N, N)] for i in range(N)]
    assert launch(body, executor, {"i": N}) == wanted


def test_options_are_a_part_of_the_collective(executor):
    def body(i):
        x = np.full((2, N), i)
        shapes = []
        for axis in (0, 1, 2, -1, 0):
            shapes.append(lax.all_gather(x, "i", axis=axis).shape)
        for tiled in (True, False):
            shapes.append(lax.psum_scatter(x, "i", scatter_dimension=1, tiled=tiled).shape)
        return shapes

    wanted = [(N, 2, N), (2, N, N), (2, N, N), (2, N, N), (N, 2, N), (2, 1), (2,)]
    assert launch(body, executor, {"i": N}) == [wanted] * N
