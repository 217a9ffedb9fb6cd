# SPDX-License-Identifier: Apache-2.0
"""Builds the tensors and operations of a step from einsums, in the order of the forward pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices.planner.step.model import Operation, Tensor

_AXES = {
    "b": "batch", "s": "sequence", "t": "kv_sequence", "d": "activation_embed", "k": "kv_heads", "g": "queries_per_kv",
    "h": "head_dim", "f": "mlp", "v": "vocab", "e": "experts", "c": "expert_batch", "r": "router", "n": "norm",
    "m": "mlp",
}  # fmt: skip


class StepBuilder:
    """Collects tensors and operations. Letters are dimensions, as in an einsum: _AXES has their logical axes."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        layers: int,
        dtype: DTypeLike | None,
        kept: Collection[str],
        *,
        is_training: bool = True,
    ) -> None:
        """`sizes` by letter; `kept` has the names of activations that are kept for the backward pass."""
        self.sizes = sizes
        self.layers = layers
        self.dtype = dtype
        self.kept = frozenset(kept)
        self.is_training = is_training
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []

    def add_tensor(
        self, name: str, letters: str, role: str = "activation", *, count: int = 0, is_on_chip: bool = False
    ) -> None:
        """Adds a tensor, one for each layer if `count` is 0."""
        axes = tuple("embed" if letter == "d" and role == "parameter" else _AXES[letter] for letter in letters)
        shape = tuple(self.sizes[letter] for letter in letters)
        is_kept = role != "activation" or name in self.kept
        self.tensors.append(
            Tensor(name, shape, axes, self.dtype, role, count or self.layers, is_kept=is_kept, is_on_chip=is_on_chip)
        )

    def add_operation(
        self,
        name: str,
        einsum: str,
        inputs: tuple[str, ...],
        output: str,
        kind: str = "matmul",
        *,
        letters: str = "",
        count: int = 0,
        needed: tuple[str, ...] | None = None,
        is_on_chip: bool = False,
        is_causal: bool = False,
    ) -> None:
        """Adds an operation and its result. The result has the dimensions `letters`, by default the einsum's.

        It is recomputed where the backward pass needs one of `needed` and none of them is kept; None is the result.
        """
        self.add_tensor(output, letters or einsum.partition("->")[2], count=count, is_on_chip=is_on_chip)
        needed = (output,) if needed is None else needed
        again = self.is_training and bool(needed) and self.kept.isdisjoint(needed)
        times = count or self.layers
        self.operations.append(
            Operation(name, einsum, inputs, output, kind, times, is_recomputed=again, is_causal=is_causal)
        )

    def add_product(self, name: str, einsum: str, of: str, weight: str, output: str, **options: Any) -> None:
        """Adds a parameter and its product with `of`; the options are passed to `add_operation`."""
        letters = einsum.partition(",")[2].partition("->")[0]
        self.add_tensor(weight, letters, "parameter", count=options.get("count", 0))
        self.add_operation(name, einsum, (of, weight), output, **options)

    def add_norm(self, name: str, of: str, output: str, *, count: int = 0) -> None:
        """Adds a norm with its scale, which compilers fuse."""
        self.add_tensor(f"{name}_scale", "n", "parameter", count=count)
        scaled = (of, f"{name}_scale")
        self.add_operation(name, "bsd,d->bsd", scaled, output, "elementwise", count=count, needed=())

    def add_attention(self, has_cache: bool, is_causal: bool) -> None:
        """Adds attention from "x" to "middle"; with a cache, it reads the cache's keys and values.

        `is_causal`: its kernel skips masked scores.
        """
        self.add_tensor("x", "bsd")
        self.add_norm("attention_norm", "x", "attention_in")
        self.add_product("project q", "bsd,dkgh->bskgh", "attention_in", "w_q", "q")
        read = [f"{name}_cache" if has_cache else name for name in ("k", "v")]
        for name in ("k", "v"):
            self.add_product(f"project {name}", "bsd,dkh->bskh", "attention_in", f"w_{name}", name)
            if has_cache:
                self.add_tensor(f"{name}_cache", "btkh", "given")
        scored = ("q", read[0])
        self.add_operation("scores", "bskgh,btkh->bkgst", scored, "scores", is_on_chip=True, is_causal=is_causal)
        self.add_operation("attend", "bkgst,btkh->bskgh", ("scores", read[1]), "attended", is_causal=is_causal)
        needed = ("attention_out", "middle")
        self.add_product("project out", "bskgh,kghd->bsd", "attended", "w_o", "attention_out", needed=needed)
        self.add_tensor("middle", "bsd")  # x + attention_out

    def add_mlp(self, of: str, output: str, width: str = "f", prefix: str = "", *, is_gated: bool = True) -> None:
        """Adds an MLP of `width`, gated or not."""
        for name in ("gate", "up") if is_gated else ("up",):
            name = prefix + name
            self.add_product(name, f"bsd,d{width}->bs{width}", of, f"w_{name}", name)
        self.add_tensor(f"{prefix}activated", f"bs{width}")  # silu(gate) * up
        down = f"{prefix}down"
        # The next layer's input is kept or recomputed.
        self.add_product(down, f"bs{width},{width}d->bsd", f"{prefix}activated", f"w_{down}", output, needed=())

    def add_experts(self, tokens: str, of: str, output: str, *, is_gated: bool = True) -> None:
        """Adds a router and MLPs of experts; `tokens` has the letters of the dimensions of tokens."""
        self.add_tensor("w_router", "dr", "parameter")
        router = f"{tokens}d,de->{tokens}e"
        self.add_operation("router", router, (of, "w_router"), "router", letters=f"{tokens}r")
        self.add_operation("dispatch", f"{tokens}d->ebd", (of,), "expert_in", "route", letters="ecd")
        for name in ("gate", "up") if is_gated else ("up",):
            self.add_product(name, "ecd,edf->ecf", "expert_in", f"w_{name}", name)
        self.add_tensor("activated", "ecf")
        self.add_product("down", "ecf,efd->ecd", "activated", "w_down", "expert_out", needed=())
        self.add_operation("combine", f"ebd->{tokens}d", ("expert_out",), output, "route", needed=())
