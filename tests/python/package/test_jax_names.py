# SPDX-License-Identifier: Apache-2.0
"""Smaller names that programs for JAX use: debug, dlpack, experimental, multihost_utils, profiler."""

import gzip
import importlib

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, multihost_utils

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def over(*entries):
    return ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), P(*entries))


def test_shardings_are_inspected():
    seen = []
    tree = {"b": ad.device_put(X, over("x")), "a": [ad.device_put(X, ad.devices()[3])]}
    ad.debug.inspect_array_sharding(tree, callback=seen.append)
    assert seen == [ad.SingleDeviceSharding(ad.devices()[3]), over("x")]
    with pytest.raises(TypeError, match=r"(?s)value\['a'\] is .* .ndarray.; expected an Array"):
        ad.debug.inspect_array_sharding({"a": X, "b": tree["b"]}, callback=seen.append)
    with pytest.raises(TypeError, match=r"callback is 3 .int."):
        ad.debug.inspect_array_sharding(X, callback=3)
    assert len(seen) == 2


def test_the_older_module_of_shard_map():
    module = importlib.import_module("artifex_devices.experimental.shard_map")
    assert module.shard_map is ad.shard_map
    assert ad.experimental.shard_map is module
    assert ad.experimental.mesh_utils is ad.mesh_utils


def test_host_local_arrays_become_global_and_back():
    mesh = over().mesh
    made = multihost_utils.host_local_array_to_global_array({"a": X, "b": 3.0}, mesh, {"a": P("x"), "b": P()})
    assert (made["a"].sharding, made["b"].sharding) == (over("x"), over())
    np.testing.assert_array_equal(np.asarray(made["a"]), X)
    back = multihost_utils.global_array_to_host_local_array(made, mesh, P())
    assert back["a"] is made["a"]
    placed = multihost_utils.global_array_to_host_local_array(X, mesh, P("x"))
    assert placed.sharding == over("x")
    for convert in (
        multihost_utils.host_local_array_to_global_array,
        multihost_utils.global_array_to_host_local_array,
    ):
        with pytest.raises(ValueError, match=r"pspecs\['a'\] is None"):
            convert({"a": X}, mesh, {"a": None})
        with pytest.raises(TypeError, match="pspecs is of type str"):
            convert(X, mesh, "x")
        with pytest.raises(TypeError, match="global_mesh is of type int"):
            convert(X, 3, P())
        with pytest.raises(ValueError, match="divi"):
            convert(X[:3], mesh, P("x"))


def test_the_profile_of_memory(tmp_path):
    kept = ad.device_put(X, over("x"))
    profile = gzip.decompress(ad.profiler.device_memory_profile())
    assert profile[:1] == ad.devices()[0].client.heap_profile()[:1]
    assert b"cpu:7" in profile
    ad.profiler.save_device_memory_profile(tmp_path / "memory.prof", backend="cpu")
    assert b"cpu:7" in gzip.decompress((tmp_path / "memory.prof").read_bytes())
    with pytest.raises(RuntimeError, match="device_memory_profile: unknown or absent backend 'gpu'"):
        ad.profiler.device_memory_profile("gpu")
    assert kept.shape == (8, 4)


def test_a_host_copy_of_a_tree_is_used_as_the_tree():
    tree = {"w": ad.device_put(X, over("x")), "b": [3, ad.device_put(X[0])]}
    coming = ad.copy_to_host_async(tree)
    np.testing.assert_array_equal(np.asarray(coming["w"]), X)
    assert coming["b"][0] == 3
    assert sorted(coming) == ["b", "w"]
    read = ad.tree_util.tree_map(np.asarray, coming)
    assert {key: type(value) for key, value in read.items()} == {"w": np.ndarray, "b": list}
    np.testing.assert_array_equal(read["b"][1], X[0])
    np.testing.assert_array_equal(coming.result()["w"], X)
    assert len(ad.tree_util.tree_leaves(coming)) == 3


def test_values_of_device_put_sharded_are_a_sequence():
    for wrong in (3, {1, 2}, "ab", iter([1, 2])):
        with pytest.raises(TypeError, match=r"sharded_values is .*; expected a sequence"):
            ad.device_put_sharded(wrong, ad.devices()[:2])
    assert ad.device_put_sharded(range(8), ad.devices()).tolist() == list(range(8))
