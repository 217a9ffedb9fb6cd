# SPDX-License-Identifier: Apache-2.0
"""Clusters that one does not own: TPU slices, GPU nodes, racks, as values to plan with."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any

from artifex_devices import _core
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import shown
from artifex_devices._base.text import bytes_text
from artifex_devices._core import Cluster, Machine
from artifex_devices._hardware.detection import path_text
from artifex_devices._hardware.find import find_accelerators
from artifex_devices._hardware.rate_limits import RANGE_TEXT, is_sane
from artifex_devices.cluster.file import from_toml
from artifex_devices.planner.calibration_values import Calibration
from artifex_devices.roofline.measured import MeasuredRoofline

__all__ = ["Cluster", "describe", "dgx", "from_toml", "from_xml", "gpus", "mi300x", "nvl72", "this_machine", "tpu"]


_GENERATIONS = ("v4", "v5e", "v5p", "v6e", "7x")
_GPUS = ("v100", "v100-32gb", "a100", "a100-40gb", "h100", "h200", "b200", "gb200", "mi300x")


def tpu(generation: str, shape: Sequence[int], *, slices: int = 1) -> Cluster:
    """TPU slices of the catalogue.

    Args:
        generation: "v4", "v5e", "v5p", "v6e" or "7x".
        shape: Chips of a slice along each axis: two sizes on v5e and v6e, else three.
        slices: How many, joined by the data-centre network.

    Returns:
        A Cluster. Bandwidths are the catalogue's usable rates; axes wrap by its rules (v4, v5p, 7x: all axes where all
        are multiples of 4; v5e, v6e: axes of 16).

    Raises:
        ValueError: No such generation, or no slices of this shape; the text lists what there is.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.tpu("v5p", (8, 8, 16))
        >>> pod.device_count, pod.wraps, pod.process_count
        (1024, (True, True, True), 256)
    """
    _check_text("tpu", "generation", generation)
    try:
        sizes = [operator.index(size) for size in shape]
    except TypeError:
        raise TypeError(
            f"cluster.tpu: shape is {shown(shape)}; expected a sequence of ints; write cluster.tpu('v5p', (4, 4, 8))"
        ) from None
    if any(abs(size) >= 2**31 for size in sizes):
        raise ValueError(f"cluster.tpu: shape is {tuple(sizes)}; expected numbers of chips below 2**31; correct it")
    count = _count("tpu", "slices", slices)
    try:
        return _core._tpu_cluster(generation, sizes, count)
    except ValueError as error:
        raise ValueError(
            _with_nearest(str(error), generation, " is no generation whose links are known", _GENERATIONS)
        ) from None


def gpus(
    gpu: str, *, nodes: int = 1, chips_per_node: int | None = None, network_bandwidth: float | None = None
) -> Cluster:
    """Nodes (or racks) of GPUs of the catalogue: those of one node are joined by its links, nodes by the network.

    Args:
        gpu: "v100" or "v100-32gb" (a DGX-2), "a100", "a100-40gb", "h100", "h200", "b200", "gb200" or "mi300x"; a name
            of the catalogue or what the device calls itself.
        nodes: How many.
        chips_per_node: GPUs that reach each other over the node's links; None is the catalogue's number.
        network_bandwidth: Bytes/s of network for each GPU, one way; None is the catalogue's.

    Raises:
        ValueError: No such GPU, or the catalogue does not know how many there are in a node.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.gpus("h200", nodes=2)
        <Cluster 2 nodes x 8 h200: 16 gpu devices>
    """
    _check_text("gpus", "gpu", gpu)
    each = None if chips_per_node is None else _count("gpus", "chips_per_node", chips_per_node)
    count, rate = _count("gpus", "nodes", nodes), _rate("gpus", "network_bandwidth", network_bandwidth)
    try:
        return _core._gpu_cluster(gpu, count, each, rate)
    except ValueError as error:
        raise ValueError(_with_nearest(str(error), gpu, " is no GPU of the catalogue", _GPUS)) from None


def dgx(gpu: str = "h100", *, nodes: int = 1, network_bandwidth: float | None = None) -> Cluster:
    """NVIDIA's DGX and HGX nodes: 8 GPUs behind NVSwitches; of the V100 the DGX-2 with 16.

    Args:
        gpu: "v100", "a100", "a100-40gb", "h100", "h200" or "b200".
        nodes: How many.
        network_bandwidth: Bytes/s of network for each GPU, one way; None is the catalogue's (the V100 has none there).

    Raises:
        ValueError: Another GPU, or nodes below 1.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.dgx("h100", nodes=64)
        >>> pod.device_count, pod.network, pod.parts["bandwidth"]
        (512, 'switch', (450000000000.0, 'S8'))
    """
    _check_text("dgx", "gpu", gpu)
    known = ("v100", "a100", "a100-40gb", "h100", "h200", "b200")
    if gpu.lower() not in known:
        raise ValueError(
            f"cluster.dgx: {shown(gpu)} is no GPU of these nodes{did_you_mean(gpu, known)}; expected one of "
            f"{', '.join(known)}; see cluster.gpus, cluster.nvl72 and cluster.mi300x for others"
        )
    return gpus(gpu, nodes=nodes, network_bandwidth=network_bandwidth)


def nvl72(*, racks: int = 1, network_bandwidth: float | None = None) -> Cluster:
    """GB200 NVL72 racks: 72 GPUs behind NVSwitches.

    Args:
        racks: How many.
        network_bandwidth: Bytes/s of network for each GPU, one way; None is the catalogue's.

    Raises:
        ValueError: racks below 1, or a bandwidth that is not above 0 and finite.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.nvl72(racks=2).device_count
        144
    """
    return gpus("gb200", nodes=_count("nvl72", "racks", racks), network_bandwidth=network_bandwidth)


def mi300x(*, nodes: int = 1, network_bandwidth: float | None = None) -> Cluster:
    """Nodes of 8 AMD MI300X, each pair joined by one link.

    Args:
        nodes: How many.
        network_bandwidth: Bytes/s of network for each GPU, one way; None is the catalogue's, which is unverified.

    Raises:
        ValueError: nodes below 1, or a bandwidth that is not above 0 and finite.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.mi300x(nodes=4).network
        'full mesh'
    """
    return gpus("mi300x", nodes=nodes, network_bandwidth=network_bandwidth)


def from_xml(
    path: str | os.PathLike[str],
    *,
    nodes: int = 1,
    bandwidth: float | None = None,
    latency: float | None = None,
    network_bandwidth: float | None = None,
    network_latency: float | None = None,
) -> Cluster:
    """As many nodes as one likes of a machine that hwloc has described.

    Its devices are its GPUs if it has any, otherwise its CPU domains. Display cards do not count: VGA controllers of
    models that no table has and that no driver for computing runs. Chips of the catalogue get the catalogue's numbers,
    and its links if there are as many as one domain has. Other GPUs are joined by the NVLink or xGMI links that the
    file records, or, if these do not join all of them, by PCI Express. Figures that neither has are unknown and can be
    given.

    Args:
        path: An hwloc XML file.
        nodes: How many of them.
        bandwidth: Bytes/s out of one chip inside a node, one way.
        latency: Seconds of a step inside a node.
        network_bandwidth: Bytes/s of network for each chip, one way.
        network_latency: Seconds of a step between nodes.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no hwloc XML, has accelerators of several kinds, or a number is out of range.
        TypeError: An argument is of the wrong type.
    """
    text = path_text("from_xml", "path", path)
    count = _count("from_xml", "nodes", nodes)
    given = {
        "bandwidth": _figure(_rate("from_xml", "bandwidth", bandwidth)),
        "latency": _figure(_rate("from_xml", "latency", latency, least=0.0)),
        "network_bandwidth": _figure(_rate("from_xml", "network_bandwidth", network_bandwidth)),
        "network_latency": _figure(_rate("from_xml", "network_latency", network_latency, least=0.0)),
    }
    machine = Machine.from_xml(text)
    found = [each for each in find_accelerators(machine).accelerators if not each.is_display_card]
    parts = _core._machine_node(machine, found, text)
    parts["name"] = f"{os.path.basename(text)}" if count == 1 else f"{count} x {os.path.basename(text)}"
    parts["slices"] = count
    parts.update({key: figure for key, figure in given.items() if figure is not None})
    if given["bandwidth"] is not None:  # of links that the file does not name
        notes = tuple(note for note in parts["notes"] if note != _core._JOINED_BY_PCI)
        parts.update(network="switch", link_kind="", notes=notes)
    return _core._make_cluster(parts)


def this_machine(
    *,
    measured: MeasuredRoofline | None = None,
    latency: float | None = None,
    calibration: Calibration | None = None,
) -> Cluster:
    """The machine that this process runs on: its CPU domains, joined by memory.

    Args:
        measured: What `measure_roofline()` found of all devices together: the rates of the chips, and between them half
            of the bytes/s of memory, shared out (a byte that moves is read and written). None leaves them unknown.
        latency: Seconds of a step between two domains; None leaves it unknown.
        calibration: What `calibrate()` found: between the domains its rate of copies from memory to memory, shared out,
            and no more than its slowest link; and the latency of a transfer, where `latency` is not given. Seconds of
            simulated devices of this process are `plan_reshard(calibration=)`'s.

    Raises:
        TypeError: `measured` is no MeasuredRoofline, `latency` no number, `calibration` no Calibration.
        ValueError: `latency` is below 0 or not finite.

    Example:
        >>> from artifex_devices import cluster
        >>> here = cluster.this_machine()
        >>> here.platform, here.slices
        ('cpu', 1)
    """
    if measured is not None and not isinstance(measured, MeasuredRoofline):
        raise TypeError(
            f"cluster.this_machine: measured is of type {type(measured).__name__}; expected a MeasuredRoofline or "
            "None; give what measure_roofline() returns"
        )
    if calibration is not None and not isinstance(calibration, Calibration):
        raise TypeError(
            f"cluster.this_machine: calibration is of type {type(calibration).__name__}; expected a Calibration or "
            "None; give what artifex_devices.calibration.calibrate() returns"
        )
    parts = _core._machine_node(Machine.live(), [], "measured")
    parts["name"] = "this machine"
    parts["latency"] = _figure(_rate("this_machine", "latency", latency, least=0.0))
    domains = parts["dims"][0]
    notes = []
    if measured is not None:
        rates = measured.peak_flops
        parts["peak_flops"] = {
            dtype: (rate.best / domains, "measured") for dtype, rate in rates.items() if dtype == "float32"
        }
        parts["memory_bandwidth"] = (measured.bandwidth.best / domains, "measured")
        parts["bandwidth"] = (measured.bandwidth.best / domains / 2, "measured")
        notes.append(f"rates of {measured.scope}, shared out evenly among the CPU domains")
    if calibration is not None:
        slowest = min(link.rate for link in calibration.links)
        parts["bandwidth"] = (min(calibration.rates.get("memory", slowest), slowest) / domains, "measured")
        if latency is None:
            parts["latency"] = (calibration.coefficients["calls on workers"], "measured")
        notes.append(f"links calibrated on {calibration.conditions.date}, shared out evenly among the CPU domains")
    parts["notes"] = tuple(notes)
    return _core._make_cluster(parts)


def describe(cluster: Cluster) -> str:
    """What a cluster is made of, as lines of text: each number with its source.

    Args:
        cluster: The cluster.

    Raises:
        TypeError: It is none.

    Example:
        >>> from artifex_devices import cluster
        >>> print(cluster.describe(cluster.tpu("v4", (2, 2, 4))).splitlines()[1])
          chip          TPU v4, 16 in all, 1 device each, 32.0 GiB (S1 S5 S7)
    """
    if not isinstance(cluster, Cluster):
        raise TypeError(
            f"cluster.describe: expected a Cluster, got {shown(cluster)}; make one by cluster.tpu or cluster.dgx"
        )
    parts = cluster.parts
    memory = "memory not known"
    if parts["memory_bytes"] is not None:
        memory = f"{bytes_text(int(parts['memory_bytes'][0]))} ({parts['memory_bytes'][1]})"
    devices = parts["devices_per_chip"]
    dims = "x".join(map(str, parts["dims"]))
    axes = [axis for axis, wraps in zip("xyz", parts["wraps"], strict=False) if wraps]
    wrap = "" if cluster.network != "torus" else f", wraps on {', '.join(axes)}" if axes else ", no wraparound"
    host = "x".join(map(str, parts["host_shape"]))
    source = f" ({parts['host_source']})" if parts["host_source"] else ""
    lines = [
        repr(cluster),
        f"  chip          {parts['chip_name']}, {cluster.chip_count} in all, {devices} "
        f"device{'s' * (devices != 1)} each, {memory}",
    ]
    lines += [f"  {name:<13} {_text(figure, 'FLOP/s')}" for name, figure in parts["peak_flops"].items()]
    lines += [
        f"  memory        {_text(parts['memory_bandwidth'], 'B/s')}",
        f"  inside        {cluster.network} of {dims} chips{wrap}; {parts['link_kind'] or 'links'}",
        f"  a link        {_text(parts['bandwidth'], 'B/s')}, {_text(parts['latency'], 's')}",
        f"  hosts         {cluster.process_count} of {host} chips{source}, "
        f"to a chip {_text(parts['host_bandwidth'], 'B/s')}",
    ]
    if cluster.slices > 1:
        network = f"{_text(parts['network_bandwidth'], 'B/s')} a chip, {_text(parts['network_latency'], 's')}"
        lines.append(f"  between       {cluster.slices} slices: {network}")
    return "\n".join(lines + [f"  note          {note}" for note in parts["notes"]])


def _text(figure: tuple[float, str] | None, unit: str) -> str:
    return f"{unit} not known" if figure is None else f"{figure[0]:.4g} {unit} ({figure[1]})"


def _with_nearest(error: str, text: str, clause: str, known: Sequence[str]) -> str:
    """An error of the core with what was probably meant."""
    return error.replace(clause, f"{clause}{did_you_mean(text, known)}", 1) if clause in error else error


def _figure(value: float | None) -> tuple[float, str] | None:
    return None if value is None else (value, "given")


def _check_text(operation: str, argument: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(
            f"cluster.{operation}: {argument} is of type {type(value).__name__}; expected a str, got {shown(value)}; "
            "name it"
        )
    if not value.isprintable():  # half of a surrogate pair too, which stands for a byte that is no UTF-8
        raise ValueError(
            f"cluster.{operation}: {argument} is {shown(value)}; expected letters to be printed; correct it"
        )


def _count(operation: str, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(
            f"cluster.{operation}: {argument} is of type {type(value).__name__}; expected an int, got {shown(value)}; "
            "correct it"
        )
    number = operator.index(value)
    if not 1 <= number <= 2**24:
        raise ValueError(f"cluster.{operation}: {argument} is {number}; expected 1 to {2**24}; correct it")
    return number


def _rate(operation: str, argument: str, value: Any, least: float | None = None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(
            f"cluster.{operation}: {argument} is of type {type(value).__name__}; expected a number or None, got "
            f"{shown(value)}; correct it"
        )
    if not math.isfinite(value) or value < 0 or (value == 0 and least is None):
        raise ValueError(
            f"cluster.{operation}: {argument} is {shown(value)}; expected a finite number "
            f"{'above 0' if least is None else 'of 0 or more'}; correct it"
        )
    if not is_sane(value):
        raise ValueError(f"cluster.{operation}: {argument} is {shown(value)}; expected {RANGE_TEXT}; correct it")
    return float(value)
