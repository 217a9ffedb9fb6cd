# SPDX-License-Identifier: Apache-2.0
"""Profiles of training steps: seconds of one device by kind of operation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_int, check_str
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.public_path import public
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import seconds_text
from artifex_devices.planner.profile.names import CONTAINER, compiled_patterns, kind_of
from artifex_devices.planner.profile.trace_file import read_events
from artifex_devices.planner.profile.tracks import Operation, find_devices
from artifex_devices.planner.report import Layout, Report, picked

_OPERATION = "read_profile"
KINDS = {
    "products": "matrix products",
    "attention_forward": "attention, forward",
    "attention_backward": "attention, backward",
    "attention": "attention, direction not known",
    "elementwise": "limited by the memory: norms, activation functions, copies on the device, update",
    "other": "names that no rule knows; they count as computation",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "all_to_all": "all-to-all",
    "send": "sends and receives",
    "host": "copies between host and device",
}
MESSAGES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send", "host")
_SHOWN = 10
_MAX_NAME = 60


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False, repr=False)
class Profile(Report):
    """Seconds of a training step on one device, by kind of operation; `print` shows them.

    Kinds are "products", "attention_forward", "attention_backward", "attention" (of an unknown direction),
    "elementwise" (limited by the memory), "other" (names that no rule knows), "all_gather", "reduce_scatter",
    "all_reduce", "all_to_all", "send" and "host" (copies between host and device).

    Attributes:
        source: Name of the file.
        device: The device.
        devices: All devices of the trace.
        steps: Number of steps.
        steps_from: Where this number is from.
        seconds: Seconds of a step: from the first operation to the last one, over the steps.
        busy: Seconds of a step while operations of a kind run, by kind. Operations of one kind that run at the same
            time count once.
        alone: The part of these while no operation of an earlier kind runs: for messages, what is not hidden behind
            computation. With `idle` it sums to `seconds`.
        idle: Seconds of a step without an operation.
        operations: Number of operations in all steps.
        unknown: Names that no rule knows with their seconds in a step, longest first.
        notes: What the trace does not say.
    """

    source: str
    device: str
    devices: tuple[str, ...]
    steps: int
    steps_from: str
    seconds: float
    busy: Mapping[str, float]
    alone: Mapping[str, float]
    idle: float
    operations: int
    unknown: Mapping[str, float]
    notes: tuple[str, ...]

    def _layout(self) -> Layout:
        of = f" of {len(self.devices)} devices" if len(self.devices) > 1 else ""
        facts = [
            ("device", f"{self.device}{of}"),
            ("steps", f"{self.steps} [{self.steps_from}]"),
            ("step", f"{seconds_text(self.seconds)} from the first operation to the last one, over the steps"),
            ("alone", "without an operation of a kind above it; with idle it sums to the step"),
            *(("note", note) for note in self.notes),
        ]
        rows = [
            (kind, seconds_text(self.busy[kind]), seconds_text(self.alone[kind]), text)
            for kind, text in KINDS.items()
            if self.busy[kind] > 0
        ]
        rows.append(("idle", "", seconds_text(self.idle), "no operation"))
        shown = list(self.unknown.items())[:_SHOWN]
        rows += [("", seconds_text(seconds), "", f"other: {_short(name)}") for name, seconds in shown]
        if len(self.unknown) > _SHOWN:
            rest = sum(list(self.unknown.values())[_SHOWN:])
            rows.append(("", seconds_text(rest), "", f"other: {len(self.unknown) - _SHOWN} more names"))
        return Layout(f"profile {self.source}", facts, ("kind", "busy", "alone", ""), rows)

    def _content(self) -> dict[str, Any]:
        names = ("source", "device", "devices", "steps", "steps_from", "seconds", "idle", "operations", "notes")
        mappings = {name: dict(getattr(self, name)) for name in ("busy", "alone", "unknown")}
        return {"kind": "profile", **picked(self, *names), **mappings}

    def __repr__(self) -> str:
        return f"<Profile: {self.source}, {self.device}, {steps_text(self.steps)} of {seconds_text(self.seconds)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), **{name: dict(getattr(self, name)) for name in ("busy", "alone", "unknown")}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        mappings = {name: MappingProxyType(dict(state[name])) for name in ("busy", "alone", "unknown")}
        vars(self).update({**state, **mappings})


def read_profile(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any],
    *,
    device: str | None = None,
    steps: int | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Profile:
    """Reads the operations of one device from a trace of training steps in the JSON format of Chrome.

    Read are traces of `torch.profiler` (`export_chrome_trace`), `jax.profiler` (`create_perfetto_trace=True`) and
    `artifex_devices.profiler.trace`. docs/how_to/plan_a_training_run.md says which names are of which kind.

    Args:
        source: A file, also compressed by gzip, of at most 1 GiB of JSON, and 64 times the size of a compressed file
            above 1 MiB; a folder that `jax.profiler.trace` wrote, of which the newest trace is
            read; or the parsed JSON.
        device: Device such as "gpu:0", "tpu:3" or "cpu:1"; None means the first one.
        steps: Number of steps that were profiled; None means those that the trace marks.
        kinds: Kinds of names that the rules do not know, or judge wrongly, by regular expression:
            {"my_kernel": "products"}.

    Returns:
        A Profile; `print` shows it, `fit_profile` takes it.

    Raises:
        ValueError: The file has another format, the trace lacks the device or marks of steps, or a kind is unknown.
        TypeError: An argument has the wrong type.
        OSError: The file cannot be read.

    Example:
        >>> kernels = [
        ...     {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16", "ts": 0, "dur": 4e6, "args": {"device": 0}},
        ...     {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ts": 3e6, "dur": 3e6,
        ...      "args": {"device": 0}},
        ... ]
        >>> profile = read_profile({"traceEvents": kernels}, steps=1)
        >>> profile.busy["products"], profile.busy["all_reduce"], profile.alone["all_reduce"], profile.seconds
        (4.0, 3.0, 2.0, 6.0)
    """
    patterns = compiled_patterns(_OPERATION, {} if kinds is None else kinds, tuple(KINDS))
    if steps is not None:
        check_int(_OPERATION, "steps", steps, minimum=1)
    if device is not None:
        check_str(_OPERATION, "device", device, "write device='gpu:0'")
    name, events = read_events(source)
    tracks = find_devices(events)
    devices = tuple(tracks.operations)
    if not devices:
        raise ValueError(
            f"{_OPERATION}: {safe_repr(name)} has no operations of a device; expected kernels of torch.profiler, "
            "tracks of devices of jax.profiler, or transfers and collectives of profiler.trace; profile a step on a "
            "device"
        )
    chosen = devices[0] if device is None else device
    if chosen not in tracks.operations:
        raise ValueError(
            f"{_OPERATION}: device is {safe_repr(chosen)}{did_you_mean(chosen, devices)}; expected one of "
            f"{', '.join(devices[:8])}; choose one"
        )
    if steps is None and not tracks.steps:
        raise ValueError(
            f"{_OPERATION}: {safe_repr(name)} marks no steps; expected ProfilerStep# of torch.profiler, steps of "
            "jax.profiler.StepTraceAnnotation, or spans of profiler.annotate('step'); or write steps=3"
        )
    count = tracks.steps if steps is None else steps
    return _profile_of(
        tracks.operations[chosen],
        patterns,
        source=name,
        device=chosen,
        devices=devices,
        steps=count,
        steps_from="given" if steps is not None else tracks.steps_from,
        notes=tuple(tracks.notes),
    )


def _profile_of(operations: list[Operation], patterns: Any, *, steps: int, **values: Any) -> Profile:
    first = min(operation.begin for operation in operations)
    spans: list[tuple[str, float, float]] = []
    unknown: dict[str, float] = {}
    for name, begin, end, arguments in operations:
        kind = kind_of(name, arguments, patterns)
        if kind == CONTAINER:
            continue
        if kind is None:
            kind = "other"
            unknown[name] = unknown.get(name, 0.0) + (end - begin) / 1e6 / steps
        spans.append((kind, (begin - first) / 1e6, (end - first) / 1e6))
    busy, alone, idle, seconds = _planner.profile_parts(spans, steps)
    return Profile(
        steps=steps,
        seconds=seconds,
        busy=MappingProxyType(busy),
        alone=MappingProxyType(alone),
        idle=idle,
        operations=len(spans),
        unknown=MappingProxyType(dict(sorted(unknown.items(), key=lambda item: (-item[1], item[0])))),
        **values,
    )


def steps_text(steps: int) -> str:
    """Formats a number of steps."""
    return "1 step" if steps == 1 else f"{steps} steps"


def _short(name: str) -> str:
    text = safe_repr(name)[1:-1]
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 3]}..."
