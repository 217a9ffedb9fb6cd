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

def batch_size_advice(hardware_type: str) -> tuple[int, int, int, int | None, str]:
    """
    Returns (min, optimal, critical, max_memory or None, notes) for a HardwareType's value; batch sizes in examples.

    Raises:
        ValueError: `hardware_type` is not a HardwareType's value.
    """

def cache_elements(shape: dict[str, typing.Any], tokens: int) -> int:
    """
    Returns the number of elements in the KV cache of a sequence of `tokens` tokens.
    """

def cluster_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster | None:
    """
    Returns the Cluster that a device belongs to, or None.
    """

def collective_bytes(op: str, bytes: float, devices: int) -> dict[str, typing.Any]:
    """
    Returns a dict of the bytes that a device receives, and of the bytes of its input and result.
    """

def collective_terms(op: str, bytes: float, devices: int, groups: int, executor: str, cache_bytes: int) -> list[float]:
    """
    Returns the COPY_TERMS, then the PROGRAM_TERMS, of one program with one collective.
    """

def copy_terms(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cache_bytes: int,
) -> tuple[list[float], list[tuple[int, int, int]]]:
    """
    Returns (COPY_TERMS, [(memory from, memory to, bytes)]) of the direct copies between devices of this process.
    """

def critical_batch(peak_flops: float, memory_bandwidth: float, weight_bytes: float) -> float:
    """
    Returns the batch size from which arithmetic is the limit, if it is far smaller than the weight matrix's sides.
    """

def default_efficiency(cluster: artifex_devices._core.Cluster) -> dict[str, tuple[float, str]]:
    """
    Returns (number, source) of each factor of a cluster's chip, by name.
    """

