# SPDX-License-Identifier: Apache-2.0
"""The analytic planner of inference: prefill, decoding, KV cache."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_choice, check_int, check_type
from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Layout, Report, picked
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training import FORMATS, Efficiency, checked_efficiency, checked_shape, itemsize_of


@public("artifex_devices.planner")
@dataclass(frozen=True)
class InferenceSeconds:
    """Seconds of a replica.

    Attributes:
        prefill: Seconds of the prompts of a batch: the time to the first token.
        decode: Seconds of one token of each sequence, with half of the answer written.
        last_decode: Seconds of the last token.
        request: Seconds of a complete answer.
        tokens_per_second: Tokens that all replicas write in a second while they decode.
    """

    prefill: float
    decode: float
    last_decode: float
    request: float
    tokens_per_second: float


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class InferencePlan(Report):
    """Memory, latency and throughput of serving a model; `print` shows them.

    Attributes:
        shape: The model.
        cluster: The devices.
        tensor: Devices that share each matrix.
        pipeline: Stages of layers of a replica.
        expert: Devices over which the experts of a layer are spread.
        batch: Sequences that a stage decodes at once.
        prompt: Tokens of a prompt.
        output: Tokens of an answer.
        replicas: Number of replicas.
        parameters: Bytes of parameters of a device.
        cache: Bytes of the KV cache of a device, all answers complete.
        working: Bytes of the largest layer's activations and the logits.
        available: Bytes of memory of a device.
        roofline: Seconds at published rates.
        expected: Seconds with the factors of `efficiency`.
        largest_batch: Largest number of sequences of a stage that fits, with this prompt and output.
        longest_context: Largest number of tokens of a sequence whose cache fits, with this batch.
        efficiency: Factors of the expected seconds.
    """

    shape: TransformerShape
    cluster: Cluster
    tensor: int
    pipeline: int
    expert: int
    batch: int
    prompt: int
    output: int
    replicas: int
    parameters: int
    cache: int
    working: int
    available: int
    roofline: InferenceSeconds
    expected: InferenceSeconds
    largest_batch: int
    longest_context: int
    efficiency: Efficiency

    @property
    def memory(self) -> int:
        """Bytes of a device."""
        return self.parameters + self.cache + self.working

    @property
    def fits(self) -> bool:
        """Whether all fits in the memory of a device."""
        return self.memory <= self.available

    def _layout(self) -> Layout:
        kinds = (("prefill", "prefill of a batch"), ("decode", "one token"), ("last_decode", "the last token"))
        rows = [
            (text, seconds_text(getattr(self.roofline, name)), seconds_text(getattr(self.expected, name)))
            for name, text in (*kinds, ("request", "a complete answer"))
        ]
        facts = [
            ("spread", f"{self.replicas} replicas of tensor {self.tensor} x pipeline {self.pipeline}"),
            ("requests", f"batches of {self.batch}, {self.prompt} tokens in, {self.output} out"),
            (
                "memory",
                f"{bytes_text(self.memory)} of {bytes_text(self.available)} on a device: "
                f"{'fits' if self.fits else 'does not fit'}; parameters {bytes_text(self.parameters)}, cache "
                f"{bytes_text(self.cache)}, working {bytes_text(self.working)}",
            ),
            ("limits", f"batch at most {self.largest_batch}, or a context of at most {self.longest_context} tokens"),
            ("tokens/s", f"{count_text(self.expected.tokens_per_second)} expected (model), at most "
                         f"{count_text(self.roofline.tokens_per_second)} at published rates (table)"),
        ]  # fmt: skip
        title = f"{self.shape.name}, inference on {self.cluster.name}"
        return Layout(title, facts, ("", "roofline", "expected"), rows)

    def _content(self) -> dict[str, Any]:
        sizes = ("tensor", "pipeline", "expert", "batch", "prompt", "output", "replicas")
        return {
            "kind": "inference",
            "model": self.shape.name,
            "cluster": self.cluster.name,
            **picked(self, *sizes),
            "memory": {**picked(self, "parameters", "cache", "working", "available"), "bytes": self.memory},
            "fits": self.fits,
            **picked(self, "largest_batch", "longest_context"),
            "seconds": {"roofline": asdict(self.roofline), "expected": asdict(self.expected)},
            "efficiency": self.efficiency._content()["factors"],
        }


def plan_inference(
    shape: str | TransformerShape,
    cluster: Cluster,
    *,
    batch: int,
    prompt: int,
    output: int,
    tensor: int = 1,
    pipeline: int = 1,
    expert: int = 1,
    parameter_dtype: Any = "bfloat16",
    cache_dtype: Any = "bfloat16",
    dtype: str = "bfloat16",
    efficiency: Efficiency | None = None,
) -> InferencePlan:
    """Plans memory, latency and throughput of serving a model with a KV cache.

    Decoding reads all parameters and the cache of all sequences for each token; products take the longer of FLOPs and
    bytes. Replicas of tensor x pipeline devices fill the cluster.

    Args:
        shape: A name of `models.SHAPES`, or a shape.
        cluster: Cluster whose devices are used, all of them.
        batch: Number of sequences that a stage decodes at once.
        prompt: Number of tokens of a prompt.
        output: Number of tokens of an answer.
        tensor: Number of devices that share each matrix.
        pipeline: Number of stages of layers.
        expert: Number of devices over which the experts of a layer are spread: 1 or `tensor`.
        parameter_dtype: Dtype of parameters in memory.
        cache_dtype: Dtype of the KV cache.
        dtype: Number format of products.
        efficiency: Factors of the expected seconds; None means `Efficiency.of(cluster)`.

    Returns:
        An InferencePlan; `print` shows it.

    Raises:
        ValueError: The shape is unknown, or values do not fit the model or the cluster; the text names all of them.
        TypeError: An argument has the wrong type.
        RuntimeError: A rate of the cluster that is needed is not known.

    Example:
        >>> from artifex_devices import cluster
        >>> from artifex_devices.planner import plan_inference
        >>> plan = plan_inference("llama-3-70b", cluster.dgx("h100"), batch=32, prompt=1024, output=512, tensor=8)
        >>> plan.fits, plan.replicas, plan.cache == 32 * 1536 * 80 * 2 * 128 * 2
        (True, 1, True)
    """
    name = "plan_inference"
    shape = checked_shape(name, shape)
    check_type(name, "cluster", cluster, Cluster, "a Cluster", "make one by artifex_devices.cluster")
    factors = checked_efficiency(name, efficiency, cluster)
    given = {"batch": batch, "prompt": prompt, "output": output}
    given |= {"tensor": tensor, "pipeline": pipeline, "expert": expert}
    sizes: dict[str, Any] = {key: check_int(name, key, value, minimum=1, maximum=2**31) for key, value in given.items()}
    check_choice(name, "dtype", dtype, FORMATS)
    config = {
        **sizes,
        "parameter_bytes": itemsize_of(name, "parameter_dtype", parameter_dtype),
        "cache_bytes": itemsize_of(name, "cache_dtype", cache_dtype),
        "dtype": dtype,
    }
    found: dict[str, Any] = _planner.plan_inference(vars(shape), cluster, config, factors._described())
    seconds: dict[str, Any] = {key: InferenceSeconds(**found.pop(key)) for key in ("roofline", "expected")}
    return InferencePlan(shape=shape, cluster=cluster, efficiency=factors, **sizes, **found, **seconds)
