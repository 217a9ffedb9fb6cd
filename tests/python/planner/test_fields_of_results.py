# SPDX-License-Identifier: Apache-2.0
"""The fields that the core describes are those of the dataclasses."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _planner, cluster, models
from artifex_devices.planner import (
    Efficiency,
    TrainingConfig,
    plan_collective,
    plan_inference,
    plan_reshard,
    plan_step,
    plan_training,
    suggest,
)
from artifex_devices.sharding import Mesh, NamedSharding
from artifex_devices.sharding import PartitionSpec as P

NODE = cluster.dgx("h100")
SHAPE = models.SHAPES["llama-3-8b"]
CONFIG = TrainingConfig(batch=64, sequence=4096, zero=3, recompute="full")


def recorded(monkeypatch: pytest.MonkeyPatch, name: str, call: Any) -> tuple[Any, Any]:
    """Returns what a call made of the result of a function of the core, and this result."""
    results: list[Any] = []
    function = getattr(_planner, name)
    monkeypatch.setattr(_planner, name, lambda *args: results.append(function(*args)) or dict(results[-1]))
    return call(), results[-1]


def check(value: Any, described: dict[str, Any], *, given: tuple[str, ...] = (), renamed: tuple[str, ...] = ()) -> None:
    """Checks that a dataclass has the described fields, except for `renamed`, and those that the caller has `given`."""
    names = {field.name for field in fields(value)}
    assert names - set(given) == set(described) - set(renamed), type(value).__name__


def test_training(monkeypatch):
    plan, found = recorded(monkeypatch, "plan_training", lambda: plan_training(SHAPE, NODE, CONFIG))
    check(plan, found, given=("model", "cluster", "config", "efficiency", "measured"))
    check(plan.stages[0], found["stages"][0])
    check(plan.expected, found["expected"])
    messages = _planner.training_messages(vars(SHAPE), NODE, CONFIG._described(8), plan.efficiency._described())
    check(plan.collectives[0], messages[0], given=("axes",), renamed=("stride",))
    check(SHAPE.parameters, _planner.shape_parameters(vars(SHAPE)))


def test_inference(monkeypatch):
    call = lambda: plan_inference(SHAPE, NODE, batch=8, prompt=128, output=64, tensor=8)  # noqa: E731
    plan, found = recorded(monkeypatch, "plan_inference", call)
    given = ("model", "cluster", "efficiency", "tensor", "pipeline", "expert", "batch", "prompt", "output")
    check(plan, found, given=given)
    check(plan.expected, found["expected"])


def test_step(monkeypatch):
    mesh = Mesh(np.array(NODE.devices()), ("data",))
    model = models.transformer("llama-2-7b", batch=8, sequence=128)
    plan, found = recorded(monkeypatch, "plan_step", lambda: plan_step(model, mesh, {"batch": "data"}))
    check(plan, found, given=("model", "cluster", "mesh_shape", "rules", "efficiency", "seconds_from"))
    check(plan.memory, found["memory"])
    check(plan.expected, found["expected"])
    check(plan.roofline, found["roofline"])
    check(plan.products[0], found["products"][0])
    check(plan.collectives[0], found["collectives"][0])
    check(plan.collectives[0].estimate, found["collectives"][0]["estimate"])
    check(plan.regimes[0], found["regimes"][0])


def test_collective(monkeypatch):
    plan, found = recorded(monkeypatch, "plan_collective", lambda: plan_collective("all_gather", 8e6, "chip", NODE))
    check(plan, found, given=("op", "nbytes", "axes", "cluster", "efficiency", "seconds_from"))
    check(plan.steps[0], found["steps"][0])
    check(plan.lower_bound, found["lower_bound"])


def test_reshard(monkeypatch):
    with ad.simulate(4):
        mesh = ad.make_mesh((4,), ("x",))
        call = lambda: plan_reshard((8, 8), "float32", NamedSharding(mesh, P("x")), NamedSharding(mesh, P()))  # noqa: E731
        plan, found = recorded(monkeypatch, "plan_reshard", call)
    parts = set(found["plan"]) - {"count_bytes", "bytes_received", "busiest_bytes"}
    given = ("shape", "dtype", "source", "destination", "efficiency", "seconds_from", "bytes_by_device")
    check(plan, found, given=(*given, *parts), renamed=("plan",))
    check(plan.steps[0], found["plan"]["steps"][0])
    bytes_by_device = ("total_bytes", "busiest_bytes")
    check(plan.lower_bound, found["lower_bound"], given=("bytes_by_device",), renamed=bytes_by_device)


def test_search(monkeypatch):
    call = lambda: suggest(SHAPE, NODE, batch=64, sequence=4096, top=1, progress=False)  # noqa: E731
    suggestions, found = recorded(monkeypatch, "search_training", call)
    lists = ("options", "front", "nearest")
    check(suggestions.space, found, given=("choices", "max_tensor", "memory_limit"), renamed=lists)


def test_what_the_core_reads():
    """A field that the core does not know would be ignored."""
    space = {field.name for field in fields(TrainingConfig)}
    efficiency = Efficiency.ideal()._described()
    found = _planner.search_training(vars(SHAPE), NODE, space_of(CONFIG), efficiency, None)["options"][0]
    dtypes = {"parameter_dtype", "gradient_dtype", "activation_dtype", "parameter_dtypes", "gradient_dtypes"}
    bytes_of = {"parameter_bytes", "gradient_bytes", "activation_bytes"}
    assert space - dtypes - {"parameter_scale"} == set(found["config"]) - bytes_of
    assert set(Efficiency.ideal()._described()) == {field.name for field in fields(Efficiency)} - {"sources"}


def space_of(config: TrainingConfig) -> dict[str, Any]:
    """Returns a space of one configuration on 8 devices."""
    described = config._described(8)
    searched = ("tensor", "context", "pipeline", "chunks", "expert", "microbatch", "zero", "optimizer", "recompute")
    return {
        "base": described,
        "devices": [8],
        **{name: [described[name]] for name in searched},
        "zero_shards": [0],
        "context_method": [("ring", 1.0)],
        "recompute_parts": [1.0],
        "recompute_layers": [],
        "offload_optimizer": [False],
        "offload_activations": [False],
        "interleaved_overlap": 1.0,
        "memory_limit": 80e9,
        "host_limit": 0.0,
        "top": 1,
    }
