# SPDX-License-Identifier: Apache-2.0
"""Plans of reshards and collectives, and the cluster of this machine, with the seconds of a calibration."""

from __future__ import annotations

import dataclasses
import json

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import cluster
from artifex_devices.calibration import Link
from artifex_devices.planner import plan_collective, plan_reshard
from artifex_devices.sharding import Mesh, NamedSharding, P, SingleDeviceSharding
from calibrations import MIB, made


def test_plans_of_this_machine_have_seconds():
    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        plan = plan_reshard((512, 512), np.float32, rows, whole, calibration=made())
        assert plan.seconds == pytest.approx(1e-5 + 4e-6 + MIB * 1e-10)
        assert plan.steps[0].estimate.latency == pytest.approx(1.4e-5)
        assert plan.steps[0].estimate.limit == "memory"
        assert plan.seconds_from.kind == "measured"
        assert "2026-11-22T14:00:00+00:00 to this machine, a processor, 2 workers" in str(plan)
        assert json.loads(plan.to_json())["seconds"] == plan.seconds
        large = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made())
        assert large.seconds == pytest.approx(1.4e-5 + 64 * MIB * 5e-10)
        # Columns of 16 bytes, as if each run took a time of its own, in the calling thread.
        columns = NamedSharding(mesh, P(None, "x"))
        cut = plan_reshard((64, 16), np.float32, rows, columns, calibration=made())
        share = (1 / 4 - 1 / 16) / (1 / 4 - 1 / 32)
        per_byte = 2e-10 + 9e-10 * (1 - share) + 8e-10 * share
        assert cut.seconds == pytest.approx(2e-6 + 16e-6 + 4096 * per_byte)
        assert plan_reshard((512, 512), np.float32, rows, rows, calibration=made()).seconds == 0
        with pytest.raises(RuntimeError, match="collectives are not used on this machine's own devices"):
            _ = plan_reshard((512, 512), np.float32, rows, whole, way="collectives", calibration=made()).seconds
        with pytest.raises(RuntimeError, match=r"or calibration= for this machine's own"):
            _ = plan_reshard((512, 512), np.float32, rows, whole).seconds


def test_the_busiest_memory_counts_where_there_are_several():
    links = (Link(0, 0, 4e9), Link(0, 1, 1e9), Link(1, 0, 1e9), Link(1, 1, 4e9))
    with ad.simulate("numa:2 pu:2"):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        assert mesh.size == 2
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        plan = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(links))
        # Each memory gets half of the bytes from itself, half from the other one.
        each = 32 * MIB / 4e9 + 32 * MIB / 1e9
        estimate = plan.steps[0].estimate
        assert estimate.transfer == pytest.approx(max(each, 128 * MIB * 5e-10))
        fast = tuple(dataclasses.replace(link, rate=1e12) for link in links)
        other = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(fast)).steps[0].estimate
        assert other.transfer == pytest.approx(128 * MIB * 5e-10)
        assert other.limit == "memory"
        slow = tuple(dataclasses.replace(link, rate=link.rate / 4) for link in links)
        bound = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(slow)).steps[0].estimate
        assert bound.transfer == pytest.approx(4 * each)
        assert bound.limit in {f"{what} of memory node {node}" for what in ("reads", "writes") for node in (0, 1)}


def test_the_busiest_memory_counts_where_two_links_are_known():
    links = (Link(0, 1, 1e8), Link(1, 0, 1e8))
    with ad.simulate("numa:2 pu:2"):
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        estimate = plan_reshard((4096, 4096), np.float32, rows, whole, calibration=made(links)).steps[0].estimate
        assert estimate.transfer == pytest.approx(32 * MIB / 1e8)
        assert estimate.limit != "memory"


def test_the_links_from_and_to_each_of_three_memories_count():
    third = 3 * MIB  # of the array, on each node before
    rates = {(0, 0): 4e8, (0, 1): 1e8, (0, 2): 2e8, (1, 0): 5e7, (1, 1): 4e8, (1, 2): 8e7, (2, 0): 1e8, (2, 1): 2e8}
    links = tuple(Link(*pair, rate) for pair, rate in rates.items())  # that of node 2 to itself is not known
    with ad.simulate("numa:3 pu:1"):
        nodes = [SingleDeviceSharding(device) for device in ad.devices()]
        mesh = Mesh(np.array(ad.devices()), ("x",))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())

        def estimate(source, destination):
            plan = plan_reshard((1536, 1536), np.float32, source, destination, calibration=made(links))
            return plan.steps[0].estimate.transfer, plan.steps[0].estimate.limit

        # One way is not the other, and where a link is not known only the copy itself counts.
        assert estimate(nodes[0], nodes[1]) == (pytest.approx(3 * third / 1e8), "reads of memory node 0")
        assert estimate(nodes[1], nodes[0]) == (pytest.approx(3 * third / 5e7), "reads of memory node 1")
        assert estimate(rows, nodes[2]) == (pytest.approx(third / 2e8 + third / 8e7), "writes of memory node 2")
        reads = third * (1 / 5e7 + 1 / 4e8 + 1 / 8e7)
        assert estimate(nodes[1], rows) == (pytest.approx(reads), "reads of memory node 1")
        # Everybody reads everything: the reads of node 1 take longest, longer than the writes to node 0.
        assert estimate(rows, whole) == (pytest.approx(reads), "reads of memory node 1")


