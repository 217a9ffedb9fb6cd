# SPDX-License-Identifier: Apache-2.0
"""DeviceList: a sequence of the devices of one client."""

from __future__ import annotations

import copy
import pickle

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.xla_client import DeviceList, make_cpu_client


@pytest.fixture
def listed(devices):
    """The base world's devices 1, 3, 5, 7."""
    return DeviceList(tuple(devices[1::2]))


@pytest.mark.parametrize("index", [4, -5, 2**70, -(2**70)])
def test_an_index_out_of_range(listed, index) -> None:
    with pytest.raises(IndexError, match=rf"index {index} is out of range; expected -4 to 3"):
        listed[index]


@pytest.mark.parametrize("index", ["a", 1.0, None, (0, 1)])
def test_an_index_of_another_type(listed, index) -> None:
    with pytest.raises(TypeError, match=rf"index is of type {type(index).__name__}"):
        listed[index]


def test_takes_lists_and_device_lists_by_name_too(devices, listed) -> None:
    assert (
        DeviceList(devices[1::2]) == listed == DeviceList(device_assignment=tuple(devices[1::2])) == DeviceList(listed)
    )


def test_copies_and_pickles(listed) -> None:
    assert copy.copy(listed) is listed
    assert copy.deepcopy(listed) is listed
    assert pickle.loads(pickle.dumps(listed)) == listed
    with ad.simulate(6), pytest.raises(ValueError, match=r"cpu:7 is not here.*simulate\(8\)"):
        pickle.loads(pickle.dumps(listed))
    with ad.simulate(8) as world:
        assert pickle.loads(pickle.dumps(listed))[0] is world.devices()[1]


@pytest.mark.parametrize(
    ("make", "error", "texts"),
    [
        (lambda d: (), ValueError, ("empty", "at least one")),
        (lambda d: (d[0], d[1], d[0]), ValueError, ("more than once", "cpu:0")),
        (lambda d: (d[0], make_cpu_client(num_devices=1).devices()[0]), ValueError, ("different clients",)),
        (lambda d: (1, d[0], None), TypeError, ("[0] is 1 of type int", "[2] is None of type NoneType")),
        (lambda d: tuple(range(20)), TypeError, ("[7] is 7", "and 12 more")),
        (lambda d: 1, TypeError, ("type int", "tuple or list")),
        (lambda d: iter(d), TypeError, ("list_iterator",)),
        (lambda d: "cpu:0", TypeError, ("type str",)),
        (lambda d: d[0], TypeError, ("type", "Device")),
    ],
)
def test_refuses(devices, make, error, texts) -> None:
    with pytest.raises(error) as caught:
        DeviceList(make(devices))
    for text in ("DeviceList", *texts):
        assert text in str(caught.value)


def test_shardings_and_meshes_tell_theirs(devices, grid, named) -> None:
    everything = DeviceList(devices)
    assert grid._internal_device_list == everything
    assert grid._flat_devices_tuple == tuple(devices)
    assert named("x")._internal_device_list == everything
    assert ad.SingleDeviceSharding(devices[3])._internal_device_list == DeviceList((devices[3],))
    with pytest.raises(ValueError, match="AbstractMesh"):
        ad.NamedSharding(grid.abstract_mesh, ad.P("x"))._internal_device_list  # noqa: B018
    with pytest.raises(ValueError, match="empty mesh"):
        ad.Mesh(np.empty(0, object), ("x",))._internal_device_list  # noqa: B018
