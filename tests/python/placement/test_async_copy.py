# SPDX-License-Identifier: Apache-2.0
"""copy_to_host_async: values, waiting, timeouts, errors, deletion meanwhile."""

import gc
import threading

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.testing import assert_same_bits, shardable_arrays
from hypothesis import given

BIG = np.arange(4 << 20, dtype=np.float32).reshape(2048, 2048)  # 16 MiB: gathered by workers


@pytest.fixture
def columns(devices):
    """A sharding whose tiles have to be gathered."""
    return ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), ad.P(None, "x"))


@given(shardable_arrays())
def test_what_was_put_comes_back(placement):
    coming = ad.copy_to_host_async(ad.device_put(placement.value, placement.sharding))
    assert_same_bits(coming.result(), placement.value)
    assert coming.done()
    assert coming.exception() is None


def test_a_big_array_is_gathered_once(columns, settled, nothing_left):
    array = ad.device_put(BIG, columns)
    with ad.transfers.record() as report:
        coming = array.copy_to_host_async()
        again = ad.copy_to_host_async(array)
        value = np.asarray(array)  # waits for the one that is under way
    assert_same_bits(value, BIG)
    assert np.shares_memory(coming.result(), value)
    assert np.shares_memory(again.result(), value)
    assert report.bytes("device-to-host") == BIG.nbytes
    assert not value.flags.writeable


def test_deleting_the_array_does_not_disturb_it(columns):
    array = ad.device_put(BIG, columns)
    coming = ad.copy_to_host_async(array)
    array.delete()
    assert_same_bits(coming.result(), BIG)
    with pytest.raises(RuntimeError, match="was deleted"):
        ad.copy_to_host_async(array)
    with pytest.raises(RuntimeError, match="was deleted"):
        np.asarray(array)


def test_dropping_it_halfway_is_safe(columns):
    for _ in range(5):
        array = ad.device_put(BIG, columns)
        ad.copy_to_host_async(array)
        del array
        gc.collect()
    assert_same_bits(ad.copy_to_host_async(ad.device_put(BIG, columns)).result(), BIG)


def test_after_a_reshard_that_is_under_way(columns, named):
    moved = ad.device_put(ad.device_put(BIG, named("x")), columns)
    assert_same_bits(ad.copy_to_host_async(moved).result(30), BIG)


def test_trees(columns, named):
    tree = {"a": ad.device_put(BIG, columns), "b": [3, "text", None], "c": ad.device_put(BIG[:8, :8], named("x"))}
    coming = ad.copy_to_host_async(tree)
    result = coming.result()
    assert coming.result() is result
    assert_same_bits(result["a"], BIG)
    assert result["b"] == [3, "text", None]
    assert_same_bits(result["c"], BIG[:8, :8])
    assert repr(coming) == "<HostCopy of 4 leaves, done>"
    assert ad.copy_to_host_async([]).result() == []
    assert ad.copy_to_host_async(None).result() is None
    with pytest.raises(TypeError, match="tree of 4 leaves"):
        np.asarray(coming)


def test_as_an_array(columns):
    array = ad.device_put(BIG, columns)
    coming = ad.copy_to_host_async(array)
    assert_same_bits(np.asarray(coming), BIG)
    assert np.asarray(coming, dtype=np.float64).dtype == np.float64
    assert np.array(coming, copy=True).flags.writeable
    with pytest.raises(ValueError, match="copy=False"):
        coming.__array__(dtype=np.float64, copy=False)


class Never:
    """Stands for a leaf that does not arrive."""

    def __init__(self):
        self.waits = []

    def done(self):
        return False

    def wait(self, seconds):
        self.waits.append(seconds)
        return False


def test_a_timeout_is_a_timeout_error(monkeypatch):
    from artifex_devices._placement import async_copy as host_copy

    monkeypatch.setattr(host_copy, "HostLeaf", Never)
    leaf = Never()
    coming = host_copy.HostCopy([leaf], None)
    assert not coming.done()
    with pytest.raises(TimeoutError, match=r"not done after 0\.5 s"):
        coming.result(timeout=0.5)
    with pytest.raises(TimeoutError, match="exception"):
        coming.exception(0)
    assert 0 < leaf.waits[0] <= 0.5
    assert leaf.waits[1] == 0
    assert repr(coming) == "<HostCopy of 1 leaf, under way>"


def test_many_threads_share_one_gather(columns):
    array = ad.device_put(BIG, columns)
    results = []
    threads = [threading.Thread(target=lambda: results.append(ad.copy_to_host_async(array).result())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 6
    for result in results:
        assert_same_bits(result, BIG)


@pytest.mark.parametrize("timeout", ["1", float("nan"), [1]])
def test_a_timeout_is_seconds(timeout):
    coming = ad.copy_to_host_async(ad.device_put(np.arange(3)))
    with pytest.raises(TypeError, match="result: timeout is "):
        coming.result(timeout=timeout)
    assert coming.result(timeout=1e300).tolist() == [0, 1, 2]
