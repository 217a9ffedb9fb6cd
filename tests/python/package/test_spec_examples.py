# SPDX-License-Identifier: Apache-2.0
"""The documents that the library implements: their signatures, tables and examples, read from the documents."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
from collections.abc import Iterator
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from spec_documents import DOCUMENTS, blocks_of, example, needs_documents, run, run_all, stand_ins_of_001

pytestmark = needs_documents


def signatures_of(number: str) -> Iterator[tuple[str, inspect.Signature, bool]]:
    """(name, signature, is a method) of each documented function."""
    for _, code in blocks_of(number):
        if code.lstrip().startswith("def "):
            namespace: dict[str, Any] = {}
            # Annotations stay text: they name classes that the block does not import.
            exec(compile("from __future__ import annotations\n" + code, "signature", "exec"), namespace)
            (function,) = (value for name, value in namespace.items() if inspect.isfunction(value))
            signature = inspect.signature(function)
            yield function.__name__, signature, "self" in signature.parameters


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


def ids_of(array: ad.Array) -> list[int]:
    return [shard.device.id for shard in array.addressable_shards]


def assert_shards_are(array: ad.Array, source: np.ndarray, count: int = 8) -> None:
    """The array is sharded along its first dimension, in device order, with the source's values."""
    assert ids_of(array) == list(range(count))
    for shard, part in zip(array.addressable_shards, np.split(source, count), strict=True):
        np.testing.assert_array_equal(np.asarray(shard.data), part)
    np.testing.assert_array_equal(np.asarray(array), source)


@pytest.mark.parametrize(("number", "owner"), [("000", ad.DevicePlacement), ("002", ad.DeviceMeshManager)])
def test_documented_parameters_and_defaults_are_ours(number: str, owner: type) -> None:
    seen = 0
    for name, documented, is_method in signatures_of(number):
        ours = inspect.signature(getattr(owner if is_method else ad, name))
        theirs = [(p.name, p.default) for p in documented.parameters.values()]
        assert [(p.name, p.default) for p in ours.parameters.values()][: len(theirs)] == theirs, name
        extra = list(ours.parameters.values())[len(theirs) :]
        assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in extra), name
        seen += 1
    assert seen == {"000": 12, "002": 6}[number]


def test_documented_hardware_types_are_ours() -> None:
    (code,) = (code for heading, code in blocks_of("000") if heading == "HardwareType")
    namespace: dict[str, Any] = {}
    exec("from enum import Enum\n" + code, namespace)
    assert [(m.name, m.value) for m in namespace["HardwareType"]] == [(m.name, m.value) for m in ad.HardwareType]


def test_documented_recommendation_is_ours() -> None:
    (code,) = (code for heading, code in blocks_of("000") if heading == "BatchSizeRecommendation")
    namespace: dict[str, Any] = {}
    exec("from __future__ import annotations\nfrom dataclasses import dataclass\n" + code, namespace)
    theirs, ours = namespace["BatchSizeRecommendation"], ad.BatchSizeRecommendation
    assert repr(theirs(1, 2, 3, 4, "n")) == repr(ours(1, 2, 3, 4, "n"))
    assert repr(theirs(1, 2, 3)) == repr(ours(1, 2, 3))


def test_documented_table_is_ours() -> None:
    path = DOCUMENTS["000"]
    assert path is not None
    rows = re.findall(r"^\| ([\w ]+) \| (\d+) \| (\d+) \| (\d+) \| (.+?) \|$", path.read_text(encoding="utf-8"), re.M)
    assert len(rows) == 7
    for name, least, optimal, critical, notes in rows:
        rec = ad.get_batch_size_recommendation(ad.HardwareType[name.upper().replace(" ", "_")])
        assert rec == ad.BatchSizeRecommendation(int(least), int(optimal), int(critical), None, notes), name


def test_000_basic_device_placement(capsys: pytest.CaptureFixture[str]) -> None:
    after = run("000", "Basic Device Placement")
    placed = after["placed_data"]
    assert ids_of(placed) == [0]
    np.testing.assert_array_equal(np.asarray(placed), np.ones((32, 784)))
    assert capsys.readouterr().out == "Detected hardware: HardwareType.CPU\nAvailable devices: 8\n"


def test_000_batch_size_validation(capsys: pytest.CaptureFixture[str]) -> None:
    run("000", "Batch Size Validation")
    assert capsys.readouterr().out == (
        "Optimal batch size: 32\nCritical batch size: 16\nH100 critical batch: 298\n"
        "Valid: True, Message: Batch size 256 is optimal for cpu (minimum 1, critical 16, optimum 32)\n"
    )


def test_000_distributing_batches_refuses_labels_of_rank_1() -> None:
    # The example's own mistake: its spec has two entries, its labels one dimension. JAX raises too.
    with pytest.raises(ValueError, match="labels"):
        run("000", "Distributing Batches with Sharding")


