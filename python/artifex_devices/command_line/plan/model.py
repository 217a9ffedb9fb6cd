# SPDX-License-Identifier: Apache-2.0
"""`plan MODEL`: the best configurations of a training run, or the costs of one configuration."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from artifex_devices.command_line import console
from artifex_devices.command_line.console import UsageError
from artifex_devices.command_line.plan.actions import read_model
from artifex_devices.command_line.plan.cluster_argument import read_cluster
from artifex_devices.command_line.plan.model_options import (
    CHOSEN_BY_SEARCH,
    FAILURE_OPTIONS,
    ONE_ONLY,
    PICTURES,
    SEARCH_ONLY,
)

if TYPE_CHECKING:
    from artifex_devices._core import Cluster
    from artifex_devices.planner import Efficiency, FailurePlan, RunCost, TrainingPlan, TrainingSuggestions

    Found: TypeAlias = TrainingPlan | TrainingSuggestions

_MOST_OPTIONS = 1000  # of a search for a program that may not run the fastest ones


def run_model(arguments: argparse.Namespace) -> int:
    """Writes the options that a search finds, or the plan of one configuration; 1 if nothing fits."""
    is_search = _is_search(arguments)
    _check_options(arguments, is_search)
    cluster = read_cluster(arguments.cluster, arguments.measured)
    shape = read_model(arguments.model)
    with console.usage_errors(TypeError, ValueError):
        efficiency = _efficiency(arguments, cluster)
        found = (_search if is_search else _plan)(shape, cluster, efficiency, arguments)
    if arguments.code is not None:
        _write_code(found, arguments)
    elif arguments.svg is not None:
        _write_pictures(found, arguments)
    elif arguments.failures:
        _write_with_failures(found, arguments)
    else:
        _write_report(found, arguments)
    return console.OK if _fits(found) else console.ATTENTION


def _is_search(arguments: argparse.Namespace) -> bool:
    """Returns whether the options leave a choice: no searched field is given, or a field as a list, or --search."""
    given = _fields(arguments)
    has_list = any(isinstance(value, list) for value in given.values())
    return arguments.search or has_list or not any(name in CHOSEN_BY_SEARCH for name in given)


def _check_options(arguments: argparse.Namespace, is_search: bool) -> None:
    """Refuses options that need or exclude others."""
    for name in ONE_ONLY if is_search else SEARCH_ONLY:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            if not is_search:
                raise UsageError(f"{option} needs a search; the options describe one configuration; add --search")
            fix = "leave out --search" if arguments.search else "describe it, such as by --tensor 8"
            raise UsageError(f"{option} is for one configuration, and the options leave a choice; {fix}")
    if arguments.picture is not None and (arguments.svg is None or is_search or _is_folder(arguments.svg)):
        raise UsageError("--picture chooses the picture of one configuration; it needs --svg FILE; add it")
    if arguments.price_per_device_hour is not None and arguments.tokens is None:
        raise UsageError("--price-per-device-hour needs the tokens of the run; add --tokens 15T")
    for name in FAILURE_OPTIONS:
        if getattr(arguments, name) is not None and not arguments.failures:
            raise UsageError(f"--{name.replace('_', '-')} needs --failures; add it")
    if arguments.failures and arguments.restart_seconds is None:
        raise UsageError("--failures needs the seconds of a restart; add --restart-seconds 600")
    if arguments.failures and (arguments.svg is not None or arguments.code is not None):
        option = "--svg" if arguments.code is None else "--code"
        raise UsageError(f"--failures prints a table; it cannot be used with {option}; omit one")


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields of a TrainingConfig that are given; lists of one value as this value."""
    from artifex_devices.planner import TrainingConfig

    values = {field.name: getattr(arguments, field.name) for field in fields(TrainingConfig)}
    return {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value
        for name, value in values.items()
        if value is not None
    }


def _efficiency(arguments: argparse.Namespace, cluster: Cluster) -> Efficiency:
    from artifex_devices.planner import Efficiency

    if arguments.efficiency == "ideal":
        efficiency = Efficiency.ideal()
    else:
        efficiency = (Efficiency.published if arguments.efficiency == "published" else Efficiency.of)(cluster)
    return efficiency.replaced(**arguments.factor) if arguments.factor else efficiency


def _plan(shape: Any, cluster: Cluster, efficiency: Efficiency, arguments: argparse.Namespace) -> TrainingPlan:
    from artifex_devices.planner import plan_training

    measured = arguments.measured_step
    return plan_training(shape, cluster, efficiency=efficiency, measured=measured, **_fields(arguments))


