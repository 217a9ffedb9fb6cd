# SPDX-License-Identifier: Apache-2.0
"""The model as an argument: a shape, or a text that names one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean, nearest
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.shape.hf_config import from_hf_config
from artifex_devices.planner.shape.published import HUB_IDS, SHAPES, published_shape
from artifex_devices.planner.shape.shape_file import shape_of_file
from artifex_devices.planner.shape.transformer import TransformerShape

#: Values that a `model` argument may have.
ModelLike: TypeAlias = str | os.PathLike[str] | TransformerShape

_LISTED = "`artifex_devices plan models` lists"


def shape_of(operation: str, model: object, name: str = "model") -> TransformerShape:
    """Returns the shape of a `model` argument.

    Args:
        operation: Name of the public function.
        model: A shape; a name of `models.SHAPES` or an id on the Hugging Face Hub, in any case; the path of a TOML
            file, of a config.json or of its folder. A path of the same spelling as a name starts with "./".
        name: Name of the argument; "" leaves it out of messages.

    Raises:
        ValueError: The text is not known, or the file is wrong.
        OSError: The TOML file cannot be read.
        TypeError: `model` is something else.
    """
    if isinstance(model, TransformerShape):
        return model
    if not isinstance(model, (str, os.PathLike)):
        expected = "a name, an id on the Hugging Face Hub, a path, or a TransformerShape"
        raise wrong_type(operation, name, model, expected, "write 'llama-3-70b'")
    text = os.fsdecode(model)
    named = f"{name} {safe_repr(text)}".strip()
    known = published_shape(text) if isinstance(model, str) else None
    if known is not None:
        return known
    if text.endswith(".toml"):
        return shape_of_file(operation, text)
    if text.endswith(".json") or not isinstance(model, str) or _is_config(text):
        return from_hf_config(text)
    if text.count("/") == 1 and not text.startswith((".", "/")):
        read = f"models.from_hf_config('config.json') or models.from_transformers({safe_repr(text)})"
        raise failure(
            ValueError,
            operation,
            f"{named} is an id that is not known here{did_you_mean(text, HUB_IDS)}",
            expected=f"an id that {_LISTED}",
            fix=f"read the sizes of another model with {read}",
        )
    raise failure(
        ValueError,
        operation,
        f"{named} is not a published model{did_you_mean(text, SHAPES)}",
        expected=f"a name that {_LISTED}, or the path of a config.json, of its folder or of a TOML file",
        fix=f"write {(nearest(text, SHAPES) or 'llama-3-70b')!r}",
    )


def _is_config(text: str) -> bool:
    """Returns whether a text is the path of a file, or of a folder with a config.json."""
    with suppress(OSError, ValueError):  # too long, or with a null character
        path = Path(text)
        return path.is_file() or (path / "config.json").is_file()
    return False
