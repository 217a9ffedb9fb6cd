# SPDX-License-Identifier: Apache-2.0
"""What multihost_utils refuses in several simulated processes."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import multihost_utils
from artifex_devices.testing import run_processes


def texts_of(call, error):
    """The text of the error that each of two processes raises."""

    def body():
        with pytest.raises(error) as caught:
            call(ad.process_index())
        return str(caught.value)

    return run_processes(body, processes=2).results


def test_objects_cannot_be_sent():
    texts = texts_of(lambda _: multihost_utils.process_allgather(np.array([None, "a"], object)), TypeError)
    expected = "process_allgather: a leaf is of dtype object; expected numbers, got [None 'a']; objects cannot be sent"
    assert texts == [expected] * 2


@pytest.mark.parametrize(("sources", "count"), [((True, True), 2), ((False, False), 0)])
def test_exactly_one_process_is_the_source(sources, count):
    texts = texts_of(lambda me: multihost_utils.broadcast_one_to_all(1, is_source=sources[me]), ValueError)
    expected = (
        f"broadcast_one_to_all: {count} processes are the source; expected one, got processes "
        f"{list(range(count))}; give is_source=True in one of them"
    )
    assert texts == [expected] * 2


@pytest.mark.parametrize(("is_source", "value"), [(None, 0), ((False, True), 1), ((True, False), 0)])
def test_the_values_of_the_source_are_sent(is_source, value):
    def body():
        me = ad.process_index()
        given = None if is_source is None else is_source[me]
        return multihost_utils.broadcast_one_to_all({"me": me}, is_source=given)["me"].tolist()

    assert run_processes(body, processes=2).results == [value, value]


def test_values_of_other_kinds_are_refused_everywhere():
    texts = texts_of(lambda me: multihost_utils.process_allgather(np.ones(me + 1)), ValueError)
    for text in texts:
        assert text.startswith(
            "process_allgather: the values of the processes differ; expected equal trees, shapes and dtypes, got "
        )
        assert "float64[1]" in text
        assert "float64[2]" in text


def test_arrays_of_all_processes_are_joined_or_stacked():
    def body():
        me = ad.process_index()
        tree = {"n": me, "x": np.arange(2) + 10 * me}
        tiled, stacked = (multihost_utils.process_allgather(tree, tiled=tiled) for tiled in (True, False))
        return [tiled["n"].tolist(), tiled["x"].tolist(), stacked["n"].tolist(), stacked["x"].tolist()]

    expected = [[0, 1], [0, 1, 10, 11], [0, 1], [[0, 1], [10, 11]]]
    assert run_processes(body, processes=2).results == [expected] * 2
