# SPDX-License-Identifier: Apache-2.0
"""The configurations that a search for a training run tries, and the options that it finds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from artifex_devices import _planner
from artifex_devices._base.checks import check_int, check_sequence, failure
from artifex_devices._base.progress import progress_bar
from artifex_devices._base.public_path import public
from artifex_devices._core import Cluster
from artifex_devices.planner.plain_numbers import plain
from artifex_devices.planner.shape import TransformerShape
from artifex_devices.planner.training.arguments import check_fields
from artifex_devices.planner.training.config import CONTEXT_METHODS, RECOMPUTES, TrainingConfig
from artifex_devices.planner.training.efficiency import Efficiency

SEARCHED = (
    "tensor", "context", "context_method", "pipeline", "chunks", "expert", "microbatch", "zero", "zero_shards",
    "recompute", "optimizer", "offload_optimizer", "offload_activations",
)  # fmt: skip
_OFFLOADS = ("offload_optimizer", "offload_activations")
_PARTS = (0.25, 0.5, 0.75, 1.0)  # of a stage's layers that are recomputed
_UNITS = (1, 2, 4)  # layers
_TRIED = 16  # fastest configurations for each option, because many differ by nothing that matters
_MOST_TRIED = 320  # where there are not more options


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class TrainingSpace:
    """The space of a search and what became of it.

    Attributes:
        choices: Values of each searched field.
        max_tensor: Largest tensor parallelism.
        memory_limit: Bytes of memory of a device.
        combinations: Number of combinations.
        consistent: Combinations that fit the model, the batch and the cluster.
        too_large: Consistent combinations that do not fit in memory.
        skipped: Combinations that cannot be faster: a bound shows it, or they offload but fit without offloading.
        priced: Combinations whose seconds were computed.
    """

    choices: Mapping[str, tuple[Hashable, ...]]
    max_tensor: int
    memory_limit: float
    combinations: int
    consistent: int
    too_large: int
    skipped: int
    priced: int

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "choices": dict(self.choices)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, choices=MappingProxyType(dict(state["choices"])))


class FoundConfigs(NamedTuple):
    """Configurations with their numbers of devices, as TrainingSuggestions has them, and what all of them share."""

    config: TrainingConfig
    options: tuple[tuple[TrainingConfig, int], ...]
    same: tuple[tuple[TrainingConfig, ...], ...]  # as each option in seconds and memory
    front: tuple[tuple[TrainingConfig, int], ...]  # of each number of devices apart
    nearest: tuple[tuple[TrainingConfig, int], ...]
    ways_out: tuple[dict[str, object], ...]
    space: TrainingSpace


def find_configs(
    shape: TransformerShape,
    cluster: Cluster,
    efficiency: Efficiency,
    pinned: Mapping[str, object],
    *,
    batch: int,
    sequence: int,
    top: int,
    max_tensor: int | None = None,
    device_counts: Iterable[int] | None = None,
    progress: bool = False,
) -> FoundConfigs:
    """Searches for configurations; suggest() describes the arguments."""
    config, choices = _pinned(shape, batch, sequence, pinned)
    # Kernels do not depend on the ZeRO stage or the context method here, so that a search compares only these.
    is_balanced = config.context_balanced is not False
    config = config.replaced(attention_kernel=config._attention_kernel, context_balanced=is_balanced)
    overlap = pinned.get("overlap", {})
    most = largest_tensor(cluster, max_tensor)
    counts = _device_counts(cluster, device_counts)
    limit = _memory(cluster)
    is_uniform = config.recompute_method == "uniform"
    plain_schedule = "1f1b" if config.schedule == "interleaved" else config.schedule  # of stages of one chunk
    space: dict[str, Any] = {
        "base": config.replaced(data=1, schedule=plain_schedule, overlap=overlap)._described(cluster.device_count),
        "recompute_parts": list(_PARTS),
        "recompute_layers": choices.pop("recompute_layers", list(_UNITS) if is_uniform else []),
        "interleaved_overlap": config.replaced(schedule="interleaved", overlap=overlap).overlap["pipeline"],
        "memory_limit": limit,
        "host_limit": _host_memory(cluster),
        "top": max(top, min(_TRIED * top, _MOST_TRIED)),
        **_choices(shape, cluster, config, most, choices),
        "devices": [cluster.device_count],
    }
    searched: dict[str, tuple[Hashable, ...]] = {key: tuple(space[key]) for key in SEARCHED}
    space["context_method"] = [
        (method, config.replaced(context_method=method, overlap=overlap).overlap["context"])
        for method in searched["context_method"]
    ]
    total = _planner.training_groups(space) * len(counts)
    found: dict[int, dict[str, Any]] = {}
    with progress_bar("suggest", total, is_wanted=progress) as report:
        for i, devices in enumerate(counts):
            shift = i * total // len(counts)
            shown = None if report is None else lambda done, shift=shift, report=report: report(shift + done)
            each = {**space, "devices": [devices]}
            found[devices] = _planner.search_training(vars(shape), cluster, each, efficiency._described(), shown)

    def chosen(each: dict[str, Any]) -> tuple[TrainingConfig, int]:
        values = each["config"]
        fields = {key: values[key] for key in (*SEARCHED, "data", "expert_tensor", "sequence_parallel", "schedule")}
        fields["zero_shards"] = fields["zero_shards"] or None
        fields["recompute_layers"] = None if values["recompute_layers"] < 0 else values["recompute_layers"]
        return _with_defaults(config.replaced(**fields, overlap=overlap), pinned), each["devices"]

    whole = found[counts[0]]
    rows: dict[int, list[tuple[TrainingConfig, int]]] = {}
    for each in whole["options"]:
        if each["row"] < top:
            rows.setdefault(each["row"], []).append(chosen(each))
    options = tuple(row[0] for row in rows.values())
    numbers = ("combinations", "consistent", "too_large", "skipped", "priced")
    return FoundConfigs(
        config=config,
        options=options,
        same=tuple(tuple(config for config, _ in row[1:]) for row in rows.values()),
        front=tuple(chosen(each) for devices in counts for each in found[devices]["front"]),
        nearest=tuple(map(chosen, whole["nearest"])),
        ways_out=() if options else _ways_out(shape, cluster, space),
        space=TrainingSpace(MappingProxyType(searched), most, limit, **{key: whole[key] for key in numbers}),
    )


def _with_defaults(config: TrainingConfig, pinned: Mapping[str, object]) -> TrainingConfig:
    """Returns a configuration that leaves out what follows from its other fields."""
    usual = config.replaced(attention_kernel=None)
    if "attention_kernel" not in pinned and config.attention_kernel == usual._attention_kernel:
        config = usual
    is_balanced = config.context == 1 or config.context_balanced == (config.context_method != "all_gather")
    return config.replaced(context_balanced=None) if "context_balanced" not in pinned and is_balanced else config


def _pinned(
    shape: TransformerShape, batch: Any, sequence: Any, pinned: Mapping[str, object]
) -> tuple[TrainingConfig, dict[str, list[Any]]]:
    """Returns the configuration of the fields that are not searched, and the choices of fields that are pinned."""
    check_fields("suggest", pinned, "data")
    if pinned.get("sequence_parallel") is False:
        raise failure(
            ValueError,
            "suggest",
            "sequence_parallel=False cannot be pinned",
            expected="it to follow from the search, which shards sequences over the tensor ranks",
            fix="leave it out",
        )
    choices: dict[str, list[Any]] = {}
    rest = {}
    for key, given in pinned.items():
        value = plain(given)
        if key == "optimizer" and value is None:  # the framework's
            continue
        if key not in (*SEARCHED, "recompute_layers"):
            rest[key] = value
        elif isinstance(value, (int, str)) or value is None:
            choices[key] = [value]
        else:
            found = check_sequence("suggest", key, value, "a number, a text, or a sequence of numbers or texts")
            choices[key] = [plain(each) for each in found]
    config = TrainingConfig(batch=batch, sequence=sequence, **rest)
    for key, values in choices.items():
        for value in values:  # checks each
            config.replaced(**{key: value}, **({"schedule": "interleaved"} if key == "chunks" else {}))
        if not values:
            raise ValueError(f"suggest: {key} has no choices; expected one or more; leave it out to search it")
    if "recompute_layers" in choices:
        every = 1 if config.recompute_method == "uniform" else shape.layers  # what None means
        choices["recompute_layers"] = sorted({every if each is None else each for each in choices["recompute_layers"]})
    if "zero_shards" in choices:
        choices["zero_shards"] = [value or 0 for value in choices["zero_shards"]]
    return config, choices


def largest_tensor(cluster: Cluster, given: object) -> int:
    """Returns the largest tensor parallelism: the caller's, or for None the number of devices inside a node."""
    if given is not None:
        return check_int("suggest", "max_tensor", given, minimum=1, maximum=2**20)
    inside = cluster.device_count // cluster.slices
    return min(inside, 16 if cluster.platform == "tpu" else 8)


