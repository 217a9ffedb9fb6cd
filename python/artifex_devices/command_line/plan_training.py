# SPDX-License-Identifier: Apache-2.0
"""`plan train`: one configuration of a training run, or with --search the best ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifex_devices.command_line import console
from artifex_devices.command_line.cluster_argument import read_cluster
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan_model import read_shape
from artifex_devices.command_line.training_options import PICTURES

if TYPE_CHECKING:
    from artifex_devices._core import Cluster
    from artifex_devices.models import TransformerShape
    from artifex_devices.planner import Efficiency, TrainingPlan, TrainingSuggestions

_SEARCH_ONLY = ("top", "max_tensor", "memory_headroom", "device_counts")
_PLAN_ONLY = ("data", "measured_step")


def run_train(arguments: argparse.Namespace) -> int:
    """Writes the plan or the options; 1 if nothing fits."""
    _check_options(arguments)
    cluster = read_cluster(arguments.cluster, arguments.measured)
    shape = read_shape(arguments.model)
    with console.usage_errors(TypeError, ValueError):
        efficiency = _efficiency(arguments, cluster)
        found = (_search if arguments.search else _plan)(shape, cluster, efficiency, arguments)
    if arguments.code is not None:
        _write_code(found, arguments)
    elif arguments.svg is not None:
        _write_pictures(found, arguments)
    else:
        console.write_plan(found, arguments)
    return console.OK if _fits(found) else console.ATTENTION


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuses options that need or exclude others."""
    for name in _PLAN_ONLY if arguments.search else _SEARCH_ONLY:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            if arguments.search:
                raise UsageError(f"{option} describes one configuration; it cannot be used with --search; omit one")
            raise UsageError(f"{option} needs --search; add it")
    if arguments.picture is not None and (arguments.svg is None or arguments.search or _is_folder(arguments.svg)):
        raise UsageError("--picture chooses the picture of one configuration; it needs --svg FILE; add it")
    for name, value in _fields(arguments).items():
        if isinstance(value, list) and len(value) > 1 and not arguments.search:
            option, text = f"--{name.replace('_', '-')}", ",".join(map(str, value))
            raise UsageError(f"{option}: {text} are {len(value)} values; expected one, or --search; add --search")


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields of a TrainingConfig that are given."""
    from dataclasses import fields

    from artifex_devices.planner import TrainingConfig

    names = [field.name for field in fields(TrainingConfig)]
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _efficiency(arguments: argparse.Namespace, cluster: Cluster) -> Efficiency:
    from artifex_devices.planner import Efficiency

    if arguments.efficiency == "ideal":
        efficiency = Efficiency.ideal()
    else:
        efficiency = (Efficiency.published if arguments.efficiency == "published" else Efficiency.of)(cluster)
    return efficiency.replaced(**arguments.factor) if arguments.factor else efficiency


def _plan(
    shape: str | TransformerShape, cluster: Cluster, efficiency: Efficiency, arguments: argparse.Namespace
) -> TrainingPlan:
    from artifex_devices.planner import TrainingConfig, plan_training

    values = {name: value[0] if isinstance(value, list) else value for name, value in _fields(arguments).items()}
    if "chunks" in values and values["chunks"] > 1:
        values.setdefault("schedule", "interleaved")
    config = TrainingConfig(**values)
    return plan_training(shape, cluster, config, efficiency=efficiency, measured=arguments.measured_step)


def _search(
    shape: str | TransformerShape, cluster: Cluster, efficiency: Efficiency, arguments: argparse.Namespace
) -> TrainingSuggestions:
    from artifex_devices.planner import suggest_training

    options = {name: getattr(arguments, name) for name in _SEARCH_ONLY}
    options = {name: value for name, value in options.items() if value is not None}
    return suggest_training(
        shape, cluster, efficiency=efficiency, progress=not arguments.quiet, **options, **_fields(arguments)
    )


def _fits(found: TrainingPlan | TrainingSuggestions) -> bool:
    from artifex_devices.planner import TrainingPlan

    return found.fits if isinstance(found, TrainingPlan) else bool(found.options)


def _best(found: TrainingPlan | TrainingSuggestions) -> TrainingPlan:
    """Returns the plan itself, or that of the best option."""
    from artifex_devices.planner import TrainingPlan

    if isinstance(found, TrainingPlan):
        return found
    with console.usage_errors(ValueError):
        return found.best.plan


def _write_code(found: TrainingPlan | TrainingSuggestions, arguments: argparse.Namespace) -> None:
    from artifex_devices.planner import TrainingChoice

    choice = TrainingChoice(_best(found))
    write = {
        "mesh": choice.to_mesh_code,
        "jax": choice.to_jax_code,
        "megatron": choice.to_megatron_flags,
        "maxtext": choice.to_maxtext_flags,
    }
    console.write_text(write[arguments.code]())
    if not _fits(found):
        _complain_that_nothing_fits(arguments)


def _write_pictures(found: TrainingPlan | TrainingSuggestions, arguments: argparse.Namespace) -> None:
    best, path = _best(found), arguments.svg
    kinds = ("front", *PICTURES) if arguments.search else PICTURES

    def draw(kind: str) -> str:
        return console.chart_svg(found) if kind == "front" else best.to_svg(kind)

    if _is_folder(path):
        _make_folder(path)
        for kind in kinds:
            console.write_picture(str(Path(path) / f"{kind}.svg"), draw(kind))
    else:
        console.write_picture(path, draw(arguments.picture or kinds[0]))
    if not _fits(found):
        _complain_that_nothing_fits(arguments)


def _is_folder(path: str) -> bool:
    return path.endswith("/") or (path != "-" and Path(path).is_dir())


def _make_folder(path: str) -> None:
    try:
        Path(path).mkdir(exist_ok=True)
    except OSError as error:
        problem = error.strerror or error
        raise UsageError(f"--svg: {path!r} cannot be created ({problem}); name a folder that can be") from None


def _complain_that_nothing_fits(arguments: argparse.Namespace) -> None:
    option = "--code" if arguments.svg is None else "--svg"
    console.complain(f"artifex_devices plan: it does not fit in memory; omit {option} to see what fits")
