# SPDX-License-Identifier: Apache-2.0
"""Reads the shape of a decoder from a model that the library transformers builds without memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from artifex_devices._base.checks import failure, wrong_type
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.shape.parameters import from_parameters
from artifex_devices.planner.shape.transformer import TransformerShape

_OPERATION = "models.from_transformers"


def from_transformers(
    name_or_config: str | os.PathLike[str] | Mapping[str, object] | object, *, name: str | None = None
) -> TransformerShape:
    """Reads the shape of a decoder of any architecture of the library transformers.

    transformers builds the model on PyTorch's meta device, where parameters have shapes and no memory. The number of
    parameters is exact; `other_parameters` is the part that no size describes, and a note says how large it is. For
    families that `from_hf_config` knows, prefer that: its sizes describe all parameters.

    Args:
        name_or_config: A name on the Hugging Face Hub, of which transformers downloads the config; a local folder; the
            dict of a config.json; or a config of transformers. Code of a repository is never executed.
        name: Name of the shape; by default that of the config.

    Raises:
        ImportError: transformers or PyTorch is not installed.
        ValueError: transformers cannot read the config or build the model, or a size is missing.
        TypeError: An argument has the wrong type.

    Example:
        >>> from_transformers("EleutherAI/gpt-j-6b")  # doctest: +SKIP
        TransformerShape(name='EleutherAI/gpt-j-6b', layers=28, embed=4096, ...)
    """
    if name is not None and not isinstance(name, str):
        raise wrong_type(_OPERATION, "name", name, "a str or None", "write 'my model'")
    is_path = isinstance(name_or_config, (str, os.PathLike))
    has_keys = isinstance(name_or_config, Mapping) or hasattr(name_or_config, "to_dict")
    if isinstance(name_or_config, type) or not (is_path or has_keys):
        raise wrong_type(
            _OPERATION, "name_or_config", name_or_config, "a name, a path, a dict or a config", "write 'gpt2'"
        )
    torch, transformers = _library("torch"), _library("transformers")
    try:
        config = _config(transformers, name_or_config)
        text = config.get_text_config(decoder=True)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(text)
    except Exception as error:
        raise failure(
            ValueError,
            _OPERATION,
            f"transformers cannot build {safe_repr(name_or_config)}: {safe_repr(str(error))}",
            expected="a model of AutoModelForCausalLM",
            fix="give the config of a decoder",
        ) from error
    shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}
    notes = [f"parameters of transformers {transformers.__version__} on the meta device"]
    if text is not config:
        notes.append(f"the text model of {safe_repr(config.model_type)}: encoders of images and sound are left out")
    title = name or getattr(config, "_name_or_path", "") or str(config.model_type)
    return from_parameters(_OPERATION, _values(text), shapes, title, tuple(notes))


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{_OPERATION}: {name} cannot be imported: {error}; expected the libraries transformers and torch; "
            "run pip install 'artifex-devices[hf]'"
        ) from error


def _config(transformers: ModuleType, source: Any) -> Any:
    if isinstance(source, (str, os.PathLike)):
        return transformers.AutoConfig.from_pretrained(os.fspath(source))
    if not isinstance(source, Mapping):
        return source
    values = dict(source)
    return transformers.AutoConfig.for_model(str(values.pop("model_type", None)), **values)


def _values(config: Any) -> dict[str, Any]:
    """Returns the keys of a config, and those of `from_hf_config` for keys with another name."""
    renamed = {key: getattr(config, key, None) for key in getattr(config, "attribute_map", {})}
    values: dict[str, Any] = config.to_dict()
    return renamed | values
