# SPDX-License-Identifier: Apache-2.0
"""Settings of a configuration as text that can be pasted: arguments in Python, options on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from artifex_devices.planner.packed_dtypes import dtype_of
from artifex_devices.planner.training.config import TrainingConfig

Spelling = Callable[[Mapping[str, object]], str]

_DERIVED = ("data", "overlap")
_DTYPES = ("parameter_dtype", "gradient_dtype", "activation_dtype")
_REFUSABLE = ("flash_attention", "causal", "offload_optimizer", "offload_activations")  # with an option --no-...


def changes(before: TrainingConfig, after: TrainingConfig) -> dict[str, object]:
    """Returns the fields that differ, with their later values; without `data`, which the other fields determine."""
    found = {name: value for name, value in vars(after).items() if value != getattr(before, name)}
    if (before.expert_tensor or 1) == (after.expert_tensor or 1):  # None means 1
        found.pop("expert_tensor", None)
    return {name: value for name, value in found.items() if name not in _DERIVED}


def settings(config: TrainingConfig) -> dict[str, object]:
    """Returns the fields of a configuration that differ from the framework's defaults, without batch and sequence."""
    overlap = config._unusual_overlap()
    usual = TrainingConfig(batch=config.batch, sequence=config.sequence, framework=config.framework)
    program = {} if config.framework is None else {"framework": config.framework}
    found = changes(usual, config)
    return {**program, **found, **({"overlap": overlap} if overlap else {})}


def arguments_text(values: Mapping[str, object]) -> str:
    """Formats fields as arguments in Python: "zero=3, recompute='full'"."""
    return ", ".join(f"{name}={_plain(name, value)!r}" for name, value in values.items())


def options_text(values: Mapping[str, object]) -> str:
    """Formats fields as options of the command line: "--zero 3 --recompute full"."""
    given = [_option(name, _plain(name, value)) for name, value in values.items() if not _is_omitted(name, value)]
    omitted = [f"without --{_hyphened(name)}" for name, value in values.items() if _is_omitted(name, value)]
    return ", ".join([*([" ".join(given)] if given else []), *omitted])


def _is_omitted(name: str, value: object) -> bool:
    return value is None or (value is False and name not in _REFUSABLE)


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return f"--{'' if value else 'no-'}{_hyphened(name)}"
    if isinstance(value, dict):
        return f"--{_hyphened(name)} {','.join(f'{key}={each}' for key, each in value.items())}"
    return f"--{_hyphened(name)} {value}"


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


def _plain(name: str, value: object) -> object:
    """Returns the text of a dtype, a dict for a mapping, and other values as they are."""
    if isinstance(value, Mapping):
        return {key: str(dtype_of(each)) if name.endswith("_dtypes") else each for key, each in value.items()}
    return str(dtype_of(value)) if name in _DTYPES else value  # type: ignore[arg-type]
