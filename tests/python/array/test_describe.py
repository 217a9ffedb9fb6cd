# SPDX-License-Identifier: Apache-2.0
"""Array.describe: where the bytes are and with whom they are shared."""

import artifex_devices as ad
import numpy as np
import pytest


def facts(array):
    """The lines of the description by name."""
    title, *lines = array.describe().split("\n")
    return {"title": title, **{line.split()[0]: line[12:].strip() for line in lines}}


def test_the_text_of_a_sharded_array(named):
    array = ad.device_put(np.zeros((16, 4), np.float32), named("x", "y"))
    assert array.describe().split("\n") == [
        "Array float32(16, 4), 256 bytes",
        "  spec      P('x', 'y')",
        "  mesh      'x': 2, 'y': 4",
        "  devices   8, cpu:0 to cpu:7",
        "  shards    8 of (8, 1)",
        "  memory    256 bytes logical, 32 bytes per device; 256 bytes physical in 8 buffers",
        "  aliasing  buffers in one slab, 64 bytes apart",
        "  state     committed, ready",
    ]


def test_one_device():
    text = facts(ad.device_put(np.zeros(3), ad.devices()[2]))
    assert text["devices"] == "cpu:2"
    assert text["memory"] == "24 bytes"
    assert text["aliasing"] == "none"
    assert text["state"] == "committed, ready"
    assert facts(ad.device_put(np.zeros(3)))["state"] == "uncommitted, ready"


def test_replicas_cost_logical_bytes_and_share_physical_ones():
    with ad.simulate("1 nodes x 4"):
        mesh = ad.make_mesh((2, 2), ("a", "b"))
        text = facts(ad.device_put(np.zeros((4, 2), np.float32), ad.NamedSharding(mesh, ad.P("a"))))
    assert text["memory"] == "64 bytes logical, 16 bytes per device; 32 bytes physical in 2 buffers"
    assert text["aliasing"].startswith("replicas share: 4 devices, 2 buffers")


def test_uneven_shards_have_a_range_of_bytes(line):
    array = ad.device_put(np.zeros(10, np.float32), ad.NamedSharding(line, ad.P("x"), uneven="last-short"))
    text = facts(array)
    assert text["shards"] == "8 of (2,) or less"
    assert text["memory"].startswith("40 bytes logical, 0 bytes to 8 bytes per device; 40 bytes physical")
    assert text["spec"] == "P('x',), uneven last-short"


def test_aliased_host_memory_is_described():
    host = np.zeros(64)
    array = ad.device_put(host, may_alias=True)
    assert facts(array)["aliasing"] == (
        "memory of a host ndarray (may_alias): views of it that were created earlier can still write"
    )
    assert facts(ad.device_put(host))["aliasing"] == "none"


def test_views_and_shards_are_described(named):
    array = ad.device_put(np.zeros(64), ad.devices()[0])
    view = np.asarray(array)
    assert facts(array)["aliasing"] == "1 other handle on the memory (views, Arrays or transfers)"
    other = np.asarray(array)
    assert facts(array)["aliasing"] == "2 other handles on the memory (views, Arrays or transfers)"
    del view, other
    assert facts(array)["aliasing"] == "none"
    whole = ad.device_put(np.zeros((16, 4)), named("x", "y"))
    shard = whole.addressable_shards[3].data
    assert facts(shard)["aliasing"] == "memory of the Array that this shard was taken from"
    assert facts(shard)["memory"] == "64 bytes"


def test_describing_shares_nothing_and_reads_nothing(named):
    array = ad.device_put(np.zeros((16, 4)), named("x", "y"))
    first = array.describe()
    assert array.describe() == first


def test_big_shards_have_blocks_of_their_own(line):
    text = facts(ad.device_put(np.zeros((8, 1 << 16)), ad.NamedSharding(line, ad.P("x"))))
    assert text["memory"] == "4.0 MiB logical, 512.0 KiB per device; 4.0 MiB physical in 8 buffers"
    assert text["aliasing"] == "none"


def test_a_deleted_array_is_described(named):
    array = ad.device_put(np.zeros((16, 4)), named("x", "y"))
    array.delete()
    text = facts(array)
    assert text["state"] == "committed, deleted"
    assert text["spec"] == "P('x', 'y')"
    assert "memory" not in text
    assert "aliasing" not in text


@pytest.mark.parametrize("shape", [(), (0,), (0, 4)], ids=str)
def test_arrays_without_elements_or_dimensions(named, shape):
    text = facts(ad.device_put(np.zeros(shape), named()))
    assert text["state"] == "committed, ready"
    assert text["shards"] == f"8 of {shape}"


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([3, 2], "2, cpu:2 to cpu:3"),
        ([0, 2], "2, cpu:0, cpu:2"),
        ([5, 1, 3], "3, cpu:1, cpu:3, cpu:5"),
        (range(0, 16, 2), "8, cpu:0, cpu:2, cpu:4, cpu:6, cpu:8, cpu:10, cpu:12, cpu:14"),
        (range(0, 18, 2), "9, cpu:0, cpu:2, cpu:4, cpu:6, cpu:8, cpu:10, cpu:12, cpu:14, ..."),
    ],
)
def test_consecutive_devices_are_a_range_and_others_are_listed(ids, text):
    with ad.simulate(18):
        mesh = ad.Mesh(np.array([ad.devices()[i] for i in ids]), ("x",))
        array = ad.device_put(np.zeros(len(ids)), ad.NamedSharding(mesh, ad.P("x")))
        assert facts(array)["devices"] == text


def test_memory_kinds_are_described(named):
    array = ad.device_put(np.zeros((16, 4)), named("x", memory_kind="pinned_host"))
    assert facts(array)["spec"] == "P('x',), memory kind pinned_host"
