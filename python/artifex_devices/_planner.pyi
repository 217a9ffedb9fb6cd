# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_stubs.py --generate from the built extension.
"""
The compiled planner of artifex_devices. Use the names that artifex_devices.planner exports.
"""

import collections.abc
import typing

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
    "efficiency_mistakes",
    "exact_critical_batch",
    "executor_for",
    "fit_profile",
    "fit_relative",
    "fit_training",
    "ideal_efficiency",
    "least_memory",
    "max_memory_batch_size",
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
    "training_collective_seconds",
    "training_groups",
    "validate_batch_size",
]

def batch_size_advice(hardware_type: str) -> tuple[int, int, int, int | None, str]:
    """
    (min, optimal, critical, max_memory or None, notes) of the table; batch sizes in examples.
    """

def cache_elements(shape: dict[typing.Any, typing.Any], tokens: int) -> int:
    """
    Elements of the KV cache of a sequence.
    """

def cluster_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster:
    """
    The Cluster that a device belongs to, or None.
    """

def collective_bytes(op: str, bytes: float, devices: int) -> tuple[float, float]:
    """
    (bytes that a device receives, bytes of its input and result) of a collective.
    """

def collective_terms(op: str, bytes: float, devices: int, groups: int, executor: str, cache_bytes: int) -> list[float]:
    """
    COPY_TERMS, then PROGRAM_TERMS, of one program with one collective.
    """

def copy_terms(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cache_bytes: int,
) -> tuple[typing.Any, ...]:
    """
    (COPY_TERMS, [(memory from, memory to, bytes)]) of the direct copies between devices of this process.
    """

def critical_batch(peak_flops: float, memory_bandwidth: float, weight_bytes: float) -> float:
    """
    Batch from which arithmetic is the limit, for batches far below the sides of the weight matrix.
    """

def default_efficiency(cluster: artifex_devices._core.Cluster) -> dict[typing.Any, typing.Any]:
    """
    (number, source) of each factor of a cluster's chip, by name.
    """

def derived_batch_size(hardware: str) -> typing.Any: ...
def efficiency_mistakes(efficiency: dict[typing.Any, typing.Any]) -> str:
    """
    Everything that is wrong with factors; empty if nothing.
    """

def exact_critical_batch(
    peak_flops: float,
    memory_bandwidth: float,
    inputs: int,
    outputs: int,
    input_bytes: float,
    weight_bytes: float,
    output_bytes: float,
) -> float | None:
    """
    The same with activations counted; None: never compute-bound.
    """

def executor_for(op: str, bytes: float, devices: int, threads_bytes: float) -> str:
    """
    The executor that shard_map chooses for such blocks.
    """

def fit_profile(
    shape: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[typing.Any, typing.Any],
    stage: int,
    busy: collections.abc.Mapping[str, float],
    alone: collections.abc.Mapping[str, float],
    idle: float,
    efficiency: dict[typing.Any, typing.Any],
    source: str,
) -> dict[typing.Any, typing.Any]:
    """
    Factors and overlap that fit the parts of a profiled step, expected seconds before and after, and notes.
    """

def fit_relative(
    terms: collections.abc.Sequence[collections.abc.Sequence[float]], seconds: collections.abc.Sequence[float]
) -> tuple[typing.Any, ...]:
    """
    (coefficients, relative errors): non-negative least squares of relative errors; one list of terms per sample.
    """

def fit_training(
    steps: collections.abc.Sequence[
        tuple[dict[typing.Any, typing.Any], artifex_devices._core.Cluster, dict[typing.Any, typing.Any], float]
    ],
    efficiency: dict[typing.Any, typing.Any],
) -> tuple[typing.Any, ...]:
    """
    (number, source) of each fitted factor by name, and the seconds of each step with them. `steps`: shape, cluster, configuration and measured seconds of each.
    """

def ideal_efficiency() -> dict[typing.Any, typing.Any]:
    """
    (number, source) of each factor without losses, by name.
    """

def least_memory(
    shape: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    space: dict[typing.Any, typing.Any],
    devices: int,
) -> typing.Any:
    """
    The configuration on so many devices of such hosts that needs the least of the limits of memory, or None.
    """

def max_memory_batch_size(free_bytes: int, bytes_per_example: int, model_state_bytes: int) -> int:
    """
    Number of examples that fit in memory beside the model state. A model, not a measurement.
    """

def mesh_shapes(devices: int, most_axes: int) -> list[list[int]]:
    """
    Every ordered product of 1 to `most_axes` factors of 2 or more.
    """

def network_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster:
    """
    What joins the devices of a client: their Cluster, or the links of GPUs of the catalogue; or None.
    """

