# SPDX-License-Identifier: Apache-2.0
"""Plans of inference: memory, latency and throughput. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.inference.published import decode_error_text, published_decode_error
from artifex_devices.planner.report import Report, Summary, picked, with_model
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training import Efficiency, factor_facts
from artifex_devices.planner.training.published import PublishedError

# Factors that do not act on a forward pass.
_IDLE = ("attention_backward", "host", "host_memory", "sharp", "step_seconds", "flash2")
# Parts of a decoding step.
DECODE_PARTS = {
    "products": "weights: bytes or FLOPs of the products",
    "attention": "KV cache: bytes or FLOPs of attention",
    "elementwise": "norms, activation functions, logits",
    "tensor": "all-reduces over the tensor axis",
    "pipeline": "messages between stages",
    "fixed": "starts and ends of kernels",
}


@public("artifex_devices.planner")
@dataclass(frozen=True)
class InferenceSeconds:
    """Seconds of a replica.

    Attributes:
        prefill: Seconds of the prompts of a batch: the time to the first token if they arrive at once.
        decode: Seconds from one token of a request to the next. They include the prompts of the other requests, which a
            server with continuous batching processes between two tokens.
        step: Seconds of one token of each sequence without other prompts, with half of the answer written.
        last_step: Seconds of the last token of each sequence.
        request: Seconds of a batch of complete answers, with their prompts.
        tokens_per_second: Tokens that all replicas write in a second, the time of prompts included.
        parts: Seconds of `step` by part: products, attention, elementwise, tensor, pipeline and fixed.
    """

    prefill: float
    decode: float
    step: float
    last_step: float
    request: float
    tokens_per_second: float
    parts: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", MappingProxyType(self.parts))

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "parts": dict(self.parts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The first pickles of version 0.1.0 have a step as `decode` and its last one as `last_decode`, without parts.
        older = {"step": state["decode"], "last_step": state.get("last_decode"), "parts": {}}
        fields = {key: value for key, value in (older | state).items() if key != "last_decode"}
        vars(self).update({**fields, "parts": MappingProxyType(dict(fields["parts"]))})

    def _content(self) -> dict[str, object]:
        return {**vars(self), "parts": dict(self.parts)}


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class InferencePlan(Report):
    """Memory, latency and throughput of serving a model; `print` shows them.

    Attributes:
        model: The model.
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
        memory: Bytes of a device: the sum of these three.
        available: Bytes of memory of a device.
        expected: Seconds with the factors of `efficiency`.
        roofline: Seconds at published rates: a bound.
        largest_batch: Largest number of sequences of a stage that fits, with this prompt and output.
        longest_context: Largest number of tokens of a sequence whose cache fits, with this batch.
        efficiency: Factors of the expected seconds.
    """

    model: TransformerShape
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
    memory: int
    available: int
    roofline: InferenceSeconds
    expected: InferenceSeconds
    largest_batch: int
    longest_context: int
    efficiency: Efficiency

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(with_model(state))

    @property
    def fits(self) -> bool:
        """Whether all fits in the memory of a device."""
        return self.memory <= self.available

    def _error(self) -> PublishedError | None:
        """Returns the error of expected times of decoding on published runs, or None where there is none."""
        return published_decode_error(self.cluster, has_experts=self.model.experts > 0, efficiency=self.efficiency)

    def _summary(self) -> Summary:
        kinds = (
            ("decode", "one token of a request"),
            ("step", "of it, a decoding step"),
            ("last_step", "the last step"),
            ("prefill", "prompts of a batch"),
            ("request", "a batch of answers"),
        )
        rows = [
            (text, seconds_text(getattr(self.expected, name)), seconds_text(getattr(self.roofline, name)))
            for name, text in kinds
        ]
        rows.append(
            ("tokens/s", count_text(self.expected.tokens_per_second), count_text(self.roofline.tokens_per_second))
        )
        rows += [
            (f"step: {text}", seconds_text(self.expected.parts[name]), seconds_text(self.roofline.parts[name]))
            for name, text in DECODE_PARTS.items()
            if self.expected.parts[name] > 0
        ]
        below = [
            ("error", decode_error_text(self._error(), has_experts=self.model.experts > 0)),
            (
                "memory",
                f"{bytes_text(self.memory)} of {bytes_text(self.available)} on a device: "
                f"{'fits' if self.fits else 'does not fit'}; parameters {bytes_text(self.parameters)}, cache "
                f"{bytes_text(self.cache)}, working {bytes_text(self.working)}",
            ),
            ("limits", f"batch at most {self.largest_batch}, or a context of at most {self.longest_context} tokens"),
            ("spread", f"{self.replicas} replicas of tensor {self.tensor} x pipeline {self.pipeline}"),
            ("requests", f"batches of {self.batch}, {self.prompt} tokens in, {self.output} out"),
            *(("note", note) for note in self.model.notes),
        ]
        details = [
            ("expected", "model: published rates (table) with the factors below"),
            ("bound", "published rates (table)"),
            *factor_facts(self.efficiency, _IDLE),
        ]
        title = f"{self.model.name}, inference on {self.cluster.name}"
        return Summary(title, (), ("", "expected", "bound"), rows, below, details)

    def _content(self) -> dict[str, object]:
        sizes = ("tensor", "pipeline", "expert", "batch", "prompt", "output", "replicas")
        error = self._error()
        return {
            "kind": "inference",
            "model": self.model.name,
            "cluster": self.cluster.name,
            **picked(self, *sizes),
            "memory": {**picked(self, "parameters", "cache", "working", "available"), "bytes": self.memory},
            "fits": self.fits,
            **picked(self, "largest_batch", "longest_context"),
            "seconds": {"expected": self.expected._content(), "roofline": self.roofline._content()},
            "error": None if error is None else asdict(error),
            "efficiency": self.efficiency._content()["factors"],
            **({"notes": list(self.model.notes)} if self.model.notes else {}),
        }
