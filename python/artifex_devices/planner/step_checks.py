# SPDX-License-Identifier: Apache-2.0
"""Whether the parts of a StepModel fit each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from artifex_devices._base.packed_dtypes import packed_itemsize
from artifex_devices._base.safe_repr import shown

if TYPE_CHECKING:
    from artifex_devices.planner.step_model import Operation, StepModel, Tensor

_ROLES = ("parameter", "activation", "given")
_INPUTS = {"matmul": 2, "elementwise": 2, "lookup": 1, "route": 1}
_FORMATS = ("tensorfloat32", "float8", "int4", "float4")  # of products, beside NumPy's dtypes
_MOST_ELEMENTS = 2**62
_MOST_STATE_BYTES = 2**20  # of an optimiser, for each parameter
_MOST_LETTERS = 32


def einsum_parts(einsum: str) -> tuple[list[str], str]:
    """The letters of the inputs and of the output.

    Example:
        >>> einsum_parts("bsd,df->bsf")
        (['bsd', 'df'], 'bsf')
    """
    inputs, _, output = einsum.replace(" ", "").partition("->")
    return inputs.split(","), output


def plain(value: Any) -> Any:
    """The Python number or bool that a NumPy scalar is; all else as it is.

    Example:
        >>> plain(np.int64(8)), plain(np.float32(0.5)), plain("8")
        (8, 0.5, '8')
    """
    return value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value


def members(of: str, field: str, values: Any, wanted: str) -> tuple[Any, ...]:
    """The parts of a field that has several.

    Raises:
        TypeError: It is a text, or cannot be gone through.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(
            f"{of}: {field} is {shown(values)} ({type(values).__name__}); expected a sequence of {wanted}; put it in a "
            "tuple"
        )
    return tuple(plain(value) for value in values)


def model_mistakes(model: Any) -> tuple[list[str], str]:
    """Everything that is wrong, one text each, and what is expected."""
    wrong: list[str] = []
    if not model.tensors or not model.operations:
        wrong.append("it has no tensors or no operations")
    wrong += _count_mistakes("tokens is", model.tokens)
    if not isinstance(model.name, str):
        wrong.append(f"its name is {model.name!r}, expected a text")
    nameless = [f"a batch axis is {shown(x)}, expected a name" for x in model.batch_axes if not isinstance(x, str)]
    parts = (("tensors", model.tensors), ("operations", model.operations))
    for what, each in parts:
        texts = [x.name for x in each if not isinstance(x.name, str)]
        nameless += [f"a name of its {what} is {shown(name)}, expected a text" for name in texts]
    wrong += nameless
    if not nameless:
        for what, names in parts:
            wrong += [
                f"two {what} are named {shown(name)}" for name, n in Counter(x.name for x in names).items() if n > 1
            ]
        for tensor in model.tensors:
            wrong += _tensor_mistakes(tensor, model.batch_axes)
    if wrong:  # the rest looks at shapes
        return wrong, "parts as the descriptions of StepModel, Tensor and Operation have them"
    by_name = {tensor.name: tensor for tensor in model.tensors}
    for operation in model.operations:
        wrong += [f"operation {operation.name!r} {text}" for text in _operation_mistakes(operation, by_name)]
    expected = ["operations whose einsums agree with the shapes of their tensors"] if wrong else []
    others = _batch_mistakes(model) + _optimizer_mistakes(model)
    if others:
        expected.append("sizes, dtypes and uses as the descriptions of StepModel and Optimizer have them")
    late = [] if wrong else _order_mistakes(model, by_name)
    if late:
        expected.append("operations in the order of the forward pass, with a tensor for each value")
    return [*wrong, *others, *late], ", and ".join(expected)


