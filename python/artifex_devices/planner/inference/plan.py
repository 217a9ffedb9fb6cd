# SPDX-License-Identifier: Apache-2.0
"""Plans of inference: memory, latency and throughput. Immutable."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, count_text, seconds_text
from artifex_devices._core import Cluster
from artifex_devices.planner.report import Report, Summary, picked, with_model
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training import Efficiency, factor_facts


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
        roofline: Seconds at published rates.
        expected: Seconds with the factors of `efficiency`.
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

    def _summary(self) -> Summary:
        kinds = (("prefill", "prefill of a batch"), ("decode", "one token"), ("last_decode", "the last token"))
        rows = [
            (text, seconds_text(getattr(self.expected, name)), seconds_text(getattr(self.roofline, name)))
            for name, text in (*kinds, ("request", "a complete answer"))
        ]
        rows.append(
            ("tokens/s", count_text(self.expected.tokens_per_second), count_text(self.roofline.tokens_per_second))
        )
        below = [
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
            *factor_facts(self.efficiency, sharp=False),
        ]
        title = f"{self.model.name}, inference on {self.cluster.name}"
        return Summary(title, (), ("", "expected", "bound"), rows, below, details)

    def _content(self) -> dict[str, object]:
        sizes = ("tensor", "pipeline", "expert", "batch", "prompt", "output", "replicas")
        return {
            "kind": "inference",
            "model": self.model.name,
            "cluster": self.cluster.name,
            **picked(self, *sizes),
            "memory": {**picked(self, "parameters", "cache", "working", "available"), "bytes": self.memory},
            "fits": self.fits,
            **picked(self, "largest_batch", "longest_context"),
            "seconds": {"roofline": asdict(self.roofline), "expected": asdict(self.expected)},
            "efficiency": self.efficiency._content()["factors"],
            **({"notes": list(self.model.notes)} if self.model.notes else {}),
        }
