# SPDX-License-Identifier: Apache-2.0
"""Device managers: what they say of the devices, which settings act, and that all of them can be undone."""

from __future__ import annotations

import copy
import gc
import io
import math
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import (
    DeviceCapabilities,
    DeviceConfiguration,
    DeviceManager,
    DeviceType,
    MemoryStrategy,
    device_manager,
)

NO_CUDA = "CUDA requested but no GPU detected. Falling back to CPU."


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


@pytest.fixture
def no_manager() -> Iterator[None]:
    """Before and after the test the process has no open manager."""
    ad.get_device_manager(on_cpu(), force_reinit=True).close()
    yield
    ad.get_device_manager(on_cpu(), force_reinit=True).close()


def on_cpu(strategy: MemoryStrategy = MemoryStrategy.BALANCED, **settings: Any) -> DeviceConfiguration:
    return DeviceConfiguration(strategy, platform_priority=["cpu"], **settings)


class Claims:
    """A detector that reports what the test gives it."""

    def __init__(self, *capabilities: Any, **more: Any) -> None:
        self.capabilities = DeviceCapabilities(*capabilities, **more)

    def detect_capabilities(self) -> DeviceCapabilities:
        return self.capabilities


def limits() -> list[int]:
    """Of each device in thousandths of its memory; 1000 without a limit."""
    return [round(1000 * d.memory_stats()["bytes_limit"] / d.memory_bytes) for d in ad.devices()]


def test_a_list_spoilt_in_place_is_found_by_the_manager() -> None:
    config = on_cpu()
    config.platform_priority.append("nvidia")
    with pytest.raises(ValueError, match="unknown platforms"):
        DeviceManager(config)
    with DeviceManager(on_cpu()) as manager:
        manager.config.platform_priority.append("nvidia")
        assert manager.get_device_info()["configuration"].platform_priority == ["cpu", "nvidia"]


