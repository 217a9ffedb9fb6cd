# SPDX-License-Identifier: Apache-2.0
"""Which devices, hosts and processes there are, and what a Device says of itself."""

import artifex_devices as ad
import numpy as np
import pytest

BY_BACKEND = [
    ad.devices,
    ad.device_count,
    ad.local_device_count,
    ad.host_count,
    ad.host_id,
    ad.host_ids,
    ad.process_count,
    ad.process_index,
    ad.process_indices,
    lambda backend: ad.local_devices(backend=backend),
    ad.live_arrays,
]


@pytest.mark.parametrize("backend", [None, "cpu"])
def test_what_there_is(backend):
    assert [device.id for device in ad.devices(backend)] == list(range(8))
    assert ad.local_devices(backend=backend) == ad.devices()
    assert ad.local_devices(0, backend) == ad.devices()
    assert ad.device_count(backend) == ad.local_device_count(backend) == 8
    assert (ad.host_count(backend), ad.host_id(backend), ad.host_ids(backend)) == (1, 0, [0])
    assert (ad.process_count(backend), ad.process_index(backend), ad.process_indices(backend)) == (1, 0, [0])
    assert ad.default_backend() == "cpu"


@pytest.mark.parametrize("call", BY_BACKEND, ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    ("backend", "why"),
    [
        ("gpu", "CUDA is not usable: /no/libcuda.so.1 cannot be loaded"),
        ("tpu", "no tpu backend is built into this package"),
        ("cuda", "CUDA is not usable: /no/libcuda.so.1 cannot be loaded"),
        ("Cpu", "lower case"),
        ("quantum", "no backend has this name"),
        ("", "no backend has this name"),
    ],
)
def test_an_absent_backend_says_what_there_is_and_why_not_this(call, backend, why, monkeypatch):
    monkeypatch.setenv("ARTIFEX_CUDA_LIBRARY", "/no/libcuda.so.1")
    with pytest.raises(RuntimeError) as raised:
        call(backend)
    text = str(raised.value)
    assert repr(backend) in text
    assert why in text
    assert "cpu (8 devices)" in text


@pytest.mark.parametrize("call", BY_BACKEND, ids=lambda call: call.__name__)
def test_a_backend_that_is_not_text_is_a_type_error(call):
    with pytest.raises(TypeError, match=r"backend is 3 .int."):
        call(3)


def test_a_client_stands_for_its_own_world(devices):
    with ad.simulate(3) as client:
        inner = ad.devices()
    assert ad.devices(client) == inner
    assert ad.device_count(client) == 3
    assert ad.devices() == devices


@pytest.mark.parametrize("index", [1, -1, 2**80])
def test_another_process_is_a_value_error(index):
    with pytest.raises(ValueError, match="expected 0, the only one"):
        ad.local_devices(index)


@pytest.mark.parametrize("index", ["0", 0.0])
def test_a_process_that_is_not_an_integer_is_a_type_error(index):
    with pytest.raises(TypeError):
        ad.local_devices(index)


def test_lists_belong_to_the_caller():
    ad.devices().clear()
    ad.process_indices().append(3)
    assert len(ad.devices()) == 8
    assert ad.process_indices() == [0]


def test_a_device_describes_itself(devices):
    device = devices[3]
    assert (device.platform, device.device_kind, device.id) == ("cpu", "cpu", 3)
    assert (device.process_index, device.host_id) == (0, 0)
    assert (str(device), repr(device)) == ("cpu:3", "CpuDevice(id=3)")
    assert device() is device


def test_the_device_of_an_array_both_ways(devices, named):
    array = ad.device_put(1, devices[2])
    assert array.device == array.device() == devices[2]
    assert array.devices() == {devices[2]}
    assert ad.device_put(np.zeros((8, 8)), named("x")).devices() == set(devices)


def test_a_backend_as_process_index_is_a_type_error():
    with pytest.raises(TypeError, match=r"local_devices: process_index is 'cpu' .str.; .*backend='cpu'"):
        ad.local_devices("cpu")
