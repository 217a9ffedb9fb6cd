# SPDX-License-Identifier: Apache-2.0
"""Where devices are: what mesh_utils reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifex_devices import _core
from artifex_devices._base.safe_repr import shown
from artifex_devices.accelerators import accelerators

_KINDS_WITH_CORES = frozenset(("TPU7x", "TPU7", "TPU8i"))  # an axis of the torus, with one core too

__all__ = ["Places", "Torus", "places_of", "torus_of"]

Ndarray = NDArray[Any]


@dataclass(frozen=True)
class Torus:
    """A torus and its links: bytes/s of one link, one way; seconds of a hop. Nothing of it is known: 1 byte/s."""

    wraps: list[bool]
    link_bandwidth: float
    hop_latency: float
    source: str


@dataclass(frozen=True, eq=False)
class Places:
    """Where the devices of a list are.

    Attributes:
        devices: The devices.
        platform: Of the last of them, as `device_kind`.
        device_kind: What JAX's rule goes by.
        ids: (n,).
        coords: (n, 3), or None where one of them has none.
        cores: (n,): core_on_chip.
        slices: (n,): slice_index; 0 where a device has none.
        cluster: The cluster that all are of, or None.
    """

    devices: Sequence[Any]
    platform: str
    device_kind: str
    ids: Ndarray
    coords: Ndarray | None
    cores: Ndarray
    slices: Ndarray
    cluster: _core.Cluster | None

    def take(self, positions: Ndarray) -> Places:
        """The same of some of the devices."""
        return Places(
            [self.devices[at] for at in positions],
            self.platform,
            self.device_kind,
            self.ids[positions],
            None if self.coords is None else self.coords[positions],
            self.cores[positions],
            self.slices[positions],
            self.cluster,
        )

    def sizes(self) -> Ndarray:
        """Largest coordinates, counted from 1: (3,). Raises ValueError where a device has no coords."""
        if self.coords is None:
            raise self.no_coords()
        return np.asarray(self.coords.max(axis=0) + 1)

    def no_coords(self) -> ValueError:
        """That a device has none, and which."""
        device = next(device for device in self.devices if not hasattr(device, "coords"))
        return ValueError(
            f"create_device_mesh: {device} has no coords; expected TPU devices with coords; name their platform rightly"
        )

    def is_box(self, *sizes: int) -> bool:
        """Whether the largest coordinates are these."""
        return self.coords is not None and tuple(self.sizes()) == sizes

    def by_coords(self) -> Ndarray:
        """Positions of the devices sorted by z, y, x, equal ones as they come; in JAX all are, without coords."""
        return np.arange(len(self.ids)) if self.coords is None else np.lexsort(tuple(self.coords.T))

    def torus(self, dims: Sequence[int]) -> Torus:
        """The links of the torus that the devices fill."""
        cluster = self.cluster
        if cluster is not None and cluster.network == "torus":
            parts = cluster.parts
            bandwidth, latency = parts["bandwidth"], parts["latency"]
            # Part of a slice does not wrap.
            wraps = [
                i < len(cluster.dims) and cluster.dims[i] == size and cluster.wraps[i] for i, size in enumerate(dims)
            ]
            if bandwidth is not None:
                return Torus(wraps, bandwidth[0], 0.0 if latency is None else latency[0], bandwidth[1])
            return Torus(wraps, 1.0, 0.0, "")
        wraps = [*_core._wraps_by_rule(self.device_kind, [int(size) for size in dims[:3]]), *[False] * (len(dims) - 3)]
        for each in accelerators():
            if self.device_kind in each.device_kinds and each.links is not None:
                rate = each.links.one_way or each.links.nominal_one_way
                if rate is not None:
                    return Torus(wraps, rate, 1e-6, "; ".join(source.title for source in each.link_sources))
        return Torus(wraps, 1.0, 0.0, "")


def places_of(devices: Sequence[Any]) -> Places:
    """What is to be known of a list of devices, at least one."""
    last = devices[-1]
    if not hasattr(last, "platform") or not hasattr(last, "device_kind"):
        raise TypeError(
            f"mesh_utils: {shown(last)} ({type(last).__name__}) is no device; expected objects with id, platform and "
            "device_kind; give devices() or those of a cluster"
        )
    table = _core._device_places(devices)
    if table is not None:
        has_coords = hasattr(last, "coords")
        coords = table[:, 2:5] if has_coords else None
        about = (last.platform, last.device_kind, table[:, 0], coords, table[:, 5], table[:, 6])
        return Places(devices, *about, last.client.cluster)
    nameless = next((device for device in devices if not hasattr(device, "id")), None)
    if nameless is not None:
        raise TypeError(
            f"mesh_utils: {shown(nameless)} ({type(nameless).__name__}) has no id; expected objects with id, platform "
            "and device_kind; give devices() or those of a cluster"
        )
    has_coords = all(hasattr(device, "coords") for device in devices)
    return Places(
        devices,
        last.platform,
        last.device_kind,
        np.array([device.id for device in devices]),
        np.array([(*device.coords, 0, 0)[:3] for device in devices]) if has_coords else None,
        np.array([getattr(device, "core_on_chip", 0) for device in devices]),
        np.array([getattr(device, "slice_index", 0) for device in devices]),
        None,
    )


def torus_of(places: Places) -> tuple[tuple[int, ...], Ndarray]:
    """Sizes of the torus that TPU devices fill, and for each place of it (row-major) the device's position in the list.

    Raises AssertionError, as JAX, for a hole in the cuboid, and for a second core of a chip that has one device.
    """
    if places.coords is None:
        raise places.no_coords()
    coords = places.coords - places.coords.min(axis=0)
    dims = tuple(int(size) for size in coords.max(axis=0) + 1)
    on_chip = places.cores - places.cores.min()
    cores = int(on_chip.max()) + 1

    def holes() -> AssertionError:
        return AssertionError(f"jax_devices={list(places.devices)} {dims=} cores_per_chip={cores}")

    if len(places.ids) != int(np.prod(dims)) * cores:
        raise holes()
    has_cores = places.device_kind in _KINDS_WITH_CORES or (places.device_kind == "TPU v5p" and cores > 1)
    if not has_cores and cores > 1:
        at = int(np.flatnonzero(places.cores)[0])
        device = places.devices[at]
        raise AssertionError(
            'Creating meshes for TPU >v3 requires one device per chip ("megacore" mode). Got device id '
            f"{places.cores[at]} for a device of kind {device.device_kind}: {device}."
        )
    if has_cores:
        dims = (*dims, cores)
        coords = np.column_stack([coords, on_chip])
    place = np.ravel_multi_index(tuple(coords.T), dims)
    on_torus = np.full(len(place), -1)
    on_torus[place] = np.arange(len(place))
    if (on_torus < 0).any():
        raise holes()
    return dims, on_torus
