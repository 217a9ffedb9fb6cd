# SPDX-License-Identifier: Apache-2.0
"""Why one way to cut a model loses to another, in words with figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from artifex_devices._base.text import bytes_text, seconds_text

if TYPE_CHECKING:
    from artifex_devices.planner.step_values import StepCollective, StepPlan

__all__ = ["is_faster", "memory_text", "why_first", "why_too_large", "why_worse"]

# Equal to the search, which compares seconds in 24 bits.
_EQUAL = 1e-7
_MEASURES = {
    True: (("overlapped", ""), ("serial", " if nothing overlaps")),
    False: (("serial", ""), ("overlapped", " if all overlaps")),
}
_WORDS = {"compute": "FLOPs", "memory": "bytes of memory", "network": "collectives"}


def why_first(plan: StepPlan, overlap: bool) -> str:
    """What bounds the best one."""
    seconds = plan.seconds
    if overlap:
        return f"bound by {plan.bound}: {seconds_text(getattr(seconds, plan.bound))} of {_WORDS[plan.bound]}"
    products = seconds.serial - seconds.network
    return f"{seconds_text(seconds.network)} of collectives after {seconds_text(products)} of products"


def why_worse(plan: StepPlan, before: StepPlan, overlap: bool) -> str:
    """What a plan loses by to one that is as good or better."""
    key, other = ("overlapped", "serial") if overlap else ("serial", "overlapped")
    more = getattr(plan.seconds, key) - getattr(before.seconds, key)
    if more > _EQUAL * getattr(before.seconds, key):
        return f"{seconds_text(more)} more: " + (_bound(plan, before) if overlap else _parts(plan, before))
    more = getattr(plan.seconds, other) - getattr(before.seconds, other)
    if more > _EQUAL * getattr(before.seconds, other):
        if overlap:
            return f"as fast if all overlaps, {seconds_text(more)} more if nothing does: {_parts(plan, before)}"
        return f"as fast one by one, {seconds_text(more)} more if all overlaps: {_bound(plan, before)}"
    more = plan.memory.total - before.memory.total
    if more > 0:
        return f"as fast; {bytes_text(more)} more on a device: {_memory_parts(plan, before)}"
    return "as fast and as large; more axes of the mesh, or more cuts"


def why_too_large(plan: StepPlan, best: StepPlan | None, overlap: bool) -> str:
    """By how much it does not fit, and what it would gain over the best that does."""
    text = f"does not fit: {memory_text(plan)}"
    if best is None:
        return text
    for key, words in _MEASURES[overlap]:
        less = getattr(best.seconds, key) - getattr(plan.seconds, key)
        if less > _EQUAL * getattr(best.seconds, key):
            return f"{text}; {seconds_text(less)} less than 1{words}"
    return text


def is_faster(plan: StepPlan, other: StepPlan, overlap: bool) -> bool:
    """Whether it comes before another one, but for its memory."""
    for key, _ in _MEASURES[overlap]:
        first, second = (getattr(each.seconds, key) for each in (plan, other))
        if abs(first - second) > _EQUAL * second:
            return bool(first < second)
    return False


def memory_text(plan: StepPlan) -> str:
    """Memory of a device, needed and there: "19.2 of 16.0 GiB"."""
    needed, there = (bytes_text(count).split(" ") for count in (plan.memory.total, plan.memory.available))
    unit = "" if needed[1] == there[1] else f" {needed[1]}"
    return f"{needed[0]}{unit} of {' '.join(there)}"


def _bound(plan: StepPlan, before: StepPlan) -> str:
    """What takes longer in a step that waits for one thing."""
    bound = plan.bound
    if bound == "network":
        change = _collectives(plan, before)
        if before.bound == "network":
            return change
        return f"bound by network ({seconds_text(plan.seconds.network)}), no more by {before.bound}; {change}"
    now, then = (getattr(each.seconds, bound) for each in (plan, before))
    return f"{seconds_text(now)} of {_WORDS[bound]} on a device, not {seconds_text(then)}"


def _parts(plan: StepPlan, before: StepPlan) -> str:
    """What takes longer in a step that does one thing after the other."""
    network = plan.seconds.network - before.seconds.network
    products = plan.seconds.serial - before.seconds.serial - network
    texts = [] if abs(network) <= _EQUAL * plan.seconds.serial else [_collectives(plan, before)]
    if abs(products) > _EQUAL * plan.seconds.serial:
        sign = "more" if products > 0 else "less"
        texts.append(f"{seconds_text(abs(products))} {sign} in products")
    return ", ".join(texts)


def _collectives(plan: StepPlan, before: StepPlan) -> str:
    """The kinds of collectives that make up most of what is more, and of what is less."""
    now, then = _by_kind(plan), _by_kind(before)
    changes = {kind: now.get(kind, (0.0, ""))[0] - then.get(kind, (0.0, ""))[0] for kind in (*now, *then)}
    texts = [
        f"{seconds_text(change)} more in {kind} over {now[kind][1]}"
        for kind, change in _largest(changes, sign=1).items()
    ]
    texts += [f"{seconds_text(-change)} less in {kind}" for kind, change in _largest(changes, sign=-1).items()]
    return ", ".join(texts)


def _largest(changes: Mapping[str, float], sign: int) -> dict[str, float]:
    """The largest of one sign: nine tenths of all of them, two kinds at most."""
    ordered = sorted((each for each in changes.items() if each[1] * sign > 0), key=lambda each: -each[1] * sign)
    total = sum(change for _, change in ordered)
    found: dict[str, float] = {}
    for kind, change in ordered[:2]:
        if sum(found.values()) * sign < 0.9 * total * sign:
            found[kind] = change
    return found


def _by_kind(plan: StepPlan) -> Mapping[str, tuple[float, str]]:
    """Seconds of "all-gathers of weights" and such, and the axes on which most of them are spent."""
    found: dict[str, dict[str, float]] = {}
    for each in plan.collectives:
        axes = found.setdefault(_kind(each), {})
        over = " and ".join(each.axes)
        axes[over] = axes.get(over, 0.0) + each.seconds
    return {kind: (sum(axes.values()), max(axes, key=lambda over: axes[over])) for kind, axes in found.items()}


def _kind(each: StepCollective) -> str:
    """Gradients of activations count as activations."""
    of = "activations" if not each.is_parameter else "gradients of weights" if each.is_gradient else "weights"
    return f"{each.op.replace('_', '-')}s of {of}"


def _memory_parts(plan: StepPlan, before: StepPlan) -> str:
    names = ("parameters", "gradients", "optimizer", "activations", "given", "working")
    changes = {name: getattr(plan.memory, name) - getattr(before.memory, name) for name in names}
    grown = max(names, key=lambda name: changes[name])
    return f"{bytes_text(changes[grown])} of {grown}"