def test_collectives_of_this_machine_have_seconds(monkeypatch):
    with ad.simulate(8):
        mesh = Mesh(np.array(ad.devices()).reshape(2, 4), ("a", "b"))
        cooperative = 2e-5 + 8 * 3e-6
        threads = 4e-5 + 8 * 5e-5

        def seconds(op, nbytes, axes="b"):
            return plan_collective(op, nbytes, axes, mesh, calibration=made()).seconds

        assert seconds("permute", 64 * MIB) == pytest.approx(threads + 8 * 7e-6)
        assert seconds("permute", 1024) == pytest.approx(cooperative + 8 * 7e-6)
        # Two groups of 4: each joins 4 pieces.
        assert seconds("all_gather", MIB) == pytest.approx(cooperative + 2 * (7e-6 + 1e-5 + 4e-6 + MIB * 1e-10))
        assert seconds("all_to_all", MIB) == pytest.approx(cooperative + 2 * (4 * 7e-6 + 1e-5 + 16e-6 + MIB * 1e-10))
        # All inputs are read, one result a group is written.
        summed = threads + 1e-5 + 2 * 5 * 16 * MIB * 2e-11
        assert seconds("all_reduce", 16 * MIB) == pytest.approx(summed + 2 * 7e-6)
        assert seconds("reduce_scatter", 16 * MIB) == pytest.approx(summed + 8 * 7e-6)
        assert seconds("all_reduce", 1024, ("a", "b")) == pytest.approx(cooperative + 7e-6 + 9 * 1024 * 1e-11)
        monkeypatch.setitem(vars(ad.config), "spmd_executor", "threads")
        assert seconds("permute", 1024) == pytest.approx(threads + 8 * 7e-6)
        plan = plan_collective("all_reduce", 1024, "b", mesh, calibration=made())
        assert (plan.algorithm, plan.cluster, plan.groups) == ("threads executor", None, 2)
        estimate = plan.steps[0].estimate
        assert 0 < estimate.transfer < estimate.latency  # of 1 KiB
        assert estimate.limit == "memory"
        assert plan.bytes_by_device == 2 * 1024 * 3 / 4
        assert str(plan).startswith("all_reduce of 1.0 KiB by 4 devices of this machine\n")
        assert json.loads(plan.to_json())["cluster"] is None
        with pytest.raises(RuntimeError, match=r"^plan_collective: the lower bound is not known; expected a cluster;"):
            _ = plan.lower_bound.seconds
        bound = plan.lower_bound
        assert (bound.bytes_by_device, bound.bytes_by_chip, bound.bytes_by_slice) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"])
def test_the_largest_collectives_have_seconds_in_proportion(op):
    with ad.simulate(4):
        mesh = Mesh(np.array(ad.devices()), ("x",))

        def seconds(nbytes):
            return plan_collective(op, nbytes, "x", mesh, calibration=made()).seconds

        fixed = seconds(2**50) * 2 - seconds(2**51)
        for nbytes in (4.7e18, 5e18, 2**63):
            expected = fixed + (seconds(2**51) - fixed) * (nbytes / 2**51)
            assert seconds(nbytes) == pytest.approx(expected, rel=1e-6)


def test_wrong_arguments_of_plans_are_named():
    pod = cluster.tpu("v5e", (4, 4))
    far = Mesh(np.array(pod.devices()).reshape(4, 4), ("x", "y"))
    with ad.simulate(2):
        near = Mesh(np.array(ad.devices()), ("x",))
        rows = NamedSharding(near, P("x"))
        with pytest.raises(TypeError, match=r"^plan_reshard: calibration is 3 \(int\); expected a Calibration or None"):
            plan_reshard((4,), np.float32, rows, rows, calibration=3)
        with pytest.raises(ValueError, match=r"^plan_reshard: both cluster and calibration are given"):
            plan_reshard((4,), np.float32, rows, rows, calibration=made(), cluster=pod)
        with pytest.raises(TypeError, match=r"^plan_collective: calibration is 3 \(int\)"):
            plan_collective("all_gather", 4, "x", near, calibration=3)
        with pytest.raises(ValueError, match=r"'broadcast' is not a calibrated collective; expected one of"):
            plan_collective("broadcast", 4, "x", near, calibration=made())
        with pytest.raises(TypeError, match="give calibration= for this machine's own devices"):
            plan_collective("all_gather", 4, "x", near)
    cut = NamedSharding(far, P("x"))
    with pytest.raises(ValueError, match="expected devices of this process for seconds that a calibration gives"):
        plan_reshard((4,), np.float32, cut, NamedSharding(far, P()), calibration=made())
    with pytest.raises(ValueError, match=r"^plan_collective: the mesh has devices of a cluster; expected devices of"):
        plan_collective("all_gather", 4, "x", far, calibration=made())
    with pytest.raises(ValueError, match=r"and calibration is given; expected a Mesh of this machine's own devices"):
        plan_collective("all_gather", 4, "x", pod, calibration=made())


def test_the_cluster_of_this_machine_takes_its_links_and_latency():
    here = cluster.this_machine(calibration=made())
    domains = here.parts["dims"][0]
    assert here.parts["bandwidth"] == (pytest.approx(2e9 / domains), "measured")
    assert here.parts["latency"] == (pytest.approx(1e-5), "measured")
    assert "links calibrated on 2026-11-22T14:00:00+00:00" in here.parts["notes"][0]
    assert cluster.this_machine(calibration=made(), latency=1e-6).parts["latency"] == (1e-6, "given")
    slow = made(links=(Link(0, 0, 4e9), Link(0, 1, 1e9)))
    assert cluster.this_machine(calibration=slow).parts["bandwidth"][0] == pytest.approx(1e9 / domains)
    with pytest.raises(TypeError, match=r"^cluster.this_machine: calibration is 3 .int.; expected a Calibration"):
        cluster.this_machine(calibration=3)