def _search(shape: Any, cluster: Cluster, efficiency: Efficiency, arguments: argparse.Namespace) -> TrainingSuggestions:
    from artifex_devices.planner import suggest
    from artifex_devices.planner.training.code import fields_of_search

    options = {name: getattr(arguments, name) for name in SEARCH_ONLY}
    options = {name: value for name, value in options.items() if value is not None}
    fields = _fields(arguments)
    if arguments.code not in (None, "mesh", "jax"):
        options.setdefault("top", _MOST_OPTIONS)
        fields = {**fields_of_search(arguments.code), **fields}
    found: TrainingSuggestions = suggest(
        shape, cluster, efficiency=efficiency, progress=not arguments.quiet, **options, **fields
    )
    return found


def _fits(found: Found) -> bool:
    from artifex_devices.planner import TrainingPlan

    return found.fits if isinstance(found, TrainingPlan) else bool(found.options)


def _best(found: Found) -> TrainingPlan:
    """Returns the plan itself, or that of the best option."""
    from artifex_devices.planner import TrainingPlan

    if isinstance(found, TrainingPlan):
        return found
    with console.usage_errors(ValueError):
        return found.best.plan


def _failures(found: Found, arguments: argparse.Namespace) -> FailurePlan:
    """Returns the failures of the plan, or of the best option."""
    from artifex_devices.planner import plan_failures

    values = {name: getattr(arguments, name) for name in FAILURE_OPTIONS}
    with console.usage_errors(ValueError):
        return plan_failures(_best(found), **{name: value for name, value in values.items() if value is not None})


def _run_cost(found: Found, arguments: argparse.Namespace) -> RunCost | None:
    """Returns the cost of the run that --tokens describes, with the plan or the best option."""
    if arguments.tokens is None or not _fits(found):
        return None
    with console.usage_errors(ValueError):
        return _best(found).cost_of_run(arguments.tokens, arguments.price_per_device_hour)


def _json(found: Found, arguments: argparse.Namespace) -> str:
    run = _run_cost(found, arguments)
    return found._json({"run": None if run is None else asdict(run)})


def _write_report(found: Found, arguments: argparse.Namespace) -> None:
    if arguments.json:
        console.write_text(f"{_json(found, arguments)}\n")
        return
    summary, run = found._command_summary(), _run_cost(found, arguments)
    if run is not None:
        summary = summary._replace(below=[("run", str(run)), *summary.below])
    console.write_text(f"{summary.text(console.terminal_width(), is_detailed=arguments.details)}\n")


def _write_with_failures(found: Found, arguments: argparse.Namespace) -> None:
    drill = _failures(found, arguments)
    if not arguments.json:
        _write_report(found, arguments)
        console.write_text("\n")
        console.write_plan(drill, arguments)
        return
    document, failures = json.loads(_json(found, arguments)), json.loads(drill.to_json())
    shared = ("format", "kind", "model", "cluster", "devices", "sources")
    own = {name: value for name, value in failures.items() if name not in shared}
    console.write_text(f"{json.dumps(document | {'failures': own}, indent=1)}\n")


def _write_code(found: Found, arguments: argparse.Namespace) -> None:
    from artifex_devices.planner import TrainingChoice, TrainingPlan

    choice, kind = TrainingChoice(_best(found)), arguments.code
    if kind not in ("mesh", "jax") and not isinstance(found, TrainingPlan):
        alike = (
            TrainingChoice(plan)
            for option in found.options
            for plan in (option.plan, *map(option.plan._with_config, option.same))
        )
        choice = next((each for each in alike if each.runs_in(kind)), choice)
    write = {
        "mesh": choice.to_mesh_code,
        "jax": choice.to_jax_code,
        "megatron": choice.to_megatron_flags,
        "maxtext": choice.to_maxtext_flags,
        "torchtitan": choice.to_torchtitan_toml,
        "deepspeed": choice.to_deepspeed_json,
    }
    with console.usage_errors(ValueError):
        text = write[kind]()
    console.write_text(text)
    if not _fits(found):
        _complain_that_nothing_fits(arguments)


def _write_pictures(found: Found, arguments: argparse.Namespace) -> None:
    from artifex_devices.planner import TrainingPlan

    best, path = _best(found), arguments.svg
    kinds = PICTURES if isinstance(found, TrainingPlan) else ("front", *PICTURES)

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
