# SPDX-License-Identifier: Apache-2.0
"""What the readers of torch.save's files need of PyTorch, which is imported only for such files."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from artifex_devices._base.checks import failure
from artifex_devices._base.safe_repr import safe_repr

# NumPy's or ml_dtypes' dtype of each dtype of torch that has one.
DTYPES = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex64", "complex128", "bool", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
_ML_DTYPES = ("bfloat16", "float8")


def import_torch(operation: str, what: str) -> Any:
    """Returns the module torch; ModuleNotFoundError with the line that installs it."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise ModuleNotFoundError(
            f"{operation}: {what}, which PyTorch reads, and PyTorch is not installed; expected it; run "
            "`pip install torch`",
            name="torch",
        ) from None


def dtype_of(name: str) -> np.dtype[Any] | None:
    """Returns the dtype of a dtype of torch such as "torch.bfloat16", or None."""
    short = name.removeprefix("torch.")
    if short not in DTYPES:
        return None
    if short.startswith(_ML_DTYPES):
        short = getattr(importlib.import_module("ml_dtypes"), short)
    dtype: np.dtype[Any] = np.dtype(short)
    return dtype


def load(torch: Any, operation: str, path: str, source: Any, **options: Any) -> Any:
    """Returns torch.load(source, weights_only=True), with an error of ours for a file that it refuses."""
    try:
        return torch.load(source, weights_only=True, **options)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # any: a damaged pickle decides which operations meet which objects
        raise failure(
            ValueError,
            operation,
            f"PyTorch does not read {path!r} with weights_only=True: {safe_repr(error)[:300]}",
            expected="a file of tensors, numbers and texts",
            fix="copy the file again; if it has Python objects, save its state_dict() alone",
        ) from None


def fake_tensors() -> Any:
    """Returns a mode in which torch.load notes where storages begin in the file, and does not read them."""
    return importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode()


def bits_of(torch: Any, tensor: Any) -> np.ndarray[Any, Any]:
    """Returns the bytes of the elements of a tensor in memory, in row-major order."""
    bits: np.ndarray[Any, Any] = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return bits
