# SPDX-License-Identifier: Apache-2.0
"""What a manager reports and refuses, word for word."""

from __future__ import annotations

import os
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.device_manager import process_settings
from artifex_devices.device_manager.process_settings import Settings, merged_flags
from artifex_devices.device_manager.unapplied_settings import settings_without_effect

HINT = "expected at least one row for each of the 4 devices, got"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (
            np.zeros((3, 2)),
            ValueError,
            f"3 rows leave nothing for some of the devices; {HINT} data has shape (3, 2); "
            "write target_devices=devices()[:3]",
        ),
        (
            {"a": np.zeros((0, 2))},
            ValueError,
            f"0 rows leave nothing for some of the devices; {HINT} data['a'] has shape (0, 2); pass data that has rows",
        ),
        (
            [np.zeros(4), np.zeros(5)],
            ValueError,
            f"the arrays have different numbers of rows; {HINT} data[0] has shape (4,), data[1] has shape (5,); "
            "pass arrays with one number of rows",
        ),
        (
            [np.zeros(4), 1.0],
            ValueError,
            f"an array without dimensions has no rows; {HINT} data[0] has shape (4,), data[1] has shape (); "
            "put it on the devices by device_put, or remove it",
        ),
        (
            [np.zeros(4), np.array(["a"] * 4)],
            TypeError,
            "expected arrays of numbers, got data[1] (<U1); remove all other leaves",
        ),
    ],
)
def test_data_that_cannot_be_distributed_is_named_with_its_shapes(data, error, message):
    with ad.simulate(4), pytest.raises(error) as caught:
        ad.JAXDeviceManager().distribute_data(data)
    assert str(caught.value) == f"JAXDeviceManager.distribute_data: {message}"


def test_an_empty_list_of_devices_is_refused():
    with ad.simulate(2):
        manager = ad.JAXDeviceManager()
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
            manager.distribute_data(np.zeros(4), manager.gpu_devices)
    assert str(caught.value) == (
        "JAXDeviceManager.distribute_data: target_devices is empty: this machine has no GPU; expected at least one "
        "Device; omit it for the devices of the default platform"
    )
    with ad.simulate(2, platform="gpu"), pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        ad.JAXDeviceManager().distribute_data(np.zeros(4), [])
    assert "target_devices is empty; expected at least one Device" in str(caught.value)


def test_as_many_rows_as_devices_are_one_row_each():
    with ad.simulate(4):
        parts = ad.JAXDeviceManager().distribute_data({"a": np.arange(4), "b": []} | {"b": np.arange(8).reshape(4, 2)})
        assert [part["a"].tolist() for part in parts] == [[0], [1], [2], [3]]
        assert [part["b"].tolist() for part in parts] == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]
        assert [part["a"].device.id for part in parts] == [0, 1, 2, 3]
        parts = ad.JAXDeviceManager().distribute_data(list(range(0)))
        assert parts == [[], [], [], []]


def test_the_default_platform_is_the_first_available_one():
    def platform_of(*names):
        manager = ad.JAXDeviceManager(ad.DeviceConfiguration(platform_priority=list(names)))
        return manager.default_platform, str(manager.get_default_device())

    with ad.simulate(2):
        assert platform_of("cuda", "cpu") == platform_of("tpu") == platform_of("cpu", "cuda") == ("cpu", "cpu:0")
    with ad.simulate(2, platform="gpu"):
        assert platform_of("cuda", "cpu") == platform_of("rocm") == platform_of("tpu", "gpu") == ("gpu", "gpu:0")
        assert platform_of("cpu", "cuda")[0] == "cpu"
        assert len(ad.JAXDeviceManager().gpu_devices) == 2


@pytest.mark.parametrize(
    ("current", "added", "merged"),
    [
        (None, "--a=1", ("--a=1", [])),
        ("  ", "--a=1", ("--a=1", [])),
        ("flags.txt", "--a=1", ("--a=1", ["flags.txt"])),
        ("flags.txt", "flags.txt", ("flags.txt", [])),
        ("--a=1 --b=2", "--a=1", ("--a=1 --b=2", [])),
        ("--a=1 --b=2", "--c=3", ("--a=1 --b=2 --c=3", [])),
        ("--a=1 --b=2", "--a=3", ("--b=2 --a=3", ["--a=1"])),
        ("--a=1 --a=2", "--a=2", ("--a=2", ["--a=1"])),
        ("--a='x y", "--b=1", ("--a='x y' --b=1", [])),
    ],
)
def test_flags_are_merged_by_name(current, added, merged):
    assert merged_flags(current, added) == merged


class Owner:
    pass


def test_values_of_owners_end_with_them_and_those_of_others_stay():
    state = {"a": 0, "b": 0}
    settings = Settings(state.get, state.__setitem__, lambda key, user, values: user + sum(values))
    one, two = Owner(), Owner()
    assert settings.set(one, {"a": 1, "b": 10}) == {"a": 0, "b": 0}
    assert settings.set(two, {"a": 2}) == {"a": 0}
    assert state == {"a": 3, "b": 10}
    settings.release(one)
    assert state == {"a": 2, "b": 0}
    settings.release(one)
    state["a"] = 7  # by other code
    settings.release(two)
    assert state == {"a": 7, "b": 0}
    settings.set(one, {"a": 1})
    state["a"] = 100
    assert settings.set(two, {"a": 1}) == {"a": 100}
    assert state["a"] == 101
    settings.release(two)
    assert state["a"] == 100


