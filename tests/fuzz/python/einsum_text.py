# SPDX-License-Identifier: Apache-2.0
"""Subscripts of einsum, "2 1 ij,j->i": ranks of the operands and the text. NumPy says what is right."""

from __future__ import annotations

import artifex_devices as ad
import numpy as np
from artifex_devices.sharding import NamedSharding, P
from oracle import Fault, check_refusal, require

MODULES = ("artifex_devices._array_ops.linalg.einsum",)
_MOST_RANK, _MOST_OPERANDS = 4, 3
_MESH = ad.make_mesh((1,), ("x",), devices=ad.devices()[:1])
_VALUES = [np.arange(1, 1 + 2**rank).reshape((2,) * rank) for rank in range(_MOST_RANK + 1)]
_ARRAYS = [ad.device_put(value, NamedSharding(_MESH, P())) for value in _VALUES]


def one_input(data: bytes) -> bool:
    """Whether it was accepted."""
    head, _, text = data.decode("utf-8", "surrogateescape").partition(":")
    if not 1 <= len(head) <= _MOST_OPERANDS or not all(each in "01234" for each in head):
        return False
    if "\0" in text:  # where NumPy stops reading
        return False
    ranks = [int(each) for each in head]
    try:
        wanted = np.einsum(text, *(_VALUES[rank] for rank in ranks))
        refusal = None
    except (ValueError, TypeError, UnicodeError, RuntimeError) as error:
        wanted, refusal = None, error
    try:
        found = np.einsum(text, *(_ARRAYS[rank] for rank in ranks))
    except ValueError as error:
        check_refusal(error, ValueError)
        if refusal is None:
            raise Fault(f"NumPy takes {text!r} of ranks {ranks}, and we do not: {error}") from error
        return False
    if refusal is not None:
        raise Fault(f"we take {text!r} of ranks {ranks}, and NumPy does not: {refusal}")
    require(np.array_equal(np.asarray(found), wanted), f"{text!r} of ranks {ranks}: {found!r}, NumPy {wanted!r}")
    return True
