# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
The compiled planner of artifex_devices. Use the names that artifex_devices.planner exports.
"""

import collections.abc
import typing

import numpy.typing

import artifex_devices._base.leaf_types
import artifex_devices._core

__all__: list[str] = [
    "COPY_TERMS",
    "PROGRAM_COLLECTIVES",
    "PROGRAM_TERMS",
    "batch_size_advice",
    "cache_elements",
    "cluster_of_device",
    "collective_bytes",
    "collective_terms",
    "copy_terms",
    "critical_batch",
    "default_efficiency",
    "derived_batch_size",
    "drill_failures",
    "efficiency_mistakes",
    "exact_critical_batch",
    "executor_for",
    "fit_profile",
    "fit_relative",
    "fit_training",
    "fits_in_memory",
    "ideal_efficiency",
    "max_memory_batch_size",
    "mesh_groups",
    "mesh_shapes",
    "network_of_device",
    "pipeline_timeline",
    "plan_collective",
    "plan_inference",
    "plan_reshard",
    "plan_step",
    "plan_training",
    "profile_parts",
    "published_efficiency",
    "reshard_copies",
    "reshard_ingress",
    "reshard_svg",
    "search_training",
    "shape_parameters",
    "shape_problems",
    "step_mistakes",
    "suggest_steps",
    "suggestion_candidates",
    "tensor_elements",
    "training_collective_seconds",
    "training_groups",
    "training_messages",
    "validate_batch_size",
]

def batch_size_advice(hardware_type: str) -> tuple[int, int, int, int | None, str]: ...
def cache_elements(shape: dict[str, typing.Any], tokens: int) -> int: ...
def cluster_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster | None: ...
def collective_bytes(op: str, bytes: float, devices: int) -> dict[str, typing.Any]: ...
def collective_terms(
    op: str, bytes: float, devices: int, groups: int, executor: str, cache_bytes: int
) -> list[float]: ...
def copy_terms(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cache_bytes: int,
) -> tuple[list[float], list[tuple[int, int, int]]]: ...
def critical_batch(peak_flops: float, memory_bandwidth: float, weight_bytes: float) -> float: ...
def default_efficiency(cluster: artifex_devices._core.Cluster) -> dict[str, tuple[float, str]]: ...
def derived_batch_size(hardware: str) -> tuple[str, str, int, int, int, str] | None: ...
def drill_failures(model: dict[str, typing.Any]) -> dict[str, typing.Any]: ...
def efficiency_mistakes(efficiency: dict[str, typing.Any]) -> str: ...
def exact_critical_batch(
    peak_flops: float,
    memory_bandwidth: float,
    inputs: int,
    outputs: int,
    input_bytes: float,
    weight_bytes: float,
    output_bytes: float,
) -> float | None: ...
def executor_for(op: str, bytes: float, devices: int, threads_bytes: float) -> str: ...
def fit_profile(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    stage: int,
    parts: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    source: str,
) -> dict[str, typing.Any]: ...
def fit_relative(
    terms: collections.abc.Sequence[collections.abc.Sequence[float]], seconds: collections.abc.Sequence[float]
) -> tuple[list[float], list[float]]: ...
def fit_training(
    steps: collections.abc.Sequence[
        tuple[dict[str, typing.Any], artifex_devices._core.Cluster, dict[str, typing.Any], float]
    ],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]: ...
def fits_in_memory(
    shape: dict[str, typing.Any], cluster: artifex_devices._core.Cluster, space: dict[str, typing.Any], devices: int
) -> bool: ...
def ideal_efficiency() -> dict[str, tuple[float, str]]: ...
def max_memory_batch_size(free_bytes: int, bytes_per_example: int, model_state_bytes: int) -> int: ...
def mesh_groups(mesh: artifex_devices._core.Mesh, axes: collections.abc.Sequence[int]) -> list[list[int]]: ...
def mesh_shapes(devices: int, most_axes: int) -> list[list[int]]: ...
def network_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster | None: ...
def pipeline_timeline(
    schedule: str,
    microbatches: int,
    chunks: int,
    forward: collections.abc.Sequence[float],
    backward: collections.abc.Sequence[float],
) -> list[artifex_devices._base.leaf_types.Record]: ...
def plan_collective(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    axes: collections.abc.Sequence[str],
    groups: collections.abc.Sequence[collections.abc.Sequence[int]],
    pairs: collections.abc.Sequence[tuple[int, int]],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]: ...
def plan_inference(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]: ...
def plan_reshard(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
    memory_limit: int | None,
    strategy: str | None,
    efficiency: dict[str, typing.Any] | None,
) -> dict[str, typing.Any]: ...
def plan_step(
    model: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    mesh: artifex_devices._core.Mesh,
    axis_names: collections.abc.Sequence[str],
    rules: collections.abc.Sequence[int],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]: ...
def plan_training(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    devices: int,
) -> dict[str, typing.Any]: ...
def profile_parts(spans: collections.abc.Sequence[tuple[str, float, float]], steps: int) -> dict[str, typing.Any]: ...
def published_efficiency(cluster: artifex_devices._core.Cluster) -> dict[str, tuple[float, str]]: ...
def reshard_copies(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
) -> list[tuple[int, int, tuple[tuple[int, int], ...], int]]: ...
def reshard_ingress(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
) -> tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[typing.Any]]: ...
def reshard_svg(
    title: str,
    steps: collections.abc.Sequence[str],
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
    is_copies: bool,
    bytes_by_link: collections.abc.Sequence[tuple[str, int]],
) -> str: ...
def search_training(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    space: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    progress: collections.abc.Callable[[int], None] | None,
) -> dict[str, typing.Any]: ...
def shape_parameters(shape: dict[str, typing.Any]) -> dict[str, typing.Any]: ...
def shape_problems(shape: dict[str, typing.Any]) -> list[str]: ...
def step_mistakes(model: dict[str, typing.Any]) -> list[str]: ...
def suggest_steps(
    model: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
    overlaps: bool,
    top: int,
    efficiency: dict[str, typing.Any],
    progress: collections.abc.Callable[[int], None] | None,
) -> dict[str, typing.Any]: ...
def suggestion_candidates(
    model: dict[str, typing.Any],
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
) -> int: ...
def tensor_elements(shape: dict[str, typing.Any]) -> typing.Any: ...
def training_collective_seconds(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    devices: int,
    efficiency: dict[str, typing.Any],
    sharp: bool = False,
) -> float: ...
def training_groups(space: dict[str, typing.Any]) -> int: ...
def training_messages(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
) -> list[dict[str, typing.Any]]: ...
def validate_batch_size(
    batch_size: int,
    hardware: str,
    min_batch_size: int,
    optimal_batch_size: int,
    critical_batch_size: int,
    warn_suboptimal: bool,
) -> tuple[bool, str]: ...

COPY_TERMS: tuple[typing.Any, ...] = (
    "calls",
    "calls on workers",
    "copies",
    "alone",
    "cached",
    "warm",
    "memory",
    "read in 4 B",
    "read in 32 B",
    "read in 64 B",
    "read in 512 B",
    "written in 4 B",
    "written in 32 B",
    "written in 64 B",
    "written in 512 B",
)
PROGRAM_COLLECTIVES: tuple[typing.Any, ...] = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")
PROGRAM_TERMS: tuple[typing.Any, ...] = (
    "cooperative programs",
    "cooperative participants",
    "threads programs",
    "threads participants",
    "results",
    "added in caches",
    "added from memory",
)
