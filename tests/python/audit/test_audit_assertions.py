# SPDX-License-Identifier: Apache-2.0
"""Assertions about collectives: what passes, and the text of what does not."""

import pytest
from artifex_devices import audit
from artifex_devices.audit import at_most


def collective(kind, axes=("data",), size=448, runs=1, line=12, groups=()):
    return audit.Collective("c.1", kind, ("float32",), ((4,),), size, groups, axes, runs, file="train.py", line=line)


def program(*collectives, findings=(), mesh=(("data", 4), ("model", 2))):
    return audit.Program("HLO text", "jit_step", 8, "cpu", True, mesh, collectives, all_findings=findings)


STEP = program(
    collective("all_gather", runs=3),
    collective("all_gather", line=14),
    collective("all_reduce", ("model",), 1024, runs=2),
    collective("all_reduce", ("data", "model"), 2_000_000, line=20),
)


def failure_of(function, *arguments, **more):
    with pytest.raises(AssertionError) as caught:
        function(*arguments, **more)
    return str(caught.value)


def test_operations_are_counted_and_other_kinds_are_not():
    audit.assert_collectives(STEP, all_gather=2, all_reduce=at_most(2), all_to_all=0)
    audit.assert_collectives(STEP, all_gather=at_most(3))
    audit.assert_collectives(STEP, runs=True, all_gather=4, all_reduce=at_most(3))


def test_a_wrong_number_names_the_lines():
    assert failure_of(audit.assert_collectives, STEP, all_gather=1, all_to_all=1, all_reduce=at_most(1)) == (
        "audit.assert_collectives: jit_step has 2 all_gather, expected 1\n"
        "  all_gather at train.py:12 over data, 448 bytes, 3 runs\n"
        "  all_gather at train.py:14 over data, 448 bytes, 1 run\n"
        "jit_step has 0 all_to_all, expected 1\n"
        "jit_step has 2 all_reduce, expected at most 1\n"
        "  all_reduce at train.py:12 over model, 1.0 KiB, 2 runs\n"
        "  all_reduce at train.py:20 over data,model, 1.9 MiB, 1 run"
    )
    assert failure_of(audit.assert_collectives, STEP, all_gather=3).startswith(
        "audit.assert_collectives: jit_step has 2 all_gather, expected 3"
    )


def test_runs_of_an_unknown_loop_are_not_guessed():
    unknown = program(collective("all_gather", runs=None), collective("all_gather", runs=2))
    audit.assert_collectives(unknown, all_gather=2)
    assert failure_of(audit.assert_collectives, unknown, runs=True, all_gather=at_most(9)) == (
        "audit.assert_collectives: jit_step has at least 2 runs of all_gather: the trip count of a loop is unknown, "
        "expected at most 9\n  all_gather at train.py:12 over data, 448 bytes, unknown runs"
    )
    assert "has at least 2 runs of all_gather, expected 1" in failure_of(
        audit.assert_collectives, unknown, runs=True, all_gather=1
    )


def finding(kind, size):
    text = "The array is gathered whole, and a part is kept."
    return audit.Finding(kind, None, "copy.3", "", "train.py", 31, size, 1, text, "Give it the sharding of its user.")


def test_a_rematerialization_is_named_with_its_repair():
    audit.assert_no_rematerialization(program(findings=(finding("gathered twice", 64),)))
    bad = program(findings=(finding("rematerialization", 64), finding("gathered twice", 64)))
    assert failure_of(audit.assert_no_rematerialization, bad) == (
        "audit.assert_no_rematerialization: jit_step rematerializes 1 array in full, expected none\n"
        "  train.py:31: The array is gathered whole, and a part is kept. Give it the sharding of its user."
    )
    audit.assert_no_rematerialization(bad, at_least="1 KiB")


def test_bytes_of_an_axis_are_summed_over_runs():
    audit.assert_bytes(STEP, axis="data", at_most=4 * 448 + 2_000_000)
    audit.assert_bytes(STEP, axis="model", at_most="2 MiB", kind="all_reduce")
    audit.assert_bytes(STEP, kind="all_gather", at_most=4 * 448)
    audit.assert_bytes(STEP, axis="model", kind="all_gather", at_most=0)
    assert failure_of(audit.assert_bytes, STEP, axis="model", at_most="1 MB") == (
        "audit.assert_bytes: a device of jit_step sends 2,002,048 bytes (1.9 MiB) over model, "
        "expected at most 1,000,000 bytes (976.6 KiB)\n"
        "  all_reduce at train.py:20 over data,model, 1.9 MiB, 1 run\n"
        "  all_reduce at train.py:12 over model, 1.0 KiB, 2 runs"
    )


def test_bytes_that_are_unknown_do_not_pass():
    for unknown in (collective("all_gather", size=None), collective("all_gather", runs=None)):
        text = failure_of(audit.assert_bytes, program(unknown), at_most="1 GB")
        assert "; sizes or runs are unknown\n  all_gather at train.py:12" in text


def test_groups_that_are_not_along_axes_count_where_they_cross_one():
    pairs = ((0, 1), (2, 3), (4, 5), (6, 7))  # devices of one position along data
    step = program(collective("all_gather", None, 448, groups=pairs))
    audit.assert_bytes(step, axis="data", at_most=0)
    assert "sends 448 bytes over model" in failure_of(audit.assert_bytes, step, axis="model", at_most=0)


def test_a_misspelt_axis_is_refused():
    with pytest.raises(ValueError, match=r"has no axis 'modes' \(did you mean model\?\); expected one of data, model"):
        audit.assert_bytes(STEP, axis="modes", at_most=1)
    with pytest.raises(ValueError, match="expected a program that was read with a mesh"):
        audit.assert_bytes(program(mesh=()), axis="model", at_most=1)
