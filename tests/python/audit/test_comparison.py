# SPDX-License-Identifier: Apache-2.0
"""audit.compare: a program beside a plan."""

import artifex_devices as ad
import pytest
from artifex_devices import audit
from artifex_devices.planner import plan_reshard


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