def _device_counts(cluster: Cluster, given: object) -> list[int]:
    every = cluster.device_count
    if given is None:
        inside = every // cluster.slices
        return [every // part for part in (1, 2, 4) if every % part == 0 and (every // part) % inside == 0]
    values = check_sequence("suggest", "device_counts", given, "a sequence of ints")
    counts = [check_int("suggest", "device_counts", each, minimum=1, maximum=every) for each in values]
    if not counts:
        raise ValueError("suggest: device_counts is empty; expected 1 or more; leave it out for all devices")
    return sorted(set(counts), reverse=True)


def _memory(cluster: Cluster) -> float:
    found = cluster.parts["memory_bytes"]
    if found is None:
        raise failure(
            RuntimeError,
            "suggest",
            f"the memory of a device of {cluster.name} is not known",
            expected="it in the cluster",
            fix="give the cluster's chip its memory_bytes",
        )
    return float(found[0]) / int(cluster.parts["devices_per_chip"])


def _host_memory(cluster: Cluster) -> float:
    """Returns the bytes of a host, or 0 where they are not known."""
    found = cluster.parts["host_memory_bytes"]
    return 0.0 if found is None else float(found[0])


def _divisors(number: int, most: int) -> list[int]:
    return [each for each in range(1, min(number, most) + 1) if number % each == 0]


def _powers(most: int) -> list[int]:
    return [1 << i for i in range(max(most, 1).bit_length()) if 1 << i <= most]


def _choices(
    shape: TransformerShape, cluster: Cluster, config: TrainingConfig, most: int, given: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Returns the choices of every searched field."""
    devices = cluster.device_count
    per_node = devices // cluster.slices
    found: dict[str, list[Any]] = {
        "tensor": _divisors(shape.heads, most),
        "context": [
            each for each in _powers(16) if config.sequence % (2 * each) == 0 and config.sequence // each >= 1024
        ]
        or [1],
        "pipeline": _divisors(devices, shape.layers),
        "chunks": [1, *[each for each in (2, 3, 4, 5, 6, 8, 10, 12, 16) if each * 2 <= shape.layers]],
        "expert": _divisors(max(shape.experts, 1), devices),
        "microbatch": [each for each in _powers(16) if config.batch % each == 0],
        "zero": [0, 1, 2, 3],
        "zero_shards": [0, per_node] if cluster.slices > 1 else [0],
        "recompute": list(RECOMPUTES) if not config.flash_attention else ["none", "full"],
        "context_method": list(CONTEXT_METHODS),
        "optimizer": [config.optimizer],
        **dict.fromkeys(_OFFLOADS, [False] if cluster.parts["host_bandwidth"] is None else [False, True]),
    }
    return {key: given.get(key, values) for key, values in found.items()}


def _ways_out(shape: TransformerShape, cluster: Cluster, space: dict[str, Any]) -> tuple[dict[str, object], ...]:
    """Returns changes that would make the run fit, after the memory model has checked them."""

    def fits(changed: dict[str, Any], devices: int) -> bool:
        return _planner.fits_in_memory(vars(shape), cluster, {**space, **changed}, devices)

    found: list[dict[str, object]] = []
    base, devices = space["base"], cluster.device_count
    offloads = [name for name in _OFFLOADS if space[name] == [False]]
    for names in [offloads[:1], offloads[1:], offloads] if cluster.parts["host_bandwidth"] is not None else []:
        if names and fits({key: [True] for key in names}, devices):
            found.append(dict.fromkeys(names, True))
            break
    sequence = base["sequence"] // 2
    while sequence >= 256:
        if fits({"base": {**base, "sequence": sequence}, "context": [1, 2]}, devices):
            found.append({"sequence": sequence})
            break
        sequence //= 2
    for factor in (2, 4, 8, 16, 32, 64):
        wider = {"pipeline": _divisors(devices * factor, shape.layers)}
        if fits(wider, devices * factor):
            found.append({"devices": devices * factor})
            break
    return tuple(found)
