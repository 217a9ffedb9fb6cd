# SPDX-License-Identifier: Apache-2.0
"""Tensors and operations of a decoder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from artifex_devices._base.checks import check_number, wrong_type, wrong_value
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.step_checks import plain
from artifex_devices.planner.step_model import Operation, Tensor
from artifex_devices.planner.transformer_shape import TransformerShape

_HEADS = ("kv_heads", "queries_per_kv", "head_dim")
_TOKENS = ("batch", "sequence")
_RESIDUAL = (*_TOKENS, "activation_embed")
_QUERIES = (*_TOKENS, *_HEADS)
_KEYS = (*_TOKENS, "kv_heads", "head_dim")

_PRODUCTS = ("x", "q", "k", "v", "attended", "middle", "gate", "up", "logits", "last", "expert_in", "router")
_ALWAYS = ("attention_in", "mlp_in", "activated", "final_in")  # beside _PRODUCTS, where all is kept
_KEPT = {"layers": ("x", "last"), "products": _PRODUCTS, "all": _PRODUCTS + _ALWAYS}


class TransformerParts:
    """Builds the tensors and operations of a decoder in the order of the forward pass."""

    def __init__(
        self,
        shape: TransformerShape,
        batch: int,
        sequence: int,
        keep: str | Iterable[str],
        is_training: bool,
        cache: int,
        dtype: Any,
        capacity_factor: float,
    ) -> None:
        self.shape = shape
        self.sizes = {
            "batch": batch,
            "sequence": sequence,
            "kv_sequence": cache or sequence,
            "activation_embed": shape.embed,
            "embed": shape.embed,
            "norm": shape.embed,
            "kv_heads": shape.kv_heads,
            "queries_per_kv": shape.heads // shape.kv_heads,
            "head_dim": shape.head_dim,
            "mlp": shape.mlp,
            "vocab": shape.vocab,
            "experts": shape.experts,
            "router": shape.experts,
        }
        if shape.experts:
            each = shape.experts_per_token
            self.sizes["expert_batch"] = expert_places(
                "transformer", shape.experts, each, batch * sequence, capacity_factor
            )
        self.dtype = dtype
        self.is_training = is_training
        self.tensors: list[Tensor] = []
        self.operations: list[Operation] = []
        self.kept = self._kept(keep)
        self._embedding()
        self._attention(cache)
        (self._experts if shape.experts else self._mlp)()
        self._output()
        self._check_kept()

    def _kept(self, keep: Any) -> frozenset[str]:
        if isinstance(keep, str):
            if keep not in _KEPT:
                expected = f"{', '.join(map(repr, _KEPT))} or names of tensors"
                raise wrong_value("models.transformer", "keep", keep, expected, "choose one")
            return frozenset(_KEPT[keep])
        names = tuple(keep) if isinstance(keep, Iterable) else (None,)
        if not all(isinstance(name, str) for name in names):
            expected = f"{', '.join(map(repr, _KEPT))} or names of tensors"
            raise wrong_type("models.transformer", "keep", keep, expected, "choose one")
        self.named = frozenset(names)
        return self.named

    def _check_kept(self) -> None:
        activations = [tensor.name for tensor in self.tensors if tensor.role == "activation"]
        unknown = sorted(getattr(self, "named", frozenset()) - set(activations))
        if unknown:
            raise ValueError(
                f"models.transformer: keep names {', '.join(map(safe_repr, unknown))}; expected activations of the "
                "model "
                f"({', '.join(activations)}); correct it"
            )

    def _tensor(self, name: str, axes: tuple[str, ...], role: str, count: int | None = None, **fields: bool) -> str:
        shape = tuple(self.sizes[axis] for axis in axes)
        times = self.shape.layers if count is None else count
        self.tensors.append(Tensor(name, shape, axes, self.dtype, role, times, **fields))
        return name

    def _parameter(self, name: str, *axes: str, count: int | None = None) -> str:
        return self._tensor(name, axes, "parameter", count)

    def _activation(self, name: str, axes: tuple[str, ...], count: int | None = None, on_chip: bool = False) -> str:
        return self._tensor(name, axes, "activation", count, is_kept=name in self.kept, is_on_chip=on_chip)

    def _operate(
        self,
        name: str,
        einsum: str,
        inputs: tuple[str, ...],
        output: str,
        kind: str = "matmul",
        count: int | None = None,
        needed: tuple[str, ...] = (),
    ) -> None:
        """Adds an operation; recomputed where the backward pass needs one of `needed` and none of them is kept."""
        times = self.shape.layers if count is None else count
        again = self.is_training and bool(needed) and not self.kept.intersection(needed)
        self.operations.append(Operation(name, einsum, inputs, output, kind, times, is_recomputed=again))

    def _embedding(self) -> None:
        table = self._parameter("embedding", "vocab", "embed", count=1)
        self._activation("embedded", _RESIDUAL, count=1)  # the first layer's input
        self._operate("embed", "vd->bsd", (table,), "embedded", "lookup", count=1)

    def _norm(self, name: str, of: str, output: str, count: int | None = None) -> None:
        scale = self._parameter(f"{name}_scale", "norm", count=count)
        self._activation(output, _RESIDUAL, count)
        self._operate(name, "bsd,d->bsd", (of, scale), output, "elementwise", count)

    def _attention(self, cache: int) -> None:
        self._activation("x", _RESIDUAL)
        self._norm("attention_norm", "x", "attention_in")
        w_q = self._parameter("w_q", "embed", *_HEADS)
        q = self._activation("q", _QUERIES)
        self._operate("project q", "bsd,dkgh->bskgh", ("attention_in", w_q), q, needed=("q",))
        read = []
        for name in ("k", "v"):
            weight = self._parameter(f"w_{name}", "embed", "kv_heads", "head_dim")
            made = self._activation(name, _KEYS)
            self._operate(f"project {name}", "bsd,dkh->bskh", ("attention_in", weight), made, needed=(name,))
            if cache:
                self._tensor(f"{name}_cache", ("batch", "kv_sequence", "kv_heads", "head_dim"), "given")
            read.append(f"{name}_cache" if cache else name)
        scores = self._activation(
            "scores", ("batch", "kv_heads", "queries_per_kv", "sequence", "kv_sequence"), None, True
        )
        self._operate("scores", "bskgh,btkh->bkgst", (q, read[0]), scores, needed=("scores",))
        attended = self._activation("attended", _QUERIES)
        self._operate("attend", "bkgst,btkh->bskgh", (scores, read[1]), attended, needed=("attended",))
        w_o = self._parameter("w_o", *_HEADS, "embed")
        self._activation("attention_out", _RESIDUAL)
        self._operate(
            "project out", "bskgh,kghd->bsd", (attended, w_o), "attention_out", needed=("attention_out", "middle")
        )
        self._activation("middle", _RESIDUAL)  # x + attention_out

    def _mlp(self) -> None:
        self._norm("mlp_norm", "middle", "mlp_in")
        tokens = (*_TOKENS, "mlp")
        for name in ("gate", "up"):
            weight = self._parameter(f"w_{name}", "embed", "mlp")
            self._activation(name, tokens)
            self._operate(name, "bsd,df->bsf", ("mlp_in", weight), name, needed=(name,))
        self._activation("activated", tokens)  # silu(gate) * up
        w_down = self._parameter("w_down", "mlp", "embed")
        self._activation("mlp_out", _RESIDUAL)
        self._operate("down", "bsf,fd->bsd", ("activated", w_down), "mlp_out")  # the next x is kept or recomputed

    def _experts(self) -> None:
        self._norm("mlp_norm", "middle", "mlp_in")
        w_router = self._parameter("w_router", "embed", "router")
        self._activation("router", (*_TOKENS, "router"))
        self._operate("router", "bsd,de->bse", ("mlp_in", w_router), "router", needed=("router",))
        tokens = ("experts", "expert_batch", "activation_embed")
        self._activation("expert_in", tokens)
        self._operate("dispatch", "bsd->ebd", ("mlp_in",), "expert_in", "route", needed=("expert_in",))
        inside = ("experts", "expert_batch", "mlp")
        for name in ("gate", "up"):
            weight = self._parameter(f"w_{name}", "experts", "embed", "mlp")
            self._activation(name, inside)
            self._operate(name, "ecd,edf->ecf", ("expert_in", weight), name, needed=(name,))
        self._activation("activated", inside)
        w_down = self._parameter("w_down", "experts", "mlp", "embed")
        self._activation("expert_out", tokens)
        self._operate("down", "ecf,efd->ecd", ("activated", w_down), "expert_out")
        self._activation("mlp_out", _RESIDUAL)
        self._operate("combine", "ebd->bsd", ("expert_out",), "mlp_out", "route")

    def _output(self) -> None:
        self._activation("last", _RESIDUAL, count=1)
        self._norm("final_norm", "last", "final_in", count=1)
        w_out = self._parameter("w_out", "embed", "vocab", count=1)
        self._activation("logits", (*_TOKENS, "vocab"), count=1)
        self._operate("logits", "bsd,dv->bsv", ("final_in", w_out), "logits", count=1, needed=("logits",))


def check_factor(operation: str, factor: Any) -> float:
    """Returns a capacity factor as a Python number.

    Raises:
        ValueError: It is not above 0, or not below 2**62.
        TypeError: It is not a number.
    """
    value = check_number(
        f"models.{operation}", "capacity_factor", plain(factor), "write 1", above=0, expected="a number above 0"
    )
    if value >= 2**62:
        raise wrong_value(f"models.{operation}", "capacity_factor", value, "a number below 2**62", "write 1")
    return value


def expert_places(operation: str, experts: int, experts_per_token: int, tokens: int, factor: Any) -> int:
    """Returns the number of places of one expert.

    Raises:
        ValueError: It is not a whole number of 1 or more.
        TypeError: The capacity factor is not a number.
    """
    places = tokens * experts_per_token * check_factor(operation, factor) / experts
    if places < 1 or places != int(places):
        raise ValueError(
            f"models.{operation}: each of {experts} experts has {places:g} places for {tokens} tokens that are routed "
            f"to {experts_per_token} experts each; expected a whole number; change the tokens or capacity_factor"
        )
    return int(places)
