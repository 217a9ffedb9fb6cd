# SPDX-License-Identifier: Apache-2.0
"""Values between processes by multihost_utils."""

import re

import numpy as np
import pytest


def gather_values(tiled):
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    me = ad.process_index()
    tree = {
        "row": np.arange(3, dtype=np.int16) + 10 * me,
        "number": me + 0.5,
        "empty": np.zeros((0, 2), np.float32),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3) * (me + 1)),
        "here": ad.device_put(np.full((2, 2), me, np.float32), ad.local_devices()[0]),
        "none": None,
    }
    return multihost_utils.process_allgather(tree, tiled=tiled)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_process_allgather_stacks_or_joins_what_all_have(processes, count, tiled):
    join = np.concatenate if tiled else np.stack
    expected = {
        "row": join([np.arange(3, dtype=np.int16) + 10 * me for me in range(count)]),
        "number": np.array([me + 0.5 for me in range(count)]),
        "empty": join([np.zeros((0, 2), np.float32)] * count),
        "fortran": join([np.arange(6).reshape(2, 3) * (me + 1) for me in range(count)]),
        "here": join([np.full((2, 2), me, np.float32) for me in range(count)]),
    }
    for found in processes(count, gather_values, tiled).values:
        assert found.pop("none") is None
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert (found[key].dtype, found[key].shape) == (value.dtype, value.shape)
            assert found[key].tobytes() == value.tobytes()


def gather_a_global_array():
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    value = np.arange(8 * ad.device_count(), dtype=np.float32).reshape(-1, 4)
    x = ad.device_put(value, ad.NamedSharding(mesh, ad.P("x")))
    try:
        multihost_utils.process_allgather(x)
        message = ""
    except ValueError as error:
        message = str(error)
    return message, (multihost_utils.process_allgather(x, tiled=True) == value).all()


def test_an_array_that_spans_processes_is_gathered_whole(processes):
    for message, equal in processes(2, gather_a_global_array).values:
        assert message.startswith("process_allgather: an Array that spans devices of other processes is to be stacked")
        assert equal


def gather_unlike_values():
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    me = ad.process_index()
    try:
        multihost_utils.process_allgather({"a": np.zeros(2 + me)})
    except ValueError as error:
        return str(error), multihost_utils.process_allgather(me).tolist()


def test_different_values_are_an_error_in_all_processes_and_the_job_goes_on(processes):
    first, second = processes(2, gather_unlike_values).values
    assert first == second
    assert "got process 0: float64[2] in " in first[0]
    assert "; process 1: float64[3] in " in first[0]
    assert first[1] == [0, 1]


def broadcast(source):
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    me = ad.process_index()
    tree = ([np.full((2, 3), me), np.float32(me)], np.array(me == source))
    if source is None:
        return multihost_utils.broadcast_one_to_all(tree)
    return multihost_utils.broadcast_one_to_all(tree, is_source=me == source)


@pytest.mark.parametrize("source", [None, 0, 2])
def test_broadcast_one_to_all_sends_the_values_of_the_source_to_all(processes, source):
    number = source or 0
    for (matrix, scalar), flag in processes(3, broadcast, source).values:
        assert matrix.tolist() == [[number] * 3] * 2
        assert (scalar.dtype, scalar.shape, float(scalar)) == (np.float32, (), float(number))
        assert flag.dtype == bool
        assert bool(flag) == (source is not None)


def two_sources():
    from artifex_devices import multihost_utils

    try:
        multihost_utils.broadcast_one_to_all(1, is_source=True)
    except ValueError as error:
        return str(error)


def test_two_sources_are_an_error(processes):
    for text in processes(2, two_sources).values:
        assert "2 processes are the source; expected one, got processes [0, 1]" in text


def sync(names):
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    multihost_utils.sync_global_devices("the same")
    try:
        multihost_utils.sync_global_devices(names[ad.process_index()])
    except AssertionError as error:
        multihost_utils.sync_global_devices("and on")
        return str(error)


def test_sync_global_devices_compares_the_names(processes):
    assert processes(2, sync, ["a", "a"]).values == [None, None]
    for number, text in enumerate(processes(2, sync, ["before", "after"]).values):
        name = ["before", "after"][number]
        assert text.startswith(f"sync_global_devices name mismatch ({name!r}): expected one name in all processes")
        assert text.endswith("got process 0: before; process 1: after")


def compare(values):
    import artifex_devices as ad
    from artifex_devices import multihost_utils

    try:
        multihost_utils.assert_equal({"step": values[ad.process_index()]}, "the step differs")
    except AssertionError as error:
        return str(error)


def test_assert_equal_raises_in_all_processes_unless_values_are_equal(processes):
    assert processes(3, compare, [7, 7, 7]).values == [None] * 3
    for number, text in enumerate(processes(3, compare, [7, 7, 8]).values):
        mine = [7, 7, 8][number]
        assert re.fullmatch(
            rf"the step differs\. Expected: {{'step': array\(\[7, 7, 8\]\)}}; got: {{'step': {mine}}}\.", text
        )
    for text in processes(2, compare, [[1, 2], [1, 2, 3]]).values:
        assert text.startswith("the step differs. assert_equal: the values of the processes differ")


def convert_local_and_global():
    import artifex_devices as ad
    from artifex_devices import P, multihost_utils

    me, count = ad.process_index(), ad.process_count()
    mesh = ad.Mesh(np.array(ad.devices()).reshape(count, -1), ("host", "device"))
    mine = np.arange(4 * ad.local_device_count(), dtype=np.float32).reshape(-1, 2) + 100 * me
    tree = {"rows": mine, "by host": mine, "same": np.arange(3)}
    specs = {"rows": P(("host", "device")), "by host": P("host"), "same": P()}
    whole = multihost_utils.host_local_array_to_global_array(tree, mesh, specs)
    again = multihost_utils.host_local_array_to_global_array(whole, mesh, specs)
    back = multihost_utils.global_array_to_host_local_array(whole, mesh, specs)
    recut = multihost_utils.global_array_to_host_local_array(whole["rows"], mesh, P("host", "device"))
    return {
        "shapes": {key: x.shape for key, x in whole.items()},
        "values": {key: multihost_utils.process_allgather(x, tiled=True) for key, x in whole.items()},
        "unchanged": [again[key] is x for key, x in whole.items()],
        "local": all(x.is_fully_addressable and x.sharding.mesh == mesh.local_mesh for x in back.values()),
        "same": all((np.asarray(back[key]) == tree[key]).all() for key in tree),
        "recut": (recut.sharding.spec == P("host", "device"), (np.asarray(recut) == mine).all()),
    }


@pytest.mark.parametrize("count", [2, 3])
def test_arrays_of_processes_become_global_and_back(processes, count):
    for found in processes(count, convert_local_and_global).values:
        rows = found["values"]["rows"]
        each = rows.shape[0] // count
        assert found["shapes"] == {"rows": (each * count, 2), "by host": (each * count, 2), "same": (3,)}
        expected = [np.arange(2 * each, dtype=np.float32).reshape(-1, 2) + 100 * me for me in range(count)]
        assert rows.tobytes() == found["values"]["by host"].tobytes() == np.concatenate(expected).tobytes()
        assert found["values"]["same"].tolist() == [0, 1, 2]
        assert found["unchanged"] == [True] * 3
        assert found["local"]
        assert found["same"]
        assert found["recut"] == (True, True)
