# SPDX-License-Identifier: Apache-2.0
"""The default device: where data without a place goes, in contexts, threads and worlds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import artifex_devices as ad
import numpy as np
import pytest
from many_threads import INHERITS_CONTEXT


@pytest.fixture
def option():
    """Sets jax_default_device for the test."""
    yield lambda value: ad.config.update("jax_default_device", value)
    ad.config.update("jax_default_device", None)


def where(value=1.0):
    """Id of the device that uncommitted data goes to."""
    placed = ad.device_put(value)
    assert placed.committed is False
    (device,) = placed.devices()
    return device.id


def test_uncommitted_data_goes_there(devices):
    with ad.default_device(devices[3]):
        assert where() == where(np.ones(4)) == 3
        placed = ad.device_put({"a": np.ones(2), "b": [1, None]}, {"a": None, "b": None})
        assert placed["a"].devices() == placed["b"][0].devices() == {devices[3]}
        assert ad.config.jax_default_device == devices[3]
    assert where() == 0
    assert ad.config.jax_default_device is None


def test_what_has_a_place_keeps_it(devices, line):
    x = ad.device_put(np.ones(8), ad.NamedSharding(line, ad.P("x")))
    y = ad.device_put(np.ones(8))
    with ad.default_device(devices[3]):
        assert ad.device_put(x) is x
        assert ad.device_put(y) is y
        assert ad.device_put(np.ones(8), devices[1]).devices() == {devices[1]}
        assert ad.devices() == devices
        assert list(ad.make_mesh((8,), ("x",)).devices.flat) == devices


def test_it_decorates(devices):
    @ad.default_device(devices[4])
    def place(value):
        return where(value)

    assert [place(1.0), where(), place(2)] == [4, 0, 4]


def test_a_new_thread_has_the_processs_default(devices, option):
    found = []
    with ad.default_device(devices[3]):
        for value in (None, devices[6]):
            option(value)
            thread = threading.Thread(target=lambda: found.append(where()))
            thread.start()
            thread.join()
    assert found == ([3, 3] if INHERITS_CONTEXT else [0, 6])


def test_one_scope_object_in_a_recursion(devices):
    scope = ad.default_device(devices[1])
    with scope:
        with ad.default_device(devices[2]), scope:
            assert where() == 1
        assert where() == 1
    assert where() == 0


def test_it_acts_in_its_own_world(devices, option):
    option(devices[3])
    with ad.simulate(2):
        assert where() == 0
        assert ad.device_put(1.0).device == ad.devices()[0]
        with ad.default_device(ad.devices()[1]):
            assert where() == 1
            with ad.simulate(4):
                assert where() == 0
        with pytest.raises(ValueError, match=r"CpuDevice\(id=3\) belongs to another world"):
            ad.default_device(devices[3]).__enter__()
    assert where() == 3


def test_a_platform_that_is_not_there(option):
    with ad.default_device("gpu"), pytest.raises(RuntimeError, match="platform gpu, which is not available"):
        ad.device_put(1.0)
    option("tpu")
    with pytest.raises(RuntimeError, match="platform tpu"):
        ad.device_put({"a": 1.0})
    option("cpu")
    assert where() == 0


@pytest.mark.parametrize("value", ["cpu:1", "", "cuda", 1, True, np.float32, [None]])
def test_what_is_not_a_device(value, option):
    with pytest.raises(ValueError, match=r"default_device: the device is .*expected a Device, a platform"):
        ad.default_device(value)
    with pytest.raises(ValueError, match=r"config\.update: the device is "):
        option(value)
    assert where() == 0


def test_device_placement_uses_the_default_device(devices, option):
    assert ad.DevicePlacement().default_device == devices[0]
    with ad.default_device(devices[3]):
        placement = ad.DevicePlacement()
        assert placement.default_device == devices[3]
        assert placement.place_on_device(np.ones(2)).devices() == {devices[3]}
        placed = ad.place_on_device({"x": np.ones(2)})["x"]
        assert (placed.devices(), placed.committed) == ({devices[3]}, True)
        assert ad.place_on_device(np.ones(2), devices[1]).devices() == {devices[1]}
        assert ad.DevicePlacement(devices[2]).default_device == devices[2]
    option(devices[5])
    assert ad.DevicePlacement().default_device == devices[5]
    assert ad.place_on_device(np.ones(2)).devices() == {devices[5]}


def test_batch_sizes_are_those_of_the_default_device():
    with ad.simulate({"cpu": 2, "gpu": "2 x h100"}):
        assert ad.get_batch_size_recommendation().critical_batch_size == 298
        with ad.default_device(ad.devices("cpu")[0]):
            assert ad.get_batch_size_recommendation().critical_batch_size == 16
            assert ad.DevicePlacement().hardware_type is ad.HardwareType.CPU


ABSENT_PLATFORM = """
import numpy as np
import artifex_devices as ad

ad.config.update("jax_platform_name", "tpu")
{choose}
x = ad.device_put(np.ones(2))
print(x.device, x.committed, ad.place_on_device(np.ones(2)).device, ad.DevicePlacement().default_device)
try:
    ad.devices()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "choose",
    [
        "ad.config.update('jax_default_device', ad.devices('cpu')[1])",
        "ad.config.update('jax_default_device', 'cpu')",
        "ad.default_device(ad.devices('cpu')[1]).__enter__()",
    ],
)
def test_the_default_device_is_used_where_the_named_platform_is_absent(choose):
    program = ABSENT_PLATFORM.format(choose=choose)
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    name = "cpu:1" if "[1]" in choose else "cpu:0"
    placed, error = done.stdout.splitlines()
    assert placed == f"{name} False {name} {name}"
    assert error.startswith(
        'devices: config.update("jax_platform_name") requests platform "tpu", which is not available'
    )
