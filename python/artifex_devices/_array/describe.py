# SPDX-License-Identifier: Apache-2.0
"""The placement of an Array, in words. Imported when the first Array is described."""

from __future__ import annotations

from artifex_devices._base.text import bytes_text
from artifex_devices._core import AbstractMesh, Array, Layout, Mesh, NamedSharding, PjRtLayout, Sharding
from artifex_devices._core.internal import array_memory

_IDS_SHOWN = 8
_NAME_WIDTH = len("aliasing")


def describe(array: Array) -> str:
    """Formats the text of `Array.describe()`."""
    facts = facts_of(array)
    return "\n".join([title_of(array), *(f"  {name:<{_NAME_WIDTH}}  {text}" for name, text in facts)])


def title_of(array: Array) -> str:
    """Formats the title: `Array float32(16, 4), 256 bytes`."""
    return f"Array {array.dtype.name}{array.shape}, {bytes_text(array.nbytes)}"


def facts_of(array: Array) -> list[tuple[str, str]]:
    """Returns name and text of each fact, in the order in which they are shown."""
    sharding = array.sharding
    facts = sharding_facts(sharding)
    layout = array._pjrt_layout
    if layout != PjRtLayout(Layout(range(array.ndim - 1, -1, -1))):
        facts.append(("layout", str(layout)))
    shards = f"{sharding.num_devices} of {sharding.shard_shape(array.shape)}"
    if not sharding.is_fully_addressable:
        shards += f", {len(sharding.addressable_devices) or 'none'} of them in this process"
    committed = "committed" if array.committed else "uncommitted"
    try:
        memory = array_memory(array)
        state = "ready" if array.is_ready() else "being written"
    except RuntimeError:
        if not array.is_deleted():  # it may have been deleted by another thread in the meantime
            raise
        return [*facts, ("shards", shards), ("state", f"{committed}, deleted")]
    if memory["device_bytes_min"] < memory["device_bytes_max"]:
        shards += " or less"
    return [
        *facts,
        ("shards", shards),
        ("memory", _memory_text(memory)),
        *_pages_facts(sharding, memory),
        ("aliasing", _aliasing_text(memory)),
        ("state", f"{committed}, {state}"),
    ]


def sharding_facts(sharding: Sharding) -> list[tuple[str, str]]:
    """Returns the facts about a sharding that belongs to no array."""
    if isinstance(sharding, NamedSharding):
        options = [f"memory kind {sharding.memory_kind}"] if sharding.memory_kind not in ("device", None) else []
        options += [f"uneven {sharding.uneven}"] if sharding.uneven is not None else []
        facts = [
            ("spec", ", ".join([str(sharding.spec), *options])),
            ("mesh", mesh_text_of(sharding.mesh) if isinstance(sharding.mesh, Mesh) else repr(sharding.mesh)),
        ]
        if isinstance(sharding.mesh, AbstractMesh):
            return facts
    else:
        facts = [("sharding", repr(sharding))]
    ids = sorted(device.id for device in sharding.device_set)
    return [*facts, ("devices", devices_text(next(iter(sharding.device_set)).platform, ids))]


def mesh_text_of(mesh: Mesh | AbstractMesh) -> str:
    """Formats the axes: `'data': 4, 'model': 2`."""
    return ", ".join(f"{name!r}: {size}" for name, size in mesh.shape.items()) or "no axes"


def devices_text(platform: str, ids: list[int]) -> str:
    """Formats the ids: `8, cpu:0 to cpu:7`."""
    if len(ids) == 1:
        return f"{platform}:{ids[0]}"
    if ids == list(range(ids[0], ids[0] + len(ids))):
        return f"{len(ids)}, {platform}:{ids[0]} to {platform}:{ids[-1]}"
    listed = ", ".join(f"{platform}:{i}" for i in ids[:_IDS_SHOWN])
    return f"{len(ids)}, {listed}{', ...' if len(ids) > _IDS_SHOWN else ''}"


def _memory_text(memory: dict[str, int]) -> str:
    logical = bytes_text(memory["logical_bytes"])
    if memory["devices"] == 1 and memory["physical_bytes"] == memory["logical_bytes"]:
        return logical
    if memory["buffers"] == 0:
        return f"{logical} logical, none of it in this process"
    low, high = memory["device_bytes_min"], memory["device_bytes_max"]
    each = bytes_text(low) if low == high else f"{bytes_text(low)} to {bytes_text(high)}"
    physical = f"{bytes_text(memory['physical_bytes'])} physical in {_buffers_text(memory)}"
    return f"{logical} logical, {each} per device; {physical}"


def _buffers_text(memory: dict[str, int]) -> str:
    return f"{memory['buffers']} buffer{'' if memory['buffers'] == 1 else 's'}"


def _pages_facts(sharding: Sharding, memory: dict[str, int]) -> list[tuple[str, str]]:
    """Returns whether pages of pinned memory are locked."""
    if sharding.memory_kind != "pinned_host":
        return []
    missing = memory["blocks"] - memory["locked_blocks"]
    if missing <= 0:
        return [("pages", "locked in RAM")]
    return [("pages", f"not locked: the system refused {missing} of {memory['blocks']} blocks (see ulimit -l)")]


def _aliasing_text(memory: dict[str, int]) -> str:
    """Formats the other users of the memory."""
    uses = []
    if memory["foreign_blocks"]:
        uses.append("memory of a host ndarray (may_alias): views of it that were created earlier can still write")
    if memory["is_shard"]:
        uses.append("memory of the Array that this shard was taken from")
    if memory["devices"] > memory["buffers"] > 0:
        uses.append(f"replicas share: {memory['devices']} devices, {_buffers_text(memory)}")
    if memory["slab_stride"]:
        uses.append(f"buffers in one slab, {memory['slab_stride']} bytes apart")
    elif memory["blocks"] < memory["buffers"]:
        uses.append(f"{memory['buffers']} buffers in {memory['blocks']} slabs")
    if memory["other_users"]:
        many = memory["other_users"] > 1
        uses.append(
            f"{memory['other_users']} other handle{'s' if many else ''} on the memory (views, Arrays or transfers)"
        )
    return "; ".join(uses) or "none"
