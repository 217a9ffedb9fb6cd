# SPDX-License-Identifier: Apache-2.0
"""What multihost_utils refuses in several simulated processes."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import multihost_utils
from artifex_devices.errors import CollectiveError
from artifex_devices.testing import run_processes


def texts_of(call, error):
    """The text of the error that each of two processes raises."""

    def body():
        with pytest.raises(error) as caught:
            call(ad.process_index())
        return str(caught.value)

    return run_processes(body, processes=2).results


CALLS = ["process_allgather", "broadcast_one_to_all", "assert_equal"]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.array([None, "a"], object), "dtype object, array([None, 'a'], dtype=object)"),
        ("abc", "dtype <U3, 'abc'"),
        (b"abc", "dtype |S3, b'abc'"),
        (np.zeros(1, "M8[s]"), "dtype datetime64[s], array(['1970-01-01T00:00:00'], dtype='datetime64[s]')"),
        (np.zeros(1, [("x", "f4")]), "dtype [('x', '<f4')], array([(0.,)], dtype=[('x', '<f4')])"),
        (2**100, f"dtype object, {2**100}"),
    ],
)
def test_other_leaves_than_arrays_of_numbers_are_one_error_in_any_number_of_processes(name, value, found):
    def call(_=None):
        getattr(multihost_utils, name)({"a": 1, "b": [2.0, value]})

    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == (
        f"{name}: not an array of numbers: leaf ['b'][1] of {found}; expected leaves of a bool, integer, float or "
        "complex dtype; encode other values, in all processes with the same length: "
        "np.frombuffer(json.dumps(value).encode().ljust(4096), np.uint8)"
    )
    assert texts_of(call, TypeError) == [str(caught.value)] * 2


def test_the_other_processes_learn_of_a_leaf_that_one_cannot_send_and_the_next_call_works():
    def body():
        me = ad.process_index()
        with pytest.raises(TypeError if me == 1 else CollectiveError) as caught:
            multihost_utils.process_allgather("a" if me == 1 else 1)
        return str(caught.value), multihost_utils.process_allgather(me).tolist()

    (first, after), (text, _) = run_processes(body, processes=2).results
    assert "process 1 (simulated) refuses: process_allgather: TypeError: process_allgather: not an array of" in first
    assert text.startswith("process_allgather: not an array of numbers: leaf (the root) of dtype <U1, 'a'; expected")
    assert after == [0, 1]


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


@pytest.mark.parametrize("name", CALLS)
def test_an_array_of_one_process_is_an_error_in_all_of_them(name):
    """Process 1 cannot read it, and the other one learns that at once."""

    def body():
        first = ad.SingleDeviceSharding(ad.devices()[0])
        x = ad.make_array_from_callback((2,), first, np.ones(2).__getitem__, np.float64)
        with pytest.raises(RuntimeError) as caught:
            getattr(multihost_utils, name)(x)
        mesh = ad.Mesh(np.array(ad.devices()), ("a",))
        assert multihost_utils.global_array_to_host_local_array(x, mesh, ad.P()) is x
        return str(caught.value)

    first, second = run_processes(body, processes=2).results
    assert f"process 1 (simulated) refuses: {name}: RuntimeError: " in first
    assert "spans devices that are not addressable" in second