def test_000_distributing_batches_with_a_spec_that_fits() -> None:
    code, namespace = example("000", "Distributing Batches with Sharding")
    assert 'PartitionSpec("data", None)' in code
    exec(code.replace('PartitionSpec("data", None)', 'PartitionSpec("data")'), namespace)
    assert_shards_are(namespace["distributed"]["images"], np.ones((8, 28, 28, 3)))
    assert_shards_are(namespace["distributed"]["labels"], np.zeros(8))
    assert namespace["distributed"]["labels"].sharding == namespace["data_sharding"]


def test_000_sharding_along_batch_dimension() -> None:
    after = run("000", "Sharding Along Batch Dimension")
    sharded = after["sharded_batch"]
    assert_shards_are(sharded["images"], np.ones((16, 224, 224, 3)))
    assert_shards_are(sharded["labels"], np.zeros(16, np.int32))
    assert sharded["labels"].dtype == np.int32
    assert sharded["images"].sharding.spec == ad.P("data", None, None, None)


def test_000_prefetching() -> None:
    code, namespace = example("000", "Prefetching Data to Device")
    seen: list[tuple[float, float, list[int], tuple[int, ...]]] = []

    def process_batch(tree: dict[str, ad.Array]) -> None:
        host = np.asarray(tree["batch"])
        seen.append((float(host.min()), float(host.max()), ids_of(tree["batch"]), host.shape))

    namespace["process_batch"] = process_batch
    exec(code, namespace)
    assert seen == [(i, i, [0], (32, 784)) for i in range(100)]


def test_000_replicating_asks_for_gpus_that_are_not_there() -> None:
    code, namespace = example("000", "Replicating Model Weights")
    with pytest.raises(RuntimeError, match="gpu"):
        exec(code, namespace)
    # What came before that line is done.
    assert ids_of(namespace["replicated_weights"]["layer1"]) == list(range(8))


def test_000_replicating_model_weights() -> None:
    code, namespace = example("000", "Replicating Model Weights")
    assert 'jax.devices("gpu")[:2]' in code
    exec(code.replace('jax.devices("gpu")[:2]', "jax.devices()[:2]"), namespace)
    replicated = namespace["replicated_weights"]
    for name, source in namespace["weights"].items():
        assert ids_of(replicated[name]) == [0, 1]
        assert replicated[name].is_fully_replicated
        for shard in replicated[name].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), source)


def test_000_getting_device_information(capsys: pytest.CaptureFixture[str]) -> None:
    run("000", "Getting Device Information")
    assert capsys.readouterr().out == (
        "Number of devices: 8\nHardware type: cpu\nPlatforms: ['cpu']\n"
        + "".join(f"  Device {i}: cpu (cpu)\n" for i in range(8))
    )


def device_ids(mesh: ad.Mesh) -> Any:
    return np.vectorize(lambda device: device.id, otypes=[int])(mesh.devices).tolist()


