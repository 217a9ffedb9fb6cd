# SPDX-License-Identifier: Apache-2.0
"""Memory of training steps that XLA compiles for CPU devices, beside plan_training.

The result is in bench/compiled_memory.json, from which bench/planner_accuracy.py writes a table of
docs/planner_accuracy.md. After an intended change `UPDATE_RECORDED_TEXTS=1 pytest -n 0 tests/oracle/test_memory.py`
writes the file again.
"""

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.models import TransformerShape
from artifex_devices.planner import TrainingConfig, plan_training

jax = pytest.importorskip("jax", reason="jax is not installed")

from compiled_steps import Layout, compiled, parameters_of  # noqa: E402 (it needs jax)

RECORD = Path(__file__).parents[2] / "bench" / "compiled_memory.json"
LAYERS = 32
SEQUENCE = 128
# The proportions of Llama 3 8B: an MLP of 3.5 and a vocabulary of 32 times the embedding.
SHAPE = {"embed": 256, "mlp": 896, "heads": 4, "kv_heads": 4, "head_dim": 64, "vocab": 8192}
STEPS = {
    "one device": {},
    "one device, 2 KV heads": {"shape": {"kv_heads": 2}},
    "one device, twice the sizes": {
        "shape": {"embed": 512, "mlp": 1792, "heads": 8, "kv_heads": 8, "vocab": 16384}, "sequence": 256
    },
    "one device, layers recomputed": {"recompute": "full"},
    "data 8": {"data": 8},
    "data 8, ZeRO 1": {"data": 8, "zero": 1},
    "data 8, ZeRO 2": {"data": 8, "zero": 2},
    "data 8, ZeRO 3 (FSDP)": {"data": 8, "zero": 3},
    "tensor 4, data 2": {"data": 2, "tensor": 4},
    "tensor 4 with sequences, data 2": {"data": 2, "tensor": 4, "sequence_parallel": True},
    "tensor 4 with sequences, data 2, ZeRO 3, layers recomputed": {
        "data": 2, "tensor": 4, "sequence_parallel": True, "zero": 3, "recompute": "full"
    },
    "one device, bfloat16": {"dtype": "bfloat16"},
}  # fmt: skip


def shape_of(layers, values):
    return TransformerShape(name="small", layers=layers, **{**SHAPE, **values})


def planned(shape, *, dtype="float32", sequence=SEQUENCE, **values):
    """Bytes of the arguments and of the temporaries, by the planner."""
    values = {"data": 1, **values}
    batch = 2 * values["data"]
    config = TrainingConfig(
        batch=batch, sequence=sequence, microbatch=2, optimizer="adam", flash_attention=False, framework="maxtext",
        loss="fused",  # whose gradient overwrites the logits
        **{"parameter_dtype": dtype, "gradient_dtype": dtype, "activation_dtype": dtype, **values},
    )  # fmt: skip
    one = values["data"] * values.get("tensor", 1) == 1
    stage = plan_training(shape, cluster.tpu("v6e", (1, 1) if one else (2, 4)), config).stages[0]
    tokens = 2 * 4 * (batch // values["data"]) * sequence  # int32 tokens and labels
    return stage.parameters + stage.optimizer + tokens, stage.gradients + stage.activations + stage.working


def measured(
    shape, *, dtype="float32", sequence=SEQUENCE, data=1, tensor=1, zero=0, sequence_parallel=False, recompute="none"
):
    """The same by XLA."""
    mesh = None
    if data * tensor > 1:
        mesh = jax.sharding.Mesh(np.array(jax.devices()[: data * tensor]).reshape(data, tensor), ("data", "tensor"))
    found = compiled(
        shape, batch=2 * data, sequence=sequence, dtype=dtype, recompute=recompute == "full",
        layout=Layout(mesh, zero, sequence_parallel),
    ).memory_analysis()  # fmt: skip
    # The new state is where the old one was.
    assert found.alias_size_in_bytes == found.argument_size_in_bytes - 2 * 4 * 2 * sequence
    return found.argument_size_in_bytes, found.temp_size_in_bytes


def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))


@functools.cache
def row_of(name):
    values = dict(STEPS[name])
    shape = shape_of(LAYERS, values.pop("shape", {}))
    arguments, temporaries = measured(shape, **values)
    own_arguments, own_temporaries = planned(shape, **values)
    row = {"arguments": arguments, "temporaries": temporaries}
    return {**row, "planned_arguments": own_arguments, "planned_temporaries": own_temporaries}


@pytest.mark.parametrize("name", STEPS)
def test_a_compiled_step_is_as_planned(name):
    """Parameters, optimizer state and batch are exact, gradients and activations within 5 %."""
    row = row_of(name)
    if record()["jax"] == jax.__version__ and os.environ.get("UPDATE_RECORDED_TEXTS") != "1":
        assert record()["rows"][name] == row, "write the file again, run bench/planner_accuracy.py, and commit both"
    assert row["planned_arguments"] == row["arguments"]
    if "bfloat16" in name:  # see below
        return
    assert row["planned_temporaries"] == pytest.approx(row["temporaries"], rel=0.05)
    total, own = (row[prefix + "arguments"] + row[prefix + "temporaries"] for prefix in ("", "planned_"))
    assert own == pytest.approx(total, rel=0.02)


def test_sixteen_bits_are_computed_in_float32_on_cpu_devices():
    """XLA keeps activations in float32, and a float32 copy of the layers' matrices: CPUs multiply in float32."""
    shape = shape_of(LAYERS, {})
    layer = parameters_of(shape_of(2, {})) - parameters_of(shape_of(1, {}))
    _, temporaries = planned(shape, dtype="bfloat16", activation_dtype="float32")
    expected = row_of("one device, bfloat16")["temporaries"]
    assert temporaries + 4 * layer * LAYERS == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    "name", ["one device", "data 8, ZeRO 1", "tensor 4, data 2", "tensor 4 with sequences, data 2"]
)
def test_a_layer_more_takes_what_the_planner_says(name):
    """What remains does not depend on the layers: buffers of the layer that is computed, and of the loss."""
    shape, deeper = shape_of(LAYERS - 8, {}), row_of(name)
    by_xla = deeper["temporaries"] - measured(shape, **STEPS[name])[1]
    assert deeper["planned_temporaries"] - planned(shape, **STEPS[name])[1] == pytest.approx(by_xla, rel=1e-6)


def test_the_record_has_each_step():
    if os.environ.get("UPDATE_RECORDED_TEXTS") == "1":
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row_of(name))}" for name in STEPS)
        RECORD.write_text(f'{{\n"jax": "{jax.__version__}",\n"rows": {{\n{rows}\n}}\n}}\n', encoding="utf-8")
    assert list(record()["rows"]) == list(STEPS)
