# SPDX-License-Identifier: Apache-2.0
"""audit.compare: a program beside a plan."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import audit, cluster, models
from artifex_devices.planner import plan_reshard, plan_step, plan_training


@pytest.fixture(scope="module")
def plan():
    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))
        rows, whole = ad.NamedSharding(mesh, ad.P("x", None)), ad.NamedSharding(mesh, ad.P(None, None))
        return plan_reshard((64, 64), "float32", rows, whole, way="collectives")


def program(*collectives):
    return audit.Program("HLO text", "step", 8, None, True, (("x", 8),), collectives)


GATHER = audit.Collective("all-gather", "all_gather", bytes=7 * 2048, axes=("x",))  # 8 blocks of 8 x 64 float32


def test_a_program_that_follows_its_plan_has_no_difference(plan):
    compared = audit.compare(program(GATHER), plan)
    assert (compared.extra, compared.missing, compared.extra_seconds) == ((), (), 0.0)
    (row,) = compared.rows
    assert (row.planned_runs, row.found_runs, row.planned_bytes, row.found_bytes) == (1, 1, 7 * 2048, 7 * 2048)


def test_missing_and_extra_messages_are_listed(plan):
    reduce = audit.Collective("all-reduce", "all_reduce", bytes=100, axes=("x",), runs=3)
    compared = audit.compare(program(reduce), plan)
    assert [(row.kind, row.found_bytes) for row in compared.extra] == [("all_reduce", 300)]
    assert [(row.kind, row.planned_bytes) for row in compared.missing] == [("all_gather", 7 * 2048)]
    assert str(compared).splitlines()[0] == "program step and its plan: 1 extra, 1 missing"


def test_unknown_trip_counts_are_least_numbers(plan):
    twice = audit.Collective("all-gather", "all_gather", bytes=7 * 2048, axes=("x",), runs=None)
    (row,) = audit.compare(program(GATHER, twice), plan).rows
    assert (row.found_runs, row.found_bytes, row.at_least, row.is_extra) == (None, 2 * 7 * 2048, True, True)


MATRIX = 1024 * 4096 * 2  # bytes


@pytest.fixture(scope="module")
def step():
    """3 layers of two matrices, whose gradients 4 replicas sum."""
    mesh = ad.Mesh(np.array(cluster.dgx("h100").devices()).reshape(4, 2), ("data", "tensor"))
    return plan_step(models.mlp(embed=1024, mlp=4096, layers=3, tokens=4096), mesh, {"batch": "data"})


def of_step(*collectives):
    return audit.Program("HLO text", "step", 8, None, True, (("data", 4), ("tensor", 2)), collectives)


def sums(runs, axes=("data",)):
    return audit.Collective("all-reduce", "all_reduce", bytes=2 * 3 * MATRIX // 4, axes=axes, runs=runs)


def test_a_step_is_compared_by_axes(step):
    compared = audit.compare(of_step(sums(6)), step)
    (row,) = compared.rows
    assert (row.kind, row.axes, row.planned_runs, row.found_runs) == ("all_reduce", "data", 6, 6)
    assert (row.planned_bytes, row.found_bytes) == (6 * 2 * 3 * MATRIX / 4, 6 * 2 * 3 * MATRIX // 4)
    assert (compared.extra, compared.missing) == ((), ())
    wrong = audit.compare(of_step(sums(6, ("tensor",))), step)
    assert [row.axes for row in wrong.missing] == ["data"]
    assert [row.axes for row in wrong.extra] == ["tensor"]


def test_extra_bytes_take_the_seconds_of_a_plans_bytes_along_their_axes(step):
    compared = audit.compare(of_step(sums(9), sums(1, ("tensor",))), step)
    planned = sum(each.seconds for each in step.collectives)
    assert {row.axes: row.extra_seconds for row in compared.extra} == {
        "data": pytest.approx(planned / 2),
        "tensor": None,
    }
    assert compared.extra_seconds == pytest.approx(planned / 2)


@pytest.fixture(scope="module")
def training():
    """FSDP over 4 devices, 2 microbatches, and 2-way tensor parallelism, of 4 layers."""
    shape = models.TransformerShape("small", 4, 64, 128, 8, 8, 8, 256)
    return plan_training(shape, cluster.dgx("h100"), batch=8, sequence=32, tensor=2, zero=3)


# Parameters of a device for each of 4 layers: halves of the matrices, the norms, a part of the embedding and output.
SHARD = ((4 * 64**2 + 3 * 64 * 128) // 2) + 2 * 64 + (256 * 64 + 64) // 4
FOLLOWED = [
    audit.Collective("gather", "all_gather", bytes=3 * SHARD * 2 // 4, axes=("data",), runs=4 * 2 * 2),
    audit.Collective("scatter", "reduce_scatter", bytes=3 * SHARD * 4 // 4, axes=("data",), runs=4 * 2),
    audit.Collective("sum", "all_reduce", bytes=32 * 64 * 2, axes=("tensor",), runs=2 * (4 * 4 + 2)),
]


def test_a_training_step_is_compared_by_axes(training):
    compared = audit.compare(of_step(*FOLLOWED), training)
    assert (compared.extra, compared.missing, len(compared.rows)) == ((), (), 3)
    assert all(row.planned_runs == row.found_runs and row.planned_bytes == row.found_bytes for row in compared.rows)


def test_gathers_that_a_training_plan_lacks_cost_seconds(training):
    gather, *others = FOLLOWED
    twice = audit.Collective("gather", "all_gather", bytes=gather.bytes, axes=("data",), runs=2 * gather.runs)
    compared = audit.compare(of_step(twice, *others), training)
    (row,) = compared.extra
    assert (row.kind, row.axes, row.planned_runs, row.found_runs) == ("all_gather", "data", 16, 32)
    data = [each for each in training.collectives if each.axes == ("data",)]
    rate = sum(each.seconds for each in data) / sum(each.bytes_sent * each.count for each in data)
    assert row.extra_seconds == pytest.approx(16 * gather.bytes * rate)
    assert [row.kind for row in audit.compare(of_step(*others), training).missing] == ["all_gather"]


def test_messages_between_stages_are_permutes():
    plan = plan_training("llama-2-7b", cluster.dgx("h100"), batch=32, sequence=128, pipeline=8)
    send = audit.Collective("send", "collective_permute", bytes=128 * 4096 * 2, axes=("pipeline",), runs=2 * 32)
    stages = audit.Program("HLO text", "step", 8, None, True, (("pipeline", 8),), (send,))
    (row,) = audit.compare(stages, plan).rows
    assert (row.planned_runs, row.planned_bytes, row.is_extra) == (64, row.found_bytes, False)
