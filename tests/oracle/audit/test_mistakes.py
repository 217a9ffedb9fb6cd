# SPDX-License-Identifier: Apache-2.0
"""Audits of 20 programs with one mistake each: the mistake is found, and its line or path is named.

Mistakes that XLA makes by itself for CPUs are in texts for GPUs: tests/python/audit/test_texts_of_jax_versions.py.
"""

from pathlib import Path

import jax
import mistakes
import pytest
from artifex_devices import audit
from audit_steps import OPTIONS

FILE = str(Path(mistakes.__file__).resolve())

FINDINGS = {
    mistakes.activations_turned: "rematerialization",
    mistakes.resharded_in_every_layer: "resharded in loop",
    mistakes.weights_gathered_in_the_loop_over_microbatches: "invariant in loop",
    mistakes.constant_summed_in_a_loop: "invariant in loop",
    mistakes.gathered_twice: "gathered twice",
    mistakes.logits_replicated: "replicated temporary",
    mistakes.stack_gathered_before_the_scan: "replicated temporary",
    mistakes.axis_of_size_1: "axis of size 1",
}
# For CPUs XLA moves messages out of loops where it can; for GPUs and TPUs it leaves them there.
LEFT_IN_LOOPS = {
    "xla_disable_hlo_passes": "while-loop-invariant-code-motion,while-loop-expensive-invariant-code-motion"
}
ASSERTIONS = {
    mistakes.activations_without_annotation: lambda program: audit.assert_collectives(program, all_gather=0),
    mistakes.wrong_axis: lambda program: audit.assert_collectives(program, collective_permute=0, all_to_all=0),
    mistakes.gradients_summed_for_each_microbatch: lambda program: audit.assert_collectives(
        program, all_reduce=1, runs=True
    ),
    mistakes.summed_over_both_axes: lambda program: audit.assert_bytes(program, axis="tensor", at_most=0),
    mistakes.activations_sent_along_the_wrong_axis: lambda program: audit.assert_bytes(program, axis="data", at_most=0),
    mistakes.tokens_gathered_for_experts: lambda program: audit.assert_collectives(
        program, all_gather=0, all_to_all=audit.at_most(2)
    ),
    mistakes.results_without_shardings: lambda program: audit.assert_collectives(program, all_gather=4),
}
SHARDINGS = (
    mistakes.batch_without_sharding,
    mistakes.misspelt_names,
    mistakes.optimizer_state_without_shardings,
    mistakes.vocabulary_that_does_not_divide,
    mistakes.axis_that_no_rule_names,
)


def name_of(value):
    return getattr(value, "__name__", None)


def compiled(program):
    function, arguments = program()
    mesh = dict(jax.tree.leaves(arguments)[0].sharding.mesh.shape)
    options = OPTIONS | (LEFT_IN_LOOPS if FINDINGS.get(program) == "invariant in loop" else {})
    return jax.jit(function).lower(*arguments).compile(compiler_options=options), mesh


@pytest.mark.parametrize(("program", "kind"), FINDINGS.items(), ids=name_of)
def test_a_finding_names_the_line(program, kind):
    text, mesh = compiled(program)
    found = [each for each in audit.program(text, mesh=mesh).findings(at_least=0) if each.kind == kind]
    assert (FILE, mistakes.line_of(program)) in [(each.file, each.line) for each in found]
    assert all(each.text and each.repair for each in found)


@pytest.mark.parametrize(("program", "check"), ASSERTIONS.items(), ids=name_of)
def test_a_failed_assertion_names_the_line(program, check):
    text, mesh = compiled(program)
    audited = audit.program(text, mesh=mesh)
    with pytest.raises(AssertionError, match=rf"mistakes\.py:{mistakes.line_of(program)}\b"):
        check(audited)


@pytest.mark.parametrize("tree", SHARDINGS, ids=name_of)
def test_a_notice_names_the_leaf_or_the_axis(tree):
    leaves, kind, path = tree()
    notices = audit.shardings(leaves).notes
    assert kind in [each.kind for each in notices]
    assert {path in each.path for each in notices} == {True}


def test_there_are_20_mistakes():
    assert len({*FINDINGS, *ASSERTIONS, *SHARDINGS}) == 20
