# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of inference: prefill, decoding, KV cache."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from artifex_devices import _planner
from artifex_devices._base.checks import check_choice, check_int
from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import cluster_of
from artifex_devices.planner.inference.plan import InferencePlan, InferenceSeconds
from artifex_devices.planner.shape import ModelLike, shape_of
from artifex_devices.planner.training import FORMATS, Efficiency, checked_efficiency, itemsize_of


def plan_inference(
    model: ModelLike,
    cluster: str | Cluster,
    *,
    batch: int,
    prompt: int,
    output: int,
    tensor: int = 1,
    pipeline: int = 1,
    expert: int = 1,
    parameter_dtype: DTypeLike | None = None,
    cache_dtype: DTypeLike | None = "bfloat16",
    dtype: str = "bfloat16",
    efficiency: Efficiency | None = None,
) -> InferencePlan:
    """Plans memory, latency and throughput of serving a model with a KV cache.

    Decoding reads all parameters and the cache of all sequences for each token; products take the longer of FLOPs and
    bytes. Replicas of tensor x pipeline devices fill the cluster.

    Args:
        model: A name of `models.SHAPES`, an id on the Hugging Face Hub, the path of a config.json, of its folder or of
            a TOML file, or a shape.
        cluster: Cluster whose devices are used, all of them, or a text as `cluster.from_text` takes.
        batch: Number of sequences that a stage decodes at once.
        prompt: Number of tokens of a prompt.
        output: Number of tokens of an answer.
        tensor: Number of devices that share each matrix.
        pipeline: Number of stages of layers.
        expert: Number of devices over which the experts of a layer are spread: 1 or `tensor`.
        parameter_dtype: Dtype of parameters in memory; None: as a quantized checkpoint stores them
            (`TransformerShape.parameter_bytes`), else bfloat16.
        cache_dtype: Dtype of the KV cache.
        dtype: Number format of products.
        efficiency: Factors of the expected seconds, by default `Efficiency.of(cluster)`.

    Returns:
        An InferencePlan; `print` shows it.

    Raises:
        ValueError: The model is unknown, or values do not fit the model or the cluster; the text names all of them.
        TypeError: An argument has the wrong type.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices.planner import plan_inference
        >>> plan = plan_inference("llama-3-70b", "8 x h100", batch=32, prompt=1024, output=512, tensor=8)
        >>> plan.fits, plan.replicas, plan.cache == 32 * 1536 * 80 * 2 * 128 * 2
        (True, 1, True)
    """
    name = "plan_inference"
    shape, network = shape_of(name, model), cluster_of(name, cluster)
    factors = checked_efficiency(name, efficiency, network)
    given = {"batch": batch, "prompt": prompt, "output": output}
    given |= {"tensor": tensor, "pipeline": pipeline, "expert": expert}
    sizes: dict[str, Any] = {key: check_int(name, key, value, minimum=1, maximum=2**31) for key, value in given.items()}
    check_choice(name, "dtype", dtype, FORMATS)
    stored = shape.parameter_bytes or 2
    config = {
        **sizes,
        "parameter_bytes": stored if parameter_dtype is None else itemsize_of(name, "parameter_dtype", parameter_dtype),
        "cache_bytes": itemsize_of(name, "cache_dtype", cache_dtype),
        "dtype": dtype,
    }
    found: dict[str, Any] = _planner.plan_inference(vars(shape), network, config, factors._described())
    seconds: dict[str, Any] = {key: InferenceSeconds(**found.pop(key)) for key in ("roofline", "expected")}
    return InferencePlan(model=shape, cluster=network, efficiency=factors, **sizes, **found, **seconds)