def reasons(manager):
    return dict(settings_without_effect(manager._state()))


def test_settings_without_effect_have_reasons():
    with ad.simulate(6), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = ad.DeviceManager()
        assert reasons(plain)["memory_fraction"] == "recorded: without a configuration nothing is limited"
        assert not plain.acts_by(plain.config)
        config = ad.DeviceConfiguration(
            enable_jit=False, enable_mixed_precision=True, platform_priority=["tpu", "cuda", "cpu"]
        )
        with ad.DeviceManager(config) as manager:
            assert manager.acts_by(config)
            assert manager.acts_by(ad.DeviceConfiguration()) is False
            found = reasons(manager)
            assert found["enable_jit"] == "recorded: jit does not compile here, functions run unchanged"
            mixed = found["enable_mixed_precision"]
            assert mixed.startswith("recorded: programs choose their dtypes; by the detector")
            assert mixed.endswith("16-bit floats are not faster on this hardware")
            assert found["platform_priority"].startswith("no device of tpu, cuda")
            assert found["platform_priority"].endswith("; the default platform is cpu")
            assert "memory_fraction" not in found
            for device in ad.devices():
                device.set_bytes_limit(1 << 20)
            limit = f"has the limit {1 << 20}, set elsewhere"
            listed = "; ".join(f"cpu:{i} {limit}" for i in range(4))
            assert reasons(manager)["memory_fraction"] == f"{listed}; and 2 more"
            for device in ad.devices()[4:]:
                process_settings.LIMITS.write(device, manager._limits[device])
            assert reasons(manager)["memory_fraction"] == listed
            config.enable_jit = True
            assert reasons(manager)["configuration"] == (
                "changed since this manager was created: enable_jit False to True; DeviceManager(config) applies it"
            )
        assert reasons(manager)["manager"] == "closed: its settings were undone"
        assert "memory_fraction" not in reasons(manager)


def test_variables_that_came_late_or_are_read_by_others_are_reported(monkeypatch):
    for name in (
        "JAX_NUM_CPU_DEVICES",
        "JAX_PLATFORMS",
        "JAX_TRANSFER_GUARD",
        "JAX_TRANSFER_GUARD_X",
        "OTHER_VARIABLE",
        "XLA_FLAGS",
    ):
        monkeypatch.delenv(name, raising=False)
    ad.devices()  # of the base world
    late = "set after the first use of a device, which reads them"
    unread = "set for other libraries and child processes, not read by this library"
    for variables, text in [
        ({}, None),
        ({"JAX_PLATFORMS": "cpu"}, f"{late}: JAX_PLATFORMS"),
        (
            {"JAX_NUM_CPU_DEVICES": "3", "JAX_TRANSFER_GUARD": "log"},
            f"{late}: JAX_NUM_CPU_DEVICES, JAX_TRANSFER_GUARD",
        ),
        ({"JAX_TRANSFER_GUARD_X": "allow"}, f"{late}: JAX_TRANSFER_GUARD_X"),
        ({"OTHER_VARIABLE": "1"}, f"{unread}: OTHER_VARIABLE"),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, f"{late}: XLA_FLAGS"),
        ({"XLA_FLAGS": "--spam=1"}, f"{unread}: XLA_FLAGS except for the number of devices"),
        (
            {"OTHER_VARIABLE": "1", "XLA_FLAGS": "--xla_force_host_platform_device_count=3 --spam"},
            f"{late}: XLA_FLAGS; {unread}: OTHER_VARIABLE, XLA_FLAGS except for the number of devices",
        ),
    ]:
        config = ad.DeviceConfiguration(platform_priority=["cpu"], environment_variables=variables)
        with ad.simulate(2), ad.DeviceManager(config) as manager:
            assert {name: os.environ.get(name) for name in variables} == variables
            assert manager.get_device_info()["environment"] == variables
            assert reasons(manager).get("environment_variables") == text
        assert not any(name in os.environ for name in variables)


class Detector:
    def __init__(self, kind, count):
        self.found = ad.DeviceCapabilities(kind, count)

    def detect_capabilities(self):
        return self.found


@pytest.mark.parametrize(
    ("kind", "count", "text"),
    [
        (ad.DeviceType.CPU, 2, None),
        (ad.DeviceType.CPU, 1, "the detector reports 1 cpu; the runtime has 2 devices, 0 of them GPUs"),
        (ad.DeviceType.GPU, 0, None),
        (ad.DeviceType.GPU, 1, "the detector reports 1 gpu; the runtime has 2 devices, 0 of them GPUs"),
        (ad.DeviceType.TPU, 2, "the detector reports 2 tpu; the runtime has 2 devices, 0 of them GPUs"),
    ],
)
def test_a_detector_that_disagrees_with_the_runtime_is_reported(kind, count, text):
    config = ad.DeviceConfiguration(platform_priority=["cpu"])
    with ad.simulate(2), ad.DeviceManager(config, Detector(kind, count)) as manager:
        assert reasons(manager).get("capabilities") == text
