# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of inference: prefill, decoding, KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices import _planner
from artifex_devices._base.checks import check_choice, check_int
from artifex_devices._core import Cluster
from artifex_devices.planner.arguments import cluster_of
from artifex_devices.planner.inference.plan import InferencePlan, InferenceSeconds
from artifex_devices.planner.shape import ModelLike, TransformerShape, shape_of
from artifex_devices.planner.shape.transformer import PLAIN_BYTES, TENSOR_KINDS
from artifex_devices.planner.training import FORMATS, Efficiency, checked_efficiency, itemsize_of
from artifex_devices.planner.training.tensor_dtypes import checked_dtypes


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
    parameter_dtypes: Mapping[str, DTypeLike | None] | None = None,
    cache_dtype: DTypeLike | None = "bfloat16",
    dtype: str = "bfloat16",
    efficiency: Efficiency | None = None,
) -> InferencePlan:
    """Plans memory, latency and throughput of serving a model with a KV cache.

    Prefill is the forward pass of a training step. A decoding step reads each matrix once for a batch, of experts those
    that the batch uses, and the cache of each sequence. Each product takes the time of its bytes or of its FLOPs,
    whichever is longer. Replicas of tensor x pipeline devices fill the cluster.

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
            (`TransformerShape.quantized_bytes`), else bfloat16.
        parameter_dtypes: Dtypes of some kinds of tensors: "embedding", "head", "norm", "attention", "mlp", "router" and
            "expert".
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
    config = {
        **sizes,
        "parameter_bytes": _parameter_bytes(name, shape, parameter_dtype, parameter_dtypes or {}),
        "cache_bytes": itemsize_of(name, "cache_dtype", cache_dtype),
        "dtype": dtype,
    }
    found: dict[str, Any] = _planner.plan_inference(vars(shape), network, config, factors._described())
    seconds: dict[str, Any] = {key: InferenceSeconds(**found.pop(key)) for key in ("roofline", "expected")}
    return InferencePlan(model=shape, cluster=network, efficiency=factors, **sizes, **found, **seconds)


def _parameter_bytes(
    operation: str, shape: TransformerShape, dtype: DTypeLike | None, dtypes: Mapping[str, DTypeLike | None]
) -> dict[str, float]:
    """Returns the bytes of a parameter of each kind of tensor: of the arguments, else of the checkpoint."""
    if dtype is None:
        sizes: dict[str, float] = dict.fromkeys(TENSOR_KINDS, PLAIN_BYTES)
        if shape.quantized_bytes > 0:
            sizes |= dict.fromkeys(shape.quantized_kinds, shape.quantized_bytes)
    else:
        sizes = dict.fromkeys(TENSOR_KINDS, itemsize_of(operation, "parameter_dtype", dtype))
    given = checked_dtypes(operation, "parameter_dtypes", dtypes)
    return sizes | {kind: itemsize_of(operation, "parameter_dtypes", each) for kind, each in given.items()}