def _optimizer_mistakes(model: Any) -> list[str]:
    if model.optimizer is None:
        return []
    wrong = []
    size = model.optimizer.bytes_per_parameter
    if isinstance(size, bool) or not isinstance(size, (int, float)) or not 0 <= size <= _MOST_STATE_BYTES:
        wrong.append(f"bytes_per_parameter is {shown(size)}, expected a number of 0 to {_MOST_STATE_BYTES}")
    wrong += _dtype_mistakes("gradient_dtype", model.optimizer.gradient_dtype)
    if not isinstance(model.optimizer.holds_gradients, bool):
        wrong.append(f"holds_gradients is {shown(model.optimizer.holds_gradients)}, expected True or False")
    used = {name for operation in model.operations for name in operation.inputs if isinstance(name, str)}
    wrong += [
        f"no operation uses parameter {tensor.name!r}, so that nothing says how its gradient is made"
        for tensor in model.tensors
        if tensor.role == "parameter" and tensor.name not in used
    ]
    return wrong


def _order_mistakes(model: StepModel, tensors: dict[str, Tensor]) -> list[str]:
    """Activations that are read before they are made. Caches may be written after they are read."""
    made: dict[str, int] = {}
    for place, operation in enumerate(model.operations):
        made.setdefault(operation.output, place)
    return [
        f"operation {operation.name!r} reads {shown(name)}, which "
        + (f"only the later {model.operations[made[name]].name!r} makes" if made[name] > place else "it makes itself")
        for place, operation in enumerate(model.operations)
        for name in dict.fromkeys(operation.inputs)
        if tensors[name].role == "activation" and made.get(name, -1) >= place
    ]


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether it is an int of the least or more that counts things: below 2**62."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < _MOST_ELEMENTS


def _count_mistakes(what: str, value: Any) -> list[str]:
    if is_whole(value):
        return []
    is_large = isinstance(value, int) and value >= _MOST_ELEMENTS
    return [f"{what} {shown(value)}, expected {'an int below 2**62' if is_large else 'an int of 1 or more'}"]


def _dtype_mistakes(what: str, dtype: Any) -> list[str]:
    import ml_dtypes  # noqa: F401 - gives NumPy the names of narrow formats

    if dtype is None:
        return []
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        return [f"{what} is {shown(dtype)}, which is no dtype"]
    if found.hasobject or found.itemsize == 0 or found.kind in "USMm" or found.names is not None:
        return [f"{what} is {shown(dtype)}, expected one of numbers or booleans"]
    return []


def _tensor_mistakes(tensor: Any, batch_axes: tuple[str, ...]) -> list[str]:
    wrong = []
    if len(tensor.shape) != len(tensor.axes):
        wrong.append(f"has {len(tensor.shape)} dimensions and {len(tensor.axes)} axes")
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 1 for size in tensor.shape):
        wrong.append(f"has the shape {tensor.shape}, expected ints of 1 or more")
    elif math.prod(tensor.shape) >= _MOST_ELEMENTS:
        wrong.append(f"has the shape {tensor.shape}, expected fewer than 2**62 elements")
    if not all(isinstance(axis, str) for axis in tensor.axes):
        wrong.append(f"has the axes {tensor.axes}, expected names")
    if tensor.role not in _ROLES:
        wrong.append(f"has the role {shown(tensor.role)}, expected one of {', '.join(_ROLES)}")
    wrong += _count_mistakes("has the count", tensor.count)
    flags = (("is_kept", tensor.is_kept), ("is_on_chip", tensor.is_on_chip))
    wrong += [
        f"has {name} {shown(value)}, expected True or False" for name, value in flags if not isinstance(value, bool)
    ]
    growing = [axis for axis in tensor.axes if axis in batch_axes]
    if len(growing) > 1:
        wrong.append(f"grows twice with the batch, along {' and '.join(growing)}")
    if tensor.dtype is None:
        wrong.append("has the dtype None, expected one such as 'bfloat16'")
    wrong += _dtype_mistakes("its dtype", tensor.dtype)
    return [f"tensor {tensor.name!r} {text}" for text in wrong]


