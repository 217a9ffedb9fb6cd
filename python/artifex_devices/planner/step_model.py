# SPDX-License-Identifier: Apache-2.0
"""What a training or forward step is made of, for `planner.plan_step`: tensors, operations on them, an optimiser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from artifex_devices._base.packed_dtypes import packed_itemsize
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import shown
from artifex_devices.planner.step_checks import einsum_parts, members, model_mistakes, plain

__all__ = ["Operation", "Optimizer", "StepModel", "Tensor"]


@public("artifex_devices.models")
@dataclass(frozen=True)
class Tensor:
    """A named array of a step.

    Attributes:
        name: Unlike all others.
        shape: Of the whole array, at the model's batch.
        axes: The logical name of each dimension: what rules are about.
        dtype: Of its elements. Formats of 2 and 4 bits are packed: an int4 is half a byte.
        role: "parameter" (has a gradient and optimiser state), "activation" (has a gradient), or "given" (data and
            caches: has none).
        count: How many there are alike: the layers.
        is_kept: Whether an activation is kept for the backward pass.
        is_on_chip: Whether an activation is made and used inside one kernel, and never in memory.

    Raises:
        TypeError: The shape or the axes are no sequences.

    Example:
        >>> Tensor("w_up", (4096, 11008), ("embed", "mlp"), role="parameter", count=32).elements
        1442840576
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    dtype: Any = "bfloat16"
    role: str = "activation"
    count: int = 1
    is_kept: bool = True
    is_on_chip: bool = False

    def __post_init__(self) -> None:
        _make_plain(self)
        of = f"Tensor {self.name!r}"
        object.__setattr__(self, "shape", members(of, "shape", self.shape, "sizes"))
        object.__setattr__(self, "axes", members(of, "axes", self.axes, "names of logical axes"))

    @property
    def elements(self) -> int:
        """Of all `count` arrays."""
        return math.prod(self.shape) * self.count


@public("artifex_devices.models")
@dataclass(frozen=True)
class Operation:
    """One operation on tensors.

    Attributes:
        name: Unlike all others.
        einsum: Its indices, one letter a dimension: "bsd,df->bsf". Sizes of one letter are equal, but in a route, where
            tokens keep the letter of a dimension that they do not leave ("bsd->ebd": experts take tokens of their own
            part of the batch).
        inputs: Names of tensors: two, but one of lookups and routes.
        output: Name of a tensor.
        kind: "matmul"; "elementwise" (no FLOPs and bytes of its own, as compilers fuse it); "lookup" (rows of a table,
            "vd->bsd"); "route" (rows in another order: tokens to experts and back).
        count: How often a step: the layers.
        dtype: In which a product is computed; None is that of its operands.
        is_recomputed: Whether it is done once more in the backward pass, because its output is not kept.

    Raises:
        TypeError: The inputs are no sequence.
    """

    name: str
    einsum: str
    inputs: tuple[str, ...]
    output: str
    kind: str = "matmul"
    count: int = 1
    dtype: Any = None
    is_recomputed: bool = False

    def __post_init__(self) -> None:
        _make_plain(self)
        named = members(f"Operation {self.name!r}", "inputs", self.inputs, "names of tensors")
        object.__setattr__(self, "inputs", named)


@public("artifex_devices.models")
@dataclass(frozen=True)
class Optimizer:
    """What training keeps beside parameters and activations.

    Attributes:
        bytes_per_parameter: Of state: 8 for Adam with float32 moments, 12 with a float32 copy of the parameters too, 0
            for plain SGD.
        gradient_dtype: Of the gradients of parameters; None is the parameter's own.
        holds_gradients: Whether all gradients are held at once; else each is applied as it is made.
    """

    bytes_per_parameter: float = 8
    gradient_dtype: Any = None
    holds_gradients: bool = True

    def __post_init__(self) -> None:
        _make_plain(self)


