# SPDX-License-Identifier: Apache-2.0
"""np.einsum on Arrays: the subscripts are the labels of a contraction."""

from __future__ import annotations

import operator
import string
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices._array_ops.core.arguments import as_operand, check_order, deliver, host_target
from artifex_devices._array_ops.core.registry import implements
from artifex_devices._array_ops.linalg.contraction import Labels, contract
from artifex_devices._array_ops.linalg.matrix_products import multiply_pair, plan_pair
from artifex_devices._base.argument_types import Operand, Out
from artifex_devices._base.checks import failure
from artifex_devices._base.clearable_cache import clearable_cache
from artifex_devices._base.safe_repr import safe_repr

_LETTERS = string.ascii_letters


@implements(np.einsum)
def einsum(*operands: Any, out: Out = None, optimize: Any = False, **options: Any) -> Operand:
    """Implements np.einsum: any subscripts, ellipses and implicit results, in text or as lists of numbers."""
    check_order("einsum", options.pop("order", "K"))
    text, arrays = _subscripts(operands)
    labels, out_labels, explicit = _parse(text, tuple(x.ndim for x in arrays))
    kinds = tuple((x.dtype, x.ndim) for x in arrays)
    into = host_target("einsum", out)
    casting = options.get("casting", "safe")
    dtype, takes = _dtype_and_support(explicit, kinds, tuple(sorted(options.items())))
    if into is not None and "dtype" not in options:  # as in NumPy, the dtype depends on out
        wide = np.result_type(dtype, into.dtype)
        options = options if wide == dtype else {**options, "dtype": wide}
        dtype = wide
    plan = plan_pair(labels[0], labels[1], out_labels) if len(arrays) == 2 and not options else None
    if plan is not None and _stretches(arrays, labels):
        plan = None
    path = optimize if optimize is not False else "greedy" if len(arrays) > 2 else False

    def multiply(output: NDArray[Any], parts: Sequence[NDArray[Any]], wide: bool) -> None:
        if plan is not None:
            multiply_pair(plan, output, parts, wide)
        elif wide or not takes:
            total = output if wide else np.empty_like(output, np.float32, order="C")
            np.einsum(explicit, *(part.astype(np.float32) for part in parts), out=total, optimize=path)
            if total is not output:
                np.copyto(output, total, casting="unsafe")
        else:
            np.einsum(explicit, *parts, out=output, optimize=path, **options)

    blas = plan is not None or path is not False
    result = contract("einsum", arrays, labels, out_labels, dtype, multiply, broadcast=lambda label: True, blas=blas)
    return deliver("einsum", result, into, casting)


@clearable_cache(maxsize=1024)
def _dtype_and_support(
    explicit: str, kinds: tuple[tuple[Any, int], ...], options: tuple[tuple[str, Any], ...]
) -> tuple[Any, bool]:
    """Returns NumPy's dtype for such operands, and whether its einsum supports it: bfloat16 is not supported."""
    samples = [np.ones((1,) * ndim, dtype) for dtype, ndim in kinds]
    dtype = np.result_type(*(dtype for dtype, _ in kinds))
    if not options and dtype.isbuiltin == 2:  # a dtype of ml_dtypes: NumPy's einsum only returns views of them
        if dtype.name == "bfloat16":
            return dtype, False
        raise failure(
            TypeError,
            "einsum",
            f"NumPy does not support dtype {dtype}",
            expected="another dtype",
            fix="convert it: x.astype(np.float32)",
        )
    return np.einsum(explicit, *samples, **dict(options)).dtype, True


def _stretches(arrays: Sequence[Any], labels: Sequence[Labels]) -> bool:
    """Returns whether a dimension of size 1 is broadcast to a longer one."""
    sizes: dict[Hashable, int] = {}
    return any(
        sizes.setdefault(label, size) != size
        for x, own in zip(arrays, labels, strict=True)
        for label, size in zip(own, x.shape, strict=True)
    )


def _subscripts(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Returns subscripts as text, and the operands."""
    if not operands:
        raise ValueError("einsum: there are no subscripts; expected einsum('ij,jk->ik', x, y)")
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), operands[1:]
        broken = [sign for sign in ("->", "...") if text.count(sign) != operands[0].count(sign)]
        if broken:  # NumPy accepts blanks everywhere else
            raise failure(
                ValueError,
                "einsum",
                f"a blank is inside of {broken[0]}",
                expected=f"{broken[0]!r}",
                got=safe_repr(operands[0]),
                fix="leave it out",
            )
    else:
        lists = list(operands)
        wanted = lists.pop() if len(lists) % 2 else None
        numbers = sorted({n for part in (*lists[1::2], wanted or ()) for n in part if n is not Ellipsis})
        if len(numbers) > len(_LETTERS):
            raise ValueError(f"einsum: {len(numbers)} different labels; expected at most {len(_LETTERS)}")
        letters = {number: _LETTERS[i] for i, number in enumerate(numbers)}

        def spelled(part: Any) -> str:
            return "".join("..." if n is Ellipsis else letters[operator.index(n)] for n in part)

        text, arrays = ",".join(map(spelled, lists[1::2])), tuple(lists[::2])
        if wanted is not None:
            text += "->" + spelled(wanted)
    return text, [as_operand("einsum", x) for x in arrays]


@clearable_cache(maxsize=1024)
def _parse(text: str, ranks: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels, str]:
    """Labels of the operands and of the result, and the subscripts with an explicit result.

    Dimensions under an ellipsis are numbers counted from the right.
    """

    def wrong(what: str, expected: str, got: object) -> ValueError:
        return ValueError(f"einsum: {what}; expected {expected}, got {got} in subscripts {safe_repr(text)}")

    inputs, arrow, wanted = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise wrong("another number of operands than of subscripts", f"{len(terms)} operands", len(ranks))
    labels: list[Labels] = []
    longest = 0
    for i, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        before, dots, after = term.partition("...")
        if not all(letter in _LETTERS for letter in before + after):
            raise wrong(f"the subscripts of operand {i} have other characters", "letters and one ellipsis", repr(term))
        free = rank - len(before) - len(after)
        if free < 0 or (free and not dots):
            raise wrong(
                f"operand {i} has another number of dimensions",
                f"{safe_repr(term)} to name them all",
                f"{rank} of them",
            )
        longest = max(longest, free)
        labels.append((*before, *range(-free, 0), *after))
    counts = Counter(letter for term in terms for letter in term if letter != ".")
    if not arrow:
        wanted = ("..." if longest else "") + "".join(sorted(letter for letter, n in counts.items() if n == 1))
    before, dots, after = wanted.partition("...")
    unknown = sorted({letter for letter in before + after if letter not in counts})
    if unknown or len(set(before + after)) < len(before + after):
        raise wrong("the result does not fit the operands", "letters of theirs, each once", repr(wanted))
    if longest and not dots:
        raise wrong("the result leaves the dimensions under the ellipsis out", "an ellipsis in it", repr(wanted))
    out = (*before, *(range(-longest, 0) if dots else ()), *after)
    return tuple(labels), out, f"{inputs}->{wanted}"
