# SPDX-License-Identifier: Apache-2.0
"""Writes a pickle of every picklable class to tests/data/pickles/VERSION, which later versions must read.

A file is one value in the protocols 2 to 5, one after the other. Written once for a version, then never again:
tests/python/array/test_old_pickles.py reads those of all versions.

Example:
    JAX_NUM_CPU_DEVICES=8 python tools/make_pickles.py
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
from artifex_devices import (
    P,
    audit,
    batch_measurement,
    calibration,
    checkpoint,
    cluster,
    device_manager,
    device_placement,
    doctor,
    errors,
    layout,
    memory,
    mesh_utils,
    models,
    planner,
    prefetch,
    roofline,
    tree_util,
    xla_client,
)
from artifex_devices._hardware import find as accelerator_report

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "pickles"
PROTOCOLS = (2, 3, 4, 5)
_MADE: dict[str, Callable[[], Any]] = {}


def _value(make: Callable[[], Any]) -> Callable[[], Any]:
    _MADE[make.__name__] = make
    return make


def values() -> dict[str, Any]:
    """All objects by name, created in a world of 8 CPU devices."""
    return {name: make() for name, make in _MADE.items()}


def _mesh() -> ad.Mesh:
    return ad.Mesh(np.array(ad.devices()).reshape(2, 4), ("x", "y"))


def _over(*spec: Any, **more: Any) -> ad.NamedSharding:
    return ad.NamedSharding(_mesh(), P(*spec), **more)


@_value
def arrays() -> dict[str, ad.Array]:
    """Arrays of many dtypes and shardings, with -0.0, NaN payloads and subnormals."""
    numbers = np.arange(16).reshape(4, 4)
    bits = np.array([0x7FC12345, 0xFFA00001, 0x80000000, 1], np.uint32).view(np.float32)
    kinds = [*"?bhilBHILefdFD", *(getattr(ml_dtypes, name) for name in ("bfloat16", "float8_e4m3fn", "int4"))]
    made = {np.dtype(kind).name: ad.device_put((numbers % 2).astype(kind), _over("x", "y")) for kind in kinds}
    return made | {
        "bits": ad.device_put(bits, _over("y")),
        "uncommitted": ad.device_put(numbers),
        "one device": ad.device_put(numbers, ad.devices()[3]),
        "replicated": ad.device_put(numbers, _over()),
        "both axes": ad.device_put(np.arange(16), _over(("x", "y"))),
        "host memory": ad.device_put(numbers, _over("x", memory_kind="pinned_host")),
        "short at the end": ad.device_put(np.arange(7), _over("y", uneven="last-short")),
        "column-major": ad.device_put(numbers, layout.Format(layout.Layout((1, 0)), _over("x"))),
        "scalar": ad.device_put(np.float32(2.5)),
        "empty": ad.device_put(np.zeros((0, 3), np.int16)),
    }


@_value
def audits() -> list[Any]:
    """Audits of a program and of shardings, and what changed."""
    gather = audit.Collective(
        "all-gather.1",
        "all_gather",
        ("bfloat16",),
        ((4, 8),),
        192,
        ((0, 1, 2, 3),),
        ("data",),
        3,
        file="step.py",
        line=7,
    )
    found = audit.Finding(
        "axis of size 1", gather, "all-gather.1", "", "step.py", 7, 0, 3, "It moves nothing", "Drop it"
    )
    mesh = (("data", 4),)
    program = audit.Program("HLO text", "step", 4, "cpu", True, mesh, (gather,), ("a note",), all_findings=(found,))
    old = audit.shardings({"w": (P("data"), (8, 4))}, mesh={"data": 4})
    new = audit.shardings({"w": (P(), (8, 4)), "b": (P(P.UNCONSTRAINED), (4,))}, mesh={"data": 4}, at_least=1)
    row = audit.SummaryRow("all_gather", ("data",), ("bfloat16",), 192, 3, 1, ("step.py:7",))
    summary = audit.ProgramSummary(mesh, (row,))
    return [program, summary, old, *new.notes, audit.diff(old, new), audit.at_most(2), audit.Total(1, 3, 576, False)]


@_value
def comparisons() -> list[Any]:
    """A program beside a plan, and messages of a training plan."""
    row = audit.ComparedRow("all_gather", "data", 16, None, 1.5e6, 2000000, True, 2.5e-5)
    message = planner.TrainingCollective("send", ("data", "context"), 8, 4096, 12.5, 1e-4)
    return [audit.Comparison("step", (row,)), message]


@_value
def conversions() -> list[Any]:
    """Rules, a conversion of a checkpoint, what differs, and what metadata says."""
    rules = checkpoint.rules
    part = checkpoint.PartMetadata("model.safetensors", (0,), (2,), 8)
    array = checkpoint.ArrayMetadata((2,), np.dtype(np.float32), "F32", (part,))
    named = [checkpoint.ArrayDifference("w", "float32 (2,)", "bfloat16 (2,)", 1, 0.5)]
    named.append(checkpoint.ArrayDifference("v", None, "int8 ()"))
    return [
        checkpoint.Comparison("/a", "/b", 1, 4, tuple(named), ("step",), ("note",)),
        checkpoint.Conversion("/b", "npz", ("arrays.npz",), 8, 0.5, "table"),
        [
            rules.split("{layer}.qkv", ["{layer}.q", "{layer}.k"], axis=0, sizes=[8, 4], groups=2),
            rules.transpose("*.w", (1, 0)),
            rules.constant("step", (2,), "bfloat16", 1.5),
            rules.scale("*.w", 0.5),
            rules.stack("a.{layer}", "a", "layer"),
        ],
        checkpoint.CheckpointMetadata("/a", {"w": array}, {"step": 3}, 1),
    ]


@_value
def devices() -> list[Any]:
    """Devices, their memories and lists of them."""
    found = ad.devices()
    memories = [each.memory(kind) for each in found[:2] for kind in ("device", "pinned_host", "unpinned_host")]
    return [found, memories, xla_client.DeviceList(tuple(found[2:5]))]


@_value
def meshes() -> list[Any]:
    """Meshes, concrete and abstract, with axis types and without."""
    explicit, auto = ad.AxisType.Explicit, ad.AxisType.Auto
    return [
        _mesh(),
        ad.Mesh(np.array(ad.devices())[::-1].reshape(4, 2), (("a", 1), 2.5)),
        ad.Mesh(np.array(ad.devices()).reshape(8, 1), ("x", "y"), (explicit, auto)),
        ad.Mesh(np.empty(0, object), "x"),
        ad.AbstractMesh((2, 4), ("x", "y"), (explicit, auto)),
        list(ad.AxisType),
    ]


@_value
def shardings() -> list[Any]:
    """Shardings and their specs."""
    return [
        P("x", None, ("y", "z"), P.UNCONSTRAINED),
        P(),
        _over("x", None),
        _over(("x", "y"), memory_kind="unpinned_host"),
        _over("y", uneven="last-short"),
        ad.NamedSharding(ad.AbstractMesh((2, 4), ("x", "y")), P("x")),
        ad.SingleDeviceSharding(ad.devices()[2]),
        ad.SingleDeviceSharding(ad.devices()[2], memory_kind="pinned_host"),
    ]


@_value
def structs() -> list[Any]:
    """ShapeDtypeStruct."""
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    return [ad.ShapeDtypeStruct((2, 4), np.float32), ad.ShapeDtypeStruct((4,), bfloat16, sharding=_over("y"))]


@_value
def layouts() -> list[Any]:
    """Layouts of JAX and of XLA."""
    rotated = xla_client.Layout.parse("{1,0,2}")
    column_major = layout.Layout((1, 0))
    x = ad.device_put(np.zeros((2, 2)), layout.Format(column_major, _over()))
    return [rotated, xla_client.PjRtLayout(rotated), column_major, x.format]


@_value
def assignments() -> list[Any]:
    """Assignments of devices to replicas and computations."""
    return [xla_client.DeviceAssignment.create(np.arange(8, dtype=np.int32).reshape(2, 4))]


@_value
def topologies() -> list[Any]:
    """A topology of another machine."""
    with ad.simulate("pack:2 numa:1 core:2 pu:1"):
        return [xla_client.get_topology_for_devices(ad.devices())]


@cache
def _pod() -> Any:
    return cluster.tpu("v5e", (4, 4))


@_value
def clusters() -> list[Any]:
    """Simulated machines."""
    return [_pod(), cluster.gpus("h100", nodes=2)]


@_value
def accelerators() -> list[Any]:
    """Clusters of the catalogue, with their rates."""
    return list(roofline.accelerators()[:2])


def _of_pod() -> ad.Mesh:
    return ad.Mesh(mesh_utils.create_device_mesh((4, 4), _pod().devices()), ("data", "tensor"))


@_value
def step_models() -> list[Any]:
    """Models of steps."""
    return [models.SHAPES["mixtral-8x7b"], models.mlp(embed=64, mlp=256, layers=2, tokens=1024)]


@_value
def step_plan() -> Any:
    """plan_step."""
    return planner.plan_step(step_models()[1], _of_pod(), {"batch": "data", "mlp": "tensor"})


@_value
def suggestions() -> Any:
    """suggest."""
    return planner.suggest(step_models()[1], _pod(), top=2)


@_value
def plans() -> list[Any]:
    """Plans of reshards and collectives."""
    source, destination = _over("x", "y"), _over("y", "x")
    return [
        planner.plan_reshard((8, 8), np.float32, source, destination),
        planner.plan_collective("all_reduce", 1 << 20, "x", _pod()),
    ]


@_value
def training() -> list[Any]:
    """Configurations, plans, fits and suggestions of training runs, and a plan of inference."""
    node, ideal = cluster.dgx("h100"), planner.Efficiency.ideal()
    config = planner.TrainingConfig(batch=64, sequence=4096, zero=3, recompute="full")
    plan = planner.plan_training("llama-3-8b", node, config, efficiency=ideal, measured=4.0)
    gemm = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 4e6, "args": {"device": 0}}
    profile = planner.read_profile([gemm, {**gemm, "name": "mine", "ts": 4e6}], steps=2)
    pinned: dict[str, Any] = {"zero": 3, "tensor": 1, "context": 1, "pipeline": 1, "efficiency": ideal}
    return [
        models.SHAPES["llama-3-8b"].parameters,
        plan,
        planner.fit([plan], efficiency=ideal),
        planner.fit_profile(plan, profile, efficiency=ideal),
        planner.suggest("llama-2-7b", node, batch=8, sequence=4096, **pinned),
        planner.plan_inference("llama-3-8b", node, batch=8, prompt=128, output=64, tensor=2, efficiency=ideal),
    ]


@_value
def failure_plans() -> list[Any]:
    """Failures of a training run, with all policies."""
    config = planner.TrainingConfig(batch=64, sequence=4096, zero=3, recompute="full")
    run = planner.plan_training(
        "llama-3-8b", cluster.dgx("h100", nodes=4), config, efficiency=planner.Efficiency.ideal()
    )
    return [
        planner.plan_failures(
            run, mtbf_hours=100.0, save_seconds=30.0, restore_seconds=60.0, restart_seconds=600.0, spares=1
        )
    ]


@_value
def run_costs() -> Any:
    """The cost of a training run."""
    config = planner.TrainingConfig(batch=64, sequence=4096, zero=3, recompute="full")
    ideal = planner.Efficiency.ideal()
    return planner.plan_training("llama-3-8b", cluster.dgx("h100"), config, efficiency=ideal).cost_of_run("15T", 2.5)


@_value
def mesh_explanation() -> Any:
    """mesh_utils.explain."""
    return mesh_utils.explain(_of_pod())


@_value
def calibrations() -> list[Any]:
    """A calibration with invented numbers, and a check."""
    conditions = calibration.CalibrationConditions(
        "2026-11-22T14:00:00+00:00", "a processor", 2, 1, 1 << 25, 1 << 25, None, 0.5, 4.0, 1 << 26, 1 << 28,
        "2.0", "0.1.0", 10,
    )  # fmt: skip
    coefficients = MappingProxyType({name: 1e-9 * (i + 1) for i, name in enumerate(calibration.TERMS)})
    sample = calibration.Sample("a gather", MappingProxyType({"calls": 1.0}), 2e-6, 1e-7, 12, 2.2e-6)
    processes = calibration.ProcessLink(2, 1, "MPI", 1e-6, 1e9, 2e-6, 5e8, True)
    links = (calibration.Link(0, 0, 2e9),)
    made = calibration.Calibration(coefficients, links, 1e-10, processes, (sample,), conditions, True, ("a note",))
    row = calibration.CheckedRow("a reshard", "kept", 1 << 20, 8, 1e-3, 1.1e-3, 1.2e-3, 1e-4)
    return [made, calibration.CalibrationCheck(made, (row,), "2026-11-22", ("a note",))]


@_value
def rooflines() -> list[Any]:
    """Rooflines of the catalogue, and one with invented numbers."""
    rate = roofline.Rate(2e11, 1.9e11, 1e9, 0.05, 7, "np.matmul")
    conditions = roofline.Conditions(
        "2026-11-22", "a processor", "avx2", 2, 2, 8, True, 0.5, 3e9, None, 1 << 26, 1 << 25, "2.0", "0.1.0"
    )
    made = roofline.MeasuredRoofline(
        "cpu:0",
        MappingProxyType({"float32": rate, "float64": rate}),
        MappingProxyType({"float32": (rate,), "float64": (rate,)}),
        rate,
        (rate,),
        conditions,
        True,
        ("a note",),
    )
    return [made, roofline.roofline("h100"), roofline.RooflinePoint("batch 4", 12.5, 1e12)]


@_value
def batch_sizes() -> list[Any]:
    """Recommended and measured batch sizes."""
    b = batch_measurement
    use = b.MemoryUse(10, 20, 12, "bytes in use")
    probe = b.BatchProbe(8, "measured", 3, 0.1, 0.2, 0.3, 0.31, 0.01, {"cpu:0": use})
    fit = b.MemoryFit("cpu:0", 10.0, 2.0, 0.5, 1 << 20, 64, "bytes in use")
    model = b.ThroughputModel(0.01, 0.02, 1e3, 0.03, 0.05)
    found = b.BatchSizeMeasurement(
        16, "model", (8, 32), 12, 64, 32, 900.0, 1e3, 0.9, model, (fit,), (probe,), "high", "it fits", (), "2026-11-22"
    )
    recommended = device_placement.get_batch_size_recommendation(device_placement.HardwareType.CPU)
    return [recommended, list(device_placement.HardwareType), found]


@_value
def settings() -> list[Any]:
    """Configurations of devices and of XLA's client."""
    configuration = device_manager.DeviceConfiguration(memory_fraction=0.5, environment_variables={"A": "b"})
    capabilities = device_manager.DeviceCapabilities(device_manager.DeviceType.CPU, 8, 1024)
    enumerations = [device_manager.MemoryStrategy, device_manager.DeviceType, xla_client.HostBufferSemantics]
    return [
        configuration,
        capabilities,
        xla_client.GpuAllocatorConfig(),
        [list(each) for each in enumerations],
        list(memory.Space),
    ]


