# SPDX-License-Identifier: Apache-2.0
"""Sums of a few numbers, which the core computes when the last participant arrives, without Python's functions.

The first call of a collective is computed by Python, so the same call in a second step has to give the same.
"""

import greenlet
import numpy as np
import pytest
from artifex_devices import lax
from artifex_devices._spmd import collectives
from artifex_devices._spmd.executors import run
from artifex_devices._spmd.session import Session
from ml_dtypes import bfloat16
from spmd_programs import EXECUTORS, launch

N = 8
DTYPES = (np.int8, np.uint64, np.float16, bfloat16, np.float32, np.float64, np.complex64)
CALLS = {
    "psum": lambda x: lax.psum(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "pmean": lambda x: lax.pmean(x, "i"),
    "psum over pairs": lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3], [7, 4], [5, 6]]),
}


@pytest.fixture(params=EXECUTORS)
def executor(request):
    return request.param


@pytest.fixture
def computed(monkeypatch):
    """The number of members of each reduction that Python computes."""
    counts = []
    reduced = collectives._reduced

    def counted(operation, kind, parts):
        counts.append(len(parts))
        return reduced(operation, kind, parts)

    monkeypatch.setattr(collectives, "_reduced", counted)
    return counts


def numbers(dtype, i):
    values = np.random.default_rng(i).uniform(-100, 100, 12)
    if dtype.kind == "c":
        values = values + 1j * values[::-1]
    return np.array(values if dtype.kind != "u" else np.abs(values), dtype).reshape(3, 4)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in CALLS
        for dtype in map(np.dtype, DTYPES)
        if dtype.kind != "c" or name not in ("pmax", "pmin")
    ],
)
def test_the_core_and_python_compute_the_same_bits(name, dtype, executor):
    call = CALLS[name]
    results = launch(lambda i: [call(numbers(dtype, i)) for _ in range(3)], executor)
    for first, *others in results:
        for other in others:
            assert (other.dtype, other.shape, other.tobytes()) == (first.dtype, first.shape, first.tobytes())
            assert not other.flags.writeable
            assert other.flags.c_contiguous
    if name == "psum" and dtype.kind in "iu":
        total = sum(numbers(dtype, i) for i in range(N))
        assert all((each == total).all() for result in results for each in result)


def test_all_members_get_one_array(executor):
    results = launch(lambda i: [lax.psum(np.ones(2), "i") for _ in range(2)][1], executor)
    assert all(each is results[0] for each in results)
    assert results[0].tolist() == [8.0, 8.0]


def test_only_the_first_of_equal_sums_is_computed_by_python(computed, executor):
    def body(i):
        return [lax.psum(np.full(16, i, np.float32), "i")[0] for _ in range(10)]

    assert launch(body, executor) == [[28.0] * 10] * N
    assert computed == [N]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda i: lax.psum(np.ones(8192), "i"), 8.0),  # 64 KiB, which workers may share
        (lambda i: lax.psum(np.ones((16, 16))[:, ::2] if i == 3 else np.ones((16, 8)), "i"), 8.0),
        (lambda i: lax.psum({"a": np.ones(3)}, "i")["a"], 8.0),
        (lambda i: lax.pmean(np.ones(3), "i"), 1.0),
    ],
    ids=["many numbers", "a block that is not dense", "a tree", "a mean"],
)
def test_python_computes_the_others(body, expected, computed, executor):
    results = launch(lambda i: [body(i) for _ in range(3)], executor)
    assert computed == [N] * 3
    assert all((each == expected).all() for result in results for each in result)


def test_a_participant_that_python_has_checked_is_among_them(computed, executor):
    """A subclass of ndarray is not a known argument, so its participant leaves a list of leaves."""

    class Own(np.ndarray):
        pass

    def body(i):
        x = np.full(4, i, np.float64)
        return [float(lax.psum(x.view(Own) if i == 5 and step == 1 else x, "i")[0]) for step in range(3)]

    assert launch(body, executor) == [[28.0] * 3] * N
    assert computed == [N, N]


def test_an_error_reaches_all_members(executor):
    def body(i):
        for _ in range(3):
            lax.pmax(np.ones(2, np.complex64), "i")

    with pytest.raises(TypeError, match="pmax: complex numbers have no order"):
        launch(body, executor)


def test_each_participant_is_switched_to_once_for_each_wait():
    """An ended participant switches to the next one itself, not by the caller of the program."""
    session = Session(("i",), (N,), [f"cpu:{i}" for i in range(N)], operation="launch")
    switches = []

    def body(i):
        for _ in range(3):
            lax.psum(np.ones(1), "i")

    run(session, body, list(range(N)), "cooperative")  # creates the greenlets
    before = greenlet.settrace(lambda event, pair: switches.append(event))
    try:
        run(session, body, list(range(N)), "cooperative")
    finally:
        greenlet.settrace(before)
    # One switch begins each participant, one resumes it after each wait (the last to arrive does not wait), and one
    # returns to the caller.
    assert switches == ["switch"] * (N + 3 * (N - 1) + 1)
