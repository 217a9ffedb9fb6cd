# SPDX-License-Identifier: Apache-2.0
"""Parts of a training or forward step, for `planner.plan_step`: tensors, operations on them, an optimiser."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import DTypeLike

from artifex_devices import _planner
from artifex_devices._base.checks import check_sequence, failure
from artifex_devices._base.html import facts, folded, page, table
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.packed_dtypes import dtype_of, packed_itemsize
from artifex_devices.planner.plain_numbers import make_plain
from artifex_devices.planner.step.model_checks import FORMATS, type_mistakes


def _make_tuples(part: object, operation: str, **fields: str) -> None:
    """Turns fields of a frozen dataclass into tuples; `fields` gives what each is a sequence of."""
    for name, content in fields.items():
        values = check_sequence(operation, name, getattr(part, name), f"a sequence of {content}", "put it in a tuple")
        object.__setattr__(part, name, tuple(values))
    make_plain(part)


@public("artifex_devices.models")
@dataclass(frozen=True)
class Tensor:
    """A named array of a step.

    Attributes:
        name: Name, different from all others.
        shape: Shape of the global array, at the model's batch.
        axes: Logical name of each dimension: what rules refer to.
        dtype: Dtype of its elements. Formats of 2 and 4 bits are packed: an int4 is half a byte.
        role: "parameter" (has a gradient and optimiser state), "activation" (has a gradient), or "given" (data and
            caches, without a gradient).
        count: Number of such tensors: the layers.
        is_kept: Whether an activation is kept for the backward pass.
        is_on_chip: Whether an activation is written and read inside one kernel, and never in memory.

    Raises:
        TypeError: The shape or the axes are not sequences.

    Example:
        >>> Tensor("w_up", (4096, 11008), ("embed", "mlp"), role="parameter", count=32).elements
        1442840576
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    dtype: DTypeLike | None = "bfloat16"
    role: str = "activation"
    count: int = 1
    is_kept: bool = True
    is_on_chip: bool = False

    def __post_init__(self) -> None:
        _make_tuples(self, f"Tensor {self.name!r}", shape="sizes", axes="names of logical axes")

    @property
    def elements(self) -> int:
        """Number of elements of all `count` arrays."""
        return math.prod(self.shape) * self.count


@public("artifex_devices.models")
@dataclass(frozen=True)
class Operation:
    """One operation on tensors.

    Attributes:
        name: Name, different from all others.
        einsum: Indices, one letter for each dimension: "bsd,df->bsf". A letter has one size, except in a route, where
            tokens keep the letter of a dimension that they do not leave ("bsd->ebd": experts take tokens of their own
            part of the batch).
        inputs: Names of tensors: two, but one for lookups and routes.
        output: Name of a tensor.
        kind: "matmul"; "elementwise" (no FLOPs; only expected seconds count its bytes); "lookup" (rows of a
            table, "vd->bsd"); "route" (rows in another order: tokens to experts and back).
        count: Number of times in a step: the layers.
        dtype: Dtype in which a product is computed, or None for that of its operands.
        is_recomputed: Whether it runs once more in the backward pass, because its output is not kept.
        is_causal: Whether the kernel skips the half of a product that a causal mask hides, in both passes.

    Raises:
        TypeError: The inputs are not a sequence.
    """

    name: str
    einsum: str
    inputs: tuple[str, ...]
    output: str
    kind: str = "matmul"
    count: int = 1
    dtype: DTypeLike | None = None
    is_recomputed: bool = False
    is_causal: bool = False

    def __post_init__(self) -> None:
        _make_tuples(self, f"Operation {self.name!r}", inputs="names of tensors")


@public("artifex_devices.models")
@dataclass(frozen=True)
class Optimizer:
    """Memory that training needs in addition to parameters and activations.

    Attributes:
        bytes_per_parameter: Bytes of state: 8 for Adam with float32 moments, 12 with a float32 copy of the parameters
            too, 0 for plain SGD.
        gradient_dtype: Dtype of the gradients of parameters, or None for the parameter's own.
        holds_gradients: Whether all gradients exist at once; otherwise the optimizer applies each gradient when it has
            been computed.
    """

    bytes_per_parameter: float = 8
    gradient_dtype: DTypeLike | None = None
    holds_gradients: bool = True

    def __post_init__(self) -> None:
        make_plain(self)