def pipeline_timeline(
    schedule: str,
    microbatches: int,
    chunks: int,
    forward: collections.abc.Sequence[float],
    backward: collections.abc.Sequence[float],
) -> list[typing.Any]:
    """
    (stage, microbatch, chunk, is_backward, start, end) of each pass of a pipeline.
    """

def plan_collective(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    axes: collections.abc.Sequence[str],
    groups: collections.abc.Sequence[collections.abc.Sequence[int]],
    pairs: collections.abc.Sequence[tuple[int, int]],
) -> dict[typing.Any, typing.Any]:
    """
    Algorithms of one collective, cheapest first, and its bound, as a dict. `groups` empty: those along `axes`.
    """

def plan_inference(
    shape: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[typing.Any, typing.Any],
    efficiency: dict[typing.Any, typing.Any],
) -> dict[typing.Any, typing.Any]:
    """
    Memory and seconds of prefill and decoding, as a dict.
    """

def plan_reshard(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
    memory_limit: int | None,
    strategy: str | None,
) -> dict[typing.Any, typing.Any]:
    """
    A plan from one sharding to another, and the plan by the other strategy, as a dict.
    """

def plan_step(
    model: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    mesh: artifex_devices._core.Mesh,
    axis_names: collections.abc.Sequence[str],
    rules: collections.abc.Sequence[int],
) -> dict[typing.Any, typing.Any]:
    """
    Work, memory and seconds of a step on each device of a mesh, as a dict. `rules`: mesh axes as bits, one number for each logical axis.
    """

def plan_training(
    shape: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[typing.Any, typing.Any],
    efficiency: dict[typing.Any, typing.Any],
    devices: int,
) -> dict[typing.Any, typing.Any]:
    """
    Memory and seconds of a training step on the first `devices` of a cluster, as a dict.
    """

def profile_parts(spans: collections.abc.Sequence[tuple[str, float, float]], steps: int) -> tuple[typing.Any, ...]:
    """
    Seconds of a step by kind: busy and alone, then idle and all. `spans`: kind, begin and end of each.
    """

def published_efficiency(cluster: artifex_devices._core.Cluster) -> dict[typing.Any, typing.Any]:
    """
    (number, source) of each factor of a cluster's chip by name, without fits to training runs.
    """

def reshard_copies(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
) -> list[typing.Any]:
    """
    (source device, destination device, (begin, end) of each dimension, bytes) of every direct copy.
    """

def reshard_ingress(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
) -> tuple[typing.Any, ...]:
    """
    (ids of the destination's devices, bytes that each must receive at least): int64 ndarrays.
    """

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
) -> str:
    """
    Returns a reshard as a stand-alone SVG picture.
    """

def search_training(
    shape: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    space: dict[typing.Any, typing.Any],
    efficiency: dict[typing.Any, typing.Any],
    progress: typing.Any,
) -> dict[typing.Any, typing.Any]:
    """
    The best configurations of a space, as a dict.
    """

def shape_parameters(shape: dict[typing.Any, typing.Any]) -> dict[typing.Any, typing.Any]:
    """
    The arguments of ShapeParameters.
    """

def shape_problems(shape: dict[typing.Any, typing.Any]) -> list[str]:
    """
    Everything that is inconsistent in the sizes of a decoder, one text each.
    """

def step_mistakes(model: dict[typing.Any, typing.Any]) -> list[str]:
    """
    Everything that is inconsistent in a described step, one text each.
    """

def suggest_steps(
    model: dict[typing.Any, typing.Any],
    cluster: artifex_devices._core.Cluster,
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
    overlaps: bool,
    top: int,
    progress: typing.Any,
) -> dict[typing.Any, typing.Any]:
    """
    The best meshes and rules for a step, with plans and reasons. `meshes`: sizes, and device ids by position.
    """

def suggestion_candidates(
    model: dict[typing.Any, typing.Any],
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
) -> int:
    """
    The number that `progress` of suggest_steps counts up to.
    """

def training_collective_seconds(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    devices: int,
    efficiency: dict[typing.Any, typing.Any],
    sharp: bool = False,
) -> float:
    """
    Seconds of a collective over the first devices of a cluster, as plan_training prices it; with `sharp`, switches between nodes may sum.
    """

def training_groups(space: dict[typing.Any, typing.Any]) -> int:
    """
    The number that `progress` of search_training counts up to.
    """

def validate_batch_size(
    batch_size: int,
    hardware: str,
    min_batch_size: int,
    optimal_batch_size: int,
    critical_batch_size: int,
    warn_suboptimal: bool,
) -> tuple[bool, str]:
    """
    (is_valid, message) for a batch size on hardware of this name with these recommended sizes, all in examples.
    """

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
