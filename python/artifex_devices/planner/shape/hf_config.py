# SPDX-License-Identifier: Apache-2.0
"""Reads the shape of a decoder from a config.json of Hugging Face."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.regular_file import read_regular_file
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.shape.hf_defaults import DEFAULTS
from artifex_devices.planner.shape.hf_families import ALIASES, FAMILIES
from artifex_devices.planner.shape.hf_quantization import StoredWeights, stored_weights
from artifex_devices.planner.shape.hf_reader import ConfigReader
from artifex_devices.planner.shape.parameters import from_parameters, stored_shapes
from artifex_devices.planner.shape.transformer import TransformerShape

_OPERATION = "models.from_hf_config"
_MOST_BYTES = 1 << 20  # configs of published models have a few KB
_OF_BOTH = ("tie_word_embeddings", "quantization_config")  # keys of a model that its text model has where it lacks them


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

    Families: Llama (and Llama 4), Mistral, Mixtral, Qwen2, Qwen2-MoE, Qwen3, Qwen3-MoE, Qwen3-Next, Gemma 1 to 3,
    DeepSeek-V2 and -V3, Kimi K2, GLM-4.5, gpt-oss, GPT-2, GPT-NeoX, OLMo 1 and 2, OPT, BLOOM, Falcon, Phi-3,
    StarCoder2, Granite, Cohere 1 and 2. Of a model with a vision encoder only the text model is read. Values that a
    config leaves out have the defaults of its class in the library transformers. `quantization_config` sets
    `quantized_bytes` and `quantized_kinds`. The function neither downloads anything nor executes code of the file.

    In a folder with safetensors files, a model of another family has the parameters of their headers.

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
    outer = values.get("model_type")
    values, notes = _text_model(values)
    title = name or values.get("_name_or_path")
    title = title if isinstance(title, str) and title else None
    family = values.get("model_type")
    known = ALIASES.get(family, family) if isinstance(family, str) else None
    if known not in FAMILIES:
        folder = Path(source) if isinstance(source, (str, os.PathLike)) else None
        if folder is not None and folder.is_dir() and any(folder.glob("*.safetensors")):
            return from_parameters(_OPERATION, values, stored_shapes(folder), title or safe_repr(family), tuple(notes))
        raise failure(
            ValueError,
            _OPERATION,
            f"model_type is {safe_repr(outer)}",
            expected=f"one of {', '.join([*FAMILIES, *ALIASES])}",
            fix="for other models call models.from_transformers, or give a folder that has safetensors files too",
        )
    read = ConfigReader(values, DEFAULTS.get(known, {}))
    shape = FAMILIES[known](read)
    if not set(values) - {"model_type", "_name_or_path"}:  # no published config leaves out all
        read.problems = [f"{key} is missing" for key in read.defaulted]
    weights: StoredWeights | str = ""
    if values.get("quantization_config") is not None:
        weights = stored_weights(values["quantization_config"])
        if isinstance(weights, str) and weights:
            read.problems.append(weights)
    if read.problems:
        raise failure(
            ValueError,
            _OPERATION,
            f"the {family} config is wrong: {'; '.join(read.problems)}",
            expected="the keys of a published config.json",
            fix="correct each",
        )
    title = title or str(family)
    if read.defaulted:
        notes.append(f"as usual in transformers: {', '.join(f'{key} {size}' for key, size in read.defaulted.items())}")
    notes += read.notes
    found = TransformerShape(title, **shape, source=f"config.json of {title}", notes=tuple(notes))
    return found if values.get("quantization_config") is None else _quantized(found, weights)


def _text_model(values: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], list[str]]:
    """Returns the config of the text model, and a note where other parts of the model are left out."""
    outer, text = values.get("model_type"), values.get("text_config")
    if not isinstance(text, Mapping) or (isinstance(outer, str) and outer in FAMILIES):
        return values, []
    shared = {key: values[key] for key in _OF_BOTH if key in values}
    inner = {"model_type": outer} | shared | dict(text)
    return inner, [f"the text model of {safe_repr(outer)}: encoders of images and sound are left out"]


def _quantized(shape: TransformerShape, weights: StoredWeights | str) -> TransformerShape:
    if isinstance(weights, str):
        note = "quantization_config has a method that is not known here: weights count as bfloat16"
        return replace(shape, notes=(*shape.notes, note))
    kinds = ("expert",) if weights.only_experts else ("attention", "mlp", "expert")
    found = replace(shape, quantized_bytes=weights.nbytes, quantized_kinds=kinds)
    parts = "experts" if weights.only_experts else "layers"
    note = (
        f"matrices of {parts} are stored as {weights.text}: {found.parameter_bytes:.3f} bytes per parameter on average"
    )
    return replace(found, notes=(*found.notes, note))
