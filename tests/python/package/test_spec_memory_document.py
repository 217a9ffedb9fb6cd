# SPDX-License-Identifier: Apache-2.0
"""The document of devices and memory, up to sharded computation: its signatures and examples.

`jax.random` becomes NumPy's Generator. The line that asks for a GPU does what it does on a machine without one, and
runs unchanged on emulated GPUs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest

SPEC = Path(__file__).resolve().parents[4] / "shared" / "spec"
DOCUMENT = next(iter(sorted(SPEC.glob("003_*"))), None)

pytestmark = pytest.mark.skipif(DOCUMENT is None, reason="the documents are not beside the checkout (../shared/spec)")

IMPORTS = {
    "import jax.numpy as jnp": "import numpy as jnp",
    "from jax.sharding import": "from artifex_devices.sharding import",
    "from jax import": "from artifex_devices import",
    "import jax\n": "import artifex_devices as jax\n",
}


def text_between(start: str, end: str) -> str:
    assert DOCUMENT is not None
    text = DOCUMENT.read_text(encoding="utf-8")
    text = text[text.index(f"\n{start}\n") + len(start) + 2 :]
    return text[: text.index(f"\n{end}\n")]


def under_our_imports(code: str) -> str:
    for theirs, ours in IMPORTS.items():
        code = code.replace(theirs, ours)
    return code


def examples_of(start: str, end: str) -> str:
    return under_our_imports(text_between(start, end).split("Usage examples:\n")[1])


def imported() -> dict[str, Any]:
    namespace: dict[str, Any] = {"jnp": np}
    exec(under_our_imports(text_between("Core Imports", "Capabilities")), namespace)
    return namespace


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


def test_the_core_imports_are_there() -> None:
    names = imported()
    assert names["jax"] is ad
    assert names["devices"] is ad.devices
    assert names["P"] is ad.PartitionSpec


SECTIONS = [
    ("Device Discovery and Information", "Device Placement and Data Movement"),
    ("Device Placement and Data Movement", "Sharding and Distributed Arrays"),
    ("Sharding and Distributed Arrays", "Sharded Computation"),
]


def documented_functions() -> dict[str, inspect.Signature]:
    found = {}
    for section in SECTIONS:
        for code in re.findall(r'(?ms)^def \w+\(.*?^    """.*?"""$', text_between(*section)):
            namespace: dict[str, Any] = {}
            exec("from __future__ import annotations\n" + code, namespace)
            (function,) = (value for value in namespace.values() if inspect.isfunction(value))
            found[function.__name__] = inspect.signature(function)
    return found


# Called in another way than ours is written; each way is tried below.
CALLED_BOTH_WAYS = {"make_mesh", "make_array_from_single_device_arrays"}


def test_signatures_are_as_documented() -> None:
    documented = documented_functions()
    assert len(documented) == 21
    for name, theirs in documented.items():
        ours = inspect.signature(getattr(ad, name))
        if name in CALLED_BOTH_WAYS:
            continue
        expected = [(p.name, p.default) for p in theirs.parameters.values()]
        assert [(p.name, p.default) for p in ours.parameters.values()][: len(expected)] == expected, name
        rest = list(ours.parameters.values())[len(expected) :]
        assert all(p.default is not p.empty for p in rest), name


def test_documented_forms_of_meshes_and_assembly() -> None:
    mesh = ad.make_mesh(mesh_shape=(8,), axis_names=("x",))
    sharding = ad.NamedSharding(mesh, ad.P("x"))
    parts = [ad.device_put(np.full(2, i), device) for i, device in enumerate(ad.devices())]
    whole = ad.make_array_from_single_device_arrays(arrays=parts, sharding=sharding)
    assert np.asarray(whole).tolist() == np.repeat(range(8), 2).tolist()


def test_documented_classes() -> None:
    mesh = ad.make_mesh((2, 2), ("data", "model"))
    assert mesh.devices.shape == (2, 2)
    assert (mesh.axis_names, dict(mesh.shape), mesh.size) == (("data", "model"), {"data": 2, "model": 2}, 4)
    sharding = ad.NamedSharding(mesh=mesh, spec=ad.P("data"))
    assert (sharding.mesh, sharding.spec) == (mesh, ad.P("data"))


def test_placement_examples_stop_where_they_ask_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = imported()
    with pytest.raises(RuntimeError, match="gpu"):
        exec(examples_of(*SECTIONS[1]), namespace)
    assert capsys.readouterr().out == f"Available devices: {ad.devices()}\nDevice count: 8\n"
    assert namespace["cpu_data"].tolist() == [1, 2, 3, 4]


def test_placement_examples_with_a_cpu_for_the_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = imported()
    exec(examples_of(*SECTIONS[1]).replace("jax.devices('gpu')", "jax.devices('cpu')"), namespace)
    assert capsys.readouterr().out.splitlines()[-1] == "Data is on: cpu:0"
    assert type(namespace["host_data"]) is np.ndarray
    assert namespace["host_data"].tolist() == [1, 2, 3, 4]
    assert namespace["cpu_result"] == 6


def test_placement_examples_run_unchanged_on_emulated_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = imported()
    with ad.simulate(8, platform="gpu"):
        exec(examples_of(*SECTIONS[1]), namespace)
        gpus = ad.devices()
        # The operand is NumPy's, so this sum is computed without a device.
        assert namespace["cpu_result"] == 6
    assert capsys.readouterr().out == f"Available devices: {gpus}\nDevice count: 8\nData is on: gpu:0\n"
    assert namespace["gpu_data"].device == gpus[0]
    assert namespace["host_data"].tolist() == [1, 2, 3, 4]


def test_a_gpu_can_be_the_default_device_as_documented() -> None:
    code = text_between("Configuration and Backend Management", "Array and Device Properties")
    (line,) = (line for line in code.splitlines() if "jax_default_device" in line)
    assert "jax.devices('gpu')[0]" in line
    with ad.simulate(8, platform="gpu"):
        try:
            exec(line, {"jax": ad})
            assert ad.device_put(np.ones(2)).device == ad.devices("gpu")[0]
        finally:
            ad.config.update("jax_default_device", None)


def test_sharding_examples_up_to_the_computation() -> None:
    code = examples_of("Sharded Computation", "Memory Management").split("# Computation with sharded arrays")[0]
    for key in (0, 1):
        code = code.replace(f"jax.random.normal(jax.random.key({key}), ", f"jnp.random.default_rng({key}).normal(size=")
    namespace = imported()
    exec(code, namespace)
    assert namespace["devices_array"].shape == (2, 2)
    x, weights = namespace["x_sharded"], namespace["weights_sharded"]
    assert [shard.data.shape for shard in x.addressable_shards] == [(4, 4)] * 4
    assert [shard.data.shape for shard in weights.addressable_shards] == [(4, 4)] * 4
    np.testing.assert_array_equal(np.asarray(x), namespace["x"])
    np.testing.assert_array_equal(np.asarray(weights), namespace["weights"])


def test_documented_properties_of_arrays_and_devices() -> None:
    array = ad.device_put(np.ones(4), ad.devices()[3])
    assert array.device() == ad.devices()[3]
    assert array.devices() == {ad.devices()[3]}
    assert array.sharding == ad.SingleDeviceSharding(ad.devices()[3])
    assert array.is_fully_replicated
    assert array.is_fully_addressable
    device = ad.devices()[3]
    assert (device.platform, device.device_kind, device.id, device.host_id, device.process_index) == (
        "cpu",
        "cpu",
        3,
        0,
        0,
    )


def test_memory_functions() -> None:
    array = ad.device_put(np.ones(4))
    assert any(other is array for other in ad.live_arrays())
    ad.clear_caches()
    assert array.tolist() == [1, 1, 1, 1]


def test_inference_in_chunks() -> None:
    code = text_between("Memory-Efficient Inference", "Cross-Device Communication Patterns")
    namespace = imported()
    exec(code, namespace)
    large = np.arange(2500.0)
    result = namespace["memory_efficient_inference"](lambda chunk: np.asarray(chunk) * 2, large)
    np.testing.assert_array_equal(result, large * 2)


def exec_numpy_random(code: str, namespace: dict[str, Any]) -> None:
    for key in (0, 1):
        code = code.replace(f"jax.random.normal(jax.random.key({key}), ", f"jnp.random.default_rng({key}).normal(size=")
    exec(code, namespace)


def test_sharded_computation_functions_are_as_documented() -> None:
    code = text_between("Sharded Computation", "Memory Management").split("Usage examples:")[0]
    (block,) = re.findall(r'(?ms)^def shard_map\(.*?^    """.*?"""$', code)
    namespace: dict[str, Any] = {}
    exec("from __future__ import annotations\n" + block, namespace)
    theirs = [
        "check_vma" if name == "check_rep" else name for name in inspect.signature(namespace["shard_map"]).parameters
    ]
    assert list(inspect.signature(ad.shard_map).parameters)[: len(theirs)] == theirs
    parameters = inspect.signature(namespace["shard_map"]).parameters
    assert inspect.signature(ad.shard_map).parameters["check_rep"].default is parameters["check_rep"].default is True
    assert list(inspect.signature(ad.smap).parameters)[: len(parameters)] == list(parameters)  # its other name


def test_sharded_computation_runs_as_written() -> None:
    namespace = imported()
    code = examples_of("Sharded Computation", "Memory Management")
    by_hand, mapped = code.split("# Explicit sharding control")
    exec_numpy_random(by_hand, namespace)
    expected = namespace["x"] @ namespace["weights"]
    product = namespace["result"]
    assert product.sharding.spec == ad.P("data", "model")
    np.testing.assert_allclose(np.asarray(product), expected, rtol=1e-12)
    exec(mapped, namespace)
    assert namespace["result"].sharding == ad.NamedSharding(namespace["mesh"], ad.P("data", "model"))
    np.testing.assert_allclose(np.asarray(namespace["result"]), expected, rtol=1e-12)


def test_multi_device_training_with_a_gradient_of_its_own() -> None:
    namespace = imported()
    code = text_between("Multi-Device Training", "Model Parallelism")
    setup, jitted = under_our_imports(code).split("# JIT compile with sharding")
    exec(setup, namespace)
    _, batch_sharding, replicated = namespace["create_train_setup"](8)
    with pytest.raises(AttributeError, match=r"lax\.pmean"):
        namespace["distributed_train_step"](None, None, None)

    # What the document leaves open: the gradient of a loss, here mean((batch @ w) ** 2), and an optimizer.
    def distributed_train_step(params: Any, batch: Any, state: Any) -> Any:
        grads = 2 * batch.T @ (batch @ params) / len(batch)
        return params - 0.1 * grads, state + 1

    namespace.update(
        distributed_train_step=distributed_train_step, replicated_sharding=replicated, batch_sharding=batch_sharding
    )
    exec(jitted, namespace)
    params, batch = np.ones(4), np.random.default_rng(0).normal(size=(16, 4))
    new_params, state = namespace["distributed_train_step"](params, batch, 0)
    assert new_params.sharding == replicated
    assert int(state) == 1
    np.testing.assert_allclose(np.asarray(new_params), params - 0.2 * batch.T @ (batch @ params) / 16, rtol=1e-12)


def test_model_parallelism_runs_as_written() -> None:
    namespace = imported()
    setup, use = under_our_imports(text_between("Model Parallelism", "Memory-Efficient Inference")).split(
        "# Shard arrays according to strategy"
    )
    exec(setup, namespace)
    names = ("mesh", "input_sharding", "weight_sharding", "output_sharding")
    namespace.update(zip(names, namespace["create_model_parallel_setup"](), strict=True))
    x, weights = np.random.default_rng(0).normal(size=(2, 8, 8))
    namespace.update(x=x, weights=weights)
    exec(use, namespace)
    assert namespace["result"].sharding.is_equivalent_to(namespace["output_sharding"], 2)
    np.testing.assert_allclose(np.asarray(namespace["result"]), x @ weights, rtol=1e-12)


def test_communication_patterns_run_as_written() -> None:
    assert DOCUMENT is not None
    text = DOCUMENT.read_text(encoding="utf-8")
    code = under_our_imports(text.split("\nCross-Device Communication Patterns\n")[1])
    namespace = {**imported(), "data": np.arange(3.0)}
    exec(code, namespace)
    np.testing.assert_array_equal(np.asarray(namespace["summed_result"]), np.tile(np.arange(3.0) * 8, (8, 1)))
    gathered = namespace["allgather_example"](namespace["replicated_data"])
    np.testing.assert_array_equal(np.asarray(gathered), np.tile(np.arange(3.0), (8, 8, 1)))
