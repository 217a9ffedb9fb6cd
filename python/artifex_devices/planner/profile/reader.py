# SPDX-License-Identifier: Apache-2.0
"""Reads profiles of training steps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from artifex_devices import _planner
from artifex_devices._base.checks import check_int, check_str, failure
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices.planner.profile.kinds import KINDS
from artifex_devices.planner.profile.name_rules import CONTAINER
from artifex_devices.planner.profile.names import Patterns, compiled_patterns, kind_of
from artifex_devices.planner.profile.report import Profile
from artifex_devices.planner.profile.trace_file import read_events
from artifex_devices.planner.profile.tracks import Operation, find_devices

_OPERATION = "read_profile"


def read_profile(
    source: str | os.PathLike[str] | Mapping[str, object] | list[Any],
    *,
    device: str | None = None,
    steps: int | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Profile:
    """Reads the operations of one device from a trace of training steps in the JSON format of Chrome.

    Read are traces of `torch.profiler` (`export_chrome_trace`), `jax.profiler` (`create_perfetto_trace=True`) and
    `artifex_devices.profiler.trace`. docs/how_to/plan_a_training_run.md lists the names of each kind.

    Args:
        source: A file, also compressed by gzip, of at most 1 GiB of JSON, and 64 times the size of a compressed file
            above 1 MiB; a folder that `jax.profiler.trace` wrote, of which the newest trace is
            read; or the parsed JSON.
        device: Device such as "gpu:0", "tpu:3" or "cpu:1"; None means the first one.
        steps: Number of steps that were profiled, or None to count the steps that the trace marks.
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
        raise failure(
            ValueError,
            _OPERATION,
            f"{safe_repr(name)} has no operations of a device",
            expected=(
                "kernels of torch.profiler, tracks of devices of jax.profiler, or transfers and collectives "
                "of profiler.trace"
            ),
            fix="profile a step on a device",
        )
    chosen = devices[0] if device is None else device
    if chosen not in tracks.operations:
        raise failure(
            ValueError,
            _OPERATION,
            f"device is {safe_repr(chosen)}{did_you_mean(chosen, devices)}",
            expected=f"one of {', '.join(devices[:8])}",
            fix="choose one",
        )
    if steps is None and not tracks.steps:
        raise failure(
            ValueError,
            _OPERATION,
            f"{safe_repr(name)} marks no steps",
            expected=(
                "ProfilerStep# of torch.profiler, steps of jax.profiler.StepTraceAnnotation, or spans of "
                "profiler.annotate('step')"
            ),
            fix="or write steps=3",
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


def _profile_of(operations: list[Operation], patterns: Patterns, *, steps: int, **values: Any) -> Profile:
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
    found: dict[str, Any] = _planner.profile_parts(spans, steps)
    mappings = {name: MappingProxyType(found[name]) for name in ("busy", "alone")}
    return Profile(
        steps=steps,
        operations=len(spans),
        unknown=MappingProxyType(dict(sorted(unknown.items(), key=lambda item: (-item[1], item[0])))),
        **{**found, **mappings, **values},
    )