@public("artifex_devices.models")
@dataclass(frozen=True)
class StepModel:
    """A step: forward, or with an optimiser forward, backward and update.

    Attributes:
        name: For people.
        tensors: All of them.
        operations: In the order of the forward pass: no activation is read before the operation that makes it.
        tokens: Number of tokens in the batch that the shapes are of; a multiple of the first batch axis.
        batch_axes: Logical axes that grow with the batch, the batch itself first; a tensor has at most one of them.
        optimizer: None is a forward step.

    Raises:
        ValueError: Tensors and operations do not fit each other; the text names everything that is wrong.
        TypeError: What should be tensors, operations or an optimiser is something else.

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
        _make_plain(self)
        for name, wanted in (("tensors", "Tensors"), ("operations", "Operations"), ("batch_axes", "names of axes")):
            object.__setattr__(self, name, members("StepModel", name, getattr(self, name), wanted))
        kinds: list[tuple[str, Sequence[Any], type]] = [
            ("tensors", self.tensors, Tensor),
            ("operations", self.operations, Operation),
            ("optimizer", () if self.optimizer is None else (self.optimizer,), Optimizer),
        ]
        others = [
            f"{what} {'is' if kind is Optimizer else 'has'} {shown(each)} ({type(each).__name__})"
            for what, found, kind in kinds
            for each in found
            if not isinstance(each, kind)
        ]
        if others:
            raise TypeError(
                f"StepModel: {'; '.join(others)}; expected Tensors, Operations, and an Optimizer or None; make them by "
                "these classes, say Optimizer(8) for Adam"
            )
        wrong, expected = model_mistakes(self)
        if wrong:
            raise ValueError(
                f"StepModel: {self.name!r} does not fit together: {'; '.join(wrong)}; expected {expected}; correct each"
            )

    @property
    def parameters(self) -> int:
        """How many there are, over all layers."""
        return sum(tensor.elements for tensor in self.tensors if tensor.role == "parameter")

    @property
    def logical_axes(self) -> tuple[str, ...]:
        """Names that rules may be about, in the order in which they come up."""
        return tuple(dict.fromkeys(axis for tensor in self.tensors for axis in tensor.axes))

    @property
    def batch(self) -> int:
        """Size of the first of `batch_axes`."""
        first = self.batch_axes[0]
        return next(
            size
            for tensor in self.tensors
            for axis, size in zip(tensor.axes, tensor.shape, strict=True)
            if axis == first
        )

    @property
    def is_training(self) -> bool:
        """Whether there is a backward pass and an update."""
        return self.optimizer is not None


def _make_plain(made: Any) -> None:
    """NumPy's scalars in the fields of a dataclass become Python's."""
    for name, value in vars(made).items():
        object.__setattr__(made, name, plain(value))


def core_model(model: StepModel) -> dict[str, Any]:
    """The model as the core takes it: names as numbers, dtypes as sizes."""
    axes = {axis: number for number, axis in enumerate(model.logical_axes)}
    tensors = {tensor.name: number for number, tensor in enumerate(model.tensors)}
    optimizer = Optimizer(0) if model.optimizer is None else model.optimizer
    gradient = optimizer.gradient_dtype
    return {
        "logical_axes": list(axes),
        "tokens": model.tokens,
        "is_training": model.is_training,
        "optimizer_bytes": float(optimizer.bytes_per_parameter),
        "gradient_itemsize": 0.0 if gradient is None else packed_itemsize(dtype_of(gradient)),
        "holds_gradients": optimizer.holds_gradients,
        "tensors": [
            {
                "name": tensor.name,
                "shape": list(tensor.shape),
                "axes": [axes[axis] for axis in tensor.axes],
                "itemsize": packed_itemsize(dtype_of(tensor.dtype)),
                "role": tensor.role,
                "count": tensor.count,
                "is_kept": tensor.is_kept,
                "is_on_chip": tensor.is_on_chip,
                "scales": any(axis in model.batch_axes for axis in tensor.axes),
            }
            for tensor in model.tensors
        ],
        "ops": [_core_operation(operation, model, tensors) for operation in model.operations],
    }


def _core_operation(operation: Operation, model: StepModel, tensors: Mapping[str, int]) -> dict[str, Any]:
    inputs, output = einsum_parts(operation.einsum)
    letters = {letter: number for number, letter in enumerate(dict.fromkeys("".join(inputs) + output))}
    indices = [[letters[letter] for letter in part] for part in inputs]
    numbers = [tensors[name] for name in operation.inputs]
    return {
        "name": operation.name,
        "kind": operation.kind,
        "inputs": [*numbers, -1][:2],
        "output": tensors[operation.output],
        "indices": [*[*indices, []][:2], [letters[letter] for letter in output]],
        "count": operation.count,
        "format": format_of([model.tensors[number].dtype for number in numbers], operation.dtype),
        "is_recomputed": operation.is_recomputed,
    }


def dtype_of(dtype: Any) -> np.dtype[Any]:
    """A NumPy dtype, of narrow formats too."""
    import ml_dtypes  # noqa: F401 - gives NumPy the names of narrow formats

    found: np.dtype[Any] = np.dtype(dtype)
    return found


def format_of(operands: Sequence[Any], given: Any) -> str:
    """The format of a product in the words of the catalogue: of the wider operand where none is given."""
    dtype = max((dtype_of(each) for each in operands), key=packed_itemsize) if given is None else given
    name = dtype if isinstance(dtype, str) else dtype_of(dtype).name
    return next((name[:6] for narrow in ("float8", "float4") if name.startswith(narrow)), name)
