# SPDX-License-Identifier: Apache-2.0
"""The examples of the documents that need GPUs, unchanged, on emulated GPUs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from spec_documents import example, needs_documents, run, run_all, stand_ins_of_001

pytestmark = needs_documents

GPUS = f"[{', '.join(f'GpuDevice(id={i})' for i in range(8))}]"
CPUS = f"[{', '.join(f'CpuDevice(id={i})' for i in range(8))}]"
MEMORY_MB = 80 * 1024

# What the examples of 001 print in a world of 8 emulated GPUs. Blocks that are not named print nothing.
PRINTED_001 = {
    ("Basic Usage", 0): "Has GPU: True\nDevice count: 8\nGPU count: 8\nBackend: gpu\nDefault device: gpu:0\n",
    ("Getting Default Device", 0): "Using device: gpu:0\n",
    ("DeviceCapabilities", 0): (
        f"Device type: DeviceType.GPU\nDevice count: 8\nTotal memory: {MEMORY_MB} MB\nCUDA version: None\n"
        "Compute capability: None\nMixed precision support: True\nDistributed support: True\n"
    ),
    ("Getting Devices", 0): f"All devices: {GPUS}\nGPU devices: {GPUS}\nCPU devices: {CPUS}\nDefault: gpu:0\n",
    ("Data Distribution", 0): (
        "Original shape: (128, 224, 224, 3)\nShards: 8\n"
        + "".join(f"  Shard {i}: (16, 224, 224, 3) on gpu:{i}\n" for i in range(8))
    ),
    ("Check GPU Availability", 0): "GPU is available!\n",
    ("Print Device Information", 0): (
        "🔍 Artifex Device Manager\n========================================\nBackend: gpu\nDevice Type: gpu\n"
        "Device Count: 8\nGPU Count: 8\nMemory Strategy: aggressive\nMemory Fraction: 0.9\nDefault Device: gpu:0\n"
    ),
    ("For Model Size", 0): "Recommended strategy: MemoryStrategy.AGGRESSIVE\n",
    ("Pattern 1: Training Setup", 0): "Training on: gpu:0\nGPU count: 8\nMemory strategy: balanced\n",
}
NVIDIA_SMI = ('Issue: "No GPU Detected"', 0)  # starts nvidia-smi, which may be there


@pytest.fixture(autouse=True)
def eight_gpus() -> Iterator[None]:
    with ad.simulate({"cpu": 8, "gpu": "8 x h100"}):
        ad.get_device_manager().close()  # the next one is of this world, also where another test left one
        yield


@pytest.fixture
def after_001(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[dict[str, Any], dict[Any, str], dict[Any, Exception]]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    namespace = stand_ins_of_001(monkeypatch)
    printed, raised = run_all("001", namespace)
    yield namespace, printed, raised
    for value in [*namespace.values(), ad.get_device_manager()]:
        if isinstance(value, ad.DeviceManager):
            value.close()
    assert {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"} == environment


def test_001_every_example_runs(after_001: Any) -> None:
    namespace, printed, raised = after_001
    assert raised == {}
    assert not printed.pop(NVIDIA_SMI).startswith("GPU not detected")
    assert {block: text for block, text in printed.items() if text} == PRINTED_001
    assert namespace["x"].device == ad.devices("gpu")[0]
    assert [shard.shape[0] for shard in namespace["distributed"]] == [64, 64]
    assert [shard.device.id for shard in namespace["distributed"]] == [0, 1]
    assert namespace["batch_size"] == 4
    # The custom detector's word is kept, the devices are those of the world.
    custom = namespace["dm"]
    assert (custom.capabilities.device_count, custom.gpu_count, custom.has_gpu) == (4, 8, True)


def test_001_functions_of_the_patterns(after_001: Any, capsys: pytest.CaptureFixture[str]) -> None:
    namespace, _, _ = after_001
    model = np.ones(3)
    copies, batch = namespace["setup_data_parallel"](model, 32)
    assert ([copy.device for copy in copies], batch) == (ad.devices("gpu"), 4)
    assert namespace["setup_mixed_precision"]().capabilities.supports_mixed_precision
    made, device = namespace["create_model_with_fallback"](lambda scale: ad.device_put(np.ones(3)) * scale, 2)
    assert device == made.device == ad.devices("gpu")[0]
    assert capsys.readouterr().out == (
        "Using 8 GPUs for data parallel training\nMixed precision training enabled\nCreating model on GPU\n"
    )


def test_the_detector_labels_gpus_as_emulated() -> None:
    detector = ad.CUDADetector()
    found = detector.detect_capabilities()
    assert (found.device_type, found.device_count, found.total_memory_mb) == (ad.DeviceType.GPU, 8, MEMORY_MB)
    assert (found.driver_version, found.cuda_version, found.compute_capability) == ("emulated", None, None)
    assert detector.reason == "the GPUs are emulated by simulate(): compute capability and CUDA version are not known"
    with ad.DeviceManager() as manager:
        assert manager.get_device_info()["detection_problem"] == detector.reason
        assert "capabilities" not in manager.get_device_info()["not_applied"]
    # A detector of other files describes those.
    assert ad.CUDADetector(root="/nowhere").detect_capabilities().device_type is ad.DeviceType.CPU


def test_001_memory_fractions_limit_the_gpus() -> None:
    with ad.DeviceManager(ad.DeviceConfiguration(ad.MemoryStrategy.CONSERVATIVE)):
        limits = [device.memory_stats()["bytes_limit"] for device in ad.devices("gpu")]
    assert limits == [int(0.6 * MEMORY_MB * 2**20)] * 8


def test_000_basic_device_placement(capsys: pytest.CaptureFixture[str]) -> None:
    after = run("000", "Basic Device Placement")
    assert after["placed_data"].device == ad.devices("gpu")[0]
    assert capsys.readouterr().out == "Detected hardware: HardwareType.H100\nAvailable devices: 8\n"


def test_000_replicating_model_weights() -> None:
    after = run("000", "Replicating Model Weights")
    for name, source in after["weights"].items():
        replicated = after["replicated_weights"][name]
        assert [shard.device for shard in replicated.addressable_shards] == ad.devices("gpu")[:2]
        for shard in replicated.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), source)


def test_000_prefetching_places_batches_before_they_are_read() -> None:
    code, namespace = example("000", "Prefetching Data to Device")
    seen = []
    namespace["process_batch"] = lambda batch: seen.append((batch["batch"].device, float(batch["batch"].max())))
    exec(code, namespace)
    assert seen == [(ad.devices("gpu")[0], float(i)) for i in range(100)]


def test_000_getting_device_information(capsys: pytest.CaptureFixture[str]) -> None:
    run("000", "Getting Device Information")
    assert capsys.readouterr().out == (
        "Number of devices: 8\nHardware type: h100\nPlatforms: ['gpu']\n"
        + "".join(f"  Device {i}: gpu (NVIDIA H100 80GB HBM3)\n" for i in range(8))
    )