@_value
def reports() -> list[Any]:
    """Reports of doctor, prefetch, memory and accelerators."""
    link = accelerator_report.NvLink(0, True, "gpu", "0000:00:01.0")
    found = accelerator_report.FoundAccelerator(
        device_manager.DeviceType.GPU, "a GPU", device_placement.HardwareType.H100, None, "0000:00:01.0", None, 1 << 36,
        "9.0", 5e10, (0,), 0, (link,), (), ("cuda",), ("sysfs",), (),
    )  # fmt: skip
    report = doctor.Report("2026-11-22")
    report.sections["machine"] = doctor.Section("Machine", {"cores": doctor.Fact(2, "hwloc")})
    report.findings.append(doctor.Finding("few-cores", "hint", "what", "cost", "repair", ("machine.cores",)))
    return [
        accelerator_report.AcceleratorReport((found,), "550", "12.4", ()),
        report,
        prefetch.PrefetchStats(3, 0.1, 0.2, 0.3, 0.4),
        memory.ArrayRecord((2, 4), np.dtype(np.float32), 32, _over("x"), "a.py:3"),
    ]


@_value
def trees() -> list[Any]:
    """Keys, definitions of trees, partial functions."""
    keys = [
        tree_util.SequenceKey(1),
        tree_util.DictKey("a"),
        tree_util.GetAttrKey("b"),
        tree_util.FlattenedIndexKey(2),
    ]
    tree = {"a": [1, (2, None)], "b": {"c": 3}}
    return [keys, tree_util.tree_structure(tree), tree_util.Partial(max, 3), tree_util.default_registry]


@_value
def exceptions() -> list[BaseException]:
    """Each class of artifex_devices.errors."""
    return [vars(errors)[name]("what is wrong") for name in sorted(errors.__all__)]


def main() -> int:
    """Refuses to write a version twice."""
    folder = DATA / ad.__version__
    if folder.exists():
        print(f"make_pickles: {folder.name} is there already; pickles of a version are written once")
        return 1
    if ad.device_count() != 8:
        print(f"make_pickles: {ad.device_count()} devices; expected 8; set JAX_NUM_CPU_DEVICES=8")
        return 1
    made = values()
    folder.mkdir(parents=True)
    for name, value in made.items():
        file = io.BytesIO()
        for protocol in PROTOCOLS:
            pickle.dump(value, file, protocol)
        (folder / f"{name}.pickle").write_bytes(file.getvalue())
    print(f"make_pickles: {len(made)} files, {sum(each.stat().st_size for each in folder.iterdir())} bytes")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
    sys.exit(main())