def derived_batch_size(hardware: str) -> tuple[str, str, int, int, int, str] | None: ...
def drill_failures(model: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """
    Simulates failures of a training run. Takes a dict of times in seconds and counts, and returns a dict of intervals between checkpoints and of the outcomes of each policy.
    """

def efficiency_mistakes(efficiency: dict[str, typing.Any]) -> str:
    """
    Returns the text of every mistake in factors; empty without mistakes.
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
    Returns the batch size from which arithmetic is the limit, activations counted; None if memory always is.
    """

def executor_for(op: str, bytes: float, devices: int, threads_bytes: float) -> str:
    """
    Returns the executor that shard_map chooses for a collective of `bytes` bytes: "cooperative" or "threads".
    """

def fit_profile(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    stage: int,
    parts: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    source: str,
) -> dict[str, typing.Any]:
    """
    Fits the factors of a chip to the parts of a profiled step.

    Returns:
        dict of the factors (`efficiency`), the names of the `fitted` ones, `overlap`, the expected seconds `before` and
        `after` the fit, and `notes`.
    """

def fit_relative(
    terms: collections.abc.Sequence[collections.abc.Sequence[float]], seconds: collections.abc.Sequence[float]
) -> tuple[list[float], list[float]]:
    """
    Fits non-negative coefficients of terms to measured seconds by least squares of relative errors.

    Args:
        terms: One list of terms for each sample.
        seconds: Measured seconds of each sample.

    Returns:
        (coefficient of each term, relative error of each sample).
    """

def fit_training(
    steps: collections.abc.Sequence[
        tuple[dict[str, typing.Any], artifex_devices._core.Cluster, dict[str, typing.Any], float]
    ],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]:
    """
    Fits factors to measured training steps.

    Args:
        steps: (shape, cluster, configuration, measured seconds) of each step.
        efficiency: Factors to start from.

    Returns:
        dict of the factors (`efficiency`), the names of the `fitted` ones, and the `predicted` seconds of each step.
    """

def fits_in_memory(
    shape: dict[str, typing.Any], cluster: artifex_devices._core.Cluster, space: dict[str, typing.Any], devices: int
) -> bool:
    """
    Returns whether a configuration on `devices` devices of such hosts fits in the limits of a space.
    """

def ideal_efficiency() -> dict[str, tuple[float, str]]:
    """
    Returns (number, source) of each factor of ideal hardware without losses, by name.
    """

def max_memory_batch_size(free_bytes: int, bytes_per_example: int, model_state_bytes: int) -> int:
    """
    Returns the number of examples that fit in memory together with the model state, as a model estimates it.
    """

def mesh_groups(mesh: artifex_devices._core.Mesh, axes: collections.abc.Sequence[int]) -> list[list[int]]:
    """
    Returns the ids of the devices of each group along some axes of a mesh, given by number.
    """

def mesh_shapes(devices: int, most_axes: int) -> list[list[int]]:
    """
    Returns every list of 1 to `most_axes` factors, each 2 or more, whose product is `devices`; [1] for one device.
    """

def network_of_device(device: artifex_devices._core.Device) -> artifex_devices._core.Cluster | None:
    """
    Returns a Cluster that describes the links between the devices of a device's client, or None if they are unknown.

    It is the Cluster that the device belongs to, or describes the links of GPUs in the catalogue.
    """

def pipeline_timeline(
    schedule: str,
    microbatches: int,
    chunks: int,
    forward: collections.abc.Sequence[float],
    backward: collections.abc.Sequence[float],
) -> list[artifex_devices._base.leaf_types.Record]:
    """
    Returns a dict of each pass of a pipeline; times in seconds.
    """

def plan_collective(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    axes: collections.abc.Sequence[str],
    groups: collections.abc.Sequence[collections.abc.Sequence[int]],
    pairs: collections.abc.Sequence[tuple[int, int]],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]:
    """
    Returns a dict of the algorithms for one collective, fastest first, and of its lower bound.

    `groups` lists the ids of the devices in each group; if it is empty, the groups along `axes` of the cluster are used.
    """

def plan_inference(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]:
    """
    Returns a dict of the memory and the seconds of prefill and decoding.
    """

def plan_reshard(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
    memory_limit: int | None,
    strategy: str | None,
    efficiency: dict[str, typing.Any] | None,
) -> dict[str, typing.Any]:
    """
    Returns a dict of the plan from one sharding to another, and of the plan by the other strategy.
    """

def plan_step(
    model: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    mesh: artifex_devices._core.Mesh,
    axis_names: collections.abc.Sequence[str],
    rules: collections.abc.Sequence[int],
    efficiency: dict[str, typing.Any],
) -> dict[str, typing.Any]:
    """
    Returns a dict of the work, memory and seconds of a step on each device of a mesh.

    Args:
        model: Description of the step.
        cluster: Cluster that the devices belong to.
        mesh: Mesh of the cluster's devices.
        axis_names: Names of the mesh axes.
        rules: Mesh axes of each logical axis, one bit for each mesh axis.
        efficiency: Factors of the expected seconds.
    """

def plan_training(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    devices: int,
) -> dict[str, typing.Any]:
    """
    Returns a dict of the memory and seconds of a training step on the first `devices` devices of a cluster.
    """

def profile_parts(spans: collections.abc.Sequence[tuple[str, float, float]], steps: int) -> dict[str, typing.Any]:
    """
    Returns the seconds of one profiled step by kind, as a dict.

    Args:
        spans: (kind, begin, end) of each span, in seconds.
        steps: Number of steps that the spans cover.
    """

def published_efficiency(cluster: artifex_devices._core.Cluster) -> dict[str, tuple[float, str]]:
    """
    Returns (number, source) of each factor of a cluster's chip, by name, without fits to training runs.
    """

def reshard_copies(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
    cluster: artifex_devices._core.Cluster | None,
) -> list[tuple[int, int, tuple[tuple[int, int], ...], int]]:
    """
    Returns (source device, destination device, (begin, end) of each dimension, bytes) of every direct copy.
    """

def reshard_ingress(
    shape: collections.abc.Sequence[int],
    itemsize: int,
    source: artifex_devices._core.Sharding,
    destination: artifex_devices._core.Sharding,
) -> tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[typing.Any]]:
    """
    Returns two int64 ndarrays, with one element for each device of the destination.

    They hold the id of the device, and the number of bytes that it must receive at least.
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
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    space: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
    progress: collections.abc.Callable[[int], None] | None,
) -> dict[str, typing.Any]:
    """
    Searches a space for the configurations with the shortest steps.

    Returns:
        dict of lists of configurations (`options`, `front`, `nearest`), and of the numbers of examined configurations.
    """

def shape_parameters(shape: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """
    Returns the fields of ShapeParameters, as a dict.
    """

def shape_problems(shape: dict[str, typing.Any]) -> list[str]:
    """
    Returns every inconsistency in the sizes of a decoder, as one text each.
    """

def step_mistakes(model: dict[str, typing.Any]) -> list[str]:
    """
    Returns every inconsistency in a described step, as one text each.
    """

def suggest_steps(
    model: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
    overlaps: bool,
    top: int,
    efficiency: dict[str, typing.Any],
    progress: collections.abc.Callable[[int], None] | None,
) -> dict[str, typing.Any]:
    """
    Searches for the meshes and rules with the shortest step. Returns their plans and reasons in a dict.

    `meshes` has the axis sizes of each mesh, and its device ids by position.
    """

def suggestion_candidates(
    model: dict[str, typing.Any],
    meshes: collections.abc.Sequence[tuple[collections.abc.Sequence[int], collections.abc.Sequence[int]]],
    sharded_axes: collections.abc.Sequence[int],
) -> int:
    """
    Returns the number that `progress` of suggest_steps counts up to.
    """

def tensor_elements(shape: dict[str, typing.Any]) -> typing.Any:
    """
    Returns a dict of the number of parameters of each kind of tensor.
    """

def training_collective_seconds(
    op: str,
    bytes: float,
    cluster: artifex_devices._core.Cluster,
    devices: int,
    efficiency: dict[str, typing.Any],
    sharp: bool = False,
) -> float:
    """
    Returns the seconds that plan_training expects for a collective over the first devices of a cluster.

    With `sharp`, switches between nodes may compute the sums.
    """

def training_groups(space: dict[str, typing.Any]) -> int:
    """
    Returns the number that `progress` of search_training counts up to.
    """

def training_messages(
    shape: dict[str, typing.Any],
    cluster: artifex_devices._core.Cluster,
    config: dict[str, typing.Any],
    efficiency: dict[str, typing.Any],
) -> list[dict[str, typing.Any]]:
    """
    Returns a dict of each message of a training step that plan_training has accepted.
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
    Returns (is_valid, message) for a batch size on the named hardware with these recommended sizes, all in examples.
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
