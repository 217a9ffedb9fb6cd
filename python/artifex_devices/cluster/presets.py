# SPDX-License-Identifier: Apache-2.0
"""Clusters of the catalogue, of hwloc files and of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from artifex_devices._base.checks import (
    MAX_DIMENSIONS,
    check_int,
    check_number,
    check_sequence_of_ints,
    check_str,
    check_type,
    failure,
    wrong_value,
)
from artifex_devices._base.nearest_name import did_you_mean
from artifex_devices._base.safe_repr import safe_repr
from artifex_devices._base.text import bytes_text, rate_text
from artifex_devices._core import Cluster, Machine, internal
from artifex_devices._hardware.cluster_text import GPUS, TPUS, cluster_of_text
from artifex_devices._hardware.detection import path_text
from artifex_devices._hardware.find import find_accelerators
from artifex_devices._hardware.rate_limits import RANGE_TEXT, is_sane
from artifex_devices.accelerators import source_notes
from artifex_devices.planner.calibration import Calibration
from artifex_devices.roofline.measured import MeasuredRoofline

_DGX_GPUS = ("v100", "a100", "a100-40gb", "h100", "h200", "b200")


def from_text(text: str) -> Cluster:
    """Describes a cluster of the catalogue as people write it; case and blanks do not matter.

    - GPUs by their number: "64 x h100", "64xH100", "h100 x 64"; a number below that of a node is a part of one node.
    - Nodes and the GPUs of each: "8x8 h100", "8 nodes x 8 h100".
    - Nodes or racks: "8 x dgx h100", "gb200 nvl72", "4 x nvl72", "mi300x" (one node).
    - TPUs by shape or number of chips: "tpu v5e 16x16", "2 x v5e 16x16", "v5e-256", "256 v5e". As in Google's names,
      the number after "v4-" and "v5p-" counts TensorCores, two of a chip. A number of chips of v4, v5p or 7x means the
      most compact slice that has it.

    Options follow as in "dgx h100 nodes=64 network_bandwidth=5e10": `nodes`, `racks`, `slices`, `chips_per_node`,
    `network_bandwidth` (bytes/s of each chip, one way) and `host_memory` (bytes of each host).

    Args:
        text: The text.

    Raises:
        ValueError: The text names no chip of the catalogue, or a number of chips that no cluster has; the message has
            two texts to write instead.
        TypeError: `text` is not a str.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.from_text("64xH100"), cluster.from_text("v5e-256")
        (<Cluster 8 nodes x 8 h100: 64 gpu devices>, <Cluster TPU v5e 16x16: 256 tpu devices>)
    """
    check_str("cluster.from_text", "text", text, "write '64 x h100'")
    return cluster_of_text("cluster.from_text", "text", text)


def tpu(generation: str, shape: Sequence[int], *, slices: int = 1, host_memory: float | None = None) -> Cluster:
    """Describes TPU slices of the catalogue.

    Args:
        generation: "v4", "v5e", "v5p", "v6e" or "7x".
        shape: Number of chips of a slice along each axis: two sizes on v5e and v6e, otherwise three.
        slices: Number of slices, joined by the data-centre network.
        host_memory: Bytes of memory of each host, by default the catalogue's, where it is published.

    Returns:
        A Cluster. Bandwidths are the catalogue's usable rates; axes wrap by its rules (v4, v5p, 7x: all axes if all are
        multiples of 4; v5e, v6e: axes of 16).

    Raises:
        ValueError: The generation is unknown, or has no slices of this shape; the text lists the known ones.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.tpu("v5p", (8, 8, 16))
        >>> pod.device_count, pod.wraps, pod.process_count
        (1024, (True, True, True), 256)
    """
    _check_name("tpu", "generation", generation)
    sizes = check_sequence_of_ints(
        "cluster.tpu", "shape", shape, "write cluster.tpu('v5p', (4, 4, 8))", maximum=MAX_DIMENSIONS
    )
    if any(abs(size) >= 2**31 for size in sizes):
        raise wrong_value("cluster.tpu", "shape", sizes, "numbers of chips below 2**31")
    count, memory = _count("tpu", "slices", slices), _figure("tpu", "host_memory", host_memory)
    try:
        return internal.tpu_cluster(generation, sizes, count, memory)
    except ValueError as error:
        raise ValueError(_with_nearest(str(error), generation, TPUS)) from None


def gpus(
    gpu: str,
    *,
    nodes: int = 1,
    chips_per_node: int | None = None,
    network_bandwidth: float | None = None,
    host_memory: float | None = None,
) -> Cluster:
    """Describes nodes (or racks) of GPUs of the catalogue: links join the GPUs of a node, the network joins nodes.

    Args:
        gpu: "v100" or "v100-32gb" (a DGX-2), "a100", "a100-40gb", "h100", "h800", "h200", "b200", "gb200" or "mi300x";
            a name of the catalogue, or the name that the device reports.
        nodes: Number of nodes.
        chips_per_node: Number of GPUs that reach each other over the node's links; None means the catalogue's number.
        network_bandwidth: Bytes/s of network for each GPU, one way; None means the catalogue's.
        host_memory: Bytes of memory of each host, by default the catalogue's, where it is published.

    Raises:
        ValueError: The GPU is unknown, or the catalogue does not have its number in a node.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.gpus("h200", nodes=2)
        <Cluster 2 nodes x 8 h200: 16 gpu devices>
    """
    _check_name("gpus", "gpu", gpu)
    each = None if chips_per_node is None else _count("gpus", "chips_per_node", chips_per_node)
    count, rate = _count("gpus", "nodes", nodes), _figure("gpus", "network_bandwidth", network_bandwidth)
    try:
        return internal.gpu_cluster(gpu, count, each, rate, _figure("gpus", "host_memory", host_memory))
    except ValueError as error:
        raise ValueError(_with_nearest(str(error), gpu, GPUS)) from None


def dgx(
    gpu: str = "h100", *, nodes: int = 1, network_bandwidth: float | None = None, host_memory: float | None = None
) -> Cluster:
    """Describes NVIDIA's DGX and HGX nodes: 8 GPUs behind NVSwitches; for the V100 the DGX-2 with 16.

    Args:
        gpu: "v100", "a100", "a100-40gb", "h100", "h200" or "b200".
        nodes: Number of nodes.
        network_bandwidth: Bytes/s of network for each GPU, one way; None means the catalogue's (unknown for the V100).
        host_memory: Bytes of memory of each host, by default the catalogue's, where it is published.

    Raises:
        ValueError: `gpu` is another GPU, or `nodes` is below 1.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> pod = cluster.dgx("h100", nodes=64)
        >>> pod.device_count, pod.network, pod.parts["bandwidth"]
        (512, 'switch', (450000000000.0, 'S8'))
    """
    _check_name("dgx", "gpu", gpu)
    if gpu.lower() not in _DGX_GPUS:
        raise failure(
            ValueError,
            "cluster.dgx",
            f"gpu is {safe_repr(gpu)}{did_you_mean(gpu, _DGX_GPUS)}",
            expected=f"one of {', '.join(_DGX_GPUS)}",
            fix="see cluster.gpus, cluster.nvl72 and cluster.mi300x for others",
        )
    return gpus(gpu, nodes=nodes, network_bandwidth=network_bandwidth, host_memory=host_memory)


def nvl72(*, racks: int = 1, network_bandwidth: float | None = None, host_memory: float | None = None) -> Cluster:
    """Describes GB200 NVL72 racks: 72 GPUs behind NVSwitches.

    Args:
        racks: Number of racks.
        network_bandwidth: Bytes/s of network for each GPU, one way; None means the catalogue's.
        host_memory: Bytes of memory of each host of 4 GPUs, or None if unknown.

    Raises:
        ValueError: `racks` is below 1, or the bandwidth is not above 0 and finite.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.nvl72(racks=2).device_count
        144
    """
    count = _count("nvl72", "racks", racks)
    return gpus("gb200", nodes=count, network_bandwidth=network_bandwidth, host_memory=host_memory)


def mi300x(*, nodes: int = 1, network_bandwidth: float | None = None, host_memory: float | None = None) -> Cluster:
    """Describes nodes of 8 AMD MI300X, each pair joined by one link.

    Args:
        nodes: Number of nodes.
        network_bandwidth: Bytes/s of network for each GPU, one way; None means the catalogue's, which is unverified.
        host_memory: Bytes of memory of each host, by default the catalogue's, where it is published.

    Raises:
        ValueError: `nodes` is below 1, or the bandwidth is not above 0 and finite.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from artifex_devices import cluster
        >>> cluster.mi300x(nodes=4).network
        'full mesh'
    """
    return gpus("mi300x", nodes=nodes, network_bandwidth=network_bandwidth, host_memory=host_memory)


def from_xml(
    path: str | os.PathLike[str],
    *,
    nodes: int = 1,
    bandwidth: float | None = None,
    latency: float | None = None,
    network_bandwidth: float | None = None,
    network_latency: float | None = None,
    host_memory: float | None = None,
) -> Cluster:
    """Describes any number of nodes of a machine that hwloc described.

    Its devices are its GPUs if it has any, otherwise its CPU domains. Display cards do not count: VGA controllers of
    models that are in no table and that no driver for computing runs. Chips of the catalogue get the catalogue's
    numbers, and its links if there are as many as one domain has. Other GPUs are joined by the NVLink or xGMI links in
    the file or, if these do not join all of them, by PCI Express. Other figures are unknown unless passed.

    Args:
        path: An hwloc XML file.
        nodes: Number of nodes.
        bandwidth: Bytes/s out of one chip inside a node, one way.
        latency: Seconds of a step inside a node.
        network_bandwidth: Bytes/s of network for each chip, one way.
        network_latency: Seconds of a step between nodes.
        host_memory: Bytes of memory of a node, by default the memory that the file describes.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not hwloc XML, has accelerators of several kinds, or a number is out of range.
        TypeError: An argument is of the wrong type.
    """
    text = path_text("from_xml", "path", path)
    count = _count("from_xml", "nodes", nodes)
    figures = {
        "bandwidth": _figure("from_xml", "bandwidth", bandwidth),
        "latency": _figure("from_xml", "latency", latency, may_be_zero=True),
        "network_bandwidth": _figure("from_xml", "network_bandwidth", network_bandwidth),
        "network_latency": _figure("from_xml", "network_latency", network_latency, may_be_zero=True),
        "host_memory_bytes": _figure("from_xml", "host_memory", host_memory),
    }
    machine = Machine.from_xml(text)
    found = [each for each in find_accelerators(machine).accelerators if not each.is_display_card]
    parts = internal.machine_node(machine, found, text)
    parts["name"] = os.path.basename(text) if count == 1 else f"{count} x {os.path.basename(text)}"
    parts["slices"] = count
    parts.update({key: figure for key, figure in figures.items() if figure is not None})
    if figures["bandwidth"] is not None:  # of links that the file does not describe
        notes = tuple(note for note in parts["notes"] if note != internal.JOINED_BY_PCI)
        parts.update(network="switch", link_kind="", notes=notes)
    return internal.make_cluster(parts)


def this_machine(
    *,
    measured: MeasuredRoofline | None = None,
    latency: float | None = None,
    calibration: Calibration | None = None,
) -> Cluster:
    """Describes the machine that this process runs on: its CPU domains, joined by memory.

    Args:
        measured: Result of `measure_roofline()` for all devices together: the rates of the chips and, between them,
            half of the bytes/s of memory, shared evenly (a byte that moves is read and written). None leaves them
            unknown.
        latency: Seconds of a step between two domains; None leaves it unknown.
        calibration: Result of `calibrate()`: between the domains its rate of copies from memory to memory, shared
            evenly and limited by its slowest link; and the latency of a transfer, unless `latency` is passed. For the
            seconds of this process's simulated devices use `plan_reshard(calibration=)`.

    Raises:
        TypeError: `measured` is not a MeasuredRoofline, `latency` not a number, or `calibration` not a Calibration.
        ValueError: `latency` is below 0 or not finite.

    Example:
        >>> from artifex_devices import cluster
        >>> here = cluster.this_machine()
        >>> here.platform, here.slices
        ('cpu', 1)
    """
    for name, value, kind, function in (
        ("measured", measured, MeasuredRoofline, "artifex_devices.roofline.measure_roofline()"),
        ("calibration", calibration, Calibration, "artifex_devices.calibration.calibrate()"),
    ):
        expected = f"a {kind.__name__} or None"
        check_type("cluster.this_machine", name, value, (kind, type(None)), expected, f"pass the result of {function}")
    parts = internal.machine_node(Machine.live(), [], "measured")
    parts["name"] = "this machine"
    parts["latency"] = _figure("this_machine", "latency", latency, may_be_zero=True)
    domains = parts["dims"][0]
    notes = []
    if measured is not None:
        if "float32" in measured.peak_flops:
            parts["peak_flops"] = {"float32": (measured.peak_flops["float32"].best / domains, "measured")}
        parts["memory_bandwidth"] = (measured.bandwidth.best / domains, "measured")
        parts["bandwidth"] = (measured.bandwidth.best / domains / 2, "measured")
        notes.append(f"rates of {measured.scope}, shared evenly among the CPU domains")
    if calibration is not None:
        slowest = min(link.rate for link in calibration.links)
        parts["bandwidth"] = (min(calibration.rates.get("memory", slowest), slowest) / domains, "measured")
        if latency is None:
            parts["latency"] = (calibration.coefficients["calls on workers"], "measured")
        notes.append(f"links calibrated on {calibration.conditions.date}, shared evenly among the CPU domains")
    parts["notes"] = tuple(notes)
    return internal.make_cluster(parts)


def describe(cluster: Cluster) -> str:
    """Describes a cluster in lines of text: each number with its source.

    Args:
        cluster: The cluster.

    Raises:
        TypeError: `cluster` is not a Cluster.

    Example:
        >>> from artifex_devices import cluster
        >>> print(cluster.describe(cluster.tpu("v4", (2, 2, 4))).splitlines()[1])
          chip          TPU v4, 16 in all, 1 device each, 32.0 GiB [S1 S5 S7]
    """
    check_type("cluster.describe", "cluster", cluster, Cluster, "a Cluster", "pass cluster.dgx('h100')")
    parts = cluster.parts
    memory = "memory not known"
    if parts["memory_bytes"] is not None:
        memory = f"{bytes_text(int(parts['memory_bytes'][0]))} [{parts['memory_bytes'][1]}]"
    devices = parts["devices_per_chip"]
    dims = "x".join(map(str, parts["dims"]))
    axes = [axis for axis, wraps in zip("xyz", parts["wraps"], strict=False) if wraps]
    wrap = "" if cluster.network != "torus" else f", wraps on {', '.join(axes)}" if axes else ", no wraparound"
    host = "x".join(map(str, parts["host_shape"]))
    source = f" [{parts['host_source']}]" if parts["host_source"] else ""
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
    if parts["host_memory_bytes"] is not None:
        size, origin = parts["host_memory_bytes"]
        lines.append(f"  host memory   {bytes_text(int(size))} a host [{origin}]")
    if cluster.slices > 1:
        network = f"{_text(parts['network_bandwidth'], 'B/s')} a chip, {_text(parts['network_latency'], 's')}"
        lines.append(f"  between       {cluster.slices} slices: {network}")
    lines += [f"  note          {note}" for note in parts["notes"]]
    return "\n".join(lines + [f"  {f'[{code}]':<13} {text}" for code, text in source_notes("\n".join(lines)).items()])


def _text(figure: tuple[float, str] | None, unit: str) -> str:
    return f"{unit} not known" if figure is None else f"{rate_text(figure[0], unit)} [{figure[1]}]"


def _with_nearest(error: str, name: str, known: Sequence[str]) -> str:
    """Returns an error of the core, with the nearest known name if it is about `name`."""
    problem, expected, rest = error.partition("; expected")
    hint = did_you_mean(name, known) if f'"{name}" is no' in problem else ""
    return f"{problem}{hint}{expected}{rest}"


def _check_name(operation: str, argument: str, value: Any) -> None:
    check_str(f"cluster.{operation}", argument, value, "pass its name")
    if not value.isprintable():  # a surrogate, which represents a byte that is not UTF-8, is not printable either
        raise wrong_value(f"cluster.{operation}", argument, value, "characters that can be printed")


def _count(operation: str, argument: str, value: object) -> int:
    return check_int(f"cluster.{operation}", argument, value, minimum=1, maximum=2**24)


def _figure(operation: str, argument: str, value: object, *, may_be_zero: bool = False) -> tuple[float, str] | None:
    """Returns a rate or a latency with its source."""
    if value is None:
        return None
    name = f"cluster.{operation}"
    minimum, above = (0.0, None) if may_be_zero else (None, 0.0)
    number = check_number(name, argument, value, minimum=minimum, above=above, expected="a number or None")
    if not is_sane(number):
        raise wrong_value(name, argument, value, RANGE_TEXT)
    return float(number), "given"
