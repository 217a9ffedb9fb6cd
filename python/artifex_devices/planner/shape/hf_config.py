# SPDX-License-Identifier: Apache-2.0
"""Reads the shape of a decoder from a config.json of Hugging Face."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.shape.hf_families import FAMILIES, ConfigReader
from artifex_devices.planner.shape.transformer import TransformerShape

_OPERATION = "models.from_hf_config"
_MOST_BYTES = 1 << 20  # configs of published models have a few KB


def _load(path: Path) -> Any:
    path = path / "config.json" if path.is_dir() else path
    fix = "give the path of a config.json, or the dict that it holds"
    try:
        text = read_regular_file(path, _MOST_BYTES)
    except OSError as error:
        raise ValueError(f"{_OPERATION}: cannot read {safe_repr(str(path))}: {safe_repr(str(error))}; {fix}") from None
    except ValueError as error:  # also a null character
        raise ValueError(f"{_OPERATION}: cannot read {safe_repr(str(path))}: it {error}; {fix}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise failure(
            ValueError,
            _OPERATION,
            f"{safe_repr(str(path))} is not JSON: {safe_repr(str(error))}",
            expected="the object of a config.json",
            fix=fix,
        ) from None


def from_hf_config(
    source: str | os.PathLike[str] | Mapping[str, object], *, name: str | None = None
) -> TransformerShape:
    """Reads the shape of a decoder from a config.json of Hugging Face.

    Families: Llama, Mistral, Mixtral, Qwen2, Qwen2-MoE, Qwen3, Qwen3-MoE, Gemma 1 to 3 (the text model), DeepSeek-V2
    and -V3, GPT-2, GPT-NeoX, OPT, BLOOM, Falcon and Phi-3. Values that a config leaves out have the defaults of its
    class in the library transformers. The function neither downloads anything nor executes code of the file.

    Args:
        source: Path of a config.json or of its folder, or the dict that the file holds.
        name: Name of the shape; by default the config's `_name_or_path`, else its `model_type`.

    Raises:
        ValueError: The file cannot be read or is not JSON; the `model_type` is unknown; a key is missing or has a value
            that no shape can express.
        TypeError: An argument has the wrong type.

    Example:
        >>> config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        ...           "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}
        >>> from_hf_config(config).parameters.total
        202048
    """
    if name is not None and not isinstance(name, str):
        raise wrong_type(_OPERATION, "name", name, "a str or None", "write 'my model'")
    if isinstance(source, (str, os.PathLike)):
        values = _load(Path(source))
    elif isinstance(source, Mapping):
        values = source
    else:
        raise wrong_type(_OPERATION, "source", source, "a path or a dict", "give the path of a config.json")
    if not isinstance(values, Mapping):
        raise wrong_type(_OPERATION, "the config", values, "an object", "give the config.json of a model")
    family = values.get("model_type")
    if family == "gemma3" and isinstance(values.get("text_config"), Mapping):  # with a vision tower, which is left out
        values = {"vocab_size": 262208} | dict(values["text_config"])
        family = "gemma3_text"
    if not isinstance(family, str) or family not in FAMILIES:
        hint = did_you_mean(family, FAMILIES) if isinstance(family, str) else ""
        raise failure(
            ValueError,
            _OPERATION,
            f"model_type is {safe_repr(family)}{hint}",
            expected=f"one of {', '.join(FAMILIES)}",
            fix="for other models write a models.TransformerShape",
        )
    read = ConfigReader(values)
    shape = FAMILIES[family](read)
    if read.problems:
        raise failure(
            ValueError,
            _OPERATION,
            f"the {family} config is wrong: {'; '.join(read.problems)}",
            expected="the keys of a published config.json",
            fix="correct each",
        )
    title = name or values.get("_name_or_path")
    title = title if isinstance(title, str) and title else family
    return TransformerShape(title, **shape, source=f"config.json of {title}")