def test_002_basic_usage(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = run("002", "Basic Usage")["mesh"]
    assert capsys.readouterr().out == "Available devices: 8\n"
    assert mesh.axis_names == ("data",)
    assert device_ids(mesh) == list(range(8))


def test_002_data_parallelism() -> None:
    after = run("002", "Data Parallelism")
    assert after["mesh"].axis_names == ("batch",)
    assert device_ids(after["mesh"]) == [0, 1, 2, 3]
    source = np.arange(8.0).reshape(8, 1)
    assert_shards_are(ad.device_put(source, after["data_sharding"]), source, 4)


def test_002_model_parallelism() -> None:
    after = run("002", "Model Parallelism")
    source = np.arange(12.0).reshape(3, 4)
    placed = ad.device_put(source, after["param_sharding"])
    assert ids_of(placed) == [0, 1]
    np.testing.assert_array_equal(np.asarray(placed.addressable_shards[1].data), source[:, 2:])


def test_002_hybrid_parallelism(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = run("002", "Hybrid Parallelism")["mesh"]
    assert capsys.readouterr().out == "Total devices: 4\nAxes: {'data': 2, 'model': 2}\n"
    assert device_ids(mesh) == [[0, 1], [2, 3]]


def test_002_dict_or_list_specification() -> None:
    after = run("002", "Using Dict or List Specification")
    assert after["mesh_dict"] == after["mesh_list"]
    assert device_ids(after["mesh_dict"]) == [[0], [1]]
    assert after["mesh_dict"].axis_names == ("data", "model")


# What the examples of 001 print, or raise, in a world of 8 CPU devices: by heading and number of the block there.
# Blocks that are not named print nothing.
PRINTED_001 = {
    ("Basic Usage", 0): "Has GPU: False\nDevice count: 8\nGPU count: 0\nBackend: cpu\nDefault device: cpu:0\n",
    ("Getting Default Device", 0): "Using device: cpu:0\n",
    ("DeviceCapabilities", 0): (
        "Device type: DeviceType.CPU\nDevice count: 8\nTotal memory: None MB\nCUDA version: None\n"
        "Compute capability: None\nMixed precision support: False\nDistributed support: True\n"
    ),
    ("Getting Devices", 0): (
        f"All devices: {[f'CpuDevice(id={i})' for i in range(8)]}\nGPU devices: []\n"
        f"CPU devices: {[f'CpuDevice(id={i})' for i in range(8)]}\nDefault: cpu:0\n"
    ).replace("'", ""),
    ("Data Distribution", 0): (
        "Original shape: (128, 224, 224, 3)\nShards: 8\n"
        + "".join(f"  Shard {i}: (16, 224, 224, 3) on cpu:{i}\n" for i in range(8))
    ),
    ("Check GPU Availability", 0): "Running on CPU\n",
    ("Print Device Information", 0): (
        "🔍 Artifex Device Manager\n========================================\nBackend: cpu\nDevice Type: cpu\n"
        "Device Count: 8\nGPU Count: 0\nMemory Strategy: aggressive\nMemory Fraction: 0.9\nDefault Device: cpu:0\n"
    ),
    ("For Model Size", 0): "Recommended strategy: MemoryStrategy.AGGRESSIVE\n",
    ("Pattern 1: Training Setup", 0): "Training on: cpu:0\nGPU count: 0\nMemory strategy: balanced\n",
}
RAISED_001 = {
    # GPU-only lines: no GPU is not a target, and no share of a batch.
    ("Custom Device Selection", 0): (ValueError, "target_devices is empty: this machine has no GPU"),
    ('Issue: "Out of Memory (OOM) Errors"', 2): (ZeroDivisionError, "by zero"),
}
NO_GPU_001 = ('Issue: "No GPU Detected"', 0)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return stand_ins_of_001(monkeypatch)


def variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture
def after_001(stand_ins: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[Any, str], dict[Any, Exception]]]:
    """All examples of 001 run one after the other: the names afterwards, what each printed, what each raised."""
    environment = variables()
    namespace = stand_ins
    printed, raised = run_all("001", namespace)
    yield namespace, printed, raised
    for value in [*namespace.values(), ad.get_device_manager()]:
        if isinstance(value, ad.DeviceManager):
            value.close()
    assert variables() == environment


@pytest.mark.filterwarnings("ignore:CUDA requested but no GPU:UserWarning")
def test_001_every_example_runs(after_001: Any) -> None:
    namespace, printed, raised = after_001
    assert len(printed) == 30
    assert {block: type(error) for block, error in raised.items()} == {
        block: kind for block, (kind, _) in RAISED_001.items()
    }
    for block, (_, text) in RAISED_001.items():
        assert text in str(raised[block])
    assert printed.pop(NO_GPU_001).startswith("GPU not detected. Possible issues:\n1. CUDA not installed\n")
    assert {block: text for block, text in printed.items() if text} == PRINTED_001
    assert namespace["x"].device == ad.devices()[0]
    assert namespace["config"].environment_variables == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    # The custom detector's word is kept, the devices are real.
    custom = namespace["dm"]
    assert (custom.capabilities.device_count, custom.gpu_count, custom.has_gpu) == (4, 0, False)


@pytest.mark.filterwarnings("ignore:CUDA requested but no GPU:UserWarning")
def test_001_functions_of_the_patterns(after_001: Any, capsys: pytest.CaptureFixture[str]) -> None:
    namespace, _, _ = after_001
    model = np.ones(3)
    assert namespace["setup_data_parallel"](model, 32) == ([model], 32)
    assert not namespace["setup_mixed_precision"]().capabilities.supports_mixed_precision
    made, device = namespace["create_model_with_fallback"](lambda scale: ad.device_put(np.ones(3)) * scale, 2)
    assert made.tolist() == [2.0, 2.0, 2.0]
    assert device == made.device == ad.devices()[0]
    assert capsys.readouterr().out == (
        "Single GPU training\nMixed precision not supported\nNo GPU found, falling back to CPU\n"
    )


@pytest.mark.filterwarnings("ignore:CUDA requested but no GPU:UserWarning")
def test_001_memory_tip_changes_the_limit(stand_ins: dict[str, Any]) -> None:
    (code,) = (code for heading, code in blocks_of("001") if heading == "Memory Optimization")
    exec("from artifex_devices.device_manager import *\n" + code, stand_ins)
    device = ad.devices()[0]
    assert stand_ins["config"].memory_fraction == 0.75  # in the original it stays 0.6
    assert device.memory_stats()["bytes_limit"] == int(0.75 * device.memory_bytes)
    stand_ins["dm"].close()


def test_001_documented_strategies_and_fields_are_ours() -> None:
    path = DOCUMENTS["001"]
    assert path is not None
    text = path.read_text(encoding="utf-8")
    percentages = re.findall(r"^\| `(\w+)` \| (\d+)% \|", text, re.M)
    assert len(percentages) == 3
    for name, percent in percentages:
        assert ad.DeviceConfiguration(ad.MemoryStrategy[name]).memory_fraction == int(percent) / 100
    fields = re.findall(r"^\| `([a-z_]+)` \| `([\w \\|]+)` \|", text, re.M)
    assert [(name, kind.replace("\\", "")) for name, kind in fields] == [
        (field.name, field.type) for field in dataclasses.fields(ad.DeviceCapabilities)
    ]