@public("artifex_devices.models")
@dataclass(frozen=True)
class StepModel:
    """A step: a forward pass, or with an optimiser a forward pass, a backward pass and an update.

    Attributes:
        name: Name for people.
        tensors: All tensors.
        operations: Operations in the order of the forward pass: no activation is read before it is written.
        tokens: Number of tokens in the batch that the shapes are for; a multiple of the first batch axis.
        batch_axes: Logical axes that grow with the batch, the batch itself first; a tensor has at most one of them.
        optimizer: Optimiser, or None for a forward step.

    Raises:
        ValueError: Tensors and operations are inconsistent; the text names every mistake.
        TypeError: A part is not a Tensor, Operation or Optimizer.

    Example:
        >>> model = StepModel(
        ...     "one layer",
        ...     tensors=(
        ...         Tensor("x", (1024, 512), ("batch", "embed")),
        ...         Tensor("w", (512, 2048), ("embed_in", "mlp"), role="parameter"),
        ...         Tensor("y", (1024, 2048), ("batch", "mlp")),
        ...     ),
        ...     operations=(Operation("up", "bd,df->bf", ("x", "w"), "y"),),
        ...     tokens=1024,
        ...     optimizer=Optimizer(8),
        ... )
        >>> model.parameters, model.logical_axes
        (1048576, ('batch', 'embed', 'embed_in', 'mlp'))
    """

    name: str
    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]
    tokens: int
    batch_axes: tuple[str, ...] = ("batch",)
    optimizer: Optimizer | None = None

    def __post_init__(self) -> None:
        _make_tuples(self, "StepModel", tensors="Tensors", operations="Operations", batch_axes="names of axes")
        optimizers = () if self.optimizer is None else (self.optimizer,)
        parts = [(self.tensors, Tensor, "tensors has"), (self.operations, Operation, "operations has")]
        others = [
            f"{field} {safe_repr(each)} ({type(each).__name__})"
            for found, kind, field in (*parts, (optimizers, Optimizer, "optimizer is"))
            for each in found
            if not isinstance(each, kind)
        ]
        if others:
            raise failure(
                TypeError,
                "StepModel",
                "; ".join(others),
                expected="Tensors, Operations, and an Optimizer or None",
                fix="create them with these classes, such as Optimizer(8) for Adam",
            )
        wrong = type_mistakes((self, *self.tensors, *self.operations, *optimizers))
        wrong = wrong or _planner.step_mistakes(description_of(self))
        if wrong:
            raise failure(
                ValueError,
                "StepModel",
                f"{self.name!r} is inconsistent: {'; '.join(wrong)}",
                expected="fields as the docstrings of StepModel, Tensor, Operation and Optimizer describe them",
                fix="correct each",
            )

    @property
    def parameters(self) -> int:
        """Number of parameters, over all layers."""
        return sum(tensor.elements for tensor in self.tensors if tensor.role == "parameter")

    @property
    def logical_axes(self) -> tuple[str, ...]:
        """Names that rules may refer to, in order of first use."""
        return tuple(dict.fromkeys(axis for tensor in self.tensors for axis in tensor.axes))

    @property
    def batch(self) -> int:
        """Size of the first of `batch_axes`."""
        sizes = (pair for tensor in self.tensors for pair in zip(tensor.axes, tensor.shape, strict=True))
        return next(size for axis, size in sizes if axis == self.batch_axes[0])

    @property
    def is_training(self) -> bool:
        """Whether there is a backward pass and an update."""
        return self.optimizer is not None

    def _facts(self) -> list[tuple[str, str]]:
        kind = "forward"
        if self.optimizer is not None:
            kind = f"training, {self.optimizer.bytes_per_parameter:g} bytes of optimizer state per parameter"
        return [
            ("step", kind),
            ("parameters", f"{self.parameters:,}"),
            ("tokens", f"{self.tokens:,}"),
            ("batch", f"{self.batch:,} over {', '.join(self.batch_axes)}"),
            ("logical axes", ", ".join(self.logical_axes)),
        ]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("\n".join([self.name, *(f"  {name:<12}  {text}" for name, text in self._facts())]))

    def _repr_html_(self) -> str:
        tensors = [
            (each.name, each.role, _sizes_text(each), dtype_of(each.dtype).name, str(each.count))
            for each in self.tensors
        ]
        operations = [
            (each.name, each.kind, each.einsum, ", ".join(each.inputs), each.output, str(each.count))
            for each in self.operations
        ]
        return page(
            self.name,
            facts(self._facts()),
            folded(f"{len(tensors)} tensors", table(("tensor", "role", "sizes", "dtype", "count"), tensors)),
            folded(
                f"{len(operations)} operations",
                table(("operation", "kind", "einsum", "inputs", "output", "count"), operations),
            ),
        )


def _sizes_text(tensor: Tensor) -> str:
    """Formats the logical axes with their sizes: "batch 8, embed 512"."""
    return ", ".join(f"{axis} {size:,}" for axis, size in zip(tensor.axes, tensor.shape, strict=True))


def description_of(model: StepModel) -> dict[str, object]:
    """Describes the model to the core: the same fields, with dtypes as names and sizes."""
    optimizer = model.optimizer
    gradient = None if optimizer is None else optimizer.gradient_dtype
    size = 0.0 if gradient is None else packed_itemsize(dtype_of(gradient))
    return {
        "tokens": model.tokens,
        "batch_axes": model.batch_axes,
        "tensors": [
            vars(each) | {"dtype": dtype_of(each.dtype).name, "itemsize": packed_itemsize(dtype_of(each.dtype))}
            for each in model.tensors
        ],
        "operations": [
            # Pickles of version 0.1.0 may lack fields that have a default.
            {field.name: getattr(each, field.name) for field in fields(each)} | {"dtype": _format_name(each.dtype)}
            for each in model.operations
        ],
        "optimizer": None if optimizer is None else vars(optimizer) | {"gradient_itemsize": size},
    }


def _format_name(dtype: DTypeLike | None) -> str:
    if dtype is None:
        return ""
    return dtype if isinstance(dtype, str) and dtype in FORMATS else dtype_of(dtype).name