def test_wrong_detectors() -> None:
    class Wordless:
        def detect_capabilities(self) -> None:
            return None

    with pytest.raises(TypeError, match="expected an object with a method detect_capabilities"):
        DeviceManager(on_cpu(), object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give an instance"):
        DeviceManager(on_cpu(), Claims)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned None; expected DeviceCapabilities"):
        DeviceManager(on_cpu(), Wordless())  # type: ignore[arg-type]
    for wrong in (Claims("gpu", 4), Claims(DeviceType.GPU, "4"), Claims(DeviceType.GPU, None)):
        with pytest.raises(TypeError, match="expected a DeviceType as device_type and an integer as device_count, got"):
            DeviceManager(on_cpu(), wrong)
    with pytest.raises(ValueError, match="a device_count of -1; expected 0 or more"):
        DeviceManager(on_cpu(), Claims(DeviceType.GPU, -1))
    with pytest.raises(TypeError, match=r"config is .* \(dict\)"):
        DeviceManager({})  # type: ignore[arg-type]
    assert limits() == [1000] * 8


# Devices


def test_eight_devices_are_eight_and_distributed() -> None:
    with DeviceManager(on_cpu()) as manager:
        assert manager.capabilities == DeviceCapabilities(DeviceType.CPU, 8, supports_distributed=True)
        assert (manager.device_count, manager.gpu_count, manager.has_gpu) == (8, 0, False)
        assert manager.jax_manager.devices == manager.jax_manager.cpu_devices == ad.devices()
        assert manager.jax_manager.gpu_devices == []
        assert manager.jax_manager.get_default_device() == ad.devices()[0]


def test_a_list_handed_out_is_the_callers() -> None:
    with DeviceManager(on_cpu()) as manager:
        for listed in (manager.jax_manager.devices, manager.jax_manager.cpu_devices):
            listed.clear()
        assert manager.device_count == len(manager.jax_manager.cpu_devices) == 8


@pytest.mark.parametrize("priority", [["cuda", "cpu"], ["cuda"], ["cpu", "cuda"]])
def test_missing_cuda_warns_at_every_construction(priority: list[str]) -> None:
    config = DeviceConfiguration(platform_priority=priority)
    for _ in range(2):
        with pytest.warns(UserWarning, match="CUDA requested") as warned:
            DeviceManager(config).close()
        assert [(str(w.message), w.filename) for w in warned] == [(NO_CUDA, __file__)]


def test_no_cuda_asked_for_no_warning() -> None:
    for priority in (["cpu"], ["gpu", "cpu"], ["tpu"]):
        manager = DeviceManager(DeviceConfiguration(platform_priority=priority))
        assert manager.jax_manager.get_default_device() == ad.devices()[0]
        problem = manager.get_device_info()["not_applied"].get("platform_priority")
        manager.close()
        if priority == ["cpu"]:
            assert problem is None
        else:
            assert f"no device of {priority[0]}" in problem
            assert problem.endswith("; the default platform is cpu")


def test_a_warning_that_is_an_error_leaves_nothing_set() -> None:
    config = DeviceConfiguration(environment_variables={"ARTIFEX_TEST": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="CUDA requested"):
            DeviceManager(config)
    assert limits() == [1000] * 8
    assert "ARTIFEX_TEST" not in os.environ


def test_detector_and_runtime_disagree() -> None:
    claims = Claims(DeviceType.GPU, 4, 80000, compute_capability="8.0", supports_distributed=True)
    with pytest.warns(UserWarning, match=r"no GPU can be used: the detector reports 4, .* Falling back to CPU\."):
        manager = DeviceManager(detector=claims)
    info = manager.get_device_info()
    assert info["capabilities"] is claims.capabilities is manager.capabilities
    assert info["gpu_devices"] == []
    assert info["jax_devices"] == info["cpu_devices"] == [f"cpu:{i}" for i in range(8)]
    assert (info["backend"], info["default_device"]) == ("cpu", "cpu:0")
    assert (
        info["not_applied"]["capabilities"] == "the detector reports 4 gpu; the runtime has 8 devices, 0 of them GPUs"
    )
    assert (manager.has_gpu, manager.gpu_count, manager.device_count) == (False, 0, 8)
    device = manager.jax_manager.gpu_devices[0] if manager.has_gpu else manager.jax_manager.cpu_devices[0]
    assert device == ad.devices()[0]


# Distribution


@pytest.mark.parametrize(("rows", "sizes"), [(18, [3, 3, 2, 2, 2, 2, 2, 2]), (16, [2] * 8), (8, [1] * 8)])
def test_parts_differ_by_one_row_at_most(rows: int, sizes: list[int]) -> None:
    data = np.arange(rows * 3.0).reshape(rows, 3)
    parts = ad.JAXDeviceManager().distribute_data(data)
    assert [part.shape for part in parts] == [(size, 3) for size in sizes]
    assert [part.device for part in parts] == ad.devices()
    np.testing.assert_array_equal(np.concatenate([np.asarray(part) for part in parts]), data)
    data[:] = 0
    assert np.asarray(parts[-1]).max() == rows * 3 - 1


def test_trees_are_cut_leaf_by_leaf_to_custom_targets() -> None:
    data = {"x": np.arange(10).reshape(5, 2), "y": [np.arange(5), None]}
    targets = [ad.devices()[6], ad.devices()[1]]
    first, second = ad.JAXDeviceManager().distribute_data(data, target_devices=iter(targets))
    assert first["x"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert second["y"][0].tolist() == [3, 4]
    assert second["y"][1] is None
    assert {first["x"].device, first["y"][0].device} == {targets[0]}
    assert second["x"].device == targets[1]


@pytest.mark.parametrize("make_mesh", [ad.make_mesh, lambda n, a: ad.Mesh(np.array(ad.devices()), a)])
def test_sharded_arrays_are_sharded_again(make_mesh: Any) -> None:
    data = np.arange(48.0).reshape(24, 2)
    x = ad.device_put(data, ad.NamedSharding(make_mesh((8,), ("x",)), ad.P("x")))
    parts = ad.JAXDeviceManager().distribute_data({"x": x, "n": ad.device_put(np.arange(24))}, ad.devices()[2:7])
    assert [part["x"].shape[0] for part in parts] == [5, 5, 5, 5, 4]
    assert [part["x"].device for part in parts] == ad.devices()[2:7]
    np.testing.assert_array_equal(np.concatenate([np.asarray(part["x"]) for part in parts]), data)
    assert [int(part["n"][0]) for part in parts] == [0, 5, 10, 15, 20]


def test_one_device_gets_any_tree_whole() -> None:
    (part,) = ad.JAXDeviceManager().distribute_data({"x": np.arange(3), "rate": 0.5}, ad.devices()[3:4])
    assert (part["x"].tolist(), float(part["rate"]), part["x"].device.id) == ([0, 1, 2], 0.5, 3)


def test_targets_are_different_devices() -> None:
    with pytest.raises(TypeError, match=r"devices\[0\] is 0"):
        ad.JAXDeviceManager().distribute_data(np.ones(8), [0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="cpu:1 named more than once"):
        ad.JAXDeviceManager().distribute_data(np.ones(8), [ad.devices()[1]] * 2)


# Settings that act


def test_only_a_configuration_that_is_given_limits() -> None:
    with pytest.warns(UserWarning, match="CUDA requested"):
        manager = DeviceManager()
    assert limits() == [1000] * 8
    assert manager.config.memory_fraction == 0.75
    assert manager.get_device_info()["not_applied"]["memory_fraction"].startswith("recorded")


def test_the_limit_is_enforced_and_taken_back() -> None:
    with DeviceManager(on_cpu(MemoryStrategy.CONSERVATIVE)) as manager:
        device = ad.devices()[0]
        assert limits() == [600] * 8
        assert manager.get_device_info()["memory_limits"]["cpu:7"] == int(0.6 * ad.devices()[7].memory_bytes)
        assert "memory_fraction" not in manager.get_device_info()["not_applied"]
        big = np.broadcast_to(np.int8(0), (int(0.6 * device.memory_bytes) + 1,))
        with pytest.raises(ad.errors.ResourceExhaustedError, match="RESOURCE_EXHAUSTED"):
            ad.device_put(big, device)
    assert limits() == [1000] * 8


def test_the_newest_open_managers_limit_holds() -> None:
    first = DeviceManager(on_cpu(MemoryStrategy.CONSERVATIVE))
    second = DeviceManager(on_cpu(MemoryStrategy.AGGRESSIVE))
    third = DeviceManager(on_cpu(MemoryStrategy.CUSTOM, memory_fraction=0.5))
    assert limits() == [500] * 8
    assert "set elsewhere" in first.get_device_info()["not_applied"]["memory_fraction"]
    second.close()
    assert limits() == [500] * 8
    third.close()
    third.close()
    assert limits() == [600] * 8
    first.close()
    assert limits() == [1000] * 8


def test_a_dropped_managers_limit_holds_until_the_next_one_closes() -> None:
    DeviceManager(on_cpu(MemoryStrategy.CONSERVATIVE))
    gc.collect()
    assert limits() == [600] * 8
    DeviceManager(on_cpu(MemoryStrategy.AGGRESSIVE)).close()
    assert limits() == [1000] * 8


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Threads take turns within each construction."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("many_switches")
def test_managers_of_several_threads_do_not_mix_their_limits() -> None:
    barrier = threading.Barrier(4)
    made: list[DeviceManager] = []

    def make(fraction: float) -> None:
        barrier.wait()
        made.append(DeviceManager(on_cpu(memory_fraction=fraction)))

    with ad.simulate(256, all_threads=True) as client:
        threads = [threading.Thread(target=make, args=(0.2 + number / 10,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = {round(10 * d.memory_stats()["bytes_limit"] / d.memory_bytes) for d in client.devices()}
        assert len(held) == 1
        assert held < {2, 3, 4, 5}
        for manager in made:
            manager.close()
        assert all(d.memory_stats()["bytes_limit"] == d.memory_bytes for d in client.devices())


def test_limits_of_the_user_stay() -> None:
    with ad.simulate(2, bytes_limit=1000):
        with DeviceManager(on_cpu()) as manager:
            assert [d.memory_stats()["bytes_limit"] for d in ad.devices()] == [1000, 1000]
            assert "cpu:0 has the limit 1000" in manager.get_device_info()["not_applied"]["memory_fraction"]
            ad.devices()[1].set_bytes_limit(500)  # after the manager: close() leaves it
        assert [d.memory_stats()["bytes_limit"] for d in ad.devices()] == [1000, 500]


def test_compile_only_devices_have_no_limit() -> None:
    with ad.simulate(2, compile_only=True), DeviceManager(on_cpu()) as manager:
        assert manager.get_device_info()["not_applied"]["memory_fraction"] == "cpu:0 has no memory; cpu:1 has no memory"


def test_another_world_is_reported() -> None:
    with DeviceManager(on_cpu()) as manager, ad.simulate(2):
        info = manager.get_device_info()
        assert info["jax_devices"] == ["cpu:0", "cpu:1"]
        assert "cpu:0 is not in the world" in info["not_applied"]["memory_fraction"]
        assert info["memory_limits"] == {"cpu:0": None, "cpu:1": None}


def test_x64_is_turned_on_and_back() -> None:
    ad.config.update("jax_enable_x64", False)
    try:
        with DeviceManager(on_cpu()) as manager:
            assert ad.config.jax_enable_x64 is False
            with DeviceManager(on_cpu(enable_x64=True)) as inner:
                assert ad.device_put(np.arange(3)).dtype == np.int64
                with ad.enable_x64(False):
                    assert "False here" in inner.get_device_info()["not_applied"]["enable_x64"]
            assert ad.config.jax_enable_x64 is False
            assert "enable_x64" not in manager.get_device_info()["not_applied"]
    finally:
        ad.config.update("jax_enable_x64", True)
    with DeviceManager(on_cpu(enable_x64=False)) as manager:
        assert ad.config.jax_enable_x64 is True
        assert "does not change jax_enable_x64, True here" in manager.get_device_info()["not_applied"]["enable_x64"]


def test_a_configuration_changed_later_is_reported() -> None:
    config = on_cpu(MemoryStrategy.CONSERVATIVE)
    with DeviceManager(config) as manager:
        config.memory_strategy = MemoryStrategy.BALANCED
        info = manager.get_device_info()
        assert limits() == [600] * 8
        assert "memory_fraction 0.6 to 0.75" in info["not_applied"]["configuration"]
        info["configuration"].enable_jit = False
        assert config.enable_jit is True
    assert "closed" in manager.get_device_info()["not_applied"]["manager"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_manager_is_not_copied(copied: Callable[[Any], Any]) -> None:
    with DeviceManager(on_cpu()) as manager:
        with pytest.raises(TypeError, match=r"holds settings of its process and cannot be copied .* manager\.config"):
            copied(manager)
        assert copied(manager.config)


def test_a_manager_keeps_its_configuration() -> None:
    with DeviceManager(on_cpu()) as manager, pytest.raises(AttributeError, match="config"):
        manager.config = None  # type: ignore[misc]


def test_a_closed_manager_is_not_entered_again() -> None:
    manager = DeviceManager(on_cpu())
    assert not manager.is_closed
    manager.close()
    assert manager.is_closed
    with pytest.raises(RuntimeError, match="was closed"):
        manager.__enter__()
    assert manager.device_count == 8


# Environment variables


def test_construction_writes_no_variable() -> None:
    before = dict(os.environ)
    with DeviceManager(on_cpu(enable_x64=True)):
        assert dict(os.environ) == before
    assert dict(os.environ) == before


def test_variables_asked_for_are_set_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARTIFEX_NEW", raising=False)
    monkeypatch.setenv("ARTIFEX_OLD", "user")
    monkeypatch.setenv("ARTIFEX_SAME", "1")
    config = on_cpu(environment_variables={"ARTIFEX_NEW": "1", "ARTIFEX_OLD": "ours", "ARTIFEX_SAME": "1"})
    with pytest.warns(UserWarning, match="overwrites") as warned:
        manager = DeviceManager(config)
    assert [str(w.message) for w in warned] == [
        "DeviceManager: environment_variables overwrites parts of the environment: ARTIFEX_OLD='user'; "
        "close() restores them"
    ]
    expected = {"ARTIFEX_NEW": "1", "ARTIFEX_OLD": "ours", "ARTIFEX_SAME": "1"}
    assert manager.get_device_info()["environment"] == expected
    assert {name: os.environ[name] for name in expected} == expected
    not_applied = manager.get_device_info()["not_applied"]["environment_variables"]
    assert not_applied == (
        "set for other libraries and child processes, not read by this library: ARTIFEX_NEW, ARTIFEX_OLD, ARTIFEX_SAME"
    )
    manager.close()
    assert ("ARTIFEX_NEW" in os.environ, os.environ["ARTIFEX_OLD"], os.environ["ARTIFEX_SAME"]) == (False, "user", "1")


def test_a_variable_changed_since_is_the_users() -> None:
    with DeviceManager(on_cpu(environment_variables={"ARTIFEX_TEST": "1"})):
        os.environ["ARTIFEX_TEST"] = "2"
    assert os.environ.pop("ARTIFEX_TEST") == "2"


@pytest.mark.parametrize(
    ("user", "asked", "merged", "overwritten"),
    [
        (None, "--a=1", "--a=1", None),
        ("--a=1 --b=2", "--c=3", "--a=1 --b=2 --c=3", None),
        ("--a=1 --b=2", "--b=3 --c", "--a=1 --b=3 --c", "--b=2 of XLA_FLAGS"),
        ("--a=1  --b=2", "--b=2", "--a=1  --b=2", None),
        ("--a='x y' --b", "--c", "--a='x y' --b --c", None),
        ("/a/file", "--a=1", "--a=1", "/a/file of XLA_FLAGS"),
    ],
)
def test_flags_are_merged(
    monkeypatch: pytest.MonkeyPatch, user: str | None, asked: str, merged: str, overwritten: str | None
) -> None:
    monkeypatch.setenv("XLA_FLAGS", user) if user else monkeypatch.delenv("XLA_FLAGS", raising=False)
    config = on_cpu(environment_variables={"XLA_FLAGS": asked})
    if overwritten:
        with pytest.warns(UserWarning, match=overwritten):
            manager = DeviceManager(config)
    else:
        manager = DeviceManager(config)
    assert os.environ["XLA_FLAGS"] == merged
    manager.close()
    assert os.environ.get("XLA_FLAGS") == user


def test_flags_of_several_managers_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--a=1")
    first = DeviceManager(on_cpu(environment_variables={"XLA_FLAGS": "--b=1 --c=1"}))
    second = DeviceManager(on_cpu(environment_variables={"XLA_FLAGS": "--c=2"}))
    assert os.environ["XLA_FLAGS"] == "--a=1 --b=1 --c=2"
    first.close()
    assert os.environ["XLA_FLAGS"] == "--a=1 --c=2"
    second.close()
    assert os.environ["XLA_FLAGS"] == "--a=1"


def run(code: str, **environment: str) -> str:
    """What a script of its own prints; warnings are errors."""
    variables = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**variables, **environment},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_manager_before_the_first_device_keeps_the_users_flags() -> None:
    code = (
        "import os; before = dict(os.environ); import artifex_devices as ad\n"
        "ad.DeviceManager(ad.DeviceConfiguration(platform_priority=['cpu']))\n"
        "print(len(ad.devices()), dict(os.environ) == before)"
    )
    assert run(code, XLA_FLAGS="--xla_force_host_platform_device_count=8") == "8 True\n"


def test_a_manager_before_the_first_device_chooses_their_number() -> None:
    code = (
        "import artifex_devices as ad\n"
        "flags = {'XLA_FLAGS': '--xla_force_host_platform_device_count=5'}\n"
        "config = ad.DeviceConfiguration(platform_priority=['cpu'], environment_variables=flags)\n"
        "manager = ad.DeviceManager(config)\n"
        "print(manager.device_count, manager.capabilities.device_count)\n"
        "print('environment_variables' in manager.get_device_info()['not_applied'])"
    )
    assert run(code) == "5 5\nFalse\n"


def test_the_package_loads_device_management_at_its_first_use() -> None:
    code = (
        "import sys, artifex_devices as ad\n"
        "names = ('device_manager', 'device_configuration', 'device_detection', 'process_devices')\n"
        "print([name for name in names if f'artifex_devices.{name}' in sys.modules])\n"
        "print(ad.DeviceManager is ad.device_manager.DeviceManager, hasattr(ad, 'has_gpu'))"
    )
    assert run(code) == "[]\nTrue True\n"


# Model sizes


@pytest.mark.parametrize(
    ("count", "strategy", "fraction"),
    [
        (0, MemoryStrategy.CONSERVATIVE, 0.6),
        (999_999, MemoryStrategy.CONSERVATIVE, 0.6),
        (1_000_000, MemoryStrategy.BALANCED, 0.75),
        (99_999_999, MemoryStrategy.BALANCED, 0.75),
        (100_000_000, MemoryStrategy.AGGRESSIVE, 0.9),
        (7e9, MemoryStrategy.AGGRESSIVE, 0.9),
    ],
)
def test_strategy_for_a_model_size_keeps_all_else(count: float, strategy: MemoryStrategy, fraction: float) -> None:
    config = on_cpu(memory_fraction=0.3, enable_jit=False, environment_variables={"ARTIFEX_TEST": "1"})
    with DeviceManager(config) as manager:
        optimal = manager.optimize_for_model_size(count)
    assert optimal == on_cpu(strategy, enable_jit=False, environment_variables={"ARTIFEX_TEST": "1"})
    assert optimal.memory_fraction == fraction
    assert optimal.platform_priority is not config.platform_priority
    assert config.memory_fraction == 0.3


@pytest.mark.parametrize(
    ("count", "error"), [(-1, ValueError), (math.nan, ValueError), (math.inf, ValueError), ("1e6", TypeError)]
)
def test_wrong_model_sizes(count: Any, error: type[Exception]) -> None:
    with DeviceManager(on_cpu()) as manager, pytest.raises(error, match="model_params is"):
        manager.optimize_for_model_size(count)


# The process's manager


@pytest.mark.usefixtures("no_manager")
def test_one_manager_for_the_process() -> None:
    config = on_cpu()
    manager = ad.get_device_manager(config)
    assert ad.get_device_manager() is ad.get_device_manager(on_cpu()) is manager
    with pytest.warns(UserWarning, match="config is ignored") as warned:
        assert ad.get_device_manager(on_cpu(MemoryStrategy.AGGRESSIVE)) is manager
    assert warned[0].filename == __file__
    config.memory_strategy = MemoryStrategy.AGGRESSIVE  # changed in place, it is not what the manager applied
    with pytest.warns(UserWarning, match="config is ignored"):
        ad.get_device_manager(config)
    with pytest.raises(TypeError, match=r"config is .* \(str\)"):
        ad.get_device_manager("aggressive")  # type: ignore[arg-type]
    assert limits() == [750] * 8
    other = ad.get_device_manager(config, force_reinit=True)
    assert (other is manager, manager.is_closed) == (False, True)
    assert limits() == [900] * 8
    other.close()
    assert limits() == [1000] * 8
    again = ad.get_device_manager(on_cpu())
    assert again is not other


@pytest.mark.usefixtures("no_manager")
def test_a_failed_reinit_keeps_the_manager() -> None:
    manager = ad.get_device_manager(on_cpu())
    broken = on_cpu()
    broken.platform_priority.clear()
    with pytest.raises(ValueError, match="is empty"):
        ad.get_device_manager(broken, force_reinit=True)
    assert ad.get_device_manager() is manager
    assert limits() == [750] * 8


@pytest.mark.usefixtures("no_manager")
def test_threads_get_one_manager() -> None:
    barrier = threading.Barrier(8)
    found: list[DeviceManager] = []

    def ask() -> None:
        barrier.wait()
        found.append(ad.get_device_manager(on_cpu()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


@pytest.mark.usefixtures("no_manager")
def test_configure_for_generative_models() -> None:
    with pytest.warns(UserWarning, match="CUDA requested"):
        first = ad.configure_for_generative_models()
    with pytest.warns(UserWarning, match="CUDA requested"):
        second = ad.configure_for_generative_models(MemoryStrategy.AGGRESSIVE, enable_mixed_precision=False)
    assert first.config == DeviceConfiguration(enable_mixed_precision=True)
    assert second.config == DeviceConfiguration(MemoryStrategy.AGGRESSIVE)
    assert first.is_closed
    assert ad.get_device_manager() is second
    assert limits() == [900] * 8


@pytest.mark.usefixtures("no_manager")
def test_functions_make_the_manager_if_need_be() -> None:
    with pytest.warns(UserWarning, match="CUDA requested"):
        assert ad.has_gpu() is False
    manager = ad.get_device_manager()
    assert ad.get_default_device() == ad.devices()[0]
    with ad.simulate(2):  # devices are those that there are
        assert ad.get_default_device() == ad.devices()[0]
    assert ad.get_device_manager() is manager


PRINTED = """
========================================
Backend: cpu
Device Type: cpu
Device Count: 8
GPU Count: 0
Memory Strategy: conservative
Memory Fraction: 0.6
Default Device: cpu:0
"""


@pytest.mark.usefixtures("no_manager")
@pytest.mark.parametrize(
    ("encoding", "title"),
    [
        ("utf-8", "🔍 Artifex Device Manager"),
        ("ascii", "Artifex Device Manager"),
        ("latin-1", "Artifex Device Manager"),
    ],
)
def test_print_device_info(monkeypatch: pytest.MonkeyPatch, encoding: str, title: str) -> None:
    ad.get_device_manager(on_cpu(MemoryStrategy.CONSERVATIVE), force_reinit=True)
    bytes_out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(bytes_out, encoding=encoding))
    ad.print_device_info()
    sys.stdout.flush()
    assert bytes_out.getvalue().decode(encoding) == title + PRINTED


@pytest.mark.usefixtures("no_manager")
def test_print_device_info_of_what_a_detector_claims(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = Claims(DeviceType.GPU, 2, 24576, "8.6", "12.1", "530.30", True, True)
    monkeypatch.setattr(device_manager._Process, "manager", DeviceManager(on_cpu(), claims))
    ad.print_device_info()
    assert capsys.readouterr().out.splitlines()[3:] == [
        "Device Type: gpu",
        "Device Count: 8",
        "GPU Count: 0",
        "Memory Strategy: balanced",
        "Memory Fraction: 0.75",
        "Default Device: cpu:0",
        "CUDA Version: 12.1",
        "Compute Capability: 8.6",
        "Note: the detector reports 2 gpu; the runtime has 8 devices, 0 of them GPUs",
    ]