def _operation_mistakes(operation: Any, tensors: dict[str, Tensor]) -> list[str]:
    if not isinstance(operation.kind, str) or operation.kind not in _INPUTS:
        return [f"has the kind {shown(operation.kind)}, expected one of {', '.join(_INPUTS)}"]
    if not all(isinstance(name, str) for name in (*operation.inputs, operation.output)):
        return [
            f"has the inputs {shown(operation.inputs)} and the output {shown(operation.output)}, "
            "expected names of tensors"
        ]
    missing = [name for name in (*operation.inputs, operation.output) if name not in tensors]
    if missing:
        return [f"names {', '.join(map(shown, missing))}, which are no tensors; there are {', '.join(tensors)}"]
    wrong = []
    if len(operation.inputs) != _INPUTS[operation.kind]:
        wrong.append(f"has {len(operation.inputs)} inputs, expected {_INPUTS[operation.kind]} of a {operation.kind}")
    wrong += _count_mistakes("has the count", operation.count)
    if not isinstance(operation.is_recomputed, bool):
        wrong.append(f"has is_recomputed {shown(operation.is_recomputed)}, expected True or False")
    if tensors[operation.output].role == "parameter":
        wrong.append(f"writes the parameter {shown(operation.output)}")
    if not isinstance(operation.dtype, str) or operation.dtype not in _FORMATS:
        wrong += _dtype_mistakes("its dtype", operation.dtype)
    kinds = {np.dtype(tensors[name].dtype) for name in operation.inputs}
    if operation.kind == "matmul" and operation.dtype is None and len(kinds) > len(set(map(packed_itemsize, kinds))):
        wrong.append(f"multiplies {' by '.join(sorted(each.name for each in kinds))}, expected a dtype for the product")
    einsum = operation.einsum
    if not isinstance(einsum, str) or "->" not in einsum:
        return [*wrong, f"has the einsum {shown(einsum)}, expected one such as 'bd,df->bf'"]
    inputs, output = einsum_parts(einsum)
    parts = [*inputs, output]
    if len(inputs) != len(operation.inputs) or not all(part.isalpha() or not part for part in parts):
        return [
            *wrong,
            f"has the einsum {shown(operation.einsum)}, expected letters for {len(operation.inputs)} inputs",
        ]
    return wrong + _letter_mistakes(operation, parts, [tensors[name] for name in (*operation.inputs, operation.output)])


def _letter_mistakes(operation: Operation, parts: list[str], tensors: list[Tensor]) -> list[str]:
    wrong = []
    sizes: dict[str, dict[int, str]] = {}
    for part, tensor in zip(parts, tensors, strict=True):
        if len(part) != len(tensor.shape):
            wrong.append(f"has {part!r} for {tensor.name!r} of {len(tensor.shape)} dimensions {tensor.shape}")
            continue
        if len(set(part)) != len(part):
            wrong.append(f"has a letter twice in {part!r} of {tensor.name!r}")
        for letter, size in zip(part, tensor.shape, strict=True):
            sizes.setdefault(letter, {}).setdefault(size, tensor.name)
    if operation.kind != "route":
        wrong += [
            f"has {letter!r} of unequal sizes: {', '.join(f'{size} in {shown(name)}' for size, name in found.items())}"
            for letter, found in sizes.items()
            if len(found) > 1
        ]
    if operation.kind in ("matmul", "elementwise"):
        new = [letter for letter in parts[-1] if all(letter not in part for part in parts[:-1])]
        wrong += [f"has {letter!r} in the output only" for letter in new]
    if len(sizes) > _MOST_LETTERS:
        wrong.append(f"has {len(sizes)} letters, expected at most {_MOST_LETTERS}")
    return wrong


def _batch_mistakes(model: StepModel) -> list[str]:
    sizes: dict[str, set[int]] = {axis: set() for axis in model.batch_axes}
    for tensor in model.tensors:
        for axis, size in zip(tensor.axes, tensor.shape, strict=True):
            if axis in sizes:
                sizes[axis].add(size)
    if not sizes:
        return ["it has no batch_axes"]
    wrong = [
        f"the batch axis {shown(axis)} has "
        f"{'the sizes ' + ', '.join(map(str, sorted(found))) if found else 'no tensor'}, expected one size"
        for axis, found in sizes.items()
        if len(found) != 1
    ]
    first = sizes[model.batch_axes[0]]
    if len(first) == 1 and model.tokens % (batch := next(iter(first))):
        wrong.append(
            f"tokens is {model.tokens}, expected a multiple of {batch}, the size of {shown(model.batch_axes[0])} in "
            "the shapes"
        )
    return wrong
